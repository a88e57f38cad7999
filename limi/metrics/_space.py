"""Rows as points whose Euclidean distance can be measured, and the nearest of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.table.schema import Schema
from limi.types import Index, Mask, Rows

__all__ = ["Points", "Space", "nearest"]

Points: TypeAlias = NDArray[np.floating[Any]]

_MOST_LEVELS = 100  # of a column; rarer ones stand together at the origin


@dataclass(frozen=True)
class Space:
    """Standardised numbers, one axis for each frequent level, and one for missing cells."""

    positions: Index  # the columns that count
    may_miss: Mask  # columns with an axis for missing cells
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    levels: tuple[NDArray[np.float64], ...]  # empty for numbers

    @staticmethod
    def learn(
        rows: Rows, schema: Schema, positions: Index | None = None, *, closed: bool = False
    ) -> Space:
        """Axes from the rows of a table; by default of all columns.

        Where no other rows will be placed (`closed`), a column without missing cells needs no
        axis for them.
        """
        places = np.arange(len(schema)) if positions is None else positions
        missing: Mask = np.asarray(np.isnan(rows[:, places]).any(axis=0))
        centre, spread = np.zeros(len(places)), np.ones(len(places))
        levels = []
        for i, place in enumerate(places):
            cells = rows[:, place]
            cells = cells[~np.isnan(cells)]
            if schema.columns[place].kind == "numerical":
                levels.append(np.empty(0))
                if len(cells):
                    centre[i], spread[i] = cells.mean(), cells.std() or 1.0
            else:
                known, counts = np.unique(cells, return_counts=True)
                frequent = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
                levels.append(np.sort(known[frequent]))
        may_miss = missing if closed else np.ones(len(places), dtype=bool)
        return Space(places, may_miss, centre, spread, tuple(levels))

    def place(self, rows: Rows, dtype: type[np.floating[Any]] = np.float32) -> Points:
        """(n, axes): one point per row."""
        axes = []
        for i, place in enumerate(self.positions):
            cells, missing = rows[:, place], np.isnan(rows[:, place])
            if self.may_miss[i]:
                axes.append(missing[:, None].astype(dtype))
            if len(self.levels[i]):
                axes.append((cells[:, None] == self.levels[i]).astype(dtype))
            else:
                away = np.where(missing, self.centre[i], cells) - self.centre[i]
                axes.append((away / self.spread[i])[:, None].astype(dtype))
        return np.concatenate(axes, axis=1)


def nearest(points: Points, among: Points, k: int) -> tuple[NDArray[np.float64], Index]:
    """(n, k): distances to the k nearest of `among`, nearest first, and which they are."""
    from sklearn.neighbors import NearestNeighbors
    from threadpoolctl import threadpool_limits

    # One thread: a team of them on a busy machine spends its time waiting.
    with threadpool_limits(limits=1):
        search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(among)
        distances, which = search.kneighbors(points)
    return distances.astype(np.float64), which.astype(np.intp)

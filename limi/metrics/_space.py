"""Rows as points whose Euclidean distance can be measured, and the nearest of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.table.schema import Schema
from limi.types import Index, Mask, Rows

__all__ = ["Points", "Space", "find_neighbours", "nearest"]

Points: TypeAlias = NDArray[np.floating[Any]]

_MOST_LEVELS = 100  # of a column; rarer ones stand together at the origin
_SPARE = 8  # candidates beyond those wanted: as many may change places in single precision
_GROUP = 16
_BLOCK = 1 << 20  # numbers at once
_STEP_OF_DISTANCE = 1e-7  # of squared distances; closer ones count as equal


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
    """(n, k): distances to the k nearest of `among`, nearest first, and which they are.

    Products in single precision tell a few more than k candidates, and distances of these in double
    precision decide, so that equal rows are equally far whatever stands beside them. Which of
    equally far ones are named may depend on the processor: `find_neighbours` is for that.
    Scikit-learn does the same no faster, and importing it takes longer than most of these searches.
    """
    if not len(points):
        return np.empty((0, k)), np.empty((0, k), dtype=np.intp)
    # Most tables lack no cells, so that the axes of missing ones are nought throughout.
    used = np.flatnonzero(among.any(axis=0))
    others = np.ascontiguousarray(among[:, used].T, dtype=np.float32)
    sides = np.einsum("ij,ij->j", others, others)
    distances, which = [], []
    width = max(len(among), (k + _SPARE) * among.shape[1])
    step = max(1, _BLOCK // width)
    for start in range(0, len(points), step):
        here = points[start : start + step]
        # What a point has on other axes is the same for all of them.
        far = here[:, used].astype(np.float32, copy=False) @ others
        far *= -2
        far += sides
        near = np.sort(_find_smallest(far, min(k + _SPARE, len(among))), axis=1)
        away = (among[near] - here[:, None]).astype(np.float64, copy=False)
        exact = np.sqrt(np.einsum("ijk,ijk->ij", away, away))
        first = np.argsort(exact, axis=1, kind="stable")[:, :k]
        distances.append(np.take_along_axis(exact, first, axis=1))
        which.append(np.take_along_axis(near, first, axis=1))
    return np.concatenate(distances), np.concatenate(which)


def find_neighbours(points: Points, k: int) -> Index:
    """(n, k): which k points are nearest to each of them, itself included; of those that are
    equally near the first.

    Distances in steps, numbered by point, have no ties, so that neither the processor nor the order
    of a sum decides.
    """
    n = len(points)
    points = points.astype(np.float64, copy=False)
    sides, numbers = np.einsum("ij,ij->i", points, points), np.arange(n)
    found = []
    for start in range(0, n, max(1, _BLOCK // n)):
        here = slice(start, start + max(1, _BLOCK // n))
        far = sides[here, None] + sides - 2 * (points[here] @ points.T)
        ranks = np.rint(far / _STEP_OF_DISTANCE).astype(np.int64) * n + numbers
        near = np.argpartition(ranks, k - 1, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(ranks, near, axis=1), axis=1)
        found.append(np.take_along_axis(near, order, axis=1))
    return np.concatenate(found)


def _find_smallest(cells: NDArray[np.float32], n: int) -> Index:
    """(rows, n): where the n smallest cells of each row stand, in no order.

    They stand in the n groups whose own smallest are smallest, which is quicker to tell.
    """
    size = cells.shape[1]
    n_groups = -(-size // _GROUP)
    if n_groups <= n:
        return np.argpartition(cells, n - 1, axis=1)[:, :n]
    padded = np.full((len(cells), _GROUP * n_groups), np.inf, dtype=cells.dtype)
    padded[:, :size] = cells
    groups = padded.reshape(len(cells), _GROUP, n_groups)
    chosen = np.argpartition(groups.min(axis=1), n - 1, axis=1)[:, :n]
    places = (chosen[:, None, :] + n_groups * np.arange(_GROUP)[:, None]).reshape(len(cells), -1)
    inner = np.argpartition(np.take_along_axis(padded, places, axis=1), n - 1, axis=1)[:, :n]
    return np.take_along_axis(places, inner, axis=1)

"""How a column cuts people into groups: its values, or bands of a number that has many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.table.schema import Column
from limi.types import Index, Mask

__all__ = ["MANY_VALUES", "Cut", "cross", "cut"]

MANY_VALUES = 10
"""Values of a number that are groups of their own; of more, bands."""

_BANDS = 5


@dataclass(frozen=True)
class Cut:
    """Which group each row is in, and what the groups are called."""

    places: Index
    words: tuple[str, ...]

    @property
    def sizes(self) -> Index:
        """How many rows each group has."""
        return np.bincount(self.places, minlength=len(self.words))

    def mask(self, place: int) -> Mask:
        """The rows of a group."""
        return np.asarray(self.places == place)


def cut(column: Column, cells: NDArray[np.float64]) -> Cut:
    """Groups by what a column holds; missing cells are a group of their own.

    A number with many values has five bands of about as many people each.
    """
    known = cells[~np.isnan(cells)]
    values = np.unique(known)
    if column.kind == "numerical" and len(values) > MANY_VALUES:
        return _bands(column, cells, known)
    places = np.where(np.isnan(cells), len(values), np.searchsorted(values, cells))
    codes = [*values, *([math.nan] if len(known) < len(cells) else [])]
    return Cut(places.astype(np.intp), tuple(map(column.show, codes)))


def _bands(column: Column, cells: NDArray[np.float64], known: NDArray[np.float64]) -> Cut:
    cuts = np.unique(np.quantile(known, np.arange(1, _BANDS) / _BANDS))
    places = np.searchsorted(cuts, cells, side="left")
    words = []
    for place in range(len(cuts) + 1):
        inside = known[np.searchsorted(cuts, known, side="left") == place]
        ends = (inside.min(), inside.max()) if len(inside) else None
        words.append("none" if ends is None else " to ".join(map(column.show, ends)))
    if len(known) < len(cells):
        places = np.where(np.isnan(cells), len(words), places)
        words.append("missing")
    return Cut(places.astype(np.intp), tuple(words))


def cross(names: Sequence[str], cuts: Sequence[Cut]) -> Cut:
    """Groups of rows that are in the same group of every column."""
    joined = np.stack([one.places for one in cuts], axis=1)
    met, places = np.unique(joined, axis=0, return_inverse=True)
    words = tuple(
        ", ".join(
            f"{name} {one.words[place]}" for name, place, one in zip(names, line, cuts, strict=True)
        )
        for line in met
    )
    return Cut(places.reshape(-1).astype(np.intp), words)

"""How a column cuts people into groups: its values, or bands of a number that has many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.table.schema import Column
from limi.types import Index, Mask

__all__ = ["MANY_VALUES", "Cut", "cross", "cut", "edge_words", "find_edges"]

MANY_VALUES = 10
"""Values of a number that are groups of their own; of more, bands."""

_SHARES = np.arange(1, 5) / 5  # of people, below the bands of a number but the first


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
    cuts = np.unique(np.quantile(known, _SHARES))
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


def find_edges(column: Column, cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """The highest cell of each group but the last, for rows that are still to come: every level or
    value, or the bands of a number with many."""
    if column.kind != "numerical":
        return np.arange(column.size - 1, dtype=np.float64)
    values = np.unique(cells)
    if len(values) <= MANY_VALUES:
        return values[:-1]
    return np.unique(np.quantile(cells, _SHARES))


def edge_words(column: Column, edges: NDArray[np.float64], place: int) -> str:
    """What the group at a place is called."""
    if column.kind != "numerical":
        return column.show(float(place))
    if place == len(edges):
        return f"over {column.show(float(edges[-1]))}" if len(edges) else "of any value"
    if not place:
        return f"up to {column.show(float(edges[0]))}"
    return f"over {column.show(float(edges[place - 1]))} to {column.show(float(edges[place]))}"


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

"""Columns as a few cells each, so that pairs of them can be counted: for mining.

The cells of a column are its levels, or the few numbers that it holds, or numbers that it holds
far more often than their neighbours (a spike such as a capital gain of 0) and one cell for all
others; and one for missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from limi.table._rule_syntax import quote_name, quote_value
from limi.table.schema import Column, Schema
from limi.types import Index, Mask, Rows

__all__ = [
    "LEAST_EXPECTED",
    "MOST_BROKEN",
    "MOST_OF_EXPECTED",
    "Axis",
    "count_pairs",
    "is_evident",
    "is_unseen",
    "make_axes",
]

MOST_BROKEN = 0.002  # of the rows that a rule is about
LEAST_EXPECTED = 50  # rows that would break it by chance
MOST_OF_EXPECTED = 0.01  # rows that break it, of those

_FEW_NUMBERS = 12
_MOST_LEVELS = 200
_SPIKE_SHARE = 0.02  # of all rows
_SPIKE_HEIGHT = 8  # times its neighbours
_NEIGHBOURS = 5  # on each side

Special = Literal["missing", "other"]


@dataclass(frozen=True, eq=False)
class Axis:
    """A column's cells: what each stands for, and which one every row is in."""

    column: Column
    position: int
    cells: Index  # (n,)
    meanings: tuple[float | Special, ...]  # a code, or what has none

    def __len__(self) -> int:
        return len(self.meanings)

    @cached_property
    def counts(self) -> Index:
        """Rows in each cell."""
        return np.bincount(self.cells, minlength=len(self))

    @cached_property
    def can_be_said(self) -> Mask:
        """Which cells a rule can name: all but the others of too many levels."""
        rest = None if self.column.is_number else "other"
        return np.array([meaning != rest for meaning in self.meanings])

    def say(self, cells: Iterable[int], *, surely: bool = False) -> str:
        """The condition that a row is in one of these cells; `surely` where missing would fail."""
        wanted = set(cells)
        meanings = [self.meanings[cell] for cell in sorted(wanted)]
        left = [self.meanings[cell] for cell in range(len(self)) if cell not in wanted]
        name = quote_name(self.column.name)
        if meanings == ["missing"]:
            return f"{name} is missing"
        barred = [meaning for meaning in left if isinstance(meaning, float)]
        if "other" not in meanings:
            said = f"{name} {self._one_of(meanings)}"
        else:
            said = f"{name} {self._none_of(barred)}" if barred else f"{name} is not missing"
        if "missing" in meanings:
            return f"{said} or {name} is missing"
        return f"{said} and {name} is not missing" if surely and "missing" in left else said

    def deny(self, cells: Iterable[int]) -> str:
        """The condition that a row is in none of these cells."""
        barred = set(cells)
        meanings = [self.meanings[cell] for cell in sorted(barred)]
        if "other" in meanings:
            return self.say(set(range(len(self))) - barred, surely="missing" in meanings)
        name = quote_name(self.column.name)
        known = [meaning for meaning in meanings if isinstance(meaning, float)]
        parts = [f"{name} {self._none_of(known)}"] if known else []
        return " and ".join(parts + [f"{name} is not missing"] * ("missing" in meanings))

    def name(self, cell: int) -> str:
        """A cell in a word or two."""
        meaning = self.meanings[cell]
        if isinstance(meaning, float):
            return self.column.show(meaning)
        if meaning == "missing":
            return meaning
        seen = [self.column.show(m) for m in self.meanings[:3] if isinstance(m, float)]
        return f"not {' '.join(seen)}" if seen else "known"

    def _one_of(self, meanings: Iterable[float | Special]) -> str:
        values = self._values(meanings)
        return f"== {values[0]}" if len(values) == 1 else f"in [{', '.join(values)}]"

    def _none_of(self, meanings: Iterable[float | Special]) -> str:
        values = self._values(meanings)
        return f"!= {values[0]}" if len(values) == 1 else f"not in [{', '.join(values)}]"

    def _values(self, meanings: Iterable[float | Special]) -> list[str]:
        codes = sorted(meaning for meaning in meanings if isinstance(meaning, float))
        if self.column.is_number:
            return [quote_value(code) for code in codes]
        return [quote_value(self.column.levels[int(code)]) for code in codes]


def make_axes(schema: Schema, rows: Rows) -> dict[int, Axis]:
    """The axes of all columns that have cells at all, by position."""
    axes = {}
    for position, column in enumerate(schema.columns):
        codes, places = np.unique(rows[:, position], return_inverse=True)
        known = codes[~np.isnan(codes)]  # np.unique puts NaN last, as one
        counts = np.bincount(places, minlength=len(codes))[: len(known)]
        kept = _choose(column, counts, len(rows))
        if not kept.any() and len(known) == len(codes):
            continue
        meanings: list[float | Special] = [float(code) for code in known[kept]]
        of_code = np.full(len(codes), len(meanings))
        of_code[: len(known)][kept] = np.arange(len(meanings))
        if not kept.all():
            meanings.append("other")
        if len(known) < len(codes):
            of_code[-1] = len(meanings)
            meanings.append("missing")
        axes[position] = Axis(column, position, of_code[places.ravel()], tuple(meanings))
    return axes


def _choose(column: Column, counts: Index, n: int) -> Mask:
    """Which codes are cells of their own."""
    if not column.is_number:
        if len(counts) <= _MOST_LEVELS:
            return np.ones(len(counts), dtype=bool)
        kept = np.zeros(len(counts), dtype=bool)
        kept[np.argsort(-counts, kind="stable")[:_MOST_LEVELS]] = True
        return kept
    if len(counts) <= _FEW_NUMBERS:
        return np.ones(len(counts), dtype=bool)
    chosen = np.zeros(len(counts), dtype=bool)
    for place in map(int, np.flatnonzero(counts >= _SPIKE_SHARE * n)):
        start = max(0, place - _NEIGHBOURS)
        around = np.delete(counts[start : place + _NEIGHBOURS + 1], place - start)
        chosen[place] = counts[place] >= _SPIKE_HEIGHT * np.median(around)
    return chosen


def count_pairs(one: Axis, other: Axis) -> NDArray[np.int64]:
    """(cells, cells): in how many rows each pair of cells occurs."""
    joint = one.cells * len(other) + other.cells
    counts = np.bincount(joint, minlength=len(one) * len(other))
    return counts.reshape(len(one), len(other)).astype(np.int64)


def is_evident(broken: float, support: float, expected: float) -> bool:
    """Is a rule kept too well for chance?"""
    return (
        expected >= LEAST_EXPECTED
        and broken <= MOST_BROKEN * support
        and broken <= MOST_OF_EXPECTED * expected
    )


def is_unseen(seen: NDArray[np.int64], expected: NDArray[np.float64]) -> Mask:
    """Which combinations occur so seldom that it is not chance?"""
    unseen: Mask = (expected >= LEAST_EXPECTED) & (seen <= MOST_OF_EXPECTED * expected)
    return unseen

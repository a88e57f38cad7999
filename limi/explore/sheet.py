"""Very many rows, column by column: filtered, counted, sorted and paged in milliseconds.

A column keeps each of its values once, ascending, and for every row the place of its value in as
few bytes as do. A filter is then a comparison of small whole numbers, a count of values adds them
up, and nothing is copied but the rows of one page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.table.schema import Column
from limi.types import Index, Mask

__all__ = ["Facet", "Filter", "Sheet", "Slot", "Strip", "round_up"]

_MOST_KEPT = 1 << 16  # values that are kept once each; more are kept row by row
_MOST_SLOTS = 60  # values that a column is counted by; a number with more is cut into bins
_FEW_NUMBERS = 12
_BINS = 8  # at most, or a few more for round numbers


@dataclass(frozen=True)
class Filter:
    """What cells of one column must be: from `low` to `high` and less than `below`, or among
    `codes`; or missing, where that is asked for too."""

    low: float = -math.inf
    high: float = math.inf
    below: float = math.inf
    codes: tuple[float, ...] | None = None
    missing: bool = False  # does a missing cell pass?

    def passes(self, values: NDArray[Any]) -> Mask:
        """Which values pass."""
        if self.codes is None:
            found: Mask = np.asarray((values >= self.low) & (values <= self.high))
            found = found if self.below == math.inf else found & (values < self.below)
        else:
            found = np.isin(values, self.codes)
        return found | np.isnan(values) if self.missing else found


Filters: TypeAlias = Mapping[str, Filter]


@dataclass(frozen=True)
class Slot:
    """A value, or a bin of a number (from its low end to less than its high one), with how many
    rows hold it."""

    low: float
    high: float
    n: int
    chosen: bool = False

    @property
    def is_missing(self) -> bool:
        """Does it stand for missing cells?"""
        return math.isnan(self.low)


@dataclass(frozen=True)
class Facet:
    """The counts of one column among the rows that pass all other filters."""

    name: str
    slots: tuple[Slot, ...]
    rest: int = 0  # rows of values that are too many to count one by one


@dataclass(frozen=True, eq=False)
class Strip:
    """One column: values ascending with every row's place among them, or plain numbers."""

    name: str
    column: Column | None  # of the table; None for a figure such as a score
    values: NDArray[np.float64]  # each once and ascending, NaN last; or one per row
    places: NDArray[Any] | None  # of each row; None where the values are one per row
    words: tuple[str, ...] = ()  # what whole numbers stand for, where there is no column

    @staticmethod
    def of(
        name: str,
        cells: NDArray[np.float64],
        column: Column | None = None,
        words: Sequence[str] = (),
    ) -> Strip:
        """A strip of plain numbers, or of values where they are few."""
        if column is None and not words:
            return Strip(name, None, cells, None)
        values, places = np.unique(cells, return_inverse=True)
        return Strip.at(name, values, places.reshape(-1), column, words)

    @staticmethod
    def at(
        name: str,
        values: NDArray[np.float64],
        places: Index,
        column: Column | None = None,
        words: Sequence[str] = (),
    ) -> Strip:
        """A strip of values in any order, each once, and places among them."""
        if len(values) > _MOST_KEPT:
            return Strip(name, column, values[places], None)
        order = np.argsort(values, kind="stable")
        new = np.empty(len(values), dtype=np.min_scalar_type(max(len(values) - 1, 0)))
        new[order] = np.arange(len(values))
        told = new[places] if len(values) else np.zeros(len(places), dtype=np.uint8)
        return Strip(name, column, values[order], told, tuple(words))

    def __len__(self) -> int:
        return len(self.values if self.places is None else self.places)

    def take(self, rows: Index) -> NDArray[np.float64]:
        """The cells of these rows."""
        if self.places is None:
            return np.asarray(self.values[rows], dtype=np.float64)
        return np.asarray(self.values[self.places[rows]])

    @property
    def cells(self) -> NDArray[np.float64]:
        """The cells of all rows."""
        return self.values if self.places is None else self.values[self.places]

    @property
    def present(self) -> NDArray[np.float64]:
        """The values that rows hold, each once; a dictionary may have more."""
        if self.places is None:
            return np.unique(self.values)
        return self.values[np.bincount(self.places, minlength=len(self.values)) > 0]

    def passes(self, wanted: Filter) -> Mask:
        """Which rows pass a filter."""
        passing = wanted.passes(self.values)
        if self.places is None:
            return passing
        where = np.flatnonzero(passing)
        if not len(where):
            return np.zeros(len(self), dtype=bool)
        first, last = where[0], where[-1]
        if len(where) == last - first + 1:  # neighbours: two comparisons of small numbers
            if first == last:
                return np.asarray(self.places == first)
            return np.asarray((self.places >= first) & (self.places <= last))
        return np.asarray(passing[self.places])

    @property
    def keys(self) -> NDArray[Any]:
        """One number per row that orders rows as their cells do, missing ones last or NaN."""
        return self.values if self.places is None else self.places

    @property
    def last_key(self) -> int | None:
        """The key of missing cells, where keys are places and some cells are missing."""
        if self.places is None or not len(self.values) or not math.isnan(self.values[-1]):
            return None
        return len(self.values) - 1

    @cached_property
    def _is_binned(self) -> bool:
        if self.places is None:
            return True
        known = int(np.isfinite(self.values).sum())
        is_number = self.column is not None and self.column.kind == "numerical"
        return known > (_FEW_NUMBERS if is_number else len(self.values))

    @cached_property
    def bins(self) -> NDArray[np.float64]:
        """Where a number is cut: round numbers, from one below all to one above."""
        known = self.values[np.isfinite(self.values)]
        if not len(known):
            return np.array([0.0, 1.0])
        low, high = float(known.min()), float(known.max())
        width = round_up((high - low) / _BINS or 1.0)
        if self.column is not None and self.column.step:
            width = max(width, self.column.step)
        first, last = math.floor(low / width), math.floor(high / width) + 1
        edges = np.round(np.arange(first, last + 1) * width, 12)
        if self.column is None and len(edges) > 2 and high == edges[-2]:
            # A share of 1 belongs to those just below it, and not to a bin of its own.
            edges = np.append(edges[:-2], np.nextafter(high, np.inf))
        return edges

    @cached_property
    def slots(self) -> NDArray[Any]:
        """The slot of each row: a value, a bin, or the one behind all for missing cells."""
        if not self._is_binned:
            assert self.places is not None
            return self.places
        n_bins = len(self.bins) - 1
        found = np.searchsorted(self.bins[1:-1], self.values, side="right").astype(np.uint8)
        found[np.isnan(self.values)] = n_bins
        return found if self.places is None else found[self.places]

    def count(self, rows: Index | None, wanted: Filter | None) -> Facet:
        """How many of these rows (all where None) lie in each slot."""
        size = len(self.bins) if self._is_binned else len(self.values)
        if rows is None:
            counts = self._all_counts
        else:
            counts = np.bincount(self.slots.take(rows), minlength=size)
        if self._is_binned:
            lows, highs = self.bins[:-1], self.bins[1:]
            ends = [*zip(lows.tolist(), highs.tolist(), strict=True), (math.nan, math.nan)]
            lines = [
                Slot(low, high, int(n), _is_bin(wanted, low, high))
                for (low, high), n in zip(ends, counts, strict=True)
            ]
            return Facet(self.name, tuple(s for s in lines if not s.is_missing or s.n))
        shown = np.arange(size)
        if size > _MOST_SLOTS:
            shown = np.sort(np.argsort(-self._all_counts, kind="stable")[:_MOST_SLOTS])
        chosen = None if wanted is None else wanted.passes(self.values)
        lines = [
            Slot(value, value, int(counts[k]), chosen is not None and bool(chosen[k]))
            for k, value in zip(shown.tolist(), self.values[shown].tolist(), strict=True)
        ]
        return Facet(self.name, tuple(lines), int(counts.sum() - counts[shown].sum()))

    @cached_property
    def _all_counts(self) -> NDArray[np.int64]:
        size = len(self.bins) if self._is_binned else len(self.values)
        return np.bincount(self.slots, minlength=size)

    def show(self, cell: float) -> str:
        """A cell as a person would write it."""
        if self.words:
            return self.words[int(cell)] if not math.isnan(cell) else "missing"
        if self.column is not None:
            return self.column.show(cell)
        return "not known" if math.isnan(cell) else f"{cell:.3g}"


def _is_bin(wanted: Filter | None, low: float, high: float) -> bool:
    return wanted is not None and wanted.codes is None and (wanted.low, wanted.below) == (low, high)


def round_up(width: float) -> float:
    """The next of 1, 2 and 5 with noughts.

    >>> [round_up(width) for width in (0.03, 1.0, 7.2, 23)]
    [0.05, 1.0, 10.0, 50.0]
    """
    unit = 10.0 ** math.floor(math.log10(width))
    return next(unit * k for k in (1, 2, 5, 10) if unit * k >= width * (1 - 1e-9))


@dataclass(frozen=True, eq=False)
class Sheet:
    """Columns of as many rows each."""

    strips: Mapping[str, Strip]
    n: int

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, name: str) -> Strip:
        if name not in self.strips:
            raise InvalidInput(f"there is no column {name[:80]!r} to filter or sort by")
        return self.strips[name]

    def select(self, filters: Filters) -> Selection:
        """The rows that pass all filters."""
        return Selection(self, dict(filters))


@dataclass(frozen=True, eq=False)
class Selection:
    """Rows of a sheet that pass some filters."""

    sheet: Sheet
    filters: dict[str, Filter]

    @cached_property
    def _fails(self) -> dict[str, Mask]:
        return {name: ~self.sheet[name].passes(f) for name, f in self.filters.items()}

    @cached_property
    def mask(self) -> Mask | None:
        """Which rows pass; None for all."""
        return self._passing(None)

    def _passing(self, without: str | None) -> Mask | None:
        """Which rows pass all filters but that of one column."""
        fails = [mask for name, mask in self._fails.items() if name != without]
        if not fails:
            return None
        failed = fails[0]
        for mask in fails[1:]:
            failed = failed | mask
        return ~failed

    @cached_property
    def n(self) -> int:
        """How many pass."""
        return self.sheet.n if self.mask is None else int(np.count_nonzero(self.mask))

    @cached_property
    def rows(self) -> Index:
        """Which rows pass, ascending."""
        return np.arange(self.sheet.n) if self.mask is None else np.flatnonzero(self.mask)

    def facets(self, names: Sequence[str]) -> list[Facet]:
        """Counts by column: each among the rows that all filters but its own let pass."""
        common = None if self.mask is None else self.rows
        return [
            self.sheet[name].count(
                self._others(name) if name in self.filters else common, self.filters.get(name)
            )
            for name in names
        ]

    def _others(self, name: str) -> Index | None:
        mask = self._passing(name)
        return None if mask is None else np.flatnonzero(mask)

    def page(self, start: int, size: int, by: str | None = None, *, falling: bool = False) -> Index:
        """Rows from one place on in the order of a column, those without a value last."""
        if by is None:
            return (self.rows[::-1] if falling else self.rows)[start : start + size]
        strip = self.sheet[by]
        return self.page_by(strip.keys, start, size, falling=falling, last=strip.last_key)

    def page_by(
        self,
        keys: NDArray[Any],
        start: int,
        size: int,
        *,
        falling: bool = False,
        last: int | None = None,
    ) -> Index:
        """Rows from one place on in the order of keys, equal ones as they stand; NaN, or the key
        `last`, comes last. Only the keys of one page are sorted: an order of all rows would be
        larger than the columns are, and there is one for each column."""
        keys = keys if self.mask is None else keys[self.mask]
        stop = min(start + size, len(keys))
        if start >= stop:
            return np.arange(0)
        if keys.dtype.kind == "f":
            keys = -keys if falling else keys.copy()
            keys[np.isnan(keys)] = np.inf
        elif falling:
            top = np.iinfo(keys.dtype).max
            keys = np.where(keys == last, top, top - 1 - keys) if last is not None else top - keys
        ends = np.partition(keys, (start, stop - 1))[[start, stop - 1]]
        near = np.flatnonzero((keys >= ends[0]) & (keys <= ends[1]))
        before = int(np.count_nonzero(keys < ends[0]))
        sorted_ = near if ends[0] == ends[1] else near[np.argsort(keys[near], kind="stable")]
        which = sorted_[start - before : stop - before]
        return which if self.mask is None else self.rows[which]

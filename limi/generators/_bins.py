"""A column cut into few bins, and what a bin holds.

Trees and tables want few levels; columns have thousands, or real numbers. A bin is a run of
neighbouring values, and bins need not be in the order of their values. Inside a bin a
fraction in [0, 1) says which of its values is meant, in the proportions in which the column holds
them, so that cutting into bins is undone on the way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput, nearest
from limi.generators._state import MOST_ROWS, Arrays, pack, require
from limi.table.schema import Column, Schema, off_steps
from limi.types import Index, Mask

__all__ = ["Bins", "column_order", "cut", "inside_interval", "pack_bins", "take_bins"]

_Cells = NDArray[np.float64]

_MARGIN = 1e-4
_PARTS = {"values": np.float64, "counts": np.int64, "starts": np.int64, "order": np.int64}


@dataclass(frozen=True, eq=False)
class Bins:
    """Distinct values of a column with their counts, in runs; a bin is a run, missing the last bin.

    In a column of real numbers a value that occurs once stands for its surroundings, up to half
    way to its neighbours; one that occurs again is a value of its own, such as 0.
    """

    values: _Cells  # (v,) distinct, ascending
    counts: NDArray[np.int64]  # (v,)
    starts: Index  # (r + 1,) where in `values` each run begins
    order: Index  # (r,) the run of each bin
    n_missing: int
    real: bool  # no step: values between those of the table may be meant

    def check(self, column: Column) -> None:
        """ValueError where bins from a file are none of this column, or do not hold together."""
        name = repr(column.name)[:80]
        require(self.real == (column.size == 0), f"{name} is of a different kind")
        low, high, step = column.first, column.last, column.spacing
        values, runs = self.values, len(self.starts) - 1
        require(len(values) == len(self.counts), f"the values of {name} and their counts differ")
        require(
            bool((np.diff(values) > 0).all()), f"the values of {name} are not in increasing order"
        )
        inside = not len(values) or (values[0] >= low and values[-1] <= high)
        on_steps = not step or not off_steps(values, low, step).any()
        require(bool(inside) and on_steps, f"values of {name} are not in its schema")
        require(bool((self.counts > 0).all()), f"a value of {name} has no count")
        rows = float(self.counts.astype(np.float64).sum()) + self.n_missing
        require(0 < rows <= MOST_ROWS, f"{name} was fitted on {rows:.6g} rows")
        require(self.n_missing >= 0, f"{name} has {self.n_missing} missing cells")
        require(not self.n_missing or column.missing, f"{name} cannot be missing by its schema")
        whole = runs >= 0 and self.starts[0] == 0 and self.starts[-1] == len(values)
        require(bool(whole and (np.diff(self.starts) > 0).all()), f"runs of {name} overlap")
        ordered = np.array_equal(np.sort(self.order), np.arange(runs))
        require(ordered, f"the bins of {name} have no order")

    @property
    def n_known(self) -> int:
        """Bins of known values."""
        return len(self.order)

    def __len__(self) -> int:
        return self.n_known + (self.n_missing > 0)

    def in_order(self, order: Index) -> Bins:
        """The same runs as bins in this order of the present bins."""
        return replace(self, order=self.order[order])

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """(bins,): cells of the table in each."""
        below = np.concatenate([[0], np.cumsum(self.counts)])
        known = np.diff(below[self.starts])[self.order]
        return np.append(known, self.n_missing) if self.n_missing else known

    @cached_property
    def only_value(self) -> _Cells | None:
        """(bins,): the value of each bin where none has two, else None."""
        if self.n_known < len(self.values) or self._width.any():
            return None
        known = self.values[self.order]
        return np.append(known, np.nan) if self.n_missing else known

    # -- cells to bins and back ---------------------------------------------------------

    def bin_of(self, cells: _Cells) -> Index:
        """(n,): the bin of each cell, the nearest above for values between bins."""
        # NaN lies behind every top, as does a value above all.
        bins = self._bin_of_run[np.searchsorted(self._tops, cells)]
        bins[np.isnan(cells)] = self.n_known
        return bins

    def resolve(self, bins: NDArray[np.integer[Any]], fraction: NDArray[np.float64]) -> _Cells:
        """The cell that a fraction of a bin, from 0 to clearly below 1, stands for."""
        if self.only_value is not None:
            return self.only_value.take(bins)
        turns = fraction * self._n_slots[bins]
        slot = turns.astype(np.intp)
        value = self._slots[self._slot_starts[bins] + slot]
        cells: _Cells = self._low[value] + (turns - slot) * self._width[value]
        return cells

    def locate(self, cells: _Cells, bins: Index, draws: NDArray[np.float64]) -> _Cells:
        """A fraction of its bin that resolves to each cell; NaN where the bin lacks it.

        Cells that a whole interval stands for get the point of it that a draw in [0, 1) names.
        """
        value, found = self._value_of(cells)
        width = self._width[value]
        # The ends of a cell touch its neighbours', which may be another bin's.
        inside = np.clip(
            (cells - self._low[value]) / np.where(width > 0, width, 1.0), 1e-9, 1 - 1e-9
        )
        run = inside_interval(draws) * self._slots_of_value[value]
        first = self._slot_of_value[value] - self._slot_starts[bins]
        fraction = (first + np.where(width > 0, inside, run)) / self._n_slots[bins]
        return np.where(found, fraction, np.nan)

    def log_share(self, cells: _Cells, bins: Index) -> tuple[_Cells, Mask]:
        """ln of each cell's share of its bin, a density where `real`; and which have a density."""
        value, found = self._value_of(cells)
        width = self._width[value]
        share = self._slots_of_value[value] / np.where(width > 0, width, 1.0)
        with np.errstate(divide="ignore"):
            log = np.log(np.where(found, share, 0.0)) - np.log(self._n_slots[bins])
        return log, width > 0

    def _value_of(self, cells: _Cells) -> tuple[Index, Mask]:
        """Which of `values` stands for each cell, the one behind for missing; is there one?"""
        value = np.searchsorted(self._high[:-1], cells)
        found = (cells >= self._low[value]) & (cells <= self._high[value])
        return value, np.where(np.isnan(cells), self.n_missing > 0, found)

    # -- what a bin holds ---------------------------------------------------------------
    #
    # A bin of several values has a slot for each cell of the table, so that a fraction finds its
    # value by one multiplication; a bin of one value has one slot. Arrays over values and slots
    # have one more entry at their end, for missing.

    @cached_property
    def _low(self) -> _Cells:
        return self._cell[0]

    @cached_property
    def _high(self) -> _Cells:
        return self._cell[1]

    @cached_property
    def _width(self) -> _Cells:
        return np.append((self._high - self._low)[:-1], 0.0)

    @cached_property
    def _cell(self) -> tuple[_Cells, _Cells]:
        low, high = np.append(self.values, np.nan), np.append(self.values, np.nan)
        if self.real:
            single = self.counts == 1
            both = np.flatnonzero(single[:-1] & single[1:])
            middle = self.values[both] + (self.values[both + 1] - self.values[both]) / 2
            high[both], low[both + 1] = middle, middle
        return low, high

    @cached_property
    def _tops(self) -> _Cells:
        return self._high[self.starts[1:] - 1]

    @cached_property
    def _bin_of_run(self) -> Index:
        bins = np.empty(self.n_known + 1, dtype=np.intp)
        bins[self.order] = np.arange(self.n_known)
        bins[-1] = bins[-2] if self.n_known else 0
        return bins

    @cached_property
    def _slots_of_value(self) -> _Cells:
        alone = np.repeat(np.diff(self.starts) == 1, np.diff(self.starts))
        return np.append(np.where(alone, 1, self.counts), 1).astype(np.float64)

    @cached_property
    def _slot_of_value(self) -> _Cells:
        return np.cumsum(self._slots_of_value) - self._slots_of_value

    @cached_property
    def _slots(self) -> NDArray[np.int32]:
        """Which value each slot holds."""
        values = np.arange(len(self.values) + 1, dtype=np.int32)
        return np.repeat(values, self._slots_of_value.astype(np.intp))

    @cached_property
    def _slot_starts(self) -> Index:
        """Where each bin begins, missing behind the others."""
        runs = self._slot_of_value[self.starts].astype(np.intp)
        return np.append(runs[:-1][self.order], runs[-1])

    @cached_property
    def _n_slots(self) -> NDArray[np.float64]:
        runs = self._slot_of_value[self.starts]
        return np.append(np.diff(runs)[self.order], 1.0)


def inside_interval(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Draws in [0, 1) kept off both ends, so that rounding cannot leave the interval they name."""
    return _MARGIN + (1 - 2 * _MARGIN) * draws


def pack_bins(prefix: str, bins: Sequence[Bins | None]) -> dict[str, NDArray[Any]]:
    """The arrays of the bins of several columns, some of which may have none."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype in _PARTS.items():
        nothing = np.zeros(0, dtype=dtype)
        pieces = [nothing if each is None else getattr(each, name) for each in bins]
        arrays |= pack(prefix + name, pieces)
    return arrays


def take_bins(held: Arrays, prefix: str, n: int) -> list[tuple[Any, Any, Any, Any]]:
    """Values, counts, starts and order of the bins of n columns, as `pack_bins` wrote them."""
    values = held.float_pieces(f"{prefix}values", n)
    others = [held.whole_pieces(prefix + name, n) for name in ("counts", "starts", "order")]
    return list(zip(values, *others, strict=True))


def cut(cells: _Cells, *, real: bool, max_bins: int) -> Bins:
    """The bins of a column: one per value where that is few enough, else runs of equal weight.

    A value that alone has a bin's weight keeps a bin of its own.
    """
    known = cells[~np.isnan(cells)]
    values, counts = np.unique(known, return_counts=True)
    if len(values) <= max_bins:
        starts = np.arange(len(values) + 1)
    else:
        heavy = counts * max_bins >= counts.sum()
        light = np.where(heavy, 0, counts)
        # Light values are numbered by how much light weight lies before the middle of each.
        share = max(light.sum() / max(max_bins - int(heavy.sum()), 1), 1.0)
        number = ((np.cumsum(light) - light / 2) / share).astype(np.intp)
        new = np.ones(len(values), dtype=bool)
        new[1:] = heavy[1:] | heavy[:-1] | (number[1:] != number[:-1])
        starts = np.append(np.flatnonzero(new), len(values))
    order = np.arange(len(starts) - 1)
    return Bins(values, counts, starts.astype(np.intp), order, int(len(cells) - len(known)), real)


def column_order(
    schema: Schema,
    bins: Sequence[Bins],
    order: str | tuple[str, ...],
    protected_first: bool,
) -> list[int]:
    """Positions of the columns in the order in which they are decoded."""
    if isinstance(order, tuple):
        if sorted(order) != sorted(schema.names):
            odd = [name for name in order if name not in schema.names]
            hint = nearest(odd[0], schema.names) if odd else "name each column once"
            raise InvalidInput(
                f"the order names {len(order)} columns and the schema has {len(schema)}; {hint}"
            )
        places = [schema.position(name) for name in order]
    elif order == "fewest-first":
        places = sorted(range(len(schema)), key=lambda j: len(bins[j]))
    elif order == "given":
        places = list(range(len(schema)))
    else:
        raise InvalidInput(
            f"order is {order!r}; use 'given', 'fewest-first', or all names in order"
        )
    if protected_first:
        protected = set(schema.protected_index.tolist())
        places.sort(key=lambda j: j not in protected)
    return places

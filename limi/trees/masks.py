"""Sums of trees for many rows at once, without walking down any tree.

Each leaf of a tree is one bit of a mask (of several, where a tree has more than 31). The value of
a column rules leaves out: where a node sends it left, all leaves to the right of that node, and the
other way round. What the values of all columns leave of a tree is one bit, the leaf that the row
ends in. The masks that one value leaves of all trees stand in one line, so that a row takes one
line of each column (of each group of columns, because those with few values are joined) and keeps
the bits that they share.

Columns that are set to given values (the protected ones) come last: what the others leave is
worked out once for all these values.

Values of leaves are rounded to whole numbers of a small unit, so that sums are exact: no order of
adding, no number of threads and no processor changes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.table.schema import Schema
from limi.trees.ensemble import Ensemble
from limi.types import Rows

__all__ = ["MOST_LEAVES", "MaskedTrees", "Planted"]

MOST_LEAVES = 1023
"""Of a tree: as many powers of two as float64 tells apart."""

_PER_MASK = 31  # leaves; the last bit is the sign
_MOST_LINES = 1024  # of a group: more would not stay close to the processor
_LOOKED_UP = 4096  # values of a column at most that are looked up; of others, bins are searched for
_BLOCK = 256  # rows whose masks are worked out together
_PART = 16 * _BLOCK  # rows that a thread takes at once
_BITS = 40  # of a sum of leaves; float64 adds such numbers without an error

Ints = NDArray[np.intp]
Masks = NDArray[np.int32]
Sums = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Planted:
    """Trees over columns of a table."""

    ensemble: Ensemble
    columns: Ints  # of the table, for each feature of the trees
    numbers: Callable[[Rows], NDArray[Any]]  # whole rows as the features that the trees compare


@dataclass(frozen=True, eq=False)
class MaskedTrees:
    """Several ensembles over the columns of one table, ready to be added up."""

    groups: tuple[_Group, ...]
    last: tuple[_Group, ...]  # of the columns that are set to given values
    ensembles: tuple[_Leaves, ...]

    @staticmethod
    def plant(schema: Schema, planted: Sequence[Planted], last: NDArray[Any]) -> MaskedTrees:
        """Work out which leaves each value of each column leaves; `last` are the columns that
        `add_up` sets to values."""
        bins = [_Bins.of(schema, column, planted) for column in range(len(schema))]
        values = np.column_stack([one.values for one in _lengthen(bins)])
        left = [_leave(one, values, [each.size for each in bins]) for one in planted]
        lines = [np.concatenate(parts, axis=1) for parts in zip(*left, strict=True)]
        every = [(one, each) for one, each in zip(bins, lines, strict=True) if one.size > 1]
        apart = _pack([one for one in every if one[0].column in last], lines[0][:1] | -1)
        moved = np.logical_or.reduce([(g.lines != g.lines[0]).any(axis=0) for g in apart])
        ends = np.cumsum([parts[0].shape[1] for parts in left])
        return MaskedTrees(
            _pack([one for one in every if one[0].column not in last], lines[0][:1] | -1),
            apart,
            tuple(
                _Leaves.of(one.ensemble, int(end), moved)
                for one, end in zip(planted, ends, strict=True)
            ),
        )

    def add_up(self, rows: Rows, settings: Rows, n_threads: int = 1) -> list[Sums]:
        """For each ensemble (rows, settings): its sums for rows whose last columns hold each of
        these settings; one column where these do not matter to it.

        `settings` are whole rows, of which only the last columns are read.
        """
        sums = [np.empty((len(rows), len(settings) if e.moves else 1)) for e in self.ensembles]
        kept = _keep(self.last, _place(self.last, settings))

        def work(first: int) -> None:
            part = slice(first, first + _PART)
            places = _place(self.groups, rows[part])
            into = [total[part] for total in sums]
            for start in range(0, len(places[0]), _BLOCK):
                block = slice(start, start + _BLOCK)
                masks = _keep(self.groups, [place[block] for place in places])
                for ensemble, total in zip(self.ensembles, into, strict=True):
                    ensemble.add_up(masks, kept, total[block])

        parts = range(0, len(rows), _PART)
        if n_threads == 1 or len(parts) == 1:
            for first in parts:
                work(first)
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(work, parts))
        return sums


@dataclass(frozen=True, eq=False)
class _Bins:
    """Values of one column; those that no tree tells apart count as one."""

    column: int
    values: NDArray[np.float64]  # one of each bin; the last is NaN where cells may be missing
    edges: NDArray[np.float64]  # a value lies in the bin of the first edge that it does not exceed
    missing: bool
    low: float = 0.0
    high: float = 0.0
    step: float = 0.0
    looked_up: Ints | None = None  # the bin of each value from low to high

    @property
    def size(self) -> int:
        return len(self.values)

    @staticmethod
    def of(schema: Schema, column: int, planted: Sequence[Planted]) -> _Bins:
        known = schema.columns[column]
        asked = [
            (trees, np.isin(trees.feature, np.flatnonzero(one.columns == column)))
            for one in planted
            for trees in [one.ensemble]
        ]
        if not any(nodes.any() for _, nodes in asked):
            return _Bins(column, np.zeros(1), np.empty(0), missing=False)
        if any((trees.set_of[nodes] >= 0).any() for trees, nodes in asked):
            edges, beyond = np.arange(known.size - 1.0), known.size - 1.0
        else:
            edges = np.unique(np.concatenate([trees.threshold[nodes] for trees, nodes in asked]))
            beyond = np.nextafter(edges[-1], np.inf)
        values = np.concatenate([edges, [beyond], [np.nan] * known.missing])
        if not 0 < known.size <= _LOOKED_UP:
            return _Bins(column, values, edges, known.missing)
        grid = known.codes_at(
            np.arange(float(known.size))
        )  # as cells are: an edge may be one of them
        looked_up = np.searchsorted(edges, grid)
        low, step = known.first, known.spacing
        return _Bins(column, values, edges, known.missing, low, grid[-1], step, looked_up)

    def place(self, cells: NDArray[np.float64]) -> Ints:
        """The bin of each cell."""
        if self.looked_up is None:
            found = np.searchsorted(self.edges, cells)
        else:
            inside = np.fmin(np.fmax(cells, self.low), self.high)  # a missing cell too
            found = self.looked_up[np.rint((inside - self.low) / self.step).astype(np.intp)]
        if self.missing:
            found[np.isnan(cells)] = self.size - 1
        return found


def _lengthen(bins: list[_Bins]) -> list[_Bins]:
    """Values repeated until there are as many of each column."""
    most = max(one.size for one in bins)
    return [replace(one, values=np.resize(one.values, most)) for one in bins]


@dataclass(frozen=True, eq=False)
class _Group:
    """Columns whose bins are looked up together, and the masks that they leave."""

    bins: tuple[_Bins, ...]
    lines: Masks  # (combinations of bins, masks of all trees)


def _pack(columns: list[tuple[_Bins, Masks]], whole: Masks) -> tuple[_Group, ...]:
    """Columns joined to as few groups as their lines allow, those with most bins first; without
    columns a group of one line, `whole`, that rules nothing out."""
    groups: list[_Group] = []
    for bins, lines in sorted(columns, key=lambda one: -one[0].size):
        fits = [i for i, one in enumerate(groups) if len(one.lines) * bins.size <= _MOST_LINES]
        if fits:
            old = groups[fits[0]]
            joined = (old.lines[:, None] & lines).reshape(-1, lines.shape[1])
            groups[fits[0]] = _Group((*old.bins, bins), joined)
        else:
            groups.append(_Group((bins,), lines))
    return tuple(groups) or (_Group((), whole),)


def _place(groups: tuple[_Group, ...], rows: Rows) -> list[Ints]:
    """The line of each row in each group."""
    places = []
    for group in groups:
        place = np.zeros(len(rows), dtype=np.intp)
        for bins in group.bins:
            place *= bins.size
            place += bins.place(rows[:, bins.column])
        places.append(place)
    return places


def _keep(groups: tuple[_Group, ...], places: list[Ints]) -> Masks:
    """(rows, masks): the leaves that all lines at these places leave."""
    masks: Masks = groups[0].lines.take(places[0], axis=0)
    other = np.empty_like(masks)
    for group, place in zip(groups[1:], places[1:], strict=True):
        # "clip" writes where it is told to; other modes go through a copy.
        group.lines.take(place, axis=0, out=other, mode="clip")
        masks &= other
    return masks


@dataclass(frozen=True, eq=False)
class _Leaves:
    """The values of one ensemble's leaves."""

    masks: slice  # its own among those of all ensembles: the first of each tree, the second, ...
    n_trees: int
    moves: bool  # do its sums depend on the last columns?
    first: NDArray[Any]  # (trees,): the place of each tree's first leaf, less the exponent of 1
    values: NDArray[np.float64]  # by tree and leaf, whole numbers of `unit`
    unit: float
    base: float

    @staticmethod
    def of(ensemble: Ensemble, end: int, moved: NDArray[np.bool_]) -> _Leaves:
        number, n_masks = _number_leaves(ensemble)
        n_leaves, leaf = n_masks * _PER_MASK, ensemble.is_leaf
        values = np.zeros((ensemble.n_trees, n_leaves))
        values[ensemble.tree_of[leaf], number[leaf]] = ensemble.value[leaf]
        # A power of two, in which the largest sum still fits.
        unit = 2.0 ** (math.frexp(math.fsum(np.abs(values).max(axis=1)))[1] - _BITS)
        whole = np.rint(values / unit).ravel()
        kind = np.finfo(np.float32 if n_leaves < 128 else np.float64)
        first = n_leaves * np.arange(ensemble.n_trees) - (kind.maxexp - 1)
        masks = slice(end - n_masks * ensemble.n_trees, end)
        return _Leaves(
            masks,
            ensemble.n_trees,
            bool(moved[masks].any()),
            first.astype(np.int32 if kind.bits == 32 else np.int64),
            whole,
            unit,
            float(ensemble.base),
        )

    def add_up(self, masks: Masks, kept: Masks, total: Sums) -> None:
        """Fill in the sums of rows (rows, settings) from the masks that their columns leave."""
        mine = masks[:, self.masks]
        kind = np.finfo(np.float32 if self.first.itemsize == 4 else np.float64)
        ones = np.ones(self.n_trees)
        for i in range(total.shape[1]):
            bits = (mine & kept[i, self.masks]).astype(kind.dtype)
            # One bit of a tree is left, in one of its masks: the exponent tells which.
            which = bits[:, : self.n_trees].copy()
            for k in range(1, bits.shape[1] // self.n_trees):
                part = bits[:, k * self.n_trees : (k + 1) * self.n_trees]
                part *= kind.dtype.type(2.0 ** (k * _PER_MASK))
                which += part
            place = which.view(self.first.dtype)
            place >>= kind.nmant
            place += self.first
            # No place lies outside; "clip" skips the test.
            sums = self.values.take(place, mode="clip") @ ones  # whole numbers, so exact
            total[:, i] = sums * self.unit + self.base


def _number_leaves(trees: Ensemble) -> tuple[Ints, int]:
    """(nodes,): the number of each leaf within its tree, 0 elsewhere; and masks for each tree."""
    before: Ints = np.cumsum(trees.is_leaf) - trees.is_leaf  # trees stand one behind another
    number: Ints = np.where(trees.is_leaf, before - before[trees.roots][trees.tree_of], 0)
    return number, int(number.max()) // _PER_MASK + 1


def _leave(planted: Planted, values: Rows, sizes: list[int]) -> list[Masks]:
    """For each column of the table (bins, masks): the leaves that each bin leaves."""
    trees = planted.ensemble
    number, n_masks = _number_leaves(trees)
    under = np.zeros((len(number), n_masks), dtype=np.int32)
    leaves = np.flatnonzero(trees.is_leaf)
    under[leaves, number[leaves] // _PER_MASK] = 1 << number[leaves] % _PER_MASK
    inner = np.flatnonzero(~trees.is_leaf)
    for _ in range(trees.depth):
        under[inner] = under[trees.left[inner]] | under[trees.right[inner]]
    codes = np.asarray(planted.numbers(values), dtype=np.float64)
    found = [np.tile(under[trees.roots], (size, 1, 1)) for size in sizes]  # bins, trees, masks
    for feature, column in enumerate(planted.columns):
        nodes = inner[trees.feature[inner] == feature]
        if not len(nodes):
            continue
        left = _goes_left(trees, nodes, codes[: sizes[column], feature])[:, :, None]
        lost = np.where(left, under[trees.right[nodes]][:, None], under[trees.left[nodes]][:, None])
        tree = trees.tree_of[nodes]
        first = np.flatnonzero(np.diff(tree, prepend=-1))
        gone = np.bitwise_or.reduceat(lost, first, axis=0)
        found[column][:, tree[first]] &= ~gone.swapaxes(0, 1)
    return [one.swapaxes(1, 2).reshape(len(one), -1) for one in found]


def _goes_left(trees: Ensemble, nodes: Ints, codes: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(nodes, codes): where each of these nodes, all of one feature, sends each code."""
    sets = [trees.sets[i] for i in trees.set_of[nodes] if i >= 0]
    known = codes[~np.isnan(codes)]
    inside = [0, *known, len(sets[0].left) - 1] if sets else []
    if (
        len(sets) < len(nodes)
        or len({len(one.left) for one in sets}) > 1
        or min(inside) < 0
        or max(inside) >= len(sets[0].left)
        or (known != np.rint(known)).any()
        or trees.hole[nodes].any()
    ):
        every = np.repeat(nodes, len(codes))
        return trees.goes_left(every, np.tile(codes, len(nodes))).reshape(len(nodes), -1)
    # Categories by number, as scikit-learn has them: looked up for all nodes at once.
    missing = np.isnan(codes)
    left = np.array([one.left for one in sets])[:, np.where(missing, 0, codes).astype(np.intp)]
    return np.where(missing, trees.missing_left[nodes][:, None], left)

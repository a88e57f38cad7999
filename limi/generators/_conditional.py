"""The distribution of one column given earlier ones: counts in the leaves of a tree.

A share in (0, 1) names a cell. Above `RARE` it is a share of the leaf; what lies below is a share
of the whole column, and of that again what lies below `RARE` a share of the column's domain. So
every cell that the schema allows has a share, and a probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.generators._bins import Bins, inside_interval
from limi.generators._walk import Codes, Walk
from limi.schema import Column
from limi.types import Index, Scores

__all__ = ["HIGHEST", "RARE", "Conditional", "counted", "from_part"]

RARE = 1e-6  # the share of u that leaves the leaf for the column, and the column for the domain
HIGHEST = 1.0 - 2.0**-40  # a share must stay below 1 even after it is scaled and rounded


@dataclass(frozen=True, eq=False)
class Conditional:
    """The distribution of one column in each leaf of its tree."""

    position: int  # in the schema
    bins: Bins
    walk: Walk
    pair_node: NDArray[np.int32]  # (p,) leaf and bin of each pair that occurs, ascending
    pair_bin: NDArray[np.int32]
    pair_count: NDArray[np.int32]  # training rows of it

    def value_at(
        self, shares: NDArray[np.float64], codes: Codes, column: Column
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Bin and cell at each share of the leaf that the codes fall into."""
        # A leaf's rows lie sorted by bin, so a share finds its bin by one multiplication.
        leaf = self.walk.leaf_of(codes)
        turns = (shares - RARE) * self._scale.take(leaf)
        slot = turns.astype(np.intp)
        slot += self._start.take(leaf)
        only_value = self.bins.only_value
        if only_value is not None:
            bins = self._slot_bin.take(slot)
            cells = only_value.take(bins)
        else:
            pair = self._slot_pair.take(slot)
            bins = self.pair_bin.take(pair)
            fraction = (turns - self._pair_first.take(pair)) / self.pair_count.take(pair)
            cells = self.bins.resolve(bins, np.clip(fraction, 0.0, HIGHEST))
        rare = shares < RARE
        if rare.any():
            bins = bins.astype(np.intp)
            bins[rare], cells[rare] = self._without_tree(shares[rare] / RARE, column)
        return bins, cells

    def _without_tree(
        self, shares: NDArray[np.float64], column: Column
    ) -> tuple[Index, NDArray[np.float64]]:
        turns = np.maximum(shares - RARE, 0.0) / (1 - RARE) * self._ends[-1]
        bins = np.searchsorted(self._ends, turns, side="right")
        np.minimum(bins, len(self.bins) - 1, out=bins)
        weights = self.bins.weights[bins]
        fraction = (turns - (self._ends[bins] - weights)) / weights
        cells = self.bins.resolve(bins, np.clip(fraction, 0.0, HIGHEST))
        domain = shares < RARE
        cells[domain] = _from_domain(shares[domain] / RARE, column)
        bins[domain] = self.bins.bin_of(cells[domain])
        return bins, cells

    def share_of(
        self,
        cells: NDArray[np.float64],
        codes: Codes,
        draws: NDArray[np.float64],
        column: Column,
    ) -> NDArray[np.float64]:
        """A share that `value_at` takes back to each cell; a draw chooses among those."""
        bins = self.bins.bin_of(cells)
        fraction = self.bins.locate(cells, bins, draws)
        leaf = self.walk.leaf_of(codes)
        pair, in_leaf = self._pair_of(leaf, bins)
        turns = self._pair_first[pair] + fraction * self.pair_count[pair]
        in_tree = RARE + turns / self._scale[leaf]
        seen = np.minimum(bins, len(self.bins) - 1)
        weights = self.bins.weights[seen]
        turns = self._ends[seen] - weights + fraction * weights
        in_column = RARE * (RARE + (1 - RARE) * turns / self._ends[-1])
        in_domain = RARE**2 * _to_domain(cells, draws, column)
        known = ~np.isnan(fraction)
        return np.select([known & in_leaf, known], [in_tree, in_column], in_domain)

    def log_prob(self, cells: NDArray[np.float64], codes: Codes, column: Column) -> Scores:
        """ln of each cell's probability in the leaf that the codes fall into."""
        bins = self.bins.bin_of(cells)
        log_share, dense = self.bins.log_share(cells, bins)
        leaf = self.walk.leaf_of(codes)
        pair, in_leaf = self._pair_of(leaf, bins)
        of_leaf = np.where(in_leaf, self.pair_count[pair], 0) / self._scale[leaf]
        of_column = self.bins.weights[np.minimum(bins, len(self.bins) - 1)] / self._ends[-1]
        weight = of_leaf + RARE * (1 - RARE) * of_column
        p = weight * np.exp(log_share)
        # Where cells have a mass, the uniform density over a real domain adds nothing.
        atom = np.isfinite(log_share) & ~dense & ~np.isnan(cells)
        domain = RARE**2 * _domain_share(cells, column)
        p += np.where(atom & (column.size == 0), 0.0, domain)
        log: Scores = np.log(p)
        return log

    def _pair_of(self, leaf: Index, bins: Index) -> tuple[Index, NDArray[np.bool_]]:
        wanted = leaf * (len(self.bins) + 1) + bins
        pair = np.minimum(np.searchsorted(self._pair_key, wanted), len(self._pair_key) - 1)
        return pair, self._pair_key[pair] == wanted

    def state(self) -> dict[str, NDArray[Any]]:
        return {
            "column": np.array([self.position, self.bins.n_missing, self.bins.real]),
            "values": self.bins.values,
            "counts": self.bins.counts,
            "starts": self.bins.starts,
            "order": self.bins.order,
            "feature": self.walk.feature,
            "threshold": self.walk.threshold,
            "left": self.walk.left,
            "right": self.walk.right,
            "pair_node": self.pair_node,
            "pair_bin": self.pair_bin,
            "pair_count": self.pair_count,
        }

    # -- tables for decoding ------------------------------------------------------------

    @cached_property
    def _node_count(self) -> NDArray[np.float64]:
        counts = np.bincount(self.pair_node, self.pair_count, minlength=len(self.walk))
        return counts.astype(np.float64)

    @cached_property
    def _scale(self) -> NDArray[np.float64]:
        scale: NDArray[np.float64] = self._node_count / (1 - RARE)
        return scale

    @cached_property
    def _start(self) -> Index:
        return (np.cumsum(self._node_count) - self._node_count).astype(np.intp)

    @cached_property
    def _slot_pair(self) -> NDArray[np.int32]:
        return np.repeat(np.arange(len(self.pair_bin), dtype=np.int32), self.pair_count)

    @cached_property
    def _slot_bin(self) -> NDArray[Any]:
        small = np.uint8 if len(self.bins) < 256 else np.int32
        return np.repeat(self.pair_bin.astype(small), self.pair_count)

    @cached_property
    def _pair_first(self) -> NDArray[np.float64]:
        before = np.cumsum(self.pair_count) - self.pair_count
        return (before - self._start[self.pair_node]).astype(np.float64)

    @cached_property
    def _pair_key(self) -> Index:
        return self.pair_node.astype(np.intp) * (len(self.bins) + 1) + self.pair_bin

    @cached_property
    def _ends(self) -> NDArray[np.float64]:
        return np.cumsum(self.bins.weights).astype(np.float64)


def counted(position: int, bins: Bins, walk: Walk, leaf: Index, codes: Index) -> Conditional:
    """The conditional of a column from the leaf and the bin of every training row."""
    n_codes = bins.n_known + 1
    key, count = np.unique(leaf * n_codes + codes, return_counts=True)
    pairs = (key // n_codes, key % n_codes, count)
    return Conditional(position, bins, walk, *(pair.astype(np.int32) for pair in pairs))


def from_part(part: dict[str, NDArray[Any]], place: int, n_codes: Index) -> Conditional:
    """The conditional that gave this state and stands in this place among columns of `n_codes`."""
    position, n_missing, real = (int(fact) for fact in part["column"])
    bins = Bins(
        part["values"], part["counts"], part["starts"], part["order"], n_missing, bool(real)
    )
    walk = Walk(part["feature"], part["threshold"], part["left"], part["right"], n_codes)
    read = Conditional(
        position, bins, walk, part["pair_node"], part["pair_bin"], part["pair_count"]
    )
    _check_part(read, place)
    return read


def _check_part(read: Conditional, place: int) -> None:
    """ValueError where a file's numbers would lead a walk or a lookup out of its arrays."""
    walk, bins = read.walk, read.bins
    inner = walk.left >= 0
    here = np.arange(len(walk))
    behind = (walk.left > here) & (walk.right > here)
    inside = (walk.left < len(walk)) & (walk.right < len(walk))
    leaves = np.flatnonzero(~inner)
    fits = (
        len(walk) == len(walk.feature) == len(walk.threshold) == len(walk.right) > 0
        and bool((behind & inside)[inner].all())
        and bool(((walk.feature >= 0) & (walk.feature < place))[inner].all())
        and np.array_equal(np.unique(read.pair_node), leaves)
        and len(read.pair_node) == len(read.pair_bin) == len(read.pair_count)
        and bool((read.pair_count > 0).all())
        and 0 <= int(read.pair_bin.min()) <= int(read.pair_bin.max()) < len(bins)
        and len(bins.values) == len(bins.counts)
        and np.array_equal(np.sort(bins.order), np.arange(len(bins.starts) - 1))
        and bins.starts[0] == 0
        and bins.starts[-1] == len(bins.values)
        and bool((np.diff(bins.starts) > 0).all())
    )
    if not fits:
        raise ValueError(f"the tree of column {read.position} does not hold together")


# -- the domain of a column: every code alike, a real interval as one ---------------------


def _n_domain(column: Column) -> int:
    return (column.size or 1) + column.missing


def _from_domain(shares: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
    turns = np.clip(shares, 0.0, HIGHEST) * _n_domain(column)
    code = np.floor(turns)
    if column.size == 0:
        cells = column.low + (turns - code) * (column.high - column.low)
    elif column.kind != "numerical":
        cells = code.copy()
    else:
        cells = np.round(column.low + code * column.step, column.decimals)
    cells[code == (column.size or 1)] = np.nan
    return cells


def _to_domain(
    cells: NDArray[np.float64], draws: NDArray[np.float64], column: Column
) -> NDArray[np.float64]:
    inside = inside_interval(draws)
    missing = np.isnan(cells)
    if column.size == 0:
        width = column.high - column.low
        turns = np.clip((cells - column.low) / width, 1e-9, 1 - 1e-9) if width else inside
    else:
        low, step = (column.low, column.step) if column.kind == "numerical" else (0.0, 1.0)
        turns = np.rint((cells - low) / step) + inside
    turns = np.where(missing, (column.size or 1) + inside, turns)
    return turns / _n_domain(column)


def _domain_share(cells: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
    """Probability of each code among all of the domain; a density for real numbers."""
    width = column.high - column.low if column.size == 0 else 1.0
    return np.where(np.isnan(cells), 1.0, 1.0 / (width or 1.0)) / _n_domain(column)

"""The distribution of one column given earlier ones: counts in the leaves of a tree.

A share in (0, 1) names a cell. Above `RARE` it is a share of the leaf; what lies below is a share
of the whole column, and of that again what lies below `RARE` a share of the column's domain. So
every cell that the schema allows has a share, and a probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.generators import _domain
from limi.generators._bins import Bins, pack_bins, take_bins
from limi.generators._decision_diagram import Codes, DiagramWalk
from limi.generators._domain import HIGHEST, RARE
from limi.generators._state import MOST_ROWS, Arrays, pack, require
from limi.table.schema import Column, Schema
from limi.types import Index, Scores

__all__ = ["Conditional", "counted", "from_arrays", "to_arrays"]


@dataclass(frozen=True, eq=False)
class Conditional:
    """The distribution of one column in each leaf of its tree."""

    position: int  # in the schema
    bins: Bins
    walk: DiagramWalk
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
        cells[domain] = _domain.cell_at(shares[domain] / RARE, column)
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
        in_domain = RARE**2 * _domain.share_of(cells, draws, column)
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
        domain = RARE**2 * _domain.probability_of(cells, column)
        p += np.where(atom & (column.size == 0), 0.0, domain)
        log: Scores = np.log(p)
        return log

    def _pair_of(self, leaf: Index, bins: Index) -> tuple[Index, NDArray[np.bool_]]:
        wanted = leaf * (len(self.bins) + 1) + bins
        pair = np.minimum(np.searchsorted(self._pair_key, wanted), len(self._pair_key) - 1)
        return pair, self._pair_key[pair] == wanted

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


def counted(position: int, bins: Bins, walk: DiagramWalk, leaf: Index, codes: Index) -> Conditional:
    """The conditional of a column from the leaf and the bin of every training row."""
    n_codes = bins.n_known + 1
    key, count = np.unique(leaf * n_codes + codes, return_counts=True)
    pairs = (key // n_codes, key % n_codes, count)
    return Conditional(position, bins, walk, *(pair.astype(np.int32) for pair in pairs))


def to_arrays(conditionals: Sequence[Conditional]) -> dict[str, NDArray[Any]]:
    """Plain arrays of the conditionals of all columns, one after the other."""
    facts = [np.array([c.position, c.bins.n_missing, c.bins.real]) for c in conditionals]
    arrays = pack("column", facts) | pack_bins("", [c.bins for c in conditionals])
    for name in ("feature", "threshold", "left", "right"):
        arrays |= pack(name, [getattr(c.walk, name) for c in conditionals])
    for name in ("pair_node", "pair_bin", "pair_count"):
        arrays |= pack(name, [getattr(c, name) for c in conditionals])
    return arrays


def from_arrays(arrays: Arrays, schema: Schema) -> tuple[Conditional, ...]:
    """The conditionals that gave these arrays, in the order of decoding."""
    d = len(schema)
    facts = arrays.whole_pieces("column", d)
    require(all(len(fact) == 3 for fact in facts), "its columns do not have the expected facts")
    positions = [int(fact[0]) for fact in facts]
    require(sorted(positions) == list(range(d)), "its columns are not those of its schema")
    of_bins = take_bins(arrays, "", d)
    feature, threshold, left, right = (
        arrays.whole_pieces(name, d, np.int32) for name in ("feature", "threshold", "left", "right")
    )
    pairs = [arrays.whole_pieces(f"pair_{n}", d, np.int32) for n in ("node", "bin", "count")]
    n_codes = np.array([len(order) + 1 for *_, order in of_bins])
    made = []
    for i, (position, (_, n_missing, real)) in enumerate(zip(positions, facts, strict=True)):
        bins = Bins(*of_bins[i], n_missing=int(n_missing), real=bool(real))
        bins.check(schema.columns[position])
        walk = DiagramWalk(feature[i], threshold[i], left[i], right[i], n_codes)
        made.append(Conditional(position, bins, walk, *(part[i] for part in pairs)))
        _check(made[-1], i)
    return tuple(made)


def _check(read: Conditional, place: int) -> None:
    """ValueError where a file's numbers would lead a walk or a lookup out of its arrays."""
    walk, bins = read.walk, read.bins
    n, which = len(walk), f"the tree of column {read.position}"
    alike = n == len(walk.feature) == len(walk.threshold) == len(walk.right)
    require(alike and n > 0, f"{which} lacks nodes")
    inner = np.flatnonzero(walk.left >= 0)
    left, right, feature = walk.left[inner], walk.right[inner], walk.feature[inner]
    # Children stand behind their parent, and every node but the root has one.
    require(bool((np.minimum(left, right) > inner).all()), f"{which} leads backwards")
    children = np.sort(np.concatenate([left, right]))
    require(np.array_equal(children, np.arange(1, n)), f"{which} is none")
    earlier = (feature >= 0) & (feature < place)
    require(bool(earlier.all()), f"{which} uses a column that comes later")
    threshold = walk.threshold[inner]
    inside = (threshold >= 0) & (threshold < walk.n_codes[feature])
    require(bool(inside.all()), f"{which} compares with values that do not exist")
    lengths = {len(read.pair_node), len(read.pair_bin), len(read.pair_count)}
    require(len(lengths) == 1 and len(read.pair_node) > 0, f"the leaves of {which} lack counts")
    leaves = np.array_equal(np.unique(read.pair_node), np.flatnonzero(walk.left < 0))
    require(leaves, f"{which} has leaves without rows")
    known = (read.pair_bin >= 0) & (read.pair_bin < len(bins))
    require(bool(known.all()), f"{which} counts values that do not exist")
    rising = np.diff(read.pair_node.astype(np.int64) * (len(bins) + 1) + read.pair_bin) > 0
    require(bool(rising.all()), f"the counts of {which} are not sorted")
    rows = int(read.pair_count.astype(np.int64).sum())
    require(bool((read.pair_count > 0).all()) and rows <= MOST_ROWS, f"{which} counts wrong")

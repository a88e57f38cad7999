"""Which leaf of a binary tree each row falls into, by table lookups instead of comparisons.

A row that walks down a tree waits at every node for a comparison that no processor can guess.
The same tree is also a decision diagram: take the columns one after the other; what is known of
the leaf after some of them is the set of leaves still possible, and few such sets ever occur. A
table says for each set and each code of the next column which set remains. So a column costs one
addition and one lookup, for all rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.table.rows import group
from limi.types import Index

__all__ = ["Codes", "DiagramWalk"]

Codes: TypeAlias = NDArray[np.intp]
"""(n, d), columns side by side in memory: small whole numbers from 0."""

_MOST_ENTRIES = 1 << 17  # of a table: 1 MB, about what a core's cache holds
_MOST_TRIED = 24  # columns of a tree among which the best next one is looked for
_SOME_SETS = 128  # sets on which it is tried
_MIXERS = np.random.default_rng(0).integers(1 << 63, size=1 << 10, dtype=np.uint64) * 2 + 1


@dataclass(frozen=True, eq=False)
class DiagramWalk:
    """Nodes of a tree as arrays; a row goes left where its code is at most the threshold.

    A leaf has left = -1. Node 0 is the root, and children stand behind their parent.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    n_codes: Index  # (d,): the codes of a column are smaller

    def __len__(self) -> int:
        return len(self.left)

    def prepare(self) -> None:
        """Work out the tables of lookups, unless they are known."""
        _ = self._diagram

    def leaf_of(self, codes: Codes) -> Index:
        """(n,): the node that each row ends in."""
        if self._diagram is None:
            return self.step_by_step(codes)
        columns, table = self._diagram
        here = np.zeros(len(codes), dtype=np.intp)
        for column in columns:
            here += codes[:, column]
            here = table.take(here)
        return here

    def step_by_step(self, codes: Codes) -> Index:
        """The same by going down: all rows one level at a time."""
        here = np.zeros(len(codes), dtype=np.intp)
        everyone = np.arange(len(codes))
        while True:
            inner = self.left[here] >= 0
            if not inner.any():
                return here
            goes_right = codes[everyone, self.feature[here]] > self.threshold[here]
            child = np.where(goes_right, self.right[here], self.left[here])
            here = np.where(inner, child, here)

    @cached_property
    def _diagram(self) -> tuple[list[int], Index] | None:
        """Columns in the order of lookup, and the table; None where it would be too large.

        An entry is where the sets of the next column begin, and at the last column a node.
        """
        leaves, columns, low, high = self._boxes()
        cuts, possible = {}, {}
        for i, column in enumerate(columns):
            of_column = (self.feature == column) & (self.left >= 0)
            cuts[column] = np.unique(self.threshold[of_column])
            # A cell of codes between two cuts stays together; its last code stands for it.
            cells = np.append(cuts[column], cuts[column][-1] + 1)[:, None]
            possible[column] = _pack((low[:, i] < cells) & (cells <= high[:, i]))
        sets = _pack(np.ones((1, len(leaves)), dtype=bool))
        order: list[int] = []
        levels: list[Index] = []
        n_entries = 0
        while len(order) < len(columns):
            column = _next(sets, {c: p for c, p in possible.items() if c not in order})
            n_entries += len(sets) * int(self.n_codes[column])
            if n_entries > _MOST_ENTRIES:
                return None
            sets, remaining = _cut(sets, possible[column])
            cell = np.searchsorted(cuts[column], np.arange(self.n_codes[column]))
            levels.append(remaining[:, cell])
            order.append(column)
        # Every set is a single leaf now; earlier entries point behind their own level.
        bits = np.unpackbits(sets.view(np.uint8), axis=1, bitorder="little")
        table = [leaves[bits.argmax(axis=1)][levels[-1]]] if levels else []
        start = n_entries
        for level, column in zip(levels[-2::-1], order[:0:-1], strict=True):
            start -= table[0].size
            table.insert(0, start + level * int(self.n_codes[column]))
        flat = [level.ravel() for level in table]
        return order, np.concatenate(flat) if flat else np.zeros(1, dtype=np.intp)

    def _boxes(self) -> tuple[Index, list[int], NDArray[np.int64], NDArray[np.int64]]:
        """Leaves, columns that are cut, and for each two the codes above low, up to high."""
        inner = np.flatnonzero(self.left >= 0)
        columns = np.unique(self.feature[inner])
        place = np.searchsorted(columns, self.feature)
        low = np.full((len(self), len(columns)), -1)
        high = np.full((len(self), len(columns)), np.iinfo(np.int32).max)
        for node in inner:  # children stand behind their parent
            left, right, at = self.left[node], self.right[node], place[node]
            low[[left, right]], high[[left, right]] = low[node], high[node]
            high[left, at] = min(high[left, at], self.threshold[node])
            low[right, at] = max(low[right, at], self.threshold[node])
        leaves = np.flatnonzero(self.left < 0)
        return leaves, columns.tolist(), low[leaves], high[leaves]


def _pack(possible: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """(n, leaves) as bits of 64-bit words."""
    width = -(-possible.shape[1] // 64) * 64
    wide = np.zeros((len(possible), width), dtype=bool)
    wide[:, : possible.shape[1]] = possible
    return np.packbits(wide, axis=1, bitorder="little").view(np.uint64)


def _next(sets: NDArray[np.uint64], rest: dict[int, NDArray[np.uint64]]) -> int:
    """The column after which fewest sets occur, tried on some; or that with the fewest cells."""
    if len(rest) > _MOST_TRIED or sets.shape[1] > len(_MIXERS):
        return min(rest, key=lambda column: len(rest[column]))
    some = sets[:_SOME_SETS]
    return min(rest, key=lambda column: _count(some, rest[column]))


def _count(sets: NDArray[np.uint64], possible: NDArray[np.uint64]) -> int:
    """How many distinct sets remain. Two that are mixed into one number would be counted as one,
    which could change the order of the columns and never a leaf."""
    remain = (sets[:, None, :] & possible[None]).reshape(-1, sets.shape[1])
    if sets.shape[1] > 1:  # the upper bits reach few others by a product, so they go down first
        remain = (remain ^ (remain >> np.uint64(32))) @ _MIXERS[: sets.shape[1], None]
    mixed = remain[:, 0]
    mixed.sort()
    return 1 + int(np.count_nonzero(mixed[1:] != mixed[:-1]))


def _cut(
    sets: NDArray[np.uint64], possible: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], Index]:
    """The distinct sets that remain, and (sets, cells): which of them remains of each."""
    remain = (sets[:, None, :] & possible[None]).reshape(-1, sets.shape[1])
    first, which = group(remain)
    return remain[first], which.reshape(len(sets), len(possible))

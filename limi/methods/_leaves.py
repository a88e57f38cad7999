"""Leaves of a tree as boxes, and the pairs of them that one person can fall into.

Two rows that differ in protected columns alone reach two leaves whose boxes overlap in all other
columns. Such leaves part at a test of a protected column: anywhere else they would differ in a
column that both rows share. So the search starts there and goes down both sides at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.methods._regions import highest_below, lowest_above
from limi.methods._surrogate import Tree
from limi.table.steps import Ladder
from limi.types import Index, Mask, Rows

__all__ = ["Boxes", "Pairs", "feasible_pairs"]

MOST_PAIRS = 1 << 17  # node pairs looked at together; beyond, a random part of them goes on


@dataclass(frozen=True)
class Boxes:
    """The box of every node of a tree, in positions, bounds included."""

    low: NDArray[np.float64]  # (nodes, d)
    high: NDArray[np.float64]

    @staticmethod
    def of(ladder: Ladder, tree: Tree) -> Boxes:
        """Boxes from the root down."""
        low = np.zeros((len(tree.column), len(ladder.low)))
        high = np.tile(ladder.last, (len(tree.column), 1))
        nodes = np.flatnonzero(tree.column[:1] >= 0)
        while len(nodes):
            column, threshold = tree.column[nodes], tree.threshold[nodes]
            left, right = tree.left[nodes], tree.right[nodes]
            for child in (left, right):
                low[child], high[child] = low[nodes], high[nodes]
            ceiling = highest_below(ladder, column, threshold)
            floor = lowest_above(ladder, column, threshold)
            high[left, column] = np.minimum(high[left, column], ceiling)
            low[right, column] = np.maximum(low[right, column], floor)
            nodes = np.concatenate([left, right])
            nodes = nodes[tree.column[nodes] >= 0]
        return Boxes(low, high)


@dataclass(frozen=True)
class Pairs:
    """Leaves, each favorable one with an unfavorable one whose box overlaps in the free columns."""

    boxes: Boxes
    unfavorable: Index  # (m,) nodes
    favorable: Index

    def __len__(self) -> int:
        return len(self.favorable)

    def low(self, chosen: Index | slice = slice(None)) -> NDArray[np.float64]:
        """Lowest positions of what the two boxes share; of no meaning in protected columns."""
        low = self.boxes.low
        return np.maximum(low[self.unfavorable[chosen]], low[self.favorable[chosen]])

    def high(self, chosen: Index | slice = slice(None)) -> NDArray[np.float64]:
        """Highest positions."""
        high = self.boxes.high
        return np.minimum(high[self.unfavorable[chosen]], high[self.favorable[chosen]])

    def sizes(self, ladder: Ladder) -> NDArray[np.float64]:
        """How many rows the shared boxes hold, relative to the largest; real columns by length."""
        free = ladder.schema.free_mask
        width = (self.high() - self.low() + ladder.whole)[:, free]
        logs = np.log(np.maximum(width, 1e-9)).sum(axis=1)
        return np.asarray(np.exp(logs - logs.max()) if len(logs) else logs)

    def points(self, ladder: Ladder, chosen: Index, draws: NDArray[np.float64]) -> Rows:
        """A row of each chosen pair's shared box, by one draw a column."""
        low, high = self.low(chosen), self.high(chosen)
        width = np.maximum(high - low, 0.0)
        steps = np.where(ladder.whole, np.floor(draws * (width + 1)), draws * width)
        return ladder.descend(low + steps)


def feasible_pairs(
    ladder: Ladder, tree: Tree, inhabited: Mask, boxes: Boxes, rng: np.random.Generator
) -> Pairs:
    """All pairs of leaves that share a person, in the order of their nodes.

    `inhabited` says which nodes hold a protected combination that is tried.
    """
    protected = np.zeros(len(ladder.low), dtype=bool)
    protected[ladder.schema.protected_index] = True
    splits = np.flatnonzero((tree.column >= 0) & protected[tree.column])
    one, other = tree.left[splits], tree.right[splits]
    done: list[tuple[Index, Index]] = []
    while True:
        kept = inhabited[one] & inhabited[other] & _overlap(ladder, boxes, one, other)
        one, other = one[kept], other[kept]
        at_leaves = (tree.column[one] < 0) & (tree.column[other] < 0)
        differ = tree.favorable[one] != tree.favorable[other]
        done.append((one[at_leaves & differ], other[at_leaves & differ]))
        one, other = one[~at_leaves], other[~at_leaves]
        if not len(one):
            break
        # The side with more training rows has more leaves to tell apart.
        first = (tree.column[other] < 0) | (
            (tree.column[one] >= 0) & (tree.n_rows[one] >= tree.n_rows[other])
        )
        split, still = np.where(first, one, other), np.where(first, other, one)
        one = np.concatenate([tree.left[split], tree.right[split]])
        other = np.concatenate([still, still])
        if len(one) > MOST_PAIRS:
            part = np.sort(rng.permutation(len(one))[:MOST_PAIRS])
            one, other = one[part], other[part]
    one = np.concatenate([pair[0] for pair in done])
    other = np.concatenate([pair[1] for pair in done])
    favorable = np.where(tree.favorable[one], one, other)
    unfavorable = np.where(tree.favorable[one], other, one)
    order = np.lexsort((favorable, unfavorable))
    return Pairs(boxes, unfavorable[order], favorable[order])


def _overlap(ladder: Ladder, boxes: Boxes, one: Index, other: Index) -> Mask:
    free = ladder.schema.free_index
    low = np.maximum(boxes.low[np.ix_(one, free)], boxes.low[np.ix_(other, free)])
    high = np.minimum(boxes.high[np.ix_(one, free)], boxes.high[np.ix_(other, free)])
    return np.asarray((low <= high).all(axis=1))

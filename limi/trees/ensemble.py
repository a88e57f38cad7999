"""An ensemble of decision trees as plain arrays, whichever library it was trained with.

All nodes of all trees stand in one row of arrays. A node asks one number of a row, which goes left
where it is at most the threshold (below it, where the node is `strict`), or where it is one of a
set of categories. Missing numbers go where the node says. The values of the leaves that a row ends
in are added to `base`; above 0 the decision is favorable, whichever class that is for the library.

Rounding
A library adds its leaves in float32 or float64, in an order of its own. Whatever the order, a sum
of n terms is off by at most g(n) = n u / (1 - n u) times the sum of the terms' sizes, where u is
half the distance from 1 to the next number (Higham, Accuracy and Stability, 2002, section 4.2).
`slack` is that bound for the largest leaf of every tree, with a few more operations for the scale,
the mean or the starting value of the library and for weighted differences of ours, plus the same
bound in float64 for sums of our own.
(The starting value may be the logarithm of odds, which is off by a few u where it is near 0; so 1
is added to the sizes.)
What is proven with `slack` to spare holds for the library's own sum, and what lies nearer to the
edge is proven by nothing but the library's own answer.

From a sum to a score the library rounds again. A score counts as decided where it is more than 1e-6
from the edge, or from the user's threshold (`limi.decisions`), and a sigmoid in float32 is off by
less than a quarter of that, so a score that counts has a sum on the same side. Even votes are moved
off the edge by twice as much, so two scores are up to four times 1e-6 further apart than their sums
say (`widest`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from limi.decisions import EDGE
from limi.types import Scores

__all__ = ["DOUBLE", "SINGLE", "TINY", "Categories", "Ensemble", "Link", "Tree", "join_trees"]

Link = Literal["logistic", "share"]
"""How a sum becomes a score: the logistic function, or half a point of score for a sum of 1."""

SINGLE, DOUBLE = 2.0**-24, 2.0**-53
"""Half the distance from 1 to the next number of float32 and of float64."""

TINY = float(np.float32(1e-35))
"""What LightGBM takes for zero."""
_MORE_OPERATIONS = 8  # beside the sum: a scale, a mean, a starting value, two weights

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Categories:
    """A set of categories by number: which of them go left, and where any other number goes.

    Of numbers that are not whole most libraries cut what stands behind the point; with `exact` they
    are numbers of no category.
    """

    left: Bools
    otherwise: bool = False
    exact: bool = False

    def goes_left(self, values: Floats) -> Bools:
        """For whole or other numbers."""
        with np.errstate(invalid="ignore"):
            number = np.where(np.isfinite(values), values, -1.0).astype(np.int64)
        inside = (values > -1) & (number >= 0) & (number < len(self.left))
        if self.exact:
            inside &= number == values
        found: Bools = np.where(
            inside, np.append(self.left, False)[np.where(inside, number, -1)], self.otherwise
        )
        return found & ~np.isnan(values)


@dataclass(eq=False)
class Tree:
    """One tree, before it is joined with the others; places are those within the tree."""

    feature: Any  # -1 for a leaf
    threshold: Any
    left: Any
    right: Any
    value: Any  # of a leaf; others are ignored
    missing_left: Any
    strict: Any = False
    hole: Any = False  # do the numbers in the ensemble's hole count as missing?
    categories: dict[int, Categories] = field(default_factory=dict)  # by node


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees as arrays over all nodes. The sum of a row's leaves and `base` decides: above 0."""

    feature: Ints  # -1 for a leaf
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats  # of leaves; 0 elsewhere
    missing_left: Bools
    strict: Bools
    hole: Bools
    set_of: Ints  # of the node's categories in `sets`; -1 for a threshold
    sets: tuple[Categories, ...]
    roots: Ints
    tree_of: Ints
    base: float
    link: Link
    unit: float  # of the library's sums: SINGLE or DOUBLE
    kind: str  # what it is, for people
    hole_ends: tuple[float, float] = (-TINY, TINY)  # numbers that count as missing at some nodes

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return len(self.roots)

    @cached_property
    def is_leaf(self) -> Bools:
        """Which nodes are leaves."""
        return self.feature < 0

    @cached_property
    def depth(self) -> int:
        """Questions on the longest way from a root to a leaf."""
        deep, here = 0, self.roots
        while True:
            here = here[~self.is_leaf[here]]
            if not len(here):
                return deep
            here, deep = np.concatenate([self.left[here], self.right[here]]), deep + 1

    @cached_property
    def largest(self) -> float:
        """The sum of the sizes of each tree's largest leaf, and of the base."""
        sizes = np.zeros(self.n_trees)
        np.maximum.at(sizes, self.tree_of, np.where(self.is_leaf, np.abs(self.value), 0.0))
        return float(sizes.sum() + abs(self.base))

    @cached_property
    def slack(self) -> float:
        """How far a sum of the library, or of ours, may be from the true one, at most."""
        n = self.n_trees + 1 + _MORE_OPERATIONS
        return (_growth(n, self.unit) + _growth(n, DOUBLE)) * (self.largest + 1)

    def goes_left(self, nodes: Ints, values: Floats) -> Bools:
        """Where the node at each place sends the number at that place."""
        limit = self.threshold[nodes]
        below = values <= limit
        below &= ~(self.strict[nodes] & (values == limit))
        first, last = self.hole_ends
        gone = np.isnan(values) | (self.hole[nodes] & (values >= first) & (values <= last))
        answer = np.where(gone, self.missing_left[nodes], below)
        chosen = self.set_of[nodes]
        for number in np.unique(chosen[chosen >= 0]):
            here = np.flatnonzero((chosen == number) & ~gone)
            answer[here] = self.sets[number].goes_left(values[here])
        return np.asarray(answer, dtype=bool)

    def leaves(self, features: NDArray[Any]) -> Ints:
        """(n, trees): the node that each row of numbers ends in."""
        features = np.asarray(features, dtype=np.float64)
        here = np.broadcast_to(self.roots, (len(features), self.n_trees)).copy()
        row = np.broadcast_to(np.arange(len(features))[:, None], here.shape)
        for _ in range(self.depth):
            inner = ~self.is_leaf[here]
            nodes = here[inner]
            goes = self.goes_left(nodes, features[row[inner], self.feature[nodes]])
            here[inner] = np.where(goes, self.left[nodes], self.right[nodes])
        return here

    def margins(self, features: NDArray[Any]) -> Floats:
        """(n,): the sums of rows of numbers."""
        total: Floats = self.base + self.value[self.leaves(features)].sum(axis=1)
        return total

    def scores(self, margins: Any) -> Scores:
        """Scores of sums."""
        scores: Scores = expit(margins) if self.link == "logistic" else 0.5 + margins / 2
        return scores

    def widest(self, gap: Any) -> Any:
        """How far two scores can be apart at most, if their sums are so far apart.

        The logistic function is steepest around 0, so there the same way makes the largest gap.
        """
        gap = np.asarray(gap)
        told = 2 * expit(gap / 2) - 1 if self.link == "logistic" else gap / 2
        return np.where(gap > 0, told + 4 * EDGE, 0.0)


def _growth(n: int, unit: float) -> float:
    return n * unit / (1 - n * unit)


def join_trees(trees: list[Tree], *, base: float, link: Link, unit: float, kind: str) -> Ensemble:
    """One ensemble of trees."""
    sizes = [len(tree.feature) for tree in trees]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    sets: list[Categories] = []
    set_of = np.full(int(starts[-1]), -1, dtype=np.int64)
    for start, tree in zip(starts, trees, strict=False):
        for node, categories in tree.categories.items():
            set_of[start + node] = len(sets)
            sets.append(categories)

    def joined(name: str, dtype: Any) -> NDArray[Any]:
        parts = [
            np.broadcast_to(np.asarray(getattr(tree, name), dtype=dtype), (size,))
            for tree, size in zip(trees, sizes, strict=True)
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype)

    feature = joined("feature", np.int64)
    shift = np.repeat(starts[:-1], sizes)
    leaf = feature < 0
    return Ensemble(
        feature=feature,
        threshold=joined("threshold", np.float64),
        left=np.where(leaf, 0, joined("left", np.int64) + shift),
        right=np.where(leaf, 0, joined("right", np.int64) + shift),
        value=np.where(leaf, joined("value", np.float64), 0.0),
        missing_left=joined("missing_left", bool),
        strict=joined("strict", bool),
        hole=joined("hole", bool),
        set_of=set_of,
        sets=tuple(sets),
        roots=starts[:-1],
        tree_of=np.repeat(np.arange(len(trees)), sizes),
        base=float(base),
        link=link,
        unit=unit,
        kind=kind,
    )

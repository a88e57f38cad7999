"""Bounds of what an ensemble can answer in boxes of atoms, for all boxes at once.

Two bounds, each of them sound. *Single*: for every tree the largest and smallest leaf that a box
can reach; their sums bound the sum. *Paired*: a row and its partner walk each tree together. Where
a tree asks for a column that both share, they go the same way; where it asks for a protected one,
each goes its own. So trees that do not ask for protected columns end in one leaf, and of the others
only leaves count that one row can reach together with its partner. A flip needs f >= 0 for the one
sum and g <= 0 for the other, and then w f - (1 - w) g >= 0 for every weight w from 0 to 1. The
largest that a box allows of this is the sum over the trees of the largest w v(a) - (1 - w) v(b)
over their pairs of leaves; where it is negative for one weight, nothing in the box flips.

That two leaves can be reached together is seen column by column. Within one column, boxes and
paths are intervals of atoms, and intervals that meet pair by pair have an atom in common (Helly),
so that nothing is lost; a question by a set of categories narrows nothing, which loses a little but
proves nothing wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.trees.lattice import Lattice

__all__ = ["Bounded", "Boxes", "Reached", "bound_boxes", "reach"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

WEIGHTS = np.array([0.05, 0.15, 0.25, 0.35, 0.42, 0.47, 0.53, 0.58, 0.65, 0.75, 0.85, 0.95])
_AT_ONCE = 256  # boxes whose pairs of leaves are looked at together


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of atoms, each with the partners that a row in it may have.

    In the moving columns (the protected ones and what goes along with them) a box is one atom, and
    each partner has another. Partners that no row has are not `there`.
    """

    low: Ints  # (n, d)
    high: Ints
    moving: Ints  # (m,): positions of the moving columns
    partners: Ints  # (n, partners, m): their atoms
    there: Bools  # (n, partners)

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, index: Ints | Bools | slice) -> Boxes:
        return Boxes(
            self.low[index], self.high[index], self.moving, self.partners[index], self.there[index]
        )

    def as_partner(self, number: int) -> tuple[Ints, Ints]:
        """Low and high of the boxes as seen by a partner."""
        low, high = self.low.copy(), self.high.copy()
        low[:, self.moving] = high[:, self.moving] = self.partners[:, number]
        return low, high


@dataclass(frozen=True, eq=False)
class Reached:
    """What boxes reach: leaves, and nodes at which rows of a box part."""

    box: Ints
    leaf: Ints
    parted_box: Ints
    parted: Ints  # nodes


def reach(lattice: Lattice, low: Ints, high: Ints, trees: Bools) -> Reached:
    """The leaves of some trees that boxes reach."""
    roots = lattice.ensemble.roots[trees]
    box = np.repeat(np.arange(len(low)), len(roots))
    node = np.tile(roots, len(low))
    boxes, leaves, parted_boxes, parted = [], [], [], []
    while len(node):
        leaf = lattice.is_leaf[node]
        boxes.append(box[leaf])
        leaves.append(node[leaf])
        box, node = box[~leaf], node[~leaf]
        column = lattice.column[node]
        left, right = lattice.can_go(node, low[box, column], high[box, column])
        both = left & right
        parted_boxes.append(box[both])
        parted.append(node[both])
        node = np.concatenate([lattice.left[node[left]], lattice.right[node[right]]])
        box = np.concatenate([box[left], box[right]])
    return Reached(*(_joined(parts) for parts in (boxes, leaves, parted_boxes, parted)))


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _extremes(lattice: Lattice, reached: Reached, n: int) -> tuple[Floats, Floats]:
    """(n,) each: sums over trees of the largest and of the smallest leaf that boxes reach."""
    ensemble = lattice.ensemble
    place = reached.box * ensemble.n_trees + ensemble.tree_of[reached.leaf]
    value = ensemble.value[reached.leaf]
    largest = np.full(n * ensemble.n_trees, -np.inf)
    np.maximum.at(largest, place, value)
    smallest = np.full(n * ensemble.n_trees, np.inf)
    np.minimum.at(smallest, place, value)
    return (
        np.where(np.isfinite(largest), largest, 0.0).reshape(n, -1).sum(axis=1),
        np.where(np.isfinite(smallest), smallest, 0.0).reshape(n, -1).sum(axis=1),
    )


@dataclass(frozen=True, eq=False)
class Bounded:
    """What is known of boxes: which flips they may hold, and how far scores can be apart."""

    may_fall: Bools  # (n, partners): may a row be favorable whose partner is not?
    may_rise: Bools  # (n, partners): may a partner be favorable whose row is not?
    gap: Floats  # (n,): of the sums of a row and a partner, at most
    promise: Floats  # (n,): the weighted bound, larger where a flip is likelier
    split: Ints  # (n, 2): column and atom after which to cut a box, -1 where it is one cell

    @property
    def is_open(self) -> Bools:
        """Which boxes may hold a flip."""
        return np.asarray((self.may_fall | self.may_rise).any(axis=1))


def bound_boxes(lattice: Lattice, boxes: Boxes, *, paired: bool = True) -> Bounded:
    """Bounds of boxes."""
    parts = [
        _bound(lattice, boxes[start : start + _AT_ONCE], paired)
        for start in range(0, max(len(boxes), 1), _AT_ONCE)
    ]
    return Bounded(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("may_fall", "may_rise", "gap", "promise", "split")
        )
    )


def _bound(lattice: Lattice, boxes: Boxes, paired: bool) -> Bounded:
    ensemble, n = lattice.ensemble, len(boxes)
    slack, base = ensemble.slack, ensemble.base
    moves = lattice.looks_at(boxes.moving)
    shared = reach(lattice, boxes.low, boxes.high, ~moves)
    top, bottom = _extremes(lattice, shared, n)
    own = reach(lattice, boxes.low, boxes.high, moves)
    own_top, own_bottom = _extremes(lattice, own, n)
    n_partners = boxes.there.shape[1]
    fall, rise = np.zeros((2, n, n_partners), dtype=bool)
    gap, promise = np.zeros(n), np.full(n, -np.inf)
    parted = [shared, own]
    for number in range(n_partners):
        low, high = boxes.as_partner(number)
        theirs = reach(lattice, low, high, moves)
        their_top, their_bottom = _extremes(lattice, theirs, n)
        parted.append(theirs)
        there = boxes.there[:, number]
        ceiling, floor = base + top, base + bottom
        can_fall = (ceiling + own_top >= -slack) & (floor + their_bottom <= slack) & there
        can_rise = (ceiling + their_top >= -slack) & (floor + own_bottom <= slack) & there
        apart = np.maximum(own_top - their_bottom, their_top - own_bottom)
        hope = np.minimum(ceiling + own_top, -(floor + their_bottom))
        hope = np.maximum(hope, np.minimum(ceiling + their_top, -(floor + own_bottom)))
        here = np.flatnonzero(can_fall | can_rise)
        if paired and len(here):
            pairs = _walk_pairs(lattice, boxes[here], low[here], high[here], moves)
            tighter = _weigh(lattice, pairs, top[here], bottom[here])
            can_fall[here] &= tighter.fall
            can_rise[here] &= tighter.rise
            apart[here] = np.minimum(apart[here], tighter.gap)
            hope[here] = np.minimum(hope[here], tighter.hope)
        fall[:, number], rise[:, number] = can_fall, can_rise
        gap = np.where(there, np.maximum(gap, apart), gap)
        promise = np.where(there & (can_fall | can_rise), np.maximum(promise, hope), promise)
    return Bounded(fall, rise, gap, promise, _choose_split(lattice, parted, n))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of leaves that a row and its partner can reach, of trees that separate the two."""

    n: int
    box: Ints
    own: Ints
    theirs: Ints


def _walk_pairs(lattice: Lattice, boxes: Boxes, low: Ints, high: Ints, moves: Bools) -> _Pairs:
    """Walk trees with both at once; low and high are the boxes as the partner has them."""
    is_moving = np.zeros(boxes.low.shape[1], dtype=bool)
    is_moving[boxes.moving] = True
    roots = lattice.ensemble.roots[moves]
    n = len(boxes)
    box, node = np.repeat(np.arange(n), len(roots)), np.tile(roots, n)
    nothing = np.empty(0, dtype=np.int64)
    found: list[tuple[Ints, Ints, Ints]] = [(nothing, nothing, nothing)]
    apart: list[tuple[Ints, Ints, Ints]] = [(nothing, nothing, nothing)]
    while len(node):  # together
        leaf = lattice.is_leaf[node]
        found.append((box[leaf], node[leaf], node[leaf]))
        box, node = box[~leaf], node[~leaf]
        column = lattice.column[node]
        left, right = lattice.can_go(node, boxes.low[box, column], boxes.high[box, column])
        theirs_left, _ = lattice.can_go(node, low[box, column], high[box, column])
        # In a moving column each has one atom and goes one way.
        part = is_moving[column] & (left != theirs_left)
        ways = lattice.left[node[part]], lattice.right[node[part]]
        first = left[part]
        apart.append(
            (box[part], np.where(first, ways[0], ways[1]), np.where(first, ways[1], ways[0]))
        )
        left, right = left & ~part, right & ~part
        node = np.concatenate([lattice.left[node[left]], lattice.right[node[right]]])
        box = np.concatenate([box[left], box[right]])
    walked = _walk_apart(lattice, boxes, low, apart, is_moving)
    joined = [np.concatenate(parts) for parts in zip(*found, *walked, strict=True)]
    return _Pairs(n, *joined)


def _walk_apart(
    lattice: Lattice,
    boxes: Boxes,
    theirs: Ints,
    starts: list[tuple[Ints, Ints, Ints]],
    is_moving: Bools,
) -> list[tuple[Ints, Ints, Ints]]:
    """Pairs of leaves below nodes at which the two have parted.

    What they share narrows with each question, whoever of them is asked.
    """
    box, own, other = (np.concatenate(parts) for parts in zip(*starts, strict=True))
    low, high = boxes.low[box].astype(np.int32), boxes.high[box].astype(np.int32)
    found = []
    while len(box):
        done = lattice.is_leaf[own] & lattice.is_leaf[other]
        found.append((box[done], own[done], other[done]))
        go = ~done
        box, own, other, low, high = box[go], own[go], other[go], low[go], high[go]
        first = ~lattice.is_leaf[own]  # the row walks down, then its partner
        node = np.where(first, own, other)
        column, line = lattice.column[node], np.arange(len(box))
        at_low, at_high = low[line, column].astype(np.int64), high[line, column].astype(np.int64)
        moved = is_moving[column] & ~first
        at = theirs[box[moved], column[moved]]
        at_low[moved], at_high[moved] = at, at
        left, right = lattice.can_go(node, at_low, at_high)
        narrows = ~is_moving[column] & (lattice.table[node] < 0)
        narrows &= at_high < lattice.sizes[column]
        cut = np.clip(lattice.cut[node], -1, np.iinfo(np.int32).max - 1)
        parts = []
        for goes, child, is_left in ((left, lattice.left, True), (right, lattice.right, False)):
            index = np.flatnonzero(goes)
            to = child[node[index]]
            new_low, new_high = low[index], high[index]
            tight = np.flatnonzero(narrows[index])
            at_column = column[index[tight]]
            if is_left:
                new_high[tight, at_column] = np.minimum(at_high[index[tight]], cut[index[tight]])
            else:
                new_low[tight, at_column] = np.maximum(at_low[index[tight]], cut[index[tight]] + 1)
            walks = first[index]
            parts.append(
                (
                    box[index],
                    np.where(walks, to, own[index]),
                    np.where(walks, other[index], to),
                    new_low,
                    new_high,
                )
            )
        box, own, other, low, high = (np.concatenate(p) for p in zip(*parts, strict=True))
    return found


@dataclass(frozen=True, eq=False)
class _Weighed:
    fall: Bools
    rise: Bools
    gap: Floats
    hope: Floats


def _weigh(lattice: Lattice, pairs: _Pairs, top: Floats, bottom: Floats) -> _Weighed:
    """What pairs of leaves allow; top and bottom sum up trees that do not separate the two."""
    ensemble, n = lattice.ensemble, pairs.n
    place = pairs.box * ensemble.n_trees + ensemble.tree_of[pairs.own]
    mine, theirs = ensemble.value[pairs.own], ensemble.value[pairs.theirs]
    slack = ensemble.slack

    def largest(values: Floats) -> Floats:
        most = np.full(n * ensemble.n_trees, -np.inf)
        np.maximum.at(most, place, values)
        total: Floats = np.where(np.isfinite(most), most, 0.0).reshape(n, -1).sum(axis=1)
        return total

    fall, rise = np.ones((2, n), dtype=bool)
    best = np.full((2, n), np.inf)
    for weight in WEIGHTS:
        tilt = 2 * weight - 1
        rest = tilt * (ensemble.base + (top if tilt > 0 else bottom))
        falls = rest + largest(weight * mine - (1 - weight) * theirs)
        rises = rest + largest(weight * theirs - (1 - weight) * mine)
        fall &= falls >= -slack
        rise &= rises >= -slack
        best[0], best[1] = np.minimum(best[0], falls), np.minimum(best[1], rises)
    down, up = largest(mine - theirs), largest(theirs - mine)
    # Where the two end in the same leaves throughout, they are the same sum, digit by digit.
    apart = np.zeros(n, dtype=bool)
    apart[pairs.box[mine != theirs]] = True
    gap = np.maximum(down, up)
    return _Weighed(fall & apart, rise & apart, gap, best.max(axis=0))


def _choose_split(lattice: Lattice, reached: list[Reached], n: int) -> Ints:
    """(n, 2): where to cut each box: at the question that most leaves depend on."""
    box = np.concatenate([each.parted_box for each in reached])
    node = np.concatenate([each.parted for each in reached])
    split = np.full((n, 2), -1, dtype=np.int64)
    by_set = lattice.table[node] >= 0
    # A set of categories has no one place to cut at; the first level is as good as any.
    cut = np.where(by_set, -1, lattice.cut[node])
    width = int(lattice.sizes.max()) + 2
    key = (box * len(lattice.axes) + lattice.column[node]) * width + cut + 1
    keys, of = np.unique(key, return_inverse=True)
    weight = np.bincount(of.reshape(-1), lattice.spread[node], minlength=len(keys))
    # The heaviest of each box stands last in this order.
    order = np.lexsort((weight, keys // (width * len(lattice.axes))))
    keys = keys[order]
    of_box = keys // (width * len(lattice.axes))
    last = np.flatnonzero(np.append(of_box[1:] != of_box[:-1], len(keys) > 0))
    chosen = keys[last]
    split[of_box[last], 0] = chosen // width % len(lattice.axes)
    split[of_box[last], 1] = chosen % width - 1
    return split

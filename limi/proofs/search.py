"""A short search for a flip within boxes of atoms, on the trees alone.

Everybody climbs at once: each round tries a few rows around everybody's best so far, and keeps the
one that comes nearest to a flip: where the smaller of the two sums' distances from the edge, on
their two sides, is largest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limi.trees.bounds import Boxes
from limi.trees.lattice import Lattice

__all__ = ["climb", "nearness"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_CHANGED = 0.35  # of the columns that may move, changed by a try


def nearness(lattice: Lattice, boxes: Boxes, atoms: Ints) -> Floats:
    """(n,): how near rows of boxes come to a flip; above 0 they do, as far as sums are exact."""
    moves = lattice.looks_at(boxes.moving)
    shared = lattice.ensemble.base + lattice.sums(atoms, ~moves)
    own = shared + lattice.sums(atoms, moves)
    best = np.full(len(atoms), -np.inf)
    for number in range(boxes.there.shape[1]):
        here = np.flatnonzero(boxes.there[:, number])
        partner = atoms[here].copy()
        partner[:, boxes.moving] = boxes.partners[here, number]
        theirs = shared[here] + lattice.sums(partner, moves)
        near = np.maximum(np.minimum(own[here], -theirs), np.minimum(-own[here], theirs))
        best[here] = np.maximum(best[here], near)
    return best


def climb(
    lattice: Lattice, boxes: Boxes, start: Ints, rng: np.random.Generator, rounds: int, tries: int
) -> tuple[Ints, Floats]:
    """The best rows found in boxes, by their atoms, and how near each comes to a flip."""
    best, near = start.copy(), nearness(lattice, boxes, start)
    spans = boxes.high - boxes.low
    movable = spans > 0
    for _ in range(rounds):
        open_ = np.flatnonzero((near <= lattice.ensemble.slack) & movable.any(axis=1))
        if not len(open_):
            break
        index = np.repeat(open_, tries)
        tried = best[index]
        changed = (rng.random(tried.shape) < _CHANGED) & movable[index]
        # Somewhere at least.
        weights = rng.random(tried.shape) * movable[index]
        changed[np.arange(len(index)), weights.argmax(axis=1)] = True
        drawn = boxes.low[index] + np.floor(rng.random(tried.shape) * (spans[index] + 1)).astype(
            np.int64
        )
        tried = np.where(changed, drawn, tried)
        found = nearness(lattice, boxes[index], tried).reshape(len(open_), tries)
        chosen = found.argmax(axis=1)
        line = np.arange(len(open_))
        better = found[line, chosen] > near[open_]
        hits = open_[better]
        best[hits] = tried.reshape(len(open_), tries, -1)[line, chosen][better]
        near[hits] = found[line, chosen][better]
    return best, near

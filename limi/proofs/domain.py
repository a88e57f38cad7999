"""How much the protected columns can ever matter: the largest gap of sums in the whole domain.

Every way in which a row and its partner may differ is asked for the row that is furthest above, or
below, those that bounds promise most of first; what cannot beat what is known is soon done. Trees
that do not ask for what moves cancel. Columns that go along with a protected one by the rules may
hold anything here, for a row and for its partner, and constraints are not asked: so the bound holds
for more rows than there can be.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.audits.problem import Problem
from limi.models.target import settling_rows
from limi.proofs.near import Near
from limi.proofs.question import make_partners
from limi.proofs.solver import Solve, require_solver
from limi.search.tried import LEFT, Tried
from limi.trees.bounds import Boxes, bound_boxes
from limi.trees.lattice import Lattice

__all__ = ["DomainGap", "bound_domain"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_PEOPLE = 2000  # of the table, whose gaps are a first answer


@dataclass(frozen=True)
class DomainGap:
    """A gap that was reached, and one that none exceeds."""

    reached: float
    bound: float
    optimal: bool


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Ways in which a row and its partner may differ: a box of atoms for each of the two."""

    low: Ints  # (n, d): of the one that is to be far above
    high: Ints
    their_low: Ints
    their_high: Ints
    moving: Ints  # columns in which the two may differ
    promise: Floats  # (n,): first bounds of the gaps


def bound_domain(lattice: Lattice, problem: Problem, seconds: float, workers: int) -> DomainGap:
    """The largest gap of sums, as far as it is known after so many seconds."""
    require_solver()
    groups = _list_pairs(lattice, problem)
    order = sorted(
        ((float(p), g, k) for g, group in enumerate(groups) for k, p in enumerate(group.promise)),
        key=lambda told: -told[0],
    )
    best, bound, optimal = _gap_of_people(lattice, problem), 0.0, True
    deadline = time.monotonic() + seconds
    for nth, (promise, g, k) in enumerate(order):
        if promise <= best:
            break
        left = max(deadline - time.monotonic(), 0.0)
        if not left:
            optimal, bound = False, max(bound, promise)
            break  # the others promise less
        pairs = groups[g]
        solve = Solve(
            lattice,
            pairs.low[k],
            pairs.high[k],
            pairs.their_low[k],
            pairs.their_high[k],
            pairs.moving,
        )
        share = left if nth == len(order) - 1 else left / 2
        found = solve.find_gap(seconds=share, workers=workers, above=best)
        best = max(best, found.value)
        optimal &= found.status != "late"
        bound = max(bound, min(found.bound, promise))  # of nothing, nothing
    # What rounding leaves open, once for each of the two sums.
    spare = 2 * lattice.ensemble.slack if max(best, bound) > 0 else 0.0
    return DomainGap(best, max(best, bound) + spare, optimal)


def _list_pairs(lattice: Lattice, problem: Problem) -> list[_Pairs]:
    """All ways in which a row and its partner may differ, those in the same columns together.

    A column may hold values that are none of those tried. A row may then have any value in it, and
    of several protected columns its partner may be left with the row's own (`limi.search.tried`).
    """
    schema = problem.schema
    protected = schema.protected_index
    strays = np.array(
        [
            schema.columns[j].missing or len(codes) != schema.columns[j].size
            for j, codes in zip(protected, schema.protected_codes, strict=True)
        ]
    )
    tried = Tried.of(schema, int((1 << np.flatnonzero(strays)).sum()))
    cells = np.repeat(problem.rows[:1], len(tried.cells), axis=0)
    cells[:, protected] = tried.cells
    atoms = np.where(tried.places == LEFT, LEFT, lattice.atoms(cells)[:, protected])
    theirs = np.unique(atoms, axis=0)
    own = np.unique(np.where(strays, LEFT, atoms), axis=0)
    groups = []
    for left in np.unique(theirs == LEFT, axis=0):
        if left.all():
            continue  # the row itself
        here = theirs[((theirs == LEFT) == left).all(axis=1)]
        both = [np.array(side) for side in zip(*itertools.product(own, here), strict=True)]
        differ = (both[0] != both[1])[:, ~left].any(axis=1)
        if differ.any():
            groups += _make_pairs(lattice, both[0][differ], both[1][differ], protected[~left])
    return groups


def _make_pairs(lattice: Lattice, mine: Ints, theirs: Ints, told: Ints) -> list[_Pairs]:
    """Pairs by the atoms of their protected columns, of which the partner has those that are told.

    A row that may have any value is asked for both ways; of others, the partner has its own turn.
    """
    schema = lattice.schema
    protected, n = schema.protected_index, len(mine)
    free = mine == LEFT
    low = np.zeros((n, len(schema)), dtype=np.int64)
    high = np.repeat((lattice.sizes - 1 + schema.may_miss)[None], n, axis=0)
    low[:, protected] = np.where(free, 0, mine)
    high[:, protected] = np.where(free, high[:, protected], mine)
    their_low, their_high = low.copy(), high.copy()
    chosen = theirs[:, np.isin(protected, told)]
    their_low[:, told] = their_high[:, told] = chosen
    # What goes along with protected columns is not known here: it may hold anything.
    along = np.setdiff1d(schema.moving_index, protected)
    promise = np.full(n, np.inf)
    if not len(along):
        boxes = Boxes(low, high, told, chosen[:, None], np.ones((n, 1), dtype=bool))
        # Pairs of leaves tell more, but only of one value each.
        promise = bound_boxes(lattice, boxes, paired=not free.any()).gap
    moving = np.union1d(along, told)
    found = [_Pairs(low, high, their_low, their_high, moving, promise)]
    if free.any():
        found.append(_Pairs(their_low, their_high, low, high, moving, promise))
    return found


def _gap_of_people(lattice: Lattice, problem: Problem) -> float:
    """The largest gap of some people of the table and their partners: it is reached."""
    schema = problem.schema
    some = problem.rows[settling_rows(len(problem.rows), _PEOPLE)]
    partners, there = make_partners(schema, Near(np.zeros(len(schema)), ""), some)
    n, n_tried, width = partners.shape
    sums = lattice.margins(lattice.atoms(partners.reshape(-1, width))).reshape(n, n_tried)
    gaps = np.abs(sums - lattice.margins(lattice.atoms(some))[:, None])
    return float(gaps[there].max(initial=0.0))

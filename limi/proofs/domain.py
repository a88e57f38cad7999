"""How much the protected columns can ever matter: the largest gap of sums in the whole domain.

Every pair of protected combinations is asked for the row that is furthest above its partner, pairs
that bounds promise most of first; a pair that cannot beat what is known already is soon done. Trees
that do not ask for what moves cancel. Columns that go along with a protected one by the rules may
hold anything here, for a row and for its partner, and constraints are not asked: so the bound holds
for more rows than there can be.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

import numpy as np

from limi.audits.problem import Problem
from limi.models.target import settling_rows
from limi.proofs.solver import Solve, require_solver
from limi.table.partners import expand
from limi.trees.bounds import Boxes, bound_boxes
from limi.trees.lattice import Lattice

__all__ = ["DomainGap", "bound_domain"]

_PEOPLE = 2000  # of the table, whose gaps are a first answer


@dataclass(frozen=True)
class DomainGap:
    """A gap that was reached, and one that none exceeds."""

    reached: float
    bound: float
    optimal: bool


def bound_domain(lattice: Lattice, problem: Problem, seconds: float, workers: int) -> DomainGap:
    """The largest gap of sums, as far as it is known after so many seconds."""
    require_solver()
    schema = problem.schema
    low = np.zeros(len(schema), dtype=np.int64)
    high = lattice.sizes - 1 + schema.may_miss
    protected, moving = schema.protected_index, schema.moving_index
    cells = np.repeat(problem.rows[:1], len(schema.combinations), axis=0)
    cells[:, protected] = schema.combinations
    atoms = np.unique(lattice.atoms(cells)[:, protected], axis=0)
    pairs = np.array(list(itertools.permutations(range(len(atoms)), 2)), dtype=np.int64)
    if not len(pairs):
        return DomainGap(0.0, 0.0, True)
    lows, highs = (np.repeat(end[None], len(pairs), axis=0) for end in (low, high))
    lows[:, protected] = highs[:, protected] = atoms[pairs[:, 0]]
    their_lows, their_highs = lows.copy(), highs.copy()
    their_lows[:, protected] = their_highs[:, protected] = atoms[pairs[:, 1]]
    along = np.setdiff1d(moving, protected)
    promise = _promise(lattice, lows, highs, their_lows, protected, bool(len(along)))
    best, bound, optimal = _gap_of_people(lattice, problem), 0.0, True
    deadline = time.monotonic() + seconds
    for nth, place in enumerate(np.argsort(-promise, kind="stable").tolist()):
        if promise[place] <= best:
            break
        left = max(deadline - time.monotonic(), 0.0)
        solve = Solve(
            lattice, lows[place], highs[place], their_lows[place], their_highs[place], moving
        )
        if not left:
            optimal, bound = False, max(bound, float(promise[place]))
            break  # the others promise less
        share = left if nth == len(pairs) - 1 else left / 2
        found = solve.find_gap(seconds=share, workers=workers, above=best)
        best = max(best, found.value)
        optimal &= found.status != "late"
        bound = max(bound, min(found.bound, promise[place]))  # of nothing, nothing
    # What rounding leaves open, once for each of the two sums.
    spare = 2 * lattice.ensemble.slack
    return DomainGap(best, max(best, bound) + spare, optimal)


def _gap_of_people(lattice: Lattice, problem: Problem) -> float:
    """The largest gap of some people of the table and their partners: it is reached."""
    schema = problem.schema
    some = problem.rows[settling_rows(len(problem.rows), _PEOPLE)]
    asked, is_open = expand(schema, some, schema.combinations)
    n, n_tried, width = asked.shape
    sums = lattice.margins(lattice.atoms(asked.reshape(-1, width))).reshape(n, n_tried)
    if is_open is not None:
        sums = np.where(is_open, sums, np.nan)
    known = sums[~np.isnan(sums).all(axis=1)]
    gaps = np.nanmax(known, axis=1) - np.nanmin(known, axis=1)
    return float(gaps.max(initial=0.0))


def _promise(
    lattice: Lattice,
    low: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    high: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    theirs: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    protected: np.ndarray[tuple[int, ...], np.dtype[np.intp]],
    goes_along: bool,
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """A first bound of each pair; what goes along with protected columns is not known to it."""
    if goes_along:
        return np.full(len(low), np.inf)
    there = np.ones((len(low), 1), dtype=bool)
    boxes = Boxes(low, high, protected, theirs[:, None, protected], there)
    return bound_boxes(lattice, boxes).gap

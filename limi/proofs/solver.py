"""The same question for a solver of constraints (CP-SAT of ortools), on what cuts left open.

Each column has a chain of booleans, one for each cut that a reachable question makes: is the atom
beyond it? Each tree has one boolean for every leaf in reach, of which exactly one holds, and which
implies its path. Trees that ask for moving columns are there twice, once for the row and once for
its partner; the others once. Leaves are scaled to whole numbers, and what that rounds, at most half
a unit for each term, is added to the slack of the ensemble: where the solver finds nothing, there
is nothing. What it finds is a candidate, which only the model itself can make a flip.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import missing
from limi.trees.bounds import reach
from limi.trees.lattice import Lattice

__all__ = ["Found", "Solve", "require_solver"]

Ints = NDArray[np.int64]

_BITS = 30  # of a scaled leaf
_SUM_BITS = 58  # of a scaled sum


def require_solver() -> Any:
    """The solver's module; MissingDependency where it is not installed."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise missing("ortools", "certify", "deciding what the bounds leave open") from None
    return cp_model


@dataclass(frozen=True, eq=False)
class Found:
    """What a solver says."""

    status: str  # "nothing", "candidate", "late"
    row: Ints | None = None  # atoms of the row, where there is one
    partner: Ints | None = None
    leaves: tuple[int, ...] = ()  # that the two end in
    value: float = 0.0  # of an objective
    bound: float = math.inf


@dataclass(eq=False)
class Solve:
    """One question for the solver: a row in a box, and its partner in another."""

    lattice: Lattice
    low: Ints  # (d,): of the row
    high: Ints
    partner_low: Ints  # (d,): the same but for the moving columns
    partner_high: Ints
    moving: Ints
    allowed: list[tuple[list[tuple[int, int]], Ints]] = field(default_factory=list)
    # ^ (side, column) pairs, and the atoms that they may have together, a line for each choice
    refuted: list[tuple[int, ...]] = field(default_factory=list)  # leaves that flip nothing

    def find_flip(self, *, falls: bool, seconds: float) -> Found:
        """A row that is favorable, if it `falls`, whose partner is not; else the other way."""
        cp = require_solver()
        model = _Model(cp, self)
        ensemble = self.lattice.ensemble
        slack, scale = ensemble.slack, model.scale
        sides = (0, 1) if falls else (1, 0)
        # Scaled leaves, and the base among them, are off by half a unit each.
        spare = ensemble.n_trees / 2 + 1
        most = math.ceil((slack - ensemble.base) * scale + spare)
        model.cp.Add(model.total(sides[0]) >= math.floor((-slack - ensemble.base) * scale - spare))
        model.cp.Add(model.total(sides[1]) <= most)
        return model.solve(seconds)

    def find_gap(self, *, seconds: float, workers: int, above: float = 0.0) -> Found:
        """The row whose sum is furthest above its partner's, and a bound of how far any is.

        Rows that are not further than `above` are of no interest.
        """
        cp = require_solver()
        model = _Model(cp, self, shared=False)
        spare = self.lattice.ensemble.n_trees + 1
        gap = model.total(0) - model.total(1)
        model.cp.Add(gap >= math.floor(above * model.scale - spare))
        model.cp.Maximize(gap)
        found = model.solve(seconds, workers)
        bound = (found.bound + spare) / model.scale
        return Found(
            found.status, found.row, found.partner, found.leaves, found.value / model.scale, bound
        )


class _Model:
    """A question in the solver's terms."""

    def __init__(self, module: Any, asked: Solve, *, shared: bool = True) -> None:
        self._module, self._asked, self._lattice = module, asked, asked.lattice
        self.cp = module.CpModel()
        ensemble = asked.lattice.ensemble
        largest = np.abs(ensemble.value).max(initial=0.0)
        fine = _BITS - (math.frexp(largest)[1] if largest else 0)
        # The base may be far larger than any leaf, and sums must stay within the solver's numbers.
        self.scale = 2.0 ** min(fine, _SUM_BITS - math.frexp(ensemble.largest + 1)[1])
        self._is_moving = np.zeros(len(asked.low), dtype=bool)
        self._is_moving[asked.moving] = True
        self._beyond: dict[tuple[int, int], dict[int, Any]] = {}  # by side and column: by atom
        self._is: dict[tuple[int, int], dict[int, Any]] = {}
        self._leaves: list[tuple[int, Any]] = []
        self._sums: tuple[list[Any], list[Any]] = ([], [])
        self._weights: tuple[list[int], list[int]] = ([], [])
        moves = asked.lattice.looks_at(asked.moving)
        if shared:
            self._grow(~moves, (0, 1), asked.low, asked.high)
        self._grow(moves, (0,), asked.low, asked.high)
        self._grow(moves, (1,), asked.partner_low, asked.partner_high)
        for pairs, atoms in asked.allowed:
            self._allow(pairs, atoms)
        self._chain()
        known = dict(self._leaves)
        for leaves in asked.refuted:
            held = [known[leaf] for leaf in leaves if leaf in known]
            self.cp.AddBoolOr([each.Not() for each in held])

    def total(self, side: int) -> Any:
        """The scaled sum of one of the two."""
        return self._module.LinearExpr.WeightedSum(self._sums[side], self._weights[side])

    def _ends(self, side: int, column: int) -> tuple[int, int]:
        asked = self._asked
        if side and self._is_moving[column]:
            return int(asked.partner_low[column]), int(asked.partner_high[column])
        return int(asked.low[column]), int(asked.high[column])

    def _home(self, side: int, column: int) -> tuple[int, int]:
        """Both sides share the booleans of a column that does not move."""
        return (side if self._is_moving[column] else 0, column)

    def _past(self, side: int, column: int, atom: int) -> Any:
        """A boolean: is the atom of a column larger than this?"""
        home = self._home(side, column)
        known = self._beyond.setdefault(home, {})
        if atom not in known:
            known[atom] = self.cp.NewBoolVar("")
        return known[atom]

    def _equals(self, side: int, column: int) -> dict[int, Any]:
        """Booleans for every atom of a column, one of which holds."""
        home = self._home(side, column)
        if home not in self._is:
            low, high = self._ends(side, column)
            self._is[home] = {atom: self.cp.NewBoolVar("") for atom in range(low, high + 1)}
            self.cp.AddExactlyOne(self._is[home].values())
        return self._is[home]

    def _grow(self, trees: Any, sides: tuple[int, ...], low: Ints, high: Ints) -> None:
        lattice = self._lattice
        reached = reach(lattice, low[None], high[None], trees)
        order = np.argsort(lattice.ensemble.tree_of[reached.leaf], kind="stable")
        leaves = reached.leaf[order]
        ends = np.flatnonzero(np.diff(lattice.ensemble.tree_of[leaves])) + 1
        for group in np.split(leaves, ends) if len(leaves) else ():
            held = [self.cp.NewBoolVar("") for _ in group]
            self.cp.AddExactlyOne(held)
            for leaf, chosen in zip(group.tolist(), held, strict=True):
                self._imply_path(leaf, chosen, sides[0])
                weight = round(float(lattice.ensemble.value[leaf]) * self.scale)
                for side in sides:
                    self._sums[side].append(chosen)
                    self._weights[side].append(weight)
                self._leaves.append((leaf + (sides == (1,)) * len(lattice.column), chosen))

    def _imply_path(self, leaf: int, chosen: Any, side: int) -> None:
        lattice = self._lattice
        parent, went_left = lattice.parents
        node = leaf
        while (above := int(parent[node])) >= 0:
            column, is_left = int(lattice.column[above]), bool(went_left[node])
            low, high = self._ends(side, column)
            ways = lattice.can_go(*(np.array([x]) for x in (above, low, high)))
            if ways[0][0] and ways[1][0]:
                self._imply(above, is_left, chosen, side, column)
            node = above

    def _imply(self, node: int, is_left: bool, chosen: Any, side: int, column: int) -> None:
        lattice = self._lattice
        low, high = self._ends(side, column)
        size = int(lattice.sizes[column])
        if lattice.table[node] < 0 and high < size:
            past = self._past(side, column, int(lattice.cut[node]))
            self.cp.AddImplication(chosen, past.Not() if is_left else past)
            return
        atoms = np.arange(low, high + 1)
        nodes = np.full(len(atoms), node)
        goes, _ = lattice.can_go(nodes, atoms, atoms)
        equals = self._equals(side, column)
        fits = [equals[a] for a in atoms[goes == is_left].tolist()]
        self.cp.AddBoolOr([*fits, chosen.Not()])

    def _chain(self) -> None:
        """Larger than an atom is larger than all before it; and what atoms are tells both."""
        for (side, column), known in self._beyond.items():
            cuts = sorted(known)
            for first, second in itertools.pairwise(cuts):
                self.cp.AddImplication(known[second], known[first])
            for atom, holds in self._is.get((side, column), {}).items():
                for cut in cuts:
                    past = known[cut]
                    self.cp.AddImplication(holds, past if atom > cut else past.Not())

    def _allow(self, pairs: Sequence[tuple[int, int]], atoms: Ints) -> None:
        """Atoms that columns may have together."""
        choices = [self.cp.NewBoolVar("") for _ in range(len(atoms))]
        self.cp.AddExactlyOne(choices)
        for place, (side, column) in enumerate(pairs):
            equals = self._equals(side, column)
            for atom, holds in equals.items():
                with_it = [choices[k] for k in np.flatnonzero(atoms[:, place] == atom).tolist()]
                self.cp.AddBoolOr([*with_it, holds.Not()])
                for choice in with_it:
                    self.cp.AddImplication(choice, holds)

    def solve(self, seconds: float, workers: int = 1) -> Found:
        """Solve; the same answer each time, as far as the clock allows."""
        module = self._module
        solver = module.CpSolver()
        solver.parameters.max_time_in_seconds = max(seconds, 1e-3)
        solver.parameters.num_workers = workers
        solver.parameters.random_seed = 0
        status = solver.Solve(self.cp)
        if status == module.INFEASIBLE:
            return Found("nothing", bound=-math.inf)
        if status not in (module.OPTIMAL, module.FEASIBLE):
            return Found("late")  # the bound of a solver that has found nothing need not be one
        bound = solver.BestObjectiveBound() if self.cp.HasObjective() else math.inf
        row, partner = (self._read(solver, side) for side in (0, 1))
        leaves = tuple(leaf for leaf, chosen in self._leaves if solver.Value(chosen))
        value = solver.ObjectiveValue() if self.cp.HasObjective() else 0.0
        told = "candidate" if status == module.OPTIMAL or not self.cp.HasObjective() else "late"
        return Found(told, row, partner, leaves, value, bound)

    def _read(self, solver: Any, side: int) -> Ints:
        """Atoms of one of the two; columns that nothing asks for have their lowest."""
        found = np.empty(len(self._asked.low), dtype=np.int64)
        for column in range(len(found)):
            low, high = self._ends(side, column)
            home = self._home(side, column)
            found[column] = low
            if home in self._is:
                (found[column],) = [a for a, x in self._is[home].items() if solver.Value(x)]
            elif home in self._beyond:
                past = [cut for cut, x in self._beyond[home].items() if solver.Value(x)]
                found[column] = min(max([low, *(cut + 1 for cut in past)]), high)
        return found

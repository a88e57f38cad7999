"""Boxes that may hold a flip are cut in two, the likeliest first, until they hold none or one.

Rounds take the most promising boxes of everybody who is open. A box in which no question parts
any rows is one cell: its rows share their leaves and hence their scores, so that one row of it
tells of all. That row is put to the model.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.proofs.cells import enumerate_cell
from limi.proofs.people import People, Stage
from limi.proofs.question import Question
from limi.proofs.search import climb, nearness
from limi.trees.bounds import Boxes, bound_boxes
from limi.trees.lattice import Lattice
from limi.types import Index, Rows

__all__ = ["Frontier", "Splitting"]

Ints = NDArray[np.int64]

_BATCH = 2048  # boxes that are cut in a round
_ROUNDS, _TRIES = 10, 8  # of the search before anything is cut


@dataclass(frozen=True, eq=False)
class Frontier:
    """Boxes that are open: parts of boxes of the question."""

    part_of: Index  # (n,): box of the question
    low: Ints
    high: Ints
    promise: NDArray[np.float64]
    split: Ints  # (n, 2)
    gap: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.part_of)

    def __getitem__(self, index: Index) -> Frontier:
        return Frontier(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    @staticmethod
    def join(parts: list[Frontier]) -> Frontier:
        """Several as one."""
        names = Frontier.__dataclass_fields__
        return Frontier(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))


class Splitting:
    """Decides as many people as bounds, a search and cuts can."""

    def __init__(
        self, lattice: Lattice, question: Question, people: People, rng: np.random.Generator
    ) -> None:
        self._lattice, self._question, self._people = lattice, question, people
        self._rng = rng
        self.lock = threading.Lock()  # of the model and of what is known
        self.spent = np.zeros(len(people.rows), dtype=np.int64)  # boxes looked at
        self.stuck = np.zeros(len(people.rows), dtype=bool)
        # ^ of whom a cell could neither be shown to flip nor not to

    @property
    def people(self) -> People:
        """Whom it decides."""
        return self._people

    @property
    def is_plain(self) -> bool:
        """Are there no constraints, which may tell rows of a cell apart?"""
        enforcer = self._people.schema.enforcer
        return not enforcer.constraints

    def begin(self) -> Frontier:
        """Bounds of whole neighbourhoods, and a short search where they do not decide."""
        question, people = self._question, self._people
        there = question.boxes.there.any(axis=1)
        people.prove_alone(question.person[there])
        wanted = np.flatnonzero(there)
        frontier, gap = self._bound(wanted, question.boxes.low[wanted], question.boxes.high[wanted])
        people.gap[:] = 0.0
        # What rounding leaves open, once for each of the two sums.
        spare = np.where(gap > 0, 2 * self._lattice.ensemble.slack, 0.0)
        np.maximum.at(people.gap, question.person[wanted], gap + spare)
        self._settle(frontier, Stage.BOUNDS)
        frontier = self._still_open(frontier)
        self._search(frontier)
        return self._still_open(frontier)

    def go_on(
        self,
        frontier: Frontier,
        most: int,
        *,
        enough: Callable[[], bool] = lambda: False,
        on_round: Callable[[], None] = lambda: None,
    ) -> Frontier:
        """Cut boxes until everybody is decided or has had so many; what is left."""
        while len(frontier) and not enough():
            person = self._question.person[frontier.part_of]
            may = (self.spent[person] < most) & ~self.stuck[person]
            if not may.any():
                break
            chosen = self._choose(frontier, person, may)
            rest = np.setdiff1d(np.arange(len(frontier)), chosen)
            children = self._cut(frontier[chosen])
            frontier = Frontier.join([frontier[rest], children])
            self._settle(frontier, Stage.SPLITTING)
            frontier = self._still_open(frontier)
            on_round()
        return frontier

    def _still_open(self, frontier: Frontier) -> Frontier:
        is_open = self._people.is_open[self._question.person[frontier.part_of]]
        return frontier[np.flatnonzero(is_open)]

    def _settle(self, frontier: Frontier, stage: Stage) -> None:
        """People without an open box are proven, unless a cell of theirs could not be told."""
        people = self._people
        has_open = self.stuck.copy()
        has_open[self._question.person[frontier.part_of]] = True
        people.prove(np.flatnonzero(people.is_open & ~has_open), stage)

    def _choose(self, frontier: Frontier, person: Index, may: NDArray[np.bool_]) -> Index:
        """The most promising boxes, of everybody the same number."""
        index = np.flatnonzero(may)
        order = index[np.lexsort((-frontier.promise[index], person[index]))]
        who = person[order]
        first = np.flatnonzero(np.append(True, who[1:] != who[:-1]))
        rank = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
        each = max(1, _BATCH // len(first))
        return order[rank < each][: max(_BATCH, len(first))]

    def _cut(self, frontier: Frontier) -> Frontier:
        column, after = frontier.split[:, 0], frontier.split[:, 1]
        line = np.arange(len(frontier))
        low, high = frontier.low[line, column], frontier.high[line, column]
        outside = (after < low) | (after >= high)
        after = np.where(outside, (low + high) // 2, after)
        lows, highs = np.repeat(frontier.low, 2, axis=0), np.repeat(frontier.high, 2, axis=0)
        highs[2 * line, column], lows[2 * line + 1, column] = after, after + 1
        children, _ = self._bound(np.repeat(frontier.part_of, 2), lows, highs)
        return children

    def _boxes(self, part_of: Index, low: Ints, high: Ints) -> Boxes:
        whole = self._question.boxes
        return Boxes(low, high, whole.moving, whole.partners[part_of], whole.there[part_of])

    def _bound(self, part_of: Index, low: Ints, high: Ints) -> tuple[Frontier, NDArray[np.float64]]:
        """Boxes that may hold a flip, and the bound of every box's gap; cells among the boxes are
        put to the model."""
        boxes = self._boxes(part_of, low, high)
        bounded = bound_boxes(self._lattice, boxes)
        np.add.at(self.spent, self._question.person[part_of], 1)
        is_open = np.flatnonzero(bounded.is_open)
        found = Frontier(
            part_of[is_open],
            low[is_open],
            high[is_open],
            bounded.promise[is_open],
            bounded.split[is_open],
            bounded.gap[is_open],
        )
        is_cell = found.split[:, 0] < 0
        self._ask_cells(found[np.flatnonzero(is_cell)])
        found = found[np.flatnonzero(~is_cell)]
        self._guess(found)
        return found, bounded.gap

    def _guess(self, frontier: Frontier) -> None:
        """One row of each box, drawn at random: as often as not it flips where the box is open."""
        if not len(frontier):
            return
        span = frontier.high - frontier.low + 1
        atoms = frontier.low + np.floor(self._rng.random(span.shape) * span).astype(np.int64)
        boxes = self._boxes(frontier.part_of, frontier.low, frontier.high)
        near = nearness(self._lattice, boxes, atoms)
        self._replay(frontier.part_of, atoms, near)

    def _search(self, frontier: Frontier) -> None:
        if not len(frontier):
            return
        boxes = self._boxes(frontier.part_of, frontier.low, frontier.high)
        start = self._lattice.atoms(self._question.centre[frontier.part_of])
        start = np.clip(start, frontier.low, frontier.high)
        atoms, near = climb(self._lattice, boxes, start, self._rng, _ROUNDS, _TRIES)
        self._replay(frontier.part_of, atoms, near, Stage.SEARCH)

    def _replay(
        self,
        part_of: Index,
        atoms: Ints,
        near: NDArray[np.float64],
        stage: Stage = Stage.SPLITTING,
    ) -> None:
        hits = np.flatnonzero(near >= -self._lattice.ensemble.slack)
        if len(hits):
            rows = self.rows_at(part_of[hits], atoms[hits])
            self._people.replay(self._question.person[part_of[hits]], rows, stage)

    def rows_at(self, part_of: Index, atoms: Ints) -> Rows:
        """Rows of boxes with these atoms, as near to the person as can be."""
        centre = self._question.centre[part_of]
        rows = self._lattice.rows(atoms, centre)
        # What does not move is the person's own, digit by digit.
        stays = ~(self._question.boxes.high > self._question.boxes.low)[part_of]
        within = atoms == self._lattice.atoms(centre)
        kept: Rows = np.where(stays | within, centre, rows)
        return kept

    def _ask_cells(self, cells: Frontier) -> None:
        """Cells that may flip by their sums are decided by the model itself."""
        if not len(cells):
            return
        people, question = self._people, self._question
        rows = self.rows_at(cells.part_of, cells.low)
        person = question.person[cells.part_of]
        kept = people.keep_rules(person, rows)
        people.replay(person, rows, Stage.SPLITTING)
        # Where the rules refuse this row of the cell, another may keep them.
        left = np.flatnonzero(~kept | self._may_close)
        for at in left[people.is_open[person[left]]]:
            if not self._try_cell(cells, int(at)):
                self.stuck[person[at]] |= people.is_open[person[at]]

    @property
    def _may_close(self) -> bool:
        """May a partner exist for one row of a cell and not for another?"""
        enforcer = self._people.schema.enforcer
        return bool(enforcer.binding)

    def _try_cell(self, cells: Frontier, at: int) -> bool:
        """Is it known of a cell that none of its rows flips? Tries rows until one does."""
        question = self._question
        part = int(cells.part_of[at])
        rows, whole = enumerate_cell(self._lattice, question, part, cells.low[at], cells.high[at])
        person = np.full(len(rows), question.person[part])
        self._people.replay(person, rows, Stage.SPLITTING)
        return whole

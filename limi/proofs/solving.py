"""The solver on people whom bounds and cuts left open, several at a time.

The solver works outside Python's lock, so that threads are enough to use every core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np

from limi.proofs.cells import enumerate_rules
from limi.proofs.people import Stage
from limi.proofs.question import Question
from limi.proofs.solver import Found, Solve, require_solver
from limi.proofs.splitting import Splitting
from limi.trees.bounds import bound_boxes
from limi.trees.lattice import Lattice

__all__ = ["solve_open"]

_MOST_REFUTED = 64  # candidates of a person that the model may refuse


@dataclass(eq=False)
class _Job:
    """One way in which a person may flip: a box, a partner and a direction."""

    person: int
    part: int
    solve: Solve
    falls: bool
    refused: int = field(default=0)


def solve_open(
    lattice: Lattice,
    question: Question,
    work: Splitting,
    *,
    seconds: float,
    workers: int,
    enough: Callable[[], bool] = lambda: False,
    on_answer: Callable[[], None] = lambda: None,
) -> None:
    """Ask the solver about everybody who is open, each for so many seconds."""
    require_solver()
    people = work.people
    open_people = iter(np.flatnonzero(people.is_open).tolist())
    with ThreadPoolExecutor(workers) as pool:
        running: dict[Future[bool], int] = {}

        def begin() -> None:
            while len(running) < workers and not enough():
                person = next(open_people, None)
                if person is None:
                    return
                chain = _Chain(lattice, question, work, person, seconds)
                running[pool.submit(chain.run)] = person

        begin()
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                person = running.pop(future)
                if future.result():
                    people.prove(np.array([person]), Stage.SOLVER)
                on_answer()
            begin()


class _Chain:
    """All ways in which one person may flip, one after the other."""

    def __init__(
        self, lattice: Lattice, question: Question, work: Splitting, person: int, seconds: float
    ) -> None:
        self._lattice, self._question, self._work = lattice, question, work
        self._person, self._seconds = person, seconds

    def run(self) -> bool:
        """Is it proven that nobody flips? Stops at the first flip, or when the time is over."""
        jobs = list(self._jobs())
        share = self._seconds / max(1, len(jobs))
        proven = True
        for job in jobs:
            proven &= self._settle(job, share)
            if not self._work.people.is_open[self._person]:
                return False
        return proven

    def _jobs(self) -> Iterator[_Job]:
        question = self._question
        for part in np.flatnonzero(question.person == self._person).tolist():
            boxes = question.boxes[np.array([part])]
            bounded = bound_boxes(self._lattice, boxes)
            for number in np.flatnonzero(boxes.there[0]).tolist():
                low, high = boxes.as_partner(number)
                allowed = enumerate_rules(self._lattice, question, part, number, self._work.people)
                for falls, may in ((True, bounded.may_fall), (False, bounded.may_rise)):
                    if may[0, number]:
                        solve = Solve(
                            self._lattice,
                            boxes.low[0],
                            boxes.high[0],
                            low[0],
                            high[0],
                            boxes.moving,
                            allowed,
                        )
                        yield _Job(self._person, part, solve, falls)

    def _settle(self, job: _Job, seconds: float) -> bool:
        """Is it proven that nobody flips in this way?"""
        while True:
            found = job.solve.find_flip(falls=job.falls, seconds=seconds)
            if found.status == "nothing":
                return True
            if found.status == "late" or self._replay(job, found):
                return False
            job.refused += 1
            if job.refused > _MOST_REFUTED or not self._work.is_plain:
                return False  # which rows of the leaves the rules refuse is not known
            # Rows with the same leaves have the same scores: what one does not, none does.
            job.solve.refuted.append(found.leaves)

    def _replay(self, job: _Job, found: Found) -> bool:
        assert found.row is not None
        part = np.array([job.part])
        rows = self._work.rows_at(part, found.row[None])
        with self._work.lock:
            person = np.array([self._person])
            return bool(self._work.people.replay(person, rows, Stage.SOLVER).any())

"""People decided block by block, in this process or by workers: the same answers.

A worker has the model and has read its trees once. A job is a block of people, who go through all
stages there; what comes back is what became known of them. The random numbers of a block depend on
its number and not on who decides it, so a block whose worker was killed is decided again alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from limi.models._base import Reopens
from limi.models.target import Target
from limi.proofs.alone import mark_alone
from limi.proofs.averaged import Averaging, find_averaging, prove_by_averaging
from limi.proofs.near import Near
from limi.proofs.networks import Network, NetworkProof, find_network
from limi.proofs.people import People
from limi.proofs.question import ask_about, find_followed
from limi.proofs.solving import solve_open
from limi.proofs.splitting import Splitting
from limi.search.ahead import Answered, Recorder
from limi.search.spread import Opened
from limi.streams import Stream
from limi.trees.lattice import Lattice, build_lattice
from limi.trees.reading import read_trees
from limi.types import Rows, Scores

__all__ = ["Block", "Deciding", "Effort", "Means", "find_means"]

Means = Averaging | Network | Lattice
"""What a model was read as."""


@dataclass(frozen=True)
class Effort:
    """How hard to try for a person, and from where randomness comes."""

    max_boxes: int
    seconds_each: float  # of the solver
    solves: int  # people whom the solver works on at the same time; 0 for no solver
    seed: int


class Block:
    """Some people, and the seconds that are left for them: those that are left when it is sent."""

    def __init__(self, number: int, rows: Rows, left: Callable[[], float | None]) -> None:
        self.number, self.rows, self.left = number, rows, left

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpack, (self.number, self.rows, self.left())


def _unpack(number: int, rows: Rows, seconds: float | None) -> Block:
    """A block as it arrives, whose time runs from now on."""
    start = time.perf_counter()
    return Block(
        number, rows, lambda: None if seconds is None else seconds - (time.perf_counter() - start)
    )


def find_means(target: Target, some: Rows) -> Means:
    """What a target is to a proof; BadModel where it is nothing of which anything is proven.

    `some` are rows of the table, of which the first is asked about.
    """
    found: Means | None = find_averaging(target) or find_network(target)
    if found is None:
        schema = target.codec.schema
        found = build_lattice(read_trees(target), some[:1], find_followed(schema))
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Deciding:
    """The work: a block of people is taken through all stages."""

    target: Target
    near: Near
    effort: Effort
    some: Rows  # a row of the table
    means: Means | None = None  # None until it has arrived where it is done
    opened: Opened | None = None  # of a file
    is_logged: bool = False  # are all answers of the model wanted too?

    @property
    def forks(self) -> bool:
        """All but what makes frames does, or is opened again."""
        return self.target.codec.forks

    @property
    def luggage(self) -> Any:
        """The model's file where there is one, else the model; both are read again there."""
        bare = replace(self, means=None)
        return bare if self.opened is None else _ByFile(self.opened, bare._without_target())

    def _without_target(self) -> dict[str, Any]:
        names = ("near", "effort", "some", "is_logged")
        return {name: getattr(self, name) for name in names}

    def arrive(self) -> Deciding:
        """The same in this process: opened again where its library does not outlive a fork."""
        model = self.target.model
        if isinstance(model, Reopens):
            return replace(self, target=replace(self.target, model=model.reopened()))._read()
        return self if self.means is not None else self._read()

    def _read(self) -> Deciding:
        return replace(self, means=find_means(self.target, self.some))

    def __call__(self, block: Block | Rows) -> tuple[People, Answered | None] | None:
        """What becomes known of a block, and what the model answered on the way; of bare rows, for
        a trial, nothing."""
        if not isinstance(block, Block):
            self.target.score(block)
            return None

        def is_late() -> bool:
            left = block.left()
            return left is not None and left < 0

        score: Callable[[Rows], Scores] = self.target.score
        asked = Recorder(score) if self.is_logged else score
        people = People(self.target.codec.schema, block.rows, asked)
        if not is_late():
            # Solvers of several workers share the cores already.
            alone = replace(self.effort, solves=min(1, self.effort.solves))
            replace(self, effort=alone).decide(people, block.number, is_late)
        return people, asked.answered if isinstance(asked, Recorder) else None

    def decide(
        self,
        people: People,
        number: int,
        is_late: Callable[[], bool] = lambda: False,
        tell: Callable[[str], None] = lambda phase: None,
    ) -> None:
        """Take people through all stages, as long as there is time."""
        means = self.means
        if isinstance(means, Lattice):
            self._decide_by_trees(means, people, number, is_late, tell)
        elif isinstance(means, Network):
            proof = NetworkProof(means, self.near, people)
            rounds = self.effort.max_boxes
            proof.run(rounds, enough=is_late, on_round=lambda: tell("bounds and cuts"))
            people.slack = proof.slack
        else:
            assert means is not None
            prove_by_averaging(means, self.near, people, is_late)
        mark_alone(people, self.near)

    def _decide_by_trees(
        self,
        lattice: Lattice,
        people: People,
        number: int,
        is_late: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> None:
        effort = self.effort
        question = ask_about(lattice, self.near, people.rows)
        work = Splitting(lattice, question, people, Stream.PROOFS.rng(effort.seed, 1, number))
        frontier = work.begin()
        tell("bounds and cuts")
        work.go_on(
            frontier, effort.max_boxes, enough=is_late, on_round=lambda: tell("bounds and cuts")
        )
        if effort.solves and people.is_open.any() and not is_late():
            solve_open(
                lattice,
                question,
                work,
                seconds=effort.seconds_each,
                workers=effort.solves,
                enough=is_late,
                on_answer=lambda: tell("the solver"),
            )


@dataclass(frozen=True)
class _ByFile:
    """The same work, of a model that is opened from its file where it arrives."""

    opened: Opened
    told: dict[str, Any]

    def arrive(self) -> Deciding:
        """The work with the model of the file, read."""
        return Deciding(target=self.opened.arrive().target, **self.told)._read()

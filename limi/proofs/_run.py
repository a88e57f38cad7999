"""One call from a model made of trees and a table to answers, person by person.

People are taken in blocks. For each block come bounds of whole neighbourhoods, a short search where
these do not decide, cuts within a number of boxes, and the solver within some seconds for a person.
What is known of a block is kept in the draft of the run folder, so that a killed run goes on there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from limi.audits.audit import Out
from limi.audits.drafts import Draft
from limi.audits.problem import Problem, prepare
from limi.audits.run_folder import FORMAT, digest, versions
from limi.errors import InvalidInput
from limi.models import Meaning
from limi.models.target import settling_rows
from limi.proofs._result import Domain, Proof
from limi.proofs._store import Store
from limi.proofs.alone import mark_alone
from limi.proofs.averaged import Averaging, find_averaging, prove_by_averaging
from limi.proofs.domain import bound_domain
from limi.proofs.near import Near, NearBy, parse_near
from limi.proofs.networks import Network, NetworkProof, find_network
from limi.proofs.people import Answer, People
from limi.proofs.question import ask_about, find_followed
from limi.proofs.solver import require_solver
from limi.proofs.solving import solve_open
from limi.proofs.splitting import Splitting
from limi.search.answer_log import AnswerLog
from limi.search.budget import check_seed
from limi.streams import Stream
from limi.system import cores
from limi.table.frames import Frame
from limi.table.partners import expand
from limi.table.rule_checks import GivenConstraints
from limi.table.schema import Schema
from limi.trees.lattice import Lattice, build_lattice
from limi.trees.reading import Reading, read_trees
from limi.types import Index, Rows, Scores, Value

__all__ = ["Progress", "certify"]

DEFAULT_ROWS = 1000
DEFAULT_BOXES = 4096
DEFAULT_SECONDS_EACH = 10.0
DEFAULT_DOMAIN_SECONDS = 60.0
_BLOCK = 512  # people
_CONFORM_ROWS = 2000


@dataclass(frozen=True)
class Progress:
    """How far a proof has come; the truth lies between the ends, whenever one looks."""

    people: int
    proven: int
    flips: int
    undecided: int  # looked at, and open
    phase: str

    @property
    def ends(self) -> tuple[float, float]:
        """Shares between which those people lie in whose neighbourhood somebody flips."""
        return self.flips / max(1, self.people), 1 - self.proven / max(1, self.people)


def certify(
    model: Any,
    frame: Frame,
    *,
    protected: str | Sequence[str] | Mapping[str, Any],
    target: str | None = None,
    favorable: Value | Sequence[Value] | None = None,
    output: Meaning | None = None,
    decision: str | None = None,
    near: NearBy = None,
    rows: int | None = DEFAULT_ROWS,
    domain: bool = False,
    domain_seconds: float = DEFAULT_DOMAIN_SECONDS,
    schema: Schema | None = None,
    constraints: GivenConstraints = (),
    max_boxes: int = DEFAULT_BOXES,
    seconds_each: float = DEFAULT_SECONDS_EACH,
    max_seconds: float | None = None,
    workers: int | None = None,
    seed: int = 0,
    out: str | Path | Out | None = None,
    force: bool = False,
    resume: bool = False,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    table_name: str = "table",
    command: str = "",
    on_progress: Callable[[Progress], None] = lambda progress: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Proof:
    """Prove for people of a table that nobody near them flips, or show somebody who does.

    `near` says which columns of a person may move and how far: `"age=5,education=any"`, or a
    mapping; by default numbers, by a tenth of their standard deviation or one step. `rows` people
    are drawn from the table, or all of them with None. A neighbourhood is cut into at most
    `max_boxes` boxes. What is still open goes to a solver for `seconds_each`, `workers` people at a
    time: 0 for no solver, by default one per core if the solver is installed. `domain` also bounds
    the largest gap between scores anywhere in the table's domain. Everything else is as for
    `limi.audit`.
    """
    start = clock()
    _check(rows, max_boxes, seconds_each, max_seconds, workers, domain_seconds)
    check_seed(seed)
    if domain or workers:
        require_solver()
    folder = out if isinstance(out, Out) or out is None else Out(out, force=force, resume=resume)
    draft = None if folder is None else folder.draft()
    problem = prepare(
        model,
        frame,
        protected=protected,
        target=target,
        favorable=favorable,
        output=output,
        decision=decision,
        schema=schema,
        constraints=constraints,
        trust_pickle=trust_pickle,
        trust=trust,
        table_name=table_name,
        clock=clock,
    )
    plan = _Plan(
        problem=problem,
        near=parse_near(problem.schema, problem.rows, near),
        chosen=_choose(problem.rows, rows, seed),
        max_boxes=max_boxes,
        seconds_each=seconds_each,
        max_seconds=max_seconds,
        workers=_count_workers() if workers is None else workers,
        domain_seconds=domain_seconds if domain else 0.0,
        seed=seed,
        command=command,
        on_progress=on_progress,
        clock=clock,
        start=start,
    )
    with cores.share_cores():
        if draft is None:
            return _Work(plan, problem.target.score, None).run()
        with draft:
            draft.settle_on(plan.manifest)
            journal = AnswerLog(draft.log, problem.target.score)
            proof = _Work(plan, journal.score, draft).run()
            draft.searched = True
            proof = replace(proof, notes=(*proof.notes, *journal.notes))
            proof.write(draft)
            return proof


def _check(
    rows: int | None,
    max_boxes: int,
    seconds_each: float,
    max_seconds: float | None,
    workers: int | None,
    domain_seconds: float,
) -> None:
    if rows is not None and rows < 1:
        raise InvalidInput(
            f"rows is {rows}; it is the number of people to ask about and must be at least 1"
        )
    if max_boxes < 1:
        raise InvalidInput(f"max-boxes is {max_boxes}; it must be at least 1")
    if workers is not None and workers < 0:
        raise InvalidInput(f"workers is {workers}; it must be 0 (no solver) or more")
    times = {
        "seconds-each": seconds_each,
        "max-seconds": max_seconds,
        "domain-seconds": domain_seconds,
    }
    for name, value in times.items():
        if value is not None and not value > 0:
            raise InvalidInput(f"{name} is {value:g}; it must be above 0")


def _count_workers() -> int:
    """One for each core; none where there is no solver."""
    return cores.n_cores() if find_spec("ortools") else 0


def _choose(table: Rows, n: int | None, seed: int) -> Index:
    """Places of the people that are asked about."""
    if n is None or n >= len(table):
        return np.arange(len(table))
    return np.sort(Stream.PROOFS.rng(seed, 0).choice(len(table), n, replace=False))


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """A proof with all its settings."""

    problem: Problem
    near: Near
    chosen: Index
    max_boxes: int
    seconds_each: float
    max_seconds: float | None
    workers: int
    domain_seconds: float
    seed: int
    command: str
    on_progress: Callable[[Progress], None]
    clock: Callable[[], float]
    start: float

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self.clock() - self.start

    @property
    def late(self) -> bool:
        """Is the time over?"""
        return self.max_seconds is not None and self.seconds > self.max_seconds

    @property
    def manifest(self) -> dict[str, Any]:
        """What the run is made of; equal `config_sha256` means the same question."""
        problem = self.problem
        config = {
            "proof": True,
            "near": self.near.said,
            "people": digest(self.chosen.tobytes()),
            "max_boxes": self.max_boxes,
            "seconds_each": self.seconds_each,
            "solver": self.workers > 0,
            "domain": self.domain_seconds,
            "seed": self.seed,
            "decision": str(problem.target.rule),
            "favorable": str(problem.favorable),
            "target": problem.label_column,
            "table": problem.table_name,
            "model": problem.model_name,
            **problem.hashes(),
        }
        text = json.dumps(config, sort_keys=True, default=str)
        told = {"format": FORMAT, "config_sha256": digest(text.encode()), **config}
        return told | {"versions": versions(), "command": self.command}


def _say_open(plan: _Plan, answer: Any) -> list[str]:
    """A sentence where people are open that the solver might decide."""
    late = int((answer == Answer.UNDECIDED).sum())
    if plan.workers or not late or find_spec("ortools"):
        return []
    return [
        f"{late:,} people are undecided, and the solver that might decide them is not installed; "
        "try: pip install 'limi[certify]'"
    ]


class _Work:
    """A proof at work."""

    def __init__(self, plan: _Plan, score: Callable[[Rows], Scores], draft: Draft | None) -> None:
        self._plan, self._score = plan, score
        self._store = None if draft is None else Store(draft.folder, plan.problem.schema)
        self._counts = np.zeros(4, dtype=np.int64)
        self._queries = 0
        self._slack = 0.0

    def run(self) -> Proof:
        """All blocks, and the whole domain where it is asked for."""
        plan, problem = self._plan, self._plan.problem
        averaging = find_averaging(problem.target)
        if averaging is not None:
            self._refuse_domain("is averaged")
            people = self._take_all(partial(self._decide_by_averaging, averaging))
            return self._sum_up(averaging, people, None, 0.0)
        network = find_network(problem.target)
        if network is not None:
            self._refuse_domain("is a network")
            apart = network.conform(self._choose_rows())
            people = self._take_all(partial(self._decide_by_network, network))
            return self._sum_up(network, people, apart, self._slack)
        reading = read_trees(problem.target)
        rows = self._choose_rows()
        apart = reading.conform(rows)
        lattice = build_lattice(reading, problem.rows[:1], find_followed(problem.schema))
        lattice.conform(rows)
        people = self._take_all(partial(self._decide_by_trees, lattice))
        proof = self._sum_up(reading, people, apart, reading.ensemble.slack)
        if not plan.domain_seconds:
            return proof
        self._tell("the whole domain")
        started = plan.seconds
        found = bound_domain(lattice, problem, plan.domain_seconds, max(1, plan.workers))
        domain = Domain(
            found.reached,
            found.bound,
            float(min(reading.widest(found.bound), 1.0)),
            found.optimal,
            plan.seconds - started,
        )
        return replace(proof, domain=domain, seconds=plan.seconds)

    def _refuse_domain(self, what: str) -> None:
        if self._plan.domain_seconds:
            raise InvalidInput(
                "the largest gap in the whole domain can be bounded only for models made of "
                f"trees, and this one {what}; leave --domain out"
            )

    def _choose_rows(self) -> Rows:
        """Rows of the table and partners of theirs, on which a reading is held to the model."""
        problem = self._plan.problem
        some = problem.rows[settling_rows(len(problem.rows), _CONFORM_ROWS)]
        asked, is_open = expand(problem.schema, some[:64], problem.schema.combinations)
        partners = asked.reshape(-1, asked.shape[2]) if is_open is None else asked[is_open]
        rows = np.concatenate([some, partners[:_CONFORM_ROWS]])
        self._queries += len(rows)
        return rows

    def _take_all(self, decide: Callable[[People, int], None]) -> list[People]:
        chosen = self._plan.chosen
        blocks = np.split(chosen, range(_BLOCK, len(chosen), _BLOCK))
        return [self._take(number, block, decide) for number, block in enumerate(blocks)]

    def _take(self, number: int, block: Index, decide: Callable[[People, int], None]) -> People:
        """Decide a block of people, or take up what is known of it."""
        plan, problem = self._plan, self._plan.problem
        people = People(problem.schema, problem.rows[block], self._score)
        if self._store is None or not self._store.restore(number, people):
            if not plan.late:
                decide(people, number)
                mark_alone(people, plan.near)
            if self._store is not None and not plan.late:
                self._store.keep(number, people)
        self._queries += people.queries
        for answer in Answer:
            self._counts[answer] += int((people.answer == answer).sum())
        self._tell("bounds and cuts")
        return people

    def _decide_by_trees(self, lattice: Lattice, people: People, number: int) -> None:
        plan = self._plan
        question = ask_about(lattice, plan.near, people.rows)
        work = Splitting(lattice, question, people, Stream.PROOFS.rng(plan.seed, 1, number))

        def tell() -> None:
            self._tell("bounds and cuts", people)

        frontier = work.begin()
        tell()
        work.go_on(frontier, plan.max_boxes, enough=lambda: plan.late, on_round=tell)
        if plan.workers and people.is_open.any() and not plan.late:
            solve_open(
                lattice,
                question,
                work,
                seconds=plan.seconds_each,
                workers=plan.workers,
                enough=lambda: plan.late,
                on_answer=lambda: self._tell("the solver", people),
            )

    def _decide_by_network(self, network: Network, people: People, number: int) -> None:
        plan = self._plan
        work = NetworkProof(network, plan.near, people)
        work.run(
            plan.max_boxes,
            enough=lambda: plan.late,
            on_round=lambda: self._tell("bounds and cuts", people),
        )
        self._slack = max(self._slack, work.slack)

    def _decide_by_averaging(self, averaging: Averaging, people: People, number: int) -> None:
        prove_by_averaging(averaging, self._plan.near, people, lambda: self._plan.late)

    def _tell(self, phase: str, people: People | None = None) -> None:
        counts = self._counts.copy()
        if people is not None:
            for answer in Answer:
                counts[answer] += int((people.answer == answer).sum())
        self._plan.on_progress(
            Progress(
                len(self._plan.chosen),
                int(counts[Answer.PROVEN]),
                int(counts[Answer.FLIPS]),
                int(counts[Answer.UNDECIDED]),
                phase,
            )
        )

    def _sum_up(
        self,
        reading: Reading | Network | Averaging,
        blocks: list[People],
        apart: float | None,
        slack: float,
    ) -> Proof:
        plan, problem = self._plan, self._plan.problem

        def joined(name: str) -> Any:
            return np.concatenate([getattr(people, name) for people in blocks])

        scores = np.concatenate([people.own.scores for people in blocks])
        own = np.concatenate([people.own.score for people in blocks])
        gaps = np.nan_to_num(np.abs(scores - own[:, None])).max(axis=1, initial=0.0)
        answer = joined("answer")
        return Proof(
            problem=problem,
            rows=problem.rows[plan.chosen],
            chosen=plan.chosen,
            answer=answer,
            stage=joined("stage"),
            score=own,
            gap=np.minimum(reading.widest(joined("gap")), 1.0),
            own_gap=gaps,
            witness=joined("witness"),
            partner=joined("partner"),
            witness_scores=joined("scores"),
            kind=reading.kind,
            near=plan.near.said,
            slack=slack,
            apart=apart,
            seed=plan.seed,
            queries=self._queries,
            seconds=plan.seconds,
            stop="seconds" if plan.late and (answer == Answer.UNDECIDED).any() else "decided",
            notes=(*problem.notes, *problem.target.notes, *_say_open(plan, answer)),
            command=plan.command,
            manifest=plan.manifest,
        )

"""One call from a model made of trees and a table to answers, person by person.

People are taken in blocks. For each block come bounds of whole neighbourhoods, a short search where
these do not decide, cuts within a number of boxes, and the solver within some seconds for a person.
What is known of a block is kept in the draft of the run folder, so that a killed run goes on there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from limi.audits.audit import Out
from limi.audits.drafts import Draft
from limi.audits.hiring import want_workers
from limi.audits.problem import Problem, prepare
from limi.audits.run_folder import FORMAT, digest, versions
from limi.errors import InvalidInput
from limi.models import Meaning
from limi.models.target import settling_rows
from limi.proofs._result import Domain, Proof
from limi.proofs._store import Store
from limi.proofs.averaged import Averaging
from limi.proofs.deciding import Block, Deciding, Effort, Means, find_means
from limi.proofs.domain import bound_domain
from limi.proofs.near import Near, NearBy, parse_near
from limi.proofs.networks import Network
from limi.proofs.people import Answer, People
from limi.proofs.solver import require_solver
from limi.search.ahead import Answered
from limi.search.answer_log import AnswerLog
from limi.search.budget import Budget, check_seed
from limi.search.spread import try_rows
from limi.streams import Stream
from limi.system import cores
from limi.system.arguments import checked
from limi.table.frames import Frame
from limi.table.partners import expand
from limi.table.rule_checks import GivenConstraints
from limi.table.schema import Schema
from limi.trees.lattice import Lattice
from limi.types import Index, Rows, Scores, Value
from limi.workers import Crew, Failed, Stuck, Trial, count_workers, open_executor

__all__ = ["Progress", "certify"]

DEFAULT_ROWS = 1000
DEFAULT_BOXES = 4096
DEFAULT_SECONDS_EACH = 10.0
DEFAULT_DOMAIN_SECONDS = 60.0
_BLOCK = 128  # people who are decided together: as quick as more, and eight workers share 1,000
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


@checked
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
    drop: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    redact: bool | str | Sequence[str] = True,
    max_boxes: int = DEFAULT_BOXES,
    seconds_each: float = DEFAULT_SECONDS_EACH,
    max_seconds: float | None = None,
    solver: bool | None = None,
    workers: int | str | None = None,
    cluster: str | None = None,
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
    `max_boxes` boxes. What is still open goes to a solver for `seconds_each`: with `solver=True`
    always, with False never, by default if it is installed. Without `workers`, the solver works on
    as many people at a time as there are cores; with them, each worker decides people on its own,
    with the same answers. `domain` also bounds the largest gap between scores anywhere in the
    table's domain. Everything else is as for `limi.audit`.
    """
    start = clock()
    _check(rows, max_boxes, seconds_each, max_seconds, domain_seconds)
    check_seed(seed)
    has_workers = _want_workers(model, workers, cluster)
    if domain or solver:
        require_solver()
    folder = Out.of(out, force=force, resume=resume)
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
        drop=drop,
        only=only,
        redact=redact,
        trust_pickle=trust_pickle,
        trust=trust,
        table_name=table_name,
        clock=clock,
    )
    plan = _Plan(
        problem=problem,
        near=parse_near(problem.schema, problem.rows, near),
        chosen=_choose(problem.rows, rows, seed),
        effort=Effort(max_boxes, seconds_each, _count_solves(solver, workers), seed),
        max_seconds=max_seconds,
        domain_seconds=domain_seconds if domain else 0.0,
        domain_solves=cores.n_cores() if workers is None else count_workers(workers),
        command=command,
        on_progress=on_progress,
        clock=clock,
        start=start,
    )
    means = find_means(problem.target, problem.rows[:1])
    if domain:
        _refuse_domain(means)
    work = _Work(plan, means)
    with ExitStack() as ending:
        ending.enter_context(cores.share_cores())
        apart = work.check()
        crew = None
        if has_workers:
            # Before the folder is locked: whoever is forked later holds the lock a while longer.
            deciding = plan.deciding(means, is_logged=draft is not None)
            crew = ending.enter_context(_hire(deciding, workers, cluster))
            crew.hire(len(plan.blocks))
            crew.try_out(Trial(*try_rows(problem.target.score, problem.rows)))
        if draft is None:
            return work.run(apart, crew)
        ending.enter_context(draft)
        draft.settle_on(plan.manifest)
        journal = AnswerLog(draft.log, problem.target.score)
        proof = work.run(apart, crew, journal, draft)
        draft.searched = True
        proof = replace(proof, notes=(*proof.notes, *journal.notes))
        proof.write(draft)
        return proof


def _want_workers(model: Any, workers: int | str | None, cluster: str | None) -> bool:
    """Are people decided by workers? InvalidInput where number, cluster or model make no sense."""
    if workers is not None and str(workers) == "0":
        raise InvalidInput(
            "workers is 0; use at least 1, or auto for one on each core (--no-solver leaves out "
            "the solver)"
        )
    return want_workers(model, workers, cluster, "cpu", Budget())


@contextmanager
def _hire(deciding: Deciding, workers: int | str | None, cluster: str | None) -> Iterator[Crew]:
    """Workers that decide people, and end with the block."""
    executor = open_executor(workers, cluster)
    assert executor is not None  # because workers are wanted
    try:
        with Crew(executor, deciding) as crew:
            yield crew
    finally:
        executor.close()


def _refuse_domain(means: Means) -> None:
    """InvalidInput where the gap in the whole domain cannot be bounded."""
    if not isinstance(means, Lattice):
        what = "is averaged" if isinstance(means, Averaging) else "is a network"
        raise InvalidInput(
            "the largest gap in the whole domain can be bounded for models made of trees, and "
            f"this one {what}; leave --domain out"
        )


def _check(
    rows: int | None,
    max_boxes: int,
    seconds_each: float,
    max_seconds: float | None,
    domain_seconds: float,
) -> None:
    if rows is not None and rows < 1:
        raise InvalidInput(
            f"rows is {rows}; it is the number of people to ask about and must be at least 1"
        )
    if max_boxes < 1:
        raise InvalidInput(f"max-boxes is {max_boxes}; it must be at least 1")
    times = {
        "seconds-each": seconds_each,
        "max-seconds": max_seconds,
        "domain-seconds": domain_seconds,
    }
    for name, value in times.items():
        if value is not None and not value > 0:
            raise InvalidInput(f"{name} is {value:g}; it must be above 0")


def _count_solves(solver: bool | None, workers: int | str | None) -> int:
    """People whom the solver works on at the same time: none where there is no solver."""
    if solver is False or (solver is None and not find_spec("ortools")):
        return 0
    return cores.n_cores() if workers is None else 1


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
    effort: Effort
    max_seconds: float | None
    domain_seconds: float
    domain_solves: int  # threads of the solver for the whole domain
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

    def left(self) -> float | None:
        """Seconds that are left; None where there is no limit."""
        return None if self.max_seconds is None else self.max_seconds - self.seconds

    @property
    def blocks(self) -> list[Index]:
        """Places of the people that are decided together."""
        return np.split(self.chosen, range(_BLOCK, len(self.chosen), _BLOCK))

    def deciding(self, means: Means, *, is_logged: bool = False) -> Deciding:
        """The work on a block."""
        problem = self.problem
        return Deciding(
            target=problem.target,
            near=self.near,
            effort=self.effort,
            some=problem.rows[:1],
            means=means,
            opened=problem.opened,
            is_logged=is_logged,
        )

    @property
    def manifest(self) -> dict[str, Any]:
        """What the run is made of; equal `config_sha256` means the same question."""
        problem = self.problem
        config = {
            "proof": True,
            "near": self.near.said,
            "people": digest(self.chosen.tobytes()),
            "people_at_once": _BLOCK,
            "max_boxes": self.effort.max_boxes,
            "seconds_each": self.effort.seconds_each,
            "solver": self.effort.solves > 0,
            "domain": self.domain_seconds,
            "seed": self.effort.seed,
            "decision": str(problem.target.rule),
            "favorable": str(problem.favorable),
            "target": problem.label_column,
            "table": problem.table_name,
            "model": problem.model_name,
            **({"hidden": list(problem.hidden)} if problem.hidden else {}),
            **problem.hashes(),
        }
        text = json.dumps(config, sort_keys=True, default=str)
        told = {"format": FORMAT, "config_sha256": digest(text.encode()), **config}
        return told | {"versions": versions(), "command": self.command}


def _share(crew: Crew, blocks: Sequence[Block]) -> Iterator[tuple[int, People, Answered | None]]:
    """Blocks as workers decide them; what a worker raised is raised here."""
    for place, result in crew.each(blocks):
        if isinstance(result, Failed):
            raise result.explain(f"decided {_BLOCK} people", "fewer --max-boxes")
        yield blocks[place].number, *result


def _say_open(plan: _Plan, answer: Any) -> list[str]:
    """A sentence where people are open that the solver might decide."""
    late = int((answer == Answer.UNDECIDED).sum())
    if plan.effort.solves or not late or find_spec("ortools"):
        return []
    return [
        f"{late:,} people are undecided, and the solver that might decide them is not installed; "
        "try: pip install 'limi[certify]'"
    ]


class _Work:
    """A proof at work."""

    def __init__(self, plan: _Plan, means: Means) -> None:
        self._plan, self._means = plan, means
        self._counts = np.zeros(4, dtype=np.int64)
        self._notes: list[str] = []
        self._queries = 0

    def check(self) -> float | None:
        """Hold what was read to the model: how far they are apart on rows; None if not read."""
        means = self._means
        if isinstance(means, Averaging):
            return None
        rows = self._choose_rows()
        if isinstance(means, Network):
            return means.conform(rows)
        apart = means.reading.conform(rows)
        means.conform(rows)
        return apart

    def run(
        self,
        apart: float | None,
        crew: Crew | None = None,
        journal: AnswerLog | None = None,
        draft: Draft | None = None,
    ) -> Proof:
        """All blocks, and the whole domain where it is asked for."""
        plan, means = self._plan, self._means
        score = plan.problem.target.score if journal is None else journal.score
        with ExitStack() as ending:
            store = None if draft is None else ending.enter_context(closing(Store(draft.folder)))
            blocks = self._take_all(crew, score, journal, store)
        proof = self._sum_up(blocks, apart)
        if not plan.domain_seconds:
            return proof
        assert isinstance(means, Lattice)
        self._tell("the whole domain")
        started = plan.seconds
        found = bound_domain(means, plan.problem, plan.domain_seconds, plan.domain_solves)
        domain = Domain(
            found.reached,
            found.bound,
            float(min(means.reading.widest(found.bound), 1.0)),
            found.optimal,
            plan.seconds - started,
        )
        return replace(proof, domain=domain, seconds=plan.seconds)

    def _choose_rows(self) -> Rows:
        """Rows of the table and partners of theirs, on which a reading is held to the model."""
        problem = self._plan.problem
        some = problem.rows[settling_rows(len(problem.rows), _CONFORM_ROWS)]
        asked, is_open = expand(problem.schema, some[:64], problem.schema.combinations)
        partners = asked.reshape(-1, asked.shape[2]) if is_open is None else asked[is_open]
        rows = np.concatenate([some, partners[:_CONFORM_ROWS]])
        self._queries += len(rows)
        return rows

    def _take_all(
        self,
        crew: Crew | None,
        score: Callable[[Rows], Scores],
        journal: AnswerLog | None,
        store: Store | None,
    ) -> list[People]:
        """Decide all blocks, or take up what is known of them."""
        plan, problem = self._plan, self._plan.problem
        blocks = [Block(n, problem.rows[part], plan.left) for n, part in enumerate(plan.blocks)]
        known: dict[int, People] = {}

        def note(number: int, people: People) -> None:
            known[number] = people
            self._queries += people.queries
            for answer in Answer:
                self._counts[answer] += int((people.answer == answer).sum())
            self._tell("bounds and cuts")

        for block in blocks:
            if store is not None and block.number in store:
                people = People(problem.schema, block.rows, score)
                store.restore(block.number, people)
                note(block.number, people)
        waiting = [block for block in blocks if block.number not in known]
        for number, people, answered in self._decide(waiting, crew, score):
            if journal is not None and answered is not None:
                journal.add(answered.hashes, answered.scores)
            if store is not None and not plan.late:
                store.keep(number, people)
            note(number, people)
        return [known[number] for number in range(len(blocks))]

    def _decide(
        self, blocks: Sequence[Block], crew: Crew | None, score: Callable[[Rows], Scores]
    ) -> Iterator[tuple[int, People, Answered | None]]:
        """Blocks as they are decided, by workers as long as these answer."""
        decided: set[int] = set()
        if crew is not None:
            try:
                for told in _share(crew, blocks):
                    decided.add(told[0])
                    yield told
            except Stuck as error:
                self._notes.append(f"{error}, so people were decided in one process from then on")
        yield from self._decide_here([one for one in blocks if one.number not in decided], score)

    def _decide_here(
        self, blocks: Sequence[Block], score: Callable[[Rows], Scores]
    ) -> Iterator[tuple[int, People, None]]:
        """Decide blocks one after the other."""
        plan, deciding = self._plan, self._plan.deciding(self._means)
        for block in blocks:
            people = People(plan.problem.schema, block.rows, score)

            def tell(phase: str, people: People = people) -> None:
                self._tell(phase, people)

            if not plan.late:
                deciding.decide(people, block.number, lambda: plan.late, tell)
            yield block.number, people, None

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

    def _sum_up(self, blocks: list[People], apart: float | None) -> Proof:
        plan, problem, means = self._plan, self._plan.problem, self._means
        reading = means.reading if isinstance(means, Lattice) else means
        # That of a network depends on the neighbourhoods.
        slack = max(people.slack for people in blocks)
        slack = means.ensemble.slack if isinstance(means, Lattice) else slack

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
            seed=plan.effort.seed,
            queries=self._queries,
            seconds=plan.seconds,
            stop="seconds" if plan.late and (answer == Answer.UNDECIDED).any() else "decided",
            notes=(
                *problem.notes,
                *problem.target.notes,
                *self._notes,
                *_say_open(plan, answer),
            ),
            command=plan.command,
            manifest=plan.manifest,
        )

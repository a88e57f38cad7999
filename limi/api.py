"""One call from a model and a table to findings, rates and a report."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from limi import device as devices
from limi import generators, gradients, measures, methods, steadiness
from limi.budget import Budget, Stop
from limi.check import MAX_BATCH, Partner
from limi.decisions import differ
from limi.defaults import (
    BUDGETED_METHOD,
    DEFAULT_GENERATOR,
    DEFAULT_MAX_ROWS,
    DEFAULT_METHOD,
    MEASURED_ROWS,
)
from limi.drafts import Draft
from limi.engine import Progress, Run, check, run
from limi.errors import InvalidInput, listed
from limi.findings import Found
from limi.frames import Frame
from limi.generators import Generator
from limi.journal import Journal
from limi.metrics.individual import Rate, rate_of
from limi.metrics.naturalness import FEWEST_TO_JUDGE, Likeness, naturalness_at
from limi.models import Meaning
from limi.problems import Problem, prepare, protected_values, with_held_out
from limi.rates import Measured, measure
from limi.reading import is_file
from limi.report import pictures, wording
from limi.report.summary import Regions, Summary, directions, examples, regions
from limi.results import Result, draw_representative, files, representative_size
from limi.rows import KeySet, keys
from limi.schema import Schema
from limi.steadiness import Steadiness
from limi.store import FORMAT, digest, file_digest, versions
from limi.target import Target
from limi.task import Task
from limi.types import Mask, Rows, Scores, Value
from limi.where import Where, find_rules

__all__ = ["audit"]

_VERIFIED_AT_ONCE = 8192  # fixed, so that written scores do not depend on a run's batch size
_RATE_SHARE = 5  # a query budget spends at most one fifth on measuring rates
_CHECK_SHARE = 40  # four questions a row: a tenth of a budget to see whether the model is steady


def audit(
    model: Any,
    frame: Frame,
    *,
    protected: str | Sequence[str] | Mapping[str, Any],
    target: str | None = None,
    favorable: Value | None = None,
    output: Meaning | None = None,
    held_out: Frame | None = None,
    method: str | methods.Method | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    generator: str | Path | Generator | None = DEFAULT_GENERATOR,
    schema: Schema | None = None,
    max_rows: int | None = DEFAULT_MAX_ROWS,
    max_queries: int | None = None,
    max_findings: int | None = None,
    max_seconds: float | None = None,
    seed: int = 0,
    rate_rows: int = MEASURED_ROWS,
    partner: Partner = "widest",
    max_batch: int = MAX_BATCH,
    out: str | Path | None = None,
    force: bool = False,
    resume: bool = False,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    table_name: str = "table",
    held_out_name: str = "held-out rows",
    command: str = "",
    device: str = "auto",
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_step: Callable[[float, str], None] = lambda done, words: None,
) -> Result:
    """Test a model for decisions that flip when only protected values change.

    `model` is a fitted estimator, torch module, booster, function of a frame, or `"KIND:PLACE"`.
    `frame` is the table, `target` its label column and `favorable` the label people want.
    `output` says whether a function answers with labels or with favorable scores, where its
    answers do not tell.
    `held_out` are rows that the model has not seen, with the table's columns: rates and group
    metrics of people are then measured on them, and nothing else is.
    `protected` names columns, with values where not all are wanted: `["sex", "age=18-80:5"]`.
    `generator` imitates the table: a name (`limi list generators`), a saved file, an object, or
    None for none; it gives the natural rate, and rows to the methods that search among them.

    `method` is `"limi"` by default, or `"guided"` where `max_queries` is given.

    `device` is `"cpu"`, `"cuda"`, or `"auto"`: a GPU where target and generator can both use it.

    The same seed gives the same findings, whatever `max_batch` is. With `out`, a run folder is
    written; `resume=True` goes on with one that was interrupted.
    """
    # Now, because a model may go to another folder when it is loaded.
    draft = None if out is None else Draft.at(out, force=force, resume=resume)
    origin = None if draft is None else _way_back(draft.place)
    if method is None:
        method = DEFAULT_METHOD if max_queries is None else BUDGETED_METHOD
    chosen = methods.parse(method, settings) if isinstance(method, str) else method
    budget = Budget(
        max_rows=max_rows,
        max_queries=max_queries,
        max_findings=max_findings,
        max_seconds=max_seconds,
    )
    _check_counts(seed=seed, rate_rows=rate_rows, max_batch=max_batch)
    problem = prepare(
        model,
        frame,
        protected=protected,
        target=target,
        favorable=favorable,
        output=output,
        schema=schema,
        trust_pickle=trust_pickle,
        trust=trust,
        table_name=table_name,
    )
    if held_out is not None:
        problem = with_held_out(problem, held_out, held_out_name)
    place, asked = devices.settled(device, problem.target, generator)
    source = _GeneratorSource(generator, seed, place, on_step)
    plan = _Plan(
        problem, asked, chosen, budget, seed, rate_rows, partner, max_batch, command, source, origin
    )
    plan.check()
    if draft is None:
        return plan.result(plan.search(asked.score, on_progress))
    with draft:
        draft.settle_on(plan.manifest)
        journal = Journal(draft.log, asked.score)
        searched = plan.search(journal.score, on_progress)
        draft.searched = True
        if journal.replayed:
            searched.task.notes.append(journal.note)
        result = plan.result(searched)
        draft.finish(files(result), keep_journal=result.stop == Stop.INTERRUPTED)
    return result


@dataclass(frozen=True)
class _GeneratorSource:
    """Where the generator comes from: a name to fit, a file, an object, or nowhere."""

    given: str | Path | Generator | None
    seed: int
    device: str
    on_step: Callable[[float, str], None]

    @property
    def name(self) -> str | None:
        """What the report calls it."""
        if self.given is None or isinstance(self.given, (str, Path)):
            return None if self.given in (None, "none") else str(self.given)
        return self.given.kind

    @property
    def digest(self) -> str | None:
        """sha256 of the file it is read from, if it is."""
        given = self.given
        known = isinstance(given, (str, Path)) and is_file(given)
        return file_digest(Path(given)) if known else None  # type: ignore[arg-type]

    def check(self, problem: Problem) -> None:
        """InvalidInput where there is none of that name, or it is of other columns."""
        if self.name is None:
            return
        if not isinstance(self.given, (str, Path)):
            _fitting(self.given, problem.schema)
        elif not is_file(self.given):
            generators.get(str(self.given))

    def make(self, problem: Problem) -> Generator | None:
        """The generator, fitted to the problem's table where it has to be."""
        if self.name is None:
            return None
        if not isinstance(self.given, (str, Path)):
            return _fitting(self.given, problem.schema)
        if is_file(self.given):
            return _fitting(generators.load(self.given, device=self.device), problem.schema)
        module = generators.get(str(self.given))
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(2,)))
        made: Generator = module.fit(
            problem.rows, problem.schema, rng, device=self.device, on_step=self.on_step
        )
        return made


def _fitting(generator: Generator | None, schema: Schema) -> Generator | None:
    """A ready-made generator, held to the columns of the problem."""
    if generator is not None and generator.schema.columns != schema.columns:
        raise InvalidInput(
            "the generator was fitted to other columns than the model takes: "
            f"{listed(generator.schema.names)}; fit it on this table"
        )
    return generator


@dataclass(frozen=True)
class _Plan:
    """One audit with all its settings."""

    problem: Problem
    asked: Target  # the target on the device of the search; findings are checked again as given
    method: methods.Method
    budget: Budget
    seed: int
    rate_rows: int
    partner: Partner
    max_batch: int
    command: str
    source: _GeneratorSource
    origin: str | None = None  # the way from the run folder to where relative paths start

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The method's parameters."""
        return dataclasses.asdict(self.method)  # type: ignore[call-overload, no-any-return]

    def _own_population(self, steady: bool) -> str | None:
        """The population that the search itself samples.

        One that may stop at a number of findings is no sample of fixed size, so it counts for none;
        nor do flips that nobody has confirmed.
        """
        return self.method.population if steady and self.budget.max_findings is None else None

    @cached_property
    def method_name(self) -> str:
        """The name that `limi list methods` shows."""
        given: str | None = getattr(self.method, "name", None)  # a pair names its parts
        return given or type(self.method).__module__.rpartition(".")[2]

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What the run is made of; equal `config_sha256` means equal findings."""
        held = self.problem.held_out
        config = {
            "method": self.method_name,
            "settings": self.settings,
            "budget": dataclasses.asdict(self.budget),
            "seed": self.seed,
            "rate_rows": self.rate_rows,
            "partner": self.partner,
            "generator": self.source.name,
            "generator_sha256": self.source.digest,
            "device": self.source.device,
            "protected": protected_values(self.problem.schema),
            "target": self.problem.label_column,
            "favorable": self.problem.favorable,
            "output": self.problem.output,
            "table": self.problem.table_name,
            "held_out": None if held is None else held.name,
            "held_out_sha256": None if held is None else held.sha256,
            "model": self.problem.model_name,
            **self.problem.hashes(),
        }
        text = json.dumps(config, sort_keys=True, default=str)
        return {
            "format": FORMAT,
            "config_sha256": digest(text.encode()),
            **config,
            "labels_sha256": self.problem.labels_sha256,
            "max_batch": self.max_batch,
            "versions": versions(),
            "command": self.command,
            "origin": self.origin,
        }

    def check(self) -> None:
        """Refuse what cannot be run, before the model is asked and anything is written."""
        self.source.check(self.problem)
        have = self._task(self.asked.score).capabilities
        if self.source.name is not None:
            have |= {"generator"}
        check(self.method, have, len(self.problem.schema.combinations), self.budget)

    def _task(self, score: Callable[[Rows], Scores]) -> Task:
        return Task(
            self.problem.schema,
            score,
            self.problem.rows,
            partner=self.partner,
            max_batch=self.max_batch,
            gradients=gradients.of(self.asked),
        )

    def search(
        self, score: Callable[[Rows], Scores], on_progress: Callable[[Progress], None]
    ) -> _Searched:
        """Fit the generator, measure rates, then search."""
        pace = self._pace()
        task = self._task(score)
        start = time.perf_counter()
        if self.rate_rows or "generator" in self.method.needs:
            task.generator = self.source.make(self.problem)
            if self.source.device != "cpu":
                task.on_device = devices.together(self.asked, task.generator)
        prepared = time.perf_counter() - start
        allowed = self.budget.max_queries
        told = self._steadiness(score, pace)
        own = self._own_population(told.steady)
        measured = measure(
            task,
            [p for p in self._populations(task) if p != own],
            self.seed,
            rows=self._rate_rows(pace, task),
            max_queries=None if allowed is None else allowed // _RATE_SHARE,
            told=told,
            held_out=None if self.problem.held_out is None else self.problem.held_out.rows,
        )
        budget = self.budget
        if allowed is not None:
            budget = dataclasses.replace(budget, max_queries=max(1, allowed - measured.queries))
        ran = run(self.method, task, budget, self.seed, on_progress=on_progress)
        decided, asked = self._decided(task, measured, ran)
        return _Searched(ran, measured, task, prepared, told, decided, asked)

    def _decided(
        self, task: Task, measured: Measured, ran: Run
    ) -> tuple[measures.Decided | None, int]:
        """Decisions on rows of people, for metrics that compare groups, and queries for them.

        The rows of their rate were decided already. A search of the table itself has kept no
        decision that does not flip, so there as many rows are asked as a rate takes.
        """
        name, rows, labels = self.problem.people
        if name in measured.checked:
            score, index = measured.checked[name].score, measured.places[name]
            return measures.Decided.of(name, rows, score, labels, index), 0
        n = min(len(rows), self.rate_rows, MEASURED_ROWS)
        if self.budget.max_queries is not None:
            n = min(n, self.budget.max_queries - measured.queries - ran.queries)
        if n < 1 or self.budget.max_seconds is not None or ran.stop == Stop.INTERRUPTED:
            return None, 0
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(5,)))
        index = np.sort(rng.permutation(len(rows))[:n])
        starts = range(0, n, self.max_batch)
        scores = [task.score(rows[index[start : start + self.max_batch]]) for start in starts]
        return measures.Decided.of(name, rows, np.concatenate(scores), labels, index), n

    def _pace(self) -> float:
        """Seconds that the model takes for a row, seen while it is held to its contract."""
        start = time.perf_counter()
        asked = self.problem.target.contract(self.problem.rows)
        return (time.perf_counter() - start) / max(1, asked)

    def _steadiness(self, score: Callable[[Rows], Scores], pace: float) -> Steadiness:
        """How much of what the model answers moves when it is asked again.

        Asked through the journal, so that a resumed run goes the way that it went before.
        """
        n = steadiness.SAMPLED
        if self.budget.max_queries is not None:
            n = min(n, self.budget.max_queries // _CHECK_SHARE)
        if self.budget.max_seconds is not None:
            n = min(n, int(self.budget.max_seconds / _CHECK_SHARE / max(pace, 1e-9)))
        # In coarse steps, so that a clock that ticks a little otherwise changes nothing.
        n = max((size for size in (64, steadiness.SAMPLED) if size <= n), default=16)
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(9,)))
        return steadiness.sample(score, self.problem.rows, rng, n=n, max_batch=self.max_batch)

    def _rate_rows(self, pace: float, task: Task) -> int:
        """Rows to measure each rate on; fewer where they would outlast a fifth of the seconds."""
        if self.budget.max_seconds is None:
            return self.rate_rows
        per_row = pace * (len(task.schema.combinations) + 1) * len(self._populations(task))
        return min(self.rate_rows, int(self.budget.max_seconds / _RATE_SHARE / max(per_row, 1e-9)))

    def _populations(self, task: Task) -> list[str]:
        people = self.problem.people[0]
        return [people, "uniform", *(["natural"] if task.generator is not None else [])]

    def result(self, searched: _Searched) -> Result:
        """Check every finding again, then sum up."""
        found, dropped = self._verified(searched)
        found, judged_by = self._judged(found)
        where, shown = self._where(searched, found)
        summary = self._summary(searched, found, dropped, shown, judged_by)
        return Result(self.problem, found, summary, self.manifest, where.rules)

    def _verified(self, searched: _Searched) -> tuple[Found, _Dropped]:
        """Findings that flip when the model is asked again; every time, where it is not steady."""
        target, found = self.problem.target, searched.run.findings.all()
        again, flips = _asked_again(target, found)
        moved = ~flips & (
            steadiness.apart(found.score, again.score)
            | steadiness.apart(found.partner_score, again.partner_score)
        )
        steady = searched.steadiness.steady
        if steady and not moved.any():
            return again[flips], _Dropped(rounded=int((~flips).sum()))
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(10,)))
        places = np.flatnonzero(flips)
        always, _ = steadiness.always_flip(
            target.score,
            again.rows[places],
            again.partner[places],
            rng,
            company=self.problem.rows if searched.steadiness.in_company else None,
            max_batch=self.max_batch,
        )
        rounded = int((~flips & ~moved).sum())
        dropped = len(found) - rounded - int(always.sum())
        return again[places[always]], _Dropped(rounded, dropped, surprise=steady)

    def _judged(self, found: Found) -> tuple[Found, str]:
        """Findings with the naturalness of both rows, and what it was told by."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(8,)))
        judge = measures.judge(self.problem.rows, self.problem.schema, rng) if len(found) else None
        if judge is None:
            return found, ""
        told = (judge.p_values(found.rows), judge.p_values(found.partner))
        found = dataclasses.replace(found, naturalness=told[0], partner_naturalness=told[1])
        return found, judge.words

    def _where(self, searched: _Searched, found: Found) -> tuple[Where, Regions | None]:
        """Rules from the rows that the natural rate was measured on; without a generator from the
        table's rows. No query is spent on them."""
        schema, checked = self.problem.schema, searched.measured.checked
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(7,)))
        for population in ("natural", "held-out", "real"):
            if population in checked:
                sample = checked[population]
                where = find_rules(schema, sample.rows, sample.flips, rng)
                return where, regions(schema, where, population, sample[sample.flips])
        own = self._own_population(searched.steadiness.steady)
        if own == "real" and searched.run.stop == Stop.EXHAUSTED:
            # The search has checked the whole table, so a row flips where its key was found.
            known = KeySet()
            known.add(keys(schema, found.rows))
            flips = known.contains(keys(schema, self.problem.rows))
            where = find_rules(schema, self.problem.rows, flips, rng)
            return where, regions(schema, where, "real", found)
        return Where(), None

    def _rates(self, searched: _Searched) -> dict[str, Rate]:
        rates = dict(searched.measured.rates)
        own, ledger = self._own_population(searched.steadiness.steady), searched.run.findings
        if own is not None and ledger.rows_checked:
            rates[own] = rate_of(ledger.flips, ledger.rows_checked)
        return dict(sorted(rates.items()))

    def _unmeasured(self, searched: _Searched, rates: Mapping[str, Rate]) -> dict[str, str]:
        """Populations without a rate, and why; "because" goes before it."""
        why = "the budget of queries or seconds left too little for a rate"
        if self.rate_rows == 0:
            why = "no rows were asked for (rate-rows is 0)"
        elif self.rate_rows and not (self.budget.max_queries or self.budget.max_seconds):
            why = "the search checked none of them"
        lacking = {"natural": "no generator was given"} if self.source.name is None else {}
        populations = [self.problem.people[0], "natural", "uniform"]
        if self.problem.held_out is not None and self.rate_rows:
            populations.append("real")
            lacking["real"] = "held-out rows were given, and are measured instead"
        return {name: lacking.get(name, why) for name in populations if name not in rates}

    def _summary(
        self,
        searched: _Searched,
        found: Found,
        dropped: _Dropped,
        where: Regions | None,
        judged_by: str,
    ) -> Summary:
        problem, ran = self.problem, searched.run
        ledger = ran.findings
        look = _look(problem, found, searched.measured.flipping.get(problem.people[0]), self.seed)
        scored = dict(searched.task.facts)
        if isinstance(self.method, methods.Scored):
            scored |= self.method.scores(ledger)
        unsteady = wording.unsteady(searched.steadiness.as_dict())
        notes = [
            *([unsteady] if unsteady else []),
            *problem.notes,
            *problem.target.notes,
            *searched.task.notes,
        ]
        notes += dropped.notes
        if searched.task.thrifty and len(found):
            notes.append(
                "a partner is the first protected value that was seen to flip its row, as queries "
                "were few: who is favored over whom leans to values that were asked early"
            )
        if ran.stop == Stop.INTERRUPTED:
            notes.append("the run was interrupted; it shows what was found until then")
        rates = self._rates(searched)
        queries = ran.queries + searched.measured.queries + searched.asked
        metrics = measures.take(
            problem.schema,
            problem.rows,
            found,
            searched.measured,
            rates,
            searched.decided,
            likeness=look["naturalness"],
            judged_by=judged_by,
            effort=measures.Effort(ran.seconds, searched.prepared, queries),
            seed=self.seed,
        )
        return Summary(
            table=problem.table_name,
            n_rows=len(problem.rows),
            n_columns=len(problem.schema),
            model=problem.model_name,
            target=problem.label_column,
            favorable=str(problem.favorable),
            unfavorable="other" if problem.unfavorable is None else str(problem.unfavorable),
            method=self.method_name,
            settings=self.settings,
            protected=protected_values(problem.schema),
            combinations=len(problem.schema.combinations),
            findings=len(found),
            rows_checked=ledger.rows_checked,
            queries=queries,
            seconds=round(ran.seconds, 3),
            preparation_seconds=round(searched.prepared, 3),
            stop=str(ran.stop),
            seed=self.seed,
            generator=self.source.name if searched.task.generator is not None else None,
            rates=rates,
            unmeasured=self._unmeasured(searched, rates),
            metrics=metrics,
            scores={name: round(float(value), 6) for name, value in scored.items()},
            where=where,
            naturalness=look["naturalness"],
            pictures=look["pictures"] | {"curve": pictures.curve(ran.curve)},
            directions=directions(problem.schema, found),
            examples=examples(problem.schema, found),
            notes=tuple(notes),
            unconfirmed=dropped.rounded + dropped.moved,
            steadiness=searched.steadiness.as_dict(),
            command=self.command,
            versions=self.manifest["versions"],
            held_out=None if problem.held_out is None else problem.held_out.name,
            n_held_out=0 if problem.held_out is None else len(problem.held_out.rows),
            hashes={
                name: self.manifest[name]
                for name in ("data_sha256", "held_out_sha256", "model_sha256")
                if name != "held_out_sha256" or problem.held_out is not None
            },
        )


@dataclass(frozen=True)
class _Searched:
    """What came of a plan before the findings are checked again."""

    run: Run
    measured: Measured
    task: Task
    prepared: float  # seconds to fit the generator
    steadiness: Steadiness
    decided: measures.Decided | None = None
    asked: int = 0  # queries for them


@dataclass(frozen=True)
class _Dropped:
    """Rows that flipped in the search and not afterwards, and so were left out."""

    rounded: int = 0  # their scores lie within rounding of 0.5
    moved: int = 0  # the model gave another answer
    surprise: bool = False  # that, although it had answered steadily before the run

    @property
    def notes(self) -> list[str]:
        """What the report should say of them."""
        notes = []
        if self.surprise:
            notes.append(
                "the model answered steadily before the run, and otherwise when findings were "
                f"asked again; so each was asked {steadiness.TIMES} times, and rates may count "
                "rows that flip by chance"
            )
        if self.moved:
            notes.append(
                f"{self.moved} rows flipped in the search but not each of {steadiness.TIMES} "
                "times that they were asked again, and were left out"
            )
        if self.rounded:
            notes.append(
                f"{self.rounded} rows flipped in the search but not when asked again, and were "
                "left out: their scores lie within rounding of 0.5"
            )
        return notes


def _asked_again(target: Target, found: Found) -> tuple[Found, Mask]:
    """Findings with the scores of a second answer, and which of them flip in it.

    Where the model says decisions of its own (`predict`), those must differ as well.
    """
    starts = range(0, len(found), _VERIFIED_AT_ONCE)
    parts = [slice(start, start + _VERIFIED_AT_ONCE) for start in starts]
    mine, other = [np.empty(0)], [np.empty(0)]
    flips = [np.zeros(0, dtype=bool)]
    for part in parts:
        rows, partner = found.rows[part], found.partner[part]
        mine.append(target.score(rows))
        other.append(target.score(partner))
        flipped = differ(mine[-1], other[-1])
        decided, decided_other = target.decide(rows), target.decide(partner)
        if decided is not None and decided_other is not None:
            flipped &= decided != decided_other
        flips.append(flipped)
    again = dataclasses.replace(
        found, score=np.concatenate(mine), partner_score=np.concatenate(other)
    )
    return again, np.concatenate(flips)


MOST_TO_JUDGE = 20_000
MOST_COMPARED = 5_000  # of each set; a larger one is drawn from, several times


def _look(
    problem: Problem, found: Found, flipping: Rows | None, seed: int
) -> dict[str, dict[str, Any]]:
    """How natural the findings are as a set, beside the table's own rows that flip.

    All sets are compared at the size of the smallest, because naturalness falls with that size.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,)))
    real = _sample(problem.rows, MOST_TO_JUDGE, rng)
    groups: dict[str, Rows] = {}
    if len(found) >= FEWEST_TO_JUDGE:
        groups["findings"] = _sample(found.rows, len(real), rng)
        size = min(representative_size(problem, found), len(real))
        groups["representative"] = found.rows[draw_representative(problem, found, size, seed)]
    drawn = {name: rows for name, rows in groups.items() if len(rows) >= FEWEST_TO_JUDGE}
    if flipping is not None and len(flipping) >= FEWEST_TO_JUDGE:
        groups["ceiling"] = flipping
    groups = {name: rows for name, rows in groups.items() if len(rows) >= FEWEST_TO_JUDGE}
    n = min([MOST_COMPARED, *map(len, groups.values())])
    likeness: dict[str, Likeness] = {
        name: naturalness_at(n, real, rows, problem.schema, rng) for name, rows in groups.items()
    }
    return {
        "naturalness": likeness,
        "pictures": {
            "densities": pictures.densities(real, drawn) if drawn else {},
            "score_pairs": pictures.score_pairs(found),
        },
    }


def _sample(rows: Rows, n: int, rng: np.random.Generator) -> Rows:
    return rows if len(rows) <= n else rows[rng.choice(len(rows), n, replace=False)]


def _way_back(place: Path) -> str:
    """From a run folder to the folder that a run is started in: it holds where both move along."""
    here = Path.cwd().resolve()
    try:
        return os.path.relpath(here, place)
    except ValueError:  # on another drive
        return str(here)


def _check_counts(*, seed: int, rate_rows: int, max_batch: int) -> None:
    if seed < 0:
        raise InvalidInput(f"seed is {seed}; it must be 0 or a positive whole number")
    if rate_rows < 0:
        raise InvalidInput(f"rate-rows is {rate_rows}; it must be 0 or more")
    if max_batch < 1:
        raise InvalidInput(f"max-batch is {max_batch}; it must be at least 1")

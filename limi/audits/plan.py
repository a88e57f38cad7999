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

from limi import generators, methods
from limi.audits import pictures
from limi.audits.drafts import Draft
from limi.audits.estimate import Estimate
from limi.audits.problem import Problem, prepare, protected_values, with_held_out
from limi.audits.result import Result, draw_representative, files, representative_size
from limi.audits.run_folder import FORMAT, digest, file_digest, versions
from limi.audits.summary import Regions, Summary, examples, regions
from limi.audits.what_if import (
    WhatIf,
    families,
    favorable_findings,
    in_regions,
    what_ifs,
)
from limi.decisions import differ
from limi.defaults import (
    BUDGETED_METHOD,
    DEFAULT_GENERATOR,
    DEFAULT_MAX_ROWS,
    DEFAULT_METHOD,
    MEASURED_ROWS,
)
from limi.errors import InvalidInput, listed
from limi.generators import Generator
from limi.gpu import place as devices
from limi.metrics import collect
from limi.metrics.individual import Rate, rate_of
from limi.metrics.naturalness import FEWEST_TO_JUDGE, Likeness, naturalness_at
from limi.metrics.rates import Measured, measurable_rows, measure
from limi.metrics.regions import Where, find_rules
from limi.metrics.sequential import anytime_rate
from limi.models import Meaning, gradients
from limi.models._base import Decides
from limi.models.target import CONTRACT_ROWS, Target
from limi.search import steadiness
from limi.search.answer_log import Journal
from limi.search.budget import Budget, Stop, check_seed
from limi.search.check import MAX_BATCH, Checked, Partner
from limi.search.engine import Progress, Run, check, run
from limi.search.findings import Findings, Found
from limi.search.method import most_rows, scores, stops_on_flips
from limi.search.steadiness import Steadiness
from limi.search.task import Task
from limi.streams import Stream
from limi.system import cores
from limi.system.reading import is_file
from limi.system.watch import OutOfTime, Spent, Watch
from limi.table.frames import Frame
from limi.table.rows import KeySet, keys
from limi.table.schema import Schema
from limi.types import Mask, Rows, Scores, Value

__all__ = ["audit"]

_VERIFIED_AT_ONCE = 8192  # fixed, so that written scores do not depend on a run's batch size
_RATE_SHARE = 5  # a query budget spends at most one fifth on measuring rates
_CONTRACT_SHARE = 20  # of the seconds: a first look at the model takes a twentieth at most
_EXPECTED_FLIPS = 20  # rows checked for each finding, as far as an estimate goes
_LATE = "no time was left for these metrics: "
_ODD = "odd findings"
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
    on_plan: Callable[[Estimate], None] = lambda estimate: None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_step: Callable[[float, str], None] = lambda done, words: None,
    clock: Callable[[], float] = time.perf_counter,
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
    watch = Watch(clock, max_seconds, on_progress)
    watch.enter("contract")
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
        max_seconds=None if max_seconds is None else max_seconds / _CONTRACT_SHARE,
        clock=clock,
    )
    if held_out is not None:
        problem = with_held_out(problem, held_out, held_out_name)
    place, asked = devices.settled(device, problem.target, generator)
    source = _GeneratorSource(generator, seed, place, on_step)
    plan = _Plan(
        problem,
        asked,
        chosen,
        budget,
        seed,
        rate_rows,
        partner,
        max_batch,
        command,
        source,
        watch,
        on_plan,
        origin,
    )
    plan.check()
    score = watch.timed(asked.score)
    # Now that model and libraries are loaded: a limit holds for what is there.
    with cores.shared():
        return _run(plan, score, draft)


def _run(plan: _Plan, score: Callable[[Rows], Scores], draft: Draft | None) -> Result:
    """Search and sum up; with a draft, log the answers and write the folder."""
    if draft is None:
        return plan.result(plan.search(score))
    with draft:
        draft.settle_on(plan.manifest)
        journal = Journal(draft.log, score)
        searched = plan.search(journal.score)
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
        elif is_file(self.given):
            _fitting(self._loaded, problem.schema)
        else:
            generators.get(str(self.given))

    @cached_property
    def _loaded(self) -> Generator:
        """The generator of a file, read once."""
        return generators.load(str(self.given), device=self.device)

    @property
    def to_fit(self) -> bool:
        """Is it a name, so that it has to be fitted first?"""
        given = self.given
        return self.name is not None and isinstance(given, (str, Path)) and not is_file(given)

    def make(self, problem: Problem, watch: Watch) -> Generator | None:
        """The generator, fitted to the problem's table where it has to be; OutOfTime where that
        takes too long."""

        def step(done: float, words: str) -> None:
            watch.look()
            watch.step(done)
            self.on_step(done, words)

        if self.name is None:
            return None
        if not isinstance(self.given, (str, Path)):
            return _fitting(self.given, problem.schema)
        if is_file(self.given):
            return _fitting(self._loaded, problem.schema)
        module = generators.get(str(self.given))
        rng = Stream.GENERATOR.rng(self.seed)
        made: Generator = module.fit(
            problem.rows, problem.schema, rng, device=self.device, on_step=step
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
    watch: Watch
    on_plan: Callable[[Estimate], None]
    origin: str | None = None  # the way from the run folder to where relative paths start

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The method's parameters."""
        return dataclasses.asdict(self.method)  # type: ignore[call-overload, no-any-return]

    def _own_population(self, steady: bool) -> str | None:
        """The population that the search itself samples, where it takes its rate from the search.

        Not where a number of findings may end the search, for who stops at flips counts too many of
        them; nor where flips are not confirmed, or the search checks fewer rows than a rate shall
        have.
        """
        name, budget = self.method.population, self.budget
        wanted, checks = self.rate_rows, np.inf if budget.max_rows is None else budget.max_rows
        if name == "real":
            wanted = min(wanted, len(self.problem.rows))
        if not steady or budget.max_findings is not None or checks < wanted:
            return None
        return name

    @cached_property
    def method_name(self) -> str:
        """The name that `limi list methods` shows."""
        return methods.name_of(self.method)

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
            watch=self.watch,
        )

    def search(self, score: Callable[[Rows], Scores]) -> _Searched:
        """Hold the model to its contract, fit the generator, measure rates, then search."""
        watch, budget = self.watch, self.budget
        told = self._contract(score)
        expected = self.estimate(told)
        watch.planned = {name: float(n) for name, n in expected.questions.items()}
        self.on_plan(expected)
        task = self._task(score)
        task.recheck = self._per_finding(told)
        cut: dict[str, str] = {}
        watch.enter("generator")
        if self.rate_rows or "generator" in self.method.needs:
            with watch.ending((watch.seconds + watch.until) / 2):
                task.generator = self._generator(cut)
            if self.source.device != "cpu":
                task.on_device = devices.together(self.asked, task.generator)
        prepared = watch.took()["generator"].seconds
        watch.enter("rates")
        measured = self._measured(task, told, cut)
        if budget.max_queries is not None:
            left = max(1, budget.max_queries - measured.queries)
            budget = dataclasses.replace(budget, max_queries=left)
        with watch.ending(watch.until - self._summing_up):
            ran = self._searched(task, budget, cut)
        return _Searched(ran, measured, task, prepared, told, expected, cut)

    def _contract(self, score: Callable[[Rows], Scores]) -> Steadiness:
        """Look whether the model can be searched; its speed is seen on the way."""
        target, watch, rows = self.problem.target, self.watch, self.problem.rows
        most = CONTRACT_ROWS
        if watch.limited:
            # One row, then a few: what a call costs itself is told by the difference.
            ask = watch.counted(watch.timed(target.score), in_any_case=True)
            ask(rows[:1])
            most = int(np.clip(self._affordable(_CONTRACT_SHARE), 2, most))
            ask(rows[:most])
        watch.count(target.contract(rows, most=most))
        return self._steadiness(watch.counted(score, in_any_case=True))

    def _affordable(self, share: int) -> float:
        """Questions that one part in so many of the seconds pays for."""
        with self.watch.ending(self.watch.seconds + self._max_seconds / share):
            return self.watch.affordable

    @property
    def _max_seconds(self) -> float:
        return np.inf if self.budget.max_seconds is None else self.budget.max_seconds

    @property
    def _summing_up(self) -> float:
        """Seconds kept for metrics and report, which ask nothing but take their time."""
        if self.budget.max_seconds is None:
            return 0.0
        share = min(1.0, len(self.problem.rows) / MOST_TO_JUDGE)
        return min(self.budget.max_seconds / 5, 1.0 + 3.0 * share)

    def _per_finding(self, told: Steadiness) -> int:
        """Questions that the second check of a finding takes."""
        both = 4 if isinstance(self.problem.target.model, Decides) else 2
        return both + told.per_flip

    def estimate(self, told: Steadiness) -> Estimate:
        """Questions of each phase, before any of them begins."""
        schema, budget = self.problem.schema, self.budget
        per_row = len(schema.combinations)
        most = np.inf if budget.max_rows is None else budget.max_rows
        most = min(most, most_rows(self.method, len(self.problem.rows)))
        populations = 2 + (self.source.name is not None)
        populations -= self._own_population(told.steady) == "uniform"
        n = min(self.rate_rows, measurable_rows(schema, populations, self._rate_queries, told))
        rates = populations * n * per_row
        search = most * per_row
        if budget.max_queries is not None:
            search = min(search, budget.max_queries - rates)
        if not np.isfinite(search):
            search = 0
        findings = search / per_row / _EXPECTED_FLIPS
        if budget.max_findings is not None:
            findings = min(findings, budget.max_findings)
        questions = {
            "contract": self.watch.questions,
            "rates": rates,
            "search": int(search),
            "second_check": int(findings * self._per_finding(told)),
        }
        fitted = self.source.to_fit and (self.rate_rows or "generator" in self.method.needs)
        return Estimate(
            questions,
            self.watch.best_per_row,
            budget.max_seconds,
            self.source.name if fitted else None,
        )

    @property
    def _rate_queries(self) -> int | None:
        """What rates may ask together; None for no limit but their own."""
        allowed = self.budget.max_queries
        most = np.inf if allowed is None else allowed // _RATE_SHARE
        if self.watch.limited:
            share = (self._max_seconds - self.watch.seconds) / _RATE_SHARE
            with self.watch.ending(self.watch.seconds + share):
                most = min(most, self.watch.affordable)
        return int(most) if np.isfinite(most) else None

    def _generator(self, cut: dict[str, str]) -> Generator | None:
        try:
            return self.source.make(self.problem, self.watch)
        except OutOfTime:
            cut["generator"] = (
                f"the generator {self.source.name} was not ready in half of the time; fit it "
                "before (limi fit) and give its file"
            )
            return None

    def _measured(self, task: Task, told: Steadiness, cut: dict[str, str]) -> Measured:
        """Rates of all populations but uniform rows that the search measures itself.

        People are measured in any case: a search keeps no decision that does not flip, and who is
        favored takes all of them.
        """
        populations = self._populations(task)
        if self._own_population(told.steady) == "uniform":
            populations.remove("uniform")
        allowed = self._rate_queries
        n = measurable_rows(task.schema, len(populations), allowed, told)
        if n < self.rate_rows and populations:
            by_time = self.watch.limited and (
                self.budget.max_queries is None
                or (allowed or 0) < self.budget.max_queries // _RATE_SHARE
            )
            why = "a rate asks 250,000 questions at most"
            if allowed is not None:
                why = f"rates get a fifth of --max-{'seconds' if by_time else 'queries'}"
            cut["rates"] = (
                f"each rate was measured on {n:,} rows at most, not on {self.rate_rows:,}: {why}"
            )
        share = (self._max_seconds - self.watch.seconds) / _RATE_SHARE
        with self.watch.ending(self.watch.seconds + 1.5 * share):
            return measure(
                task,
                populations,
                self.seed,
                rows=self.rate_rows,
                max_queries=allowed,
                told=told,
                held_out=None if self.problem.held_out is None else self.problem.held_out.rows,
            )

    def _searched(self, task: Task, budget: Budget, cut: dict[str, str]) -> Run:
        """The search, as far as there is time for it."""
        lacking = self.method.needs - task.capabilities
        if "generator" in cut and "generator" in lacking:
            ran = Run(Findings(task.schema), Stop.SECONDS, 0, 0.0)
        else:
            ran = run(self.method, task, budget, self.seed, watch=self.watch)
        if ran.stop == Stop.SECONDS and not ran.findings.rows_checked:
            cut["search"] = (
                "there was no time left to search: nothing is known of what it would find; give "
                "more --max-seconds, or fewer --rate-rows"
            )
        elif ran.stop == Stop.SECONDS:
            cut["search"] = (
                f"the search ended after {ran.findings.rows_checked:,} rows, because the time was "
                "up"
            )
        return ran

    def _decided(self, measured: Measured) -> collect.Decided | None:
        """Decisions on rows of people, for metrics that compare groups: those of their rate."""
        name, rows, labels = self.problem.people
        if name not in measured.checked:
            return None
        score, index = measured.checked[name].score, measured.places[name]
        return collect.Decided.of(name, rows, score, labels, index)

    def _steadiness(self, score: Callable[[Rows], Scores]) -> Steadiness:
        """How much of what the model answers moves when it is asked again.

        Asked through the journal, so that a resumed run goes the way that it went before.
        """
        n = steadiness.SAMPLED
        if self.budget.max_queries is not None:
            n = min(n, self.budget.max_queries // _CHECK_SHARE)
        least = 16
        if self.watch.limited:
            n, least = int(min(n, self._affordable(_CHECK_SHARE))), 2
        # In coarse steps, so that a clock that ticks a little otherwise changes nothing.
        sizes = (4, 8, 16, 64, steadiness.SAMPLED)
        n = max((size for size in sizes if least <= size <= n), default=least)
        rng = Stream.STEADINESS.rng(self.seed)
        return steadiness.sample(score, self.problem.rows, rng, n=n, max_batch=self.max_batch)

    def _populations(self, task: Task) -> list[str]:
        people = self.problem.people[0]
        return [people, "uniform", *(["natural"] if task.generator is not None else [])]

    def result(self, searched: _Searched) -> Result:
        """Check every finding again, then sum up."""
        watch, cut = self.watch, searched.cut
        watch.owed = 0
        watch.enter("second_check")
        found, dropped = self._verified(searched)
        if dropped.unasked:
            cut["second_check"] = (
                f"{dropped.unasked:,} rows that flipped in the search were left out, because there "
                "was no time to ask for them again"
            )
        watch.enter("metrics")
        found, judged_by = self._judged(found) if self._in_time(cut, _ODD) else (found, "")
        watch.step(0.25)
        where, shown = Where(), None
        if self._in_time(cut, "where it happens"):
            where, shown = self._where(searched, found)
        watch.step(0.5)
        summary = self._summary(searched, found, dropped, shown, judged_by)
        notes = (*summary.notes, *cut.values())
        spent = {
            name: {"seconds": round(spent.seconds, 3), "questions": spent.questions}
            for name, spent in watch.took().items()
        }
        summary = dataclasses.replace(summary, notes=notes, phases=spent, cut=dict(cut))
        return Result(self.problem, found, summary, self.manifest, where.rules)

    def _in_time(self, cut: dict[str, str], what: str) -> bool:
        """Is there time for one more metric? Where not, it is said which are missing."""
        if self.watch.seconds < self._max_seconds:
            return True
        missing = cut.get("metrics", "").removeprefix(_LATE)
        cut["metrics"] = _LATE + ", ".join(filter(None, [missing, what]))
        return False

    def _verified(self, searched: _Searched) -> tuple[Found, _Dropped]:
        """Findings that flip when the model is asked again; every time, where it is not steady."""
        target, found = self.problem.target, searched.run.findings.all()
        again, flips = _asked_again(target, found, self.watch)
        unasked = len(found) - len(again)
        found = found[: len(again)]
        moved = ~flips & (
            steadiness.apart(found.score, again.score)
            | steadiness.apart(found.partner_score, again.partner_score)
        )
        steady = searched.steadiness.steady
        if steady and not moved.any():
            return again[flips], _Dropped(rounded=int((~flips).sum()), unasked=unasked)
        rng = Stream.CONFIRMATION.rng(self.seed)
        places = np.flatnonzero(flips)
        try:
            always, _ = steadiness.always_flip(
                self.watch.counted(self.watch.timed(target.score)),
                again.rows[places],
                again.partner[places],
                rng,
                company=self.problem.rows if searched.steadiness.in_company else None,
                max_batch=self.watch.at_once(self.max_batch),
            )
        except OutOfTime:
            always, unasked = np.zeros(len(places), dtype=bool), unasked + len(places)
        rounded = int((~flips & ~moved).sum())
        dropped = len(found) - rounded - int(always.sum())
        return again[places[always]], _Dropped(rounded, dropped, steady, unasked)

    def _judged(self, found: Found) -> tuple[Found, str]:
        """Findings with the naturalness of both rows, and what it was told by."""
        rng = Stream.NATURALNESS.rng(self.seed)
        judge = collect.judge(self.problem.rows, self.problem.schema, rng) if len(found) else None
        if judge is None:
            return found, ""
        told = (judge.p_values(found.rows), judge.p_values(found.partner))
        found = dataclasses.replace(found, naturalness=told[0], partner_naturalness=told[1])
        return found, judge.words

    def _where(self, searched: _Searched, found: Found) -> tuple[Where, Regions | None]:
        """Rules from the rows that the natural rate was measured on; without a generator from the
        table's rows. No query is spent on them."""
        schema, checked = self.problem.schema, searched.measured.checked
        rng = Stream.REGIONS.rng(self.seed)
        for population in ("natural", "held-out", "real"):
            if population in checked:
                sample = checked[population]
                where = find_rules(schema, sample.rows, sample.flips, rng)
                return where, regions(where, population, self._inside(searched, where, population))
        own = self._own_population(searched.steadiness.steady)
        if own == "real" and searched.run.stop == Stop.EXHAUSTED:
            # The search has checked the whole table, so a row flips where its key was found.
            known = KeySet()
            known.add(keys(schema, found.rows))
            flips = known.contains(keys(schema, self.problem.rows))
            where = find_rules(schema, self.problem.rows, flips, rng)
            return where, regions(where, "real")
        return Where(), None

    def _inside(
        self, searched: _Searched, where: Where, population: str
    ) -> list[WhatIf | None] | None:
        """How the people of each region fare under every value, of those that verified it."""
        samples = self._people(searched)
        if population not in samples or not where.rules:
            return None
        schema, sample = self.problem.schema, samples[population][where.verified_on]
        masks = [rule.mask(sample.rows) for rule in where.rules]
        n_families = families(schema, samples, regions=True)
        return in_regions(schema, population, sample, masks, n_families=n_families)

    def _people(self, searched: _Searched) -> dict[str, Checked]:
        """Samples whose people can be compared under all values; none where an answer hangs on
        the other rows of a batch."""
        return {} if searched.steadiness.in_company else searched.measured.checked

    def _rates(self, searched: _Searched) -> dict[str, Rate]:
        rates = dict(searched.measured.rates)
        own, ledger = self._own_population(searched.steadiness.steady), searched.run.findings
        if own is not None and ledger.rows_checked:
            # Where flips have a say in the number of rows, only an interval for any end holds.
            by_flips = (
                searched.task.thrifty
                or stops_on_flips(self.method)
                or searched.run.stop == Stop.INTERRUPTED
            )
            rate = anytime_rate if by_flips else rate_of
            rates[own] = rate(ledger.flips, ledger.rows_checked)
        return dict(sorted(rates.items()))

    def _effort(self, searched: _Searched, queries: int) -> collect.Effort:
        """What the search took: labels and boundary prepare it, as in published numbers."""
        seconds = self.watch.took().get("search", Spent()).seconds
        prepared = searched.prepared + max(0.0, searched.run.seconds - seconds)
        return collect.Effort(seconds, prepared, queries)

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
        flipping = searched.measured.flipping.get(problem.people[0])
        if not self._in_time(searched.cut, "naturalness"):
            flipping, judged = None, found[:0]
        else:
            judged = found
        look = _look(problem, judged, flipping, self.seed)
        scored = {**searched.task.facts, **scores(self.method, ledger)}
        from limi.report import wording

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
                "were few: how a finding fares under its other values was not asked"
            )
        if ran.stop == Stop.INTERRUPTED:
            notes.append("the run was interrupted; it shows what was found until then")
        rates = self._rates(searched)
        queries = ran.queries + searched.measured.queries
        self.watch.step(0.75)
        metrics = collect.take(
            problem.schema,
            problem.rows,
            found,
            searched.measured,
            rates,
            self._decided(searched.measured),
            likeness=look["naturalness"],
            judged_by=judged_by,
            effort=self._effort(searched, queries),
            seed=self.seed,
            in_time=lambda what: self._in_time(searched.cut, what),
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
            settings=_with_used(self.settings, searched.task.used),
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
            rates_by_column=searched.measured.alone,
            what_if=what_ifs(
                problem.schema,
                self._people(searched),
                regions=where is not None and bool(where.rules),
            ),
            favorable_findings=favorable_findings(problem.schema, found),
            examples=examples(problem.schema, found),
            notes=tuple(notes),
            unconfirmed=dropped.rounded + dropped.moved,
            steadiness=searched.steadiness.as_dict(),
            estimate=searched.expected.as_dict(),
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
    expected: Estimate
    cut: dict[str, str]  # by phase: what time or budget left out, in words


@dataclass(frozen=True)
class _Dropped:
    """Rows that flipped in the search and not afterwards, and so were left out."""

    rounded: int = 0  # their scores lie within rounding of 0.5
    moved: int = 0  # the model gave another answer
    surprise: bool = False  # that, although it had answered steadily before the run
    unasked: int = 0  # there was no time to ask for them again

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


def _asked_again(target: Target, found: Found, watch: Watch) -> tuple[Found, Mask]:
    """Findings with the scores of a second answer, and which of them flip in it; as many of them
    as there is time for.

    Where the model says decisions of its own (`predict`), those must differ as well.
    """
    score = watch.counted(watch.timed(target.score))
    mine, other = [np.empty(0)], [np.empty(0)]
    flips = [np.zeros(0, dtype=bool)]
    start = 0
    while start < len(found):
        size = _VERIFIED_AT_ONCE
        if watch.limited:
            size = min(size, max(1, watch.at_once(2 * size) // 2))
        rows, partner = found.rows[start : start + size], found.partner[start : start + size]
        try:
            one, two = score(rows), score(partner)
        except OutOfTime:
            break
        flipped = differ(one, two)
        decided, decided_other = target.decide(rows), target.decide(partner)
        if decided is not None and decided_other is not None:
            watch.count(2 * len(rows))
            flipped &= decided != decided_other
        mine.append(one)
        other.append(two)
        flips.append(flipped)
        start += len(rows)
    again = dataclasses.replace(
        found[:start], score=np.concatenate(mine), partner_score=np.concatenate(other)
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
    rng = Stream.LIKENESS.rng(seed)
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


def _with_used(settings: dict[str, Any], used: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with what the budget made of them; those of a pair's parts as well."""
    return {
        name: _with_used(value, used) if isinstance(value, dict) else used.get(name, value)
        for name, value in settings.items()
    }


def _check_counts(*, seed: int, rate_rows: int, max_batch: int) -> None:
    check_seed(seed)
    if rate_rows < 0:
        raise InvalidInput(f"rate-rows is {rate_rows}; it must be 0 or more")
    if max_batch < 1:
        raise InvalidInput(f"max-batch is {max_batch}; it must be at least 1")

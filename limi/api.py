"""One call from a model and a table to findings, rates and a report."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from limi import device as devices
from limi import generators, gradients, measures, methods, models
from limi.budget import Budget, Stop
from limi.check import MAX_BATCH, Partner, cause_names
from limi.engine import Progress, Run, run
from limi.errors import BadTable, InvalidInput, listed, nearest
from limi.findings import Found
from limi.frames import Codec, Frame, columns_of, plain
from limi.generators import Generator
from limi.journal import Journal
from limi.metrics.individual import Rate, rate_of
from limi.metrics.naturalness import average_tabular_naturalness
from limi.metrics.representative import representative
from limi.metrics.severity import priority, score_gap
from limi.rates import MEASURED_ROWS, Measured, measure
from limi.report import pictures
from limi.report.summary import Regions, Summary, causes_in_words, directions, examples, regions
from limi.rows import KeySet, keys
from limi.schema import Schema, same_number
from limi.schema_files import dump
from limi.store import FORMAT, Draft, digest, file_digest, versions, write_beside
from limi.tables import infer
from limi.target import Target, bind
from limi.task import Task
from limi.types import Index, Labels, Mask, Rows, Scores, Value
from limi.where import Rule, Where, find_rules

__all__ = [
    "DEFAULT_GENERATOR",
    "DEFAULT_MAX_ROWS",
    "DEFAULT_METHOD",
    "Problem",
    "Result",
    "audit",
    "prepare",
]

DEFAULT_METHOD = "limi"
BUDGETED_METHOD = "guided"  # finds two to four times as much with a number of queries
DEFAULT_GENERATOR = "trees"
DEFAULT_MAX_ROWS = 100_000
_VERIFIED_AT_ONCE = 8192  # fixed, so that written scores do not depend on a run's batch size
_RATE_SHARE = 5  # a query budget spends at most one fifth on measuring rates


@dataclass(frozen=True)
class Problem:
    """A table, a model and protected columns that fit each other."""

    target: Target
    rows: Rows
    label_column: str | None
    favorable: Value
    unfavorable: Value | None
    table_name: str = "table"
    model_name: str = "model"
    model_sha256: str | None = None
    labels: Labels | None = None  # 1 favorable, 0 not, -1 unknown; None without a target column

    @property
    def schema(self) -> Schema:
        """The columns that the model takes, with the protected ones."""
        return self.target.codec.schema

    @property
    def labels_sha256(self) -> str | None:
        """Of the label column, which no search depends on but every repair does."""
        return None if self.labels is None else digest(self.labels.tobytes())

    def hashes(self) -> dict[str, str | None]:
        """What the run depends on, by content."""
        schema = dump(self.schema).encode()
        return {
            "data_sha256": digest(schema, np.ascontiguousarray(self.rows).tobytes()),
            "model_sha256": self.model_sha256,
        }


@dataclass(frozen=True)
class Result:
    """What an audit found."""

    problem: Problem
    found: Found
    summary: Summary
    manifest: Mapping[str, Any] = field(default_factory=dict, repr=False)
    rules: tuple[Rule, ...] = field(default=(), repr=False)

    @property
    def rates(self) -> dict[str, Rate]:
        """Share of flipping rows by population, each with a 95 % interval."""
        return self.summary.rates

    @property
    def stop(self) -> str:
        """Why the search ended."""
        return self.summary.stop

    @cached_property
    def findings(self) -> Frame:
        """One row a finding, in the type of the given frame: its columns, the partner's protected
        values as `<column>__partner`, `score`, `partner_score`, `origin`, `severity` (the gap
        of the scores), `naturalness` and `partner_naturalness` (p-values; NaN where unknown)."""
        return _findings_frame(self.problem.target.codec, self.found)

    def representative(self, n: int | None = None, *, seed: int = 0) -> Frame:
        """The n findings that look most like the table, as a frame like `findings`.

        Drawn by density-ratio resampling; by default as many as a quarter of the findings, and no
        more than the table has rows.
        """
        if n is None:
            n = _representative_size(self.problem, self.found)
        chosen = _representative(self.problem, self.found, n, seed)
        return _findings_frame(self.problem.target.codec, self.found[chosen])

    def ranked(self, n: int | None = None) -> Frame:
        """The n findings to look at first, or all: by severity times naturalness.

        A pair is as natural as the less natural of its two rows.
        """
        order = _ranking(self.found)[:n]
        return _findings_frame(self.problem.target.codec, self.found[order])

    def metrics(
        self, *, volume: int | None = None, privileged: measures.Privileged | None = None
    ) -> dict[str, Any]:
        """Every metric of the run as plain data: `value`, with `low` and `high` where there is an
        interval, and `reason` where there is no number.

        `volume` is a number of people, and adds how many of them would flip. `privileged` names the
        group that others are compared with (`"sex=Male"`), or `"lowest"` for the paper's split; by
        default the group with the highest selection rate, as the answer says.
        """
        return measures.asked_for(
            self.summary.metrics, self.problem.schema, volume=volume, privileged=privileged
        )

    def where(self) -> list[Rule]:
        """Regions in which decisions flip much more often than on average, highest rate first.

        Each was learned on one half of a sample and verified on the other; `str(rule)` has its
        conditions in words, `rule.rate` its rate. An empty list: `summary.where.reason` says why.
        """
        return list(self.rules)

    def inside(self, rule: Rule, frame: Frame) -> Mask:
        """Which rows of a frame lie in the region of a rule."""
        return rule.mask(self.problem.target.codec.encode(frame))

    def report(self, path: str | Path) -> Path:
        """Write the HTML report."""
        from limi.report import html

        write_beside(Path(path), html.render(self.summary))
        return Path(path)

    def __repr__(self) -> str:
        rates = ", ".join(f"{name} {rate.estimate:.2%}" for name, rate in self.rates.items())
        return (
            f"<limi.Result: {self.summary.findings} findings by {self.summary.method}, "
            f"protected {', '.join(self.summary.protected)}; flip rates: {rates or 'none'}>"
        )

    def _repr_html_(self) -> str:
        from limi.report import html

        return html.snippet(self.summary)


def audit(
    model: Any,
    frame: Frame,
    *,
    protected: str | Sequence[str] | Mapping[str, Any],
    target: str | None = None,
    favorable: Value | None = None,
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
    command: str = "",
    device: str = "auto",
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_step: Callable[[float, str], None] = lambda done, words: None,
) -> Result:
    """Test a model for decisions that flip when only protected values change.

    `model` is a fitted estimator, torch module, booster, function of a frame, or `"KIND:PLACE"`.
    `frame` is the table, `target` its label column and `favorable` the label people want.
    `protected` names columns, with values where not all are wanted: `["sex", "age=18-80:5"]`.
    `generator` imitates the table: a name (`limi list generators`), a saved file, an object, or
    None for none; it gives the natural rate, and rows to the methods that search among them.

    `method` is `"limi"` by default, or `"guided"` where `max_queries` is given.

    `device` is `"cpu"`, `"cuda"`, or `"auto"`: a GPU where target and generator can both use it.

    The same seed gives the same findings, whatever `max_batch` is. With `out`, a run folder is
    written; `resume=True` goes on with one that was interrupted.
    """
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
        schema=schema,
        trust_pickle=trust_pickle,
        trust=trust,
        table_name=table_name,
    )
    place, asked = devices.settled(device, problem.target, generator)
    source = _GeneratorSource(generator, seed, place, on_step)
    plan = _Plan(
        problem, asked, chosen, budget, seed, rate_rows, partner, max_batch, command, source
    )
    if out is None:
        return plan.result(plan.search(asked.score, on_progress))
    draft = Draft.begin(Path(out), force=force, resume=resume)
    try:
        draft.settle_on(plan.manifest)
        with Journal(draft.journal, asked.score) as journal:
            searched = plan.search(journal.score, on_progress)
        result = plan.result(searched)
        draft.finish(_files(result), keep_journal=result.stop == Stop.INTERRUPTED)
    except BaseException:
        draft.discard()
        raise
    return result


def prepare(
    model: Any,
    frame: Frame,
    *,
    protected: str | Sequence[str] | Mapping[str, Any],
    target: str | None = None,
    favorable: Value | None = None,
    schema: Schema | None = None,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    table_name: str = "table",
) -> Problem:
    """Bring model, table and protected columns together; an error says what does not fit."""
    columns = columns_of(frame)
    names = [name for name, _, _ in columns]
    if target is not None and target not in names:
        raise BadTable(f"the table has no target column {target!r}; {nearest(target, names)}")
    if not columns or not len(columns[0][1]):
        raise BadTable("the table is empty; it needs at least one row")
    labels = _labels(columns, target)
    wanted = _favorable(favorable, labels, target)
    if schema is None:
        schema = infer(frame, exclude=() if target is None else (target,))
    schema = _protect(schema, protected, target)
    codec = Codec.learn(frame, schema)
    sha256 = None
    if isinstance(model, str):
        name = model
        sha256 = _model_digest(model)
        loaded = models.load(
            model,
            favorable=wanted,
            labels=labels,
            trust_pickle=trust_pickle,
            trust=trust,
            table=table_name,
        )
    else:
        name = type(model).__name__ if not hasattr(model, "__name__") else model.__name__
        loaded = models.wrap(model, favorable=wanted, labels=labels)
    bound = bind(loaded, codec)
    rows = bound.codec.encode(frame)
    bound = bound.settled(rows)
    return Problem(
        target=bound,
        rows=rows,
        label_column=target,
        favorable=1 if wanted is None else wanted,
        unfavorable=next((v for v in labels if v != wanted), None),
        table_name=table_name,
        model_name=name,
        model_sha256=sha256,
        labels=_favorable_labels(columns, target, wanted),
    )


def _model_digest(uri: str) -> str | None:
    """sha256 of the file that a model is read from; `python:FILE.py:NAME` names one as well."""
    place = uri.partition(":")[2].partition("?")[0]
    for path in (Path(place), Path(place.rpartition(":")[0])):
        if path.is_file():
            return file_digest(path)
    return None


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
        known = isinstance(given, (str, Path)) and Path(given).is_file()
        return file_digest(Path(given)) if known else None  # type: ignore[arg-type]

    def make(self, problem: Problem) -> Generator | None:
        """The generator, fitted to the problem's table where it has to be."""
        if self.name is None:
            return None
        if not isinstance(self.given, (str, Path)):
            return _fitting(self.given, problem.schema)
        if Path(self.given).is_file():
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

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The method's parameters."""
        return dataclasses.asdict(self.method)  # type: ignore[call-overload, no-any-return]

    @property
    def _own_population(self) -> str | None:
        """The population that the search itself samples.

        One that may stop at a number of findings is no sample of fixed size, so it counts for none.
        """
        return self.method.population if self.budget.max_findings is None else None

    @cached_property
    def method_name(self) -> str:
        """The name that `limi list methods` shows."""
        given: str | None = getattr(self.method, "name", None)  # a pair names its parts
        return given or type(self.method).__module__.rpartition(".")[2]

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What the run is made of; equal `config_sha256` means equal findings."""
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
            "protected": _protected_values(self.problem.schema),
            "target": self.problem.label_column,
            "favorable": self.problem.favorable,
            "table": self.problem.table_name,
            "model": self.problem.model_name,
            **self.problem.hashes(),
        }
        # The batch size shapes the journal, not the findings, so it is part of the fingerprint
        # of an unfinished run only through the journal's own checks.
        text = json.dumps(config, sort_keys=True, default=str)
        return {
            "format": FORMAT,
            "config_sha256": digest(text.encode()),
            **config,
            "labels_sha256": self.problem.labels_sha256,
            "max_batch": self.max_batch,
            "versions": versions(),
            "command": self.command,
        }

    def search(
        self, score: Callable[[Rows], Scores], on_progress: Callable[[Progress], None]
    ) -> _Searched:
        """Fit the generator, measure rates, then search."""
        pace = self._pace()
        task = Task(
            self.problem.schema,
            score,
            self.problem.rows,
            partner=self.partner,
            max_batch=self.max_batch,
            gradients=gradients.of(self.asked),
        )
        start = time.perf_counter()
        if self.rate_rows or "generator" in self.method.needs:
            task.generator = self.source.make(self.problem)
            if self.source.device != "cpu":
                task.on_device = devices.together(self.asked, task.generator)
        prepared = time.perf_counter() - start
        allowed = self.budget.max_queries
        measured = measure(
            task,
            [p for p in self._populations(task) if p != self._own_population],
            self.seed,
            rows=self._rate_rows(pace, task),
            max_queries=None if allowed is None else allowed // _RATE_SHARE,
        )
        budget = self.budget
        if allowed is not None:
            budget = dataclasses.replace(budget, max_queries=max(1, allowed - measured.queries))
        ran = run(self.method, task, budget, self.seed, on_progress=on_progress)
        decided, asked = self._decided(task, measured, ran)
        return _Searched(ran, measured, task, prepared, decided, asked)

    def _decided(
        self, task: Task, measured: Measured, ran: Run
    ) -> tuple[measures.Decided | None, int]:
        """Decisions on rows of the table, for metrics that compare groups, and queries for them.

        The rows of the real rate were decided already. A search of the table itself has kept no
        decision that does not flip, so there as many rows are asked as a rate takes.
        """
        rows, labels = self.problem.rows, self.problem.labels
        if "real" in measured.checked:
            score, index = measured.checked["real"].score, measured.real_index
            return measures.Decided.of(rows, score, labels, index), 0
        n = min(len(rows), self.rate_rows, MEASURED_ROWS)
        if self.budget.max_queries is not None:
            n = min(n, self.budget.max_queries - measured.queries - ran.queries)
        if n < 1 or self.budget.max_seconds is not None or ran.stop == Stop.INTERRUPTED:
            return None, 0
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(5,)))
        index = np.sort(rng.permutation(len(rows))[:n])
        starts = range(0, n, self.max_batch)
        scores = [task.score(rows[index[start : start + self.max_batch]]) for start in starts]
        return measures.Decided.of(rows, np.concatenate(scores), labels, index), n

    def _pace(self) -> float:
        """Seconds that the model takes for a row, seen while it is held to its contract."""
        start = time.perf_counter()
        asked = self.problem.target.contract(self.problem.rows)
        return (time.perf_counter() - start) / max(1, asked)

    def _rate_rows(self, pace: float, task: Task) -> int:
        """Rows to measure each rate on; fewer where they would outlast a fifth of the seconds."""
        if self.budget.max_seconds is None:
            return self.rate_rows
        per_row = pace * (len(task.schema.combinations) + 1) * len(self._populations(task))
        return min(self.rate_rows, int(self.budget.max_seconds / _RATE_SHARE / max(per_row, 1e-9)))

    def _populations(self, task: Task) -> list[str]:
        return ["real", "uniform", *(["natural"] if task.generator is not None else [])]

    def result(self, searched: _Searched) -> Result:
        """Check every finding again, then sum up."""
        found, unconfirmed = _verified(self.problem.target, searched.run.findings.all())
        found, judged_by = self._judged(searched, found)
        where, shown = self._where(searched, found)
        summary = self._summary(searched, found, unconfirmed, shown, judged_by)
        return Result(self.problem, found, summary, self.manifest, where.rules)

    def _judged(self, searched: _Searched, found: Found) -> tuple[Found, str]:
        """Findings with the naturalness of both rows, and what it was told by."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(8,)))
        generator = searched.task.generator
        judge = None
        if len(found):
            judge = measures.judge(self.problem.rows, self.problem.schema, generator, rng)
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
        for population in ("natural", "real"):
            if population in checked:
                sample = checked[population]
                where = find_rules(schema, sample.rows, sample.flips, rng)
                return where, regions(schema, where, population, sample[sample.flips])
        if self._own_population == "real" and searched.run.stop == Stop.EXHAUSTED:
            # The search has checked the whole table, so a row flips where its key was found.
            known = KeySet()
            known.add(keys(schema, found.rows))
            flips = known.contains(keys(schema, self.problem.rows))
            where = find_rules(schema, self.problem.rows, flips, rng)
            return where, regions(schema, where, "real", found)
        return Where(), None

    def _rates(self, searched: _Searched) -> dict[str, Rate]:
        rates = dict(searched.measured.rates)
        own, ledger = self._own_population, searched.run.findings
        if own is not None and ledger.rows_checked:
            rates[own] = rate_of(ledger.flips, ledger.rows_checked)
        return dict(sorted(rates.items()))

    def _summary(
        self,
        searched: _Searched,
        found: Found,
        unconfirmed: int,
        where: Regions | None,
        judged_by: str,
    ) -> Summary:
        problem, ran = self.problem, searched.run
        ledger = ran.findings
        look = _look(problem, found, searched.measured.flipping.get("real"), self.seed)
        scored = dict(searched.task.facts)
        if isinstance(self.method, methods.Scored):
            scored |= self.method.scores(ledger)
        notes = [*problem.target.notes, *searched.task.notes]
        if unconfirmed:
            notes.append(
                f"{unconfirmed} rows flipped in the search but not when asked again, and were "
                "left out: their scores lie within rounding of 0.5"
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
            protected=_protected_values(problem.schema),
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
            metrics=metrics,
            scores={name: round(float(value), 6) for name, value in scored.items()},
            where=where,
            naturalness=look["naturalness"],
            pictures=look["pictures"] | {"curve": pictures.curve(ran.curve)},
            directions=directions(problem.schema, found),
            examples=examples(problem.schema, found),
            notes=tuple(notes),
            unconfirmed=unconfirmed,
            command=self.command,
            versions=self.manifest["versions"],
            hashes={name: self.manifest[name] for name in ("data_sha256", "model_sha256")},
        )


@dataclass(frozen=True)
class _Searched:
    """What came of a plan before the findings are checked again."""

    run: Run
    measured: Measured
    task: Task
    prepared: float  # seconds to fit the generator
    decided: measures.Decided | None = None
    asked: int = 0  # queries for them


def _verified(target: Target, found: Found) -> tuple[Found, int]:
    """Findings that flip when the model is asked again, with the scores of that second answer.

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
        flipped = (mine[-1] > 0.5) != (other[-1] > 0.5)
        decided, decided_other = target.decide(rows), target.decide(partner)
        if decided is not None and decided_other is not None:
            flipped &= decided != decided_other
        flips.append(flipped)
    again = dataclasses.replace(
        found, score=np.concatenate(mine), partner_score=np.concatenate(other)
    )
    confirmed = np.concatenate(flips)
    return again[confirmed], int((~confirmed).sum())


_FEWEST_TO_JUDGE = 50  # findings under which a set's naturalness says nothing
_MOST_TO_JUDGE = 20_000


def _look(
    problem: Problem, found: Found, flipping: Rows | None, seed: int
) -> dict[str, dict[str, Any]]:
    """How natural the findings are as a set, beside the table's own rows that flip."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,)))
    real = _sample(problem.rows, _MOST_TO_JUDGE, rng)
    groups: dict[str, Rows] = {}
    if len(found) >= _FEWEST_TO_JUDGE:
        groups["findings"] = _sample(found.rows, len(real), rng)
        size = min(_representative_size(problem, found), len(real))
        groups["representative"] = found.rows[_representative(problem, found, size, seed)]
    drawn = {name: rows for name, rows in groups.items() if len(rows) >= _FEWEST_TO_JUDGE}
    if flipping is not None and len(flipping) >= _FEWEST_TO_JUDGE:
        groups["ceiling"] = flipping
    schema = problem.schema
    return {
        "naturalness": {
            name: round(average_tabular_naturalness(real, rows, schema).score, 4)
            for name, rows in groups.items()
            if len(rows) >= _FEWEST_TO_JUDGE
        },
        "pictures": {
            "densities": pictures.densities(real, drawn) if drawn else {},
            "score_pairs": pictures.score_pairs(found),
        },
    }


def _representative_size(problem: Problem, found: Found) -> int:
    # Drawing nearly all findings cannot move them towards the population.
    return min(len(problem.rows), max(1, len(found) // 4))


def _representative(problem: Problem, found: Found, n: int, seed: int) -> Index:
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(4,)))
    return representative(problem.rows, found.rows, problem.schema, n, rng)


def _sample(rows: Rows, n: int, rng: np.random.Generator) -> Rows:
    return rows if len(rows) <= n else rows[rng.choice(len(rows), n, replace=False)]


def _findings_frame(codec: Codec, found: Found) -> Frame:
    schema, backend = codec.schema, codec.backend
    names = schema.names
    partner = codec.decode(found.partner)
    frame = codec.decode(found.rows)
    columns = {name: backend.column(frame, name) for name in names}
    for name in schema.protected:
        columns[_free_name(f"{name}__partner", columns)] = backend.column(partner, name)
    unknown = np.full(len(found), np.nan)
    told = len(found.naturalness) > 0
    extra = {
        "score": found.score,
        "partner_score": found.partner_score,
        "origin": found.origin,
        "severity": score_gap(found.score, found.partner_score),
        "naturalness": found.naturalness if told else unknown,
        "partner_naturalness": found.partner_naturalness if told else unknown,
    }
    # A thrifty search does not ask every value, so it cannot say which columns flip a row.
    if cause_names(schema) and (found.causes.any() or not len(found)):
        extra["flipped_by"] = causes_in_words(schema, found.causes)
    for name, cells in extra.items():
        columns[_free_name(name, columns)] = backend.plain_column(cells)
    return backend.frame(columns)


def _ranking(found: Found) -> Index:
    """Findings in the order of severity times naturalness, the strongest first."""
    natural = np.full(len(found), np.nan)
    if len(found.naturalness):
        natural = np.minimum(found.naturalness, found.partner_naturalness)
    weight = priority(score_gap(found.score, found.partner_score), natural)
    return np.argsort(-weight, kind="stable")


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    """A table may have a column called `score` itself; ours then gets an underscore more."""
    while name in taken:
        name += "_"
    return name


def _files(result: Result) -> dict[str, bytes | str]:
    import pyarrow.parquet as pq

    from limi.report import html

    sink = io.BytesIO()
    pq.write_table(result.problem.target.codec.backend.to_arrow(result.findings), sink)
    summary = json.dumps(result.summary.as_dict(), indent=2, ensure_ascii=False, default=str)
    return {
        "schema.toml": dump(result.problem.schema),
        "findings.parquet": sink.getvalue(),
        "summary.json": summary + "\n",
        "metrics.json": json.dumps(result.metrics(), indent=2, ensure_ascii=False) + "\n",
        "report.html": html.render(result.summary),
    }


def _protected_values(schema: Schema) -> dict[str, list[str]]:
    return {
        name: [schema[name].show(code) for code in codes]
        for name, codes in zip(schema.protected, schema.protected_codes, strict=True)
    }


def _labels(columns: list[tuple[str, Any, Any]], target: str | None) -> tuple[Value, ...]:
    if target is None:
        return ()
    series, backend = next((s, b) for name, s, b in columns if name == target)
    _, cells = backend.factorize(series)
    values = [plain(cell) for cell in cells]
    known = [v for v in values if not (isinstance(v, float) and math.isnan(v))]
    if len(known) != 2:
        raise BadTable(
            f"the target column {target!r} has {len(known)} classes "
            f"({listed(map(repr, known), most=5)}); limi tests decisions between two"
        )
    return tuple(sorted(known, key=lambda v: (isinstance(v, str), v)))


def _favorable_labels(
    columns: list[tuple[str, Any, Any]], target: str | None, favorable: Value | None
) -> Labels | None:
    """Which rows of the table carry the favorable label; -1 where the cell is missing."""
    if target is None:
        return None
    series, backend = next((s, b) for name, s, b in columns if name == target)
    codes, cells = backend.factorize(series)
    values = [plain(cell) for cell in cells]
    gaps = [isinstance(value, float) and math.isnan(value) for value in values]
    meaning = [-1 if gap else value == favorable for gap, value in zip(gaps, values, strict=True)]
    known: Labels = np.array([*meaning, -1], dtype=np.int8)[codes]  # code -1, a gap: the last
    return known


def _favorable(
    favorable: Value | None, labels: tuple[Value, ...], target: str | None
) -> Value | None:
    if not labels:
        return favorable
    if favorable is None:
        if set(labels) == {0, 1}:
            return labels[1]
        raise InvalidInput(
            f"the target column {target!r} holds {listed(map(repr, labels))}; "
            f"say which one people want, for example --favorable {str(labels[-1])!r}"
        )
    for label in labels:
        if label == favorable or str(label) == str(favorable) or same_number(favorable, label):
            return label
    raise InvalidInput(
        f"favorable label {favorable!r} is not in the target column {target!r}; "
        f"{nearest(str(favorable), map(str, labels))}"
    )


def _protect(
    schema: Schema, protected: str | Sequence[str] | Mapping[str, Any], target: str | None
) -> Schema:
    wanted = [protected] if isinstance(protected, str) else protected
    for name in wanted:
        if target is not None and isinstance(name, str) and name.partition("=")[0] == target:
            raise InvalidInput(
                f"{target!r} is the target column; a protected column is one the model takes"
            )
    if not wanted and schema.protected:
        return schema
    return schema.protect(wanted)


def _check_counts(*, seed: int, rate_rows: int, max_batch: int) -> None:
    if seed < 0:
        raise InvalidInput(f"seed is {seed}; it must be 0 or a positive whole number")
    if rate_rows < 0:
        raise InvalidInput(f"rate-rows is {rate_rows}; it must be 0 or more")
    if max_batch < 1:
        raise InvalidInput(f"max-batch is {max_batch}; it must be at least 1")

"""Explorations opened: of a run folder, of a table with a model, of a result in memory."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from limi import models
from limi.audits import run_folder
from limi.audits.problem import Problem
from limi.audits.record import RECORD, Record
from limi.audits.reopen import Run, reopen_problem, require_answers
from limi.audits.result import Result
from limi.audits.sending import exchange_of, is_by_address
from limi.audits.summary import Summary, rules_of
from limi.decisions import Classes, Rule, parse_rule
from limi.defaults import DEFAULT_GENERATOR
from limi.errors import InvalidInput, LimiError
from limi.explore.asking import Asker, Meter
from limi.explore.exploration import Exploration
from limi.explore.found import FoundSheet, read_found, sheet_of_found
from limi.explore.jobs import Jobs
from limi.explore.reading import Reading
from limi.models.target import Target
from limi.remote.options import Remote
from limi.system import writing
from limi.system.words import both
from limi.table.frames import Codec
from limi.table.schema import Schema
from limi.types import Rows

__all__ = ["explore_problem", "explore_result", "explore_run", "wait_at_most"]

_SPOT = 32  # findings that are put to the model again, to see that it is the one


def explore_run(
    folder: str | Path,
    *,
    table: Any = None,
    model: Any = None,
    protected_from: Any = None,
    generator: str | None = None,
    read_only: bool = False,
    max_queries: int | None = None,
    timeout: float = 60.0,
    record: Path | None = None,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    remote: Remote | None = None,
) -> Exploration:
    """The exploration of a finished run, held to the table and the model that it tested."""
    run = Run.at(folder, derive=False)
    summary, meter = run.summary, Meter(_checked(max_queries))
    notes = _notes_on_hidden(summary, read_only)
    read_only = read_only or bool(notes)
    opens: dict[str, Any] = {"trust_pickle": trust_pickle, "trust": trust}
    problem: Problem | None = None
    rows: Rows | None = None
    schema = run_folder.read_schema(run.folder)
    # The findings are decoded by Arrow, which leaves Python free to open the model meanwhile.
    with ThreadPoolExecutor(1, thread_name_prefix="limi-explore-read") as pool:
        reading = pool.submit(_read_found, run, schema, _rule_of(summary))
        if not read_only:
            problem = reopen_problem(
                run,
                table=table,
                model=model,
                protected_from=protected_from,
                remote=wait_at_most(timeout, model, remote),
                **opens,
            )
            rows = problem.rows
        elif not summary.hidden:
            rows, told = _rows_of(run, table, schema)
            notes += told
        found = _settle_found(reading.result(), run, problem)
    made = Exploration(
        found.schema,
        Reading(found.rule, summary.favorable, summary.unfavorable),
        str(folder),
        summary.model,
        summary.table,
        None if problem is None else _asker_of(problem, meter),
        meter,
        Record(run.folder / RECORD if record is None else record, _now),
        Jobs(patience=timeout),
        rows=rows,
        found=found,
        summary=summary,
        regions=found.regions,
        hidden=tuple(summary.hidden),
        seed=summary.seed,
        generator_name=generator or _generator_of(run.manifest.generator, run.base),
        notes=tuple(notes),
        model_uri=_uri_of(run, model),
        asked_for={
            "favorable": run.manifest.favorable,
            "labels": () if problem is None else problem.known,
            "output": run.manifest.output,
        },
    )
    if problem is not None and made.asker is not None:
        _require_same(run, problem, found, made.asker, model)
        meter.asked += _sent(problem.target)
    return made


def wait_at_most(seconds: float, model: Any, remote: Remote | None) -> Remote | None:
    """How a model behind an address is asked in a session that gives a question up after so many
    seconds: no request may hold up the next question for longer."""
    if not (isinstance(model, str) and is_by_address(model)):
        return remote
    usual = Remote() if remote is None else remote
    return replace(usual, timeout=min(seconds, usual.timeout))


def _notes_on_hidden(summary: Summary, read_only: bool) -> list[str]:
    """A sentence where the run hides what the model takes, so that nobody can be asked about."""
    if read_only or not summary.hidden:
        return []
    return [
        f"The run hides {both(map(repr, summary.hidden))}, which the model takes, so limi cannot "
        "ask about its people again. To ask, run it again with --show-personal, and take care who "
        "can read that folder."
    ]


def _read_found(run: Run, schema: Schema, rule: Rule) -> FoundSheet:
    with run_folder.reading("summary", run.folder):
        regions = rules_of(schema, run.summary.where)
    return read_found(run.folder, schema, rule, run.summary.kind, regions)


def _settle_found(found: FoundSheet, run: Run, problem: Problem | None) -> FoundSheet:
    """The findings under the rule by which the model is asked; read again in the unlikely case that
    its columns or its classes are not those that the run's folder names."""
    if problem is None:
        some = found.sheet["score"].values[:1000]
        return replace(found, rule=found.rule.settle(some)) if len(found) else found
    rule = problem.target.rule
    same = problem.schema == found.schema and _labels_of(rule) == _labels_of(found.rule)
    return replace(found, rule=rule) if same else _read_found(run, problem.schema, rule)


def _labels_of(rule: Rule) -> tuple[str, ...]:
    """What the classes of a rule are called, in order."""
    if not isinstance(rule, Classes):
        return ()
    return tuple(rule.show(place) for place in range(len(rule.labels) + 1))


def explore_problem(
    problem: Problem,
    *,
    name: str | None = None,
    generator: str | None = None,
    max_queries: int | None = None,
    timeout: float = 60.0,
    record: Path | None = None,
    seed: int = 0,
) -> Exploration:
    """The exploration of a model on a table that nobody searched."""
    meter = Meter(_checked(max_queries))
    meter.asked += _sent(problem.target)
    return Exploration(
        problem.schema,
        _reading_of(problem),
        name or problem.table_name,
        problem.model_name,
        problem.table_name,
        _asker_of(problem, meter),
        meter,
        Record(record, _now),
        Jobs(patience=timeout),
        rows=problem.rows,
        hidden=problem.hidden,
        seed=seed,
        generator_name=generator or DEFAULT_GENERATOR,
        notes=problem.notes,
    )


def explore_result(
    result: Result,
    *,
    max_queries: int | None = None,
    timeout: float = 60.0,
    record: Path | None = None,
    generator: str | None = None,
) -> Exploration:
    """The exploration of a result in memory."""
    problem, summary = result.problem, result.summary
    made = explore_problem(
        problem,
        name=summary.table,
        generator=generator or _generator_of(result.manifest.get("generator"), Path()),
        max_queries=max_queries,
        timeout=timeout,
        record=record,
        seed=summary.seed,
    )
    found = result.found if result.spool is None else result.spool.all()
    made.found = sheet_of_found(problem.schema, problem.target.rule, found, result.rules)
    made.summary, made.regions = summary, result.rules
    made.reading = Reading(problem.target.rule, summary.favorable, summary.unfavorable)
    made.notes = ()
    return made


def _asker_of(problem: Problem, meter: Meter) -> Asker:
    return Asker(problem.target, meter, exchange_of(problem.target))


def _checked(max_queries: int | None) -> int | None:
    if max_queries is not None and max_queries < 1:
        raise InvalidInput(f"max-queries is {max_queries}; allow at least one")
    return max_queries


def _sent(target: Target) -> int:
    """Rows that a model behind an address was sent while it was opened."""
    exchange = exchange_of(target)
    return 0 if exchange is None else int(exchange.tally.sent)


def _reading_of(problem: Problem) -> Reading:
    favorable = "favorable" if problem.favorable is None else str(problem.favorable)
    unfavorable = f"not {favorable}" if problem.unfavorable is None else str(problem.unfavorable)
    return Reading(problem.target.rule, favorable, unfavorable)


def _rule_of(summary: Summary) -> Rule:
    """The rule of a run whose model is not opened."""
    rule = parse_rule(summary.decision)
    if isinstance(rule, Classes):
        return replace(rule, labels=summary.classes, ordered=summary.ordered)
    return rule


def _rows_of(run: Run, table: Any, schema: Schema) -> tuple[Rows | None, list[str]]:
    """The table's people where nobody opens the model; a sentence if they are not available."""
    try:
        read = run.table(table)
        if run.manifest.protected_from:
            raise InvalidInput("its protected columns are in another table")
        return Codec.learn(read.frame, schema).encode(read.frame), []
    except LimiError as error:
        if table is not None:
            raise
        return None, [f"The table is not available, so naturalness is not shown: {error}."]


def _require_same(run: Run, problem: Problem, found: FoundSheet, asker: Asker, model: Any) -> None:
    """BadModel where the model does not give the scores that the run wrote."""
    if not run.is_steady or not len(found) or exchange_of(problem.target) is not None:
        return
    left = asker.meter.left
    n = min(_SPOT, len(found)) if left is None else min(_SPOT, len(found), left // 2)
    if not n:  # the session may not even ask about one pair
        return
    some = found.found(np.arange(n))
    asker.meter.asked += require_answers(problem.target, some, model, run.words)


def _uri_of(run: Run, model: Any) -> str | None:
    """The model of a run from the root on; None where it has no name."""
    try:
        uri = run.model(model)
    except LimiError:
        return None
    if not isinstance(uri, str):
        return None
    kind, _, place = uri.partition(":")
    return f"{kind}:{writing.absolute(place)}" if models.files(uri) else uri


def _generator_of(name: Any, base: Path) -> str:
    """The generator of a run: its name, or its file where that still is."""
    if not isinstance(name, str):
        return DEFAULT_GENERATOR
    from limi import generators

    if name in generators.names():
        return name
    return str(base / name) if (base / name).is_file() else DEFAULT_GENERATOR


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

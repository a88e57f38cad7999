"""One call from a model and a table to findings, rates and a report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from limi import methods
from limi.audits.beside import read_beside
from limi.audits.conduct import conduct
from limi.audits.drafts import Draft
from limi.audits.early_check import EarlyCheck
from limi.audits.estimate import Estimate
from limi.audits.generator_source import GeneratorSource, anchored
from limi.audits.hiring import hire, want_workers
from limi.audits.labels import read_label_names
from limi.audits.plan import CONTRACT_SHARE, Plan
from limi.audits.problem import Problem, prepare, with_held_out
from limi.audits.result import Result, files
from limi.audits.sending import check_queries, exchange_of, sends_rows, settle_remote
from limi.audits.sum_up import sum_up
from limi.audits.twin_question import TwinQuestion, take_keep
from limi.defaults import (
    BUDGETED_METHOD,
    DEFAULT_GENERATOR,
    DEFAULT_MAX_ROWS,
    DEFAULT_METHOD,
    MEASURED_ROWS,
)
from limi.errors import InvalidInput, spell
from limi.generators import Generator
from limi.gpu import place as devices
from limi.metrics.severity import require_volume
from limi.models import Meaning
from limi.remote.options import Remote
from limi.search.answer_log import AnswerLog
from limi.search.budget import Budget, Stop, check_seed
from limi.search.check import MAX_BATCH
from limi.search.engine import Progress
from limi.system import cores
from limi.system.arguments import check_fields, checked
from limi.system.watch import Watch
from limi.table.frames import Frame
from limi.table.rule_checks import GivenConstraints
from limi.table.schema import Schema
from limi.types import Rows, Scores, Value

__all__ = ["Out", "audit"]


@dataclass(frozen=True)
class Out:
    """Where a run folder is written, and what may happen to one that is there."""

    path: str | Path
    force: bool = False  # replace a finished run
    resume: bool = False  # go on with an interrupted one

    def __post_init__(self) -> None:
        check_fields(self)

    @staticmethod
    def of(out: str | Path | Out | None, *, force: bool, resume: bool) -> Out | None:
        """What was said of a run folder, in parts or at once; InvalidInput where both disagree or
        one is missing."""
        said = [name for name, value in (("force", force), ("resume", resume)) if value]
        if isinstance(out, Out) and said:
            raise InvalidInput(
                f"{said[0]} was given beside an Out, which says that itself; write Out(path, "
                f"{said[0]}=True)"
            )
        if out is None and said:
            what = "continues" if resume else "replaces"
            raise InvalidInput(
                f"--{said[-1]} {what} a run folder, but none is named; add --out FOLDER"
            )
        return out if isinstance(out, Out) or out is None else Out(out, force, resume)

    def draft(self) -> Draft:
        """The folder, ready to be filled."""
        return Draft.at(self.path, force=self.force, resume=self.resume)


@checked
def audit(
    model: Any,
    frame: Frame,
    *,
    protected: str | Sequence[str] | Mapping[str, Any],
    target: str | None = None,
    favorable: Value | Sequence[Value] | None = None,
    output: Meaning | None = None,
    decision: str | None = None,
    order: str | Sequence[Value] | None = None,
    held_out: Frame | None = None,
    method: str | methods.Method | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    generator: str | Path | Generator | None = DEFAULT_GENERATOR,
    schema: Schema | None = None,
    constraints: GivenConstraints = (),
    drop: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    redact: bool | str | Sequence[str] = True,
    label_names: str | Mapping[Any, str] | None = None,
    volume: int | None = None,
    budget: Budget | None = None,
    max_rows: int | None = DEFAULT_MAX_ROWS,
    max_queries: int | None = None,
    max_findings: int | None = None,
    max_seconds: float | None = None,
    seed: int = 0,
    rate_rows: int | None = None,
    twin: bool = False,
    keep: str | Sequence[str] = (),
    twin_generator: str = DEFAULT_GENERATOR,
    protected_from: Frame | None = None,
    key: str | None = None,
    max_batch: int = MAX_BATCH,
    out: str | Path | Out | None = None,
    force: bool = False,
    resume: bool = False,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    remote: Remote | None = None,
    noisy: bool = False,
    dry_run: bool = False,
    table_name: str = "table",
    held_out_name: str = "held-out rows",
    protected_from_name: str = "the protected table",
    command: str = "",
    device: str = "auto",
    workers: int | str | None = None,
    cluster: str | None = None,
    on_plan: Callable[[Estimate], None] = lambda estimate: None,
    on_progress: Callable[[Progress], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Result:
    """Test a model for decisions that flip when only protected values change.

    **What is tested.** `model` is a fitted estimator, a torch module, a booster, a function that
    takes a frame, or `"KIND:PLACE"`. `frame` is the table, `target` its label column and
    `favorable` the label that people want, or a list of them: `["gold", "silver"]`. `protected`
    names the protected columns, each with some of its values if not all should be tried:
    `["sex", "age=18-80:5"]`. `held_out` are rows that the model has not seen, with the same
    columns; rates and group metrics of people are then measured on them.

    **What a decision is.** `output` says whether a function returns labels or favorable scores, if
    limi cannot tell from its answers. `decision` says what counts as a different decision:
    `"score > 0.3"`, `"class"` (with `order` if some classes are better than others),
    `"difference > 25"`, `"difference > 10 %"` or `"bands = 580, 670"`; by default, the model's own.

    **Columns.** `drop` names columns that the model does not take, or `only` those that it does,
    for functions and array models that do not say; without either, dates and identifiers are given
    only to a model that names them. Columns that look like names, addresses, phone numbers or
    identifiers are hidden in everything that is written; `redact` names more, and False shows all.
    `constraints` are rules that every row and every partner keeps, in addition to those of
    `schema`: `['relationship == "Husband" implies sex == "Male"']`, or a mapping from names to
    rules. `label_names` says what labels mean, for reports (`{1: "granted", 0: "refused"}`), and
    `volume` how many people per year the model decides about.

    **How to search.** `method` is `"limi"` by default, or `"guided"` if `max_queries` is given or
    decisions are classes or numbers; `settings` are those of the method, by name.
    `generator` imitates the table: a name (`limi list generators`), a saved file, an object, or
    None for none; the natural rate needs one, and so do methods that search among natural people.
    `budget`, or `max_rows` and the other limits, say when the search ends. Rates are measured on
    `rate_rows` of each population (10,000 by default); of a budget of queries or seconds they get
    a fifth, or up to four fifths if you give `rate_rows`.

    **Twins.** `twin=True` also asks how people would be decided as their twins in another group,
    with everything that goes along with that group in the table; `keep` names columns in which
    groups may differ, which twins keep. For a model that takes no protected column, this is the
    only question. `protected_from` is a table with protected columns that `frame` lacks, for the
    same people, matched by the column `key`.

    **Where it runs.** `device` is `"cpu"`, `"cuda"`, or `"auto"`: a GPU if target and generator can
    both use it. `workers` is the number of processes that ask the model, `"auto"` for one per core;
    `cluster` takes them from Ray: `"ray"` (the cluster in RAY_ADDRESS, or a local one) or
    `"ray://HOST:PORT"`. The findings do not depend on either.

    **Remote and random models.** `remote` says how a model behind an address
    (`"mlflow:http://..."`) is asked: headers, requests in flight, a cache of answers, a price.
    `max_queries` then limits the rows that the whole run sends. `dry_run=True` sends nothing:
    `on_plan` receives what each step would ask, and there is no result. `noisy=True` says that the
    model's answers are random: a finding is then a pair whose two sides have different chances,
    shown by asking about them again and again.

    **Output.** `out` is a run folder to write; `resume=True` continues one that was interrupted
    (`out=Out(path, resume=True)` says both at once). `on_progress` receives how far the run is; by
    default a notebook shows a bar. The same seed gives the same findings, whatever `max_batch` is.
    """
    from limi.report.notebook import notebook_bar

    # Now, because a model may go to another folder when it is loaded.
    folder = Out.of(out, force=force, resume=resume)
    draft = None if folder is None else folder.draft()
    origin = None if draft is None else _way_back(draft.place)
    found = anchored(generator)
    budget = _one_budget(
        budget,
        max_rows=max_rows,
        max_queries=max_queries,
        max_findings=max_findings,
        max_seconds=max_seconds,
    )
    check_queries(budget.max_queries)
    rates_first = rate_rows is not None
    rate_rows = MEASURED_ROWS if rate_rows is None else rate_rows
    named = [DEFAULT_METHOD, BUDGETED_METHOD] if method is None else [method]
    if method is None and budget.max_queries is not None:
        named = [BUDGETED_METHOD]
    able = _choose_methods(named, settings)
    _check_counts(seed=seed, rate_rows=rate_rows, max_batch=max_batch)
    has_workers = want_workers(model, workers, cluster, device, budget)
    if volume is not None:
        require_volume(volume)
    bar = None if on_progress is not None else notebook_bar()
    watch = Watch(
        clock,
        budget.max_seconds,
        on_progress or bar or (lambda progress: None),
        # Of a model behind an address, the rows that are sent are counted where they are sent.
        max_queries=None if sends_rows(model) else budget.max_queries,
    )
    remote = settle_remote(
        model,
        remote,
        max_queries=budget.max_queries,
        out=None if draft is None else draft.place,
        resume=folder is not None and folder.resume,
        look=watch.check_time if watch.limited else None,
    )
    beside = read_beside(protected_from, key, protected_from_name)
    watch.enter("contract")
    problem = prepare(
        model,
        frame,
        protected=protected,
        target=target,
        favorable=favorable,
        output=output,
        decision=decision,
        order=order,
        schema=schema,
        constraints=constraints,
        drop=drop,
        only=only,
        redact=redact,
        trust_pickle=trust_pickle,
        trust=trust,
        remote=remote,
        ask=not dry_run,
        table_name=table_name,
        beside=beside,
        max_seconds=None if budget.max_seconds is None else budget.max_seconds / CONTRACT_SHARE,
        max_queries=budget.max_queries,
        on_asked=watch.count,
        clock=clock,
    )
    if held_out is not None:
        problem = with_held_out(problem, held_out, held_out_name, beside)
    if (exchange := exchange_of(problem.target)) is not None:
        watch.retries = lambda: exchange.tally.failed
    # A boundary between two sides finds less than plain natural rows where there are more.
    chosen = able[0 if problem.target.rule.kind == "favorable" else -1]
    if isinstance(chosen, InvalidInput):
        raise chosen
    question = _twin_question(problem, twin, keep, twin_generator)
    place, asked = devices.settle_device("cpu" if has_workers else device, problem.target, found)
    source = GeneratorSource(found, generator, seed, place)
    plan = Plan(
        problem,
        asked,
        chosen,
        budget,
        seed,
        rate_rows,
        max_batch,
        command,
        source,
        watch,
        on_plan,
        origin,
        question,
        noisy,
        read_label_names(label_names, problem.known),
        rates_first,
        volume,
    )
    plan.check()
    if dry_run:
        on_plan(plan.estimate_unasked())
        raise InvalidInput("a dry run has no result; pass on_plan to see what it would ask")
    with ExitStack() as ending:
        if bar is not None:
            ending.callback(bar.close)
        if exchange is not None:
            ending.callback(exchange.rest)
        score = asked.score
        if has_workers:
            spread = ending.enter_context(hire(asked, workers, cluster, problem.opened))
            plan, score = replace(plan, spread=spread), spread.score
        if asked is not problem.target and not watch.limited and budget.max_queries is None:
            early = ending.enter_context(EarlyCheck(problem.target))
            plan = replace(plan, early=early)
        # Now that model and libraries are loaded: a limit holds for what is there.
        ending.enter_context(cores.share_cores())
        return replace(_run(plan, watch.timed(score), draft), frame=frame)


def _choose_methods(
    named: Sequence[str | methods.Method], settings: Sequence[str] | Mapping[str, Any]
) -> list[methods.Method | InvalidInput]:
    """The methods that may be the one, with their settings or why they do not take them; which of
    them it is depends on what the model answers. InvalidInput where none takes the settings."""
    able: list[methods.Method | InvalidInput] = []
    for one in named:
        if not isinstance(one, str):
            if settings:
                raise InvalidInput(
                    "settings were given beside a method object, which has its own; name the "
                    "method instead, or make the object with these settings"
                )
            able.append(one)
            continue
        try:
            able.append(methods.parse(one, settings))
        except InvalidInput as error:
            able.append(error)
    refused = [one for one in able if isinstance(one, InvalidInput)]
    if len(refused) == len(able):
        raise refused[0]
    return able


def _run(plan: Plan, score: Callable[[Rows], Scores], draft: Draft | None) -> Result:
    """Search and sum up; with a draft, log the answers and write the folder."""
    if draft is None:
        return sum_up(plan, conduct(plan, score))
    with draft:
        draft.settle_on(plan.manifest)
        journal = AnswerLog(draft.log, score, plan.asked.rule)
        if plan.spread is not None:
            plan.spread.log = journal
        searched = conduct(plan, journal.score)
        draft.searched = True
        searched.notes.extend(journal.notes)
        result = sum_up(plan, searched)
        draft.finish(files(result), keep_journal=result.stop == Stop.INTERRUPTED)
    return result


def _twin_question(
    problem: Problem, twin: bool, keep: str | Sequence[str], generator: str
) -> TwinQuestion | None:
    """What is asked about twins; always something where the model takes no protected column."""
    kept = take_keep(keep, problem.schema)
    unseen = set(problem.schema.protected) <= set(problem.unseen)
    if (twin or unseen) and problem.target.rule.kind != "favorable":
        why = f"the model does not take {spell(problem.unseen)}, so changing it flips nothing; "
        raise InvalidInput(
            f"{why if unseen else ''}twins need favorable decisions, but the decision here is "
            f"{str(problem.target.rule)!r}; name favorable labels, or a threshold"
        )
    if twin or unseen:
        return TwinQuestion(kept, generator)
    if kept:
        raise InvalidInput(
            f"--keep {','.join(kept)} names columns that people keep when they are decided as "
            "their twins; add --twin (twin=True in Python)"
        )
    return None


def _one_budget(given: Budget | None, **parts: Any) -> Budget:
    """The budget that was given, whole or in parts."""
    if given is None:
        return Budget(**parts)
    usual = {"max_rows": DEFAULT_MAX_ROWS}
    both = [name for name, value in parts.items() if value != usual.get(name)]
    if both:
        raise InvalidInput(
            f"budget and {both[0]} were both given; move {both[0]} into the budget, or leave the "
            "budget out"
        )
    return given


def _way_back(place: Path) -> str:
    """From a run folder to the folder that a run is started in: it holds where both move along."""
    here = Path.cwd().resolve()
    try:
        return os.path.relpath(here, place)
    except ValueError:  # on another drive
        return str(here)


def _check_counts(*, seed: int, rate_rows: int, max_batch: int) -> None:
    check_seed(seed)
    if rate_rows < 0:
        raise InvalidInput(f"rate-rows is {rate_rows}; it must be 0 or more")
    if max_batch < 1:
        raise InvalidInput(f"max-batch is {max_batch}; it must be at least 1")

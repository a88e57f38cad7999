"""`limi test`: search a model for findings."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from typer import Option

from limi.cli import _console
from limi.cli._apart import MODEL, Reads, Writes, table_files
from limi.cli._log import Log, check_log, log_result
from limi.cli._options import (
    AsJson,
    Cache,
    Cluster,
    Concurrency,
    Constraints,
    DecisionRule,
    Drop,
    FavorableLabels,
    FitRows,
    Full,
    Header,
    Key,
    LabelNames,
    LabelOrder,
    Only,
    Price,
    ProtectedFrom,
    Redact,
    ShowPersonal,
    TableFile,
    Timeout,
    Trust,
    TrustPickle,
    Verbose,
    Volume,
    Workers,
    redacted,
    remote_of,
)
from limi.defaults import DEFAULT_GENERATOR, DEFAULT_MAX_ROWS, MEASURED_ROWS

if TYPE_CHECKING:
    from limi.audits.estimate import Estimate
    from limi.audits.result import Result

__all__ = ["finish", "test"]


def test(
    table: TableFile,
    model: Annotated[
        str | None, Option(help="Model to test, as KIND:PLACE (`limi list models`)."), MODEL
    ] = None,
    protected: Annotated[
        list[str] | None,
        Option(
            help="Protected column, with all its values or some: sex, race=White,Black, "
            "age=18-80:5. Repeatable; by default those of the schema."
        ),
    ] = None,
    target: Annotated[str | None, Option(help="Column the model predicts.")] = None,
    favorable: FavorableLabels = None,
    output: Annotated[
        str | None,
        Option(help="What a Python function returns, if limi cannot tell: label or score."),
    ] = None,
    decision: DecisionRule = None,
    order: LabelOrder = None,
    held_out: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Rows that the model has not seen; rates and group metrics come from them.",
        ),
        Reads("the held-out rows", table_files),
    ] = None,
    method: Annotated[
        str | None,
        Option(
            help="Search method (`limi list methods`). Default: limi, or guided with --max-"
            "queries and for classes and numbers."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="Setting of the method. Repeatable."),
    ] = None,
    generator: Annotated[
        str,
        Option(help="Imitates the table: `limi list generators`, a saved file, or none."),
        Reads("the generator"),
    ] = DEFAULT_GENERATOR,
    schema: Annotated[
        Path | None,
        Option(help="Schema of the table, as TOML (`limi schema`)."),
        Reads("the schema"),
    ] = None,
    constraint: Constraints = None,
    drop: Drop = None,
    only: Only = None,
    redact: Redact = None,
    show_personal: ShowPersonal = False,
    label_names: LabelNames = None,
    volume: Volume = None,
    max_rows: Annotated[int, Option(help="Most rows to check.")] = DEFAULT_MAX_ROWS,
    max_queries: Annotated[int | None, Option(help="Most rows to put to the model.")] = None,
    max_findings: Annotated[int | None, Option(help="Most findings.")] = None,
    max_seconds: Annotated[float | None, Option(help="Most seconds for the whole run.")] = None,
    rate_rows: Annotated[
        int | None,
        Option(
            help=f"Rows to measure each population's rate on ({MEASURED_ROWS:,} by default; 0 for "
            "none). If you name a number, rates get up to four fifths of a budget of queries or "
            "seconds instead of one fifth."
        ),
    ] = None,
    fit_rows: FitRows = None,
    twin: Annotated[
        bool,
        Option(
            "--twin",
            help="Also ask how people would be decided as their twins in another group.",
        ),
    ] = False,
    keep: Annotated[
        list[str] | None,
        Option(
            metavar="COLUMN",
            help="Column in which groups may differ: twins keep it. Repeatable, or with commas.",
        ),
    ] = None,
    twin_generator: Annotated[
        str,
        Option(help="Generator that twins are learned with; it needs an order of columns."),
        Reads("the generator of twins"),
    ] = DEFAULT_GENERATOR,
    protected_from: ProtectedFrom = None,
    key: Key = None,
    seed: Annotated[int, Option(help="Same seed, same findings.")] = 0,
    max_batch: Annotated[int, Option(help="Rows given to the model at once.")] = 1 << 18,
    device: Annotated[
        str, Option(help="cpu, cuda, or auto: cuda if model and generator can both use it.")
    ] = "auto",
    workers: Workers = None,
    cluster: Cluster = None,
    out: Annotated[Path | None, Option(help="Run folder to write."), Writes()] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing run folder.")] = False,
    resume: Annotated[bool, Option("--resume", help="Continue an interrupted run.")] = False,
    trust_pickle: TrustPickle = False,
    trust: Trust = None,
    noisy: Annotated[
        bool,
        Option(
            "--noisy",
            help="The model's answers are random: count only differences beyond the noise.",
        ),
    ] = False,
    header: Header = None,
    concurrency: Concurrency = None,
    cache: Cache = None,
    timeout: Timeout = None,
    price: Price = None,
    dry_run: Annotated[
        bool,
        Option("--dry-run", help="Say how many queries each step would take, and send nothing."),
    ] = False,
    log: Log = None,
    plan: Annotated[
        bool,
        Option("--plan", help="Say what the run would cost, then stop without writing anything."),
    ] = False,
    verbose: Verbose = False,
    full: Full = False,
    as_json: AsJson = False,
) -> None:
    """Search a model for people whose decision flips when only a protected value changes."""
    import limi
    from limi.cli._asking import ask, can_ask, fill_in
    from limi.cli._fitting import showing_command
    from limi.cli._tables import source
    from limi.cli._understood import say_understood
    from limi.errors import InvalidInput
    from limi.table import files

    check_log(None if plan or dry_run else log)
    answers: list[str] = []
    if model is None and can_ask():
        model = ask("Model, as KIND:PLACE (limi list models)")
        answers += ["--model", model]
    if not model:
        raise InvalidInput(
            "--model is missing; name the model to test, such as skops:model.skops or "
            "python:FILE.py:FUNCTION (limi list models)"
        )
    given = source(table, target, favorable, schema, constraint, fit_rows)
    say_understood(table, given, verbose=verbose, shows_personal=show_personal)
    protected = fill_in(given, protected or (), answers)
    shown = plan or dry_run
    on_plan = partial(_show_plan, as_json=as_json, by_step=dry_run)
    _console.announce_sending(None if shown else model)
    with (
        showing_command(answers),
        nullcontext(lambda progress: None) if shown else _console.run_progress() as show,
    ):
        result = limi.audit(
            model,
            given.pop("frame"),
            protected=protected or (),
            output=output,  # type: ignore[arg-type]
            decision=decision,
            order=order,
            held_out=None if held_out is None else files.read(held_out),
            held_out_name=held_out or "held-out rows",
            method=method,
            settings=settings or (),
            generator=generator,
            max_rows=max_rows,
            max_queries=max_queries,
            max_findings=max_findings,
            max_seconds=max_seconds,
            rate_rows=rate_rows,
            twin=twin,
            keep=keep or (),
            twin_generator=twin_generator,
            protected_from=None if protected_from is None else files.read(protected_from),
            protected_from_name=protected_from or "the protected table",
            key=key,
            drop=drop or (),
            only=only or (),
            redact=redacted(redact, show_personal),
            label_names=label_names,
            volume=volume,
            seed=seed,
            max_batch=max_batch,
            device=device,
            workers=workers,
            cluster=cluster,
            out=None if shown else out,
            force=force and not shown,
            resume=resume and not shown,
            trust_pickle=trust_pickle,
            trust=trust or (),
            remote=remote_of(header, concurrency, cache, price, timeout),
            noisy=noisy,
            dry_run=dry_run,
            table_name=table,
            command=_console.command_line(answers),
            on_plan=on_plan if shown else _console.announce,
            on_progress=show,
            **given,
        )
    finish(result, out, as_json, full=full)
    log_result(log, result, quiet=as_json)


def _show_plan(estimate: Estimate, *, as_json: bool, by_step: bool) -> NoReturn:
    """Print what the run would cost, and end the command."""
    if as_json:
        _console.print_json(estimate.as_dict())
    else:
        _console.out.print(estimate.by_step() if by_step else str(estimate), soft_wrap=True)
    raise typer.Exit


def finish(result: Result, out: Path | None, as_json: bool, *, full: bool = False) -> None:
    """Print what was found, and leave with 130 where the user cut the search short."""
    from limi.report import brief, text

    if as_json:
        _console.print_json(result.summary.as_dict())
    else:
        show = text.print_summary if full else brief.print_brief
        show(result.summary, _console.out)
        if out is not None:
            _console.out.print(f"Written: {out}/ (report.html, findings.parquet, summary.json)")
    if result.stop == "interrupted":
        if out is not None:
            _console.err.print("Interrupted; to continue, repeat the command with --resume.")
        raise typer.Exit(130)

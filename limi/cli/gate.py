"""`limi gate`: does a model keep the rules of a build?"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from limi.cli import _console
from limi.cli._apart import RUN, Reads, Writes, table_files
from limi.cli._config import file_of
from limi.cli._log import Log, check_log, log_gate
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
    Header,
    Key,
    LabelOrder,
    Only,
    Price,
    ProtectedFrom,
    Redact,
    Returned,
    SchemaFile,
    ShowPersonal,
    TableFile,
    TestedModel,
    Timeout,
    Trust,
    TrustPickle,
    Workers,
    redacted,
    remote_of,
)
from limi.defaults import DEFAULT_GATE_QUERIES, DEFAULT_GENERATOR

if TYPE_CHECKING:
    from limi.gates import Gate

__all__ = ["gate"]

_FAILED, _UNKNOWN = 1, 3  # exit codes; 2 and 4 are errors of usage and of data or model
_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
_CODES = {"pass": 0, "fail": _FAILED, None: _UNKNOWN}


def _markdown_files(markdown: str | None) -> Iterator[tuple[str, Path]]:
    """What Markdown goes to: a file, and the summary of a workflow that runs the command."""
    path = _as_path(markdown)
    if path is not None:
        yield "--markdown", path
    if os.environ.get(_STEP_SUMMARY):
        yield f"${_STEP_SUMMARY}", Path(os.environ[_STEP_SUMMARY])


def gate(
    context: typer.Context,
    table: TableFile,
    model: TestedModel,
    protected: Annotated[
        list[str] | None,
        Option(
            help="Protected column: sex, race=White,Black, age=18-80:5. Repeatable; by default "
            "those of the schema."
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        Option(
            metavar="TEXT",
            help="Rule to keep, such as 'natural_rate <= 1 %', instead of those in the file. "
            "Repeatable.",
        ),
    ] = None,
    target: Annotated[str | None, Option(help="Column the model predicts.")] = None,
    favorable: FavorableLabels = None,
    output: Returned = None,
    decision: DecisionRule = None,
    order: LabelOrder = None,
    held_out: Annotated[
        str | None,
        Option(metavar="FILE", help="Rows that the model has not seen."),
        Reads("the held-out rows", table_files),
    ] = None,
    privileged: Annotated[
        list[str] | None,
        Option(metavar="COL=VALUE", help="Group that spd compares with the others. Repeatable."),
    ] = None,
    baseline: Annotated[
        Path | None, Option(metavar="RUN", help="Run folder of an earlier model."), RUN
    ] = None,
    generator: Annotated[
        str, Option(help="`limi list generators`, or a file."), Reads("the generator")
    ] = (DEFAULT_GENERATOR),
    schema: SchemaFile = None,
    constraint: Constraints = None,
    drop: Drop = None,
    only: Only = None,
    redact: Redact = None,
    show_personal: ShowPersonal = False,
    protected_from: ProtectedFrom = None,
    key: Key = None,
    fit_rows: FitRows = None,
    max_queries: Annotated[
        int, Option(help="Most rows to put to the model.")
    ] = DEFAULT_GATE_QUERIES,
    max_seconds: Annotated[float | None, Option(help="Most seconds.")] = None,
    error: Annotated[
        float, Option(help="Probability of any wrong answer, for all rules together.")
    ] = 0.05,
    inconclusive: Annotated[
        str | None,
        Option(
            metavar="pass|fail",
            help="What an inconclusive answer counts as: pass or fail. Default: exit code 3.",
        ),
    ] = None,
    seed: Annotated[int, Option(help="Same seed, same rows.")] = 0,
    max_batch: Annotated[int, Option(help="Rows given to the model at once.")] = 1 << 18,
    device: Annotated[str, Option(help="cpu, cuda, or auto.")] = "auto",
    workers: Workers = None,
    cluster: Cluster = None,
    out: Annotated[
        Path | None, Option(help="JSON file to write: the answer in numbers."), Writes()
    ] = None,
    junit: Annotated[Path | None, Option(help="JUnit XML file to write."), Writes()] = None,
    sarif: Annotated[Path | None, Option(help="SARIF 2.1.0 file to write."), Writes()] = None,
    markdown: Annotated[
        str | None,
        Option(metavar="FILE|-", help="Markdown file to write, or - for standard output."),
        Writes(_markdown_files),
    ] = None,
    log: Log = None,
    trust_pickle: TrustPickle = False,
    trust: Trust = None,
    header: Header = None,
    concurrency: Concurrency = None,
    cache: Cache = None,
    timeout: Timeout = None,
    price: Price = None,
    as_json: AsJson = False,
) -> None:
    """Check a model against the rules of a build: pass (0), fail (1) or inconclusive (3)."""
    from limi.cli._tables import source
    from limi.gates import gate as run_gate
    from limi.table import files

    _check_choices(inconclusive, markdown, as_json)
    check_log(log)
    wanted = {"out": out, "junit": junit, "sarif": sarif, "markdown": _as_path(markdown)}
    places = _places(wanted)
    given = source(table, target, favorable, schema, constraint, fit_rows)
    _console.announce_sending(model)
    with _console.run_progress() as show:
        answered = run_gate(
            model,
            given.pop("frame"),
            rule or (),
            protected=protected or (),
            output=output,  # type: ignore[arg-type]
            decision=decision,
            order=order,
            held_out=None if held_out is None else files.read(held_out),
            held_out_name=held_out or "held-out rows",
            privileged=privileged or (),
            baseline=_needed(context, baseline, rule or ()),
            generator=generator,
            drop=drop or (),
            only=only or (),
            redact=redacted(redact, show_personal),
            protected_from=None if protected_from is None else files.read(protected_from),
            protected_from_name=protected_from or "the protected table",
            key=key,
            max_queries=max_queries,
            max_seconds=max_seconds,
            error=error,
            seed=seed,
            max_batch=max_batch,
            device=device,
            workers=workers,
            cluster=cluster,
            trust_pickle=trust_pickle,
            trust=trust or (),
            remote=remote_of(header, concurrency, cache, price, timeout),
            table_name=table,
            command=_console.command_line(),
            on_progress=show,
            **given,
        )
    file = file_of(context) or table
    _write(places, answered, file, inconclusive)
    if as_json:
        _console.print_json(answered.as_dict())
    elif markdown == "-":
        _console.print_text(_markdown(answered))
    else:
        _show(answered)
    log_gate(log, answered, quiet=as_json or markdown == "-")
    _tell_github(answered, file, to_stderr=as_json or markdown == "-")
    code = {"pass": 0, "fail": _FAILED}.get(answered.answer, _CODES[inconclusive])
    raise typer.Exit(code)


def _check_choices(inconclusive: str | None, markdown: str | None, as_json: bool) -> None:
    from limi.errors import InvalidInput, nearest

    if inconclusive not in _CODES:
        known = [name for name in _CODES if name is not None]
        raise InvalidInput(
            f"--inconclusive is {inconclusive!r}; {nearest(str(inconclusive), known)} (without it, "
            "the exit code is 3)"
        )
    if markdown == "-" and as_json:
        raise InvalidInput(
            "--json and --markdown - both write to standard output; give --markdown a file"
        )


def _needed(context: typer.Context, baseline: Path | None, rules: Sequence[str]) -> Path | None:
    """The baseline; None for a file's that no rule compares with, because rules may be typed."""
    from limi.gates import parse_rules

    source = context.get_parameter_source("baseline")
    if source is None or source.name != "DEFAULT_MAP":
        return baseline
    return baseline if any(one.against_baseline for one in parse_rules(rules)) else None


def _as_path(markdown: str | None) -> Path | None:
    return None if markdown in (None, "-") else Path(str(markdown))


def _places(wanted: Mapping[str, Path | None]) -> dict[str, Path]:
    """Where files go, before anything is asked."""
    from limi.system import writing

    options = {name: path for name, path in wanted.items() if path is not None}
    places = {name: writing.place(path) for name, path in options.items()}
    summary = os.environ.get(_STEP_SUMMARY)
    if summary:
        places[_STEP_SUMMARY] = writing.place(summary)
    return places


def _write(places: Mapping[str, Path], answered: Gate, file: str, inconclusive: str | None) -> None:
    """All files at once, or none; then the summary of a workflow, which other steps write too."""
    from limi.report import gate as page
    from limi.report import junit, sarif
    from limi.system import writing
    from limi.system.reading import is_file, read_text
    from limi.system.shown import to_json

    def read() -> str | None:
        return read_text(file) if file.endswith(".toml") and is_file(file) else None

    makers: dict[str, Callable[[], str]] = {
        "out": lambda: to_json(answered.as_dict()) + "\n",
        "junit": lambda: junit.render(answered, inconclusive),
        "sarif": lambda: sarif.render(answered, file, read()),
        "markdown": lambda: page.render_markdown(answered),
    }
    writing.write_all({path: makers[name]() for name, path in places.items() if name in makers})
    if _STEP_SUMMARY in places:
        with _summary(places[_STEP_SUMMARY]) as summary:
            writing.append(summary.fileno(), f"{page.render_markdown(answered)}\n".encode())


@contextmanager
def _summary(path: Path) -> Iterator[io.FileIO]:
    from limi.errors import FailedWrite
    from limi.system import writing

    try:
        with writing.lock(path) as file:
            yield file
    except writing.Held:
        raise FailedWrite(f"{str(path)!r} is being written by another program") from None
    except OSError as error:
        raise writing.refusal(path, error) from None


def _tell_github(answered: Gate, file: str, *, to_stderr: bool) -> None:
    """Annotations of a workflow; its runner reads both streams."""
    from limi.report.github import annotate

    if os.environ.get("GITHUB_ACTIONS") == "true":
        show = _console.err if to_stderr else _console.out
        for line in annotate(answered, file):
            show.print(line, soft_wrap=True)


def _markdown(answered: Gate) -> str:
    from limi.report import gate as page

    return page.render_markdown(answered)


def _show(answered: Gate) -> None:
    from rich.table import Table

    from limi.report import gate as page

    _console.out.print(page.sentence(answered), soft_wrap=True)
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for place, heading in enumerate(page.HEADINGS):
        shown.add_column(heading, justify="left" if place < 2 else "right")
    for judged in answered.rules:
        shown.add_row(*page.cells(judged))
    _console.out.print(shown)
    for judged in answered.rules:
        _console.out.print(page.why(judged), soft_wrap=True)
    for note in answered.notes:
        _console.out.print(note, soft_wrap=True)
    if answered.broken and answered.examples:
        _console.out.print("Decisions that flip:")
        for found in answered.examples:
            _console.out.print(f"  {page.example(found, answered)}", soft_wrap=True)

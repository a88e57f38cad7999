"""`limi compare`: several methods under equal budgets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.table import Table
from typer import Option

from limi.cli import _console
from limi.cli._apart import Reads, Writes
from limi.cli._options import (
    AsJson,
    Cache,
    Cluster,
    Concurrency,
    Constraints,
    DecisionRule,
    Drop,
    FavorableLabels,
    Header,
    LabelOrder,
    Only,
    Price,
    Returned,
    SchemaFile,
    TableFile,
    TestedModel,
    Timeout,
    Trust,
    TrustPickle,
    remote_of,
)
from limi.defaults import DEFAULT_GENERATOR

if TYPE_CHECKING:
    from limi.audits.compare import ComparedRun

__all__ = ["compare"]


def compare(
    table: TableFile,
    model: TestedModel,
    protected: Annotated[list[str], Option(help="Protected column. Repeatable.")],
    methods: Annotated[
        str, Option(help="Methods, joined by commas.")
    ] = "limi,guided,natural,themis",
    target: Annotated[str | None, Option(help="Column the model predicts.")] = None,
    favorable: FavorableLabels = None,
    output: Returned = None,
    decision: DecisionRule = None,
    order: LabelOrder = None,
    generator: Annotated[
        str, Option(help="`limi list generators`."), Reads("the generator")
    ] = DEFAULT_GENERATOR,
    schema: SchemaFile = None,
    constraint: Constraints = None,
    drop: Drop = None,
    only: Only = None,
    settings: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="METHOD.NAME=VALUE",
            help="Setting of one method, or of all that have it: limi.step=0.5. Repeatable.",
        ),
    ] = None,
    max_queries: Annotated[int, Option(help="Model queries for each method.")] = 20_000,
    max_seconds: Annotated[float | None, Option(help="Seconds for each method.")] = None,
    seed: Annotated[int, Option(help="Same seed, same findings.")] = 0,
    seeds: Annotated[int, Option(help="Runs of each method, for the bands of the curves.")] = 1,
    device: Annotated[
        str, Option(help="cpu, cuda, or auto: cuda if model and generator can both use it.")
    ] = "auto",
    workers: Annotated[
        str | None,
        Option(
            metavar="N|auto",
            help="Processes that run one method each; auto for one per core. The findings are the "
            "same.",
        ),
    ] = None,
    cluster: Cluster = None,
    html: Annotated[Path | None, Option(help="HTML page to write."), Writes()] = None,
    width: Annotated[
        int | None, Option(help="Characters per line; a wider table is split by method.")
    ] = None,
    trust_pickle: TrustPickle = False,
    trust: Trust = None,
    header: Header = None,
    concurrency: Concurrency = None,
    cache: Cache = None,
    timeout: Timeout = None,
    price: Price = None,
    as_json: AsJson = False,
) -> None:
    """Run several methods under the same budget and show them side by side."""
    from limi.audits.compare import compare as run_all
    from limi.cli._tables import source
    from limi.report import comparison as page
    from limi.system import writing

    names = _method_names(methods)
    chosen = _settings_of(names, settings or [])
    place = None if html is None else writing.place(html)
    given = source(table, target, favorable, schema, constraint)
    _console.announce_sending(model)
    with _console.steps("comparing") as on_step:
        lines = run_all(
            model,
            given.pop("frame"),
            names,
            protected=protected,
            output=output,
            decision=decision,
            order=order,
            drop=drop or (),
            only=only or (),
            settings=chosen,
            generator=generator,
            max_rows=None,
            max_queries=max_queries,
            max_seconds=max_seconds,
            seed=seed,
            seeds=seeds,
            device=device,
            workers=workers,
            cluster=cluster,
            trust_pickle=trust_pickle,
            trust=trust or (),
            remote=remote_of(header, concurrency, cache, price, timeout),
            table_name=table,
            on_run=on_step,
            **given,
        )
    title = f"{model} on {table}, protected {', '.join(protected)}, {max_queries:,} queries each"
    if place is not None:
        writing.write(place, page.render(title, lines, _console.command_line()))
    if as_json:
        _console.print_json(
            {"title": title, "seed": seed, "methods": [line.as_dict() for line in lines]}
        )
    else:
        _show(title, lines, width)


def _method_names(given: str) -> list[str]:
    """Names joined by commas, each of a method that there is."""
    from limi import methods
    from limi.errors import InvalidInput

    names = [name.strip() for name in given.split(",") if name.strip()]
    if not names:
        raise InvalidInput("--methods names no method; write for example --methods limi,natural")
    for name in names:
        methods.parse(name)
    return names


def _settings_of(names: Sequence[str], settings: Sequence[str]) -> dict[str, list[str]]:
    """The settings of each method; one without a method's name goes to all that know it."""
    from limi import methods
    from limi.errors import InvalidInput
    from limi.system.settings import pairs_of

    chosen: dict[str, list[str]] = {name: [] for name in names}
    for (key, value), text in zip(pairs_of(settings), settings, strict=True):
        part, dot, rest = key.partition(".")
        if dot and part in names:
            chosen[part].append(f"{rest}={value}")
            continue
        able = [name for name in names if _knows(name, text)]
        if not able:
            raise InvalidInput(
                f"none of {', '.join(names)} takes the setting {key!r} with that value; write "
                f"METHOD.NAME=VALUE, for example {names[0]}.NAME=VALUE (limi list methods --json)"
            )
        for name in able:
            chosen[name].append(text)
    for name, texts in chosen.items():
        methods.parse(name, texts)
    return chosen


def _knows(name: str, text: str) -> bool:
    from limi import methods
    from limi.errors import InvalidInput

    try:
        methods.parse(name, [text])
    except InvalidInput:
        return False
    return True


def _show(title: str, lines: Sequence[ComparedRun], width: int | None) -> None:
    from rich.measure import Measurement

    from limi.report import comparison as page

    _console.out.print(page.verdict(lines), soft_wrap=True)
    _console.out.print(title, soft_wrap=True)
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for heading in page.HEADINGS:
        justify: Literal["left", "right"] = "left" if heading == "method" else "right"
        shown.add_column(heading, justify=justify, no_wrap=True)
    for line in lines:
        shown.add_row(*page.cells(line))
    needed = Measurement.get(_console.out, _console.out.options.update(width=10_000), shown).maximum
    if needed <= (width or _console.out.width):
        _console.print_wide(shown, needed)
    else:
        for line in lines:
            name, *cells = page.cells(line)
            told = (f"{what} {cell}" for what, cell in zip(page.HEADINGS[1:], cells, strict=True))
            _console.out.print(f"{name}: {', '.join(told)}", width=width)
    for line in lines:
        if line.problem:
            _console.out.print(f"{line.method}: {line.problem}", width=width)

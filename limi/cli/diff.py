"""`limi diff`: two models asked about the same people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from limi.cli import _console
from limi.cli._apart import MODEL, RUN, TABLE, Reads, Writes
from limi.cli._options import (
    AsJson,
    Cache,
    DecisionRule,
    Drop,
    FavorableLabels,
    Fill,
    Header,
    NewerSchema,
    Only,
    Rename,
    Returned,
    Timeout,
    Trust,
    TrustPickle,
    remote_of,
)
from limi.defaults import MEASURED_ROWS

if TYPE_CHECKING:
    from limi.changes import Diff

__all__ = ["diff"]


def diff(
    before: Annotated[Path, Argument(metavar="RUN", help="Run folder of the earlier model."), RUN],
    after: Annotated[
        Path | None, Argument(metavar="[NEWER]", help="Run folder of the newer model."), RUN
    ] = None,
    model: Annotated[
        str | None,
        Option(help="The newer model, as KIND:PLACE; with two runs, where that model is now."),
        MODEL,
    ] = None,
    before_model: Annotated[
        str | None,
        Option(
            "--before",
            metavar="KIND:PLACE",
            help="Where the earlier model is now; required if opening its file runs code.",
        ),
        MODEL,
    ] = None,
    table: Annotated[
        str | None, Option(help="Table with the people to ask about. Default: the run's."), TABLE
    ] = None,
    schema: NewerSchema = None,
    rename: Rename = None,
    fill: Fill = None,
    favorable: FavorableLabels = None,
    output: Returned = None,
    decision: DecisionRule = None,
    drop: Drop = None,
    only: Only = None,
    generator: Annotated[
        str,
        Option(help="Draws natural people. Default: the earlier run's, or none."),
        Reads("the generator"),
    ] = "as before",
    rows: Annotated[int, Option(help="People of each population.")] = MEASURED_ROWS,
    seed: Annotated[int | None, Option(help="Default: the earlier run's.")] = None,
    out: Annotated[Path | None, Option(help="JSON file to write: all numbers."), Writes()] = None,
    html: Annotated[
        Path | None, Option(help="HTML page to write, both side by side."), Writes()
    ] = None,
    trust_pickle: TrustPickle = False,
    trust: Trust = None,
    header: Header = None,
    cache: Cache = None,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Compare two models on the same people: rates, where they changed, and old findings."""
    from limi.changes import diff as run_diff
    from limi.cli._tables import schema_for

    places = _places(out, html)
    with _console.steps("comparing") as on_step:
        told = run_diff(
            before,
            after,
            model=model,
            before_model=before_model,
            table=table,
            schema=schema_for(table, schema),
            rename=rename or (),
            fill=fill or (),
            favorable=favorable,
            output=output,  # type: ignore[arg-type]
            decision=decision,
            drop=drop,
            only=only or (),
            generator=generator,
            rows=rows,
            seed=seed,
            trust_pickle=trust_pickle,
            trust=trust or (),
            remote=remote_of(header, None, cache, None, timeout),
            command=_console.command_line(),
            on_step=on_step,
        )
    _write(told, places)
    if as_json:
        _console.print_json(told.as_dict())
    else:
        _show(told)
        for name in (out, html):
            if name is not None:
                _console.out.print(f"Written: {name}", soft_wrap=True)


def _places(out: Path | None, html: Path | None) -> dict[str, Path]:
    """Where files go, by their options, before anything is asked."""
    from limi.system import writing

    named = {"--out": out, "--html": html}
    return {name: writing.place(path) for name, path in named.items() if path is not None}


def _write(told: Diff, places: dict[str, Path]) -> None:
    """All files at once, or none."""
    from limi.report import changes as page
    from limi.system import writing
    from limi.system.shown import to_json

    makers = {"--out": lambda: to_json(told.as_dict()) + "\n", "--html": lambda: page.render(told)}
    writing.write_all({place: makers[name]() for name, place in places.items()})


def _show(told: Diff) -> None:
    from rich.table import Table

    from limi.report import changes as page

    _console.out.print(page.headline(told), soft_wrap=True)
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for place, heading in enumerate(page.RATE_HEADINGS):
        shown.add_column(heading, justify="left" if place in (0, 7) else "right")
    for one in told.populations:
        shown.add_row(*page.rate_cells(one))
    _console.out.print(shown)
    _console.out.print(page.regions_aid(told), soft_wrap=True)
    for line in page.region_cells(told):
        region, people, had, has, change, verdict = line
        _console.out.print(
            f"  {verdict}: {region} ({people} of people): {had} before, {has} after, {change}",
            soft_wrap=True,
        )
    for part, back in ((told.replayed, False), (told.replayed_back, True)):
        if part is not None:
            _console.out.print(page.sentence(part, back=back), soft_wrap=True)
            for words in (page.gaps(part, back=back), *page.columns(part), *page.unasked(part)):
                if words:
                    _console.out.print(f"  {words}", soft_wrap=True)
    for words in told.notes:
        _console.out.print(words, soft_wrap=True)

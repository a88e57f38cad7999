"""`limi report`: show a finished run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from limi.cli import _console
from limi.cli._options import AsJson

__all__ = ["report"]


def report(
    folder: Annotated[Path, Argument(metavar="RUN", help="Run folder.")],
    html: Annotated[Path | None, Option(help="HTML file to write as well.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a finished run found."""
    import io

    from rich.console import Console

    from limi.audits.run_folder import read_summary, reading
    from limi.report import html as page
    from limi.report import text
    from limi.system import writing

    place = None if html is None else writing.place(html)
    names = ("summary.json", "manifest.json", "schema.toml", "findings.parquet", "metrics.json")
    writing.require_apart(
        {} if place is None else {"--html": place},
        [("part of the run", folder / name) for name in names],
    )
    summary = read_summary(folder)
    with reading("summary", folder):
        # Drawn once before anything is shown: a damaged file must not be shown half-way.
        text.print_summary(summary, Console(file=io.StringIO()))
        drawn = "" if place is None else page.render(summary)
    if as_json:
        _console.print_json(summary.as_dict())
    else:
        text.print_summary(summary, _console.out)
    if place is not None:
        writing.write(place, drawn)

"""`limi report`: show a finished run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from limi.cli import _console
from limi.cli._apart import RUN_FILES, Writes
from limi.cli._options import AsJson, Full

if TYPE_CHECKING:
    from limi.audits.summary import Summary

__all__ = ["report"]


def report(
    folder: Annotated[Path, Argument(metavar="RUN", help="Run folder."), RUN_FILES],
    html: Annotated[Path | None, Option(help="HTML file to write as well."), Writes()] = None,
    full: Full = False,
    as_json: AsJson = False,
) -> None:
    """Show what a finished run found."""
    import io
    from dataclasses import asdict

    from rich.console import Console

    from limi.audits.record import read_bookmarks
    from limi.audits.run_folder import read_summary, reading
    from limi.report import brief, text
    from limi.report import html as page
    from limi.system import writing

    place = None if html is None else writing.place(html)
    summary = read_summary(folder)
    marks = read_bookmarks(folder)
    with reading("summary", folder):
        # Drawn once before anything is shown: a damaged file must not be shown half-way.
        show = text.print_summary if full else brief.print_brief
        show(summary, Console(file=io.StringIO()))
        drawn = "" if place is None else page.render(summary, _ledger(folder, summary), marks)
    if as_json:
        kept = {"bookmarks": [asdict(mark) for mark in marks]} if marks else {}
        _console.print_json({**summary.as_dict(), **kept})
    else:
        show(summary, _console.out)
        text.print_bookmarks(marks, _console.out)
    if place is not None:
        writing.write(place, drawn)


def _ledger(folder: Path, summary: Summary) -> dict[str, Any] | None:
    """All findings of the run for its page; None where there are none to show."""
    from limi.audits.reopen import Run, read_shown_findings
    from limi.report.ledger import ledger_of

    if not summary.findings:
        return None
    run = Run.at(folder)
    schema, found = read_shown_findings(run)
    return ledger_of(schema, found, summary, run.rule)

"""What commands that run studies share: options, progress, the last words, results to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from limi.cli import _console

if TYPE_CHECKING:
    from lab.api import Outcome, Results, Study, StudyProgress

__all__ = ["FreshOption", "OutOption", "ScaleOption", "SeedsOption", "WorkersOption"]
__all__ += ["align", "end_run", "find_results", "show_progress"]

FreshOption = Annotated[bool, Option("--fresh", help="Run cells that are already done too.")]
OutOption = Annotated[Path, Option(help="Folder of the cells and the files that they share.")]
ScaleOption = Annotated[str | None, Option(help="smoke, small or paper. Default: the largest.")]
SeedsOption = Annotated[
    int | None, Option(help="Seeds per cell. Default: as many as the scale has.")
]
WorkersOption = Annotated[
    str | None,
    Option(metavar="N|auto", help="Processes that run one cell each. Default: one per core."),
]


def align(rows: Sequence[Sequence[str]]) -> str:
    """Rows under each other, whole: names are there to be pasted, so a terminal may wrap them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def find_results(
    study: Study, scale: str | None, folder: Path, counts: Callable[[Outcome], bool]
) -> Results | None:
    """Results of a scale, or of the largest that has any: the folder's first, then those kept.

    `counts` says which outcomes are results; None where there are none.
    """
    from lab import api as studies
    from limi.errors import InvalidInput, nearest

    if scale is not None and scale not in studies.SCALES:
        raise InvalidInput(f"unknown scale {scale!r}; {nearest(scale, studies.SCALES)}")
    for place in (folder, studies.shipped_results()):
        for one in [scale] if scale else reversed(studies.SCALES):
            found = studies.read(study, one, place)
            if any(map(counts, found.outcomes.values())):
                return found
    return None


def end_run(ran: Any, out: Path, as_json: bool, told: dict[str, Any]) -> None:
    """Say what a run came to, with what else is `told` in JSON; exit code 4 where cells failed."""
    if as_json:
        _console.print_json(
            told
            | {
                "cells": ran.cells,
                "run": ran.run,
                "seconds": ran.seconds,
                "status": ran.counts,
                "problems": [{"cell": cell, "why": why} for cell, why in ran.problems],
            }
        )
    else:
        _announce(ran, out)
    if ran.counts.get("failed"):
        raise typer.Exit(4)


def _announce(ran: Any, out: Path) -> None:
    """What a run came to, and why cells have no numbers."""
    counts = ", ".join(f"{n:,} {status}" for status, n in sorted(ran.counts.items()))
    _console.out.print(
        f"{ran.cells:,} cells ({counts}); {ran.run:,} were run now in {ran.seconds:,.0f} seconds. "
        f"They are in {out}.",
        soft_wrap=True,
    )
    told: dict[str, list[str]] = {}
    for cell, why in ran.problems:
        told.setdefault(why, []).append(cell)
    for why, cells in told.items():
        more = f" and {len(cells) - 1:,} more" if len(cells) > 1 else ""
        _console.err.print(f"{cells[0]}{more}: {why}", soft_wrap=True)


@contextmanager
def show_progress() -> Iterator[Callable[[StudyProgress], None]]:
    """A bar over cells, with the time that is left by what like cells have cost."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    if not _console.err.is_terminal:
        # A log keeps a line per cell: a bar would leave nothing in it.
        yield lambda progress: _console.err.print(_line(progress), soft_wrap=True)
        return
    with Bars(*columns, console=_console.err, transient=True) as bars:
        bar = bars.add_task("preparing", total=None, left="", start=True)

        def show(progress: StudyProgress) -> None:
            bars.update(
                bar,
                total=progress.total,
                completed=progress.done,
                description=progress.words[:60],
                left=_left(progress),
            )
            if progress.failed and ": " in progress.words:
                bars.console.print(progress.words, soft_wrap=True)

        yield show


def _line(progress: StudyProgress) -> str:
    return f"{progress.done} of {progress.total}: {progress.words} ({_left(progress) or 'done'})"


def _left(progress: StudyProgress) -> str:
    return "" if progress.left is None else f"about {_clock(progress.left)} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

"""What commands that run studies say meanwhile and at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limi.cli import _console

if TYPE_CHECKING:
    from limi.studies import StudyProgress

__all__ = ["announce", "show_progress"]


def announce(ran: Any, out: Path) -> None:
    """What a run came to, and why cells have no numbers."""
    counts = ", ".join(f"{n:,} {status}" for status, n in sorted(ran.counts.items()))
    _console.out.print(
        f"{ran.cells:,} cells ({counts}); {ran.run:,} were run now, in {ran.seconds:,.0f} seconds. "
        f"They lie in {out}.",
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

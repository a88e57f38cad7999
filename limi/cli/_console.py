"""Terminal, progress and JSON for all commands."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from limi.engine import Progress as RunProgress

__all__ = ["command_line", "err", "out", "print_json", "run_progress", "steps"]

# Names of columns, files and extras may hold brackets, which are no markup here.
out = Console(highlight=False, markup=False)
err = Console(stderr=True, highlight=False, markup=False)  # so that stdout stays clean


def print_json(tree: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    sys.stdout.write(json.dumps(tree, indent=2, ensure_ascii=False, default=str) + "\n")


def command_line() -> str:
    """This command, as a shell would read it."""
    return shlex.join(["limi", *sys.argv[1:]])


@contextmanager
def run_progress(
    max_rows: int, max_queries: int | None = None
) -> Iterator[Callable[[RunProgress], None]]:
    """A bar over a run: the larger share of its budget, findings, rate and time left."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[found]:,} findings"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bars:
        bar = bars.add_task("searching", total=1.0, found=0, rate="")

        def show(progress: RunProgress) -> None:
            speed = progress.queries / progress.seconds if progress.seconds else 0.0
            bars.update(
                bar,
                completed=max(
                    progress.rows / max_rows,
                    progress.queries / max_queries if max_queries else 0.0,
                ),
                found=progress.findings,
                rate=f"{speed:,.0f} queries/s",
            )

        yield show


@contextmanager
def steps(words: str) -> Iterator[Callable[[float, str], None]]:
    """A bar over work whose fraction done is known."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bars:
        bar = bars.add_task(words, total=1.0)
        yield lambda done, what: bars.update(bar, completed=done, description=what)

"""Terminal, progress and JSON for all commands."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from limi.errors import FailedWrite
from limi.system.shown import clean_lines, to_json

if TYPE_CHECKING:
    from limi.audits.estimate import Estimate
    from limi.search.engine import Progress as RunProgress

__all__ = [
    *("announce", "command_line", "err", "out", "print_json", "print_text", "print_wide"),
    *("run_progress", "steps"),
]


class _Stream:
    """A standard stream, whichever it is now, with a sentence where it takes no more."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def _now(self) -> IO[str]:
        stream: IO[str] = getattr(sys, self._name)
        # A progress bar stands before the stream while it is shown.
        return getattr(stream, "rich_proxied_file", stream)

    @property
    def encoding(self) -> str:
        return getattr(self._now, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return self._now.isatty()

    def fileno(self) -> int:
        return self._now.fileno()

    def write(self, text: str) -> None:
        with self._keep():
            self._now.write(text)

    def flush(self) -> None:
        with self._keep():
            self._now.flush()

    @contextmanager
    def _keep(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # Progress that nobody can read is not a reason to end a run.
            if self._name == "stderr":
                return
            if isinstance(error, BrokenPipeError):
                raise
            raise FailedWrite(
                f"standard output cannot be written: {error.strerror or error}"
            ) from None


class _Terminal(Console):
    """A console on which no text from data steers the terminal, wherever it came from."""

    def __init__(self, stream: _Stream) -> None:
        # Names of columns, files and extras may hold brackets and colons, which are text here.
        super().__init__(file=cast("IO[str]", stream), highlight=False, markup=False, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Segments with unsafe characters spelled; rich's own controls are kept."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(clean_lines(text), style)

    def on_broken_pipe(self) -> NoReturn:
        """Raise again what is being handled, so that one place decides what a gone reader means."""
        raise


_stdout = _Stream("stdout")
out = _Terminal(_stdout)
err = _Terminal(_Stream("stderr"))  # so that stdout stays clean


def print_json(tree: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    text = to_json(tree)
    try:
        text.encode(_stdout.encoding)
    except UnicodeEncodeError:  # a terminal of another alphabet
        text = to_json(tree, ascii_only=True)
    _stdout.write(text + "\n")
    _stdout.flush()


def print_text(text: str) -> None:
    """Lines on standard output, exactly as they are but for what would steer a terminal."""
    _stdout.write(clean_lines(text))
    _stdout.flush()


def print_wide(shown: RenderableType, width: int) -> None:
    """Lines of so many characters, which may be more than the terminal or a pipe is wide."""
    for line in out.render_lines(shown, out.options.update(width=width), pad=False):
        out.print(Text.assemble(*((part.text, part.style or "") for part in line)), soft_wrap=True)


def command_line(answers: Sequence[str] = ()) -> str:
    """This command, as a shell would read it, with the options that were asked for meanwhile."""
    return shlex.join(["limi", *sys.argv[1:], *answers])


def announce(estimate: Estimate) -> None:
    """What a run will cost, for somebody who sits and waits: like a bar, not in a log.

    A run's folder keeps it, and where standard error is read by a program, it holds the one
    sentence of a failure and nothing else.
    """
    if err.is_terminal:
        err.print(str(estimate), soft_wrap=True)


def announce_sending(model: str | None) -> None:
    """That rows will leave this machine, before the first does; for somebody who sits and waits."""
    from limi.audits.sending import destination

    if err.is_terminal and (host := destination(model)) is not None:
        err.print(f"rows are sent to {host}, and nowhere else", soft_wrap=True)


@contextmanager
def run_progress() -> Iterator[Callable[[RunProgress], None]]:
    """A bar over the phases of a run, with findings, speed, and the time that all will take yet."""
    import time

    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.table import Column
    from rich.text import Text

    from limi.report import wording
    from limi.system import words

    class Left(ProgressColumn):
        """Seconds left, which go on between two answers of the model."""

        def render(self, task: Task) -> Text:
            left = task.fields["left"] - (time.perf_counter() - task.fields["told"])
            return Text("" if left < 1 else f"{words.seconds(left)} left")

    # One line, whatever the width: two of them would flicker.
    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        BarColumn(),
        TextColumn("{task.fields[found]:,} findings", table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[rate]}", table_column=Column(no_wrap=True)),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        Left(table_column=Column(no_wrap=True)),
    )
    now = time.perf_counter()
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        bar = bars.add_task("", total=1.0, found=0, rate="", left=0.0, told=now)

        def show(progress: RunProgress) -> None:
            speed = progress.queries / progress.seconds if progress.seconds else 0.0
            bars.update(
                bar,
                description=wording.phase(progress.phase),
                completed=progress.done,
                found=progress.findings,
                rate=f"{speed:,.0f} queries/s{_say_retries(progress.retries)}",
                left=progress.left,
                told=time.perf_counter(),
            )

        yield show


def _say_retries(n: int) -> str:
    return f", {n:,} {'retry' if n == 1 else 'retries'}" if n else ""


@contextmanager
def steps(words: str) -> Iterator[Callable[[float, str], None]]:
    """A bar over work whose fraction done is known, with the time that it will take yet."""
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    from limi.system import words as spelled

    class Left(ProgressColumn):
        """Seconds left, at the pace of all that is done: single steps may take minutes."""

        def render(self, task: Task) -> Text:
            left = _seconds_left(task.completed, task.fields["told"], task.elapsed or 0.0)
            return Text("" if left is None else f"about {spelled.seconds(left)} left")

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), Left())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        bar = bars.add_task(words, total=1.0, told=0.0)

        def show(done: float, what: str) -> None:
            elapsed = bars.tasks[0].elapsed or 0.0
            bars.update(bar, completed=done, description=what, told=elapsed)

        yield show


def _seconds_left(done: float, told: float, now: float) -> float | None:
    """What work will take yet of which so much was done when it was told last; None where that is
    too little to tell.

    >>> _seconds_left(0.25, 10.0, 14.0)
    26.0
    """
    return None if done <= 0 else max(told * (1 - done) / done - (now - told), 0.0)

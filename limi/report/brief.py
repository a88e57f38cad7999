"""A summary for the terminal in at most forty lines; the first three answer the question."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from limi.audits.summary import Summary
from limi.report import favored, outcomes, wording
from limi.report.next_steps import next_step
from limi.system import words

__all__ = ["MOST_LINES", "print_brief", "render_brief"]

MOST_LINES = 38  # with the two lines that a command adds, forty
_KEPT = 7  # lines for what to do next
_MOST_NOTES = 4
_MORE = "..."


def render_brief(summary: Summary, width: int = 80) -> str:
    """The short report as plain text; only commands may be longer than `width`."""
    plain = io.StringIO()
    console = Console(file=plain, width=width, color_system=None, legacy_windows=False)
    print_brief(summary, console)
    lines = (line.rstrip() for line in plain.getvalue().splitlines())
    return "\n".join(lines).strip("\n") + "\n"


def print_brief(summary: Summary, console: Console) -> None:
    """Print the short report, coloured where the console has colours."""
    answer = wording.answer(summary)
    headline = Text.assemble(
        (answer.figure, "bold cyan"),
        (f" {wording.clean(answer.statement)}", "bold"),
        f" ({wording.clean(answer.evidence)})",
    )
    used = _cut(console, 4, headline)
    for line, most in _lead(summary):
        used += _cut(console, most, _text(line))
    for title, blocks, most in (
        ("How often", _rates(summary), 6),
        ("Where most", _worst(summary), 3),
        ("A severe and natural finding", _strongest(summary), 4),
        (_title_of_notes(summary), _notes(summary), 10),
    ):
        shown = list(blocks)
        if shown:
            console.print(Text(title, style="bold"))
            room = MOST_LINES - _KEPT - used - 1
            most = max(min(most, room), 1)
            used += 1 + _cut(console, most, *(Padding.indent(block, 2) for block in shown))
    step = next_step(summary)
    console.print(Text("Next", style="bold"))
    _cut(console, 4, Padding.indent(_text(step.words), 2))
    if step.command:
        # A line that is not broken can be copied.
        console.print(Text(f"  {wording.clean(step.command)}"), soft_wrap=True)
    console.print(
        _text("--full shows the whole report; limi explain says what the words mean.", "dim")
    )


def _cut(console: Console, most: int, *blocks: RenderableType) -> int:
    """Print blocks, of all their lines no more than so many, and say how many it were."""
    lines = [line for block in blocks for line in console.render_lines(block, pad=False)]
    for line in lines[: most if len(lines) <= most else most - 1]:
        shown = Text.assemble(*((part.text, part.style or "") for part in line))
        shown.rstrip()
        console.print(shown)
    if len(lines) > most:
        console.print(_text(f"  {_MORE}", "dim"))
    return min(len(lines), most)


def _lead(summary: Summary) -> Iterator[tuple[str, int]]:
    """Who loses, and how many were found, right below the answer."""
    shown = favored.tables(summary) if summary.kind == "favorable" and not summary.blind else []
    whom = next((t for t in shown if t.what_if.favored), shown[0] if shown else None)
    if whom is not None:
        yield " ".join([*([] if whom.listed else [whom.sentence]), *whom.verdicts[:1]]), 6
    if summary.kind != "favorable" and (more := outcomes.who_gets_more(summary)):
        yield more, 4
    if wording.searched(summary):
        found = f"{wording.found(summary)} found in {words.count(summary.rows_checked)} rows"
        yield f"{found}, {words.count(summary.queries)} queries, {_took(summary)}.", 2
    if people := wording.volume(summary):
        yield people, 2


def _took(summary: Summary) -> str:
    return words.seconds(sum(p["seconds"] for p in summary.phases.values()) or summary.seconds)


def _rates(summary: Summary) -> Iterator[RenderableType]:
    grid = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "left", "left"):
        grid.add_column(justify=justify, no_wrap=justify == "right")
    for name, rate in wording.listed_rates(summary):
        shown = wording.percent(rate)
        measured = bool(shown.low)
        grid.add_row(
            _text(name, "bold"),
            _text(f"{shown.estimate} %" if measured else shown.estimate, "cyan"),
            Text(f"{shown.low} to {shown.high}" if measured else ""),
            Text(wording.sample_size(summary, name, rate)),
        )
    if summary.rates:
        yield grid


def _worst(summary: Summary) -> Iterator[RenderableType]:
    places = [] if summary.blind else wording.places(summary)
    if places:
        yield _text(f"{places[0]}")


def _strongest(summary: Summary) -> Iterator[RenderableType]:
    for example in summary.examples[:1]:
        yield _text(wording.sentence(example, summary))
        what, answers = wording.apart(summary, example)
        yield _text(f"{what} {answers}", "dim")


def _notes(summary: Summary) -> Iterator[RenderableType]:
    for note in summary.notes[:_MOST_NOTES]:
        grid = Table.grid(padding=(0, 1))
        grid.add_row("-", _text(note if len(note) <= 150 else f"{note[:147]}{_MORE}"))
        yield grid


def _title_of_notes(summary: Summary) -> str:
    n = len(summary.notes)
    return "Notes" if n <= _MOST_NOTES else f"Notes ({_MOST_NOTES} of {words.count(n)})"


def _text(value: str, style: str = "") -> Text:
    # A Text is never read as markup, so brackets in a value stay brackets.
    return Text(wording.clean(value), style=style, overflow="fold")

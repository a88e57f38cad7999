"""A summary for the terminal: the answer first, readable at 80 columns and without colour."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from limi.audits.record import Bookmark
from limi.audits.summary import Example, Summary
from limi.errors import spell
from limi.metrics.individual import Rate
from limi.report import favored, groups, lead, metrics, outcomes, twins, wording
from limi.report.next_steps import next_step
from limi.system import words

__all__ = ["print_bookmarks", "print_metrics", "print_summary", "render"]

_SHOWN_FINDINGS = 3
_SHOWN_COLUMNS = 24


def render(summary: Summary, width: int = 80) -> str:
    """A summary as plain text; only the command to repeat a run may be longer than `width`.

    Its own signs are ASCII, so that it can go to any file or terminal.
    """
    plain = io.StringIO()
    console = Console(file=plain, width=width, color_system=None, legacy_windows=False)
    _print(summary, console)
    lines = (line.rstrip() for line in plain.getvalue().splitlines())
    return "\n".join(lines).strip("\n") + "\n"


def print_summary(summary: Summary, console: Console) -> None:
    """Print a summary, coloured where the console has colours."""
    _print(summary, console)


def print_bookmarks(marks: Sequence[Bookmark], console: Console) -> None:
    """Print whom somebody kept while exploring; nothing where nobody was."""
    if not marks:
        return
    console.print(Text("Bookmarked people", style="bold"))
    for mark in marks:
        told = f"{mark.note or 'Without a note'}: decided {mark.decision} {mark.figure}".rstrip()
        if mark.partner:
            changed = ", ".join(f"{name} {theirs}" for name, _, theirs in mark.partner)
            told += f"; with {changed}: {mark.partner_decision} {mark.partner_figure}".rstrip()
        told += "; flips" if mark.flips else ""
        console.print(Padding.indent(Text(wording.clean(told)), 2))


def _print(summary: Summary, console: Console) -> None:
    console.print(_headline(summary))
    for title, blocks in (
        ("In short", _lead(summary)),
        ("How often decisions flip", _rates(summary)),
        (twins.title(summary), _twins(summary)),
        ("Who is favored", _tell_favored(summary)),
        ("What becomes of people", _tell_outcomes(summary)),
        ("Groups as they are", _groups(summary)),
        ("Where it happens", () if summary.blind else _places(summary)),
        ("What the search found", _find(summary)),
        ("Severe and natural findings", _findings(summary)),
        ("How natural the findings are", _natural(summary)),
        ("More metrics", _measure(summary)),
        ("What was tested", _tell_tested(summary)),
        ("Notes", _notes(summary)),
    ):
        shown = list(blocks)
        if shown:
            console.print()
            console.print(Text(title, style="bold"))
            for block in shown:
                console.print(Padding.indent(block, 2))
    if summary.command:
        console.print()
        console.print(Text("How to repeat", style="bold"))
        # A line that is not broken can be copied.
        console.print(Text(f"  {wording.clean(summary.command)}"), soft_wrap=True)
    step = next_step(summary)
    console.print()
    console.print(Text("Next", style="bold"))
    console.print(Padding.indent(_text(step.words), 2))
    if step.command:
        console.print(Text(f"  {wording.clean(step.command)}"), soft_wrap=True)


def _lead(summary: Summary) -> Iterator[RenderableType]:
    lines = lead.tell(summary).lines
    if lines:
        yield _facts([(name.lower(), told) for name, told in lines])


def _groups(summary: Summary) -> Iterator[RenderableType]:
    """Every group by itself, with its rates and their intervals."""
    for table in groups.tables(summary):
        for group, n, cells in table.lines:
            told = ", ".join(
                f"{heading} {' '.join(filter(None, (figure, interval and f'({interval})', mark)))}"
                for (heading, _), (figure, interval, mark) in zip(table.columns, cells, strict=True)
            )
            yield Text.assemble(
                (wording.clean(f"{table.title} {group}"), "bold"),
                wording.clean(f" (n = {n}): {told}."),
                overflow="fold",
            )
        if table.unsaid:
            yield _text(f"{words.count(len(table.unsaid))} more, {groups.TOO_FEW}", "dim")


def _headline(summary: Summary) -> Text:
    answer = wording.answer(summary)
    return Text.assemble(
        (answer.figure, "bold cyan"),
        (f" {wording.clean(answer.statement)}", "bold"),
        f" ({wording.clean(answer.evidence)})",
    )


def _rates(summary: Summary) -> Iterator[RenderableType]:
    grid = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "left", "left", "left"):
        grid.add_column(justify=justify, no_wrap=justify == "right")
    for name, rate in wording.listed_rates(summary):
        size = wording.sample_size(summary, name, rate)
        _add_rate(grid, name, rate, size, wording.aid(name), "bold")
        for label, asks, other in (
            *wording.alone(summary, name),
            *wording.plain_rates(summary, name),
        ):
            size = wording.sample_size(summary, name, other)
            _add_rate(grid, f"  {label}", other, size, asks)
    if summary.rates:
        yield grid
        yield Text("share of rows that flip, with its 95 % interval", style="dim")
    else:
        yield Text("No rate was measured.")
    for line in wording.rates_aid(summary):
        yield _text(line, "dim")


def _add_rate(grid: Table, name: str, rate: Rate, size: str, aid: str, style: str = "") -> None:
    shown = wording.percent(rate)
    measured = bool(shown.low)
    grid.add_row(
        _text(name, style),
        _text(f"{shown.estimate} %" if measured else shown.estimate, "cyan"),
        Text(f"{shown.low} to {shown.high}" if measured else "", no_wrap=True),
        Text(size, no_wrap=True),
        _text(aid, "dim"),
    )


def _twins(summary: Summary) -> Iterator[RenderableType]:
    told = twins.tell(summary)
    if told is None:
        return
    yield _text(told.alone)
    for way in told.ways[:1] if told.lines else told.ways:
        yield Text(" ")
        yield _text(way.sentence, "bold")
        for line in (way.evidence, way.carried):
            if line:
                yield _text(line)
        if way.kept:
            grid = Table.grid(padding=(0, 2))
            for name, figures in way.kept:
                grid.add_row(_text(name), _text(figures, "cyan"))
            yield grid
    if told.lines:
        yield Text(" ")
        yield _twin_lines(told)
        yield _text(told.lines_aid, "dim")
    yield Text(" ")
    for line in told.notes:
        yield _text(line)
    yield _text(told.caution, "dim")


def _twin_lines(told: twins.TwinWords) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for title in ("people with", "as twins with"):
        table.add_column(title, overflow="fold")
    for title in ("gain, %", "lose, %", "of the gap"):
        table.add_column(title, justify="right", no_wrap=True)
    for line in told.lines:
        table.add_row(
            _text(line.group),
            _text(line.goal),
            _text(line.gain, "cyan"),
            _text(line.lose, "cyan"),
            _text(line.coverage),
        )
    return table


def _places(summary: Summary) -> Iterator[RenderableType]:
    for number, place in enumerate(wording.places(summary), 1):
        grid = Table.grid(padding=(0, 1))
        words = Text(" and ", style="dim").join(_text(c, "bold") for c in place.conditions)
        grid.add_row(Text(f"{number}.", style="bold"), words)
        grid.add_row("", _text(f"{place.figures}, {place.chance}"))
        whom = f"; favors {place.favored}" if place.favored else ""
        grid.add_row("", _text(f"{place.share}{whom}", "dim"))
        yield grid
    if aid := wording.places_aid(summary):
        yield _text(aid, "dim")


def _find(summary: Summary) -> Iterator[RenderableType]:
    count = words.count
    yield _facts(
        [
            ("findings", wording.found(summary)),
            ("rows checked", count(summary.rows_checked)),
            ("queries", count(summary.queries)),
            ("findings per thousand queries", f"{summary.per_thousand_queries:.1f}"),
            ("time", words.seconds(summary.seconds)),
            ("stopped because", wording.stopped(summary)),
            ("of the run", ", ".join(f"{name} {took}" for name, took in wording.phases(summary))),
        ]
    )
    if counts := favored.among_findings(summary):
        yield _text(counts, "dim")
    if not wording.searched(summary):
        yield _text(
            f"There was no search: {wording.stopped(summary)}."
            if summary.blind
            else summary.cut.get("search", "No time was left to search.")
        )
    elif not summary.findings:
        yield Text(
            "Finding nothing is not a certificate of fairness: it says something only about the "
            "rows checked."
        )


def _tell_favored(summary: Summary) -> Iterator[RenderableType]:
    if summary.blind or summary.kind != "favorable":
        # The same people are decided alike under every value, or nothing is favorable.
        return
    shown = favored.tables(summary)
    for table in shown:
        if len(shown) > 1:
            yield _text(table.title, "bold")
        yield _text(table.sentence)
        if table.listed:
            yield _as_if(table)
        for verdict in table.verdicts:
            yield _text(verdict, "bold" if table.what_if.favored else "")
        if len(shown) > 1:
            yield Text(" ")
    if shown:
        for table in favored.only_protected(summary):
            title = f" ({table.title})" if len(shown) > 1 else ""
            yield _text(
                f"{favored.plain_title(summary)}{title}: "
                f"{' '.join([table.sentence, *table.verdicts])}"
            )
        curve = any(table.what_if.curve for table in shown)
        chance = favored.chance(summary)
        yield _text(f"{chance} {favored.BAND}" if curve else chance, "dim")
    else:
        yield _text(favored.lacking(summary), "dim")


def _tell_outcomes(summary: Summary) -> Iterator[RenderableType]:
    shown = outcomes.tables(summary)
    for table in shown:
        if len(shown) > 1:
            yield _text(table.title, "bold")
        for sentence in table.sentences:
            yield _text(sentence)
        for matrix in table.matrices:
            yield _matrix(matrix)
        for line in table.groups:
            yield _text(line)
    if shown:
        yield _text(outcomes.aid(summary), "dim")


def _matrix(matrix: outcomes.Matrix) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="left")
    for _ in matrix.labels:
        grid.add_column(justify="right")
    grid.add_row(
        _text(f"as {matrix.value} (down), as {matrix.other} (across)", "dim"),
        *(_text(label, "dim") for label in matrix.labels),
    )
    for place, (label, counts) in enumerate(matrix.lines):
        cells = [
            _text(words.count(n), "dim" if at == place or not n else "cyan")
            for at, n in enumerate(counts)
        ]
        grid.add_row(_text(label), *cells)
    return grid


def _as_if(table: favored.FavoredTable) -> Table:
    grid = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "left"):
        grid.add_column(justify=justify, no_wrap=justify == "right")
    values = table.what_if.values
    for value in favored.space_out(values):
        shown = wording.percent(value.rate)
        grid.add_row(
            _text(value.value),
            _text(f"{shown.estimate} %", "cyan"),
            Text(f"{shown.low} to {shown.high}", no_wrap=True),
        )
    hidden = len(values) - len(favored.space_out(values))
    if hidden:
        grid.add_row(_text(f"and {words.count(hidden)} more between them", "dim"), "", "")
    return grid


def _findings(summary: Summary) -> Iterator[RenderableType]:
    shown = summary.examples[:_SHOWN_FINDINGS]
    for place, example in enumerate(shown, 1):
        grid = Table.grid(padding=(0, 1))
        grid.add_row(Text(f"{place}.", style="bold"), _tell(summary, example))
        for block in _evidence(summary, example):
            grid.add_row("", block)
        yield grid
        yield Text(" ")
    if shown:
        yield Text("Each is a pair of rows that are the same in all other columns.", style="dim")


def _tell(summary: Summary, example: Example) -> Text:
    told = wording.told(example, summary)
    # The words of `wording.sentence`, with what changed marked.
    return Text.assemble(
        f"{wording.clean(told.subject)} {told.verb} ",
        (wording.clean(told.decision), "bold"),
        " as ",
        (wording.clean(told.side), "bold black on yellow"),
        " but ",
        (wording.clean(told.partner_decision), "bold"),
        " as ",
        (wording.clean(told.partner_side), "bold black on yellow"),
        ".",
        overflow="fold",
    )


def _evidence(summary: Summary, example: Example) -> Iterator[Text]:
    what, answers = wording.apart(summary, example)
    yield Text.assemble((f"{what} ", "dim"), answers)
    flipped_by = wording.flipped_by(example, summary)
    if flipped_by:
        yield Text.assemble(("flipped by ", "dim"), wording.clean(flipped_by), overflow="fold")
    told = wording.telling(example, summary)
    same = [f"{f.name} {f.value}" for f in example.fields if not f.changed and f not in told]
    if same:
        yield Text.assemble(
            ("also the same for both: ", "dim"),
            wording.clean(spell(same, most=_SHOWN_COLUMNS)),
            overflow="fold",
        )


def _natural(summary: Summary) -> Iterator[RenderableType]:
    grid = Table.grid(padding=(0, 2))
    measured = wording.natural(summary)
    for natural in measured:
        grid.add_row(
            _text(natural.name, "bold"),
            Text(natural.shown, style="cyan", no_wrap=True),
            Text(natural.aid, style="dim"),
        )
    if measured:
        yield grid
        if "findings" not in summary.naturalness:
            yield Text(wording.TOO_FEW)
        yield Text(wording.ATN, style="dim")


def _measure(summary: Summary) -> Iterator[RenderableType]:
    for section in metrics.sections(summary.metrics):
        lines = [line for line in section.lines if line.main]
        if lines:
            yield _lines(lines)
            if section.title.startswith("Groups"):
                yield _text(section.aid, "dim")


def print_metrics(tree: dict[str, Any], console: Console) -> None:
    """Print every metric of a run with its reading aid."""
    for place, section in enumerate(metrics.sections(tree)):
        if place:
            console.print()
        console.print(_text(section.title, "bold"))
        console.print(Padding.indent(_text(section.aid, "dim"), 2))
        console.print(Padding.indent(_lines(section.lines), 2))


def _lines(lines: list[metrics.MetricLine]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(ratio=5)
    grid.add_column(ratio=3)
    for line in lines:
        name = _text(f"{line.name} ({line.short})" if line.short else line.name, "bold")
        value = Text.assemble(
            (wording.clean(line.value), "cyan"),
            f"  {wording.clean(line.interval)}" if line.interval else "",
        )
        grid.add_row(name, value)
        grid.add_row(_text(line.aid, "dim"), _text(line.reads, "dim"))
    return grid


def _tell_tested(summary: Summary) -> Iterator[RenderableType]:
    count = words.count
    settings = ", ".join(f"{name} {value}" for name, value in wording.settings(summary))
    outcome = wording.rule_in_words(summary)
    yield _facts(
        [
            (
                "table",
                f"{summary.table} ({count(summary.n_rows)} rows, {count(summary.n_columns)} "
                "columns)",
            ),
            *(
                [("held-out rows", f"{summary.held_out} ({count(summary.n_held_out)} rows)")]
                if summary.held_out is not None
                else []
            ),
            ("model", summary.model),
            ("steadiness", wording.steadiness(summary.steadiness)),
            ("decision", f"{summary.target}: {outcome}" if summary.target else outcome),
            *(
                (f"protected {name}", spell(values, most=8))
                for name, values in summary.protected.items()
            ),
            ("combinations", count(summary.combinations)),
            *wording.rule_facts(summary),
            ("method", _method(summary, settings)),
            ("generator", wording.generator(summary)),
            ("seed", str(summary.seed)),
            *((wording.title(name), words.number(value)) for name, value in summary.scores.items()),
            *(
                (wording.hash_of(name), _short(value) if value else "none")
                for name, value in summary.hashes.items()
            ),
            (
                "versions",
                ", ".join(f"{name} {version}" for name, version in summary.versions.items()),
            ),
        ]
    )


def _method(summary: Summary, settings: str) -> str:
    if summary.blind:
        return ""
    return f"{summary.method} ({settings})" if settings else summary.method


def _notes(summary: Summary) -> Iterator[RenderableType]:
    notes = [*summary.notes, " ".join(wording.limits(summary)[:2])]
    for note in notes:
        grid = Table.grid(padding=(0, 1))
        grid.add_row("-", _text(note))
        yield grid


def _facts(pairs: Iterable[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            grid.add_row(_text(name), _text(value))
    return grid


def _text(value: str, style: str = "") -> Text:
    # A Text is never read as markup, so brackets in a value stay brackets.
    return Text(wording.clean(value), style=style, overflow="fold")


def _short(hashed: str) -> str:
    # Enough to tell two files apart at sight; the page and the JSON have all of it.
    return hashed if len(hashed) <= 24 else f"{hashed[:19]}..."

"""Groups as tables: every rate with its interval, and what cannot be said."""

from __future__ import annotations

from dataclasses import dataclass

from limi.audits.summary import Summary
from limi.metrics._rate import Rate
from limi.metrics.group_lines import GroupLine
from limi.report import wording
from limi.system import words

__all__ = ["HEADINGS", "TOO_FEW", "GroupTable", "tables"]

HEADINGS = (
    ("selection rate", "selection rate"),
    ("what-if rate", "what-if rate"),
    ("accuracy", "accuracy"),
    ("false favorable", "false favorable"),
    ("false unfavorable", "false unfavorable"),
    ("impact ratio", "impact ratio"),
)
"""Titles, and the term that explains each."""

TOO_FEW = "too few to say"
_MOST_UNSAID = 3  # groups too small to say anything of that have a line of their own


@dataclass(frozen=True)
class GroupTable:
    """The groups of a column, or of several together."""

    title: str
    columns: tuple[tuple[str, str], ...]  # those of HEADINGS that any group has
    lines: tuple[tuple[str, str, tuple[tuple[str, str, str], ...]], ...]
    # ^ group, n, and for each column the rate, its interval, and a mark
    unsaid: tuple[tuple[str, str], ...] = ()  # groups with their n, of which nothing can be said


def tables(summary: Summary) -> list[GroupTable]:
    """A table per protected column, and one of their intersections."""
    told: dict[tuple[str, ...], list[GroupLine]] = {}
    for line in summary.groups:
        told.setdefault(line.columns, []).append(line)
    return [_table(columns, lines) for columns, lines in told.items()]


def _table(columns: tuple[str, ...], lines: list[GroupLine]) -> GroupTable:
    unsaid = [line for line in lines if not any(_rates(line))]
    if len(unsaid) > _MOST_UNSAID:
        lines = [line for line in lines if any(_rates(line))]
    else:
        unsaid = []
    rates = [_rates(line) for line in lines]
    shown = [
        place for place in range(len(HEADINGS)) if any(line[place] is not None for line in rates)
    ]
    title = columns[0] if len(columns) == 1 else f"{words.both(list(columns))} together"
    return GroupTable(
        title,
        tuple(HEADINGS[place] for place in shown),
        tuple(
            (
                line.group,
                words.count(line.n),
                tuple(_cell(line, HEADINGS[place][0], known[place]) for place in shown),
            )
            for line, known in zip(lines, rates, strict=True)
        ),
        tuple((line.group, words.count(line.n)) for line in unsaid),
    )


def _rates(line: GroupLine) -> tuple[Rate | None, ...]:
    return (
        line.selection,
        line.what_if,
        line.accuracy,
        line.false_favorable,
        line.false_unfavorable,
        line.impact_ratio,
    )


def _cell(line: GroupLine, heading: str, rate: Rate | None) -> tuple[str, str, str]:
    if rate is None:
        return TOO_FEW, "", ""
    if heading == "impact ratio":
        if line.reference:
            return "1", "most selected", ""
        mark = {True: "below four fifths", False: "", None: ""}[line.below_four_fifths]
        if not mark and rate.estimate < 0.8:
            mark = "perhaps below four fifths"
        return f"{rate.estimate:.2f}", f"{rate.low:.2f} to {rate.high:.2f}", mark
    shown = wording.percent(rate)
    return f"{shown.estimate} %", f"{shown.low} to {shown.high}", ""

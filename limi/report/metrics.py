"""The metrics of a run as lines to show: a number, how to read it, and which way is better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from limi.audits.what_if import WhatIf
from limi.metrics import declared
from limi.metrics._base import (
    EFFECTIVENESS,
    GROUP,
    INDIVIDUAL,
    NATURALNESS,
    SEVERITY,
    Family,
    Metric,
    Tree,
    Unit,
)
from limi.metrics.individual import Rate
from limi.report import wording
from limi.system import words
from limi.system.plain import read

__all__ = ["MetricLine", "Section", "lines_of", "sections"]


@dataclass(frozen=True)
class MetricLine:
    """One metric."""

    name: str
    aid: str
    figures: tuple[str, str]  # the value, and its interval or what else to hold it against
    reads: str = ""  # "0 to 1, lower is better"
    short: str = ""  # the paper's abbreviation
    main: bool = False  # does the report for the terminal show it?

    @property
    def value(self) -> str:
        """The number itself."""
        return self.figures[0]

    @property
    def interval(self) -> str:
        """What stands beside it; empty where nothing does."""
        return self.figures[1]


@dataclass(frozen=True)
class Section:
    """A family of metrics."""

    title: str
    aid: str
    lines: list[MetricLine] = field(default_factory=list)


_ORDER = (INDIVIDUAL, GROUP, SEVERITY, NATURALNESS, EFFECTIVENESS)


def sections(tree: Tree) -> list[Section]:
    """Families that have anything to show, in the order of a reader's questions.

    What a metric is called and how it reads is its own declaration; here its numbers are written.
    """
    shown: list[Section] = []
    for family in _ORDER:
        if family == GROUP:
            shown.append(_what_if_section(tree.get("what_if", [])))
            shown += [_group(name, entry) for name, entry in tree.get(GROUP.name, {}).items()]
        else:
            lines = list(_lines(family, tree.get(family.name, {})))
            shown.append(Section(family.title, family.words, lines))
    return [section for section in shown if section.lines]


def _lines(family: Family, tree: Tree) -> Iterator[MetricLine]:
    """The lines of one family, or of one column's groups."""
    for metric in declared():
        if metric.family == family and metric.name in tree:
            yield from lines_of(metric, tree[metric.name], tree)


def lines_of(metric: Metric, entry: Tree, family: Tree) -> Iterator[MetricLine]:
    """The lines of a metric's entry; `family` is the tree in which it stands."""
    for part in metric.lines(entry, family):
        yield MetricLine(
            part.title,
            _fill(part.words, part.entry) or part.words,
            _figures(part.entry, metric.unit, metric.beside),
            metric.reads,
            part.short,
            metric.main,
        )


def _what_if_section(tables: list[Tree]) -> Section:
    return Section(
        "Who is favored",
        "The same people, all decided as if they had each value of a column, with everything else "
        "unchanged; p-values are corrected for all comparisons in the report.",
        list(_what_if(tables)),
    )


def _what_if(tables: list[Tree]) -> Iterator[MetricLine]:
    for table in (read(WhatIf, tree) for tree in tables):
        rows = wording.population(table.population)
        together = " together" if len(table.columns) > 1 else ""
        highest = sorted(table.values, key=lambda value: -value.rate.estimate)
        ends = highest if len(highest) <= 4 else [highest[0], highest[-1]]
        shares = ", ".join(
            f"{wording.percent(v.rate).estimate} % as {wording.value_of(table, v.value)}"
            for v in ends
        )
        pairs = words.count(table.n_pairs)
        if table.favored:
            pair = table.favored[0]
            figures = (
                f"{wording.over(table, pair)}: {wording.points(pair)}",
                wording.chance(pair.corrected),
            )
        else:
            figures = ("nobody", "no difference is larger than chance explains")
        yield MetricLine(
            f"favored by {words.both(table.columns)}{together}, {rows}",
            aid=f"favorable decisions on the same {words.count(table.n)} rows: {shares}; "
            f"{words.count(table.n_supported)} of {pairs} pairs of values differ beyond chance",
            figures=figures,
            reads="0 points is best",
        )


def _group(name: str, entry: Tree) -> Section:
    if entry.get("privileged") is None:
        return Section(f"Groups by {name}", "")
    rows = sum(part["n"] for part in entry["selection_rate"].values())
    whose = "held-out rows" if entry.get("population") == "held-out" else "rows of your table"
    n_groups = entry.get("chosen_from", 1)
    wide = f" The intervals allow for its choice among {n_groups} groups." if n_groups > 2 else ""
    return Section(
        f"Groups by {name}",
        f"Privileged: {name} {entry['privileged']}, because {entry['chosen']}; compared with all "
        f"others, on {words.count(rows)} {whose}.{wide}",
        list(_lines(GROUP, entry | {"column": name})),
    )


# -- numbers as they are written --------------------------------------------------------


def _figures(entry: Tree, unit: Unit, beside: str) -> tuple[str, str]:
    """A number, and what stands next to it: its interval unless the metric has another wish."""
    if entry["value"] is None:
        return "none", entry.get("reason", "")
    if unit == "percent" and "low" in entry:
        rate = Rate(entry["value"], entry["low"], entry["high"], entry.get("n", 1))
        shown = wording.percent(rate)
        value, ends = f"{shown.estimate} %", f"{shown.low} to {shown.high} %"
    else:
        value = _written(entry["value"], unit)
        ends = ""
        if "low" in entry:
            ends = f"{_written(entry['low'], unit)} to {_written(entry['high'], unit)}"
    return value, _fill(beside, entry, unit) if beside else ends


def _written(value: float, unit: Unit) -> str:
    if unit == "percent":
        return f"{100 * value:.1f} %"
    if unit == "rate":
        return f"{value:,.1f}"
    if unit == "count":
        return words.count(int(value))
    return f"{value:.1g}" if value and abs(value) < 0.0005 else f"{value:.3f}"


def _fill(template: str, entry: Tree, unit: Unit = "number") -> str:
    """Words with the numbers that they name; empty where the entry lacks one."""
    named = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    if any(name not in entry for name in named):
        return ""
    return template.format(**{name: _beside(entry[name], unit) for name in named})


def _beside(value: Any, unit: Unit) -> str:
    """A number beside another: whole ones are counts, whatever the other is."""
    if isinstance(value, int):
        return words.count(value)
    if isinstance(value, float):
        return _written(value, "rate" if unit == "rate" else "number")
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{value!r} is not a number")  # of a summary that somebody has edited
    return value or "none"

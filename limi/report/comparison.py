"""Methods side by side: a verdict in one sentence, the cells of the table, and a page of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from limi.report import _pages, charts
from limi.system import words

__all__ = ["HEADINGS", "MethodCurve", "cells", "curves", "render", "verdict"]

HEADINGS = (
    "method",
    "findings",
    "per 1,000 queries",
    "per second",
    "ATN",
    "ATN repr.",
    "diversity",
    "cells",
    "seconds",
)

_CLOSE = 1.05  # within so much of the most, two methods are called alike
_COLORS = 6  # that the style sheet has


@dataclass(frozen=True)
class MethodCurve:
    """Findings of one method against queries: the middle of its seeds, and how far they reach."""

    method: str
    path: str
    area: str  # empty of a single seed
    end: charts.Dot
    label: str
    color: int


def cells(line: Any) -> list[str]:
    """One line of the comparison as text."""

    def number(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    return [
        line.method,
        f"{line.findings:,}",
        number(line.findings_per_thousand_queries, ".1f"),
        number(line.findings_per_second, ",.0f"),
        number(line.naturalness, ".3f"),
        number(line.representative, ".3f"),
        number(line.diversity, ".3f"),
        f"{line.cells:,}",
        number(line.seconds, ".2f"),
    ]


def verdict(lines: Sequence[Any]) -> str:
    """Which method finds most for its queries, in one sentence that no seed contradicts."""
    ran = [(line, _ends(line)) for line in lines if not line.problem]
    ran.sort(key=lambda one: -_middle(one[1]))
    if not ran or not ran[0][1][-1]:
        return "No method found a flip within its queries, which does not prove that there is none."
    (best, ends), *others = ran
    most = _middle(ends)
    told = f"{best.method} finds most: {words.count(most)} in {words.count(best.queries)} queries"
    if not others:
        return f"{told}."
    other, found = others[0]
    next_most = _middle(found)
    if most < _CLOSE * max(next_most, 1):
        return (
            f"{best.method} and {other.method} find about the same: {words.count(most)} and "
            f"{words.count(next_most)}."
        )
    beside = f"and {other.method} finds none"
    if next_most:
        beside = (
            f"{most / next_most:.1f} times as many as {other.method} ({words.count(next_most)})"
        )
    if len(ends) == 1:
        return f"{told}, {beside}; this is one seed."
    if ends[0] <= found[-1]:
        return (
            f"{told}, {beside}; but their seeds overlap ({words.count(ends[0])} to "
            f"{words.count(ends[-1])} against {words.count(found[0])} to "
            f"{words.count(found[-1])}), so that may be chance."
        )
    return f"{told}, {beside}, whichever of the {len(ends)} seeds."


def _ends(line: Any) -> list[int]:
    """Findings of every seed, the fewest first."""
    return sorted(curve[-1][1] for curve in line.curves) or [line.findings]


def _middle(counts: Sequence[int]) -> int:
    """The median of ascending counts; halfway between the middle two where they are even."""
    return (counts[(len(counts) - 1) // 2] + counts[len(counts) // 2]) // 2


def curves(lines: Sequence[Any]) -> tuple[list[MethodCurve], list[Any], list[Any]]:
    """The curves in their frame, and the ticks across and up."""
    known = [line for line in lines if line.curves and any(len(c) for c in line.curves)]
    queries = max((c[-1][0] for line in known for c in line.curves), default=0)
    findings = max((c[-1][1] for line in known for c in line.curves), default=0)
    if not queries or not findings:
        return [], [], []
    across, up = charts.ticks(queries), charts.ticks(findings)
    drawn = [_curve(line, place % _COLORS, across[-1], up[-1]) for place, line in enumerate(known)]
    return (
        drawn,
        [(tick / across[-1], words.count(round(tick))) for tick in across],
        [(tick / up[-1], words.count(round(tick))) for tick in up],
    )


def _curve(line: Any, color: int, widest: float, highest: float) -> MethodCurve:
    asked = sorted({queries for curve in line.curves for queries, _ in curve})
    found = [[_at(curve, queries) for queries in asked] for curve in line.curves]
    by_queries = [sorted(counts) for counts in zip(*found, strict=True)]

    def places(counts: Sequence[int]) -> list[tuple[float, float]]:
        pairs = zip(asked, counts, strict=True)
        return [(100 * q / widest, 100 - 100 * n / highest) for q, n in pairs]

    middle = [_middle(counts) for counts in by_queries]
    points, area = places(middle), ""
    if len(line.curves) > 1:
        high, low = ([counts[end] for counts in by_queries] for end in (-1, 0))
        area = _path([*places(high), *reversed(places(low))]) + "Z"
    end = charts.Dot(points[-1][0] / 100, 1 - points[-1][1] / 100)
    label = f"{line.method} {words.count(middle[-1])}"
    return MethodCurve(line.method, _path([(0.0, 100.0), *points]), area, end, label, color)


def _at(curve: Sequence[Sequence[int]], queries: int) -> int:
    """How many findings a curve has after so many queries."""
    before = itertools.takewhile(lambda point: point[0] <= queries, curve)
    return max((n for _, n in before), default=0)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in points)


def render(title: str, lines: Sequence[Any], command: str = "") -> str:
    """The page: the verdict, curves of findings against queries, and the table."""
    drawn, across, up = curves(lines)
    return _pages.render(
        "comparison.html",
        ("report", "comparison"),
        script="report",
        title=title,
        verdict=verdict(lines),
        headings=HEADINGS,
        rows=[cells(line) for line in lines],
        curves=drawn,
        across=across,
        up=up,
        seeds=max((len(line.curves) for line in lines), default=0),
        problems=[(line.method, line.problem) for line in lines if line.problem],
        command=command,
    )

"""Methods side by side: the cells of the table, and a small self-contained page of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limi.report import _pages

__all__ = ["HEADINGS", "cells", "render"]

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


def render(title: str, lines: Sequence[Any]) -> str:
    """The page, with a bar for the findings per thousand queries of each method."""
    most = max((line.findings_per_thousand_queries for line in lines), default=0.0) or 1.0
    return _pages.render(
        "comparison.html",
        ("marginals",),
        title=title,
        headings=HEADINGS,
        rows=[cells(line) for line in lines],
        bars=[(line.method, 100 * line.findings_per_thousand_queries / most) for line in lines],
        problems=[(line.method, line.problem) for line in lines if line.problem],
    )

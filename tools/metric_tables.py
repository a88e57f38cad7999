"""The tables of docs/metrics.md, from what the metrics declare of themselves.

    python tools/metric_tables.py           # fail where the page is not what the metrics say
    python tools/metric_tables.py --write   # write them into the page

A table stands between `<!-- metrics: FAMILY -->` and `<!-- /metrics -->`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from limi.metrics import Metric, declared

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"

_TABLE = re.compile(r"(<!-- metrics: (\w+) -->\n)(.*?)(<!-- /metrics -->)", re.S)
_BETTER = {"zero": "0", "neither": ""}
_HEAD = (
    "| metric | in JSON | formula | range | better | in the paper |\n|---|---|---|---|---|---|\n"
)


def table(family: str) -> str:
    """The table of a family, one line per metric."""
    mine = [metric for metric in declared() if metric.family.name == family]
    return _HEAD + "".join(map(_line, mine))


def current(text: str) -> str:
    """The page with its tables as they should be."""
    return _TABLE.sub(lambda found: found[1] + table(found[2]) + found[4], text)


def _line(metric: Metric) -> str:
    cells = (
        metric.title,
        f"`{metric.name}`",
        metric.formula.replace("|", "\\|"),
        metric.range,
        _BETTER.get(metric.better, metric.better),
        metric.short,
    )
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|\n"


def main() -> int:
    """0 where the page is current, or was written."""
    text = PAGE.read_text(encoding="utf-8")
    if "--write" in sys.argv[1:]:
        PAGE.write_text(current(text), encoding="utf-8")
        return 0
    if current(text) == text:
        return 0
    print("docs/metrics.md is not what the metrics declare; run this with --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())

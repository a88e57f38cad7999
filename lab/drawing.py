"""What every figure of a study is drawn with: a sheet of panels, axes, lines and words, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from limi.report.charts import ticks
from limi.system.words import short

__all__ = [
    "AXIS",
    "COLOURS",
    "DASHES",
    "HEAD",
    "STYLE",
    "WIDE",
    "WIDTH",
    "Linear",
    "Log",
    "Panel",
    "draw_dot",
    "draw_polyline",
    "draw_rule",
    "draw_sheet",
    "draw_text",
]

WIDTH, WIDE = 340, 520  # of a panel, and of one with many lines
HEAD, AXIS = 40, 34  # above and below what a panel draws
_GAP, _COLUMNS, _KEY_LINE = 28, 3, 18
STYLE = """
:root { color-scheme: light dark; }
svg { background: #ffffff; }
text { font: 12px system-ui, sans-serif; fill: #566070; }
.name, .title { fill: #14181f; } .title { font-weight: 600; }
.grid { stroke: #e2e5ea; } .base { stroke: #7c8796; }
.ours { fill: #1b5cb8; } .range { stroke: #1b5cb8; stroke-width: 2; }
.paper { fill: #ffffff; stroke: #a94a08; stroke-width: 2; }
.other { fill: #3d7a3a; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.lead { stroke: #7c8796; stroke-dasharray: 1 3; }
.area { fill: #e2e5ea; }
@media (prefers-color-scheme: dark) {
  svg { background: #0f1216; }
  text { fill: #9ca7b6; } .name, .title { fill: #e8ebf0; }
  .grid { stroke: #2a303a; } .base { stroke: #707c8d; }
  .ours { fill: #86b6ff; } .range { stroke: #86b6ff; }
  .paper { fill: #0f1216; stroke: #ffb076; }
  .area { fill: #2a303a; }
}
""".strip()
# One colour a line, told apart in grey too; labels name them as well.
DASHES = ("", "7 3", "2 3")
COLOURS = ("#1b5cb8", "#a94a08", "#3d7a3a", "#8250a4", "#7c8796", "#b8860b")


@dataclass(frozen=True)
class Panel:
    """One benchmark's part of a figure."""

    body: list[str]
    height: float


def draw_sheet(
    title: str,
    panels: Sequence[Panel],
    key: Sequence[Sequence[str]],
    columns: int = _COLUMNS,
    width: int = WIDTH,
) -> str:
    """Panels side by side in rows, under a title and the lines of a key."""
    columns = min(columns, len(panels))
    rows = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    # Room for the title, even over a single panel.
    whole = max(columns, 2) * (width + _GAP) + _GAP
    parts, y = [], 46.0 + _KEY_LINE * max(len(key), 1)
    for row in rows:
        for i, panel in enumerate(row):
            x = _GAP + i * (width + _GAP)
            parts += [f'<g transform="translate({x} {y:g})">', *panel.body, "</g>"]
        y += max(panel.height for panel in row) + _GAP
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {y:g}" width="{whole}" '
        f'height="{y:g}" role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{_GAP}" y="26">{escape(title)}</text>',
    ]
    for number, line in enumerate(key):
        head += [f'<g transform="translate({_GAP} {48 + _KEY_LINE * number})">', *line, "</g>"]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def draw_text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Words at a place."""
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def draw_rule(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def draw_dot(kind: str, x: float, y: float) -> str:
    """A dot of a kind of number."""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'


def draw_polyline(places: Sequence[tuple[float, float]], colour: str, dash: str = "") -> str:
    """A line through places."""
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline class="line" stroke="{colour}"{dashed} points="{points}"/>'


class Linear:
    """Places on an axis from 0."""

    def __init__(self, values: Sequence[float]) -> None:
        highest = max([v for v in values if v > 0], default=1.0)
        # Round ticks are made for numbers of 1 and more; shares are scaled up for them.
        self._unit = 1.0 if highest > 1 else 0.01
        self._ticks = [tick * self._unit for tick in ticks(highest / self._unit, 4)]
        self._end = self._ticks[-1]

    def at(self, value: float) -> float:
        return value / self._end

    def marks(self) -> list[tuple[float, str]]:
        return [
            (tick / self._end, f"{tick:g}" if tick < 1000 else short(tick)) for tick in self._ticks
        ]


class Log:
    """Places on a logarithmic axis between powers of ten; what is below the first lies on it.

    One that is `close` to its numbers may end at 2 or 5 times a power as well.
    """

    def __init__(self, values: Sequence[float], *, close: bool = False) -> None:
        known = [v for v in values if v > 0] or [1.0]
        low = math.floor(math.log10(min(known)))
        high = max(math.ceil(math.log10(max(known))), low + 1)
        steps = (1, 2, 5) if close else (1,)
        ends = [s * 10.0**p for p in range(low, high + 1) for s in steps]
        first = max(i for i, end in enumerate(ends) if end <= min(known))
        last = max(first + 1, min(i for i, end in enumerate(ends) if end >= max(known)))
        self._ticks = ends[first : last + 1]
        self._low, self._high = math.log10(ends[first]), math.log10(ends[last])

    def at(self, value: float) -> float:
        if value <= 0:
            return 0.0
        return (math.log10(value) - self._low) / (self._high - self._low)

    def marks(self) -> list[tuple[float, str]]:
        powers = [tick for tick in self._ticks if math.log10(tick).is_integer()]
        shown = powers if len(powers) > 2 else self._ticks
        return [(self.at(tick), short(tick) if tick >= 1000 else f"{tick:g}") for tick in shown]

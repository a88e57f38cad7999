"""Figures of a study as SVG files that need nothing else; colours and marks as in the report."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from limi.errors import InvalidInput
from limi.report.charts import ticks
from limi.studies._files import Study, paper_numbers
from limi.studies._results import DONE, Results
from limi.studies._tables import MEASURES, complete
from limi.system.words import short

__all__ = ["STYLE", "draw_rule", "draw_text", "figure"]

_WIDTH, _GAP, _LINE, _HEAD = 340, 28, 22, 40
_NAMES, _AXIS = 110, 34
_COLUMNS = 3
STYLE = """
:root { color-scheme: light dark; }
svg { background: #ffffff; }
text { font: 12px system-ui, sans-serif; fill: #566070; }
.name, .title { fill: #14181f; } .title { font-weight: 600; }
.grid { stroke: #e2e5ea; } .base { stroke: #7c8796; }
.ours { fill: #1b5cb8; } .range { stroke: #1b5cb8; stroke-width: 2; }
.paper { fill: #ffffff; stroke: #a94a08; stroke-width: 2; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
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
_COLOURS = ("#1b5cb8", "#a94a08", "#3d7a3a", "#8250a4", "#7c8796", "#b8860b")


@dataclass(frozen=True)
class _Panel:
    """One benchmark's part of a figure."""

    body: list[str]
    height: float


def figure(study: Study, results: Results) -> str:
    """The figure of a study, one panel a benchmark."""
    kind = study.figure.get("kind")
    results = complete(study, results)
    benchmarks = list(
        dict.fromkeys(o.benchmark for o in results.outcomes.values() if o.status == DONE)
    )
    if not benchmarks:
        raise InvalidInput(
            f"there are no results of {study.name} at scale {results.scale} to draw; "
            f"run: limi study run {study.name} --scale {results.scale}"
        )
    draw = {"dots": _dots, "lines": _lines, "densities": _densities}[str(kind)]
    panels = [draw(study, results, benchmark) for benchmark in benchmarks]
    shown = "the overlap of densities" if kind == "densities" else MEASURES[_measure(study)].label
    title = f"{study.title}: {shown}, scale {results.scale}"
    return _sheet(title, panels, _key(study))


def _measure(study: Study) -> str:
    return str(study.figure.get("measure", "findings"))


def _key(study: Study) -> list[str]:
    if study.figure.get("kind") == "densities":
        return [
            '<rect class="area" x="0" y="-9" width="10" height="10"/>',
            draw_text(16, 0, "the table"),
        ]
    out = [
        '<circle class="ours" cx="5" cy="-4" r="4"/>',
        draw_text(16, 0, "ours: mean and range of seeds"),
    ]
    if _measure(study) in paper_numbers(study.name):
        out += ['<circle class="paper" cx="225" cy="-4" r="4"/>', draw_text(236, 0, "the paper")]
    return out


def _sheet(title: str, panels: Sequence[_Panel], key: Sequence[str]) -> str:
    columns = min(_COLUMNS, len(panels))
    rows = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    # Room for the title, even over a single panel.
    width = max(columns, 2) * (_WIDTH + _GAP) + _GAP
    parts, y = [], 64.0
    for row in rows:
        for i, panel in enumerate(row):
            x = _GAP + i * (_WIDTH + _GAP)
            parts += [f'<g transform="translate({x} {y:g})">', *panel.body, "</g>"]
        y += max(panel.height for panel in row) + _GAP
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y:g}" width="{width}" '
        f'height="{y:g}" role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{_GAP}" y="26">{escape(title)}</text>',
        f'<g transform="translate({_GAP} 48)">',
        *key,
        "</g>",
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def draw_text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Words at a place."""
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


# -- dots: a row a variant ----------------------------------------------------------------


def _dots(study: Study, results: Results, benchmark: str) -> _Panel:
    """Ours as a dot over the range of seeds, the paper's as a ring.

    Counts and speeds differ by powers of ten, so they lie on a logarithmic axis.
    """
    measure = _measure(study)
    paper = paper_numbers(study.name).get(measure, {}).get(benchmark, {})
    found = {v.name: results.numbers(benchmark, v.name, measure) for v in study.variants}
    shown = [v for v in study.variants if found[v.name] or v.name in paper]
    values = [x for numbers in found.values() for x in numbers] + list(paper.values())
    scale = _Log(values) if measure in ("findings", "per_second") else _Linear(values)
    height = _HEAD + _LINE * len(shown) + _AXIS
    bottom = _HEAD + _LINE * len(shown)
    body = [draw_text(0, 16, benchmark, "title")]
    for place, label in scale.marks():
        x = _NAMES + place * (_WIDTH - _NAMES)
        body += [
            draw_rule("grid", x, _HEAD - 8, x, bottom),
            draw_text(x, bottom + 16, label, anchor="middle"),
        ]
    for number, variant in enumerate(shown):
        y = _HEAD + _LINE * (number + 0.5)
        body.append(draw_text(0, y + 4, variant.label, "name"))
        numbers = found[variant.name]
        if numbers:
            low, mid, high = (
                _NAMES + scale.at(x) * (_WIDTH - _NAMES)
                for x in (min(numbers), statistics.fmean(numbers), max(numbers))
            )
            body += [draw_rule("range", low, y, high, y), _dot("ours", mid, y)]
        if variant.name in paper:
            body.append(
                _dot("paper", _NAMES + scale.at(paper[variant.name]) * (_WIDTH - _NAMES), y)
            )
    return _Panel(body, height)


def draw_rule(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _dot(kind: str, x: float, y: float) -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'


class _Linear:
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


class _Log:
    """Places on a logarithmic axis between powers of ten; what is below the first lies on it."""

    def __init__(self, values: Sequence[float]) -> None:
        known = [v for v in values if v > 0] or [1.0]
        self._low = math.floor(math.log10(min(known)))
        self._high = max(math.ceil(math.log10(max(known))), self._low + 1)

    def at(self, value: float) -> float:
        if value <= 0:
            return 0.0
        return (math.log10(value) - self._low) / (self._high - self._low)

    def marks(self) -> list[tuple[float, str]]:
        powers = range(self._low, self._high + 1)
        return [(self.at(10.0**p), short(10.0**p) if p >= 3 else f"{10.0**p:g}") for p in powers]


# -- lines: a measure over the variants in turn -------------------------------------------


def _lines(study: Study, results: Results, benchmark: str) -> _Panel:
    measure = _measure(study)
    paper = paper_numbers(study.name).get(measure, {}).get(benchmark, {})
    names = [v.name for v in study.variants]
    found = {name: results.numbers(benchmark, name, measure) for name in names}
    values = [x for numbers in found.values() for x in numbers] + list(paper.values())
    scale, high = _Linear(values), 150.0
    body = [draw_text(0, 16, benchmark, "title")]
    left, across = 40.0, _WIDTH - 50.0

    def place(number: int, value: float) -> tuple[float, float]:
        x = left + across * number / max(1, len(names) - 1)
        return x, _HEAD + high * (1 - scale.at(value))

    for at, label in scale.marks():
        y = _HEAD + high * (1 - at)
        body += [
            draw_rule("grid", left, y, left + across, y),
            draw_text(left - 6, y + 4, label, anchor="end"),
        ]
    for number, variant in enumerate(study.variants):
        x, _ = place(number, 0.0)
        body.append(
            draw_text(x, _HEAD + high + 16, variant.label.rpartition(" ")[2], anchor="middle")
        )
    for kind, colour, points in (
        ("paper", _COLOURS[1], [(i, paper[n]) for i, n in enumerate(names) if n in paper]),
        (
            "ours",
            _COLOURS[0],
            [(i, statistics.fmean(found[n])) for i, n in enumerate(names) if found[n]],
        ),
    ):
        places = [place(i, value) for i, value in points]
        body.append(_polyline(places, colour))
        body += [_dot(kind, x, y) for x, y in places]
    return _Panel(body, _HEAD + high + _AXIS)


def _polyline(places: Sequence[tuple[float, float]], colour: str) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline class="line" stroke="{colour}" points="{points}"/>'


# -- densities ----------------------------------------------------------------------------


def _densities(study: Study, results: Results, benchmark: str) -> _Panel:
    """The table's density as an area, and a line for each method, named at its end."""
    drawn = {}
    for variant in study.variants:
        done = [o for o in results.of(benchmark, variant.name) if o.status == DONE]
        if done and "picture" in done[0].measures:
            drawn[variant.label] = done[0].measures["picture"]
    if not drawn:
        return _Panel([draw_text(0, 16, f"{benchmark}: no densities")], _HEAD)
    pictures = list(drawn.values())
    grid, high = pictures[0]["x"], 150.0
    top = max(max(line) for p in pictures for line in (p["real"], p["findings"])) or 1.0

    def places(line: Sequence[float]) -> list[tuple[float, float]]:
        span = grid[-1] - grid[0]
        return [
            (_WIDTH * (x - grid[0]) / span, _HEAD + high * (1 - y / top))
            for x, y in zip(grid, line, strict=True)
        ]

    real = places(pictures[0]["real"])
    outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in real)
    body = [
        draw_text(0, 16, benchmark, "title"),
        f'<polygon class="area" points="0,{_HEAD + high:g} {outline} {_WIDTH},{_HEAD + high:g}"/>',
        draw_rule("base", 0, _HEAD + high, _WIDTH, _HEAD + high),
    ]
    for number, (label, picture) in enumerate(drawn.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        body.append(_polyline(places(picture["findings"]), colour))
        y = _HEAD + high + 20 + 18 * number
        body += [
            _polyline([(0, y - 4), (16, y - 4)], colour),
            draw_text(22, y, label, "name"),
        ]
    return _Panel(body, _HEAD + high + 20 + 18 * len(drawn) + 8)

"""Figures of a study as SVG files that need nothing else; colours and marks as in the report."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from limi.errors import InvalidInput
from limi.report.charts import ticks
from limi.studies._derived import complete
from limi.studies._files import Study, paper_numbers
from limi.studies._measures import MEASURES
from limi.studies._results import DONE, Results
from limi.system.words import short

__all__ = ["STYLE", "curves", "draw_rule", "draw_text", "figure"]

_WIDTH, _GAP, _LINE, _HEAD = 340, 28, 22, 40
_WIDE = 520  # a panel of many lines
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
_DASHES = ("", "7 3", "2 3")
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
    draw = {"dots": _dots, "lines": _lines, "densities": _densities, "trade": _trade}[str(kind)]
    panels = [draw(study, results, benchmark) for benchmark in benchmarks]
    shown = "the overlap of densities" if kind == "densities" else MEASURES[_measure(study)].label
    title = f"{study.title}: {shown}, scale {results.scale}"
    return _sheet(title, panels, _key(study))


def curves(study: Study, results: Results) -> str:
    """Findings against rows checked, and against queries, a panel each for every benchmark.

    Empty where no cell has kept its curve.
    """
    benchmarks = list(
        dict.fromkeys(o.benchmark for o in results.outcomes.values() if o.measures.get("curve"))
    )
    panels = [
        _curve_panel(study, results, benchmark, axis)
        for benchmark in benchmarks
        for axis in ("rows", "queries")
    ]
    if not panels:
        return ""
    title = f"{study.title}: findings, axes logarithmic, means over seeds, scale {results.scale}"
    return _sheet(title, panels, [], columns=2, width=_WIDE)


def _curve_panel(study: Study, results: Results, benchmark: str, axis: str) -> _Panel:
    """One line a method; labels in the order of their ends."""
    drawn = {}
    for variant in study.variants:
        kept = [
            o.measures["curve"]
            for o in results.of(benchmark, variant.name)
            if o.measures.get("curve")
        ]
        if kept:
            drawn[variant.label] = _mean_curve(kept, axis)
    drawn = {label: line for label, line in drawn.items() if line}
    across = _Log([x for line in drawn.values() for x, _ in line])
    upward = _Log([y for line in drawn.values() for _, y in line])
    high, left, right = 250.0, 40.0, 130.0
    width = _WIDE - left - right
    styles = {v.label: number for number, v in enumerate(study.variants)}
    body = [draw_text(0, 16, f"{benchmark}, findings against {axis}", "title")]
    for at, label in upward.marks():
        y = _HEAD + high * (1 - at)
        body += [
            draw_rule("grid", left, y, left + width, y),
            draw_text(left - 6, y + 4, label, anchor="end"),
        ]
    for at, label in across.marks():
        x = left + at * width
        body.append(draw_text(x, _HEAD + high + 16, label, anchor="middle"))
    ends = sorted(drawn, key=lambda label: -drawn[label][-1][1])
    room = high / max(len(ends) - 1, 1)
    for number, label in enumerate(ends):
        # A colour and a dash of its own, the same in every panel.
        style = styles[label]
        colour, dash = _COLOURS[style % len(_COLOURS)], _DASHES[style // len(_COLOURS) % 3]
        places = [
            (left + width * across.at(x), _HEAD + high * (1 - upward.at(y)))
            for x, y in drawn[label]
        ]
        y = _HEAD + min(room, 18.0) * number
        end = left + width + 34
        body += [
            _polyline(places, colour, dash),
            draw_rule("lead", *places[-1], end - 18, y),
            _polyline([(end - 18, y), (end, y)], colour, dash),
            draw_text(end + 4, y + 4, label, "name"),
        ]
    return _Panel(body, _HEAD + high + _AXIS)


def _mean_curve(kept: Sequence[Mapping[str, list[float]]], axis: str) -> list[tuple[float, float]]:
    """The mean of findings over seeds, as far as the shortest of them goes."""
    end = min(curve[axis][-1] for curve in kept)
    longest = max(kept, key=lambda curve: len(curve[axis]))
    marks = [*(x for x in longest[axis] if 0 < x < end), end]
    found = [np.interp(marks, [0, *curve[axis]], [0, *curve["findings"]]) for curve in kept]
    means = np.mean(found, axis=0)
    return [(x, float(y)) for x, y in zip(marks, means, strict=True) if x > 0 and y > 0]


# -- trade: one measure against another ---------------------------------------------------


def _trade(study: Study, results: Results, benchmark: str) -> _Panel:
    """What a variant gains in one measure and pays in another, in a colour for each generator.

    The figure's `marks` are the letters of variants, and a line joins those that `line` names.
    """
    marks, joined = study.figure["marks"], study.figure["line"]
    across_measure, upward_measure = _measure(study), str(study.figure["against"])
    lines: dict[str, list[tuple[str, float, float]]] = {}
    for variant in study.variants:
        found = results.numbers(benchmark, variant.name, across_measure)
        alike = results.numbers(benchmark, variant.name, upward_measure)
        if found and alike and (variant.of or variant.name) in marks:
            name = "CTGAN" if variant.of else "trees"
            point = (variant.of or variant.name, statistics.fmean(found), statistics.fmean(alike))
            lines.setdefault(name, []).append(point)
    points = [point for line in lines.values() for point in line]
    if not points:
        return _Panel([draw_text(0, 16, f"{benchmark}: not measured")], _HEAD)
    across = _Linear([x for _, x, _ in points])
    high, left = 190.0, 40.0
    low = min(y for _, _, y in points)
    bottom = math.floor(low * 10) / 10
    width = _WIDTH - left - 10

    def place(x: float, y: float) -> tuple[float, float]:
        return left + width * across.at(x), _HEAD + high * (1 - (y - bottom) / (1 - bottom))

    body = [draw_text(0, 16, benchmark, "title")]
    for tenth in range(round(bottom * 10), 11):
        y = place(0, tenth / 10)[1]
        body += [
            draw_rule("grid", left, y, left + width, y),
            draw_text(left - 6, y + 4, f"{tenth / 10:.1f}", anchor="end"),
        ]
    for at, label in across.marks():
        body.append(
            draw_text(
                left + at * width, _HEAD + high + 16, f"{100 * float(label):g} %", anchor="middle"
            )
        )
    for number, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[number]
        places = [place(x, y) for _, x, y in line]
        named = dict(zip((variant for variant, _, _ in line), places, strict=True))
        body.append(_polyline([named[one] for one in joined if one in named], colour))
        for one, (x, y) in named.items():
            body.append(f'<circle fill="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
            body.append(draw_text(x + 6, y - 6, marks[one], "name"))
        body += [
            _polyline([(150 + 90 * number, 12), (166 + 90 * number, 12)], colour),
            draw_text(172 + 90 * number, 16, name, "name"),
        ]
    return _Panel(body, _HEAD + high + _AXIS)


def _measure(study: Study) -> str:
    return str(study.figure.get("measure", "findings"))


def _key(study: Study) -> list[str]:
    if study.figure.get("kind") == "densities":
        return [
            '<rect class="area" x="0" y="-9" width="10" height="10"/>',
            draw_text(16, 0, "the table"),
        ]
    if study.figure.get("kind") == "trade":
        letters = study.figure["marks"].items()
        named = ", ".join(f"{mark} {study.variant(name).label}" for name, mark in letters)
        upward = MEASURES[str(study.figure["against"])].label
        words = f"across: {MEASURES[_measure(study)].label}; upward: {upward}; {named}"
        return [draw_text(0, 0, words)]
    out = [
        '<circle class="ours" cx="5" cy="-4" r="4"/>',
        draw_text(16, 0, "ours: mean and range of seeds"),
    ]
    if _measure(study) in paper_numbers(study.name):
        out += ['<circle class="paper" cx="225" cy="-4" r="4"/>', draw_text(236, 0, "the paper")]
    if study.figure.get("kind") == "lines" and any(v.of for v in study.variants):
        out += ['<circle class="other" cx="325" cy="-4" r="4"/>', draw_text(336, 0, "ours, CTGAN")]
    return out


def _sheet(
    title: str,
    panels: Sequence[_Panel],
    key: Sequence[str],
    columns: int = _COLUMNS,
    width: int = _WIDTH,
) -> str:
    columns = min(columns, len(panels))
    rows = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    # Room for the title, even over a single panel.
    whole = max(columns, 2) * (width + _GAP) + _GAP
    parts, y = [], 64.0
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
    printed = {v.name: paper[v.of or v.name] for v in shown if (v.of or v.name) in paper}
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
        if variant.name in printed:
            x = _NAMES + scale.at(printed[variant.name]) * (_WIDTH - _NAMES)
            body.append(_dot("paper", x, y))
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
    plain = [v for v in study.variants if not v.of]
    names = [v.name for v in plain]
    found = {v.name: results.numbers(benchmark, v.name, measure) for v in study.variants}
    beside = {v.of: v.name for v in study.variants if v.of}
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
    for number, variant in enumerate(plain):
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
        (
            "other",
            _COLOURS[2],
            [
                (i, statistics.fmean(found[beside[n]]))
                for i, n in enumerate(names)
                if found.get(beside.get(n, ""))
            ],
        ),
    ):
        places = [place(i, value) for i, value in points]
        if places:
            body.append(_polyline(places, colour))
        body += [_dot(kind, x, y) for x, y in places]
    return _Panel(body, _HEAD + high + _AXIS)


def _polyline(places: Sequence[tuple[float, float]], colour: str, dash: str = "") -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline class="line" stroke="{colour}"{dashed} points="{points}"/>'


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

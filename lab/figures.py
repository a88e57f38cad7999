"""Figures of a study as SVG files that need nothing else; colours and marks as in the report."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lab.derived import complete
from lab.drawing import (
    AXIS,
    COLOURS,
    DASHES,
    HEAD,
    WIDE,
    WIDTH,
    Linear,
    Log,
    Panel,
    draw_dot,
    draw_polyline,
    draw_rule,
    draw_sheet,
    draw_text,
)
from lab.files import Study, Variant, paper_numbers
from lab.measures import MEASURES
from lab.results import DONE, Results
from lab.trade_figure import draw_trade
from limi.errors import InvalidInput

__all__ = ["curves", "figure"]

_LINE, _NAMES = 22, 110  # of a panel of dots: the height of a row, and room for its name
_LEAD, _LETTER = 38, 6.7  # beside a panel of curves: the way to a name, and room for its letters


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
            f"run: python -m lab run {study.name} --scale {results.scale}"
        )
    if kind == "trade":
        return draw_trade(study, results, benchmarks)
    draw = {"dots": _dots, "lines": _lines, "densities": _densities}[str(kind)]
    panels = [draw(study, results, benchmark) for benchmark in benchmarks]
    shown = "the overlap of densities" if kind == "densities" else MEASURES[_measure(study)].label
    title = f"{study.title}: {shown}, scale {results.scale}"
    return draw_sheet(title, panels, [_key(study)])


def curves(study: Study, results: Results) -> str:
    """Findings against rows checked, and against queries, a panel each for every benchmark.

    `curves` of the study's figure may name the variants to draw, what they are (`says`), and the
    rows to begin with (`from`). Empty where no cell has kept its curve.
    """
    given = study.figure.get("curves")
    settings: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    drawn = [v for v in study.variants if v.name in settings.get("variants", (v.name,))]
    if all(v.of for v in drawn):  # which the title says
        drawn = [replace(v, label=study.variant(v.of).label) for v in drawn]
    names = {v.name for v in drawn}
    benchmarks = list(
        dict.fromkeys(
            o.benchmark
            for o in results.outcomes.values()
            if o.measures.get("curve") and o.variant in names
        )
    )
    start = settings.get("from", 0)
    panels = [
        _curve_panel(drawn, results, benchmark, axis, start)
        for benchmark in benchmarks
        for axis in ("rows", "queries")
    ]
    if not panels:
        return ""
    shown = [study.title + ": findings", settings.get("says", "")]
    shown += [f"from {start:,} rows on"] if start else []
    shown += ["axes logarithmic", "means over seeds", f"scale {results.scale}"]
    title = ", ".join(filter(None, shown))
    return draw_sheet(title, panels, [], columns=2, width=WIDE)


def _curve_panel(
    variants: Sequence[Variant], results: Results, benchmark: str, axis: str, start: float
) -> Panel:
    """One line a method, from so many rows on; labels in the order of their ends."""
    drawn = {}
    for variant in variants:
        kept = [
            o.measures["curve"]
            for o in results.of(benchmark, variant.name)
            if o.measures.get("curve")
        ]
        if kept:
            drawn[variant.label] = _mean_curve(kept, axis, start)
    drawn = {label: line for label, line in drawn.items() if line}
    across = Log([x for line in drawn.values() for x, _ in line], close=True)
    upward = Log([y for line in drawn.values() for _, y in line], close=True)
    longest = max((len(v.label) for v in variants), default=0)
    high, left, right = 250.0, 40.0, max(130.0, _LEAD + _LETTER * longest)
    width = WIDE - left - right
    styles = {v.label: number for number, v in enumerate(variants)}
    body = [draw_text(0, 16, f"{benchmark}, findings against {axis}", "title")]
    for at, label in upward.marks():
        y = HEAD + high * (1 - at)
        body += [
            draw_rule("grid", left, y, left + width, y),
            draw_text(left - 6, y + 4, label, anchor="end"),
        ]
    for at, label in across.marks():
        x = left + at * width
        body.append(draw_text(x, HEAD + high + 16, label, anchor="middle"))
    ends = sorted(drawn, key=lambda label: -drawn[label][-1][1])
    room = high / max(len(ends) - 1, 1)
    for number, label in enumerate(ends):
        # A colour and a dash of its own, the same in every panel.
        style = styles[label]
        colour, dash = COLOURS[style % len(COLOURS)], DASHES[style // len(COLOURS) % 3]
        places = [
            (left + width * across.at(x), HEAD + high * (1 - upward.at(y))) for x, y in drawn[label]
        ]
        y = HEAD + min(room, 18.0) * number
        end = left + width + _LEAD - 4
        body += [
            draw_polyline(places, colour, dash),
            draw_rule("lead", *places[-1], end - 18, y),
            draw_polyline([(end - 18, y), (end, y)], colour, dash),
            draw_text(end + 4, y + 4, label, "name"),
        ]
    return Panel(body, HEAD + high + AXIS)


def _mean_curve(
    kept: Sequence[Mapping[str, list[float]]], axis: str, start: float
) -> list[tuple[float, float]]:
    """The mean of findings over seeds, from so many rows as far as the shortest of them goes."""
    end = min(curve[axis][-1] for curve in kept)
    longest = max(kept, key=lambda curve: len(curve[axis]))
    places = zip(longest[axis], longest["rows"], strict=True)
    marks = [*(x for x, rows in places if 0 < x < end and rows >= start), end]
    found = [np.interp(marks, [0, *curve[axis]], [0, *curve["findings"]]) for curve in kept]
    means = np.mean(found, axis=0)
    return [(x, float(y)) for x, y in zip(marks, means, strict=True) if x > 0 and y > 0]


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
    if study.figure.get("kind") == "lines" and any(v.of for v in study.variants):
        out += ['<circle class="other" cx="325" cy="-4" r="4"/>', draw_text(336, 0, "ours, CTGAN")]
    return out


# -- dots: a row a variant ----------------------------------------------------------------


def _dots(study: Study, results: Results, benchmark: str) -> Panel:
    """Ours as a dot over the range of seeds, the paper's as a ring.

    Counts and speeds differ by powers of ten, so they lie on a logarithmic axis.
    """
    measure = _measure(study)
    paper = paper_numbers(study.name).get(measure, {}).get(benchmark, {})
    found = {v.name: results.numbers(benchmark, v.name, measure) for v in study.variants}
    shown = [v for v in study.variants if found[v.name] or v.name in paper]
    printed = {v.name: paper[v.of or v.name] for v in shown if (v.of or v.name) in paper}
    values = [x for numbers in found.values() for x in numbers] + list(paper.values())
    scale = Log(values) if measure in ("findings", "per_second") else Linear(values)
    height = HEAD + _LINE * len(shown) + AXIS
    bottom = HEAD + _LINE * len(shown)
    body = [draw_text(0, 16, benchmark, "title")]
    for place, label in scale.marks():
        x = _NAMES + place * (WIDTH - _NAMES)
        body += [
            draw_rule("grid", x, HEAD - 8, x, bottom),
            draw_text(x, bottom + 16, label, anchor="middle"),
        ]
    for number, variant in enumerate(shown):
        y = HEAD + _LINE * (number + 0.5)
        body.append(draw_text(0, y + 4, variant.label, "name"))
        numbers = found[variant.name]
        if numbers:
            low, mid, high = (
                _NAMES + scale.at(x) * (WIDTH - _NAMES)
                for x in (min(numbers), statistics.fmean(numbers), max(numbers))
            )
            body += [draw_rule("range", low, y, high, y), draw_dot("ours", mid, y)]
        if variant.name in printed:
            x = _NAMES + scale.at(printed[variant.name]) * (WIDTH - _NAMES)
            body.append(draw_dot("paper", x, y))
    return Panel(body, height)


# -- lines: a measure over the variants in turn -------------------------------------------


def _lines(study: Study, results: Results, benchmark: str) -> Panel:
    measure = _measure(study)
    paper = paper_numbers(study.name).get(measure, {}).get(benchmark, {})
    plain = [v for v in study.variants if not v.of]
    names = [v.name for v in plain]
    found = {v.name: results.numbers(benchmark, v.name, measure) for v in study.variants}
    values = [x for numbers in found.values() for x in numbers] + list(paper.values())
    scale, high = Linear(values), 150.0
    body = [draw_text(0, 16, benchmark, "title")]
    left, across = 40.0, WIDTH - 50.0

    def place(number: int, value: float) -> tuple[float, float]:
        x = left + across * number / max(1, len(names) - 1)
        return x, HEAD + high * (1 - scale.at(value))

    for at, label in scale.marks():
        y = HEAD + high * (1 - at)
        body += [
            draw_rule("grid", left, y, left + across, y),
            draw_text(left - 6, y + 4, label, anchor="end"),
        ]
    for number, variant in enumerate(plain):
        x, _ = place(number, 0.0)
        body.append(
            draw_text(x, HEAD + high + 16, variant.label.rpartition(" ")[2], anchor="middle")
        )
    for kind, colour, points in (
        ("paper", COLOURS[1], [(i, paper[n]) for i, n in enumerate(names) if n in paper]),
        (
            "ours",
            COLOURS[0],
            [(i, statistics.fmean(found[n])) for i, n in enumerate(names) if found[n]],
        ),
        (
            "other",
            COLOURS[2],
            [
                (i, statistics.fmean(found[study.beside(n)]))
                for i, n in enumerate(names)
                if found.get(study.beside(n))
            ],
        ),
    ):
        places = [place(i, value) for i, value in points]
        if places:
            body.append(draw_polyline(places, colour))
        body += [draw_dot(kind, x, y) for x, y in places]
    return Panel(body, HEAD + high + AXIS)


# -- densities ----------------------------------------------------------------------------


def _densities(study: Study, results: Results, benchmark: str) -> Panel:
    """The table's density as an area, and a line for each method, named at its end."""
    drawn = {}
    for variant in study.variants:
        done = [o for o in results.of(benchmark, variant.name) if o.status == DONE]
        if done and "picture" in done[0].measures:
            drawn[variant.label] = done[0].measures["picture"]
    if not drawn:
        return Panel([draw_text(0, 16, f"{benchmark}: no densities")], HEAD)
    pictures = list(drawn.values())
    grid, high = pictures[0]["x"], 150.0
    top = max(max(line) for p in pictures for line in (p["real"], p["findings"])) or 1.0

    def places(line: Sequence[float]) -> list[tuple[float, float]]:
        span = grid[-1] - grid[0]
        return [
            (WIDTH * (x - grid[0]) / span, HEAD + high * (1 - y / top))
            for x, y in zip(grid, line, strict=True)
        ]

    real = places(pictures[0]["real"])
    outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in real)
    body = [
        draw_text(0, 16, benchmark, "title"),
        f'<polygon class="area" points="0,{HEAD + high:g} {outline} {WIDTH},{HEAD + high:g}"/>',
        draw_rule("base", 0, HEAD + high, WIDTH, HEAD + high),
    ]
    for number, (label, picture) in enumerate(drawn.items()):
        colour = COLOURS[number % len(COLOURS)]
        body.append(draw_polyline(places(picture["findings"]), colour))
        y = HEAD + high + 20 + 18 * number
        body += [
            draw_polyline([(0, y - 4), (16, y - 4)], colour),
            draw_text(22, y, label, "name"),
        ]
    return Panel(body, HEAD + high + 20 + 18 * len(drawn) + 8)

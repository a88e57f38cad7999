"""What variants gain in one measure and pay in another: a dot for each, with a letter beside it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from lab.drawing import (
    AXIS,
    COLOURS,
    HEAD,
    WIDE,
    Linear,
    Panel,
    draw_polyline,
    draw_rule,
    draw_sheet,
    draw_text,
)
from lab.files import Study
from lab.measures import MEASURES
from lab.results import NOT_MEASURED, Results

__all__ = ["draw_trade"]

_HIGH, _LEFT = 240.0, 40.0
_LETTER, _KEY = 7.0, 165  # the width of a letter, and how many of them a line of the key holds
# Where the letter of a dot may stand, the best place first: from the dot to the letter's middle.
_AROUND = [(9, -7), (9, 9), (-9, -7), (-9, 9), (0, -12), (0, 13), (13, 1), (-13, 1)]
_FURTHER = [(2 * x, 2 * y) for x, y in _AROUND]

_Point = tuple[float, float]
_Dots = dict[str, dict[str, _Point]]
"""By generator and variant: the measure across, and the one upward."""


def draw_trade(study: Study, results: Results, benchmarks: Sequence[str]) -> str:
    """A panel for the mean of several benchmarks, and one for each.

    The figure's `marks` are the letters of variants, and others are left out; a line joins those
    that `line` names.
    """
    across, upward = str(study.figure["measure"]), str(study.figure["against"])
    found = {one: _take_dots(study, results, one, across, upward) for one in benchmarks}
    # A generator that has no dot on some benchmark is lacking there, and told of.
    known = {name for dots in found.values() for name, named in dots.items() if named}
    found = {
        one: {name: named for name, named in dots.items() if name in known}
        for one, dots in found.items()
    }
    if len(found) > 1:
        found = {f"mean of {len(found)} benchmarks": _average(list(found.values())), **found}
    panels = [_draw_panel(study, name, dots) for name, dots in found.items()]
    title = (
        f"{study.title}: {MEASURES[across].label} (across) and {MEASURES[upward].label} (upward), "
        f"means over seeds, scale {results.scale}"
    )
    return draw_sheet(title, panels, _name_marks(study), columns=2, width=WIDE)


def _take_dots(study: Study, results: Results, benchmark: str, across: str, upward: str) -> _Dots:
    dots: _Dots = {"CTGAN" if variant.of else "trees": {} for variant in study.variants}
    for variant in study.variants:
        own = variant.of or variant.name
        numbers = [results.numbers(benchmark, variant.name, one) for one in (across, upward)]
        if own in study.figure["marks"] and all(numbers):
            x, y = map(statistics.fmean, numbers)
            dots["CTGAN" if variant.of else "trees"][own] = (x, y)
    return dots


def _average(found: Sequence[_Dots]) -> _Dots:
    """The mean dot of each variant that every benchmark has."""
    return {
        name: {
            one: (
                statistics.fmean(dots[name][one][0] for dots in found),
                statistics.fmean(dots[name][one][1] for dots in found),
            )
            for one in variants
            if all(one in dots[name] for dots in found)
        }
        for name, variants in found[0].items()
    }


def _draw_panel(study: Study, name: str, dots: _Dots) -> Panel:
    points = [point for named in dots.values() for point in named.values()]
    if not points:
        return Panel([draw_text(0, 16, f"{name}: {NOT_MEASURED}")], HEAD)
    across = Linear([x for x, _ in points])
    width = WIDE - _LEFT - 10
    bottom = min(0.9, math.floor(min(y for _, y in points) * 10) / 10)

    def place(point: _Point) -> _Point:
        share = (point[1] - bottom) / (1 - bottom)
        return _LEFT + width * across.at(point[0]), HEAD + _HIGH * (1 - share)

    lacking = _name_lacking(study, dots)
    body = [draw_text(0, 16, f"{name} ({lacking})" if lacking else name, "title")]
    for tenth in range(round(bottom * 10), 11):
        y = place((0, tenth / 10))[1]
        body += [
            draw_rule("grid", _LEFT, y, _LEFT + width, y),
            draw_text(_LEFT - 6, y + 4, f"{tenth / 10:.1f}", anchor="end"),
        ]
    for at, label in across.marks():
        x, words = _LEFT + at * width, f"{100 * float(label):g} %"
        body.append(draw_text(x, HEAD + _HIGH + 16, words, anchor="middle"))
    places = {(g, one): place(point) for g, named in dots.items() for one, point in named.items()}
    letters = _place_letters(places)
    for number, (generator, named) in enumerate(dots.items()):
        colour, x = COLOURS[number], WIDE - 170 + 80 * number
        line = [places[generator, one] for one in study.figure["line"] if one in named]
        body += [
            draw_polyline([(x, 12), (x + 16, 12)], colour),
            draw_text(x + 22, 16, generator, "name"),
            draw_polyline(line, colour),
        ]
        for one in named:
            (cx, cy), (tx, ty) = places[generator, one], letters[generator, one]
            mark = study.figure["marks"][one]
            body.append(f'<circle fill="{colour}" cx="{cx:.1f}" cy="{cy:.1f}" r="4"/>')
            if math.dist((cx, cy), (tx, ty)) > 16:
                body.append(draw_rule("lead", cx, cy, tx, ty))
            body.append(draw_text(tx, ty + 4, mark, "name", "middle"))
    return Panel(body, HEAD + _HIGH + AXIS)


def _name_lacking(study: Study, dots: _Dots) -> str:
    """The generators without any dot, and the letters that another has no dot for."""
    told = []
    for name, named in dots.items():
        lacking = [mark for one, mark in study.figure["marks"].items() if one not in named]
        if lacking:
            told.append(f"{name}: without {', '.join(lacking)}" if named else f"{name}: none")
    return "; ".join(told)


def _place_letters(places: Mapping[tuple[str, str], _Point]) -> dict[tuple[str, str], _Point]:
    """A place near each dot, clear of all dots and letters where there is such a place."""
    letters: dict[tuple[str, str], _Point] = {}
    # Whole pixels, so that the last digit of a mean chooses no other place.
    dots = {key: (float(round(x)), float(round(y))) for key, (x, y) in places.items()}
    for key, (x, y) in dots.items():
        others = [at for one, at in dots.items() if one != key]
        near = [(x + dx, y + dy) for dx, dy in (*_AROUND, *_FURTHER)]
        letters[key] = min(near, key=lambda at: _count_hits(at, others, [*letters.values()]))
    return letters


def _count_hits(at: _Point, dots: Sequence[_Point], letters: Sequence[_Point]) -> int:
    def hits(one: _Point, width: float, height: float) -> bool:
        return abs(at[0] - one[0]) < width and abs(at[1] - one[1]) < height

    outside = at[0] < _LEFT or at[1] > HEAD + _HIGH
    return (
        outside
        + sum(hits(one, _LETTER, 8.0) for one in dots)
        + sum(hits(one, 1.5 * _LETTER, 12.0) for one in letters)
    )


def _name_marks(study: Study) -> list[list[str]]:
    """What each letter stands for, in as many lines as it takes."""
    lines = [""]
    for name, mark in study.figure["marks"].items():
        words = f"{mark} {study.variant(name).label}"
        if lines[-1] and len(lines[-1]) + len(words) > _KEY:
            lines.append("")
        lines[-1] += f", {words}" if lines[-1] else words
    return [[draw_text(0, 0, line)] for line in lines]

"""Where the marks of a page's charts lie, from the numbers of `limi.audits.pictures`.

Places are fractions of a chart's frame, from its lower left; paths are drawn in a frame of 100 by
100 that the page stretches. Numbers that a chart cannot show leave it out: a report never fails.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from limi.audits.what_if import AsIf
from limi.report import wording
from limi.system import words

__all__ = [
    "Band",
    "ChartLine",
    "Curve",
    "Densities",
    "Dot",
    "band",
    "curve",
    "densities",
    "dots",
    "span",
    "ticks",
]

_AXIS_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_HEADROOM = 1.14  # above the end of a curve, where its label stands
_FEW_POINTS = 12  # up to so many, a curve shows each of them
_LABEL = 0.36  # the share of a phone's width that the longest label takes


@dataclass(frozen=True)
class Dot:
    """A place in a frame."""

    x: float
    y: float


@dataclass(frozen=True)
class ChartLine:
    """A density and its label, which stands above the frame and points at the line."""

    name: str
    label: str
    path: str
    at: Dot
    label_row: int  # 0 is the lowest
    rightward: bool  # does the label run to the right of what it points at?
    common: float  # the share of the area that it has in common with the table's


@dataclass(frozen=True)
class Densities:
    """Densities over one axis."""

    lines: tuple[ChartLine, ...]
    share: float | None  # of the variance that the axis explains
    label_rows: int


@dataclass(frozen=True)
class Curve:
    """Findings over queries."""

    path: str
    end: Dot
    dots: tuple[Dot, ...]  # where there are few
    queries: int
    findings: int
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]


@dataclass(frozen=True)
class Band:
    """Rates over a number, and the band that holds them all at once."""

    path: str
    area: str
    dots: tuple[Dot, ...]  # where there are few
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]


def ticks(highest: float, most: int = 5, *, whole: bool = False) -> list[float]:
    """Round numbers from 0 to just above the highest value, in at most so many steps."""
    # A shorter axis would make a rate of next to nothing look large.
    highest = max(highest, 1.0)
    size = 10.0 ** math.floor(math.log10(highest / most))
    steps = (size * step for step in _AXIS_STEPS)
    step = next(s for s in steps if s * most >= highest * (1 - 1e-9) and not (whole and s % 1))
    n = math.ceil(highest / step - 1e-9)
    return [round(step * i, 9) for i in range(n + 1)]


def span(low: float, high: float, most: int = 5, *, least: float = 1.0) -> list[float]:
    """Round numbers from just below the lowest value to just above the highest, not from 0.

    A shorter axis than `least` would make next to nothing look large.

    >>> span(22.1, 24.9), span(0.0, 0.0)
    ([22.0, 23.0, 24.0, 25.0], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    """
    wide = max(high - low, least)
    size = 10.0 ** math.floor(math.log10(wide / most))
    step = next(size * k for k in _AXIS_STEPS if size * k * most >= wide * (1 - 1e-9))
    first = math.floor(low / step + 1e-9)
    n = max(math.ceil(high / step - 1e-9) - first, math.ceil(least / step - 1e-9))
    return [round(step * (first + k), 9) for k in range(n + 1)]


def band(values: Sequence[AsIf]) -> Band | None:
    """Rates over a number with their band; None where there are not three values to join."""
    known = sorted(
        (v.at, v.rate) for v in values if v.at is not None and _finite([v.at, v.rate.estimate])
    )
    if len(known) < 3:
        return None
    across = [at for at, _ in known]
    up = span(100 * min(r.low for _, r in known), 100 * max(r.high for _, r in known))

    def x(at: float) -> float:
        return (at - across[0]) / (across[-1] - across[0])

    def y(share: float) -> float:
        return (100 * share - up[0]) / (up[-1] - up[0])

    line = [(x(at), y(rate.estimate)) for at, rate in known]
    edge = [(x(at), y(rate.high)) for at, rate in known]
    edge += [(x(at), y(rate.low)) for at, rate in reversed(known)]
    marked = across if len(across) <= 6 else [across[k * (len(across) - 1) // 4] for k in range(5)]
    return Band(
        _path(line),
        _path(edge),
        tuple(Dot(*place) for place in line) if len(line) <= _FEW_POINTS else (),
        [(x(at), f"{at:g}") for at in marked],
        [(y(tick / 100), f"{tick:g}") for tick in up],
    )


def densities(picture: dict[str, Any] | None) -> Densities | None:
    """The lines of the table and of its findings; None where there is nothing to compare."""
    given = picture or {}
    grid, drawn = given.get("x") or [], given.get("lines") or {}
    if len(grid) < 3 or not _finite(grid) or grid[-1] <= grid[0]:
        return None
    kept = {
        name: drawn[name]
        for name in wording.DENSITIES
        if len(drawn.get(name) or []) == len(grid) and _finite(drawn[name]) and max(drawn[name]) > 0
    }
    if "real" not in kept or len(kept) < 2:
        return None
    across = [(x - grid[0]) / (grid[-1] - grid[0]) for x in grid]
    top = max(max(line) for line in kept.values())
    heights = {name: [y / top for y in line] for name, line in kept.items()}
    told = [
        _most_apart(across, line, [heights[other] for other in heights if other != name])
        for name, line in heights.items()
    ]
    rows = _label_rows(told)
    share = given.get("share")
    return Densities(
        tuple(
            ChartLine(
                name,
                wording.DENSITIES[name],
                _path(zip(across, line, strict=True)),
                at,
                row,
                _rightward(at),
                sum(map(min, line, heights["real"])) / sum(line),
            )
            for (name, line), at, row in zip(heights.items(), told, rows, strict=True)
        ),
        share if isinstance(share, float) and math.isfinite(share) else None,
        max(rows) + 1,
    )


def _most_apart(across: list[float], line: list[float], others: list[list[float]]) -> Dot:
    """Where a line is easiest to tell from the others: apart from all, best above them."""

    def clear(place: int) -> float:
        above = min(line[place] - other[place] for other in others)
        apart = min(abs(line[place] - other[place]) for other in others)
        # A label that must reach through another line is worth half, and a line's foot nothing.
        return (above if above > 0 else apart / 2) if line[place] > 0.1 * max(line) else -1.0

    place = max(range(len(line)), key=lambda k: (round(clear(k), 6), -k))
    return Dot(across[place], line[place])


def _rightward(at: Dot) -> bool:
    return at.x < 0.5


def _label_rows(told: Sequence[Dot]) -> tuple[int, ...]:
    """Rows in which labels neither overlap nor stand in the way of another's pointer."""
    spans = [(at.x, at.x + _LABEL) if _rightward(at) else (at.x - _LABEL, at.x) for at in told]

    def clashes(rows: tuple[int, ...]) -> int:
        return sum(
            (rows[i] == rows[j] and spans[i][0] < spans[j][1] and spans[j][0] < spans[i][1])
            + (rows[i] > rows[j] and spans[j][0] <= told[i].x <= spans[j][1])
            for i, j in itertools.permutations(range(len(told)), 2)
        )

    ways = itertools.product(range(len(told)), repeat=len(told))
    return min(ways, key=lambda rows: (clashes(rows), sum(rows), rows))


def dots(pairs: Iterable[Sequence[float]] | None) -> list[Dot]:
    """Row's score across, partner's score up."""
    return [Dot(pair[0], pair[1]) for pair in pairs or () if len(pair) == 2 and _finite(pair)]


def curve(points: Iterable[Sequence[int]] | None) -> Curve | None:
    """Findings over queries; None where nothing was asked or nothing found."""
    known = [(0, 0), *((p[0], p[1]) for p in points or () if len(p) == 2 and _finite(p))]
    queries, findings = known[-1]
    if queries <= 0 or findings <= 0:
        return None
    # A batch that asked nothing new leaves its point where the last one is.
    places = [Dot(q / queries, n / (findings * _HEADROOM)) for q, n in dict.fromkeys(known)]
    return Curve(
        _path((dot.x, dot.y) for dot in places),
        places[-1],
        tuple(places[1:-1]) if len(places) <= _FEW_POINTS else (),
        queries,
        findings,
        _mark(queries, queries, 4),
        _mark(findings, findings * _HEADROOM, 4),
    )


def _mark(highest: int, length: float, most: int) -> list[tuple[float, str]]:
    steps = ticks(highest, most, whole=True)
    return [(step / length, words.short(step)) for step in steps if step <= highest]


def _path(places: Iterable[tuple[float, float]]) -> str:
    # Two digits, so that the last bits of a sum change no byte.
    return "M" + "L".join(f"{100 * x:.2f} {100 - 100 * y:.2f}" for x, y in places)


def _finite(numbers: Iterable[Any]) -> bool:
    return all(isinstance(n, (int, float)) and math.isfinite(n) for n in numbers)

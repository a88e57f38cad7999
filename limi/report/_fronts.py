"""Flips against what a repair costs: a dot for each seed, a mark for each model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from limi.report.charts import Dot, span, ticks

__all__ = ["HEIGHT", "Front", "Mark", "Point", "front"]

HEIGHT = 280  # of the frame, in pixels
_WIDTH = 270  # of the narrowest frame; labels that keep apart in it do so in wider ones
_LETTER, _LINE = 7.5, 17  # width of a letter and height of a line of labels
_GAP = 13  # between a mark and its label
_RADIUS = 8
_SIDE = 0.25  # nearer to an edge than this, a label runs inwards


@dataclass(frozen=True)
class Point:
    """A model: what it costs, in the units of the axis, the share that flips, and by seed both."""

    name: str
    cost: float
    flips: float
    seeds: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Mark:
    """A model in its frame; the label stands so many pixels above it."""

    name: str
    at: Dot
    seeds: tuple[Dot, ...]
    above: int
    anchor: str


@dataclass(frozen=True)
class Front:
    """Marks of models in one frame."""

    marks: tuple[Mark, ...]
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]
    limit: float | None  # what may be lost ends here
    headroom: int  # pixels that labels need above the frame


def front(
    points: Sequence[Point], *, limit: float | None = None, least: float = 1.0
) -> Front | None:
    """The marks of two or more models; None where there are fewer or a number is missing.

    `limit` is the cost at which what may be lost ends, and `least` the shortest axis of costs.
    """
    pairs = [(p.cost, p.flips) for p in points] + [pair for p in points for pair in p.seeds]
    if len(points) < 2 or not all(math.isfinite(x) for pair in pairs for x in pair):
        return None
    costs = [cost for cost, _ in pairs]
    if limit is not None and min(costs) - least <= limit <= max(costs) + least:
        costs.append(limit)
    across = span(min(costs), max(costs), 4, least=least)
    up = ticks(100 * max(flips for _, flips in pairs))
    first, last = across[0], across[-1]

    def place(cost: float, flips: float) -> Dot:
        return Dot((cost - first) / (last - first), 100 * flips / up[-1])

    places = [place(p.cost, p.flips) for p in points]
    anchors = [_anchor(at) for at in places]
    seeds = [place(*pair) for p in points for pair in p.seeds]
    heights = _heights(places, [p.name for p in points], anchors, seeds)
    marks = tuple(
        Mark(p.name, at, tuple(place(*pair) for pair in p.seeds), above, anchor)
        for p, at, anchor, above in zip(points, places, anchors, heights, strict=True)
    )
    tops = [above + _LINE - HEIGHT * (1 - at.y) for at, above in zip(places, heights, strict=True)]
    return Front(
        marks,
        [((tick - first) / (last - first), f"{tick:g}") for tick in across],
        [(tick / up[-1], f"{tick:g}") for tick in up],
        (limit - first) / (last - first) if limit in costs and limit is not None else None,
        max(0, math.ceil(max(tops))),
    )


def _anchor(at: Dot) -> str:
    return "start" if at.x < _SIDE else "end" if at.x > 1 - _SIDE else "middle"


def _heights(
    places: Sequence[Dot], names: Sequence[str], anchors: Sequence[str], seeds: Sequence[Dot]
) -> list[int]:
    """How far above their marks labels stand, so that none covers another, a mark or a seed."""
    taken = [_box(at, 2 * _RADIUS, 2 * _RADIUS, "middle", -_RADIUS) for at in places]
    taken += [_box(at, _RADIUS, _RADIUS, "middle", -_RADIUS / 2) for at in seeds]
    heights: dict[int, int] = {}
    for i in sorted(range(len(places)), key=lambda i: (places[i].x, places[i].y, i)):
        above = _GAP
        while True:
            box = _box(places[i], _LETTER * len(names[i]), _LINE, anchors[i], above)
            if not any(_overlap(box, other) for other in taken):
                break
            above += _LINE
        taken.append(box)
        heights[i] = above
    return [heights[i] for i in range(len(places))]


_Box = tuple[float, float, float, float]


def _box(at: Dot, wide: float, high: float, anchor: str, above: float) -> _Box:
    """Left, right, lower and upper edge in pixels from the lower left of the narrowest frame."""
    x, y = _WIDTH * at.x, HEIGHT * at.y
    left = {"start": x, "middle": x - wide / 2, "end": x - wide}[anchor]
    return left, left + wide, y + above, y + above + high


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]

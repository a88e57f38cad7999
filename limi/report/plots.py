"""Pictures of a result for notebooks: plain SVG, or drawn by matplotlib on axes of your own.

A picture holds numbers and words, and knows two ways to be drawn. As SVG it takes the colour of the
text around it, so it suits a light and a dark page; every word from the data is escaped.
"""

from __future__ import annotations

import math
import textwrap
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from limi.errors import InvalidInput, missing
from limi.metrics._enough import FEWEST_TOLD
from limi.metrics._rate import Rate
from limi.report import charts, wording
from limi.system.shown import clean
from limi.system.words import count
from limi.system.writing import write

if TYPE_CHECKING:
    from limi.audits.summary import Summary

__all__ = ["Interval", "Intervals", "Picture", "Plots", "Scatter"]

_WIDTH = 640  # of a picture, in its own units
_LINE, _TRACK, _GAP = 17, 20, 10  # heights of a line of words, of a bar, and between two of them
_LETTERS = 84  # of a line of words
_LABEL = 40  # letters of a line beside or above axes of matplotlib
_SIDE = 360  # of the frame of a scatter
_MARGIN = 48
_ACCENT = "#2f6fde"  # of marks; it reads on white and on black


class Picture(ABC):
    """A picture that a notebook shows by itself."""

    title: str

    @property
    @abstractmethod
    def svg(self) -> str:
        """The picture as one `<svg>` element, in the colour of the text around it."""

    @abstractmethod
    def draw(self, ax: Any = None) -> Any:
        """Draw it with matplotlib, on given axes or on new ones, which are returned."""

    def save(self, path: str | Path) -> Path:
        """Write the picture as an SVG file, dark on white."""
        ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
        head, close, rest = self.svg.partition(">")
        write(path, f'{head} color="#1f2328"{close}{ground}{rest}\n')
        return Path(path)

    def _repr_html_(self) -> str:
        return self.svg


@dataclass(frozen=True)
class Interval:
    """A share with its interval, and what it is of."""

    label: str
    estimate: float  # from 0 to 1
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Intervals(Picture):
    """Shares side by side, each with its interval, on one axis of per cent."""

    title: str
    lines: tuple[Interval, ...]
    average: float | None = None  # a share to compare all others with

    @property
    def svg(self) -> str:
        """Words above each bar, so that long ones have room."""
        ticks = charts.ticks(100 * max((line.high for line in self.lines), default=0.0))
        parts: list[str] = []
        y = 34.0
        for line in self.lines:
            for words in textwrap.wrap(_spell(line.label), _LETTERS) or [""]:
                parts.append(_text(0, y, words))
                y += _LINE
            parts += _bar(line, y - 6, ticks[-1])
            y += _TRACK + _GAP
        top, bottom = 24.0, y - _GAP
        grid = [
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom:.1f}" stroke="currentColor" '
            'stroke-opacity=".14"/>' + _text(x, bottom + 16, f"{tick:g} %", anchor, faint=True)
            for tick in ticks
            for x, anchor in [(_across(tick / 100, ticks[-1]), _anchor(tick, ticks))]
        ]
        if self.average is not None:
            x = _across(self.average, ticks[-1])
            grid.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom:.1f}" '
                'stroke="currentColor" stroke-dasharray="4 3" stroke-opacity=".7"/>'
            )
        return _frame(self.title, _WIDTH, bottom + 26, [*grid, *parts])

    def draw(self, ax: Any = None) -> Any:
        """One line for each share, from the top down."""
        ax = _axes(ax)
        places = range(len(self.lines))
        estimates = [100 * line.estimate for line in self.lines]
        below = [100 * (line.estimate - line.low) for line in self.lines]
        above = [100 * (line.high - line.estimate) for line in self.lines]
        ax.errorbar(estimates, list(places), xerr=[below, above], fmt="o", capsize=3, color=_ACCENT)
        ax.set_yticks(list(places), [_wrap(one.label) for one in self.lines])
        ax.invert_yaxis()
        ax.set_xlim(left=0)
        ax.set_xlabel("% of rows that flip, with 95 % interval")
        if self.average is not None:
            ax.axvline(100 * self.average, linestyle="--", color="gray", linewidth=1)
        ax.set_title(_wrap(self.title), loc="left", fontsize="medium")
        return ax


@dataclass(frozen=True)
class Scatter(Picture):
    """Pairs of numbers: what the model answers for a person, and for the partner."""

    title: str
    across: str
    up: str
    dots: tuple[charts.Dot, ...]
    edge: float | None = None  # where the decision changes

    @property
    def svg(self) -> str:
        """A square with a dot for each pair."""
        ticks = self._ticks()
        first, last = ticks[0], ticks[-1]

        def place(value: float) -> float:
            return _SIDE * (value - first) / (last - first)

        parts = [
            f'<rect x="{_MARGIN}" y="30" width="{_SIDE}" height="{_SIDE}" fill="none" '
            'stroke="currentColor" stroke-opacity=".35"/>'
        ]
        for tick in ticks:
            x, y = _MARGIN + place(tick), 30 + _SIDE - place(tick)
            parts.append(_text(x, 30 + _SIDE + 16, f"{tick:g}", "middle", faint=True))
            parts.append(_text(_MARGIN - 6, y + 4, f"{tick:g}", "end", faint=True))
        if self.edge is not None and first < self.edge < last:
            x, y = _MARGIN + place(self.edge), 30 + _SIDE - place(self.edge)
            dashed = 'stroke="currentColor" stroke-dasharray="4 3" stroke-opacity=".5"'
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="30" y2="{30 + _SIDE}" {dashed}/>')
            right = _MARGIN + _SIDE
            parts.append(f'<line x1="{_MARGIN}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" {dashed}/>')
        parts += [
            f'<circle cx="{_MARGIN + place(dot.x):.1f}" cy="{30 + _SIDE - place(dot.y):.1f}" '
            f'r="2.6" fill="{_ACCENT}" fill-opacity=".55"/>'
            for dot in self.dots
        ]
        middle, bottom = _MARGIN + _SIDE / 2, 30 + _SIDE + 36
        parts.append(_text(middle, bottom, self.across, "middle"))
        parts.append(
            f'<g transform="translate(12 {30 + _SIDE / 2}) rotate(-90)">'
            f"{_text(0, 0, self.up, 'middle')}</g>"
        )
        return _frame(self.title, _MARGIN + _SIDE + 16, bottom + 10, parts)

    def _ticks(self) -> list[float]:
        values = [value for dot in self.dots for value in (dot.x, dot.y)]
        if self.edge is not None:
            return [0.0, 0.25, 0.5, 0.75, 1.0]
        return charts.span(min(values, default=0.0), max(values, default=1.0))

    def draw(self, ax: Any = None) -> Any:
        """Dots on square axes."""
        ax = _axes(ax)
        ax.scatter([d.x for d in self.dots], [d.y for d in self.dots], s=10, alpha=0.5, c=_ACCENT)
        ticks = self._ticks()
        ax.set_xlim(ticks[0], ticks[-1])
        ax.set_ylim(ticks[0], ticks[-1])
        ax.set_aspect("equal")
        if self.edge is not None:
            ax.axhline(self.edge, linestyle="--", color="gray", linewidth=1)
            ax.axvline(self.edge, linestyle="--", color="gray", linewidth=1)
        ax.set_xlabel(_spell(self.across))
        ax.set_ylabel(_spell(self.up))
        ax.set_title(_wrap(self.title), loc="left", fontsize="medium")
        return ax


class Plots:
    """The pictures of a result: `rates`, `where` and `pairs`.

    Each is shown by a notebook as it is, written by `.save("file.svg")`, and drawn by matplotlib
    with `.draw()` or `.draw(ax)`.
    """

    def __init__(self, summary: Summary) -> None:
        self._summary = summary

    def rates(self) -> Intervals:
        """How many rows of each population flip, with 95 % intervals."""
        lines = [_interval(wording.population(k), rate) for k, rate in self._summary.rates.items()]
        if not lines:
            reasons = "; ".join(self._summary.unmeasured.values())
            raise InvalidInput(f"no rate was measured ({reasons}); use a larger budget")
        return Intervals(f"Rows that flip, by {_protected(self._summary)}", tuple(lines))

    def where(self) -> Intervals:
        """The regions in which decisions flip most often, beside the average (dashed)."""
        found = self._summary.where
        if found is None or not found.rules:
            reason = found.reason if found is not None else ""
            raise InvalidInput(f"no region stands out: {reason or 'none was verified'}")
        lines = [
            _interval(" and ".join(clause.words for clause in region.conditions), region.rate)
            for region in found.rules
        ]
        title = f"Where decisions flip, among {wording.population(found.population)}"
        return Intervals(title, tuple(lines), found.base.estimate)

    def pairs(self) -> Scatter:
        """What the model answers for each finding, and for its partner."""
        kind = self._summary.kind
        dots = charts.dots(self._summary.pictures.get("score_pairs"))
        if kind == "class":
            raise InvalidInput(
                "the decision is a class, so there are no scores to plot; see result.findings for "
                "the classes of each pair"
            )
        if not dots:
            raise InvalidInput("there are no findings to plot")
        noun = "score" if kind == "favorable" else "prediction"
        return Scatter(
            f"{noun.capitalize()} of a person and of the partner",
            f"{noun} of the person",
            f"{noun} of the partner",
            tuple(dots),
            0.5 if kind == "favorable" else None,
        )


def _protected(summary: Summary) -> str:
    return ", ".join(summary.protected)


def _interval(label: str, rate: Rate) -> Interval:
    return Interval(label, rate.estimate, rate.low, rate.high, rate.n)


def _bar(line: Interval, y: float, end: float) -> list[str]:
    """The interval, its estimate, and the number beside it."""
    if not math.isfinite(line.estimate) or line.n < FEWEST_TOLD:
        return [_text(0, y + 14, f"too few to say ({count(line.n)} rows)", faint=True)]
    low, high, at = (_across(v, end) for v in (line.low, line.high, line.estimate))
    percent = wording.percent(Rate(line.estimate, line.low, line.high, line.n))
    told = f"{percent.estimate} %, {percent.low} to {percent.high}"
    x, anchor = (high + 8, "start") if high < 0.6 * _WIDTH else (low - 8, "end")
    return [
        f'<line x1="{low:.1f}" x2="{max(high, low + 1):.1f}" y1="{y + 10:.1f}" y2="{y + 10:.1f}" '
        f'stroke="{_ACCENT}" stroke-width="6" stroke-opacity=".4" stroke-linecap="round"/>',
        f'<circle cx="{at:.1f}" cy="{y + 10:.1f}" r="4.5" fill="{_ACCENT}"/>',
        _text(x, y + 14, f"{told} ({count(line.n)} rows)", anchor, faint=True),
    ]


def _across(share: float, end: float) -> float:
    return 4 + (_WIDTH - 8) * 100 * share / end


def _anchor(tick: float, ticks: list[float]) -> str:
    return "start" if tick == ticks[0] else "end" if tick == ticks[-1] else "middle"


def _spell(words: str) -> str:
    return clean(words)


def _wrap(words: str) -> str:
    """Words in lines that leave room for the axes."""
    return textwrap.fill(_spell(words), _LABEL)


def _text(x: float, y: float, words: str, anchor: str = "start", *, faint: bool = False) -> str:
    opacity = ' fill-opacity=".72"' if faint else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor"{opacity}>'
        f"{escape(_spell(words))}</text>"
    )


def _frame(title: str, width: float, height: float, parts: list[str]) -> str:
    name = escape(_spell(title))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} {height:.0f}"'
        f' width="{width:.0f}" height="{height:.0f}" style="max-width:100%;height:auto" '
        f'font-family="system-ui, sans-serif" font-size="12.5"><title>{name}</title>'
        f'<text x="0" y="14" fill="currentColor" font-size="14" font-weight="600">{name}</text>'
        f"{''.join(parts)}</svg>"
    )


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing("matplotlib", "plots", "drawing with matplotlib") from None
    if "matplotlib.pyplot" in _loaded():
        import matplotlib.pyplot as plt

        return plt.subplots(layout="constrained")[1]
    # Without pyplot nothing decides where windows open; the figure is `ax.figure`.
    return Figure(layout="constrained").subplots()


def _loaded() -> set[str]:
    import sys

    return set(sys.modules)

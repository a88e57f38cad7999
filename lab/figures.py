"""Figures of studies and of the open benchmark, drawn by matplotlib as SVG."""

from __future__ import annotations

import io
import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from lab.derived import complete
from lab.files import Study, Variant, paper_numbers
from lab.measures import MEASURES
from lab.results import NOT_MEASURED, Results
from lab.targets.ranks import Ranks

__all__ = ["curves", "draw_ranks", "figure"]

# One colour a line, told apart in grey too; labels name them as well.
_COLOURS = ("#1b5cb8", "#a94a08", "#3d7a3a", "#8250a4", "#7c8796", "#b8860b")
_DASHES = ("-", (0, (7, 3)), (0, (2, 3)))
_POINTS = 60  # of a curve
_OURS, _PAPER, _CTGAN = _COLOURS[:3]
_STYLE = {
    "svg.hashsalt": "limi",  # else every drawing has other names inside
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "grid.color": "#e2e5ea",
    "legend.frameon": False,
}
_Panel = Callable[[Any, str], None]


def figure(study: Study, results: Results) -> str:
    """The figure of a study, one panel a benchmark; "" where there is nothing to draw."""
    results = complete(study, results)
    benchmarks = list(dict.fromkeys(outcome.benchmark for outcome in results.done))
    kind, measure = study.figure.get("kind"), str(study.figure.get("measure", "findings"))
    if not benchmarks:
        return ""
    if kind == "trade":
        return _draw_trade(study, results, benchmarks)

    def panel(axes: Any, benchmark: str) -> None:
        draw = {"dots": _dots, "lines": _lines, "densities": _densities}[str(kind)]
        draw(axes, study, results, benchmark, measure)

    shown = "the overlap of densities" if kind == "densities" else MEASURES[measure].label
    title = f"{study.title}: {shown}, scale {results.scale}"
    height = 0.9 + 0.24 * len(study.variants) if kind == "dots" else 2.4
    return _sheet(title, benchmarks, panel, columns=3, size=(3.6, height), share=kind == "dots")


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
    kept = [o for o in results.done if o.measures.get("curve") and o.variant in names]
    panels = [
        f"{benchmark}, findings against {axis}"
        for benchmark in dict.fromkeys(o.benchmark for o in kept)
        for axis in ("rows", "queries")
    ]
    start = settings.get("from", 0)
    if not panels:
        return ""

    def panel(axes: Any, name: str) -> None:
        benchmark, _, axis = name.partition(", findings against ")
        _draw_curves(axes, drawn, results, benchmark, axis, start)

    shown = [study.title + ": findings", settings.get("says", "")]
    shown += [f"from {start:,} rows on"] if start else []
    shown += ["axes logarithmic", "means over seeds", f"scale {results.scale}"]
    return _sheet(", ".join(filter(None, shown)), panels, panel, columns=2, size=(5.4, 3.4))


def _sheet(
    title: str,
    names: Sequence[str],
    panel: _Panel,
    *,
    columns: int,
    size: tuple[float, float],
    share: bool = False,
    below: str = "",
) -> str:
    """Panels in rows under a title, and one key for all of them."""
    across = min(columns, len(names))
    down = math.ceil(len(names) / across)
    with rc_context(_STYLE):
        sheet = Figure(figsize=(size[0] * across, size[1] * down + 0.7), layout="constrained")
        grid = sheet.subplots(down, across, squeeze=False, sharey=share)
        key: dict[str, Any] = {}
        for number, axes in enumerate(grid.flat):
            if number >= len(names):
                axes.set_visible(False)
                continue
            axes.set_title(names[number], fontweight="bold")
            panel(axes, names[number])
            key |= {
                label: handle
                for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
            }
        sheet.suptitle(title, x=0.01, ha="left", fontsize=11)
        if key or below:
            given = {"title": fill(below, 60 * across) or None, "alignment": "left"}
            where = {"loc": "outside lower left", "ncols": 2 * across}
            sheet.legend(list(key.values()), list(key), **where, **given)
        return _svg(sheet, title)


def _svg(sheet: Figure, title: str) -> str:
    sink = io.StringIO()
    sheet.savefig(sink, format="svg", metadata={"Creator": None, "Date": None, "Title": title})
    short = re.sub(r"(\d\.\d)\d+", r"\1", sink.getvalue())  # a tenth of a point is seen by nobody
    return re.sub(r"\s*\n\s*", "\n", short)


# -- panels of a study ------------------------------------------------------------------------


def _dots(axes: Any, study: Study, results: Results, benchmark: str, measure: str) -> None:
    """Ours as a dot over the range of seeds, the paper's as a ring.

    Counts and speeds differ by powers of ten, so they lie on a logarithmic axis.
    """
    paper = paper_numbers(study.name).get(measure, {})
    found = {v.name: results.numbers(benchmark, v.name, measure) for v in study.variants}
    for place, variant in enumerate(study.variants):
        if numbers := found[variant.name]:
            axes.hlines(place, min(numbers), max(numbers), color=_OURS, linewidth=2)
            label = "ours: mean and range of seeds"
            axes.plot(statistics.fmean(numbers), place, "o", color=_OURS, label=label)
        printed = paper.get(benchmark, {}).get(variant.of or variant.name)
        if printed is not None:
            given = {"mfc": "white", "color": _PAPER, "label": "the paper"}
            axes.plot(printed, place, "o", **given)
    if measure in ("findings", "per_second"):
        axes.set_xscale("symlog" if any(0 in line for line in found.values()) else "log")
        axes.minorticks_off()
    axes.set_yticks(range(len(study.variants)), [v.label for v in study.variants])
    axes.set_ylim(len(study.variants) - 0.5, -0.5)


def _lines(axes: Any, study: Study, results: Results, benchmark: str, measure: str) -> None:
    """A measure over the variants in turn."""
    plain = [v for v in study.variants if not v.of]
    paper = paper_numbers(study.name).get(measure, {}).get(benchmark, {})

    def mean(name: str) -> float:
        numbers = results.numbers(benchmark, name, measure)
        return statistics.fmean(numbers) if numbers else math.nan

    for label, colour, values in (
        ("the paper", _PAPER, [paper.get(v.name, math.nan) for v in plain]),
        ("ours", _OURS, [mean(v.name) for v in plain]),
        ("ours, CTGAN", _CTGAN, [mean(study.beside(v.name)) for v in plain]),
    ):
        if not all(map(math.isnan, values)):
            axes.plot(range(len(plain)), values, "o-", color=colour, label=label)
    axes.set_xticks(range(len(plain)), [v.label.rpartition(" ")[2] for v in plain])


def _densities(axes: Any, study: Study, results: Results, benchmark: str, measure: str) -> None:
    """The table's density as an area, and a line for each method."""
    for number, variant in enumerate(study.variants):
        done = [o for o in results.done if (o.benchmark, o.variant) == (benchmark, variant.name)]
        picture = done[0].measures.get("picture") if done else None
        if picture is None:
            continue
        if "the table" not in axes.get_legend_handles_labels()[1]:
            axes.fill_between(picture["x"], picture["real"], color="#e2e5ea", label="the table")
        colour = _COLOURS[number % len(_COLOURS)]
        axes.plot(picture["x"], picture["findings"], color=colour, label=variant.label)
    axes.set_yticks([])


def _draw_curves(
    axes: Any,
    variants: Sequence[Variant],
    results: Results,
    benchmark: str,
    axis: str,
    start: float,
) -> None:
    """One line a method, from so many rows on; a colour and a dash of its own in every panel."""
    for number, variant in enumerate(variants):
        cells = results.of(benchmark, variant.name)
        kept = [o.measures["curve"] for o in cells if o.measures.get("curve")]
        if line := _mean_curve(kept, axis, start) if kept else []:
            dash = _DASHES[number // len(_COLOURS) % len(_DASHES)]
            colour = _COLOURS[number % len(_COLOURS)]
            axes.plot(*zip(*line, strict=True), color=colour, linestyle=dash, label=variant.label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()


def _mean_curve(
    kept: Sequence[Mapping[str, list[float]]], axis: str, start: float
) -> list[tuple[float, float]]:
    """The mean of findings over seeds, from so many rows as far as the shortest of them goes."""
    end = min(curve[axis][-1] for curve in kept)
    longest = max(kept, key=lambda curve: len(curve[axis]))
    places = zip(longest[axis], longest["rows"], strict=True)
    marks = [*(x for x, rows in places if 0 < x < end and rows >= start), end]
    marks = sorted({*marks[:: len(marks) // _POINTS + 1], end})
    found = [np.interp(marks, [0, *curve[axis]], [0, *curve["findings"]]) for curve in kept]
    means = np.mean(found, axis=0)
    return [(x, float(y)) for x, y in zip(marks, means, strict=True) if x > 0 and y > 0]


# -- what variants gain in one measure and pay in another -------------------------------------


def _draw_trade(study: Study, results: Results, benchmarks: Sequence[str]) -> str:
    """A panel for the mean of several benchmarks, and one for each: a lettered dot a variant.

    The figure's `marks` are the letters of variants, and others are left out; a line joins those
    that `line` names.
    """
    across, upward = str(study.figure["measure"]), str(study.figure["against"])
    marks: Mapping[str, str] = study.figure["marks"]

    def dot(benchmark: str, name: str) -> tuple[float, ...] | None:
        numbers = [results.numbers(benchmark, name, one) for one in (across, upward)]
        return tuple(map(statistics.fmean, numbers)) if all(numbers) else None

    both = {
        "trees": {one: one for one in marks},
        "CTGAN": {one: study.beside(one) for one in marks},
    }
    found = {
        (b, generator): {
            one: at for one, name in names.items() if name and (at := dot(b, name)) is not None
        }
        for b in benchmarks
        for generator, names in both.items()
    }
    shown = list(benchmarks)
    if len(benchmarks) > 1:
        mean = f"mean of {len(benchmarks)} benchmarks"
        shown.insert(0, mean)
        for generator in both:
            lines = [found[b, generator] for b in benchmarks]
            common = [one for one in marks if all(one in line for line in lines)]
            found[mean, generator] = {
                one: tuple(map(statistics.fmean, zip(*(line[one] for line in lines), strict=True)))
                for one in common
            }
    known = [g for g in both if any(found[b, g] for b in shown)]

    def panel(axes: Any, name: str) -> None:
        for generator, colour in zip(known, _COLOURS, strict=False):
            named = found[name, generator]
            for one, (x, y) in named.items():
                axes.plot(x, y, "o", color=colour)
                axes.annotate(marks[one], (x, y), (4, 4), textcoords="offset points")
            line = [named[one] for one in study.figure["line"] if one in named]
            label = generator if len(known) > 1 else None
            axes.plot(*zip(*line or [(math.nan,) * 2], strict=True), color=colour, label=label)
            lacking = [mark for one, mark in marks.items() if one not in named]
            if lacking:
                what = f"without {', '.join(lacking)}" if named else NOT_MEASURED
                axes.set_title(f"{axes.get_title('left')} ({generator}: {what})")
        axes.margins(0.08)

    title = (
        f"{study.title}: {MEASURES[across].label} (across) and {MEASURES[upward].label} (upward), "
        f"means over seeds, scale {results.scale}"
    )
    key = ", ".join(f"{mark} {study.variant(one).label}" for one, mark in marks.items())
    return _sheet(title, shown, panel, columns=2, size=(5.4, 3.2), below=key)


# -- ranks of the open benchmark --------------------------------------------------------------


def draw_ranks(ranks: Ranks, title: str) -> str:
    """A dot for the mean rank of each method, best on top, and bars over methods that chance may
    tie."""
    n, runs = len(ranks.methods), ranks.alike()
    p_value = "< 0.001" if ranks.p_value < 0.001 else f"= {ranks.p_value:.3f}"
    words = f"{ranks.n_targets} targets; Friedman p {p_value}; "
    with rc_context(_STYLE):
        sheet = Figure(figsize=(7.2, 1.0 + 0.24 * n), layout="constrained")
        axes = sheet.subplots()
        axes.plot(ranks.means, range(n), "o", color=_OURS)
        for number, (start, end) in enumerate(runs):
            x = max(ranks.means) + 0.4 + 0.25 * number
            axes.vlines(x, start - 0.2, end + 0.2, color=_PAPER, linewidth=3)
        labels = [f"{m}  {mean:.2f}" for m, mean in zip(ranks.methods, ranks.means, strict=True)]
        axes.set_yticks(range(n), labels)
        axes.set_ylim(n - 0.5, -0.5)
        axes.set_xlabel("mean rank; bars join what the critical difference leaves alike")
        axes.set_title(f"{words}critical difference {ranks.difference:.2f}")
        sheet.suptitle(title, x=0.01, ha="left", fontsize=11)
        return _svg(sheet, title)

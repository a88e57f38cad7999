"""The pictures of the documentation, drawn from numbers that are kept beside them.

    python tools/figures.py             # draw docs/pictures/*.svg from the kept numbers (a second)
    python tools/figures.py --measure   # measure the kept numbers again, then draw (a minute)
    python tools/figures.py --check     # fail where a picture is not what its numbers draw

Numbers lie in docs/pictures/*.json, except those of methods, which come from the kept results of
the study of queries. Those of scaling need many cores: scaling.json names the command that measures
them, and `--measure` leaves it alone. Drawing is exact, so a test holds pictures to their numbers
without any run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any
from xml.sax.saxutils import escape

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
QUERIES = ROOT / "lab" / "studies" / "results" / "small" / "queries.json"

_STYLE = """text { font: 13px system-ui, sans-serif; fill: #3d4754; }
.title { font-weight: 600; fill: #14181f; } .faint { fill: #66707d; font-size: 12px; }
.line { stroke: #7c8796; fill: none; } .axis { stroke: #c3cad3; }
.a { fill: #2f6fde; } .b { fill: #c2570c; } .la { stroke: #2f6fde; } .lb { stroke: #c2570c; }
.box { fill: #f4f6f9; stroke: #c3cad3; } .key { fill: #e3edff; stroke: #2f6fde; }
.no { fill: #e6eaef; } .yes { fill: #c9dcff; } .flip { fill: #f7b787; }
.dot { fill: #14181f; } .plane { stroke: #14181f; stroke-width: 2; fill: none; }"""


def _svg(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img"><title>{escape(title)}</title>\n'
        f'<style>{_STYLE}</style>\n<rect width="100%" height="100%" fill="#ffffff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{named}>{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, more: str = "") -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"{more}/>'


# --- the pipeline --------------------------------------------------------------------------------

_STAGES = (
    ("Table", "rows, columns,", "protected values"),
    ("Generator", "imitates the table:", "latent to person"),
    ("Search", "natural people where", "decisions may flip"),
    ("Model", "asked in batches,", "as each group"),
    ("Findings", "asked again, counted", "once, ranked"),
    ("Report", "rates, regions,", "people, next steps"),
)


def draw_pipeline() -> str:
    """What a run does, from left to right."""
    width, gap, top = 138, 22, 34
    parts = [
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#7c8796"/></marker></defs>'
    ]
    arrow = ' marker-end="url(#tip)"'
    for k, (name, *words) in enumerate(_STAGES):
        x = 12 + k * (width + gap)
        kind = "key" if name == "Model" else "box"
        parts.append(f'<rect x="{x}" y="{top}" width="{width}" height="78" rx="6" class="{kind}"/>')
        parts.append(_text(x + width / 2, top + 24, name, "title", "middle"))
        parts += [
            _text(x + width / 2, top + 46 + 17 * i, line, "faint", "middle")
            for i, line in enumerate(words)
        ]
        if k + 1 < len(_STAGES):
            y = top + 39
            parts.append(_line(x + width + 3, y, x + width + gap - 3, y, "line", arrow))
    search, model = (12 + k * (width + gap) + width / 2 for k in (2, 3))
    parts.append(f'<path d="M{model:g} {top + 82} v22 H{search:g} v-18" class="line"{arrow}/>')
    parts.append(_text((search + model) / 2, top + 120, "learns where to look", "faint", "middle"))
    parts.append(_text(12, 20, "limi only queries the model; everything else happens beside it."))
    return _svg(12 * 2 + 6 * width + 5 * gap, top + 134, "What a run does", parts)


# --- a latent space ------------------------------------------------------------------------------


def measure_latent() -> dict[str, Any]:
    """Adult by age and schooling alone: a model, the trees generator, and LIMI's boundary."""
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier

    from limi import data, generators
    from limi.audits.problem import prepare
    from limi.decisions import favors
    from limi.search import boundary

    frame = data.load("adult").frame[["age", "education_num", "sex", "income"]]
    coded = frame.assign(sex=(frame["sex"] == "Male").astype(int))
    model = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8, random_state=0)
    model.fit(coded.drop(columns="income"), coded["income"])
    problem = prepare(model, coded, protected=["sex"], target="income", favorable=">50K")
    schema, score = problem.schema, problem.target.score
    rng = np.random.default_rng(0)
    trees = generators.get("trees").fit(problem.rows, schema, rng)
    sex = schema.position("sex")

    def judge(rows: Any) -> Any:
        """0 where both are refused, 1 where both are favored, 2 where the decision flips."""
        both = []
        for value in (0.0, 1.0):
            asked = rows.copy()
            asked[:, sex] = value
            both.append(favors(score(asked)))
        return np.where(both[0] != both[1], 2, both[0].astype(int))

    side = 48
    ages, years = np.linspace(17, 80, side).round(), np.linspace(1, 16, side).round()
    people = np.array([[age, year, 0.0] for year in years for age in ages])
    latents = trees.sample_latents(20_000, rng)
    scores = score(trees.decode(latents))
    favored = np.flatnonzero(favors(scores))
    refused = np.flatnonzero(scores < 0.3)[: len(favored)]
    chosen = np.sort(np.concatenate([favored, refused]))  # as many of each, the sure ones
    plane = boundary.fit(latents[chosen], favors(scores[chosen]))
    normal = np.asarray(plane.normal, dtype=float)
    offset = float(plane.distance(np.zeros((1, latents.shape[1])))[0])
    axis = np.linspace(-2.4, 2.4, side)
    grid = np.zeros((side * side, latents.shape[1]))
    grid[:, 0], grid[:, 1] = np.tile(axis, side), np.repeat(axis, side)
    start = latents[np.abs(latents[:, :2]).max(axis=1) < 2][:7].copy()
    start[:, 2:] = 0.0
    onto = plane.project(trees.sample_latents(5_000, rng))
    near = judge(trees.decode(onto)) == 2
    return {
        "side": side,
        "age": [17, 80],
        "years": [1, 16],
        "people": judge(people).tolist(),
        "latents": judge(trees.decode(grid)).tolist(),
        "extent": 2.4,
        "normal": [round(float(v), 4) for v in normal[:2]],
        "offset": round(offset, 4),
        "start": start[:, :2].round(3).tolist(),
        "step": 0.3,
        "flipping_people": round(float((judge(problem.rows) == 2).mean()), 4),
        "flipping_near": round(float(near.mean()), 4),
    }


_KINDS = ("no", "yes", "flip")


def _cells(values: Sequence[int], side: int, x: float, y: float, size: float) -> list[str]:
    """Coloured cells, joined along each line; the first line lies at the bottom."""
    parts, cell = [], size / side
    for row in range(side):
        line = values[row * side : (row + 1) * side]
        start = 0
        for k in range(1, side + 1):
            if k == side or line[k] != line[start]:
                parts.append(
                    f'<rect x="{x + start * cell:.2f}" y="{y + size - (row + 1) * cell:.2f}" '
                    f'width="{(k - start) * cell:.2f}" height="{cell + 0.3:.2f}" '
                    f'class="{_KINDS[line[start]]}"/>'
                )
                start = k
    return parts


def draw_latent(told: dict[str, Any]) -> str:
    """People by two columns, and the same people in the generator's latent space."""
    size, left, right, top, side = 320.0, 56.0, 480.0, 46.0, told["side"]
    parts = _cells(told["people"], side, left, top, size)
    parts += _cells(told["latents"], side, right, top, size)
    parts.append(_text(left, 26, "People, by two columns of Adult", "title"))
    parts.append(_text(right, 26, "The same people in latent space", "title"))
    parts.append(_text(left + size / 2, top + size + 34, "age", anchor="middle"))
    parts.append(
        f'<g transform="translate({left - 34:g} {top + size / 2:g}) rotate(-90)">'
        f"{_text(0, 0, 'years of schooling', anchor='middle')}</g>"
    )
    parts.append(_text(right + size / 2, top + size + 34, "latent of age", anchor="middle"))
    parts.append(
        f'<g transform="translate({right - 34:g} {top + size / 2:g}) rotate(-90)">'
        f"{_text(0, 0, 'latent of schooling, given age', anchor='middle')}</g>"
    )
    for (low, high), vertical in ((told["age"], False), (told["years"], True)):
        for value in (low, (low + high) / 2, high):
            share = (value - low) / (high - low)
            x, y = left + size * share, top + size + 16
            if vertical:
                x, y = left - 6, top + size * (1 - share) + 4
            parts.append(_text(x, y, f"{value:g}", "faint", "end" if vertical else "middle"))
    parts += _plane(told, right, top, size)
    names = ("refused either way", "favored either way", "the decision flips with sex")
    for k, (kind, words) in enumerate(zip(_KINDS, names, strict=True)):
        x = left + 250 * k
        parts.append(
            f'<rect x="{x:g}" y="{top + size + 52:g}" width="14" height="14" class="{kind}"/>'
        )
        parts.append(_text(x + 20, top + size + 64, words))
    return _svg(right + size + 16, top + size + 80, "Data space and latent space", parts)


def _plane(told: dict[str, Any], x: float, y: float, size: float) -> list[str]:
    """The boundary, people who are moved onto it, and a step to either side of each."""
    extent, (a, b), offset = told["extent"], told["normal"], told["offset"]

    def place(u: float, v: float) -> tuple[float, float]:
        return x + size * (u + extent) / (2 * extent), y + size * (extent - v) / (2 * extent)

    ends = []
    for k in range(2001):  # where the line enters and leaves the square
        u = -extent + 2 * extent * k / 2000
        v = -(offset + a * u) / b if b else 0.0
        if abs(v) <= extent:
            ends.append((u, v))
    parts = []
    if ends:
        (x1, y1), (x2, y2) = place(*ends[0]), place(*ends[-1])
        parts.append(_line(round(x1, 1), round(y1, 1), round(x2, 1), round(y2, 1), "plane"))
    length = a * a + b * b
    for u, v in told["start"]:
        away = (a * u + b * v + offset) / length
        pu, pv = u - a * away, v - b * away
        (x1, y1), (x2, y2) = place(u, v), place(pu, pv)
        parts.append(_line(round(x1, 1), round(y1, 1), round(x2, 1), round(y2, 1), "line"))
        parts.append(f'<circle cx="{x1:.1f}" cy="{y1:.1f}" r="3" class="dot"/>')
        for sign in (-1, 0, 1):
            move = sign * told["step"] / length**0.5
            cx, cy = place(pu + a * move, pv + b * move)
            kind = "dot" if sign == 0 else "b"
            parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="3.4" class="{kind}"/>')
    return parts


# --- rates ---------------------------------------------------------------------------------------


def measure_rates() -> dict[str, Any]:
    """The demo's model on Adult: rates of real, natural and uniform people."""
    import limi

    adult = limi.data.load("adult")
    result = limi.audit(
        "demo:income",
        adult.frame,
        protected=["sex"],
        target=adult.target,
        favorable=adult.favorable,
        schema=adult.schema.unruled,
        max_rows=1_000,
        rate_rows=2_000,
    )
    return {
        name: [rate.estimate, rate.low, rate.high, rate.n] for name, rate in result.rates.items()
    }


def draw_rates(told: dict[str, Any]) -> str:
    """Each population with its rate and its interval."""
    from limi.report.plots import Interval, Intervals

    names = {
        "real": "real rows: the people of the table",
        "natural": "natural rows: people drawn from the generator",
        "uniform": "uniform rows: any combination that the columns allow",
    }
    lines = tuple(Interval(names[name], *values) for name, values in told.items())
    svg = Intervals("Rows that flip with sex, by population", lines).svg
    head, close, rest = svg.partition(">")
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f'{head} color="#14181f"{close}{ground}{rest}\n'


# --- methods -------------------------------------------------------------------------------------


def read_methods() -> dict[str, dict[str, float]]:
    """Findings per 1,000 queries and naturalness of each method, over benchmarks and seeds."""
    cells = json.loads(QUERIES.read_text(encoding="utf-8"))["cells"]
    told: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        method = cell["cell"].split("/")[1]
        if cell["status"] == "done" and cell["given"].get("max_queries") == 10_000:
            told.setdefault(method, []).append(cell["measures"])
    return {
        method: {
            "found": mean(one["per_thousand_queries"] for one in many),
            "natural": mean(one["atn"] for one in many if one.get("atn") is not None),
        }
        for method, many in told.items()
        if any(one.get("atn") is not None for one in many)
    }


def _bars(title: str, note: str, values: dict[str, float], end: float, digits: int) -> str:
    parts = [_text(12, 24, title, "title"), _text(12, 44, note, "faint")]
    left, width, step = 110.0, 440.0, 24.0
    ordered = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
    for k, (name, value) in enumerate(ordered):
        y = 62 + k * step
        kind = "a" if name in ("limi", "guided") else "line"
        fill = "" if kind == "a" else ' style="fill:#a9b4c2;stroke:none"'
        long = width * value / end
        parts.append(_text(left - 8, y + 13, name, anchor="end"))
        parts.append(
            f'<rect x="{left:g}" y="{y:g}" width="{long:.1f}" height="17" class="{kind}"{fill}/>'
        )
        parts.append(_text(round(left + long + 6, 1), y + 13, f"{value:.{digits}f}", "faint"))
    return _svg(620, 62 + len(ordered) * step + 12, title, parts)


def draw_found() -> str:
    """Findings per 1,000 queries of every method."""
    values = {name: one["found"] for name, one in read_methods().items()}
    note = "10,000 queries each; mean over seven benchmarks and their seeds."
    end = 1.05 * max(values.values())
    return _bars("Findings per 1,000 queries, by method", note, values, end, 0)


def draw_natural() -> str:
    """Naturalness of what every method finds."""
    values = {name: one["natural"] for name, one in read_methods().items()}
    note = "Average tabular naturalness (ATN) of the findings, from 0 to 1; the same runs."
    return _bars("How natural the findings are, by method", note, values, 1.0, 2)


# --- scaling -------------------------------------------------------------------------------------


def draw_scaling(told: dict[str, Any]) -> str:
    """How many times as fast a search is by workers, beside what no loss at all would give."""
    seconds = {int(count): float(value) for count, value in told["seconds"].items()}
    most, left, top, width, height = max(seconds), 56.0, 66.0, 440.0, 300.0

    def place(workers: float, times: float) -> tuple[float, float]:
        x, y = left + width * workers / most, top + height * (1 - times / most)
        return round(x, 1), round(y, 1)

    parts = [
        _text(12, 24, "Times as fast, by workers", "title"),
        _text(12, 44, f"{told['what'][0].upper()}{told['what'][1:]}.", "faint"),
        _line(*place(0, 0), *place(most, 0), "axis"),
        _line(*place(0, 0), *place(0, most), "axis"),
        _line(*place(0, 0), *place(most, most), "line", ' stroke-dasharray="5 5"'),
        _text(*place(0.7 * most, 0.75 * most), "without any loss", "faint", "end"),
    ]
    points = {count: place(count, seconds[1] / value) for count, value in seconds.items()}
    path = " ".join(f"{x:g},{y:g}" for x, y in points.values())
    parts.append(f'<polyline points="{path}" class="line la" style="stroke-width:2"/>')
    for count, (x, y) in points.items():
        parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="4" class="a"/>')
        parts.append(_text(x, top + height + 18, f"{count}", "faint", "middle"))
        if count > 1:
            parts.append(_text(x, y + 20, f"{seconds[1] / seconds[count]:.1f}", anchor="middle"))
    parts += [
        _text(left - 8, place(0, times)[1] + 4, f"{times}", "faint", "end")
        for times in (1, most // 4, most // 2, most)
    ]
    parts.append(_text(left + width / 2, top + height + 38, "workers", anchor="middle"))
    return _svg(left + width + 40, top + height + 50, "Times as fast, by workers", parts)


# --- all of them ---------------------------------------------------------------------------------

MEASURED: dict[str, Callable[[], dict[str, Any]]] = {
    "latent": measure_latent,
    "rates": measure_rates,
}


def draw() -> dict[str, str]:
    """Every picture by its file name."""

    def kept(name: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        return told

    return {
        "pipeline.svg": draw_pipeline(),
        "latent.svg": draw_latent(kept("latent")),
        "rates.svg": draw_rates(kept("rates")),
        "found-by-method.svg": draw_found(),
        "natural-by-method.svg": draw_natural(),
        "scaling.svg": draw_scaling(kept("scaling")),
    }


def main() -> int:
    """Draw, or say which pictures are old."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--measure", action="store_true", help="measure the kept numbers again")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where one is old")
    given = parser.parse_args()
    if given.measure:
        for name, measure in MEASURED.items():
            text = json.dumps(measure()) + "\n"
            (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    pictures = draw()
    if not given.check:
        for name, svg in pictures.items():
            (FOLDER / name).write_text(svg, encoding="utf-8")
        return 0
    old = [
        name
        for name, svg in pictures.items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text(encoding="utf-8") != svg
    ]
    print(f"old: {', '.join(old)}; run make docs-figures" if old else "all pictures are current")
    return int(bool(old))


if __name__ == "__main__":
    sys.exit(main())

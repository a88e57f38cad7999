"""A summary as one self-contained HTML page, and as a fragment for notebooks.

The page asks for nothing: its policy forbids every request, and allows the one style sheet and the
one script by their hashes. Without the script all is there but the table of all findings and the
buttons that copy. Charts are SVG in percentages, so they fit any width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from limi.audits.record import Bookmark
from limi.audits.summary import Example, Field, Summary
from limi.decisions import favors
from limi.metrics._enough import FEWEST_TOLD
from limi.metrics.individual import Rate
from limi.report import _pages, charts, favored, groups, lead, metrics, outcomes, twins, wording
from limi.report.ledger import Ledger, as_json
from limi.report.next_steps import ask_again
from limi.system import words

__all__ = ["render", "snippet"]

_SHOWN_FINDINGS = 3
_SHOWN_COLUMNS = 18  # columns that a pair shares, before the rest is folded away
_SHOWN_VALUES = 12
_SHOWN_BARS = 24  # values of a column


def render(
    summary: Summary, findings: Ledger | None = None, bookmarks: Sequence[Bookmark] = ()
) -> str:
    """A page of its own; the same bytes for the same summary, findings and bookmarks."""
    content = _content(summary)
    answer = content["answer"]
    title = f"{answer.figure} {answer.statement}"
    return _pages.render(
        "report.html",
        ("report",),
        script="report",
        title=title,
        lead=lead.tell(summary),
        groups=groups.tables(summary),
        fewest=FEWEST_TOLD,
        bookmarks=bookmarks,
        ledger=None if findings is None or not summary.findings else findings,
        ledger_json=None if findings is None else Markup(as_json(findings)),
        **content,
    )


def snippet(summary: Summary) -> str:
    """A fragment for `_repr_html_`: it inherits the notebook's colours, light or dark."""
    return _pages.environment().get_template("snippet.html").render(**_content(summary))


@dataclass(frozen=True)
class _Bar:
    """A rate on the common axis; fractions of its length."""

    name: str
    aid: str
    percent: wording.Percent
    size: str  # "n = 4,000"
    measured: bool
    estimate: float = 0.0
    low: float = 0.0
    high: float = 0.0
    alone: bool = False  # of one of several columns


@dataclass(frozen=True)
class _People:
    """The same people under every value, as bars or as a curve."""

    table: favored.FavoredTable
    bars: list[_Bar]  # none where there are too many
    ticks: list[tuple[float, str]]
    band: charts.Band | None


@dataclass(frozen=True)
class _Side:
    """One row of a pair."""

    title: str
    at: float  # on a line whose middle is the threshold
    score: float  # as the model gives it
    favorable: bool
    decision: str


@dataclass(frozen=True)
class _Pair:
    """A finding as a card shows it."""

    place: int
    origin: str
    gap: float
    apart: tuple[str, str]  # of classes and numbers: what is compared, and how far apart it is
    told: wording.Sentence
    flipped_by: str
    natural: str  # how usual both rows are
    again: str  # the command that asks the model about this pair
    sides: tuple[_Side, _Side]
    compared: list[Field]  # protected columns, and whatever else differs
    same: list[Field]
    folded: list[Field]


def _content(summary: Summary) -> dict[str, Any]:
    pairs = [_pair(summary, place, e) for place, e in enumerate(summary.examples, 1)]
    whom = [_people(table) for table in favored.tables(summary)]
    bars, ticks = _bars(summary)
    places, place_ticks, average = _places(summary)
    return {
        "summary": summary,
        "edge": f"{summary.threshold or 0.5:g}",
        "answer": wording.answer(summary),
        "bars": bars,
        "rates_aid": wording.rates_aid(summary),
        "ticks": ticks,
        "twins": twins.tell(summary),
        "places": places,
        "place_ticks": place_ticks,
        "average": average,
        "places_aid": "" if summary.blind else wording.places_aid(summary),
        "whom": whom,
        "outcomes": outcomes.tables(summary),
        "outcomes_aid": outcomes.aid(summary),
        "other_outcomes": _other_outcomes(summary),
        "rule": wording.rule_in_words(summary),
        "settings": wording.settings(summary),
        "others": _other_people(summary),
        "nobody": favored.lacking(summary),
        "chance": favored.chance(summary),
        "plain": favored.only_protected(summary),
        "plain_title": favored.plain_title(summary),
        "along": wording.along_words(summary),
        "ruled": wording.rule_facts(summary),
        "band_aid": favored.BAND if any(people.band for people in whom) else "",
        "counts": favored.among_findings(summary),
        "pairs": pairs[:_SHOWN_FINDINGS],
        "more_pairs": pairs[_SHOWN_FINDINGS:],
        "facts": twins.facts(summary) if summary.blind else _facts(summary),
        "took": words.seconds(summary.seconds),
        "stopped": wording.stopped(summary),
        "searched": wording.searched(summary),
        "phases": wording.phases(summary),
        "natural": wording.natural(summary),
        "atn": wording.ATN,
        "families": metrics.sections(summary.metrics),
        "too_few": wording.TOO_FEW,
        "unit_ticks": [(place / 5, f"{place / 5:g}") for place in range(6)],
        "densities": charts.densities(summary.pictures.get("densities")),
        "dots": charts.dots(summary.pictures.get("score_pairs")),
        "curve": charts.curve(summary.pictures.get("curve")),
        "generator": wording.generator(summary),
        "steadiness": wording.steadiness(summary.steadiness),
        "unsteady": wording.is_unsteady(summary.steadiness),
        "limits": wording.limits(summary),
        "most_values": _SHOWN_VALUES,
    }


def _facts(summary: Summary) -> list[tuple[str, str]]:
    return [
        ("Findings", wording.found(summary)),
        ("Rows checked", words.count(summary.rows_checked)),
        ("Queries", words.count(summary.queries)),
        ("Findings per thousand queries", f"{summary.per_thousand_queries:.1f}"),
        ("Search time", words.seconds(summary.seconds)),
    ]


def _bars(summary: Summary) -> tuple[list[_Bar], list[tuple[float, str]]]:
    rates = [
        (*entry, wording.sample_size(summary, name, entry[2]))
        for name, rate in wording.listed_rates(summary)
        for entry in [
            (name, wording.aid(name), rate, False),
            *(
                (label, asks, other, True)
                for label, asks, other in (
                    *wording.alone(summary, name),
                    *wording.plain_rates(summary, name),
                )
            ),
        ]
    ]
    known = [
        x for _, _, r, _, _ in rates for x in (r.estimate, r.high) if math.isfinite(r.estimate)
    ]
    ticks = charts.ticks(100 * max([x for x in known if math.isfinite(x)], default=0.0))
    bars = [
        _bar(name, aid, rate, 0.0, ticks[-1], alone, size) for name, aid, rate, alone, size in rates
    ]
    return bars, [(tick / ticks[-1], f"{tick:g}") for tick in ticks]


def _bar(
    name: str,
    aid: str,
    rate: Rate,
    first: float,
    last: float,
    alone: bool = False,
    size: str = "",
) -> _Bar:
    """A rate on an axis between two percentages."""
    percent = wording.percent(rate)
    if not math.isfinite(rate.estimate):
        return _Bar(name, aid, percent, size, False, alone=alone)
    at, low, high = (
        (100 * x - first) / (last - first) for x in (rate.estimate, rate.low, rate.high)
    )
    return _Bar(name, aid, percent, size, True, at, low, high, alone)


def _size(n: int) -> str:
    return f"n = {words.count(n)}"


def _people(table: favored.FavoredTable) -> _People:
    values = table.what_if.values
    band = charts.band(values) if table.what_if.curve else None
    if band or len(values) > _SHOWN_BARS or len(table.what_if.columns) > 1:
        return _People(table, [], [], band)
    lows, highs = ([getattr(v.rate, end) for v in values] for end in ("low", "high"))
    steps = charts.span(100 * min(lows), 100 * max(highs))
    bars = [_bar(v.value, "", v.rate, steps[0], steps[-1]) for v in values]
    ticks = [((t - steps[0]) / (steps[-1] - steps[0]), f"{t:g}") for t in steps]
    return _People(table, bars, ticks, None)


def _other_people(summary: Summary) -> list[tuple[str, list[favored.FavoredTable]]]:
    """Populations beside the one that is shown first."""
    names = list(dict.fromkeys(table.population for table in summary.what_if))
    return [(wording.population(name), favored.tables(summary, name)) for name in names[1:]]


def _other_outcomes(summary: Summary) -> list[tuple[str, list[outcomes.OutcomeWords]]]:
    """What becomes of populations beside the one that is shown first."""
    names = list(dict.fromkeys(one.population for one in summary.outcomes))
    return [(wording.population(name), outcomes.tables(summary, name)) for name in names[1:]]


def _places(
    summary: Summary,
) -> tuple[list[tuple[wording.RegionWords, _Bar]], list[tuple[float, str]], float]:
    """Regions with their bars, the ticks of their axis, and where the average lies on it."""
    found = summary.where
    if found is None or not found.rules:
        return [], [], 0.0
    ticks = charts.ticks(100 * max(region.rate.high for region in found.rules))
    top = ticks[-1] / 100
    bars = [
        _Bar(
            "",
            "",
            wording.percent(r),
            _size(r.n),
            True,
            r.estimate / top,
            r.low / top,
            r.high / top,
        )
        for r in (region.rate for region in found.rules)
    ]
    shown = list(zip(wording.places(summary), bars, strict=True))
    return shown, [(t / ticks[-1], f"{t:g}") for t in ticks], found.base.estimate / top


def _pair(summary: Summary, place: int, example: Example) -> _Pair:
    compared = [f for f in example.fields if f.protected or f.changed]
    same = [f for f in example.fields if not (f.protected or f.changed)]
    # What changed is what the eye should meet first.
    compared.sort(key=lambda field: not field.changed)
    row, partner = (
        _Side(
            title,
            score,
            wording.own_score(summary, score),
            favors(score),
            wording.decision(summary, score),
        )
        for title, score in (
            ("Row as found", example.score),
            ("Partner", example.partner_score),
        )
    )
    return _Pair(
        place,
        example.origin,
        abs(row.score - partner.score),
        wording.apart(summary, example),
        wording.told(example, summary),
        wording.flipped_by(example, summary),
        wording.how_natural(example),
        ask_again(summary, example),
        (row, partner),
        compared,
        same[:_SHOWN_COLUMNS],
        same[_SHOWN_COLUMNS:],
    )

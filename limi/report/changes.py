"""What a newer model changed, in words and as a page with both models side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from limi.changes import (
    GONE,
    OUTCOMES,
    SAME,
    TURNED,
    UNASKED,
    Answer,
    Change,
    Diff,
    Example,
    Population,
    Replay,
)
from limi.decisions import Bands, Classes, Favorable
from limi.metrics._populations import describe_population, name_population
from limi.metrics._rate import Rate
from limi.report import _pages
from limi.system.shown import clean
from limi.system.words import both, count, figure

__all__ = [
    *("OUTCOME_HEADINGS", "RATE_HEADINGS", "REGION_HEADINGS"),
    *(
        "columns",
        "example",
        "gaps",
        "headline",
        "name_outcome",
        "outcomes",
        "rate_cells",
        "region_cells",
        "render",
    ),
    *("sentence", "shown_examples", "unasked"),
]

RATE_HEADINGS = (
    *("population", "rows", "before", "after", "points", "interval", "corrected p", "verdict"),
)
REGION_HEADINGS = ("region", "people", "before", "after", "difference", "verdict")
OUTCOME_HEADINGS = ("outcome", "findings", "share")

_LOWEST_P = 1e-4
_LONGEST = 60  # characters of a cell of an example
_MOST_OTHERS = 8  # columns that both people share, in an example
_MOST_CLASSES = 6  # whose shares are told, those that moved most


# -- findings asked again ------------------------------------------------------------------


def sentence(told: Replay, *, back: bool = False) -> str:
    """What became of the findings; `back` where a newer run's were put to the earlier model."""
    if not len(told):
        return clean(f"The run {told.run} found nothing, so there is nothing to ask again.")
    counts = told.counts
    if back:
        parts = [f"{count(counts[SAME] + counts[TURNED])} flip under the earlier model too"]
        parts.append(f"{count(counts[GONE])} are new")
        if counts[UNASKED]:
            parts.append(f"{count(counts[UNASKED])} could not be asked about")
        return clean(f"Of {count(len(told))} findings of {told.run}, {both(parts)}.")
    parts = [f"{count(counts[SAME])} still flip"]
    if counts[TURNED]:
        parts.append(f"{count(counts[TURNED])} flip the other way round")
    parts.append(f"{count(counts[GONE])} no longer flip")
    if counts[UNASKED]:
        parts.append(f"{count(counts[UNASKED])} could not be asked about")
    words = both(parts)
    return clean(f"Of {count(len(told))} findings of {told.run}, asked of {told.model}, {words}.")


_BACK = {
    SAME: "flips under the earlier model too",
    TURNED: "flips there the other way round",
    GONE: "new",
    UNASKED: UNASKED,
}


def name_outcome(outcome: str, *, back: bool = False) -> str:
    """An outcome in words."""
    return _BACK[outcome] if back else outcome


def outcomes(told: Replay) -> list[tuple[str, str, str]]:
    """A line of a table for each outcome, under `OUTCOME_HEADINGS`."""
    whole = max(1, len(told))
    return [
        (name, count(told.counts[name]), f"{100 * told.counts[name] / whole:.1f} %")
        for name in OUTCOMES
        if name != UNASKED or told.counts[name]
    ]


def columns(told: Replay) -> list[str]:
    """What became of the columns, a sentence each."""
    words = []
    if told.renamed:
        pairs = both([f"{old} is now {new}" for old, new in told.renamed.items()])
        words.append(f"Renamed columns: {pairs}.")
    if told.added:
        words.append(f"The newer model takes {both(told.added)}, which the run's people lacked.")
    if told.filled:
        pairs = both([f"{name} {value}" for name, value in told.filled.items()])
        words.append(f"They were given {pairs}.")
    if told.dropped:
        words.append(f"It does not take {both(told.dropped)}.")
    return [clean(one) for one in words]


def unasked(told: Replay) -> list[str]:
    """Why findings could not be asked, a line for each reason."""
    return [clean(f"{count(n)} not asked: {why}") for why, n in told.unasked.items()]


def gaps(told: Replay, *, back: bool = False) -> str:
    """How far apart the scores of the two people lie, before and after; "" where none was asked."""
    found, asked = told.gaps
    if math.isnan(found):
        return ""
    before, after = (asked, found) if back else (found, asked)
    rule = told.rules[1]
    if isinstance(rule, Classes) and not rule.ordered:
        return ""  # classes without an order are as far apart as any
    what = "two scores" if isinstance(rule, Favorable) else "two predictions"
    what = "two bands" if isinstance(rule, Bands) else what
    what = "places of the two classes" if isinstance(rule, Classes) else what
    sides = [
        f"{one:.3f}" if isinstance(rule, Favorable) else figure(one) for one in (before, after)
    ]
    return f"Mean distance of the {what}: {sides[0]} before, {sides[1]} after."


def answer_nouns(told: Replay) -> str:
    """What the answers of both models are called."""
    return {"class": "classes"}.get(told.rules[1].noun, f"{told.rules[1].noun}s")


def show_answers(told: Replay, answers: tuple[Answer, Answer] | None) -> str:
    """The answers to a pair."""
    if answers is None:
        return "not asked"
    return " / ".join(
        _cut(one) if isinstance(one, str) else told.rules[1].show(one) for one in answers
    )


def example(told: Replay, one: Example) -> str:
    """A pair in one line."""
    changed = ", ".join(f"{name} {mine} -> {other}" for name, mine, other in one.changed)
    if one.flipped_by:
        changed += f" (by {one.flipped_by} in the run)"
    before, after = (show_answers(told, answers) for answers in (one.before, one.after))
    others = ", ".join(f"{name} {_cut(value)}" for name, value in one.others[:_MOST_OTHERS])
    more = " ..." if len(one.others) > _MOST_OTHERS else ""
    nouns = answer_nouns(told)
    return clean(
        f"{one.outcome}: {changed}: {nouns} {before} before, {after} after; {others}{more}"
    )


def shown_examples(told: Replay) -> list[str]:
    """Examples of findings that are still there, or were not asked, and of those that are gone."""
    return [example(told, one) for one in told.examples]


def _cut(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]} ..."


# -- two models side by side ---------------------------------------------------------------


def headline(told: Diff) -> str:
    """The difference of the first population, in a sentence."""
    if not told.populations:
        return "No people were asked."
    first = told.populations[0]
    change = first.change
    rows = name_population(first.name)
    rates = (
        f"{_percent(change.after)} of {count(change.n)} {rows} flip under the newer model, "
        f"{_percent(change.before)} under the earlier one"
    )
    where = f"{_points(change)}, 95 % interval {_ends(change)}, corrected p {_p(change.corrected)}"
    return f"{change.word.capitalize()}: {rates} ({where})."


def rate_cells(one: Population) -> tuple[str, ...]:
    """A line of a table, under `RATE_HEADINGS`."""
    change = one.change
    return (
        name_population(one.name),
        count(change.n),
        _percent(change.before),
        _percent(change.after),
        f"{100 * change.difference:+.2f}",
        _ends(change),
        _p(change.corrected),
        change.word,
    )


def region_cells(told: Diff) -> list[tuple[str, ...]]:
    """A line for each region that changed, under `REGION_HEADINGS`."""
    return [
        (
            clean(str(one.region)),
            f"{100 * one.share:.0f} %",
            _interval(one.change.before),
            _interval(one.change.after),
            f"{_points(one.change)} ({_ends(one.change)})",
            one.change.word,
        )
        for one in told.regions.changed
    ]


def regions_aid(told: Diff) -> str:
    """How the regions came about, or why there are none."""
    where = told.regions
    rows = name_population(where.population) if where.population else "rows"
    if where.reason:
        return f"No region of {rows} is shown: {where.reason}."
    tried = "One region was" if where.tried == 1 else f"{where.tried} regions were"
    return (
        f"{tried} learned from {count(where.learned)} {rows} by whether their verdict changed, and "
        "tested on as many others; the numbers are those of the others, corrected for all that "
        "were tried."
    )


def _percent(rate: Rate) -> str:
    return f"{100 * rate.estimate:.2f} %"


def _interval(rate: Rate) -> str:
    return f"{100 * rate.estimate:.2f} % ({100 * rate.low:.2f} - {100 * rate.high:.2f})"


def _points(change: Change) -> str:
    return f"{100 * change.difference:+.2f} points"


def _ends(change: Change) -> str:
    return f"{100 * change.low:+.2f} to {100 * change.high:+.2f}"


def _p(p_value: float) -> str:
    return f"{'<' if p_value < _LOWEST_P else '='} {max(p_value, _LOWEST_P):.2g}"


# -- the page --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bar:
    """A rate of one model as a bar with the whiskers of its interval, in hundredths of the axis."""

    label: str
    words: str
    newer: bool
    width: float
    low: float
    high: float


@dataclass(frozen=True)
class _Bars:
    name: str
    aid: str
    bars: tuple[_Bar, ...]


def _bars(told: Diff) -> list[_Bars]:
    highest = max(
        (rate.high for one in told.populations for rate in (one.change.before, one.change.after)),
        default=1.0,
    )
    scale = 100 / max(highest, 1e-9)

    def bar(label: str, rate: Rate, newer: bool) -> _Bar:
        return _Bar(
            label,
            _percent(rate),
            newer,
            scale * rate.estimate,
            scale * rate.low,
            scale * rate.high,
        )

    return [
        _Bars(
            name_population(one.name),
            describe_population(one.name),
            (
                bar("before", one.change.before, False),
                bar("after", one.change.after, True),
            ),
        )
        for one in told.populations
    ]


def _findings(title: str, told: Replay | None, *, back: bool) -> dict[str, Any] | None:
    if told is None:
        return None
    whole = max(1, len(told))
    parts, at = [], 0.0
    for name in OUTCOMES:
        width = 100 * told.counts[name] / whole
        parts.append((name.replace(" ", "-"), at, width))
        at += width
    return {
        "title": title,
        "sentence": sentence(told, back=back),
        "gaps": gaps(told, back=back),
        "outcomes": [
            (name, name_outcome(name, back=back), n, share) for name, n, share in outcomes(told)
        ],
        "parts": parts,
        "remarks": [*columns(told), *unasked(told)],
        "nouns": answer_nouns(told),
        "examples": [
            (
                one,
                name_outcome(one.outcome, back=back),
                *(
                    show_answers(told, answers)
                    for answers in ((one.after, one.before) if back else (one.before, one.after))
                ),
            )
            for one in told.examples
        ],
    }


def render(told: Diff) -> str:
    """The page."""
    return _pages.render(
        "changes.html",
        ("marginals", "plain", "changes"),
        title="Two models, the same people",
        headline=headline(told),
        word=told.populations[0].change.word if told.populations else "",
        models=told.models,
        runs=(told.before, "" if told.after == told.models[1] else told.after),
        facts=[
            ("table", told.table),
            ("decision", " / ".join(dict.fromkeys(told.decisions))),
            ("protected", ", ".join(told.protected)),
            ("natural people", f"{told.generator or 'none'}, seed {told.seed}"),
            ("questions", count(told.queries)),
        ],
        rate_headings=RATE_HEADINGS,
        rates=[rate_cells(one) for one in told.populations],
        counted=[_counted(one) for one in told.populations],
        bars=_bars(told),
        region_headings=REGION_HEADINGS,
        regions=region_cells(told),
        regions_aid=regions_aid(told),
        findings=[
            part
            for part in (
                _findings(
                    "Findings of the earlier run, asked of the newer model",
                    told.replayed,
                    back=False,
                ),
                _findings(
                    "Findings of the newer run, asked of the earlier model",
                    told.replayed_back,
                    back=True,
                ),
            )
            if part is not None
        ],
        notes=told.notes,
        command=told.command,
    )


def _counted(one: Population) -> str:
    change = one.change
    return (
        f"Of {count(change.n)} {name_population(one.name)}, {count(change.gone)} no longer flip "
        f"and {count(change.new)} newly do. {_as_they_are(one)}; "
        f"{count(one.decided_otherwise)} people are decided differently."
    )


def _as_they_are(one: Population) -> str:
    """How people are decided as they are, before and now."""
    if one.favorable is not None:
        before, after = one.favorable
        return f"{100 * before:.1f} % were decided favorably before, {100 * after:.1f} % are now"
    if one.mean_prediction is not None:
        was, now = map(figure, one.mean_prediction)
        return f"Their mean prediction was {was} before and is {now} now"
    moved = sorted(one.classes.items(), key=lambda told: -abs(told[1][1] - told[1][0]))
    shown = [
        f"{label} {100 * before:.1f} to {100 * after:.1f} %"
        for label, (before, after) in moved[:_MOST_CLASSES]
    ]
    more = f" and {len(moved) - _MOST_CLASSES} more" if len(moved) > _MOST_CLASSES else ""
    return clean(f"Shares of classes, before and now: {', '.join(shown)}{more}")

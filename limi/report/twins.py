"""The twin question in words and pictures, as cautious as it has to be.

Twins are not what would have happened to anybody. They say what a model does with what goes
together in a table: so words here are "goes with" and "carried by", a low placebo never stands
without the coverage beside it, and single pairs are illustrations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from limi.audits.summary import Summary
from limi.metrics._rate import Rate
from limi.report import charts, wording
from limi.system import words
from limi.system.words import both, count
from limi.twins import Direction, Kept, TwinExample, Twins
from limi.twins.answers import WELL_MEASURED

__all__ = ["Line", "Pair", "Step", "TwinWords", "Way", "facts", "tell", "title"]

_ONE_PAIR = 2  # directions: there and back
_TOLD_CARRIERS = 4
_SHOWN_CARRIERS = 7
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Step:
    """A step of a waterfall, as fractions of its axis."""

    name: str
    aid: str
    start: float
    end: float
    kind: str  # total, for or against
    label: str


@dataclass(frozen=True)
class KeptBar:
    """What remains where columns stay, as fractions of a common axis."""

    name: str
    aid: str
    label: str
    interval: str
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Pair:
    """A person beside a twin."""

    title: str
    changed: tuple[tuple[str, str, str], ...]
    same: str
    scores: tuple[str, str]
    decisions: tuple[str, str]
    agreement: str


@dataclass(frozen=True)
class Way:
    """One direction in words."""

    title: str
    sentence: str
    evidence: str
    carried: str
    kept: list[tuple[str, str]]
    steps: list[Step]
    step_ticks: list[tuple[float, str]]
    goal_rate: float  # on the axis of the steps
    goal_words: str
    kept_title: str
    kept_bars: list[KeptBar]
    kept_ticks: list[tuple[float, str]]


@dataclass(frozen=True)
class Line:
    """One direction as a line of a table, in percent."""

    group: str
    goal: str
    gain: str
    lose: str
    coverage: str
    n: str


@dataclass(frozen=True)
class TwinWords:
    """All that is told of twins."""

    title: str
    alone: str
    ways: list[Way]
    lines: list[Line]  # of all directions, where they are more than one pair
    lines_aid: str
    pairs: list[Pair]
    notes: list[str]
    caution: str


def title(summary: Summary) -> str:
    """What the section is called."""
    return f"Twins: what goes along with {both(summary.protected)}"


def tell(summary: Summary) -> TwinWords | None:
    """The twin question of a run, where it was asked."""
    twins = summary.twins
    if twins is None:
        return None
    notes = [f"{note[:1].upper()}{note[1:]}." for note in twins.notes]
    if twins.reason:
        notes.insert(0, f"The twin question has no answer: {twins.reason}.")
    return TwinWords(
        title(summary),
        _alone(summary, twins),
        [_way(twins, direction) for direction in twins.directions],
        *_lines(twins),
        [_pair(summary, example) for example in twins.examples],
        notes,
        _caution(twins),
    )


def facts(summary: Summary) -> list[tuple[str, str]]:
    """The numbers that stand on top of the page of a model that takes no protected column."""
    twins = summary.twins
    told = [("Queries", count(summary.queries))]
    if twins is None or not twins.directions:
        return told
    first = twins.directions[0]
    told = [
        ("People asked", count(sum(group.favorable.n for group in twins.groups))),
        *told,
        ("Gap between the groups, in points", f"{100 * abs(first.gap):.1f}"),
    ]
    if first.coverage is not None:
        told.append(("Part that twins account for", f"{100 * first.coverage:.0f} %"))
    if twins.placebo is not None:
        told.append(
            (f"Flips with shuffled {both(twins.protected)}", _percent(twins.placebo.estimate))
        )
    return told


def _alone(summary: Summary, twins: Twins) -> str:
    """The direct questions, which always stand beside: alone, and with what must go along."""
    names, rules = both(twins.protected), summary.rules
    rates = summary.rates if rules is None else rules.only_protected or summary.rates
    if set(twins.protected) <= set(twins.unseen):
        told = f"If {names} alone changed: 0 % (the model does not take it)."
    else:
        unseen = f" (the model does not take {both(twins.unseen)})" if twins.unseen else ""
        told = f"If {names} alone changed: {_flip(rates.get(twins.population))}{unseen}."
    if rules is not None and rules.along and not summary.blind:
        with_all = _flip(summary.rates.get(twins.population))
        told += f" With what must change along with it ({both(rules.along)}): {with_all}."
    return told


def _flip(rate: Rate | None) -> str:
    if rate is None or not math.isfinite(rate.estimate):
        return "not measured"
    return f"{wording.percent(rate).estimate} % would flip"


def _way(twins: Twins, direction: Direction) -> Way:
    gains, losses = (_told(rate) for rate in (direction.gains, direction.losses))
    names = both(twins.protected)
    first, second = (gains, "favorably"), (losses, "unfavorably")
    if direction.losses.estimate > direction.gains.estimate:
        first, second = second, first
    steps, step_ticks, goal = _waterfall(twins, direction)
    kept_bars, kept_ticks = _kept_bars(direction)
    return Way(
        f"{direction.group}, as twins with {direction.goal}",
        f"If everything that goes along with {names} in this table changed too: {first[0]} of "
        f"people with {direction.group} would be decided {first[1]} as their twins with "
        f"{direction.goal}, and {second[0]} {second[1]}.{_doubt(direction)}",
        _evidence(twins, direction),
        _carried(direction),
        [(_kept_name(kept.columns), _kept_figures(direction, kept)) for kept in direction.kept],
        steps,
        step_ticks,
        goal,
        f"people with {direction.goal}: {_percent(_favorable(twins, direction.goal))}",
        "Share that would be decided "
        + ("favorably" if direction.carried == "gains" else "unfavorably"),
        kept_bars,
        kept_ticks,
    )


def _doubt(direction: Direction) -> str:
    """What stands behind rates that do not account for the gap."""
    measured = direction.well_measured or direction.coverage is None
    return "" if measured else " This is not measured well."


def _lines(twins: Twins) -> tuple[list[Line], str]:
    """All directions in a table, and how to read it; nothing where there is but one pair."""
    ways = twins.directions
    if len(ways) <= _ONE_PAIR:
        return [], ""
    lines = [
        Line(
            way.group,
            way.goal,
            _figures(way.gains),
            _figures(way.losses),
            _of_the_gap(way),
            count(way.n),
        )
        for way in ways
    ]
    low, high = (f"{100 * end:.0f}" for end in WELL_MEASURED)
    told = (
        "Gain, lose: the percentage of these people who are decided favorably, or unfavorably, "
        "only as their twins, with 95 % intervals that reach as far as the unexplained part of the "
        "gap. Of the gap: the percentage of the difference between the two groups' shares of "
        "favorable decisions that these twins account for; outside "
        f"{low} to {high} the line is not measured well, and it says so."
    )
    alone = [f"{count(way.no_twin)} with {way.group}" for way in ways if way.no_twin]
    if alone:
        told += f" Without a twin that keeps the constraints: {both(alone)}."
    return lines, told


def _of_the_gap(way: Direction) -> str:
    """The part of the gap that twins account for, marked where it is not measured well."""
    if way.coverage is None:
        return "no gap"
    return f"{100 * way.coverage:.0f}" + ("" if way.well_measured else ", not well")


def _figures(rate: Rate) -> str:
    shown = wording.percent(rate)
    return f"{shown.estimate} ({shown.low}-{shown.high})" if shown.low else shown.estimate


def _evidence(twins: Twins, direction: Direction) -> str:
    """What to hold the rate against: placebo, coverage, orders."""
    parts = []
    if twins.placebo is not None:
        parts.append(f"shuffled {both(twins.protected)}: {_percent(twins.placebo.estimate)} flip")
    parts.append(_coverage(direction))
    if direction.orders:
        low, high = min(direction.orders), max(direction.orders)
        n = len(direction.orders)
        number = _NUMBERS[n] if n < len(_NUMBERS) else count(n)
        parts.append(
            f"{100 * low:.1f} to {_percent(high)} over {number} other orders of the columns"
        )
    if direction.no_twin:
        have = "person has" if direction.no_twin == 1 else "people have"
        parts.append(f"{count(direction.no_twin)} {have} no twin that keeps the constraints")
    told = "; ".join(parts)
    return f"{told[:1].upper()}{told[1:]}; n = {count(direction.n)}."


def _coverage(direction: Direction) -> str:
    if direction.coverage is None:
        return "the two groups are decided favorably about as often, so there is no gap to explain"
    return f"these twins account for {100 * direction.coverage:.0f} % of the gap between the groups"


def _favorable(twins: Twins, name: str) -> float:
    """The share of a group that is decided favorably."""
    return next(group.favorable.estimate for group in twins.groups if group.name == name)


def _carried(direction: Direction) -> str:
    """The largest shares of the changed decisions."""
    shown = [carrier for carrier in direction.carriers if carrier.share >= 0.01][:_TOLD_CARRIERS]
    if not shown:
        return ""
    shares = [
        f"{both(carrier.columns)} {100 * carrier.share:.0f} %{_plus_minus(carrier.error)}"
        for carrier in shown
    ]
    return f"The {direction.carried} are carried by {', '.join(shares)}."


def _plus_minus(error: float | None) -> str:
    """A standard error of a share, where there is one."""
    if error is None:
        return ""
    return f" (+/- {100 * error:.0f})" if error >= 0.005 else " (+/- under 1)"


def _kept_name(columns: Sequence[str]) -> str:
    return f"if {both(columns)} may differ"


def _kept_figures(direction: Direction, kept: Kept) -> str:
    """What remains, the more frequent change first."""
    if direction.carried == "gains":
        return f"{_told(kept.gains)} gain, {_percent(kept.losses.estimate)} lose"
    return f"{_told(kept.losses)} lose, {_percent(kept.gains.estimate)} gain"


def _kept_bars(direction: Direction) -> tuple[list[KeptBar], list[tuple[float, str]]]:
    """Nothing kept, what the user keeps, and the strongest carriers one after another."""
    which = direction.carried

    def rate_of(given: object) -> Rate:
        found: Rate = getattr(given, which)
        return found

    rates = [("nothing is kept", "", rate_of(direction))]
    rates += [
        (
            _kept_name(kept.columns),
            "as asked" if kept.why == "asked" else "the strongest carriers",
            rate_of(kept),
        )
        for kept in direction.kept
    ]
    if len(rates) < 2:
        return [], []
    ticks = charts.ticks(100 * max(rate.high for *_, rate in rates))
    top = ticks[-1] / 100
    bars = [
        KeptBar(
            name,
            aid,
            _percent(rate.estimate),
            f"{wording.percent(rate).low} to {wording.percent(rate).high}",
            rate.estimate / top,
            rate.low / top,
            rate.high / top,
        )
        for name, aid, rate in rates
    ]
    return bars, [(tick / ticks[-1], f"{tick:g}") for tick in ticks]


def _waterfall(
    twins: Twins, direction: Direction
) -> tuple[list[Step], list[tuple[float, str]], float]:
    """From a group's favorable decisions to those of its twins, carrier by carrier."""
    if not direction.carriers:
        return [], [], 0.0
    own, goal = (_favorable(twins, name) for name in (direction.group, direction.goal))
    mainly, rest = direction.gains.estimate, direction.losses.estimate
    if direction.carried == "losses":
        mainly, rest = -rest, -mainly
    shown = direction.carriers[:_SHOWN_CARRIERS]
    others = 1.0 - sum(carrier.share for carrier in shown)
    parts = [
        (both(c.columns), f"{100 * c.share:.0f} % of the {direction.carried}", c.share)
        for c in shown
    ]
    if len(direction.carriers) > len(shown):
        parts.append(("all other columns", "", others))
    moves = [(name, aid, share * mainly) for name, aid, share in parts]
    opposite = "losses" if direction.carried == "gains" else "gains"
    moves.append((f"{opposite} of others", "people decided the other way", -rest))
    at, ends = own, [own, goal, own + mainly - rest]
    for _, _, move in moves:
        at += move
        ends.append(at)
    ticks = charts.ticks(100 * max(ends))
    top = ticks[-1] / 100
    steps = [Step(f"people with {direction.group}", "", 0.0, own / top, "total", _percent(own))]
    at = own
    for name, aid, move in moves:
        kind = "for" if move >= 0 else "against"
        label = f"{100 * move:z.1f}" if abs(move) < 0.0005 else f"{100 * move:+.1f}"
        steps.append(Step(name, aid, at / top, (at + move) / top, kind, label))
        at += move
    twin_words = f"as their twins with {direction.goal}"
    steps.append(Step(twin_words, "", 0.0, at / top, "total", _percent(at)))
    return steps, [(tick / ticks[-1], f"{tick:g}") for tick in ticks], goal / top


def _pair(summary: Summary, example: TwinExample) -> Pair:
    changed = tuple(field for field in example.fields if field[1] != field[2])
    same = [f"{name} {own}" for name, own, twin in example.fields if own == twin]
    scores = (example.score, example.twin_score)
    return Pair(
        f"{example.group} and a twin with {example.goal}",
        changed,
        ", ".join(same),
        (words.score(scores[0]), words.score(scores[1])),
        (wording.decision(summary, scores[0]), wording.decision(summary, scores[1])),
        f"{100 * example.agreement:.0f} % of 20 draws are decided like this one",
    )


def _caution(twins: Twins) -> str:
    names = both(twins.protected)
    told = (
        "Twins are statistical counterparts under an order of the columns. They show what the "
        f"model does with values that go together in this table, not what {names} causes."
    )
    known = [d.agreement for d in twins.directions if d.agreement is not None]
    if known:
        told += (
            " Single pairs are illustrations: another draw would change the verdict for "
            f"{100 * (1 - min(known)):.0f} % of people."
        )
    return told


def _told(rate: Rate) -> str:
    shown = wording.percent(rate)
    return f"{shown.estimate} % ({shown.low} to {shown.high})" if shown.low else shown.estimate


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"

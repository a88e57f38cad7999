"""What becomes of people, in words: where their class goes, how far their number moves.

For decisions that are classes or numbers; who is favored among favorable decisions is told by
`limi.report.favored`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from limi.audits.summary import Summary
from limi.decisions import OTHER_CLASS
from limi.metrics._quantiles import Quantile
from limi.metrics.outcomes import MOST_VALUES, Group, Moves, Outcomes, Shift
from limi.metrics.what_if import LEVEL, mcnemar
from limi.report import wording
from limi.system import words

__all__ = ["Matrix", "OutcomeWords", "aid", "tables", "who_gets_more"]

_SAME = "The same people, all decided as if they had each value, with everything else unchanged."
_INTERVALS = (
    "The 95 % intervals use order statistics, which hold whatever the distribution; an end is "
    "open if there are too few people to determine it."
)
_MOST_CELLS = 12  # classes of a matrix
_MOST_MOVES = 8  # told of one that is larger

_PEOPLE_FIRST = ("held-out", "real", "natural")
_PEOPLE = {"real": "rows of the table", "held-out": "held-out rows", "natural": "natural rows"}


@dataclass(frozen=True)
class Matrix:
    """Who goes where: counts of people by class under one value and under another."""

    value: str
    other: str
    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    @property
    def lines(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Each class under the one value, with its counts under the other."""
        return tuple(zip(self.labels, self.counts, strict=True))


@dataclass(frozen=True)
class OutcomeWords:
    """A protected column of a population in words."""

    title: str
    sentences: tuple[str, ...]
    matrices: tuple[Matrix, ...]
    groups: tuple[str, ...]


def tables(summary: Summary, population: str | None = None) -> list[OutcomeWords]:
    """Every protected column of one population: the first that was measured, or the named one."""
    known = [name for name in _PEOPLE_FIRST if _has(summary, name)]
    chosen = population or next(iter(known), None)
    return [_tell(summary, one) for one in summary.outcomes if one.population == chosen]


def aid(summary: Summary) -> str:
    """How people were compared."""
    return f"{_SAME} {_INTERVALS}" if summary.kind == "number" else _SAME


def who_gets_more(summary: Summary) -> str:
    """Which value is given the higher numbers or the better classes, if chance does not explain it.

    A sign test of the people who are treated differently, corrected for all pairs of values.
    """
    if summary.kind == "class" and not summary.ordered:
        return ""
    first = next((name for name in _PEOPLE_FIRST if _has(summary, name)), None)
    pairs = [pair for one in summary.outcomes if one.population == first for pair in _sides(one)]
    if not pairs:
        return ""
    what = summary.target or ("class" if summary.kind == "class" else "number")
    better, worse = ("better", "worse") if summary.kind == "class" else ("higher", "lower")
    n_pairs = sum(_n_pairs(summary, one) for one in summary.outcomes)
    told = []
    for pair in pairs:
        chance = min(1.0, n_pairs * float(mcnemar(pair.more, pair.less)))
        if chance <= LEVEL:
            told.append((pair.more - pair.less, pair, chance))
    if not told:
        return f"No value gets a {better} {what} than another by more than chance explains."
    _, pair, chance = max(told, key=lambda one: one[0])
    by = f", {words.figure(pair.mean)} more on average" if pair.mean > 0 else ""
    people = f"{words.count(pair.n)} {_PEOPLE.get(str(first), str(first))}"
    return (
        f"{pair.value}: of the same {people}, {wording.share(pair.more, pair.n)} get a {better} "
        f"{what} as {pair.value} than as {pair.other}, and {wording.share(pair.less, pair.n)} a "
        f"{worse} one{by} ({wording.chance(chance)})."
    )


@dataclass(frozen=True)
class _Sides:
    """How many of the same people get more as one value than as another."""

    value: str
    other: str
    n: int
    more: int
    less: int
    mean: float  # of the difference; NaN of classes

    def turned(self) -> _Sides:
        """The side of those who get more first."""
        if self.more >= self.less:
            return self
        return _Sides(self.other, self.value, self.n, self.less, self.more, -self.mean)


def _sides(outcome: Outcomes) -> list[_Sides]:
    name = outcome.column
    found = [
        _Sides(f"{name} {s.value}", f"{name} {s.other}", s.n, s.higher, s.lower, s.mean)
        for s in outcome.shifts
    ]
    for move in outcome.moves:
        better = _count_better(move)
        values = (f"{name} {move.value}", f"{name} {move.other}")
        found.append(_Sides(*values, move.n, better, move.moved - better, math.nan))
    return [sides.turned() for sides in found]


def _count_better(move: Moves) -> int:
    """People whose class is better as the one value, where classes are in order."""
    return sum(sum(row[:place]) for place, row in enumerate(move.counts))


def _has(summary: Summary, population: str) -> bool:
    return any(one.population == population for one in summary.outcomes)


def _n_pairs(summary: Summary, outcome: Outcomes) -> int:
    """How many pairs of a column's values were compared."""
    n_values = min(len(summary.protected.get(outcome.column, ())), MOST_VALUES)
    return max(1, n_values * (n_values - 1) // 2)


def _tell(summary: Summary, outcome: Outcomes) -> OutcomeWords:
    people = _PEOPLE.get(outcome.population, outcome.population)
    column = outcome.column
    sentences = [_tell_shift(summary, column, people, shift) for shift in outcome.shifts]
    sentences += [_tell_moves(summary, column, people, move) for move in outcome.moves]
    matrices = tuple(
        Matrix(
            f"{column} {move.value}",
            f"{column} {move.other}",
            _labels(summary, move),
            move.counts,
        )
        for move in outcome.moves
        if move.moved and len(move.counts) <= _MOST_CELLS
    )
    if len(outcome.spans) > 1:
        sentences.append(_tell_spans(column, people, outcome.spans))
    several = len(summary.protected) > 1
    title = column + (" alone" if several else "")
    return OutcomeWords(title, tuple(sentences), matrices[:3], _tell_groups(summary, outcome))


def _tell_shift(summary: Summary, column: str, people: str, shift: Shift) -> str:
    number = words.figure
    what = summary.target or "the number"
    mine, theirs = f"{column} {shift.value}", f"{column} {shift.other}"
    same = f"The same {words.count(shift.n)} {people}"
    if not shift.higher + shift.lower:
        return f"{same} get the same {what} as {mine} and as {theirs}."
    tails = ", ".join(
        f"{100 * tail.share:.0f} % of them are at most {number(tail.value)} apart{_interval(tail)}"
        for tail in shift.tails
    )
    middle = f"{number(shift.median.value)} higher as {mine} than as {theirs} at the median"
    if not shift.median.value:
        middle = f"the same as {mine} and as {theirs} at the median"
    return (
        f"{same}: {what} is {middle}{_interval(shift.median)}; {tails}; "
        f"the widest apart is {number(shift.worst)}. "
        f"{wording.share(shift.higher, shift.n)} get more as {mine}, "
        f"{wording.share(shift.lower, shift.n)} less."
    )


def _tell_spans(column: str, people: str, spans: tuple[int, ...]) -> str:
    """How many bands people span under all values of a column."""
    wide = [f"{words.count(n)} span {k}" for k, n in enumerate(spans[1:], 2) if n]
    return (
        f"Bands under all values of {column}: {words.count(spans[0])} {people} stay in one; "
        f"{words.both(wide)}."
    )


def _interval(quantile: Quantile) -> str:
    low, high = quantile.low, quantile.high
    if math.isnan(low) and math.isnan(high):
        return ""
    if math.isnan(low) or math.isnan(high):
        at_least = math.isnan(high)
        end = words.figure(low if at_least else high)
        return f" (95 % interval: {'at least' if at_least else 'at most'} {end})"
    return f" ({words.figure(low)} to {words.figure(high)})"


def _tell_moves(summary: Summary, column: str, people: str, moves: Moves) -> str:
    mine, theirs = f"{column} {moves.value}", f"{column} {moves.other}"
    same = f"Of the same {words.count(moves.n)} {people}"
    if not moves.moved:
        return f"{same} none has a different class as {mine} than as {theirs}."
    told = f"{same} {words.count(moves.moved)} ({wording.share(moves.moved, moves.n)}) "
    told += f"{'has' if moves.moved == 1 else 'have'} a different class as {mine} than as {theirs}"
    if summary.ordered:
        better = _count_better(moves)
        worse = moves.moved - better
        told += f": {words.count(better)} a better one as {mine}, {words.count(worse)} a worse one"
    labels = _labels(summary, moves)
    cells = [
        (n, labels[here], labels[there])
        for here, row in enumerate(moves.counts)
        for there, n in enumerate(row)
        if here != there and n
    ]
    cells.sort(key=lambda cell: -cell[0])
    if len(moves.counts) > _MOST_CELLS:
        shown = "; ".join(f"{a} to {b}: {words.count(n)}" for n, a, b in cells[:_MOST_MOVES])
        told += f". From {mine} to {theirs}: {shown}"
        if len(cells) > _MOST_MOVES:
            told += f" and {len(cells) - _MOST_MOVES} more moves"
    return f"{told}."


def _labels(summary: Summary, moves: Moves) -> tuple[str, ...]:
    return (*summary.classes, OTHER_CLASS)[: len(moves.counts)]


def _tell_groups(summary: Summary, outcome: Outcomes) -> tuple[str, ...]:
    """How groups fare as they are, by the names that Fairlearn has."""
    if not outcome.gaps:
        return ()
    number = words.figure
    gaps = outcome.gaps
    lines = []
    if "mean_prediction_difference" in gaps:
        means = _by_value(outcome, lambda g: g.mean_prediction)
        gap = number(gaps["mean_prediction_difference"])
        lines.append(f"mean prediction: {means}; largest difference {gap}")
    if "mean_absolute_error_difference" in gaps:
        errors = _by_value(outcome, lambda g: g.mean_absolute_error)
        gap = number(gaps["mean_absolute_error_difference"])
        lines.append(f"mean absolute error: {errors}; largest difference {gap}")
    if "demographic_parity_difference" in gaps:
        points = 100 * gaps["demographic_parity_difference"]
        lines.append(
            f"demographic parity difference: {points:.1f} points in the class where groups differ "
            f"most, {_widest_class(summary, outcome)}"
        )
    if "accuracy_score_difference" in gaps:
        shares = "; ".join(
            f"{group.value} {100 * group.accuracy:.1f} %"
            for group in outcome.groups
            if group.accuracy is not None
        )
        points = 100 * gaps["accuracy_score_difference"]
        lines.append(f"accuracy: {shares}; largest difference {points:.1f} points")
    few = [f"{group.value} ({group.n})" for group in outcome.groups if not group.is_enough]
    if few:
        lines.append(f"too few people to say: {words.both(few)}")
    return tuple(lines)


def _by_value(outcome: Outcomes, told: Callable[[Group], float | None]) -> str:
    values = [(group.value, told(group)) for group in outcome.groups]
    return "; ".join(f"{name} {words.figure(x)}" for name, x in values if x is not None)


def _widest_class(summary: Summary, outcome: Outcomes) -> str:
    spreads = [max(shares) - min(shares) for shares in zip(*_rates(outcome), strict=True)]
    place = spreads.index(max(spreads))
    shares = "; ".join(
        f"{group.value} {100 * group.selection_rates[place]:.1f} %"
        for group in outcome.groups
        if group.is_enough
    )
    return f"{summary.classes[place]} ({shares})"


def _rates(outcome: Outcomes) -> list[tuple[float, ...]]:
    return [group.selection_rates for group in outcome.groups if group.is_enough]

"""What becomes of the same people under other protected values, where decisions are classes or
numbers: who goes where, how far numbers are apart, and how groups fare.

Everything is told of a rate's sample, which no search has chosen, in the unit of the answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.decisions import PRECISION, Bands, Classes, Rule
from limi.metrics._enough import FEWEST_TOLD
from limi.metrics._groups import cut
from limi.metrics._quantiles import Quantile, quantile_interval
from limi.search.check import Checked
from limi.table.schema import Column, Schema

__all__ = [
    "MOST_VALUES",
    "Group",
    "Moves",
    "Outcomes",
    "Shift",
    "compare_outcomes",
    "group_gaps",
    "measure_gaps",
]

POPULATIONS = ("held-out", "real", "natural")  # uniform rows are not people
MOST_VALUES = 8  # of a column that are compared with each other
_MOST_PAIRS = 6  # of values that are told, the widest first
_TAILS = (0.95, 0.99)


@dataclass(frozen=True)
class Shift:
    """Numbers of the same people under two values of a column."""

    value: str
    other: str
    n: int
    median: Quantile  # of the number as `value` less that as `other`
    tails: tuple[Quantile, ...]  # of the size of the difference
    worst: float
    mean: float
    higher: int  # people with more as `value`, beyond rounding
    lower: int


@dataclass(frozen=True)
class Moves:
    """Classes of the same people under two values of a column."""

    value: str
    other: str
    n: int
    counts: tuple[tuple[int, ...], ...]  # by class as `value`, then by class as `other`

    @property
    def moved(self) -> int:
        """People whose class is not the same."""
        return self.n - sum(row[place] for place, row in enumerate(self.counts))


@dataclass(frozen=True)
class Group:
    """Answers for the people of a group, as they are; nothing but their number of too few."""

    value: str
    n: int
    mean_prediction: float | None = None
    mean_absolute_error: float | None = None
    selection_rates: tuple[float, ...] = ()  # share of each class
    accuracy: float | None = None

    @property
    def is_enough(self) -> bool:
        """Are there enough people to say more than how many?"""
        return self.n >= FEWEST_TOLD


@dataclass(frozen=True)
class Outcomes:
    """What becomes of people, for a protected column of a population."""

    population: str
    column: str
    shifts: tuple[Shift, ...] = ()
    moves: tuple[Moves, ...] = ()
    groups: tuple[Group, ...] = ()
    gaps: dict[str, float] = field(default_factory=dict)  # see `group_gaps`
    spans: tuple[int, ...] = ()  # where decisions are bands: people whose variants span 1, 2, ...


def compare_outcomes(
    schema: Schema,
    rule: Rule,
    samples: Mapping[str, Checked],
    truths: Mapping[str, NDArray[np.float64]],
) -> tuple[Outcomes, ...]:
    """For each population of people and each protected column; `truths` are what the target column
    holds for the people of a population, as answers of the rule."""
    return tuple(
        _compare(schema, rule, name, samples[name], place, truths.get(name))
        for name in POPULATIONS
        if name in samples and len(samples[name]) and len(samples[name].scores)
        for place in range(len(schema.protected))
    )


def _compare(
    schema: Schema,
    rule: Rule,
    population: str,
    sample: Checked,
    place: int,
    truth: NDArray[np.float64] | None,
) -> Outcomes:
    column = schema[schema.protected[place]]
    codes = _some(schema.protected_codes[place])
    under = {column.show(code): _as_if(schema, sample, place, code) for code in codes}
    pairs = list(itertools.combinations(under, 2))
    cells = sample.rows[:, schema.protected_index[place]]
    groups = _groups(column, rule, sample.score, truth, cells)
    shown: dict[str, Any] = {"groups": groups, "gaps": group_gaps(rule, groups)}
    if isinstance(rule, Classes):
        moves = [_move(rule, a, b, under[a], under[b]) for a, b in pairs]
        moves.sort(key=lambda one: -one.moved)
        return Outcomes(population, column.name, moves=tuple(moves[:_MOST_PAIRS]), **shown)
    if isinstance(rule, Bands):
        shown["spans"] = _spans(rule, np.stack(list(under.values()), axis=1))
    shifts = [_shift(a, b, under[a], under[b]) for a, b in pairs]
    told = sorted((s for s in shifts if s is not None), key=lambda one: -abs(one.median.value))
    shown["shifts"] = tuple(told[:_MOST_PAIRS])
    return Outcomes(population, column.name, **shown)


def _spans(rule: Bands, variants: NDArray[np.float64]) -> tuple[int, ...]:
    """How many people span one band under the values of a column, how many two, and so on."""
    spans = rule.span(variants).astype(np.intp)
    counts = np.bincount(np.maximum(spans, 1), minlength=2)[1:]
    return tuple(np.trim_zeros(counts, "b").tolist())


def _some(codes: Any) -> list[float]:
    """All codes of a column, or of very many some that are evenly apart."""
    known = list(codes)
    if len(known) <= MOST_VALUES:
        return known
    chosen = np.linspace(0, len(known) - 1, MOST_VALUES).round().astype(int)
    return [known[i] for i in chosen]


def _as_if(schema: Schema, sample: Checked, place: int, code: float) -> NDArray[np.float64]:
    """Answers for people as if they had this value, and all else is as it is; NaN if not asked."""
    rows = sample.rows.copy()
    rows[:, schema.protected_index[place]] = code
    at = schema.combination_of(rows)
    under = sample.scores[np.arange(len(rows)), np.maximum(at, 0)]
    return np.where(at >= 0, under, np.nan)


def _shift(
    value: str, other: str, mine: NDArray[np.float64], theirs: NDArray[np.float64]
) -> Shift | None:
    difference = _differences(mine, theirs)
    if not len(difference):
        return None
    if (np.median(difference) or difference.mean()) < 0:  # told from the side that has more
        value, other, difference = other, value, 0.0 - difference
    sizes = np.abs(difference)
    return Shift(
        value,
        other,
        len(difference),
        quantile_interval(difference, 0.5),
        tuple(quantile_interval(sizes, share) for share in _TAILS),
        float(sizes.max()),
        float(difference.mean()),
        int((difference > 0).sum()),
        int((difference < 0).sum()),
    )


def _differences(mine: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of people whose numbers are both known; rounding makes nobody richer."""
    known = ~(np.isnan(mine) | np.isnan(theirs))
    mine, theirs = mine[known], theirs[known]
    same = np.abs(mine - theirs) <= PRECISION * np.maximum(np.abs(mine), np.abs(theirs))
    return np.where(same, 0.0, mine - theirs)


def _move(
    rule: Classes, value: str, other: str, mine: NDArray[np.float64], theirs: NDArray[np.float64]
) -> Moves:
    known = ~(np.isnan(mine) | np.isnan(theirs))
    n = len(rule.labels) + 1
    here, there = (rule.place(part[known]).astype(np.intp) for part in (mine, theirs))
    counts = np.bincount(here * n + there, minlength=n * n).reshape(n, n)
    if not counts[-1].any() and not counts[:, -1].any():  # no class that the table lacks
        counts = counts[:-1, :-1]
    return Moves(value, other, int(known.sum()), tuple(map(tuple, counts.tolist())))


def _groups(
    column: Column,
    rule: Rule,
    answers: NDArray[np.float64],
    truth: NDArray[np.float64] | None,
    cells: NDArray[np.float64],
) -> tuple[Group, ...]:
    """How people fare as they are, by what the column holds."""
    parted = cut(column, cells)
    groups = []
    for place in np.flatnonzero(parted.sizes).tolist():
        inside = parted.mask(place)
        known = None if truth is None else truth[inside]
        groups.append(_group(parted.words[place], rule, answers[inside], known))
    return tuple(groups)


def _group(
    value: str, rule: Rule, answers: NDArray[np.float64], truth: NDArray[np.float64] | None
) -> Group:
    """A group's figures, each where enough people speak for it."""
    if len(answers) < FEWEST_TOLD:
        return Group(value, len(answers))
    known = np.zeros(len(answers), dtype=bool) if truth is None else ~np.isnan(truth)
    enough = truth is not None and int(known.sum()) >= FEWEST_TOLD
    if isinstance(rule, Classes):
        places = rule.place(answers)
        shares = tuple(float((places == place).mean()) for place in range(len(rule.labels)))
        right = float((places[known] == truth[known]).mean()) if enough else None  # type: ignore[index]
        return Group(value, len(answers), selection_rates=shares, accuracy=right)
    error = float(np.abs(answers[known] - truth[known]).mean()) if enough else None  # type: ignore[index]
    return Group(value, len(answers), float(answers.mean()), error)


def measure_gaps(
    schema: Schema,
    rule: Rule,
    rows: NDArray[np.float64],
    answers: NDArray[np.float64],
    truth: NDArray[np.float64] | None,
) -> dict[str, float]:
    """What `group_gaps` tells of people, of the protected column in which it is largest."""
    widest: dict[str, float] = {}
    for place, name in zip(schema.protected_index, schema.protected, strict=True):
        groups = _groups(schema[name], rule, answers, truth, rows[:, place])
        for gap, value in group_gaps(rule, groups).items():
            widest[gap] = max(value, widest.get(gap, 0.0))
    return widest


def group_gaps(rule: Rule, groups: tuple[Group, ...]) -> dict[str, float]:
    """The largest difference between two groups, by the names that Fairlearn has for it.

    Of numbers `mean_prediction_difference` and `mean_absolute_error_difference`; of classes
    `demographic_parity_difference` (of the class in which groups differ most) and
    `accuracy_score_difference`. 0 where groups fare alike. Groups too small to tell are in none.
    """
    gaps: dict[str, float] = {}
    groups = tuple(group for group in groups if group.is_enough)
    if len(groups) < 2:
        return gaps

    def widest(name: str, told: list[float | None]) -> None:
        known = [one for one in told if one is not None]
        if len(known) > 1:
            gaps[name] = max(known) - min(known)

    if isinstance(rule, Classes):
        shares = np.array([group.selection_rates for group in groups])
        gaps["demographic_parity_difference"] = float(np.ptp(shares, axis=0).max())
        widest("accuracy_score_difference", [group.accuracy for group in groups])
    else:
        widest("mean_prediction_difference", [group.mean_prediction for group in groups])
        widest("mean_absolute_error_difference", [g.mean_absolute_error for g in groups])
    return gaps

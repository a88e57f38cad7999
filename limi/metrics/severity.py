"""How bad findings are, whom they hurt, and how many people that would be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, binomtest

from limi.decisions import favors
from limi.errors import InvalidInput
from limi.metrics._rate import Rate, clopper_pearson
from limi.schema import Schema
from limi.types import Rows, Scores

__all__ = [
    "Affected",
    "Loser",
    "expected_affected",
    "losers",
    "margin",
    "priority",
    "score_gap",
    "sign_test",
]

_MOST_PEOPLE = 10**12
_ERROR = 0.05


@dataclass(frozen=True)
class Loser:
    """A combination of protected values in flips: how often it loses, and how often it wins."""

    codes: tuple[float, ...]
    loses: int
    wins: int
    p_value: float  # of the sign test, corrected for the number of combinations


@dataclass(frozen=True)
class Affected:
    """People of a stated volume whose decision would flip."""

    estimate: float
    low: int
    high: int
    volume: int


def score_gap(score: Scores, partner_score: Scores) -> Scores:
    """Distance of the two scores of each pair.

    What the partner's protected value is worth beside the person's own; other values may be worth
    more or less. |score - partner's score|, from 0 to 1; lower is better.
    """
    return np.abs(np.asarray(score) - np.asarray(partner_score))


def margin(score: Scores, partner_score: Scores) -> Scores:
    """How far the less certain of the two decisions is from turning round.

    min(|score - 0.5|, |partner's score - 0.5|), from 0 to 0.5; a small one says that a slight
    change of the model would mend the pair, a large one that both decisions are firm.
    """
    return np.minimum(np.abs(np.asarray(score) - 0.5), np.abs(np.asarray(partner_score) - 0.5))


def sign_test(loses: int, wins: int) -> float:
    """Two-sided p-value of the sign test: could a fair coin have decided who loses?

    P(a fair coin is at least as one-sided), from 0 to 1; small says that one side is hurt on
    the whole. 1 where nothing was lost or won.

    >>> sign_test(5, 5), sign_test(10, 0)
    (1.0, 0.001953125)
    """
    return float(binomtest(loses, loses + wins).pvalue) if loses + wins else 1.0


def losers(
    rows: Rows, partner: Rows, score: Scores, partner_score: Scores, schema: Schema
) -> tuple[Loser, ...]:
    """How often each combination of protected values loses and wins, the worst hit first.

    Each pair has one loser, the side with the unfavorable decision, and one winner. P-values are
    those of the sign test times the number of combinations (Bonferroni), 1 at most.
    """
    index = schema.protected_index
    mine, other = rows[:, index], partner[:, index]
    lost = ~favors(np.asarray(score))[:, None]
    # NaN differs from itself, and infinity is no code.
    sides = np.nan_to_num(
        np.concatenate([np.where(lost, mine, other), np.where(lost, other, mine)]), nan=np.inf
    )
    groups, of = np.unique(sides, axis=0, return_inverse=True)
    of = of.reshape(-1)
    loses, wins = (np.bincount(part, minlength=len(groups)) for part in np.split(of, 2))
    order = np.argsort(wins - loses, kind="stable")
    return tuple(
        Loser(
            tuple(float(c) if np.isfinite(c) else float("nan") for c in groups[place]),
            int(loses[place]),
            int(wins[place]),
            _corrected(int(loses[place]), int(wins[place]), len(groups)),
        )
        for place in order
    )


def _corrected(loses: int, wins: int, groups: int) -> float:
    # Two combinations mirror each other: it is one test.
    return min(1.0, sign_test(loses, wins) * (groups if groups > 2 else 1))


def expected_affected(rate: Rate, volume: int) -> Affected:
    """How many of `volume` people like those of the rate's population would flip.

    rate x volume; lower is better. The 95 % interval holds the chance of the rate's sample and that
    of the volume itself, half of the error each: of 20 people at a rate of 10 % it may well be 5.
    It says nothing of people of another kind than the population's.
    """
    if not 1 <= volume <= _MOST_PEOPLE:
        raise InvalidInput(
            f"volume is {volume}; give the number of people decided on, from 1 to {_MOST_PEOPLE:,}"
        )
    low, high = clopper_pearson(round(rate.estimate * rate.n), rate.n, 1 - _ERROR / 2)
    return Affected(
        rate.estimate * volume,
        int(binom.ppf(_ERROR / 4, volume, low)) if low > 0 else 0,
        int(binom.ppf(1 - _ERROR / 4, volume, high)) if high < 1 else volume,
        volume,
    )


def priority(severity: Scores, naturalness: NDArray[np.float64]) -> NDArray[np.float64]:
    """Severity times naturalness: what to look at first, from 0 to 1.

    Where naturalness is unknown (NaN), severity alone counts.
    """
    return severity * np.where(np.isnan(naturalness), 1.0, naturalness)

"""Pairs of a model that answers by chance: do the two sides have the same chance?

Each row has a chance of the favorable answer, and not an answer. (Of a class or a number it is the
chance of an event that parts the pair's first two answers; see `Rule.hits`.) Both sides of a pair
are asked again and again, until a difference is shown or the pair has had its share. Of the rounds
in which they are decided differently, those for one side are heads or tails of a fair coin where
their chances are equal. Evidence is the capital of a bettor against that coin, who starts with 1
and spreads her bets evenly over all coins that favor the side which was seen to be favored first:
with equal chances its mean is at most 1 at every time, so one may look after every round.

Which pairs count is decided by the evidence of all of them together (the e-value procedure of
Benjamini and Hochberg, due to Wang and Ramdas): of the pairs that count, a share of `error` at
most is false in the mean, whatever the pairs have to do with each other; where no pair has two
different chances, the probability of any finding is at most that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, betaln

from limi.decisions import AS_DECIDED, Rule
from limi.system.watch import OutOfTime
from limi.types import Index, Mask, Rows, Scores

__all__ = ["ERROR", "MOST_TIMES", "Chances", "ask_chances", "log_evidence", "select"]

ERROR = 0.05
"""The share of findings that may be false, in the mean."""

MOST_TIMES = 128
"""How often each side of a pair is asked at most."""

_AHEAD = 16  # rounds that the pairs in question can still be paid for, where queries are few
_ENOUGH = 8  # rounds with different decisions before a pair is given up
_POOR = np.log(0.2)  # evidence below which it is

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Chances:
    """What asking pairs again and again has shown."""

    times: Counts  # how often each side was asked
    hits: Counts  # how often the row's answer was the event, such as the favorable decision
    partner_hits: Counts
    evidence: NDArray[np.float64]  # logarithms
    shown: Mask  # which pairs have two different chances
    queries: int


def log_evidence(wins: Counts, losses: Counts) -> NDArray[np.float64]:
    """Logarithm of the capital after so many rounds for and against the favored side.

    The integral over coins from 1/2 to 1 of (2 c)^wins (2 (1 - c))^losses, with density 2.

    >>> np.exp(log_evidence(np.array([0, 1, 7]), np.array([0, 0, 0]))).round(1).tolist()
    [1.0, 1.5, 31.9]
    """
    n = wins + losses
    upper = np.log(betaincc(wins + 1, losses + 1, 0.5))
    told: NDArray[np.float64] = (n + 1) * np.log(2) + betaln(wins + 1, losses + 1) + upper
    return told


def select(evidence: NDArray[np.float64], error: float = ERROR) -> Mask:
    """Which pairs count: the most of them, k, that each have evidence of n / (k error) or more."""
    n = len(evidence)
    if not n:
        return np.zeros(0, dtype=bool)
    needed = np.log(n / (error * np.arange(1, n + 1)))
    enough = np.flatnonzero(np.sort(evidence)[::-1] >= needed)
    if not len(enough):
        return np.zeros(n, dtype=bool)
    return np.asarray(evidence >= needed[enough[-1]])


def ask_chances(
    score: Callable[[Rows], Scores],
    rows: Rows,
    partner: Rows,
    first: Scores,
    partner_first: Scores,
    *,
    decision: Rule = AS_DECIDED,
    error: float = ERROR,
    most: int = MOST_TIMES,
    max_queries: float = np.inf,
) -> Chances:
    """Ask both sides of pairs until it is shown whether their chances differ.

    `first` and `partner_first` are the answers by which the pair was found; they say which side is
    suspected to have the better chance, and count for nothing else. Ends early where time or
    queries do.
    """
    n = len(rows)
    favored = decision.hits(first, first, partner_first)
    times, mine, other, wins, losses = (np.zeros(n, dtype=np.int64) for _ in range(5))
    evidence, queries = np.zeros(n), 0
    for _ in range(most):
        gone = (wins + losses >= _ENOUGH) & (evidence < _POOR)
        open_ = np.flatnonzero(~select(evidence, error) & ~gone & (times < most))
        open_ = _most_promising(open_, evidence, max_queries - queries)
        if not len(open_):
            break
        try:
            answers = score(np.concatenate([rows[open_], partner[open_]]))
        except OutOfTime:
            break
        queries += 2 * len(open_)
        one, two = np.split(answers, 2)
        differ = decision.differ(one, two)
        one, two = (decision.hits(side, first[open_], partner_first[open_]) for side in (one, two))
        times[open_] += 1
        mine[open_] += one
        other[open_] += two
        ahead, behind = differ & one & ~two, differ & two & ~one
        wins[open_] += np.where(favored[open_], ahead, behind)
        losses[open_] += np.where(favored[open_], behind, ahead)
        evidence = log_evidence(wins, losses)
    return Chances(times, mine, other, evidence, select(evidence, error), queries)


def _most_promising(places: Index, evidence: NDArray[np.float64], left: float) -> Index:
    """The pairs to ask next: where queries are few, those with the most evidence so far.

    Whom to ask may depend on all that is known: evidence is sound however a pair came to be asked.
    """
    if left == np.inf:
        return places
    n = int(min(len(places), max(left // (2 * _AHEAD), min(1, left // 2))))
    best = np.argsort(-evidence[places], kind="stable")[:n]
    return np.sort(places[best])

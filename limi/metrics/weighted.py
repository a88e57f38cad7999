"""The rate of natural rows from a search that prefers some of them: a weighted estimate.

A guided search draws many natural rows and asks few, each with a probability that it settles before
it knows the verdict: high where it expects a flip, never below a floor. A row that is asked and
flips weighs 1 / probability, all others weigh 0. Where flips are rare and well guessed, most
of them are asked with a probability near 1, so that the estimate is worth far more rows than it
asked.

Why the interval holds
- Let Z be the weight of a natural row. Its probability q is settled from the row and from what was
  seen before it was drawn. So, given all that was seen before, the mean of Z is that of q times
  flips / q: the rate p, however badly the search guesses, and however it learns on the way. (A row
  whose verdict is known already has q = 1.)
- A gambler who doubts that p is m bets on each row in turn. Against a smaller rate m she
  multiplies her capital by (1 - c) + c Z / m, against a larger one by 1 + (c / bound) (m - Z), with
  a c between 0 and 1 that is settled beforehand. Z is at least 0 and at most `bound`, so that no
  factor is negative. If m is the rate, the mean of each factor, given what was seen before, is 1:
  her capital is a martingale that starts at 1, and so is the mean of the capitals of several
  gamblers with a c each. The chance that it ever reaches 1/a is at most a (Ville's inequality).
- The first bet wins less the larger m is, the second one more. So the rates that nobody grew rich
  against are an interval, and each end is found by halving. Each end is wrong with at most half of
  the probability that the interval leaves, for all numbers of rounds at once. So a search may stop
  when it likes, also because of what it found, and the round in which its budget ended may be
  left out.
- Weights are rounded before the bets, down for the lower end and up (to `bound` at most) for the
  upper one, which can only widen the interval.

What it cannot do: nobody can tell from n asked rows that a part of the population smaller than
about 3 / n does not flip, if none of it was asked. So the upper end lies at least 3.7 / (rows
asked by the floor) above the rest, where Clopper and Pearson have 3.7 / n for plain rows without a
flip: the interval is narrower than theirs where p n is large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.metrics._rate import Rate
from limi.search.draws import Draws

__all__ = ["WeightedRate", "log_capitals", "weighted_interval", "weighted_rate"]

_BETS_BELOW = 0.5 ** np.arange(1, 21)  # the c of the gamblers against smaller rates
_BETS_ABOVE = 0.5 ** np.arange(0, 12)
_PLAIN = 1.0 + 1e-9  # a bound below it: all rows were asked
_GRID = math.log(1.005)  # weights are rounded to half a percent
_HALVINGS = 48

Values = NDArray[np.float64]


@dataclass(frozen=True)
class WeightedRate(Rate):
    """A rate from rows of known weights; `n` is how many of them were asked."""

    draws: int = 0  # natural rows drawn, asked or not
    effective: float = math.nan  # plain natural rows that would tell as much; NaN without a flip


def weighted_rate(rounds: Sequence[Draws], confidence: float = 0.95) -> WeightedRate:
    """The share of natural rows that flip, from all rounds of a search."""
    n = sum(part.n for part in rounds)
    asked = sum(part.asked for part in rounds)
    if not n:
        return WeightedRate(math.nan, 0.0, 1.0, 0, anytime=True)
    weights = np.concatenate([part.weights for part in rounds])
    estimate = min(1.0, float(weights.sum()) / n)
    low, high = weighted_interval(rounds, confidence)
    variance = float((weights**2).sum()) / n - estimate**2
    effective = n * estimate * (1 - estimate) / variance if variance > 0 else math.nan
    return WeightedRate(
        estimate,
        min(low, estimate),
        max(high, estimate),
        asked,
        anytime=True,
        draws=n,
        effective=effective if len(weights) else math.nan,
    )


def weighted_interval(rounds: Sequence[Draws], confidence: float = 0.95) -> tuple[float, float]:
    """Low and high end of the rate, which hold together at least this often, whenever one stops.

    >>> plain = Draws(1000, 1000, 1.0, np.ones(20))
    >>> [round(end, 4) for end in weighted_interval([plain])]
    [0.0081, 0.0393]
    """
    if not 0 < confidence < 1:
        raise InvalidInput(f"confidence is {confidence}; it must lie between 0 and 1")
    rounds = [part for part in rounds if part.n]
    if not rounds:
        return 0.0, 1.0
    bound = math.log(2 / (1 - confidence))
    bets = _Bets(rounds)
    estimate = min(1.0, sum(float(p.weights.sum()) for p in rounds) / sum(p.n for p in rounds))
    low = _halve(lambda m: bets.against_less(m) < bound, estimate, 0.0)
    high = _halve(lambda m: bets.against_more(m) < bound, estimate, 1.0)
    return low, high


def log_capitals(rounds: Sequence[Draws], m: float) -> tuple[float, float]:
    """ln of what betting on all rows has made of 1, against m as too small and as too large."""
    bets = _Bets([part for part in rounds if part.n])
    return bets.against_less(m), bets.against_more(m)


class _Bets:
    """All rounds; those in which every row was asked are worth other bets than the others."""

    def __init__(self, rounds: Sequence[Draws]) -> None:
        plain = [part for part in rounds if part.bound <= _PLAIN]
        drawn = [part for part in rounds if part.bound > _PLAIN]
        self._sides = [_Side(part) for part in (plain, drawn) if part]

    def against_less(self, m: float) -> float:
        return sum(side.against_less(m) for side in self._sides)

    def against_more(self, m: float) -> float:
        return sum(side.against_more(m) for side in self._sides)


class _Side:
    """Rounds that share their gamblers."""

    def __init__(self, rounds: Sequence[Draws]) -> None:
        self._bounds = np.array([part.bound for part in rounds])
        self._misses = np.array([part.n - len(part.weights) for part in rounds], dtype=np.float64)
        weights = np.concatenate([part.weights for part in rounds])
        of = np.repeat(self._bounds, [len(part.weights) for part in rounds])
        self._down = _count(np.exp(np.floor(np.log(weights) / _GRID) * _GRID), of)
        self._up = _count(np.minimum(np.exp(np.ceil(np.log(weights) / _GRID) * _GRID), of), of)

    def against_less(self, m: float) -> float:
        """ln of what betting against m as too small has made of 1."""
        if m <= 0:
            return math.inf if len(self._down[0]) else 0.0
        weight, _, times = self._down
        c = _BETS_BELOW[:, None]
        capital = (times * np.log((1 - c) + c * weight / m)).sum(axis=1)
        capital += self._misses.sum() * np.log1p(-_BETS_BELOW)
        return _log_mean(capital)

    def against_more(self, m: float) -> float:
        """ln of what betting against m as too large has made of 1."""
        weight, bound, times = self._up
        c = _BETS_ABOVE[:, None]
        with np.errstate(divide="ignore"):  # of m = 0 against a weight at the bound
            capital = (times * np.log1p(c / bound * (m - weight))).sum(axis=1)
        capital += (self._misses * np.log1p(c / self._bounds * m)).sum(axis=1)
        return _log_mean(capital)


def _log_mean(logs: Values) -> float:
    """ln of the mean of numbers that are given by their logarithms."""
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).mean())) if math.isfinite(most) else most


def _count(weights: Values, bounds: Values) -> tuple[Values, Values, Values]:
    """Distinct weights with their bounds, and how often each occurs."""
    pairs, times = np.unique(np.column_stack([weights, bounds]), axis=0, return_counts=True)
    return pairs[:, 0], pairs[:, 1], times.astype(np.float64)


def _halve(poor: Callable[[float], bool], inner: float, outer: float) -> float:
    """Where the capital reaches its bound; from the outside, so nothing is cut off."""
    if poor(outer):
        return outer
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2
        inner, outer = (middle, outer) if poor(middle) else (inner, middle)
    return outer

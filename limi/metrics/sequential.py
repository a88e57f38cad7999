"""Intervals of a share, or of a mean, that hold however often one looks, and whenever one stops.

A gambler who doubts that the share is p bets on each row at the odds that p makes fair, so that by
luck alone the capital grows a hundredfold at most once in a hundred games, at any time. The share
is then believed to be among those p that nobody grew rich against. Of a mean of numbers without
bounds the same can be said for large samples only.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limi.errors import InvalidInput
from limi.metrics._rate import Rate

__all__ = [
    "FEWEST_FOR_MEAN",
    "anytime_interval",
    "anytime_mean",
    "anytime_rate",
    "log_capital",
]

FEWEST_FOR_MEAN = 100
"""Numbers under which nothing is said of their mean: its error is not yet nearly normal."""

_NARROWEST = 1_000  # numbers after which the interval of a mean is as narrow as it can be there

# The stakes of Krichevsky and Trofimov, (hits + 1/2) / (rows + 1): the capital is a beta-binomial
# mixture in closed form, exact for yes and no. Half a hit of prior suits the small shares of flips.
_PRIOR = 0.5
_HALVINGS = 64


def log_capital(hits: ArrayLike, n: ArrayLike, share: ArrayLike) -> NDArray[np.float64]:
    """ln of what 1 has become by betting against `share` over n rows with so many hits.

    ln B(hits + 1/2, n - hits + 1/2) - ln B(1/2, 1/2) - hits ln p - (n - hits) ln(1 - p). If `share`
    is true, the capital ever reaches 1/a with probability a at most (Ville's inequality).
    """
    from scipy.special import betaln, xlog1py, xlogy  # late: it takes 0.15 s

    h, rows, p = (np.asarray(x, dtype=np.float64) for x in (hits, n, share))
    mixture = betaln(h + _PRIOR, rows - h + _PRIOR) - betaln(_PRIOR, _PRIOR)
    capital: NDArray[np.float64] = mixture - xlogy(h, p) - xlog1py(rows - h, -p)
    return capital


def anytime_interval(
    hits: ArrayLike, n: ArrayLike, confidence: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Low and high ends after n rows, for any numbers of hits and rows at once.

    The shares p with capital under 1 / (1 - confidence). All intervals of one growing sample hold
    the truth together at least this often, so one may stop as soon as one likes what one sees.
    Wider than Clopper-Pearson's, which holds for one n that was fixed before.

    >>> low, high = anytime_interval(30, 100)
    >>> round(float(low), 3), round(float(high), 3)
    (0.166, 0.463)
    """
    if not 0 < confidence < 1:
        raise InvalidInput(f"confidence is {confidence}; it must lie between 0 and 1")
    h, rows = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (hits, n)))
    seen = h / np.maximum(rows, 1)
    # Where no row hits, or all do, nobody grows rich on the way to that end.
    return (
        _end(h, rows, seen, np.zeros_like(seen), confidence),
        _end(h, rows, seen, np.ones_like(seen), confidence),
    )


def anytime_rate(hits: int, n: int, confidence: float = 0.95) -> Rate:
    """A share from counts of rows whose number the hits had a say in."""
    if n == 0:
        return Rate(math.nan, 0.0, 1.0, 0, anytime=True)
    low, high = anytime_interval(hits, n, confidence)
    return Rate(hits / n, float(low), float(high), n, anytime=True)


def anytime_mean(
    mean: ArrayLike, variance: ArrayLike, n: ArrayLike, confidence: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Low and high ends of a mean after n numbers with this mean and variance (by n - 1).

    Robbins' mixture of normal bets with the variance that was seen in place of the true one: it
    holds at all times at once, as the numbers become many (Waudby-Smith and others 2021). About
    1.6 times as wide as 1.96 standard errors, which hold at one time that was fixed before.

    >>> low, high = anytime_mean(10.0, 4.0, 400)
    >>> round(float(low), 3), round(float(high), 3)
    (9.688, 10.312)
    >>> float(anytime_mean(10.0, 4.0, 99)[0])
    -inf
    """
    if not 0 < confidence < 1:
        raise InvalidInput(f"confidence is {confidence}; it must lie between 0 and 1")
    middle, spread, rows = (np.asarray(x, dtype=np.float64) for x in (mean, variance, n))
    odds = -2 * np.log1p(-confidence)
    prior = (odds + np.log1p(odds)) / _NARROWEST
    grown = np.maximum(rows, 1) * prior
    half = np.sqrt(spread * (grown + 1) / grown * (np.log1p(grown) + odds) / np.maximum(rows, 1))
    half = np.where(rows < FEWEST_FOR_MEAN, np.inf, half)
    return middle - half, middle + half


def _end(
    hits: NDArray[np.float64],
    n: NDArray[np.float64],
    inner: NDArray[np.float64],
    outer: NDArray[np.float64],
    confidence: float,
) -> NDArray[np.float64]:
    """Where the capital reaches its bound, by halving; from the outside, so nothing is cut off."""
    bound = -np.log1p(-confidence)
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2
        poor = log_capital(hits, n, middle) < bound
        inner, outer = np.where(poor, middle, inner), np.where(poor, outer, middle)
    return outer

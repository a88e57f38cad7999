"""Limits of a share, of a difference or of a percentile, each of which holds at every look.

A gambler who believes that a share is larger than p bets on each row at odds that are fair if it is
p, and fairer still to the bank if it is smaller. The capital then ever reaches 1 / a with
probability a at most (Ville's inequality), so that one may look after every row and stop at will.
The lower limit is the largest p at which somebody grew that rich, and the upper limit the smallest
one against the opposite bet. Each limit alone is wrong with probability `error` at most; a decision
against a threshold can be wrong at one of the two only.

The stakes are eight exponential tilts, from cautious to bold, with an eighth of the money on each:
sum of exp(s hits - n ln(1 - p + p e^s)) / 8. Against a share that was fixed before, this takes half
of the rows of `sequential.anytime_interval`, which must be ready for any.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limi.types import Mask

__all__ = [
    "Limits",
    "change_limits",
    "difference_limits",
    "log_capital",
    "percentile_limits",
    "share_limits",
]

Limits = tuple[float, float]

_TILTS = 2.0 ** np.arange(-4, 4)  # of log-odds: from 6 % more to three thousand times as much
_STAKES = np.array([1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 7 / 8, 1.0])  # of a change
_TRIED, _ROUNDS = 66, 5  # values between two ends, and how often again: to a billionth
_HALVINGS = 18  # of a difference: to a hundred-thousandth
_CUTS, _NARROWINGS = 33, 4  # where the share of another group is sought, and how often again


def log_capital(
    hits: ArrayLike, n: ArrayLike, share: ArrayLike, *, above: bool
) -> NDArray[np.float64]:
    """ln of what 1 has become by betting that the true share is above (or below) `share`.

    Falls with `share` where the bet is on more, and rises with it where the bet is on less.
    """
    h, rows, p = (np.asarray(x, dtype=np.float64)[..., None] for x in (hits, n, share))
    tilts = _TILTS if above else -_TILTS
    with np.errstate(divide="ignore"):
        fair = np.logaddexp(np.log1p(-p), np.log(p) + tilts)
    return _log_mean(tilts * h - rows * fair)


def share_limits(hits: float, n: float, error: float) -> Limits:
    """Lower and upper limit of a share after n rows with so many hits.

    >>> low, high = share_limits(0, 500, 0.05)
    >>> low, round(high, 4)
    (0.0, 0.008)
    """
    if not n:
        return 0.0, 1.0
    seen, enough = hits / n, -np.log(error)
    return (
        _furthest(lambda p: log_capital(hits, n, p, above=True) >= enough, 0.0, seen),
        _furthest(lambda p: log_capital(hits, n, p, above=False) >= enough, 1.0, seen),
    )


def difference_limits(
    first: tuple[float, float], second: tuple[float, float], error: float
) -> Limits:
    """Limits of a share minus that of other people, both from hits and rows that still grow.

    Two bets at once, one for each group, multiply: together they refuse a difference where they
    refuse every pair of shares with that difference.
    """
    low = _least_difference(first, second, error)
    return low, -_least_difference(second, first, error)


def change_limits(worse: int, same: int, better: int, error: float) -> Limits:
    """Limits of (worse - better) / rows, of rows asked before and after.

    Most rows do not change, and a bet that pays by the row learns from those as well: the capital
    against a change of d is that of stakes on d minus each row's own change of 1, 0 or -1.
    """
    n = worse + same + better
    if not n:
        return -1.0, 1.0
    counts, changes = np.array([worse, same, better]), np.array([1.0, 0.0, -1.0])
    seen, enough = float(counts @ changes) / n, -np.log(error)

    def is_rich(tried: NDArray[np.float64], sign: float) -> Mask:
        # A stake of one over the largest loss may lose all of it, and no more.
        change = tried[:, None, None]
        stakes = _STAKES[:, None] / (1 + sign * change)
        with np.errstate(divide="ignore"):
            grown = np.log(np.maximum(1 + stakes * sign * (changes - change), 0.0))
        grown = np.where(counts == 0, 0.0, grown)  # 0 times minus infinity
        return np.asarray(_log_mean(grown @ counts) >= enough)

    return (
        _furthest(lambda d: is_rich(d, 1.0), -1.0 + 1e-9, seen),
        _furthest(lambda d: is_rich(d, -1.0), 1.0 - 1e-9, seen),
    )


def percentile_limits(values: NDArray[np.float64], share: float, error: float) -> Limits:
    """Limits of the value that a `share` of people lies above, of values from 0 to 1.

    The percentile is at most x where the share of values above x is at most `share`, so that each
    limit is one of the values seen.
    """
    n, enough = len(values), -np.log(error)
    counts = np.arange(n + 1)
    few = log_capital(counts, n, share, above=False) >= enough  # true up to some count
    many = log_capital(counts, n, share, above=True) >= enough  # true from some count on
    falling = np.sort(values)[::-1]
    n_few, n_not_many = int(few.sum()), int((~many).sum())
    high = float(falling[n_few - 1]) if 0 < n_few <= n else 1.0
    low = float(falling[n_not_many - 1]) if n_not_many <= n else 0.0
    return low, high


def _log_mean(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln of the mean of exponentials, over the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    mean: NDArray[np.float64] = top[..., 0] + np.log(np.exp(logs - top).mean(axis=-1))
    return mean


def _furthest(refused: Callable[[NDArray[np.float64]], Mask], outer: float, inner: float) -> float:
    """How far from an end the refused values reach; the end itself where none is refused."""
    if not refused(np.array([outer])).all():
        return outer
    for _ in range(_ROUNDS):
        tried = np.linspace(outer, inner, _TRIED)
        last = int(refused(tried[1:-1]).sum())  # refused values come first
        outer, inner = float(tried[last]), float(tried[last + 1])
    return outer


def _least_difference(
    first: tuple[float, float], second: tuple[float, float], error: float
) -> float:
    """The lower limit of the first share minus the second."""
    if not first[1] or not second[1]:
        return -1.0
    inner, enough = first[0] / first[1] - second[0] / second[1], -np.log(error)

    def refused(difference: float) -> bool:
        # Convex in the second share, so that its least value lies beside the least of some.
        low, high = max(0.0, -difference), min(1.0, 1.0 - difference)
        for _ in range(_NARROWINGS):
            tried = np.linspace(low, high, _CUTS)
            capital = log_capital(*first, np.clip(tried + difference, 0.0, 1.0), above=True)
            capital += log_capital(*second, tried, above=False)
            least = int(capital.argmin())
            if capital[least] < enough:
                return False
            low, high = tried[max(least - 1, 0)], tried[min(least + 1, _CUTS - 1)]
        return True

    outer = -1.0
    if not refused(outer):
        return outer
    for _ in range(_HALVINGS):
        middle = (outer + inner) / 2
        outer, inner = (middle, inner) if refused(middle) else (outer, middle)
    return outer

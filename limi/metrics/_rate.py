"""A share with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Rate", "Unmeasured", "clopper_pearson", "rate_of"]


@dataclass(frozen=True)
class Rate:
    """A share with its interval."""

    estimate: float
    low: float
    high: float
    n: int
    anytime: bool = False  # does the interval hold whenever one stops? Else n was fixed before


@dataclass(frozen=True)
class Unmeasured(Rate):
    """A share that nobody measured: NaN, with the reason."""

    estimate: float = math.nan
    low: float = 0.0
    high: float = 1.0
    n: int = 0
    reason: str = ""


def rate_of(hits: int, n: int, confidence: float = 0.95) -> Rate:
    """A share from its counts."""
    if n == 0:
        return Rate(math.nan, 0.0, 1.0, 0)
    low, high = clopper_pearson(hits, n, confidence)
    return Rate(hits / n, low, high, n)


def clopper_pearson(hits: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of a binomial share; it covers the truth at least this often.

    >>> low, high = clopper_pearson(0, 100)
    >>> round(low, 4), round(high, 4)
    (0.0, 0.0362)
    """
    from scipy.special import betaincinv  # late: it takes 0.15 s

    tail = (1 - confidence) / 2
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return low, high

"""How often decisions flip, with intervals: shares of a named population."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm

from limi.types import Mask

__all__ = ["Rate", "clopper_pearson", "flip_rate", "group_discrimination", "normal_bound"]


@dataclass(frozen=True)
class Rate:
    """A share with its interval."""

    estimate: float
    low: float
    high: float
    n: int


def flip_rate(flips: Mask, confidence: float = 0.95) -> Rate:
    """Share of rows that flip (IF_o over a table, IF_r over uniform rows).

    From 0 (no decision depends on a protected value) to 1; lower is better. The interval is the
    exact Clopper-Pearson one.

    >>> flip_rate(np.array([True, False, False, False])).estimate
    0.25
    """
    return rate_of(int(np.sum(flips)), len(flips), confidence)


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
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, hits, n - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, n - hits)) if hits < n else 1.0
    return low, high


def normal_bound(hits: int, n: int, confidence: float) -> float:
    """Half-width by the normal approximation with a one-sided quantile, as THEMIS 2.0 has it."""
    share = hits / n
    return float(norm.ppf(confidence)) * math.sqrt(share * (1 - share) / n)


def group_discrimination(favorable: NDArray[np.int64], n: int) -> float:
    """Largest difference between two groups' shares of favorable decisions (THEMIS group score).

    `favorable` counts, for each protected combination, the favorable decisions among the same n
    rows. From 0 (all groups alike) to 1; lower is better.

    >>> group_discrimination(np.array([30, 50]), 100)
    0.2
    """
    if n == 0:
        return 0.0
    shares = favorable / n
    return round(float(shares.max() - shares.min()), 12)

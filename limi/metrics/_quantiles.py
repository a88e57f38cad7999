"""Quantiles of a sample with their intervals, by order statistics: whatever the distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Quantile", "quantile_interval"]


@dataclass(frozen=True)
class Quantile:
    """A quantile of the people of a sample, with its 95 % interval. An end that so few people
    cannot tell is NaN."""

    share: float
    value: float
    low: float
    high: float


def quantile_interval(
    values: NDArray[np.float64], share: float, confidence: float = 0.95
) -> Quantile:
    """A quantile with an interval from order statistics: how many of n people lie below the true
    quantile is binomial, whatever the distribution.

    >>> quantile_interval(np.arange(101.0), 0.5)
    Quantile(share=0.5, value=50.0, low=40.0, high=60.0)
    """
    from scipy.stats import binom  # late, because it takes a second

    ascending = np.sort(values)
    n, error = len(ascending), (1 - confidence) / 2
    low = int(binom.ppf(error, n, share)) - 1
    high = int(binom.ppf(1 - error, n, share))
    # A rank outside the sample means that so few people cannot tell this end.
    ends = [float(ascending[at]) if 0 <= at < n else math.nan for at in (low, high)]
    return Quantile(share, float(np.quantile(ascending, share)), *ends)

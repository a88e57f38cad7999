"""Ranks of methods over targets, with the test of Friedman and the distance of Nemenyi.

Each target ranks the methods from 1 (best); equal ones share the mean of their ranks. Friedman's
test says whether the mean ranks differ more than chance allows, in the form of Iman and Davenport;
where they do, two methods differ if their mean ranks lie further apart than the critical
difference, which takes all pairs into account. Both follow Demsar (2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput

__all__ = ["Ranks", "critical_difference", "rank"]


@dataclass(frozen=True)
class Ranks:
    """Mean ranks of methods, best first."""

    methods: tuple[str, ...]
    means: tuple[float, ...]
    firsts: tuple[float, ...]  # on how many targets each is first; shared ones in parts
    n_targets: int
    statistic: float  # chi-square of Friedman
    p_value: float  # of Iman and Davenport's F
    difference: float  # the critical one

    def alike(self) -> list[tuple[int, int]]:
        """Longest runs of methods, as places in the order, that cannot be told apart."""
        runs: list[tuple[int, int]] = []
        for start, low in enumerate(self.means):
            end = max(i for i, mean in enumerate(self.means) if mean - low <= self.difference)
            if end > start and not (runs and runs[-1][1] >= end):
                runs.append((start, end))
        return runs


def rank(
    methods: Sequence[str],
    values: NDArray[np.float64],
    *,
    more_is_better: bool = True,
    level: float = 0.05,
) -> Ranks:
    """Ranks of methods (columns) over targets (rows); a NaN is worse than anything, and NaNs tie.

    InvalidInput for fewer than two methods or targets, of which there are no ranks.
    """
    from scipy import stats

    values = np.asarray(values, dtype=np.float64)
    n, k = values.shape
    if n < 2 or k < 2:
        raise InvalidInput(
            f"ranks need at least two methods and two targets; there are {k} and {n}"
        )
    signed = -values if more_is_better else values
    ranks = stats.rankdata(np.where(np.isnan(signed), np.inf, signed), axis=1)
    means = ranks.mean(axis=0)
    statistic = _friedman(ranks)
    if statistic >= n * (k - 1):  # every target ranks alike
        p_value = 0.0
    else:
        davenport = (n - 1) * statistic / (n * (k - 1) - statistic)
        p_value = float(stats.f.sf(davenport, k - 1, (k - 1) * (n - 1)))
    best = ranks == ranks.min(axis=1, keepdims=True)
    firsts = (best / best.sum(axis=1, keepdims=True)).sum(axis=0)
    order = np.argsort(means, kind="stable")
    return Ranks(
        tuple(methods[i] for i in order),
        tuple(float(means[i]) for i in order),
        tuple(float(firsts[i]) for i in order),
        n,
        float(statistic),
        p_value,
        critical_difference(k, n, level),
    )


def _friedman(ranks: NDArray[np.float64]) -> float:
    """Chi-square of mean ranks, as Demsar states it; ties share ranks and are not corrected for."""
    n, k = ranks.shape
    means = ranks.mean(axis=0)
    return float(12 * n / (k * (k + 1)) * ((means**2).sum() - k * (k + 1) ** 2 / 4))


def critical_difference(n_methods: int, n_targets: int, level: float = 0.05) -> float:
    """How far apart mean ranks must lie for two methods to differ (Nemenyi)."""
    return _quantile(n_methods, level) * float(
        np.sqrt(n_methods * (n_methods + 1) / (6 * n_targets))
    )


@cache
def _quantile(n_methods: int, level: float) -> float:
    """Of the studentized range; an integral that takes a while."""
    from scipy import stats

    return float(stats.studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2))

"""Quantiles of a sample with their intervals, and of the tail beyond it.

What a sample of people can tell of its own quantiles is told by order statistics, whatever the
distribution. What lies beyond, such as the person in ten thousand, is estimated from the widest
values alone (*peaks over threshold*): beyond a high threshold u nearly every distribution comes to
follow a generalised Pareto distribution, P(X - u > y) = (1 + shape y / scale)^(-1 / shape).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Quantile", "Tail", "estimate_tail", "quantile_interval"]

_BEYOND = (0.999, 0.9999)  # shares whose quantile is estimated
_PARTS = (10, 20, 40)  # the widest 1 of so many people; the first whose values follow the curve
_LEAST, _MOST = 50, 1000  # people beyond the threshold: under the one nothing is estimated
_DEVIANCE = 5.991  # 95 % of a chi-squared of two degrees
_SHARPEST = -1.0  # the shape of a tail that ends like a uniform one; sharper ones have no best fit


@dataclass(frozen=True)
class Quantile:
    """A quantile of the people of a sample, with its 95 % interval. An end that so few people
    cannot tell is NaN."""

    share: float
    value: float
    low: float
    high: float

    @staticmethod
    def from_dict(tree: Mapping[str, Any]) -> Quantile:
        """The inverse of `dataclasses.asdict`, from JSON, where NaN is null."""
        return Quantile(**{name: math.nan if tree[name] is None else tree[name] for name in tree})


@dataclass(frozen=True)
class Tail:
    """What the widest values of a sample tell of those beyond it, or why they tell nothing."""

    threshold: float = math.nan
    exceedances: int = 0  # people beyond the threshold
    shape: float = math.nan  # below 0 the tail ends somewhere; above 0 it falls like a power
    levels: tuple[Quantile, ...] = ()
    reason: str = ""  # why no level is estimated

    @staticmethod
    def from_dict(tree: Mapping[str, Any]) -> Tail:
        """The inverse of `dataclasses.asdict`, from JSON."""
        numbers = {
            name: math.nan if tree[name] is None else float(tree[name])
            for name in ("threshold", "shape")
        }
        levels = tuple(map(Quantile.from_dict, tree["levels"]))
        return Tail(
            **numbers, exceedances=tree["exceedances"], levels=levels, reason=tree["reason"]
        )


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


def estimate_tail(values: NDArray[np.float64]) -> Tail:
    """Quantiles beyond a sample of values from 0 up, by peaks over threshold.

    The threshold is the lowest of three (a tenth, a twentieth, a fortieth of the people lie beyond
    it) whose excesses follow a generalised Pareto distribution, held to it by the Cramér-von Mises
    statistic at its 5 % point. Levels are those of the best fit; intervals are the lowest and the
    highest level of all curves in the 95 % likelihood region of shape and scale together. So they
    hold for all levels at once, and also for a tail that ends abruptly, where the usual interval
    of one level at a time holds in 85 % of samples only.
    """
    ascending = np.sort(values)
    n = len(ascending)
    if n < _LEAST * _PARTS[0]:
        return Tail(reason=f"at least {_LEAST * _PARTS[0]} people are needed, and there are {n:,}")
    most = 0
    for part in _PARTS:
        k = min(n // part, _MOST)
        threshold = ascending[n - k - 1]
        excess = ascending[ascending > threshold] - threshold
        most = max(most, len(excess))
        if len(excess) < _LEAST:
            continue
        fit = _Fit.of(excess / excess.mean())
        if fit.misfit <= _critical(fit.shape):
            return _describe(fit, float(threshold), float(excess.mean()), len(excess), n)
    if most < _LEAST:
        return Tail(
            reason=(
                f"{most} of {n:,} people lie beyond the difference that most share, and {_LEAST} "
                "are needed"
            )
        )
    return Tail(reason="the widest differences do not follow a smooth curve")


def _describe(fit: _Fit, threshold: float, scale: float, k: int, n: int) -> Tail:
    levels = []
    for share in _BEYOND:
        times = k / n / (1 - share)  # how much rarer the level is than the threshold
        if times <= 1:
            continue
        value, low, high = (threshold + scale * level for level in fit.level(times))
        levels.append(Quantile(share, value, low, high))
    return Tail(threshold, k, fit.shape, tuple(levels))


# -- the generalised Pareto distribution --------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Fit:
    """The likelihood of a generalised Pareto distribution, for excesses whose mean is 1.

    With t = shape / scale, the log-likelihood of one excess is log(t / shape) - (1 + 1 / shape) h,
    where h is the mean of log(1 + t y): for each t the best shape is h itself, and a region of
    the likelihood is, for each t, a range of shapes. So one line of values of t holds it all.
    """

    excess: NDArray[np.float64]
    t: NDArray[np.float64]
    h: NDArray[np.float64]
    best: int  # place of the best t

    @staticmethod
    def of(excess: NDArray[np.float64]) -> _Fit:
        """The best fit of excesses, which must be above 0."""
        largest = float(excess.max())
        # Below 0 the curve ends at -1 / t, and no excess may lie beyond that.
        ending = (np.geomspace(1e-9, 1 - 1e-4, 160) - 1) / largest
        t = np.concatenate([ending, np.geomspace(1e-4 / largest, 1e4 / np.median(excess), 240)])
        h = np.log1p(t[:, None] * excess).mean(axis=1)
        return _Fit(excess, t, h, int(_likelihood(t, h, np.maximum(h, _SHARPEST)).argmax()))

    @property
    def shape(self) -> float:
        """Of the best fit."""
        return max(float(self.h[self.best]), _SHARPEST)

    @property
    def misfit(self) -> float:
        """The Cramér-von Mises distance of the excesses from the best fit."""
        ascending = np.sort(self.excess)
        k = len(ascending)
        below = -np.expm1(-np.log1p(self.t[self.best] * ascending) / self.shape)
        places = (2 * np.arange(k) + 1) / (2 * k)
        return float(1 / (12 * k) + ((below - places) ** 2).sum())

    def level(self, times: float) -> tuple[float, float, float]:
        """The excess that is so many times rarer than any, and its interval."""
        value = np.expm1(self.shape * math.log(times)) / self.t[self.best]
        t, *ends = self._region
        reached = [np.expm1(shape * math.log(times)) / t for shape in ends]
        return float(value), float(np.min(reached)), float(np.max(reached))

    @property
    def _region(self) -> tuple[NDArray[np.float64], ...]:
        """Values of t in the likelihood region, and the two ends of its shapes at each."""
        peaks = np.maximum(self.h, _SHARPEST)
        highest = _likelihood(self.t, self.h, peaks)
        least = highest[self.best] - _DEVIANCE / (2 * len(self.excess))
        inside = highest >= least
        t, h, peaks = self.t[inside], self.h[inside], peaks[inside]
        ends = []
        for far in (-25.0, 4.0):  # logarithms of shapes that are surely outside
            near, outside = np.log(np.abs(peaks)), np.full(len(t), far)
            for _ in range(50):
                middle = (near + outside) / 2
                shape = np.sign(peaks) * np.exp(middle)
                held = (_likelihood(t, h, shape) >= least) & (shape >= _SHARPEST)
                near, outside = np.where(held, middle, near), np.where(held, outside, middle)
            ends.append(np.sign(peaks) * np.exp(near))
        return t, ends[0], ends[1]


def _likelihood(
    t: NDArray[np.float64], h: NDArray[np.float64], shape: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The mean log-likelihood of the excesses."""
    return np.log(t / shape) - (1 + 1 / shape) * h


def _critical(shape: float) -> float:
    """The distance that one of twenty samples of this very shape exceeds, by simulation of 500
    samples of 100 for each shape."""
    shapes = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 2.0)
    points = (0.39, 0.25, 0.191, 0.168, 0.148, 0.13, 0.128, 0.111, 0.107)
    return float(np.interp(shape, shapes, points))

"""What if everyone had this value? The same people, all decided as if they were A, B, C, ...

Decisions are a table (people, values): each row of a sample of a population, decided under every
value of a protected column, its own among them. Columns of one table are the same people, so they
are compared pair by pair within people: only those count who are decided favorably as one and
unfavorably as the other. The shares of values among the people have no say in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limi.errors import InvalidInput
from limi.metrics._holm import holm
from limi.metrics._rate import Rate, rate_of

__all__ = [
    "LEVEL",
    "Comparison",
    "ValuePair",
    "cochran_q",
    "compare_values",
    "mcnemar",
    "paired_interval",
    "what_if_rates",
]

LEVEL = 0.05
"""Chance at most that a report names a value as favored where no value is."""

MOST_PAIRS = 45  # pairs that are kept, all of ten values; of more the widest supported ones
_HALVINGS = 40
_FEWEST_MIXED, _FEWEST_CELLS = 4, 24  # under these Q is not near its chi-squared distribution

Decisions = NDArray[np.bool_] | NDArray[np.int8]
"""(n, values): is a person decided favorably under a value? As numbers: 1 yes, -1 no, and 0 where
the score lies on the edge and decides neither."""


@dataclass(frozen=True)
class ValuePair:
    """Two values, by their places, and how the same people are decided under both."""

    first: int  # the value that more people are decided favorably under
    second: int
    only_first: int  # people decided favorably as the first and unfavorably as the second
    only_second: int
    difference: float  # of the two, as a share of all people
    low: float  # all intervals of a report hold together with 95 % confidence
    high: float
    p_value: float  # McNemar's, exact
    corrected: float  # Holm's over all pairs of the family, times the families of a report

    @property
    def supported(self) -> bool:
        """Is the first favored over the second, beyond what chance explains?"""
        return self.corrected <= LEVEL and self.low > 0


@dataclass(frozen=True)
class Comparison:
    """The same people under every value of a table."""

    n: int
    rates: tuple[Rate, ...]  # share decided favorably under each value
    pairs: tuple[ValuePair, ...]  # widest first; all of them, or the supported ones of very many
    n_pairs: int
    n_supported: int
    q: float  # Cochran's, over all values at once
    q_p_value: float  # NaN where too few people are decided differently at all


def what_if_rates(
    decided: Decisions, confidence: float = 0.95, *, together: bool = False
) -> tuple[Rate, ...]:
    """Share of the same people decided favorably as each value, with exact intervals.

    favorable as the value / people, from 0 to 1; neither end is better, differences between values
    are what counts. `together` widens the intervals so that all of them hold at once with this
    confidence (Bonferroni): a band for a curve. Else each holds for itself.

    >>> [rate.estimate for rate in what_if_rates(np.array([[True, False], [True, True]]))]
    [1.0, 0.5]
    """
    n, n_values = decided.shape
    each = 1 - (1 - confidence) / n_values if together else confidence
    return tuple(rate_of(int(hits), n, each) for hits in (decided > 0).sum(axis=0))


def mcnemar(only_first: ArrayLike, only_second: ArrayLike) -> NDArray[np.float64]:
    """Exact two-sided p-value of McNemar's test: could a fair coin have decided who is favored?

    P(a fair coin is at least as one-sided over all people who are decided favorably as one value
    and not as the other), from 0 to 1. 1 where nobody is.

    >>> mcnemar([5, 10], [5, 0]).tolist()
    [1.0, 0.001953125]
    """
    from scipy.special import bdtr  # late: it takes 0.15 s

    one, other = (np.asarray(count, dtype=np.int64) for count in (only_first, only_second))
    return np.asarray(np.minimum(1.0, 2 * bdtr(np.minimum(one, other), one + other, 0.5)))


def paired_interval(
    only_first: ArrayLike, only_second: ArrayLike, n: ArrayLike, confidence: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the interval for a difference of two shares of the same n people (Tango's).

    The differences d that a score test does not reject: |only_first - only_second - n d| is at most
    z times its standard deviation under d, of which the share of discordant people is the most
    likely one. From -1 to 1; it covers at small counts too, where the usual one does not.

    >>> low, high = paired_interval(200, 100, 10_000)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0066, 0.0135)
    """
    from scipy.special import ndtri  # late: it takes 0.15 s

    if not 0 < confidence < 1:
        raise InvalidInput(f"confidence is {confidence}; it must lie between 0 and 1")
    b, c, people = np.broadcast_arrays(
        *(np.asarray(x, dtype=np.float64) for x in (only_first, only_second, n))
    )
    z = float(ndtri((1 + confidence) / 2))
    # Where the score reaches z in size, by halving: its size grows to both sides of the estimate.
    # From the outside, so that nothing is cut off.
    inner = np.stack([(b - c) / people] * 2)
    outer = np.stack([np.full(b.shape, -1.0), np.full(b.shape, 1.0)])
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2
        near = np.abs(_score(b, c, people, middle)) < z
        inner, outer = np.where(near, middle, inner), np.where(near, outer, middle)
    return outer[0], outer[1]


def _score(
    b: NDArray[np.float64], c: NDArray[np.float64], n: NDArray[np.float64], d: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(b - c - n d) over its standard deviation, if d is the true difference."""
    # The most likely share of people decided favorably as the second value only, given d, solves
    # 2 n x^2 + linear x - c d (1 - d) = 0.
    linear = (2 * n - b + c) * d - b - c
    root = np.sqrt(np.maximum(linear**2 + 8 * n * c * d * (1 - d), 0))
    # Of the two ways to write the larger root, the one that does not cancel.
    with np.errstate(divide="ignore", invalid="ignore"):
        reverse = np.where(
            linear > 0, 2 * c * d * (1 - d) / (linear + root), (root - linear) / 4 / n
        )
    variance = np.maximum(n * (2 * np.nan_to_num(reverse) + d * (1 - d)), 0)
    gap = b - c - n * d
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap == 0, 0.0, gap / np.sqrt(variance))


def cochran_q(decided: Decisions) -> tuple[float, float]:
    """Cochran's Q over all values at once, and its p-value: are they all alike?

    (K - 1) sum over values of (favorable - mean)^2 * K / sum over people of u (K - u), where u is
    under how many of the K values a person is decided favorably; chi-squared with K - 1 degrees of
    freedom if the values are exchangeable. The p-value of two values is McNemar's exact one; it is
    NaN where fewer than four people, or 24 of their decisions, tell the values apart. People on
    the edge under any value are left out.
    """
    from scipy.special import chdtrc  # late: it takes 0.15 s

    n_values = decided.shape[1]
    if decided.dtype != np.bool_:
        decided = decided[(decided != 0).all(axis=1)] > 0
    favorable = decided.sum(axis=0, dtype=np.float64)
    held = decided.sum(axis=1, dtype=np.int64)
    mixed = held[(held > 0) & (held < n_values)]
    if not len(mixed):
        return 0.0, 1.0
    spread = ((favorable - favorable.mean()) ** 2).sum()
    q = float(n_values * (n_values - 1) * spread / (mixed * (n_values - mixed)).sum())
    if n_values == 2:
        return q, float(mcnemar(*(int((column & ~decided.all(1)).sum()) for column in decided.T)))
    enough = len(mixed) >= _FEWEST_MIXED and len(mixed) * n_values >= _FEWEST_CELLS
    return q, float(chdtrc(n_values - 1, q)) if enough else math.nan


def compare_values(
    tables: Sequence[Decisions],
    *,
    families: int = 1,
    together: Sequence[bool] = (),
    most: int = MOST_PAIRS,
) -> list[Comparison]:
    """The same people under every value, and every pair of values compared within people.

    P-values are corrected for all pairs of all tables (Holm), and once more for the number of such
    families that a report shows (Bonferroni): it names anyone wrongly at most one time in twenty.
    Intervals of differences hold for all pairs of these families at once. Where `together` says so,
    a table's rates have a band.
    """
    compared = [_pairs(decided) for decided in tables]
    p_values = [mcnemar(pairs.only_first, pairs.only_second) for pairs in compared]
    n_pairs = sum(map(len, p_values))
    corrected = np.split(
        np.minimum(1.0, families * holm(np.concatenate([np.empty(0), *p_values]))),
        np.cumsum([len(part) for part in p_values]),
    )[:-1]
    confidence = 1 - LEVEL / max(1, families * n_pairs)
    return [
        pairs.told(decided, p_value, adjusted, confidence, most, band)
        for decided, pairs, p_value, adjusted, band in zip(
            tables, compared, p_values, corrected, together or [False] * len(tables), strict=True
        )
    ]


@dataclass(frozen=True)
class _Pairs:
    """All pairs of values of a table, the one that more people are favorable under first."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    only_first: NDArray[np.int64]
    only_second: NDArray[np.int64]

    def told(
        self,
        decided: Decisions,
        p_values: NDArray[np.float64],
        corrected: NDArray[np.float64],
        confidence: float,
        most: int,
        together: bool,
    ) -> Comparison:
        """What there is to say of a table."""
        n = len(decided)
        low, high = paired_interval(self.only_first, self.only_second, n, confidence)
        supported = (corrected <= LEVEL) & (low > 0)
        order = np.argsort(self.only_second - self.only_first, kind="stable")
        if len(order) > most:
            order = order[supported[order]][:most]
        pairs = tuple(
            ValuePair(
                int(self.first[k]),
                int(self.second[k]),
                int(self.only_first[k]),
                int(self.only_second[k]),
                float((self.only_first[k] - self.only_second[k]) / n),
                float(low[k]),
                float(high[k]),
                float(p_values[k]),
                float(corrected[k]),
            )
            for k in order
        )
        rates = what_if_rates(decided, together=together)
        return Comparison(n, rates, pairs, len(low), int(supported.sum()), *cochran_q(decided))


def _pairs(decided: Decisions) -> _Pairs:
    first, second = np.triu_indices(decided.shape[1], 1)
    against = ~decided if decided.dtype == np.bool_ else decided < 0
    # Sums of ones are exact in floating point, and their product is fast.
    counts = (decided > 0).T.astype(np.float64) @ against.astype(np.float64)
    one, other = counts[first, second], counts[second, first]
    turned = other > one
    return _Pairs(
        np.where(turned, second, first),
        np.where(turned, first, second),
        np.where(turned, other, one).astype(np.int64),
        np.where(turned, one, other).astype(np.int64),
    )

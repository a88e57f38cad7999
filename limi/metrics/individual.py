"""How often decisions flip, with intervals, and how alike people are treated who are alike."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.metrics._base import INDIVIDUAL, Evidence, Figure, metric
from limi.metrics._rate import Rate, clopper_pearson, rate_of
from limi.metrics._space import Space, find_neighbours
from limi.table.schema import Schema
from limi.types import Labels, Mask, Rows

__all__ = [
    "Rate",
    "causal_discrimination",
    "clopper_pearson",
    "consistency",
    "flip_rate",
    "generalized_entropy_error",
    "group_discrimination",
    "rate_of",
]


def flip_rate(flips: Mask, confidence: float = 0.95) -> Rate:
    """Share of rows that flip (IF_o over a table, IF_r over uniform rows).

    From 0 (no decision depends on a protected value) to 1; lower is better. The interval is the
    exact Clopper-Pearson one.

    >>> flip_rate(np.array([True, False, False, False])).estimate
    0.25
    """
    return rate_of(int(np.sum(flips)), len(flips), confidence)


def causal_discrimination(flips: Mask, confidence: float = 0.99) -> Rate:
    """Share of uniform random rows that flip (THEMIS causal score), at THEMIS's confidence.

    From 0 to 1; lower is better. The same share as IF_r; the interval is exact here, where the
    released program has a one-sided normal one.
    """
    return flip_rate(flips, confidence)


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


def consistency(decisions: Mask, rows: Rows, schema: Schema, *, n_neighbours: int = 5) -> float:
    """How alike the decisions of people are who are alike but for protected columns.

    1 - mean |decision - mean decision of the row's nearest neighbours|, from 0 to 1; higher is
    better. As in AIF360 a row is the first of its own neighbours, by Euclidean distance; here
    numbers are standardised, levels have an axis each, and protected columns do not count, for with
    them a model that treats groups apart would look consistent.
    """
    if len(rows) != len(decisions) or len(rows) < n_neighbours:
        raise InvalidInput(
            f"there are {len(rows)} rows and {len(decisions)} decisions; consistency needs one "
            f"decision per row, and at least {n_neighbours} rows"
        )
    space = Space.learn(rows, schema, schema.free_index)
    decided = np.asarray(decisions, dtype=np.float64)
    neighbours = find_neighbours(space.place(rows, np.float64), n_neighbours)
    return float(1 - np.abs(decided - decided[neighbours].mean(axis=1)).mean())


def generalized_entropy_error(decisions: Mask, labels: Labels, alpha: float = 2.0) -> float:
    """Inequality of benefits, where a benefit is 1 + decision - true label (AIF360's definition).

    mean((b / mean b)^alpha - 1) / (alpha (alpha - 1)), and its limits at 0 (mean log deviation) and
    1 (Theil). From 0 (every row benefits alike) upwards; lower is better. Rows with an unknown
    label (-1) are left out.

    >>> generalized_entropy_error(np.array([True, False]), np.array([1, 0]))
    0.0
    """
    from scipy.special import xlogy  # late: it takes 0.15 s

    known = labels >= 0
    if not known.any():
        raise InvalidInput("no row has a label, so no benefit can be computed")
    benefit = 1.0 + decisions[known] - labels[known]
    if not benefit.any():
        return 0.0  # nobody benefits, and nobody less than another
    share = benefit / benefit.mean()
    if alpha == 1:
        return float(xlogy(share, share).mean())
    if alpha == 0:
        if not share.all():
            return math.inf
        return float(-np.log(share).mean())
    return float((share**alpha - 1).mean() / (alpha * (alpha - 1)))


# -- measured in every run --------------------------------------------------------------

_MOST_CONSISTENT = 4_000


@metric(
    INDIVIDUAL,
    name="group_discrimination",
    formula="largest difference between two protected values' shares of favorable decisions on the "
    "same uniform rows",
    range="0 to 1",
    better="lower",
    main=False,
)
def _measure_group_discrimination(evidence: Evidence) -> Figure | None:
    """Largest gap between two protected values in favorable decisions on the same uniform rows
    (THEMIS)."""
    checked = evidence.checked.get("uniform")
    if checked is None or not len(checked.favorable) or evidence.decision.kind != "favorable":
        return None
    return Figure(group_discrimination(checked.favorable, len(checked)), n=len(checked))


@metric(
    INDIVIDUAL,
    name="consistency",
    formula="1 - mean |decision - mean decision of the 5 nearest rows|, as in AIF360, by the "
    "columns that are not protected",
    range="0 to 1",
    better="higher",
)
def _measure_consistency(evidence: Evidence) -> Figure | None:
    """How alike a row's decision and those of its five nearest are, the row itself counted among
    them and protected columns left aside; on {n} rows."""
    decided = evidence.decided
    if decided is None:
        return None
    chosen = evidence.rng("consistency").permutation(len(decided.rows))[:_MOST_CONSISTENT]
    if len(chosen) < 5 or not evidence.in_time("consistency"):
        return None
    alike = consistency(decided.favorable[chosen], decided.rows[chosen], evidence.schema)
    return Figure(alike, n=len(chosen))


@metric(
    INDIVIDUAL,
    name="generalized_entropy_error",
    formula="mean((b / mean b)² - 1) / 2 with the benefit b = 1 + decision - label (AIF360's, "
    "alpha 2)",
    range="from 0",
    better="lower",
    short="GE(2)",
    main=False,
)
def _measure_entropy(evidence: Evidence) -> Figure | None:
    """Inequality of benefits, where a wrong favorable decision is one too much and a wrong
    unfavorable one too little."""
    decided = evidence.decided
    if decided is None or decided.labels is None or not (decided.labels >= 0).any():
        return None
    error = generalized_entropy_error(decided.favorable, decided.labels)
    return Figure(error, n=int((decided.labels >= 0).sum()))

"""Targets of Fairlearn: exponentiated gradient over logistic regressions, which see the column.

It narrows the gap between groups, by a mixture of classifiers; that is a different aim from equal
decisions for partners, so how often these still flip is worth asking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lab.targets import estimator
from lab.targets.making import Making
from limi.errors import missing

__all__ = ["Settings", "make"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The gap that is narrowed, and how far."""

    gap: Literal["demographic-parity", "equalized-odds"] = "demographic-parity"
    most: float = 0.02  # of it that is allowed
    rounds: int = 20


@dataclass(frozen=True, eq=False)
class Mixture:
    """A function of a frame: the chance of the favorable label over the classifiers mixed."""

    mixed: Any
    encoder: Any
    columns: tuple[str, ...]
    takes = "frame"
    output = "score"

    def __call__(self, frame: Any) -> NDArray[np.float64]:
        """Scores."""
        shares = self.mixed._pmf_predict(self.encoder.transform(frame[list(self.columns)]))
        return np.asarray(shares)[:, 1]


def make(making: Making) -> Any:
    """The mixture; fitted again in every process, which takes seconds."""
    try:
        from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient
    except ImportError:
        raise missing("fairlearn", "bench", "a target of the recipe 'reductions'") from None
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    told: Settings = making.settings
    table = making.table
    columns = tuple(making.schema.names)
    frame = table.frame[list(columns)]
    labels = (table.frame[table.target].to_numpy() == table.favorable).astype(np.int8)
    groups = table.frame[list(making.spec.protected)].astype(str).agg("-".join, axis=1)
    encoder = estimator.encode(frame, one_hot=True).fit(frame)
    gap = DemographicParity if told.gap == "demographic-parity" else EqualizedOdds
    mixed = ExponentiatedGradient(
        LogisticRegression(max_iter=1_000),
        gap(difference_bound=told.most),
        max_iter=told.rounds,
    )
    inputs = encoder.transform(frame)
    with threadpool_limits(limits=1):
        mixed.fit(inputs, labels, sensitive_features=groups.to_numpy())
    return Mixture(mixed, encoder, columns)

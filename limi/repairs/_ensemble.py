"""Models that see no protected column, and what they would decide together.

Faithfulness
- Released program: standard scaling, then the mean probability of k-NN (5), an MLP of one hidden
  layer of 100, an RBF machine with Platt scaling, a random forest and Gaussian naive Bayes, all
  with scikit-learn's defaults; fitted on 80 % of the rows (60 % up to 10,000 rows) with
  random_state 42. Here too.
- Released program: the machine is fitted on all of those rows. Here: on at most 5,000 of them,
  since its time grows with their square; `machine_rows=None` takes all.
- Released program: tables without missing cells. Here: a missing cell takes its column's mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from limi.decisions import favors
from limi.table.schema import Schema
from limi.types import Index, Labels, Rows, Scores

__all__ = ["Ensemble", "fit"]

_SEED = 42
_LARGE_TABLE = 10_000
_MACHINE_ROWS = 5_000


@dataclass(frozen=True)
class Ensemble:
    """Five fitted classifiers of scaled columns."""

    columns: Index
    scaling: Any
    members: tuple[Any, ...]

    def score(self, rows: Rows) -> Scores:
        """Mean probability of the favorable label."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1):
            inputs = self.scaling.transform(rows[:, self.columns])
            scores = [member.predict_proba(inputs)[:, 1] for member in self.members]
        return np.asarray(np.mean(scores, axis=0))

    def decide(self, rows: Rows) -> Labels:
        """1 where the mean is above one half."""
        labels: Labels = favors(self.score(rows)).astype(np.int8)
        return labels


def fit(
    rows: Rows,
    labels: Labels,
    schema: Schema,
    *,
    blind_to: Collection[str],
    machine_rows: int | None = _MACHINE_ROWS,
) -> Ensemble:
    """The released program's ensemble, which does not see the columns it is blind to."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.impute import SimpleImputer
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC
    from threadpoolctl import threadpool_limits

    columns = np.array([i for i, name in enumerate(schema.names) if name not in blind_to])
    share = 0.8 if len(rows) > _LARGE_TABLE else 0.6
    known, _, truth, _ = train_test_split(
        rows[:, columns], labels, train_size=share, random_state=_SEED
    )
    scaling = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    inputs = scaling.fit_transform(known)
    some = slice(None) if machine_rows is None else slice(machine_rows)
    members = (
        KNeighborsClassifier(min(5, len(inputs))),
        MLPClassifier(random_state=_SEED),
        # What `SVC(probability=True)` does, in the words of scikit-learn 1.9.
        CalibratedClassifierCV(SVC(random_state=_SEED), ensemble=False),
        RandomForestClassifier(random_state=_SEED),
        GaussianNB(),
    )
    with threadpool_limits(limits=1), warnings.catch_warnings():
        # 200 rounds are the released program's setting, whether they suffice or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for place, member in enumerate(members):
            here = some if place == 2 else slice(None)
            member.fit(inputs[here], truth[here])
    return Ensemble(columns, scaling, members)

"""The findings that look most like the population, by density-ratio resampling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limi.table.schema import Schema
from limi.types import Index, Rows

__all__ = ["population_odds", "representative"]

_MOST_ROWS = 20_000  # of either side, to fit on
_FOLDS = 2
_MOST_LEVELS = 255  # what scikit-learn's boosted trees take as categories


def representative(
    real: Rows, found: Rows, schema: Schema, n: int, rng: np.random.Generator
) -> Index:
    """Positions of n findings drawn without replacement, likelier the more they look real.

    A finding is weighted by the odds that a classifier of real rows against findings gives it,
    so that the draw follows the population's density wherever there are findings at all.
    """
    odds = population_odds(real, found, schema, rng)
    # Gumbel's trick: the n largest of log-weight plus noise are a weighted draw without repeats.
    noise = -np.log(-np.log(rng.uniform(np.finfo(float).tiny, 1.0, len(found))))
    return np.sort(np.argsort(-(odds + noise), kind="stable")[:n])


def population_odds(
    real: Rows, found: Rows, schema: Schema, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Log-odds of each finding to be a real row, from a classifier that has not seen it.

    Above 0: denser in the population than among the findings. Both sides weigh the same, so that
    their numbers do not matter.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    if len(found) < 2 * _FOLDS or len(real) < 2:
        return np.zeros(len(found))
    categories = [
        c.kind != "numerical" and c.kind != "ordered" and c.size <= _MOST_LEVELS
        for c in schema.columns
    ]
    real = real[rng.permutation(len(real))[:_MOST_ROWS]]
    fold = rng.permutation(np.arange(len(found)) % _FOLDS)
    odds = np.empty(len(found))
    for held_out in range(_FOLDS):
        others = found[fold != held_out]
        others = others[rng.permutation(len(others))[:_MOST_ROWS]]
        is_real = np.arange(len(real) + len(others)) < len(real)
        weight = np.where(is_real, 0.5 / len(real), 0.5 / len(others)) * len(is_real)
        classifier = HistGradientBoostingClassifier(
            max_iter=50,
            max_leaf_nodes=15,
            min_samples_leaf=min(20, max(1, len(is_real) // 20)),
            categorical_features=categories,
            early_stopping=False,
            random_state=0,
        )
        # OpenMP teams that wait for one another on a busy machine are slower than one thread.
        with threadpool_limits(limits=1):
            classifier.fit(np.concatenate([real, others]), is_real, sample_weight=weight)
            odds[fold == held_out] = classifier.decision_function(found[fold == held_out])
    return odds

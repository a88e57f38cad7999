"""The findings that look most like the population, by density-ratio resampling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from limi.table.schema import Schema
from limi.types import Index, Rows

__all__ = ["population_odds", "representative"]

_MOST_ROWS = 20_000  # of either side, to fit on
_MOST_CELLS = 4_000_000  # of either side: of a wide table fewer rows
_FOLDS = 2
_MOST_LEVELS = 255  # what scikit-learn's boosted trees take as categories, and as bins of numbers


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
    most = max(min(_MOST_ROWS, _MOST_CELLS // len(schema)), 1)
    real = real[rng.permutation(len(real))[:most]]
    fold = rng.permutation(np.arange(len(found)) % _FOLDS)
    odds = np.empty(len(found))
    for held_out in range(_FOLDS):
        others = found[fold != held_out]
        others = others[rng.permutation(len(others))[:most]]
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
        place = _bins_of(real, others)
        # OpenMP teams that wait for one another on a busy machine are slower than one thread.
        with threadpool_limits(limits=1):
            classifier.fit(place(np.concatenate([real, others])), is_real, sample_weight=weight)
            odds[fold == held_out] = classifier.decision_function(place(found[fold == held_out]))
    return odds


def _bins_of(real: Rows, others: Rows) -> Callable[[Rows], Rows]:
    """Puts numbers of many values into bins, half of which are the quantiles of either side.

    The classifier would do so itself, but it sorts the column again for each bin where rows have
    weights, which takes longer than its trees.
    """
    shares = np.linspace(0, 1, _MOST_LEVELS // 2 + 1)[1:]
    edges: dict[int, NDArray[np.float64]] = {}
    for column in range(real.shape[1]):
        sides = [side[~np.isnan(side)] for side in (real[:, column], others[:, column])]
        if len(np.unique(np.concatenate(sides))) > _MOST_LEVELS:
            parts = [np.quantile(side, shares, method="lower") for side in sides if len(side)]
            edges[column] = np.unique(np.concatenate(parts))

    def place(rows: Rows) -> Rows:
        placed = rows.copy()
        for column, borders in edges.items():
            cells = rows[:, column]
            placed[:, column] = np.where(np.isnan(cells), np.nan, np.searchsorted(borders, cells))
        return placed

    return place

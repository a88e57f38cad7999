"""The findings that look most like the population: weighed, calibrated, and drawn.

A finding weighs as much as a classifier of real rows against findings says that its kind is denser
among real rows. That brings back whole kinds of people. What is left over is columns whose values
are still too many or too few, so weights are *calibrated* as in surveys: they are raked towards the
shares that the values of each column have in the table. Raking goes half of the way, twice. All of
the way, columns would fit better, and whole people less: a classifier tells them apart more easily.

Weights also say how many findings there are to draw from: where a few weigh as much as all others,
a large set could only repeat what the search found most of. Their *effective number* is (sum of
weights)^2 / (sum of squared weights), and a set that nobody states a size for has no more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from limi.table.rows import fill_empty
from limi.table.schema import Schema
from limi.types import Index, Rows

__all__ = ["effective_number", "population_odds", "representative"]

_MOST_ROWS = 20_000  # of either side, to fit on
_MOST_CELLS = 4_000_000  # of either side: of a wide table fewer rows
_FOLDS = 2
_MOST_LEVELS = 255  # what scikit-learn's boosted trees take as categories, and as bins of numbers
_SHARE = 4  # drawing more than one of so many cannot move findings towards the population
_LEAST = 500  # findings that are drawn however few are effective: sets of fewer are all noise
_RAKED_BINS = 20  # of a number, as many real rows in each
_SWEEPS = 2
_HALF_WAY = 0.5
_RARE = 1e-4  # share of a value that tells no more than none

Values = NDArray[np.float64]


def representative(
    real: Rows, found: Rows, schema: Schema, n: int | None, rng: np.random.Generator
) -> Index:
    """Positions of n findings drawn without replacement, likelier the more they look real.

    Without n as many as there are effectively, at least 500: at most a quarter of the findings, and
    no more than real rows.
    """
    odds = population_odds(real, found, schema, rng)
    if n is None:
        most = min(len(real), max(1, len(found) // _SHARE))
        n = min(most, max(_LEAST, int(effective_number(odds))))
    if n >= len(found):
        return np.arange(len(found))
    if n < 1:
        return np.arange(0)
    return _draw(_rake(real, found, schema, n, odds), n, rng)


def effective_number(odds: Values) -> float:
    """How many findings of equal weight would tell as much as all with these log-weights.

    >>> effective_number(np.log([1.0, 1.0, 1e-9]))
    2.0
    """
    if not len(odds):
        return 0.0
    weights = np.exp(odds - odds.max())
    return round(float(weights.sum() ** 2 / (weights**2).sum()), 6)


def _rake(real: Rows, found: Rows, schema: Schema, n: int, odds: Values) -> Values:
    """The chance of each finding to be drawn: they sum up to n and are 1 at most."""
    columns = [_codes(real[:, j], found[:, j]) for j in range(len(schema))]
    chances = _at_most_one(np.exp(odds - odds.max()), n)
    for _ in range(_SWEEPS):
        for wanted, codes in columns:
            drawn = np.bincount(codes, weights=chances, minlength=len(wanted)) / n
            factor = ((wanted + _RARE) / (drawn + _RARE)) ** _HALF_WAY
            chances = _at_most_one(chances * factor[codes], n)
    return chances


def _codes(real: NDArray[np.float64], found: NDArray[np.float64]) -> tuple[Values, Index]:
    """Shares of the values of a column in the table, and the value of each finding; numbers of
    many values in bins, missing ones by themselves."""
    values = np.unique(real[~np.isnan(real)])
    if len(values) > _MOST_LEVELS:
        shares = np.linspace(0, 1, _RAKED_BINS + 1)[1:-1]
        values = np.unique(np.quantile(real[~np.isnan(real)], shares, method="lower"))
    codes = [
        np.where(np.isnan(side), len(values) + 1, np.searchsorted(values, side))
        for side in (real, found)
    ]
    wanted = np.bincount(codes[0], minlength=len(values) + 2) / max(len(real), 1)
    return wanted, codes[1].astype(np.uint16)  # there are few values, and as many lists as columns


def _at_most_one(weights: Values, n: int) -> Values:
    """Chances in proportion to weights that sum up to n, where that would be more than 1 just 1."""
    chances = np.maximum(weights, np.finfo(float).tiny)
    sure = np.zeros(len(weights), dtype=bool)
    while True:
        left = chances[~sure]
        scaled = left * (n - int(sure.sum())) / left.sum()
        if (scaled <= 1).all():
            return np.where(sure, 1.0, chances * (n - int(sure.sum())) / left.sum())
        sure[np.flatnonzero(~sure)[scaled > 1]] = True


def _draw(chances: Values, n: int, rng: np.random.Generator) -> Index:
    """n different findings, each with its chance: every n-th part of all chances, in a random
    order, names one."""
    order = rng.permutation(len(chances))
    ends = np.cumsum(chances[order])
    ends *= n / ends[-1]
    marks = np.arange(n) + rng.random()
    return np.sort(order[np.minimum(np.searchsorted(ends, marks, side="right"), len(order) - 1)])


def population_odds(real: Rows, found: Rows, schema: Schema, rng: np.random.Generator) -> Values:
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
            placed = fill_empty(place(np.concatenate([real, others])))
            classifier.fit(placed, is_real, sample_weight=weight)
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

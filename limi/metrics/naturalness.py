"""How much generated rows look like a table: by column, by pair, by copies, by classifiers.

Average tabular naturalness (ATN) is half the mean score of the columns and half the mean score of
the pairs of columns. Three definitions of it are in use, which differ in what they average and in
how they cut numbers into bins:

- "paper": the equation of the LIMI paper. Every column counts alike, and every pair. A number
  that is compared with a category is cut into ten equal-width bins of the real column. A missing
  value is one more level, and for a number it lies above all others.
- "sdmetrics-0.7": as the authors of that paper ran it, with SDMetrics 0.7. The columns' score is
  the mean of two means, that of the numbers and that of the categories; likewise the pairs'
  (correlations, and contingencies). Missing cells are left out of columns and correlations, and
  share the last bin, with the largest value, in contingencies.
- "sdmetrics": the quality report of SDMetrics 0.32 with its two thresholds set to 0 and all rows
  used. Every column and pair counts alike, but real and generated numbers are cut into ten bins
  of their own ranges, which hides a wrong range. Missing cells as before.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput, spell
from limi.metrics._base import (
    NATURALNESS,
    Evidence,
    Figure,
    Known,
    Part,
    Tree,
    metric,
)
from limi.metrics._enough import FEWEST_TO_JUDGE
from limi.metrics._populations import name_population
from limi.metrics._space import Space
from limi.system.words import count
from limi.table import rows as row_sets
from limi.table.schema import Column, Schema
from limi.types import Index, Rows

__all__ = [
    "MOST_ALIKE",
    "Classifier",
    "CopyShares",
    "Definition",
    "Likeness",
    "Naturalness",
    "average_tabular_naturalness",
    "copy_shares",
    "detection_score",
    "most_alike",
    "naturalness_at",
    "naturalness_of_sets",
    "two_sample_auc",
]

Definition = Literal["paper", "sdmetrics-0.7", "sdmetrics"]
Classifier = Literal["boosted", "logistic", "svc"]

MOST_ALIKE = 800
"""Findings that are held against people who flip: one number, so that methods can stand side by
side."""

_BINS = 10
_DRAWS = 10  # sets of rows whose naturalness is averaged
_UNSEEN = 1e-6  # what SDMetrics counts for a level that the real column lacks
_MOST_PAIRED = 64  # columns of which all pairs are compared where sets stand side by side
_MOST_PAIRS = 2048  # compared where there are more; each column in as many of them
_KEPT_CELLS = 4_096  # of a contingency table that is kept for all draws
_MOST_DENSE = 1 << 22  # larger contingency tables are counted by sorting


@dataclass(frozen=True)
class Naturalness:
    """Scores in [0, 1], higher is better; NaN where a correlation or a column has none."""

    definition: Definition
    score: float  # ATN: half `column_score`, half `pair_score`
    column_score: float
    pair_score: float
    columns: dict[str, float]
    pairs: dict[tuple[str, str], float]


def average_tabular_naturalness(
    real: Rows, generated: Rows, schema: Schema, *, definition: Definition = "paper"
) -> Naturalness:
    """Likeness of two tables by column and by pair of columns (ATN); 1 is equality.

    ATN = (C + P) / 2 in [0, 1], higher is better. C averages over columns, P over pairs:

    - number: 1 - sup_t |F_real(t) - F_generated(t)|, the Kolmogorov-Smirnov complement;
    - category: 1 - 1/2 sum_c |p_real(c) - p_generated(c)|, the total variation complement;
    - two numbers: 1 - |r_real - r_generated| / 2 with Pearson's r, left out where r is undefined;
    - other pairs: 1 - 1/2 sum_ab |p_real(a, b) - p_generated(a, b)|, numbers cut into ten bins.

    Few rows never reach 1: two samples of one table differ too. Compare tables of equal length.

    >>> column = Column(name="x", kind="numerical", low=0, high=1, step=1)
    >>> real, generated = np.array([[0.0], [0], [1], [1]]), np.array([[0.0], [1], [1], [1]])
    >>> average_tabular_naturalness(real, generated, Schema((column,))).columns
    {'x': 0.75}
    """
    if definition not in get_args(Definition):
        raise InvalidInput(
            f"definition is {definition!r}; naturalness is defined as {spell(get_args(Definition))}"
        )
    real, generated = _check(real, "real", schema), _check(generated, "generated", schema)
    columns, pairs = schema.columns, list(itertools.combinations(range(len(schema)), 2))
    is_number = schema.is_numerical

    column_scores = np.array(
        [
            _distribution_score(real[:, j], generated[:, j], column, definition)
            for j, column in enumerate(columns)
        ]
    )
    pair_scores = _pair_scores(real, generated, schema, pairs, definition)
    if definition == "sdmetrics-0.7":
        both_numbers = np.array([is_number[a] and is_number[b] for a, b in pairs], dtype=bool)
        column_score = _mean([_mean(column_scores[is_number]), _mean(column_scores[~is_number])])
        pair_score = _mean([_mean(pair_scores[both_numbers]), _mean(pair_scores[~both_numbers])])
    else:
        column_score, pair_score = _mean(column_scores), _mean(pair_scores)
    names = schema.names
    return Naturalness(
        definition=definition,
        score=_mean([column_score, pair_score]),
        column_score=column_score,
        pair_score=pair_score,
        columns=dict(zip(names, column_scores.tolist(), strict=True)),
        pairs={
            (names[a], names[b]): score
            for (a, b), score in zip(pairs, pair_scores.tolist(), strict=True)
        },
    )


@dataclass(frozen=True)
class Likeness:
    """ATN of sets of equal size, so that several of them can stand side by side."""

    value: float  # mean over the draws
    spread: float | None = None  # standard deviation over the draws; None of a single one
    n: int | None = None  # rows of each draw
    draws: int = 1


def naturalness_at(
    n: int, real: Rows, rows: Rows, schema: Schema, rng: np.random.Generator, *, draws: int = 10
) -> Likeness:
    """ATN of n of the rows: mean and spread over repeated draws without replacement.

    Several sets that stand side by side are quicker measured by `naturalness_of_sets`.
    """
    return naturalness_of_sets(n, real, {"rows": rows}, schema, rng, draws=draws)["rows"]


def naturalness_of_sets(
    n: int,
    real: Rows,
    sets: Mapping[str, Rows],
    schema: Schema,
    rng: np.random.Generator,
    *,
    draws: int = 10,
) -> dict[str, Likeness]:
    """ATN of n rows of each set: mean and spread over repeated draws without replacement.

    Few rows never reach 1, and the fewer the farther they stay below: 60 rows of a table have 0.86
    where 20,000 have 0.99. So sets are compared at the size of the smallest. Of a table with more
    than 64 columns about 2,000 pairs are compared, each column in as many of them, so that the cost
    grows with the columns and not with their square.
    """
    for rows in sets.values():
        if not 1 <= n <= len(rows):
            raise InvalidInput(f"n is {n}; it must lie between 1 and the {len(rows)} rows given")
    whole = {name for name, rows in sets.items() if n == len(rows) and len(schema) <= _MOST_PAIRED}
    drawn = {
        name: _check(rows, "given", schema) for name, rows in sets.items() if name not in whole
    }
    if drawn:
        together = np.concatenate(list(drawn.values()))
        compared = _Compared.of(_check(real, "real", schema), together, schema)
    told, start = {}, 0
    for name, rows in sets.items():
        if name in whole:
            score = average_tabular_naturalness(real, rows, schema).score
            told[name] = Likeness(score, None, n, 1)
            continue
        if n == len(rows):
            told[name] = Likeness(compared.score(start + np.arange(n)), None, n, 1)
        else:
            chosen = (start + rng.permutation(len(rows))[:n] for _ in range(draws))
            scores = [compared.score(places) for places in chosen]
            spread = float(np.std(scores, ddof=1))
            told[name] = Likeness(float(np.mean(scores)), spread, n, draws)
        start += len(rows)
    return told


def most_alike(n: int, people: Rows, schema: Schema, rng: np.random.Generator) -> float:
    """ATN that n of these people reach against all of them, drawn with replacement; ten draws.

    Few rows never reach 1, so this is the most that can be asked of n findings.
    """
    again = people[rng.integers(0, len(people), _DRAWS * n)]
    return naturalness_at(n, people, again, schema, rng, draws=_DRAWS).value


@dataclass(frozen=True)
class _Compared:
    """A table and rows of which several draws are held against it: what is the same for all draws
    is worked out once. By the paper's definition."""

    schema: Schema
    rows: Rows
    columns: tuple[tuple[NDArray[np.float64], Index], ...]
    # ^ of each column the shares of its values in the table, and the value of each row
    coded: tuple[tuple[Index, Index, int], ...]  # see `_levels`
    offsets: tuple[int, ...]  # column j is paired with j + offset; wraps around
    correlations: tuple[NDArray[np.float64], ...]  # of the table, by offset
    contingencies: Mapping[tuple[int, int], NDArray[np.float64]]  # of the table, where they are few

    @staticmethod
    def of(real: Rows, rows: Rows, schema: Schema) -> _Compared:
        offsets = _offsets(len(schema))
        columns = []
        for j in range(len(schema)):
            both = np.concatenate([real[:, j], rows[:, j]])
            values, codes = np.unique(both, return_inverse=True)
            counts = np.bincount(codes[: len(real)], minlength=len(values))
            columns.append((counts / len(real), codes[len(real) :]))
        coded = tuple(
            _levels(real[:, j], rows[:, j], column, "paper")
            for j, column in enumerate(schema.columns)
        )
        known = {
            pair: np.bincount(
                coded[pair[0]][0] * coded[pair[1]][2] + coded[pair[1]][0],
                minlength=coded[pair[0]][2] * coded[pair[1]][2],
            )
            / len(real)
            for pair in _mixed_pairs(schema, offsets)
            if coded[pair[0]][2] * coded[pair[1]][2] <= _KEPT_CELLS
        }
        numbers = _standardised(real, schema)
        correlations = tuple(_correlations_at(numbers, offset) for offset in offsets)
        return _Compared(schema, rows, tuple(columns), coded, offsets, correlations, known)

    def score(self, chosen: Index) -> float:
        """ATN of these of the rows."""
        singles = [
            self._column(j, codes[chosen], share) for j, (share, codes) in enumerate(self.columns)
        ]
        return _mean([_mean(np.array(singles)), _mean(self._pairs(chosen))])

    def _column(self, j: int, codes: Index, share: NDArray[np.float64]) -> float:
        other = np.bincount(codes, minlength=len(share)) / len(codes)
        if self.schema.columns[j].kind == "numerical":
            return float(1 - np.abs(np.cumsum(share - other)).max())
        return float(1 - 0.5 * np.abs(share - other).sum())

    def _pairs(self, chosen: Index) -> NDArray[np.float64]:
        schema, d = self.schema, len(self.schema)
        numbers = _standardised(self.rows[chosen], schema)
        scores = []
        for offset, real in zip(self.offsets, self.correlations, strict=True):
            first, second = _paired(d, offset)
            both = schema.is_numerical[first] & schema.is_numerical[second]
            alike = 1 - np.abs(real - _correlations_at(numbers, offset)) / 2
            scores.append(alike[both])
        for pair in _mixed_pairs(schema, self.offsets):
            a, b = (self.coded[j] for j in pair)
            drawn = (a[1][chosen], b[1][chosen])
            known = self.contingencies.get(pair)
            if known is None:
                score = _contingency_score((a[0], drawn[0], a[2]), (b[0], drawn[1], b[2]))
            else:
                other = np.bincount(drawn[0] * b[2] + drawn[1], minlength=len(known)) / len(chosen)
                score = float(1 - 0.5 * np.abs(known - other).sum())
            scores.append(np.array([score]))
        return np.concatenate(scores) if scores else np.empty(0)


def _offsets(d: int) -> tuple[int, ...]:
    """How far apart the columns of a pair stand, in a circle: all ways, or some of many."""
    ways = d // 2
    if d <= _MOST_PAIRED:
        return tuple(range(1, ways + 1))
    kept = min(max(_MOST_PAIRS // d, 2), 16)
    return tuple(np.unique(np.linspace(1, ways, kept).astype(int)).tolist())


def _paired(d: int, offset: int) -> tuple[Index, Index]:
    """The two columns of each pair that stand so far apart; each pair once."""
    first = np.arange(d // 2 if 2 * offset == d else d)
    return first, (first + offset) % d


def _mixed_pairs(schema: Schema, offsets: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Pairs of which at least one is not a number."""
    for offset in offsets:
        for a, b in zip(*_paired(len(schema), offset), strict=True):
            if not (schema.is_numerical[a] and schema.is_numerical[b]):
                yield int(a), int(b)


def _standardised(rows: Rows, schema: Schema) -> Rows:
    """Numbers with mean 0 and variance 1, missing where they are; all else 0."""
    columns = np.where(schema.is_numerical, rows, 0.0)
    known = ~np.isnan(columns)
    n = np.maximum(known.sum(axis=0), 1)
    away = np.where(known, columns - np.where(known, columns, 0.0).sum(axis=0) / n, 0.0)
    spread = np.sqrt((away**2).sum(axis=0) / n)
    return np.where(known, away / np.where(spread > 0, spread, 1.0), np.nan)


def _correlations_at(columns: Rows, offset: int) -> NDArray[np.float64]:
    """Pearson's r of each standardised column and the one so far behind it, over the rows that
    have both; NaN where one is constant."""
    first, second = _paired(columns.shape[1], offset)
    x, y = columns[:, first], columns[:, second]
    both = ~(np.isnan(x) | np.isnan(y))
    n = np.maximum(both.sum(axis=0), 1)
    x, y = (np.where(both, z, 0.0) for z in (x, y))
    x, y = (np.where(both, z - z.sum(axis=0) / n, 0.0) for z in (x, y))
    spread = [np.einsum("ij,ij->j", z, z) / n for z in (x, y)]
    # Columns have variance 1, so what is left of a constant after rounding is far below.
    defined = (spread[0] > 1e-12) & (spread[1] > 1e-12)
    r = np.einsum("ij,ij->j", x, y) / n / np.sqrt(np.where(defined, spread[0] * spread[1], 1.0))
    return np.where(defined, np.clip(r, -1, 1), np.nan)


@dataclass(frozen=True)
class CopyShares:
    """Shares of rows that equal a training row in every column."""

    generated: float
    held_out: float

    @property
    def excess(self) -> float:
        """How much more often generated rows are copies than held-out rows are; at most 0 is best.

        From -1 to 1. Rows repeat in any table of few columns; only the excess is memorising.
        """
        return self.generated - self.held_out


def copy_shares(training: Rows, held_out: Rows, generated: Rows, schema: Schema) -> CopyShares:
    """Share of generated rows that copy a training row, beside the share of held-out rows that do.

    copies / rows, from 0 to 1, over all columns, protected ones too; real numbers must be equal to
    the last bit. The generator must not have seen `held_out`.
    """
    all_columns = Schema(schema.columns)
    known = row_sets.KeySet()
    training = _check(training, "training", schema)
    distinct = row_sets.distinct(all_columns, training)
    known.add(distinct.keys[distinct.first])
    shares = [
        float(known.contains(row_sets.keys(all_columns, _check(rows, name, schema))).mean())
        for name, rows in (("generated", generated), ("held-out", held_out))
    ]
    return CopyShares(*shares)


def two_sample_auc(
    real: Rows,
    generated: Rows,
    schema: Schema,
    rng: np.random.Generator,
    *,
    classifier: Classifier = "boosted",
    folds: int = 3,
    max_rows: int = 20_000,
) -> float:
    """How well a classifier tells generated rows from real ones it was not trained on.

    The area under the ROC curve over out-of-fold predictions: the probability that a generated row
    is ranked above a real one. From 0 to 1; 0.5 is best (not told apart), 1 is worst, and chance
    may give a little under 0.5. Give rows that the generator has not seen, so that copies of its
    training rows do not count as natural. Equal numbers are drawn of both, at most `max_rows`.
    "boosted" is scikit-learn's histogram gradient boosting, "logistic" a logistic regression on
    standardised numbers and one column a level, "svc" a support vector machine with a Gaussian
    kernel on the same; the latter takes seconds from some thousand rows on.
    """
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold
    from threadpoolctl import threadpool_limits

    if classifier not in get_args(Classifier):
        raise InvalidInput(f"classifier is {classifier!r}; known are {spell(get_args(Classifier))}")
    real, generated = _check(real, "real", schema), _check(generated, "generated", schema)
    n = min(len(real), len(generated), max_rows)
    if n < folds:
        raise InvalidInput(
            f"a test with {folds} folds needs at least {folds} rows of each table; there are "
            f"{len(real)} real and {len(generated)} generated"
        )
    rows = np.concatenate(
        [table[np.sort(rng.permutation(len(table))[:n])] for table in (real, generated)]
    )
    truth = np.repeat([0, 1], n)
    features = rows
    if classifier != "boosted":
        features = Space.learn(rows, schema, closed=True).place(rows, np.float64)
    seeds = rng.integers(0, 2**31 - 1, folds + 1)
    scores = np.empty(2 * n)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=int(seeds[0]))
    # OpenMP teams that wait for one another on a busy machine are slower than one thread by far.
    with threadpool_limits(limits=1):
        for seed, (train, test) in zip(seeds[1:], splitter.split(features, truth), strict=True):
            model = _classifier(classifier, schema, int(seed)).fit(features[train], truth[train])
            if classifier == "svc":  # its order is all that counts; probabilities cost five fits
                scores[test] = model.decision_function(features[test])
            else:
                scores[test] = model.predict_proba(features[test])[:, 1]
    return float(roc_auc_score(truth, scores))


def detection_score(auc: float) -> float:
    """A two-sample AUC turned to SDMetrics' scale: 1 for rows that cannot be told from real ones.

    2 (1 - max(AUC, 1/2)), from 0 (told apart at once) to 1; higher is better.

    >>> detection_score(0.5), detection_score(0.4), detection_score(1.0)
    (1.0, 1.0, 0.0)
    """
    return 2 * (1 - max(auc, 0.5))


# -- columns ----------------------------------------------------------------------------


def _distribution_score(
    real: NDArray[np.float64],
    generated: NDArray[np.float64],
    column: Column,
    definition: Definition,
) -> float:
    if definition != "paper":
        real, generated = real[~np.isnan(real)], generated[~np.isnan(generated)]
        if not (len(real) and len(generated)):
            return math.nan
    # np.unique sorts NaN behind all numbers and counts it as one value, as "paper" has it.
    values, codes = np.unique(np.concatenate([real, generated]), return_inverse=True)
    p = np.bincount(codes[: len(real)], minlength=len(values)).astype(np.float64)
    q = np.bincount(codes[len(real) :], minlength=len(values)) / len(generated)
    if column.kind == "numerical":
        return float(1 - np.abs(np.cumsum(p / len(real) - q)).max())
    if definition != "paper":
        p[p == 0] = _UNSEEN
    return float(1 - 0.5 * np.abs(p / p.sum() - q).sum())


# -- pairs ------------------------------------------------------------------------------


def _pair_scores(
    real: Rows,
    generated: Rows,
    schema: Schema,
    pairs: list[tuple[int, int]],
    definition: Definition,
) -> NDArray[np.float64]:
    is_number = schema.is_numerical
    numbers = np.flatnonzero(is_number)
    place = np.cumsum(is_number) - 1
    similar = 1 - np.abs(_correlations(real[:, numbers]) - _correlations(generated[:, numbers])) / 2
    coded = [
        _levels(real[:, j], generated[:, j], column, definition)
        for j, column in enumerate(schema.columns)
    ]
    scores = np.empty(len(pairs))
    for i, (a, b) in enumerate(pairs):
        if is_number[a] and is_number[b]:
            scores[i] = similar[place[a], place[b]]
        else:
            scores[i] = _contingency_score(coded[a], coded[b])
    return scores


def _correlations(columns: Rows) -> NDArray[np.float64]:
    """Pearson's r of each two columns over the rows that have both; NaN where one is constant."""
    known = ~np.isnan(columns)
    n_known = np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, columns, 0.0)
    centred = np.where(known, centred - centred.sum(axis=0) / n_known, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / n_known)
    centred /= np.where(spread > 0, spread, 1.0)
    weights = known.astype(np.float64)
    n = np.maximum(weights.T @ weights, 1.0)
    mean = centred.T @ weights / n  # [a, b]: mean of a over the rows where b is known
    square = (centred**2).T @ weights / n
    variance = square - mean**2
    covariance = centred.T @ centred / n - mean * mean.T
    # Columns have variance 1 here, so what is left of a constant after rounding is far below.
    defined = (variance > 1e-12) & (variance.T > 1e-12)
    scale = np.sqrt(np.where(defined, variance * variance.T, 1.0))
    return np.where(defined, np.clip(covariance / scale, -1, 1), np.nan)


def _levels(
    real: NDArray[np.float64],
    generated: NDArray[np.float64],
    column: Column,
    definition: Definition,
) -> tuple[Index, Index, int]:
    """Codes from 0 of both columns for contingency tables, and how many there may be."""
    if column.kind != "numerical":
        codes = [np.where(np.isnan(c), column.size, c).astype(np.intp) for c in (real, generated)]
        return codes[0], codes[1], column.size + 1
    edges = _edges(real)
    others = _edges(generated) if definition == "sdmetrics" else edges
    # np.digitize puts the largest value, and NaN, into a bin of its own behind the last edge.
    codes = [np.digitize(real, edges), np.digitize(generated, others)]
    if definition == "paper":
        for code, cells in zip(codes, (real, generated), strict=True):
            code[np.isnan(cells)] = _BINS + 2
    return codes[0], codes[1], _BINS + 3


def _edges(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.histogram_bin_edges(cells[~np.isnan(cells)], bins=_BINS)


def _contingency_score(a: tuple[Index, Index, int], b: tuple[Index, Index, int]) -> float:
    size = a[2] * b[2]
    p, q = a[0] * b[2] + b[0], a[1] * b[2] + b[1]
    n, m = len(p), len(q)
    if size > _MOST_DENSE:
        codes = np.unique(np.concatenate([p, q]), return_inverse=True)[1]
        p, q, size = codes[:n], codes[n:], n + m
    share, other = np.bincount(p, minlength=size) / n, np.bincount(q, minlength=size) / m
    return float(1 - 0.5 * np.abs(share - other).sum())


# -- classifiers ------------------------------------------------------------------------


def _classifier(name: Classifier, schema: Schema, seed: int) -> Any:
    if name == "logistic":
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1000)
    if name == "svc":
        from sklearn.svm import SVC

        return SVC(gamma="scale")
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Splits on sets of levels exist for 255 levels at most; beyond, codes are cut as numbers.
    as_levels = (~schema.is_numerical) & (schema.sizes <= 255)
    return HistGradientBoostingClassifier(categorical_features=as_levels, random_state=seed)


# -- shared -----------------------------------------------------------------------------


def _check(rows: Rows, name: str, schema: Schema) -> Rows:
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(schema) or not len(rows):
        raise InvalidInput(
            f"the {name} rows have the shape {rows.shape}; naturalness needs at least one row of "
            f"the schema's {len(schema)} columns"
        )
    if np.isinf(rows).any():
        raise InvalidInput(f"the {name} rows hold infinite values; use finite or missing ones")
    return rows


def _mean(scores: NDArray[np.float64] | list[float]) -> float:
    """Mean of the defined scores; NaN where there is none."""
    known = np.asarray(scores, dtype=np.float64)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else math.nan


# -- measured in every run --------------------------------------------------------------

_MOST_DETECTED: dict[Classifier, int] = {"logistic": 2_000, "svc": 1_000}
_PEOPLE = ("held-out", "real")  # whose flips findings are held against: the first measured
_DETECTORS = {"logistic": "a logistic regression", "svc": "an RBF support vector machine"}


def _likeness_parts(entry: Tree, family: Tree) -> Iterator[Part]:
    for name, like in entry.items():
        rows = "real rows that flip" if name == "ceiling" else f"{name} findings"
        yield Part(
            f"naturalness of {'findings' if name == 'findings' else rows}",
            f"likeness of columns and pairs of columns to the table's{_draw(like)}",
            like,
            "ATN",
        )


def _draw(entry: Tree) -> str:
    """How many rows a set was compared at."""
    if entry.get("n") is None:
        return ", as a set"
    times = f", mean of {entry['draws']} draws" if entry["draws"] > 1 else ""
    return f", as a set of {count(entry['n'])} rows{times}"


@metric(
    NATURALNESS,
    name="average_tabular_naturalness",
    formula="likeness of columns and of pairs of columns "
    "([README](../README.md#what-the-numbers-mean)); `value` is the mean and `spread` the standard "
    "deviation over `draws` sets of `n` rows",
    range="0 to 1",
    better="higher",
    short="ATN",
    beside="spread {spread}",
    main=False,
    derived=True,
    parts=_likeness_parts,
)
def _measure_likeness(evidence: Evidence | Known) -> Tree:
    """How much columns and pairs of columns of the findings are like the table's, as a set."""
    return {
        name: {"value": like.value, "n": like.n, "draws": like.draws}
        | ({} if like.spread is None else {"spread": like.spread})
        for name, like in evidence.likeness.items()
    }


def _odd_parts(entry: Tree, family: Tree) -> Iterator[Part]:
    for side in ("findings", "partners"):
        if side in entry:
            yield Part(
                f"odd {side}",
                "share that looks odder than 95 % of held-out real rows (p under 0.05, by "
                f"{entry['by']}); 5 % of the table's own rows do",
                entry[side]["under_0.05"] | {"median": entry[side]["median"]},
            )


@metric(
    NATURALNESS,
    name="p_values",
    title="odd findings",
    formula="findings with a p-value under 0.05 / findings, and the same for their partners; a "
    "row's p-value, explained below, is the share of held-out real rows that are as odd or odder",
    range="0 to 100 %",
    better="lower",
    unit="percent",
    beside="median p {median}",
    parts=_odd_parts,
)
def _measure_oddness(evidence: Evidence) -> Tree | None:
    """Share of findings, and of their partners, that are odder than 95 % of real rows."""
    found = evidence.found
    if not len(found) or not len(found.naturalness):
        return None
    return {
        "by": evidence.judged_by,
        "findings": _oddness(found.naturalness),
        "partners": _oddness(found.partner_naturalness),
    }


def _oddness(p_values: NDArray[np.float64]) -> Tree:
    return {
        "median": float(np.median(p_values)),
        "under_0.05": Figure(float((p_values < 0.05).mean()), n=len(p_values)),
    }


def _detection_parts(entry: Tree, family: Tree) -> Iterator[Part]:
    for name, told in entry.items():
        yield Part(
            f"detection, {name}",
            f"1 if {_DETECTORS[name]} cannot tell findings from the table's rows, 0 if it always "
            "can",
            told,
        )


@metric(
    NATURALNESS,
    name="detection",
    formula="2 (1 - max(AUC, 1/2)) of a logistic regression, and of an RBF support vector machine, "
    "that tell findings from real rows (3 folds)",
    range="0 to 1",
    better="higher",
    beside="AUC {auc}",
    main=False,
    parts=_detection_parts,
)
def _measure_detection(evidence: Evidence) -> Mapping[str, Figure] | None:
    """How little a classifier can tell findings from the table's rows."""
    if not evidence.enough_to_compare:
        return None
    rng = evidence.rng("detection")
    told: dict[str, Figure] = {}
    for name, most in _MOST_DETECTED.items():
        if evidence.in_time(f"detection ({name})"):
            auc = two_sample_auc(
                evidence.table,
                evidence.found.rows,
                evidence.schema,
                rng,
                classifier=name,
                max_rows=most,
            )
            told[name] = Figure(detection_score(auc), beside={"auc": auc})
    return told


@metric(
    NATURALNESS,
    name="likeness_to_people_who_flip",
    title="likeness to people who flip",
    formula="ATN of `n` findings against the table's own rows that flip; `at_most` is what as many "
    "of those rows reach, drawn from them with replacement; `n` is 800, or the size of the smaller "
    "set if it has fewer rows",
    range="0 to 1",
    better="higher",
    beside="at most {at_most}",
    main=False,
)
def _measure_like_people(evidence: Evidence) -> Figure | None:
    """How much the findings, as a set of {n}, are like the table's own people who flip."""
    population = next((name for name in _PEOPLE if name in evidence.checked), None)
    if population is None or not evidence.enough_to_compare:
        return None
    checked, schema = evidence.checked[population], evidence.schema
    people = checked.rows[checked.flips]
    n = min(MOST_ALIKE, len(people), len(evidence.found))
    if n < FEWEST_TO_JUDGE:
        return Figure(
            None,
            n=n,
            reason=f"{len(people)} of the {count(len(checked))} {name_population(population)} that "
            f"were asked flip, and at least {FEWEST_TO_JUDGE} are needed",
        )
    if not evidence.in_time("likeness to people who flip"):
        return None
    rng = evidence.rng("likeness_to_people_who_flip")
    at_most = most_alike(n, people, schema, rng)
    like = naturalness_at(n, people, evidence.found.rows, schema, rng, draws=_DRAWS)
    return Figure(like.value, n=n, beside={"at_most": at_most})

"""A model whose answers are averaged over protected values, as something one can ship.

The mean of a fitted model's answers for a person under every protected value, weighted by how
common these are, does not depend on the protected column any more, whatever the model, and nothing
is trained (Pope and Sydnor, 2011). This module needs numpy and scikit-learn alone: what must go
along with a value was looked up beforehand and stands here as plain lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from limi.decisions import move_threshold
from limi.errors import InvalidInput, spell

__all__ = ["LEAST_SHARE", "AveragedClassifier", "AveragedFunction", "Swaps"]

LEAST_SHARE = 1e-3
"""Probabilities nearer to 0 than this count as this much where logarithms are averaged."""

AT_ONCE = 50_000  # rows that a model is asked about together


class AveragedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier, asked for each row under every protected value and averaged.

    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> people = pd.DataFrame({"sex": [0, 1, 0, 1], "income": [1, 2, 3, 4]})
    >>> model = LogisticRegression().fit(people, [0, 1, 0, 1])
    >>> fair = AveragedClassifier(model, values={"sex": [0, 1]}, weights=[0.5, 0.5])
    >>> bool((fair.predict(people) == fair.predict(people.assign(sex=0))).all())
    True

    `values` holds the protected columns (by name, or by position for arrays), each with its cell in
    every partner, and `weights` what each partner counts. `along` and `closed` are lookups for what
    the rules of a table say: `{"column", "by", "cells", "values"}` gives the cells of a column in
    each partner by the cells of others, and without a column whether a partner is left out. A row
    all of whose partners are left out is averaged over all of them.

    `reads` says what is averaged: `"probability"`, `"log-odds"`, `"margin"` (`decision_function`),
    or `"label"` for a vote. `threshold` is where the second of two classes is decided, of its mean
    probability or margin; None for the higher one. A frame may lack the protected columns. `fit`
    trains the model inside again.
    """

    def __init__(
        self,
        estimator: Any,
        values: Mapping[str | int, Sequence[Any]],
        weights: Sequence[float],
        along: Sequence[Mapping[str, Any]] = (),
        closed: Sequence[Mapping[str, Any]] = (),
        reads: str = "probability",
        threshold: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.values = values
        self.weights = weights
        self.along = along
        self.closed = closed
        self.reads = reads
        self.threshold = threshold

    def __sklearn_tags__(self) -> Any:
        """What the model inside takes, but nothing sparse."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = replace(inner.input_tags, sparse=False)
        tags.classifier_tags = inner.classifier_tags
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self.model, "classes_")

    def fit(self, X: Any, y: Any) -> AveragedClassifier:
        """Train a copy of the model inside; what is averaged over stays."""
        X = _as_table(X)
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    @property
    def model(self) -> Any:
        """The classifier that is asked."""
        return getattr(self, "estimator_", self.estimator)

    @property
    def classes_(self) -> Any:
        """Those of the classifier that is asked."""
        return self.model.classes_

    @property
    def n_features_in_(self) -> int:
        """That of the classifier that is asked."""
        return int(self.model.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Those of the classifier that is asked; AttributeError where it knows none."""
        return self.model.feature_names_in_

    @available_if(lambda self: self.reads != "margin")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(n, classes): mean probabilities, those of mean log-odds, or shares of votes."""
        if self.reads != "log-odds":
            return self._average(X)
        return _to_one(np.exp(self._average(X)))

    @available_if(lambda self: self.reads == "margin")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The mean margin: (n,) for two classes, (n, classes) for more."""
        return self._average(X)

    def predict(self, X: Any) -> Any:
        """The class with the highest mean, the first of equal ones; or by the threshold."""
        if self.reads == "margin":
            means = self._average(X)
            second = means if means.ndim == 1 else means[:, -1]
        else:
            means = self.predict_proba(X)
            second = means[:, -1]
        if self.threshold is not None:
            return self.classes_[(second >= self.threshold).astype(int)]
        if means.ndim == 1:
            return self.classes_[(means > 0).astype(int)]
        return self.classes_[np.argmax(means, axis=1)]

    def _average(self, X: Any) -> NDArray[np.float64]:
        X = _as_table(X)
        swaps = Swaps(self.values, self.weights, self.along, self.closed)
        names = getattr(self.model, "feature_names_in_", None)
        swaps.require_columns(X, names, getattr(self.model, "n_features_in_", None))
        if not len(X):  # which many a model refuses
            is_line = self.reads == "margin" and len(self.classes_) == 2
            return np.empty(0) if is_line else np.empty((0, len(self.classes_)))
        return swaps.average(X, self._answer, names)

    def _answer(self, X: Any) -> NDArray[np.float64]:
        if self.reads == "margin":
            return np.asarray(self.model.decision_function(X), dtype=np.float64)
        if self.reads == "label":
            return np.asarray(self.model.predict(X)[:, None] == self.classes_, dtype=np.float64)
        shares = np.asarray(self.model.predict_proba(X), dtype=np.float64)
        return np.log(np.clip(shares, LEAST_SHARE, 1)) if self.reads == "log-odds" else shares


# Files name the class so, wherever it lies.
AveragedClassifier.__module__ = "limi"


class AveragedFunction:
    """A function of a frame or an array that returns scores, averaged in the same way.

    `takes` and `columns` say what it is given, as `limi.models` reads them of any function.
    `reads` says what is averaged: scores or numbers as they are (`"probability"`), or their
    `"log-odds"`. Where answers are classes, it is `"class"`: partners vote, and it returns a share
    for each label in the order of `places`, which says where an answer has each label.
    With a `threshold` scores are moved so that it comes to lie at 0.5.
    """

    def __init__(
        self,
        score: Any,
        swaps: Swaps,
        takes: str = "frame",
        columns: Sequence[str] | None = None,
        reads: str = "probability",
        threshold: float | None = None,
        places: Sequence[int] = (),
    ) -> None:
        self.score = score
        self.swaps = swaps
        self.takes = takes
        self.columns = columns
        self.reads = reads
        self.threshold = threshold
        self.places = places

    def __call__(self, inputs: Any) -> NDArray[np.float64]:
        inputs = _as_table(inputs)
        self.swaps.require_columns(inputs, self.columns)
        if not len(inputs):
            return np.empty((0, len(self.places)) if self.reads == "class" else 0)
        scores = self._average(inputs)
        return scores if self.threshold is None else move_threshold(scores, self.threshold)

    def _average(self, inputs: Any) -> NDArray[np.float64]:
        if self.reads == "class":
            return _to_one(self.swaps.average(inputs, self._votes, self.columns))
        if self.reads != "log-odds":
            return self.swaps.average(inputs, self.score, self.columns)
        odds = np.exp(self.swaps.average(inputs, self._log_odds, self.columns))
        return np.asarray(odds / (1 + odds))

    def _votes(self, inputs: Any) -> NDArray[np.float64]:
        """(n, labels): 1 for the class of each; even ones for a class that is none of them."""
        chosen = np.floor(np.asarray(self.score(inputs), dtype=np.float64))
        votes = np.asarray(chosen[:, None] == np.asarray(self.places), dtype=np.float64)
        votes[~votes.any(axis=1)] = 1 / len(self.places)
        return votes

    def _log_odds(self, inputs: Any) -> NDArray[np.float64]:
        scores = np.asarray(self.score(inputs), dtype=np.float64)
        for_it, against = (np.clip(share, LEAST_SHARE, 1) for share in (scores, 1 - scores))
        return np.asarray(np.log(for_it) - np.log(against))


class Swaps:
    """The partners of rows that are averaged over, and what each of them counts."""

    def __init__(
        self,
        values: Mapping[str | int, Sequence[Any]],
        weights: Sequence[float],
        along: Sequence[Mapping[str, Any]] = (),
        closed: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.values = values
        self.weights = np.asarray(weights, dtype=np.float64)
        self.along = along
        self.closed = closed
        self._check()

    def _check(self) -> None:
        """InvalidInput where there is not one cell and one weight for each partner."""
        n = len(self.weights)
        lookups = ((one.get("column"), one["values"]) for one in (*self.along, *self.closed))
        for column, cells in (*self.values.items(), *lookups):
            if len(cells) != n:
                raise InvalidInput(
                    f"there are {len(cells)} cells of the column {column!r} and {n} weights; give "
                    "one of each for every partner"
                )
        if not n or not (np.isfinite(self.weights) & (self.weights >= 0)).all():
            raise InvalidInput("weights must be numbers of 0 or more, one for each partner")
        if not self.weights.any():
            raise InvalidInput("all weights are 0; at least one partner must count")

    def require_columns(
        self, X: Any, names: Sequence[str] | None, width: int | None = None
    ) -> None:
        """InvalidInput where a table lacks columns that are read; those put in may be missing."""
        keys = [*self.values, *(one["column"] for one in self.along)]
        if isinstance(X, np.ndarray):
            named = [key for key in keys if isinstance(key, str)]
            if named:
                raise InvalidInput(
                    f"the model is averaged over {spell(named)} by name, so it takes a frame with "
                    "these columns or without them, but not an array"
                )
            if width is not None and X.shape[1] != width:
                raise InvalidInput(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {width} "
                    "features as input"
                )
            return
        read = {name for one in (*self.along, *self.closed) for name in one["by"]}
        have = set(_columns(X))
        lacking = [
            name
            for name in (() if names is None else names)
            if name not in have and name not in keys
        ]
        lacking += sorted(str(name) for name in read if name not in have and name not in lacking)
        if lacking:
            raise InvalidInput(
                f"the frame lacks the column{'s' * (len(lacking) > 1)} {spell(lacking)}; only "
                f"{spell(list(self.values))} may be left out, because it is averaged over"
            )

    def average(self, X: Any, ask: Any, columns: Sequence[str] | None) -> NDArray[np.float64]:
        """The weighted mean of what `ask` says of every partner; these columns are asked about."""
        partners = list(self.swapped(X)) if self.closed else self.swapped(X)
        counts = self.count(X, partners if self.closed else ())
        total: Any = 0.0
        low: Any = np.inf
        high: Any = -np.inf
        asked = ((p, c) for p, c in zip(partners, counts.T, strict=True) if c.any())
        for counted, answers in _ask_together(asked, ask, columns, max(1, AT_ONCE // len(X))):
            total = total + (answers.T * counted).T
            low = np.minimum(low, np.where(counted > 0, answers.T, np.inf).T)
            high = np.maximum(high, np.where(counted > 0, answers.T, -np.inf).T)
        # A mean lies between the numbers it is made of; a sum of floats may pass them by a digit,
        # and a probability of 1.0000000000000002 is refused by whoever reads it.
        return np.asarray(np.clip(total, low, high), dtype=np.float64)

    def swapped(self, X: Any) -> Iterator[Any]:
        """The rows as each of their partners."""
        for number in range(len(self.weights)):
            partner = X
            for column, cells in self.values.items():
                partner = _fill(partner, column, cells[number])
            for rule in self.along:
                column, told = rule["column"], rule["values"][number]
                if not len(rule["by"]):
                    partner = _fill(partner, column, told[0])
                    continue
                place = _look_up(partner, rule)
                found = np.array([*told, None], dtype=object)[place]
                own, _ = _cells(partner, column)
                partner = _put(partner, column, np.where(place < 0, own, found).tolist())
            yield partner

    def count(self, X: Any, partners: Iterable[Any]) -> NDArray[np.float64]:
        """(n, partners): what each counts; those that could not exist count nothing, as long as
        there is another."""
        counts: NDArray[np.float64] = np.tile(self.weights, (len(X), 1))
        if not self.closed:
            return _to_one(counts)
        is_open = np.ones(counts.shape, dtype=bool)
        for number, partner in enumerate(partners):
            for rule in self.closed:
                barred = np.array([*rule["values"][number], False])
                is_open[:, number] &= ~barred[_look_up(partner, rule)]
        for usable in (is_open, is_open * self.weights):
            some = usable.any(axis=1)
            counts[some] = usable[some]
        return _to_one(counts)

    def agree(self, X: Any, others: Any) -> NDArray[np.bool_]:
        """(n,): for which rows of two tables the same is averaged: equal partners that count alike,
        so that any model gives both the same answer."""
        pairs = [list(self.swapped(each)) for each in (X, others)]
        counts = [self.count(X, pairs[0]), self.count(others, pairs[1])]
        same: NDArray[np.bool_] = (counts[0] == counts[1]).all(axis=1)
        for one, other in zip(*pairs, strict=True):
            for column in _columns(one):
                (cells, missing), (theirs, gone) = _cells(one, column), _cells(other, column)
                same &= (missing & gone) | (~missing & ~gone & np.asarray(cells == theirs))
        return same


def _as_table(X: Any) -> Any:
    """A frame as it is; anything else as an array of rows and columns."""
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        return X
    if hasattr(X, "toarray"):
        raise InvalidInput(
            "sparse input is not supported, because protected cells are replaced; give a dense "
            "array or a frame"
        )
    array = np.asarray(X)
    if array.ndim != 2:
        raise InvalidInput(
            f"Expected 2D array, got {array.ndim}D array instead: give one row per person. "
            "Reshape your data with X.reshape(1, -1) if it is a single row"
        )
    return array


def _ask_together(
    asked: Iterable[tuple[Any, NDArray[np.float64]]],
    ask: Any,
    columns: Sequence[str] | None,
    most: int,
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """What each partner counts, and what `ask` says of it; so many of them at once, because a
    question about few rows costs a forest as much as one about a thousand."""
    waiting = iter(asked)
    while some := list(islice(waiting, most)):
        together = _stack([partner for partner, _ in some])
        if columns is not None and not isinstance(together, np.ndarray):
            chosen = list(columns)
            by_name = hasattr(together, "select")
            together = together.select(chosen) if by_name else together[chosen]
        answers = np.asarray(ask(together), dtype=np.float64)
        for (_, counted), part in zip(some, np.split(answers, len(some)), strict=True):
            yield counted, part


def _to_one(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
    return shares


def _look_up(X: Any, rule: Mapping[str, Any]) -> NDArray[np.intp]:
    """(n,): which entry of a lookup each row has, -1 for none."""
    place = np.zeros(len(X), dtype=np.intp)
    known = np.ones(len(X), dtype=bool)
    for column, cells in zip(rule["by"], rule["cells"], strict=True):
        own = _places(*_cells(X, column), cells)
        known &= own >= 0
        place = place * len(cells) + own
    return np.where(known, place, -1)


def _places(
    cells: NDArray[Any], missing: NDArray[np.bool_], known: Sequence[Any]
) -> NDArray[np.intp]:
    """Where each cell stands among known ones, -1 for nowhere; missing ones are alike."""
    place = np.full(len(cells), -1, dtype=np.intp)
    for number, cell in enumerate(known):
        here = missing if cell is None or cell != cell else cells == cell
        place[np.asarray(here, dtype=bool)] = number
    return place


# -- frames of pandas and polars, and arrays, without importing either -------------------


def _columns(X: Any) -> Sequence[str | int]:
    """Names of the columns, or their places."""
    if isinstance(X, np.ndarray):
        return range(X.shape[1])
    names: Sequence[str] = X.column_names if hasattr(X, "set_column") else list(X.columns)
    return names


def _cells(X: Any, column: str | int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The cells of a column, and which of them are missing (None, where they are objects)."""
    if isinstance(X, np.ndarray):
        cells = X[:, int(column)]
        nothing: Any = None
        return cells, np.asarray((cells != cells) | (cells == nothing), dtype=np.bool_)
    column = _name(X, column)
    if hasattr(X, "set_column"):
        X = X.select([column]).to_pandas()
    series = X[column]
    missing = series.isna() if hasattr(series, "isna") else series.is_null()
    missing = np.asarray(missing, dtype=bool)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biuf":
        return np.asarray(series), missing
    cells = np.array(series, dtype=object)
    cells[missing] = None
    return cells, missing


def _stack(tables: list[Any]) -> Any:
    """The rows of several tables as one, by the library that made them."""
    first = tables[0]
    if len(tables) == 1:
        return first
    if isinstance(first, np.ndarray):
        return np.concatenate(tables)
    library = import_module(
        "pandas" if hasattr(first, "iloc") else type(first).__module__.partition(".")[0]
    )
    return library.concat_tables(tables) if hasattr(first, "set_column") else library.concat(tables)


def _put(X: Any, column: str | int, cells: list[Any]) -> Any:
    """The rows with other cells in a column, of the type that it has."""
    if isinstance(X, np.ndarray):
        changed = X.copy()
        changed[:, int(column)] = cells
        return changed
    column = _name(X, column)
    if hasattr(X, "assign"):
        return _assign(X, column, type(X[column])(cells, X.index, X[column].dtype))
    if hasattr(X, "set_column"):
        return _put_arrow(X, str(column), cells)
    return X.with_columns(type(X[column])(column, cells, X[column].dtype))


def _fill(X: Any, column: str | int, cell: Any) -> Any:
    """The rows with one and the same cell in a column, which a frame may lack."""
    if isinstance(X, np.ndarray):
        changed = X.copy()
        changed[:, int(column)] = cell
        return changed
    column = _name(X, column)
    if hasattr(X, "set_column"):
        return _put_arrow(X, str(column), [cell] * len(X))
    known = column in X.columns
    if hasattr(X, "assign"):
        return _assign(
            X, column, type(X[column])(cell, X.index, X[column].dtype) if known else cell
        )
    made = type(X.to_series(0))(column, [cell], X[column].dtype if known else None)
    return X.with_columns(made.new_from_index(0, len(X)))


def _name(X: Any, column: str | int) -> Any:
    """What a frame calls a column that is known by its name or its place."""
    return column if isinstance(column, str) else list(_columns(X))[column]


def _assign(X: Any, column: Any, cells: Any) -> Any:
    """`X.assign` for names of any type."""
    changed = X.copy(deep=False)
    changed[column] = cells
    return changed


def _put_arrow(X: Any, column: str, cells: list[Any]) -> Any:
    import pyarrow as pa

    if column not in X.column_names:
        return X.append_column(column, pa.array(cells))
    made = pa.array(cells, X.schema.field(column).type)
    return X.set_column(X.column_names.index(column), column, made)

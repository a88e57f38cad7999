"""What every target offers, and how raw answers become scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from limi.errors import BadModel, InvalidInput, listed, nearest
from limi.types import Scores, Value

__all__ = ["Answers", "Decision", "Model", "Takes"]

Takes = Literal["frame", "matrix"]


@runtime_checkable
class Model(Protocol):
    """A target: it takes a frame or a matrix and gives one score a row, above 0.5 favorable."""

    @property
    def takes(self) -> Takes:
        """`"frame"`: the user's kind of frame; `"matrix"`: float64, one number a cell."""
        ...

    @property
    def columns(self) -> Sequence[str] | None:
        """Columns it wants, in order; None where it does not say."""
        ...

    @property
    def n_columns(self) -> int | None:
        """How many columns it wants; None where it does not say."""
        ...

    def score(self, inputs: Any) -> Scores:
        """One score in [0, 1] a row; targets that give labels only answer 0.0 or 1.0."""
        ...


@dataclass(frozen=True)
class Decision:
    """Which answer is the favorable one, and which two answers the table's target column knows."""

    favorable: Value | None = None
    labels: tuple[Value, ...] = ()

    def column(self, classes: Sequence[Any]) -> int:
        """Which of a classifier's two classes is favorable."""
        known = [_unboxed(c) for c in classes]
        if len(known) != 2:
            raise BadModel(
                f"the model decides between {len(known)} classes ({listed(known)}); "
                "limi tests decisions between two"
            )
        if self.favorable is None:
            if known in ([0, 1], [False, True]):
                return 1
            raise InvalidInput(
                f"the model's classes are {listed(map(repr, known))}; say which one is favorable"
            )
        if self.favorable in known:
            return known.index(self.favorable)
        as_text = [str(c) for c in known]
        if str(self.favorable) in as_text:
            return as_text.index(str(self.favorable))
        # A model trained on 0 and 1 while the table spells its labels out: 1 is the favorable one.
        if known in ([0, 1], [False, True]) and self.favorable in self.labels:
            return 1
        raise InvalidInput(
            f"favorable label {self.favorable!r} is none of the model's classes; "
            f"{nearest(str(self.favorable), as_text)}"
        )


@dataclass(frozen=True)
class Answers:
    """Reads what a function, graph or remote target returns as scores."""

    decision: Decision = Decision()

    def read(self, raw: Any, n: int) -> Scores:
        """Scores of n rows from floats in [0, 1], two columns of them, or labels."""
        array = np.asarray(raw)
        if (
            array.dtype == object
            and array.size
            and all(
                isinstance(cell, (bool, int, float, np.generic)) for cell in array.reshape(-1)[:100]
            )
        ):
            array = array.astype(np.float64)
        if array.ndim == 0 or len(array) != n:
            given = "one value" if array.ndim == 0 else f"{len(array)} answers"
            raise BadModel(f"the model returned {given} for {n} rows; it must return one a row")
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind == "f":
            return _probability(array[:, 1])
        if array.ndim != 1:
            classes = array.shape[1] if array.ndim == 2 else "several"
            raise BadModel(
                f"the model returned {classes} values a row (three classes?); limi tests decisions "
                "between two: return the favorable score, two probabilities, or a label"
            )
        if array.dtype.kind == "f" and not self._are_labels(array):
            return _probability(array)
        return self._labels(array)

    def _are_labels(self, array: Any) -> bool:
        """Float labels such as 1.0 and 2.0; within [0, 1] numbers are scores."""
        labels = [v for v in self.decision.labels if isinstance(v, (int, float))]
        return (
            len(labels) == len(self.decision.labels) == 2
            and not set(labels) <= {0, 1}
            and bool(np.isin(array, labels).all())
        )

    def _labels(self, array: Any) -> Scores:
        seen = [_unboxed(value) for value in np.unique(array)]
        favorable, labels = self.decision.favorable, list(self.decision.labels)
        if set(seen) <= {0, 1} and (favorable is None or favorable not in (0, 1)):
            return np.asarray(
                array == 1, dtype=np.float64
            )  # 0/1 answers to a table that spells labels out
        if favorable is None:
            raise InvalidInput(
                f"the model answers {listed(map(repr, seen))}; say which one is favorable"
            )
        if len(seen) > 2 or (labels and not {str(v) for v in seen} <= {str(v) for v in labels}):
            expected = f" the table knows {listed(map(repr, labels))}" if labels else ""
            raise BadModel(
                f"the model answers {listed(map(repr, seen))};{expected} "
                "(two classes are needed, or scores in [0, 1])"
            )
        if array.dtype.kind in "US" or array.dtype == object:
            return np.asarray(array.astype(str) == str(favorable), dtype=np.float64)
        return np.asarray(array == favorable, dtype=np.float64)


def _probability(array: Any) -> Scores:
    scores: Scores = array.astype(np.float64)
    bad = ~np.isfinite(scores)
    if bad.any():
        raise BadModel(
            f"the model returned {int(bad.sum())} scores that are NaN or infinite among "
            f"{len(scores)}; scores must be finite"
        )
    if len(scores) and (scores.min() < 0 or scores.max() > 1):
        raise BadModel(
            f"the model returned scores from {scores.min():g} to {scores.max():g}; they must lie "
            "in [0, 1], where 0.5 decides (apply a sigmoid to logits)"
        )
    return scores


def _unboxed(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value

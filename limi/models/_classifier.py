"""A fitted classifier as a model, whichever library it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from limi.decisions import contradicts
from limi.errors import BadModel, InvalidInput
from limi.models._base import Answers, Decision, Model, Takes
from limi.models._function import FunctionModel
from limi.models._scores import from_margin, from_pairs, whole
from limi.models._trees import forget_caches
from limi.system.foreign import reason
from limi.types import Labels, Mask, Scores

__all__ = ["SklearnModel", "classifier"]

Reads = Literal["probability", "margin", "label"]

_BY_LABEL = (
    "the model decides otherwise than by a score above 0.5 (a threshold of its own); its decisions "
    "were asked for, so scores are 0 or 1"
)


@dataclass(frozen=True)
class SklearnModel:
    """Score rows with a fitted binary classifier.

    The estimator receives what it was trained on: a frame with its own columns where it knows
    their names, else an array. Probabilities are preferred to margins and margins to labels, as
    long as they say the same as `predict`: an SVM's probabilities may contradict its decisions,
    and estimators with a threshold of their own are asked for labels.
    """

    estimator: Any
    favorable_column: int
    reads: Reads = "probability"
    columns: Sequence[str] | None = None
    n_columns: int | None = None
    prepare: Callable[[Any], Any] | None = None  # what the library needs done to the frame first
    notes: tuple[str, ...] = ()
    votes: bool = False  # are its probabilities shares of votes?

    @property
    def takes(self) -> Takes:
        """A frame where the estimator was fitted on one, or does not say what it was fitted on."""
        return "array" if self.columns is None and self.n_columns is not None else "frame"

    def score(self, inputs: Any) -> Scores:
        """Scores of the favorable class."""
        inputs = inputs if self.prepare is None else self.prepare(inputs)
        if self.reads == "label":
            return self._labels(inputs).astype(np.float64)
        if self.reads == "margin":
            return from_margin(self.estimator.decision_function(inputs), self.favorable_column)
        pairs = self.estimator.predict_proba(inputs)
        return from_pairs(pairs, self.favorable_column, votes=self.votes)

    def decide(self, inputs: Any) -> Mask:
        """Where `predict` gives the favorable class."""
        return self._labels(inputs if self.prepare is None else self.prepare(inputs))

    def settle(self, inputs: Any) -> SklearnModel:
        """The first way to read a score that agrees with `predict` on these rows."""
        decided = self.decide(inputs)
        ways = [way for way in _ways(self.estimator) if way != self.reads]
        for way in (self.reads, *ways):
            model = replace(self, reads=way)
            if way == "label" or not contradicts(model.score(inputs), decided).any():
                break
        return model._note() if way != self.reads else self

    def describe_refit(self) -> str:
        """As a clone; InvalidInput where it cannot be cloned."""
        self._clone()
        return f"a clone of {type(self.estimator).__name__} with the same settings"

    def refit(self, inputs: Any, labels: Labels, seed: int, *, n_table: int) -> Any:
        """An estimator or pipeline with the same settings, its seed among them, fitted anew."""
        from threadpoolctl import threadpool_limits

        classes = np.asarray(self.estimator.classes_)
        favorable, other = classes[self.favorable_column], classes[1 - self.favorable_column]
        truth = np.where(labels == 1, favorable, other).astype(classes.dtype)
        inputs = inputs if self.prepare is None else self.prepare(inputs)
        # OpenMP teams that wait for one another on a busy machine are slower than one thread.
        with threadpool_limits(limits=1):
            return self._clone().fit(inputs, truth)

    def _clone(self) -> Any:
        from sklearn.base import clone

        try:
            return forget_caches(clone(self.estimator))
        except (TypeError, RuntimeError, ValueError) as error:
            raise InvalidInput(
                f"{type(self.estimator).__name__} cannot be cloned ({reason(error)}); give a "
                "function of a frame and its labels that returns a fitted model, as --fit "
                "FILE.py:NAME (fit=... in Python)"
            ) from None

    def _labels(self, inputs: Any) -> Mask:
        answers = whole(self.estimator.predict(inputs)).reshape(-1)
        return np.asarray(answers == self.estimator.classes_[self.favorable_column])

    def _note(self) -> SklearnModel:
        return replace(self, notes=(*self.notes, _BY_LABEL)) if self.reads == "label" else self


def classifier(
    target: Any,
    decision: Decision,
    *,
    columns: Sequence[str] | None,
    n_columns: int | None,
    prepare: Callable[[Any], Any] | None = None,
) -> Model:
    """A model of a classifier that takes these columns, after `prepare` has changed the frame."""
    classes = getattr(target, "classes_", None)
    if classes is None and not hasattr(target, "get_params"):
        # An object with nothing but predict is a function of a frame.
        return FunctionModel(target.predict, Answers(decision))
    if classes is None or not len(classes):
        raise BadModel(
            f"{type(target).__name__} is not a fitted classifier (it has no classes_); "
            "fit it first, and give a classifier, not a regressor"
        )
    if np.ndim(classes[0]):
        raise BadModel("the model predicts several outputs; limi tests one decision")
    way = "label" if _has_own_threshold(target) else _ways(target)[0]
    model = SklearnModel(
        target,
        decision.column(list(classes)),
        reads=way,
        columns=columns,
        n_columns=n_columns,
        prepare=prepare,
        notes=decision.notes(list(classes)),
        votes=_counts_votes(_last(target)),
    )
    return model._note() if _has_own_threshold(target) else model


def _ways(target: Any) -> list[Reads]:
    """How this estimator can be read, best first."""
    ways: list[Reads] = ["label"]
    if hasattr(target, "decision_function"):
        ways.insert(0, "margin")
    if hasattr(target, "predict_proba"):
        # Platt's probabilities are fitted apart from the margin that an SVM decides by.
        svm = type(_last(target)).__name__ in ("SVC", "NuSVC")
        ways.insert(1 if svm else 0, "probability")
    return ways


def _has_own_threshold(target: Any) -> bool:
    """scikit-learn's threshold wrappers decide by another limit than 0.5."""
    return type(_last(target)).__name__ in (
        "FixedThresholdClassifier",
        "TunedThresholdClassifierCV",
    )


def _counts_votes(target: Any) -> bool:
    """Trees and neighbours count rows: no processor moves their ties, and the first class wins."""
    parts = getattr(target, "estimators_", (target,))
    parts = parts.ravel() if isinstance(parts, np.ndarray) else parts
    return hasattr(target, "n_neighbors") or all(hasattr(part, "tree_") for part in parts)


def _last(target: Any) -> Any:
    """The estimator that decides in the end, inside pipelines and searches."""
    while True:
        if hasattr(target, "steps"):
            target = target.steps[-1][1]
        elif hasattr(target, "best_estimator_"):
            target = target.best_estimator_
        else:
            return target

"""A fitted classifier as a model, whichever library it comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from limi.decisions import (
    AS_DECIDED,
    DECIDED_AGAINST,
    DECIDED_FOR,
    EDGE,
    Classes,
    Rule,
    move_threshold,
)
from limi.errors import BadModel, GivesNumbers, InvalidInput
from limi.models._base import Answers, Decision, Model, Takes, ignore
from limi.models._forests import shares
from limi.models._function import FunctionModel
from limi.models._scores import Favored, Places, from_labels, from_margin, from_pairs, whole
from limi.models._trees import forget_caches
from limi.system import cores
from limi.system.foreign import reason
from limi.types import Scores, Truth

__all__ = ["SklearnModel", "classifier"]

Reads = Literal["probability", "margin", "label"]

_BY_LABEL = (
    "the model does not decide by a score above 0.5 (it has its own threshold), so its decisions "
    "were used, and scores are 0 or 1"
)
_BY_CLASS = "the model does not always choose its most probable class, so its decisions were used"


class _Refitted(ABC):
    """What can be fitted again as a clone of its estimator, whatever it predicts."""

    estimator: Any
    prepare: Callable[[Any], Any] | None

    @abstractmethod
    def _spell(self, labels: Truth) -> NDArray[Any]:
        """What the estimator is to learn, as it was given it."""

    def describe_refit(self) -> str:
        """As a clone; InvalidInput where it cannot be cloned."""
        return _describe_clone(self.estimator)

    @property
    def learns_weights(self) -> bool:
        """Does the estimator, or the last of a pipeline, take weights?"""
        return _takes_weights(self.estimator)

    def refit(
        self,
        inputs: Any,
        labels: Truth,
        seed: int,
        *,
        n_table: int,
        weights: NDArray[np.float64] | None = None,
    ) -> Any:
        """An estimator or pipeline with the same settings, its seed among them, fitted again."""
        inputs = inputs if self.prepare is None else self.prepare(inputs)
        return _fit_clone(self.estimator, inputs, self._spell(labels), weights)


@dataclass(frozen=True)
class SklearnModel(_Refitted):
    """Score rows with a fitted classifier, of two classes or of more.

    The estimator receives what it was trained on: a frame with its own columns where it knows
    their names, else an array. Probabilities are preferred to margins and margins to labels, as
    long as they say the same as `predict`: an SVM's probabilities may contradict its decisions.
    The threshold of scikit-learn's threshold classifiers is read; other estimators with a
    threshold of their own are asked for labels.
    """

    estimator: Any
    favorable_column: Favored
    reads: Reads = "probability"
    columns: Sequence[str] | None = None
    n_columns: int | None = None
    prepare: Callable[[Any], Any] | None = None  # what the library needs done to the frame first
    notes: tuple[str, ...] = ()
    votes: bool = False  # are its probabilities shares of votes?
    own: OwnThreshold | None = None  # where it decides by one
    by_score: bool = False  # does its score alone count, whatever `predict` says?

    @property
    def takes(self) -> Takes:
        """A frame where the estimator was fitted on one, or does not say what it was fitted on."""
        return "array" if self.columns is None and self.n_columns is not None else "frame"

    def score(self, inputs: Any) -> Scores:
        """Scores of the favorable class."""
        inputs = inputs if self.prepare is None else self.prepare(inputs)
        if self.reads == "label":
            return self._labels(inputs)
        margin = self.reads == "margin"
        ask = self.estimator.decision_function if margin else partial(shares, self.estimator)
        raw = ask(inputs)
        if self.own is not None:
            return self.own.scores(raw, self.favorable_column)
        if margin:
            return from_margin(raw, self.favorable_column)
        return from_pairs(raw, self.favorable_column, votes=self.votes)

    def decide(self, inputs: Any) -> Any:
        """Where `predict` gives the favorable class; by a rule of classes, the class it gives."""
        told = self._labels(inputs if self.prepare is None else self.prepare(inputs))
        return np.floor(told) if isinstance(self.favorable_column, Places) else told == 1

    def settle(self, inputs: Any, on_asked: Callable[[int], None] = ignore) -> SklearnModel:
        """The first way to read a score that agrees with `predict` on these rows."""
        if self.by_score:
            return self
        on_asked(len(inputs))
        decided = self.decide(inputs)
        known: list[Reads] = ["label"] if self.own else _ways(self.estimator)
        ways = [way for way in known if way != self.reads]
        for way in (self.reads, *ways):
            model = replace(self, reads=way)
            if way == "label":
                break
            on_asked(len(inputs))
            if not self.rule.contradicts(model.score(inputs), decided).any():
                break
        if way != self.reads:
            return model._note()
        return self if self.own is None else replace(self, notes=(*self.notes, self.own.note))

    @property
    def own_threshold(self) -> float | None:
        """The score of the favorable class at which it decides by itself, where that is known."""
        if self.own is None or self.own.reads != "probability" or self.reads != "probability":
            return None
        is_own = self.favorable_column == self.own.column
        value = self.own.value if is_own else 1 - self.own.value
        return value if EDGE < value < 1 - EDGE else None

    def _spell(self, labels: Truth) -> NDArray[Any]:
        """Labels as the estimator was given them."""
        classes = np.asarray(self.estimator.classes_)
        if isinstance(self.favorable_column, Places):
            spelled = list(self.favorable_column.rule.labels)  # also of what the model never saw
            for place, label in zip(self.favorable_column.of, classes.tolist(), strict=True):
                if place < len(spelled):
                    spelled[place] = label
            return np.take(np.asarray(spelled), labels.astype(np.intp))
        assert isinstance(self.favorable_column, int)  # some of many labels are not repaired
        favorable, other = classes[self.favorable_column], classes[1 - self.favorable_column]
        return np.asarray(np.where(labels == 1, favorable, other), dtype=classes.dtype)

    def _labels(self, inputs: Any) -> Scores:
        answers = whole(self.estimator.predict(inputs)).reshape(-1)
        return from_labels(answers, self.estimator.classes_, self.favorable_column)

    @property
    def rule(self) -> Rule:
        """What its answers mean, before a threshold of the user's."""
        column = self.favorable_column
        return column.rule if isinstance(column, Places) else AS_DECIDED

    def _note(self) -> SklearnModel:
        if self.reads != "label":
            return self
        note = _BY_CLASS if isinstance(self.favorable_column, Places) else _BY_LABEL
        return replace(self, notes=(*self.notes, note))


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
    if is_regressor(target):
        return regressor(target, decision, columns=columns, n_columns=n_columns, prepare=prepare)
    if classes is None or not len(classes):
        raise BadModel(
            f"{type(target).__name__} is not a fitted classifier (it has no classes_); "
            "fit it first, and give a classifier, not a regressor"
        )
    if np.ndim(classes[0]):
        raise BadModel("the model predicts several outputs; limi tests one decision")
    asks_score = decision.by_score or isinstance(decision.rule, Classes)
    own = None if asks_score else OwnThreshold.of(target)
    if decision.by_score and not hasattr(target, "predict_proba"):
        raise BadModel(
            f"{type(target).__name__} returns no probabilities (it has no predict_proba), so there "
            "is no score to compare with a threshold; leave the threshold out, or calibrate the "
            "model (CalibratedClassifierCV)"
        )
    return SklearnModel(
        target,
        decision.favored(list(classes)),
        reads="probability" if decision.by_score else own.reads if own else _ways(target)[0],
        columns=columns,
        n_columns=n_columns,
        prepare=prepare,
        notes=decision.notes(list(classes)),
        votes=_counts_votes(_last(target)),
        own=own,
        by_score=decision.by_score,
    )


@dataclass(frozen=True)
class RegressorModel(_Refitted):
    """Ask a fitted regressor for its numbers."""

    estimator: Any
    columns: Sequence[str] | None = None
    n_columns: int | None = None
    prepare: Callable[[Any], Any] | None = None

    @property
    def takes(self) -> Takes:
        """As a classifier does."""
        return "array" if self.columns is None and self.n_columns is not None else "frame"

    def score(self, inputs: Any) -> Scores:
        """What it predicts."""
        inputs = inputs if self.prepare is None else self.prepare(inputs)
        numbers = whole(self.estimator.predict(inputs)).astype(np.float64)
        if numbers.ndim == 2 and numbers.shape[1] != 1:
            raise BadModel(
                f"the model predicts {numbers.shape[1]} numbers for each row; limi tests models "
                "that predict one"
            )
        return numbers.reshape(-1)

    def _spell(self, labels: Truth) -> NDArray[Any]:
        """Numbers as they are."""
        return labels.astype(np.float64)


def _fit_clone(
    estimator: Any, inputs: Any, truth: NDArray[Any], weights: NDArray[np.float64] | None
) -> Any:
    from joblib import parallel_config
    from threadpoolctl import threadpool_limits

    told = {}
    if weights is not None:
        told = {f"{_inner(estimator)[0]}sample_weight": weights}
    # OpenMP teams that wait for one another on a busy machine are slower than one thread. Trees
    # of a forest that leaves it open are grown by as many threads as there are free cores,
    # each from a seed of its own.
    workers = parallel_config("threading", n_jobs=cores.n_free())
    with threadpool_limits(limits=1), workers:
        return _clone(estimator).fit(inputs, truth, **told)


def _describe_clone(estimator: Any) -> str:
    _clone(estimator)
    return f"a clone of {type(estimator).__name__} with the same settings"


def _clone(estimator: Any) -> Any:
    from sklearn.base import clone

    try:
        return forget_caches(clone(estimator))
    except (TypeError, RuntimeError, ValueError) as error:
        raise InvalidInput(
            f"{type(estimator).__name__} cannot be cloned ({reason(error)}); give a "
            "function of a frame and its labels that returns a fitted model, as --fit "
            "FILE.py:NAME (fit=... in Python)"
        ) from None


def _takes_weights(estimator: Any) -> bool:
    from sklearn.utils.validation import has_fit_parameter

    return bool(has_fit_parameter(_inner(estimator)[1], "sample_weight"))


def regressor(
    target: Any,
    decision: Decision,
    *,
    columns: Sequence[str] | None,
    n_columns: int | None,
    prepare: Callable[[Any], Any] | None,
) -> RegressorModel:
    """A model of a fitted regressor; GivesNumbers where the rule wants decisions."""
    if not decision.for_numbers:
        raise GivesNumbers(
            f"{type(_last(target)).__name__} is a regressor and returns numbers, which the rule "
            f"{str(decision.rule)!r} cannot compare; say how far apart two may be, or where bands "
            "begin: --decision 'difference > D', 'difference > 10 %' or 'bands = A, B, C'"
        )
    return RegressorModel(target, columns, n_columns, prepare)


def is_regressor(target: Any) -> bool:
    """Does an estimator of any library predict numbers?"""
    classes = getattr(target, "classes_", None)
    if classes is not None and len(classes):
        return False
    kind = getattr(target, "_estimator_type", None)
    if kind is None and hasattr(target, "__sklearn_tags__"):
        kind = target.__sklearn_tags__().estimator_type
    return bool(kind == "regressor") and _is_fitted(target)


def _is_fitted(target: Any) -> bool:
    """As far as an estimator says so: fitted attributes end with an underscore."""
    last = _last(target)
    if hasattr(last, "__sklearn_is_fitted__"):
        return bool(last.__sklearn_is_fitted__())
    if hasattr(last, "is_fitted"):
        return bool(last.is_fitted())
    return any(name.endswith("_") and not name.startswith("_") for name in vars(last))


@dataclass(frozen=True)
class OwnThreshold:
    """The threshold of scikit-learn's threshold classifiers and of averaged ones, read from them:
    its score is known, where their `predict` tells a label alone."""

    value: float
    column: int  # the class that is decided at or above it
    reads: Reads

    @staticmethod
    def of(target: Any) -> OwnThreshold | None:
        """That of an estimator, inside pipelines and searches; None where it has none."""
        last = _last(target)
        if type(last).__name__ == "AveragedClassifier":  # whose module needs scikit-learn
            way: Reads = "margin" if last.reads == "margin" else "probability"
            return None if last.threshold is None else OwnThreshold(last.threshold, 1, way)
        if type(last).__name__ not in ("FixedThresholdClassifier", "TunedThresholdClassifierCV"):
            return None
        method = last.response_method
        if method == "auto":
            has = hasattr(getattr(last, "estimator_", last.estimator), "predict_proba")
            method = "predict_proba" if has else "decision_function"
        reads: Reads = "probability" if method == "predict_proba" else "margin"
        value = getattr(last, "best_threshold_", None)
        value = last.threshold if value is None else value
        if isinstance(value, str):  # "auto"
            value = 0.5 if reads == "probability" else 0.0
        # A tuned one has the positive class of its metric. Should it be another one day, then
        # `predict` contradicts these scores, and is asked instead.
        scorer = getattr(last, "_curve_scorer", None)
        positive = last.pos_label if scorer is None else scorer._get_pos_label()
        places = np.flatnonzero(np.asarray(last.classes_) == positive)
        return OwnThreshold(float(value), int(places[0]) if len(places) else 1, reads)

    @property
    def of_second(self) -> float:
        """Where the second class is decided, whichever of the two this one is of."""
        if self.column == 1:
            return self.value
        return -self.value if self.reads == "margin" else 1 - self.value

    @property
    def note(self) -> str:
        """How its scores are shown, for the report."""
        told = f"the model decides at a {self.reads} of {self.value:.6g}, its own threshold; "
        if self.reads == "margin":
            return f"{told}scores are the logistic function of the distance from it"
        return (
            f"{told}reports show the model's own scores, and findings have them as model_score, "
            "beside a score that is rescaled so that 0.5 stands for the threshold"
        )

    def scores(self, raw: Any, favorable_column: Favored) -> Scores:
        """Scores of probabilities or margins, moved so that this threshold lies at 0.5."""
        if self.reads == "margin":
            margin = whole(raw).astype(np.float64)
            signed = (margin if self.column == 1 else -margin) - self.value
            return from_margin(signed, int(favorable_column == self.column))
        shares = whole(raw).astype(np.float64)[:, self.column]
        if self.value <= EDGE or self.value >= 1 - EDGE:
            # No middle can be moved there: everything but the end itself is on one side.
            moved = np.where(shares >= self.value, DECIDED_FOR, DECIDED_AGAINST)
        else:
            moved = move_threshold(shares, self.value)
        scores: Scores = moved if favorable_column == self.column else 1 - moved
        return scores


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


def _counts_votes(target: Any) -> bool:
    """Trees and neighbours count rows: no processor moves their ties, and the first class wins.

    Boosting adds up steps instead, whose last digits differ between processors.
    """
    if hasattr(target, "learning_rate"):
        return False
    parts = getattr(target, "estimators_", (target,))
    parts = parts.ravel() if isinstance(parts, np.ndarray) else parts
    return hasattr(target, "n_neighbors") or all(hasattr(part, "tree_") for part in parts)


def _inner(target: Any) -> tuple[str, Any]:
    """The estimator that a pipeline ends with, and what its settings are called by the whole."""
    prefix = ""
    while hasattr(target, "steps"):
        name, target = target.steps[-1]
        prefix += f"{name}__"
    return prefix, target


def _last(target: Any) -> Any:
    """The estimator that decides in the end, inside pipelines and searches."""
    while True:
        if hasattr(target, "steps"):
            target = target.steps[-1][1]
        elif hasattr(target, "best_estimator_"):
            target = target.best_estimator_
        else:
            return target

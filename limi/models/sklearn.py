"""Targets that follow the scikit-learn classifier interface, pipelines included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limi.errors import BadModel
from limi.models._base import Decision, Takes
from limi.types import Scores

__all__ = ["SklearnModel", "accepts", "wrap"]


@dataclass(frozen=True)
class SklearnModel:
    """Score rows with a fitted binary classifier.

    The estimator receives what it was trained on: a frame with its own columns where it knows
    their names, else an array. A margin is preferred to probabilities where both exist: its sign
    is the decision, which the calibrated probabilities of an SVM may contradict. Estimators that
    decide by a threshold of their own are asked for labels.
    """

    estimator: Any
    favorable_column: int
    labels_only: bool = False

    @property
    def takes(self) -> Takes:
        """A frame where the estimator was fitted on one."""
        return "frame" if self.columns is not None else "matrix"

    @property
    def columns(self) -> Sequence[str] | None:
        """The names seen in training."""
        names = getattr(self.estimator, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @property
    def n_columns(self) -> int | None:
        """The number of columns seen in training."""
        count = getattr(self.estimator, "n_features_in_", None)
        return None if count is None else int(count)

    def score(self, inputs: Any) -> Scores:
        """Scores of the favorable class."""
        second = self.favorable_column == 1
        if self.labels_only:
            answers = np.asarray(self.estimator.predict(inputs))
            favorable = self.estimator.classes_[self.favorable_column]
            return np.asarray(answers == favorable, dtype=np.float64)
        if hasattr(self.estimator, "decision_function"):
            from scipy.special import expit

            margin = np.asarray(self.estimator.decision_function(inputs), dtype=np.float64)
            scores: Scores = expit(margin if second else -margin)
        else:
            chances = np.asarray(self.estimator.predict_proba(inputs), dtype=np.float64)
            scores = chances[:, self.favorable_column]
        if not second:
            # At a tie scikit-learn answers the first class; a score of 0.5 would say the other.
            scores = np.where(scores == 0.5, np.nextafter(0.5, 1.0), scores)
        return scores


def accepts(target: object) -> bool:
    """Anything with `predict` and fitted `classes_`, or an estimator that is not fitted yet."""
    return hasattr(target, "predict") and (
        hasattr(target, "classes_") or hasattr(target, "get_params")
    )


def wrap(target: Any, decision: Decision) -> SklearnModel:
    """A model of a fitted estimator."""
    classes = getattr(target, "classes_", None)
    if classes is None:
        raise BadModel(
            f"{type(target).__name__} is not a fitted classifier (it has no classes_); "
            "fit it first, and give a classifier, not a regressor"
        )
    if np.ndim(classes[0]) if len(classes) else False:
        raise BadModel("the model predicts several outputs; limi tests one decision")
    can_score = hasattr(target, "decision_function") or hasattr(target, "predict_proba")
    labels_only = not can_score or _has_own_threshold(target)
    return SklearnModel(target, decision.column(list(classes)), labels_only)


def _has_own_threshold(target: Any) -> bool:
    """scikit-learn's threshold wrappers decide by another limit than 0.5."""
    last = target.steps[-1][1] if hasattr(target, "steps") else target
    return type(last).__name__ in ("FixedThresholdClassifier", "TunedThresholdClassifierCV")

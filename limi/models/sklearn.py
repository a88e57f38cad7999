"""Classifiers with the scikit-learn interface, live, pipelines included."""

from __future__ import annotations

from typing import Any

from limi.models._base import Decision, Model
from limi.models._classifier import SklearnModel, classifier
from limi.models._gaps import AsTrained, find_gap
from limi.models._offers import ModelOffers

__all__ = ["SklearnModel", "accepts", "wrap"]

OFFERS = ModelOffers(last_resort=1)


def accepts(target: object) -> bool:
    """Anything with `predict`: a fitted classifier, or an estimator to be refused with a reason."""
    return hasattr(target, "predict") and not isinstance(target, type)


def wrap(target: Any, decision: Decision) -> Model:
    """A model of a fitted estimator."""
    names = getattr(target, "feature_names_in_", None)
    count = getattr(target, "n_features_in_", None)
    return classifier(
        target,
        decision,
        columns=None if names is None else [str(name) for name in names],
        n_columns=None if count is None else int(count),
        prepare=AsTrained(find_gap(target)),
    )

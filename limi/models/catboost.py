"""CatBoost classifiers and regressors, live or as `catboost:FILE.cbm`."""

from __future__ import annotations

import sys
from typing import Any

from limi.errors import BadModel, missing, spell
from limi.models._base import Decision, Model
from limi.models._categories import pandas_of, refuse_text
from limi.models._classifier import classifier
from limi.models._files import existing, unreadable
from limi.models._offers import ModelOffers

__all__ = ["accepts", "load", "wrap"]

OFFERS = ModelOffers(data_only=True, endings=(".cbm",), library="catboost")


def accepts(target: object) -> bool:
    """Any model of the library."""
    catboost = sys.modules.get("catboost")
    return catboost is not None and isinstance(target, catboost.CatBoost)


def wrap(target: Any, decision: Decision) -> Model:
    """A model of a fitted CatBoostClassifier or CatBoostRegressor."""
    import catboost

    known = (catboost.CatBoostClassifier, catboost.CatBoostRegressor)
    if not isinstance(target, known) or not target.is_fitted():
        raise BadModel(
            f"{type(target).__name__} is not a fitted classifier or regressor; fit a "
            "CatBoostClassifier or a CatBoostRegressor, or save the model and load its file"
        )
    names = list(target.feature_names_)
    nameless = names == [str(position) for position in range(len(names))]

    def prepare(frame: Any) -> Any:
        frame = pandas_of(frame)
        # Features of text and of embeddings take text as well; only categories must be whole.
        categorical = target.get_cat_feature_indices()
        refuse_text(frame, allowed={*categorical, *target.get_text_feature_indices()})
        gaps = [names[p] for p in categorical if frame.iloc[:, p].isna().any()]
        if gaps:
            raise BadModel(
                f"CatBoost does not accept missing categories, but {spell(gaps)} may have them; "
                "fill them as they were filled for training"
            )
        return frame

    return classifier(
        target,
        decision,
        columns=None if nameless else names,
        n_columns=len(names),
        prepare=None if nameless else prepare,
    )


def load(place: str, decision: Decision) -> Model:
    """The model of a .cbm file."""
    path = existing(place, "catboost", OFFERS.endings)
    try:
        import catboost
    except ImportError:
        raise missing("catboost", "boosters", "reading a CatBoost model") from None
    try:
        target = catboost.CatBoostClassifier().load_model(str(path))
        if not len(target.classes_):
            target = catboost.CatBoostRegressor().load_model(str(path))
    except Exception as error:
        raise unreadable(place, "a CatBoost model", error) from error
    return wrap(target, decision)

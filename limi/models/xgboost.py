"""XGBoost classifiers and boosters, live or as `xgboost:FILE.json` (or .ubj)."""

from __future__ import annotations

import json
import sys
from typing import Any

from limi.errors import BadModel, listed, missing
from limi.models._base import Decision, Model
from limi.models._booster import BoosterModel
from limi.models._categories import Coded
from limi.models._classifier import classifier
from limi.models._files import existing, unreadable
from limi.models._scores import Output

__all__ = ["accepts", "load", "wrap"]

ENDINGS = (".json", ".ubj")

_GIVES: dict[str, Output] = {
    "binary:logistic": "probability",
    "binary:logitraw": "logits",
    "binary:hinge": "probability",  # 0 or 1
    "reg:logistic": "probability",
    "multi:softprob": "probability",
}


def accepts(target: object) -> bool:
    """A Booster, or an estimator of the library."""
    xgboost = sys.modules.get("xgboost")
    return xgboost is not None and isinstance(target, (xgboost.Booster, xgboost.XGBModel))


def wrap(target: Any, decision: Decision) -> Model:
    """A model of a trained booster or fitted classifier."""
    import xgboost

    if isinstance(target, xgboost.XGBModel):
        fitted = hasattr(target, "classes_")
        names = target.get_booster().feature_names if fitted else None
        return classifier(
            target,
            decision,
            columns=names,
            n_columns=target.n_features_in_ if fitted else None,
            prepare=Coded(target.get_booster()) if names else None,
        )
    learner = json.loads(target.save_config())["learner"]
    objective, classes = (
        learner["objective"]["name"],
        int(learner["learner_model_param"]["num_class"]),
    )
    if objective not in _GIVES or classes not in (0, 1, 2):
        raise BadModel(
            f"the booster has the objective {objective!r} over {max(classes, 1)} outputs; limi "
            f"tests decisions between two classes, as by {listed(_GIVES)}"
        )
    names = target.feature_names
    coded = Coded(target) if names else None
    linear = learner["gradient_booster"]["name"] == "gblinear"

    def predict(inputs: Any) -> Any:
        inputs = inputs if coded is None else coded(inputs)
        if linear:  # it has no in-place prediction
            return target.predict(xgboost.DMatrix(inputs, feature_names=names))
        return target.inplace_predict(inputs)

    return BoosterModel(
        target,
        predict,
        decision.column([0, 1]),
        _GIVES[objective],
        columns=names,
        n_columns=target.num_features(),
        notes=decision.notes([0, 1]),
    )


def load(place: str, decision: Decision) -> Model:
    """The model of a .json or .ubj file."""
    path = existing(place, "xgboost", ENDINGS)
    try:
        import xgboost
    except ImportError:
        raise missing("xgboost", "boosters", "reading an XGBoost model") from None
    try:
        target = xgboost.Booster(model_file=path)
        # Classifiers write this mark; they stop at their best iteration, boosters do not.
        if "classifier" in (target.attr("scikit_learn") or ""):
            target = xgboost.XGBClassifier()
            target.load_model(path)
    except Exception as error:
        raise unreadable(place, "an XGBoost model", error) from error
    return wrap(target, decision)

"""XGBoost classifiers and boosters, live or as `xgboost:FILE.json` (or .ubj)."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from limi.errors import BadModel, missing, spell
from limi.models._base import Decision, Model
from limi.models._booster import BoosterModel, gives_numbers
from limi.models._categories import Coded
from limi.models._classifier import classifier
from limi.models._files import existing, unreadable
from limi.models._offers import ModelOffers
from limi.models._scores import Output
from limi.models._trees import check_nodes

__all__ = ["accepts", "load", "wrap"]

OFFERS = ModelOffers(data_only=True, endings=(".json", ".ubj"), library="xgboost")

_GIVES: dict[str, Output] = {
    "binary:logistic": "probability",
    "binary:logitraw": "logits",
    "binary:hinge": "probability",  # 0 or 1
    "reg:logistic": "probability",
    "multi:softprob": "probability",
}
_NUMBERS = (
    "reg:squared",
    "reg:absolute",
    "reg:pseudo",
    "reg:quantile",
    "reg:gamma",
    "reg:tweedie",
    "reg:linear",
    "count:poisson",
)


def accepts(target: object) -> bool:
    """A Booster, or an estimator of the library."""
    xgboost = sys.modules.get("xgboost")
    return xgboost is not None and isinstance(target, (xgboost.Booster, xgboost.XGBModel))


def wrap(target: Any, decision: Decision) -> Model:
    """A model of a trained booster or fitted classifier."""
    import xgboost

    if isinstance(target, xgboost.XGBModel):
        fitted = hasattr(target, "classes_") or target.__sklearn_is_fitted__()
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
    if not decision.for_numbers and classes < 2 and objective.startswith(_NUMBERS):
        raise gives_numbers(objective)
    if decision.for_numbers and (classes > 1 or not objective.startswith((*_NUMBERS, *_GIVES))):
        raise BadModel(
            f"the booster has the objective {objective!r}, which does not return numbers"
        )
    if not decision.for_numbers and (
        objective not in _GIVES or max(classes, 2) != len(decision.numbered)
    ):
        raise BadModel(
            f"the booster has the objective {objective!r} over {max(classes, 1)} outputs; limi "
            f"tests decisions between {len(decision.numbered)} classes, one for each label of the "
            f"table, so use an objective such as {spell(_GIVES)}"
        )
    names = target.feature_names
    coded = Coded(target) if names else None
    linear = learner["gradient_booster"]["name"] == "gblinear"

    def predict(inputs: Any) -> Any:
        if linear:  # it has no in-place prediction
            return target.predict(xgboost.DMatrix(inputs, feature_names=names))
        return target.inplace_predict(inputs)

    return BoosterModel(
        target,
        predict,
        decision.outputs(_GIVES.get(objective)),
        columns=names,
        n_columns=target.num_features(),
        notes=decision.output_notes(),
        prepare=coded,
    )


def load(place: str, decision: Decision) -> Model:
    """The model of a .json or .ubj file."""
    path = existing(place, "xgboost", OFFERS.endings)
    try:
        import xgboost
    except ImportError:
        raise missing("xgboost", "boosters", "reading an XGBoost model") from None
    try:
        target = xgboost.Booster(model_file=path)
        _check(json.loads(target.save_raw("json"))["learner"])
        # Estimators write this mark; they stop at their best iteration, boosters do not.
        mark = target.attr("scikit_learn") or ""
        if "classifier" in mark or "regressor" in mark:
            kind = xgboost.XGBClassifier if "classifier" in mark else xgboost.XGBRegressor
            target = kind()
            target.load_model(path)
    except Exception as error:
        raise unreadable(place, "an XGBoost model", error) from error
    return wrap(target, decision)


def _check(learner: dict[str, Any]) -> None:
    """ValueError where the booster's trees lead nowhere: it follows them without looking."""
    param, booster = learner["learner_model_param"], learner["gradient_booster"]
    width, groups = int(param["num_feature"]), max(1, int(param["num_class"]))
    if booster["name"] == "gblinear":
        if len(booster["model"]["weights"]) != (width + 1) * groups:
            raise ValueError("its weights are not one for each column")
        return
    model = booster.get("gbtree", booster)["model"]
    trees = model["trees"]
    if not trees:
        return
    left, right, feature, kinds = (
        np.concatenate([np.array(tree[name], dtype=np.int64) for tree in trees])
        for name in ("left_children", "right_children", "split_indices", "split_type")
    )
    sizes = np.array([len(tree["left_children"]) for tree in trees])
    check_nodes(left, right, feature, left == -1, width, sizes)
    ends = model.get("iteration_indptr", [0, len(trees)])
    if (
        kinds.shape != left.shape
        or any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in trees)
        or not all(len(tree["split_conditions"]) == n for tree, n in zip(trees, sizes, strict=True))
        or len(model["tree_info"]) != len(trees)
        or not all(0 <= group < groups for group in model["tree_info"])
        or len(booster.get("weight_drop", trees)) != len(trees)
        or ends != sorted(ends)
        or (ends[:1], ends[-1:]) != ([0], [len(trees)])
        or not all(map(_knows_its_categories, trees))
    ):
        raise ValueError("its trees do not fit each other")


def _knows_its_categories(tree: dict[str, Any]) -> bool:
    starts, sizes, nodes = (
        np.array(tree[f"categories_{name}"], dtype=np.int64)
        for name in ("segments", "sizes", "nodes")
    )
    by_set = np.flatnonzero(np.array(tree["split_type"]) == 1)
    ends = starts + sizes
    return (
        starts.shape == sizes.shape == nodes.shape
        and bool(np.isin(by_set, nodes).all())
        and bool(((starts >= 0) & (sizes >= 0) & (ends <= len(tree["categories"]))).all())
        and all(category >= 0 for category in tree["categories"])
    )

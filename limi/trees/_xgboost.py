"""XGBoost: float32 compared with `<`, sets of categories that go right, sums in float32."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel, spell
from limi.trees._read import Read
from limi.trees.ensemble import SINGLE, Categories, Tree, join_trees

__all__ = ["accepts", "read"]

_OBJECTIVES = ("binary:logistic", "binary:logitraw", "reg:logistic")


def accepts(native: Any) -> bool:
    """A Booster, or an estimator of the library."""
    return type(native).__module__.partition(".")[0] == "xgboost"


def read(native: Any, favorable: int) -> Read:
    """The trees of a booster, as far as its best iteration where it stopped early."""
    is_booster = hasattr(native, "save_raw")
    booster = native if is_booster else native.get_booster()
    learner = json.loads(booster.save_raw("json"))["learner"]
    objective, gradient = learner["objective"]["name"], learner["gradient_booster"]
    if objective not in _OBJECTIVES:
        raise BadModel(
            f"the booster has the objective {objective!r}; proofs are possible for "
            f"{spell(_OBJECTIVES)}"
        )
    if gradient["name"] == "gblinear":
        raise BadModel("the booster is linear (gblinear) and has no trees; nothing can be proven")
    model = gradient.get("gbtree", gradient)["model"]
    best = None if is_booster else getattr(native, "best_iteration", None)
    n_trees = len(model["trees"]) if best is None else model["iteration_indptr"][best + 1]
    # Of dart; since 3.4 they stand beside the trees.
    weights = gradient.get("weight_drop") or model.get("weight_drop") or [1.0] * n_trees
    sign = 1.0 if favorable == 1 else -1.0
    trees = [
        _tree(tree, sign * weight)
        for tree, weight in zip(model["trees"][:n_trees], weights, strict=False)
    ]
    start = learner["learner_model_param"]["base_score"]
    share = float(np.float32(start.strip("[]")))
    base = share if objective == "binary:logitraw" else float(np.log(share) - np.log1p(-share))
    joined = join_trees(trees, base=sign * base, link="logistic", unit=SINGLE, kind="XGBoost model")
    gone = np.float32(np.nan if is_booster else native.missing)
    if not np.isnan(gone):  # an estimator may have a number that counts as missing
        ends = (float(gone), float(gone))
        joined = replace(joined, hole=np.ones_like(joined.hole), hole_ends=ends)
    kinds = booster.feature_types or ()
    return Read(joined, _numbers, tuple(place for place, kind in enumerate(kinds) if kind == "c"))


def _numbers(inputs: Any) -> NDArray[Any]:
    return np.asarray(inputs, dtype=np.float32)


def _tree(tree: dict[str, Any], weight: float) -> Tree:
    left = np.array(tree["left_children"])
    # Texts of float32 numbers, which are other numbers in float64.
    numbers = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    starts, sizes = tree["categories_segments"], tree["categories_sizes"]
    sets = {}
    for node, start, size in zip(tree["categories_nodes"], starts, sizes, strict=True):
        right = np.array(tree["categories"][start : start + size], dtype=np.int64)
        goes = np.ones(int(right.max(initial=-1)) + 1, dtype=bool)
        goes[right] = False
        sets[int(node)] = Categories(goes, otherwise=True)
    return Tree(
        feature=np.where(left == -1, -1, tree["split_indices"]),
        threshold=numbers,
        left=left,
        right=np.array(tree["right_children"]),
        value=weight * numbers,
        missing_left=np.array(tree["default_left"], dtype=bool),
        strict=True,
        categories=sets,
    )

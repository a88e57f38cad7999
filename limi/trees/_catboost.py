"""CatBoost's symmetric trees: float32 above a border, the same question for a whole level."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel
from limi.trees._read import Read
from limi.trees.ensemble import DOUBLE, Tree, join_trees

__all__ = ["accepts", "of_json", "read"]


def accepts(native: Any) -> bool:
    """Any model of the library."""
    return type(native).__module__.partition(".")[0] == "catboost"


def read(native: Any, favorable: int) -> Read:
    """The trees, by way of the library's own JSON."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.json")
        native.save_model(str(file), format="json")
        tree = json.loads(file.read_text(encoding="utf-8"))
    return of_json(tree, favorable)


def of_json(model: dict[str, Any], favorable: int) -> Read:
    """The trees of a model that the library wrote as JSON."""
    if model.get("features_info", {}).get("categorical_features"):
        raise BadModel(
            "the CatBoost model takes categories, which it turns into statistics of the training "
            "rows; nothing can be proven about it: train it on numbers (an OrdinalEncoder before "
            "it)"
        )
    if "oblivious_trees" not in model:
        raise BadModel(
            "the CatBoost model has trees that are not symmetric (grow_policy); nothing can be "
            "proven about it"
        )
    infos = model["features_info"]["float_features"]
    place_of = {info["feature_index"]: info["flat_feature_index"] for info in infos}
    up = {i["feature_index"] for i in infos if i.get("nan_value_treatment") == "AsTrue"}
    scale, (bias,) = model["scale_and_bias"]
    sign = 1.0 if favorable == 1 else -1.0
    trees = [_tree(tree, place_of, up, sign * scale) for tree in model["oblivious_trees"]]
    joined = join_trees(
        trees, base=sign * bias, link="logistic", unit=DOUBLE, kind="CatBoost model"
    )
    return Read(joined, _numbers)


def _numbers(inputs: Any) -> NDArray[Any]:
    return np.asarray(inputs, dtype=np.float32)


def _tree(tree: dict[str, Any], place_of: dict[int, int], up: set[int], scale: float) -> Tree:
    splits = tree["splits"] or []
    depth = len(splits)
    if any(split["split_type"] != "FloatFeature" for split in splits):
        raise BadModel("the CatBoost model uses more than numbers; nothing can be proven about it")
    values = np.array(tree["leaf_values"], dtype=np.float64)
    if len(values) != 1 << depth:
        raise BadModel("the CatBoost model has several outputs; proofs are about two labels")
    inner = (1 << depth) - 1
    node = np.arange(inner)
    level = np.floor(np.log2(node + 1)).astype(np.int64)
    asked = [splits[k] for k in level]
    # The answer at each level is a bit of the leaf's number, the first level's the lowest.
    way = np.arange(1 << depth)
    number = sum((way >> (depth - 1 - k) & 1) << k for k in range(depth)) if depth else way
    leaves = 1 << depth
    features = [split["float_feature_index"] for split in asked]
    borders = np.array([split["border"] for split in asked], dtype=np.float32)
    return Tree(
        feature=np.append([place_of[f] for f in features], np.full(leaves, -1)),
        threshold=np.append(borders.astype(np.float64), np.zeros(leaves)),
        left=np.append(2 * node + 1, np.zeros(leaves)),
        right=np.append(2 * node + 2, np.zeros(leaves)),
        value=np.append(np.zeros(inner), scale * values[number]),
        missing_left=np.append([f not in up for f in features], np.zeros(leaves)),
    )

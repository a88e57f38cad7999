"""Histogram gradient boosting of scikit-learn, as it is read and as limi learns with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.trees._read import Read
from limi.trees.ensemble import DOUBLE, Categories, Tree, join_trees
from limi.trees.masks import Planted

__all__ = ["plant", "read_histograms"]


def read_histograms(native: Any, sign: float = 1.0) -> Read:
    """The trees of a classifier of two classes or of a regressor, times `sign`."""
    known, place_of = native._bin_mapper.make_known_categories_bitsets()
    trees = []
    for (predictor,) in native._predictors:
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        by_set = np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf)
        asked = nodes[by_set]
        missing_left = asked["missing_go_to_left"].astype(bool)
        left = _bits(predictor.raw_left_cat_bitsets)[asked["bitset_idx"]]
        right = _bits(known)[place_of[asked["feature_idx"]]] & ~left
        # A category that was not there at training goes where missing ones do.
        left |= missing_left[:, None] & ~right
        sets = {
            int(node): Categories(one, bool(missing))
            for node, one, missing in zip(by_set, left, missing_left, strict=True)
        }
        trees.append(
            Tree(
                feature=np.where(leaf, -1, nodes["feature_idx"]),
                threshold=nodes["num_threshold"],
                left=nodes["left"],
                right=nodes["right"],
                value=sign * nodes["value"],
                missing_left=nodes["missing_go_to_left"].astype(bool),
                categories=sets,
            )
        )
    base = sign * float(np.ravel(native._baseline_prediction)[0])
    joined = join_trees(trees, base=base, link="logistic", unit=DOUBLE, kind=type(native).__name__)

    def numbers(inputs: Any) -> NDArray[Any]:
        found: NDArray[Any] = native._preprocess_X(inputs, reset=False)
        return found

    by_category = native.is_categorical_
    return Read(joined, numbers, () if by_category is None else tuple(np.flatnonzero(by_category)))


def plant(native: Any, columns: NDArray[np.intp]) -> Planted:
    """The trees over a table of which the model was given these columns."""
    read = read_histograms(native)
    by_category = native.is_categorical_
    if by_category is None:
        by_category = np.zeros(len(columns), dtype=bool)
    # The library puts categories first.
    moved = np.concatenate([np.flatnonzero(by_category), np.flatnonzero(~by_category)])
    return Planted(read.ensemble, columns[moved], lambda rows: read.numbers(rows[:, columns]))


def _bits(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """The bits of lines of 32-bit words, the lowest first."""
    bits = np.asarray(words, dtype=np.uint32)[:, :, None] >> np.arange(32, dtype=np.uint32)
    return (bits & 1).astype(bool).reshape(len(bits), 32 * bits.shape[1])

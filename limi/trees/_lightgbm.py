"""LightGBM: float64 compared with `<=`, three ways with missing numbers, sums in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel, spell
from limi.trees._read import Read
from limi.trees.ensemble import DOUBLE, TINY, Categories, Tree, join_trees

__all__ = ["accepts", "read"]

_OBJECTIVES = ("binary", "cross_entropy")

_BY_SET, _DEFAULT_LEFT, _MISSING_SHIFT = 1, 2, 2
_AS_ZERO, _ZERO_TOO = 0, 1  # what counts as missing: nothing, so that NaN is 0; zero and NaN


def accepts(native: Any) -> bool:
    """A Booster, or an estimator of the library."""
    return type(native).__module__.partition(".")[0] == "lightgbm"


def read(native: Any, favorable: int) -> Read:
    """The trees of a booster, as far as its best iteration where it stopped early."""
    booster = getattr(native, "booster_", native)
    text = booster.model_to_string()
    head, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    header = _pairs(head)
    objective, _, settings = header.get("objective", "none").partition(" ")
    if objective not in _OBJECTIVES:
        raise BadModel(
            f"the booster has the objective {objective!r}; proofs are possible for "
            f"{spell(_OBJECTIVES)}"
        )
    told = dict(word.split(":", 1) for word in settings.split() if ":" in word)
    scale = float(told.get("sigmoid", 1.0)) * (1.0 if favorable == 1 else -1.0)
    if "average_output" in head.splitlines():
        scale /= max(1, len(blocks))
    trees = [_tree(_pairs(block), scale) for block in blocks]
    joined = join_trees(trees, base=0.0, link="logistic", unit=DOUBLE, kind="LightGBM model")
    by_set = joined.feature[joined.set_of >= 0]
    return Read(joined, _numbers, tuple(np.unique(by_set).tolist()))


def _numbers(inputs: Any) -> NDArray[Any]:
    """Categories of a pandas frame become their codes, as the library has them."""
    if hasattr(inputs, "dtypes") and hasattr(inputs, "columns"):
        columns = [inputs[name] for name in inputs.columns]
        cells = [
            np.where(column.cat.codes < 0, np.nan, column.cat.codes)
            if hasattr(column.dtype, "categories")
            else column.to_numpy(dtype=np.float64, na_value=np.nan)
            for column in columns
        ]
        found = np.stack(cells, axis=1).astype(np.float64)
    else:
        found = np.array(inputs, dtype=np.float64)
    found[np.abs(found) <= TINY] = 0.0
    return found


def _tree(tree: dict[str, str], scale: float) -> Tree:
    if int(tree.get("is_linear", "0")):
        raise BadModel("the booster has linear functions in its leaves; nothing can be proven")
    value = np.array(tree["leaf_value"].split(), dtype=np.float64)
    n = len(value) - 1
    if not n:
        return Tree([-1], [0.0], [0], [0], scale * value, False)

    def ints(name: str) -> NDArray[np.int64]:
        return np.array(tree[name].split(), dtype=np.int64)

    threshold = np.array(tree["threshold"].split(), dtype=np.float64)
    kinds = ints("decision_type")
    how = kinds >> _MISSING_SHIFT & 3
    default_left = kinds & _DEFAULT_LEFT > 0
    by_set = kinds & _BY_SET > 0
    missing_left = np.where(how == _AS_ZERO, threshold >= 0, default_left) & ~by_set
    sets = {}
    if by_set.any():
        ends, words = ints("cat_boundaries"), ints("cat_threshold")
        for node in np.flatnonzero(by_set):
            place = int(threshold[node])
            bits = words[ends[place] : ends[place + 1], None] >> np.arange(32) & 1
            sets[int(node)] = Categories(bits.astype(bool).ravel())

    # A leaf is a node behind the inner ones: -1 is the first of them, and so on.
    def place_of(name: str) -> NDArray[np.int64]:
        child = ints(name)
        return _padded(np.where(child < 0, n - 1 - child, child), n + 1)

    return Tree(
        feature=np.append(ints("split_feature"), np.full(n + 1, -1)),
        threshold=_padded(threshold, n + 1),
        left=place_of("left_child"),
        right=place_of("right_child"),
        value=np.append(np.zeros(n), scale * value),
        missing_left=_padded(missing_left, n + 1),
        hole=_padded((how == _ZERO_TOO) & ~by_set, n + 1),
        categories=sets,
    )


def _padded(array: NDArray[Any], more: int) -> NDArray[Any]:
    return np.append(array, np.zeros(more, dtype=array.dtype))


def _pairs(block: str) -> dict[str, str]:
    lines = [line.partition("=") for line in block.splitlines() if "=" in line]
    return {name: value for name, _, value in lines}

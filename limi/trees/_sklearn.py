"""Forests, ExtraTrees, gradient boosting and histogram gradient boosting of scikit-learn.

Forests and gradient boosting compare float32 with `<=`, histogram gradient boosting float64.
Leaves of forests hold shares of classes, whose mean decides; the others add up log-odds. All of
them add in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel
from limi.trees._read import Read
from limi.trees.ensemble import DOUBLE, Tree, join_trees
from limi.trees.histograms import read_histograms

__all__ = ["accepts", "read", "read_forest"]

_FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")
_TREES = ("DecisionTreeClassifier", "ExtraTreeClassifier")
_BOOSTING, _HISTOGRAMS = "GradientBoostingClassifier", "HistGradientBoostingClassifier"


def accepts(native: Any) -> bool:
    """A fitted ensemble of the library itself, not of a class made from one."""
    kind = type(native)
    known = (*_FORESTS, *_TREES, _BOOSTING, _HISTOGRAMS)
    return kind.__module__.partition(".")[0] == "sklearn" and kind.__name__ in known


def read(native: Any, favorable: int) -> Read:
    """The trees; above 0 the class at `favorable` is decided."""
    name = type(native).__name__
    if name == _HISTOGRAMS:
        return read_histograms(native, 1.0 if favorable == 1 else -1.0)

    def numbers(inputs: Any) -> NDArray[Any]:
        from sklearn.utils.validation import validate_data

        found: NDArray[Any] = validate_data(
            native, inputs, dtype=np.float32, ensure_all_finite="allow-nan", reset=False
        )
        return found

    if name == _BOOSTING:
        return _read_boosting(native, favorable, numbers)
    parts = [native] if name in _TREES else native.estimators_
    return read_forest([one.tree_ for one in parts], favorable, numbers, name)


def read_forest(
    trees: Sequence[Any], favorable: int, numbers: Callable[[Any], NDArray[Any]], kind: str
) -> Read:
    """Trees whose leaves hold shares of two classes."""
    joined = []
    for tree in trees:
        shares = tree.value[:, 0, :]
        joined.append(_tree(tree, (shares[:, favorable] - shares[:, 1 - favorable]) / len(trees)))
    return Read(join_trees(joined, base=0.0, link="share", unit=DOUBLE, kind=kind), numbers)


def _read_boosting(native: Any, favorable: int, numbers: Callable[[Any], NDArray[Any]]) -> Read:
    start = native.init_
    if start != "zero" and type(start).__name__ != "DummyClassifier":
        raise BadModel(
            f"the gradient boosting starts from a {type(start).__name__} (init), which is not made "
            "of trees; nothing can be proven about it"
        )
    sign = 1.0 if favorable == 1 else -1.0
    base = float(native._raw_predict_init(np.zeros((1, native.n_features_in_), np.float32))[0, 0])
    trees = [
        _tree(one.tree_, sign * native.learning_rate * one.tree_.value[:, 0, 0])
        for one in native.estimators_[:, 0]
    ]
    joined = join_trees(trees, base=sign * base, link="logistic", unit=DOUBLE, kind=_BOOSTING)
    return Read(joined, numbers)


def _tree(tree: Any, value: NDArray[Any]) -> Tree:
    return Tree(
        feature=np.where(tree.children_left < 0, -1, tree.feature),
        threshold=tree.threshold,
        left=tree.children_left,
        right=tree.children_right,
        value=value,
        missing_left=np.asarray(tree.missing_go_to_left, dtype=bool),
    )

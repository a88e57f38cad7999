"""Trees from files: libraries walk them without looking, so they are looked at before.

A child that lies outside its tree, or above its parent, sends such a walk into foreign memory or
in circles; so does a column that the rows do not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_estimator", "check_nodes", "forget_caches", "parts"]

# Things that have attributes and are not part of a fitted model's state.
_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, np.ufunc)


def check_nodes(
    left: NDArray[Any],
    right: NDArray[Any],
    feature: NDArray[Any],
    leaf: NDArray[Any],
    n_columns: int,
    sizes: NDArray[Any],
) -> None:
    """ValueError where a walk down these trees would not end in a leaf of the same tree.

    Trees stand one behind another, `sizes` nodes each, and children count from their tree's first
    node, the root. Where every other node has one parent at most, no walk from the root goes round.
    """
    total = int(sizes.sum())
    shapes = {part.shape for part in (left, right, feature, leaf)}
    kinds = {part.dtype.kind for part in (left, right, feature, sizes)}
    if shapes != {(total,)} or not kinds <= {"i", "u"} or not (sizes > 0).all():
        raise ValueError("its trees are not whole arrays of nodes")
    # Signed and wide, so that neither -1 nor a huge number changes its meaning.
    left, right, feature, sizes = (part.astype(np.int64) for part in (left, right, feature, sizes))
    inner = ~leaf.astype(bool)
    first, size = (np.repeat(part, sizes)[inner] for part in (np.cumsum(sizes) - sizes, sizes))
    children = np.stack([left[inner], right[inner]])
    columns = feature[inner]
    if (
        not ((children > 0) & (children < size)).all()
        or not ((columns >= 0) & (columns < n_columns)).all()
        or np.bincount((children + first).ravel(), minlength=1).max() > 1
    ):
        raise ValueError("its trees lead nowhere")


def check_estimator(estimator: Any) -> None:
    """ValueError where a scikit-learn model holds trees that would be walked out of bounds."""
    for part in parts(estimator):
        module, own = type(part).__module__, _attributes(part)
        if module in ("sklearn.neighbors._kd_tree", "sklearn.neighbors._ball_tree"):
            _check_index(part)
        if type(own.get("tree_")).__module__ == "sklearn.tree._tree":
            _check_tree(own["tree_"], _width(own))
        if module.startswith("sklearn.ensemble._hist_gradient_boosting") and "_predictors" in own:
            _check_boosting(own)
        if module in ("sklearn.ensemble._forest", "sklearn.ensemble._gb") and "estimators_" in own:
            _check_ensemble(own)


def forget_caches(estimator: Any) -> Any:
    """The same estimator with every `memory` set to None, however deep it lies.

    A cache folder that a file or a stranger's run names may hold planted pickles, which joblib
    opens as soon as the model is fitted.
    """
    for part in parts(estimator):
        own = _attributes(part)
        memory = own.get("memory")
        if isinstance(memory, str) or hasattr(memory, "cache"):  # all that scikit-learn takes
            own["memory"] = None
    return estimator


def parts(whole: Any) -> Iterator[Any]:
    """Whatever an object holds in attributes, lists, dictionaries and arrays; itself first."""
    waiting, seen = [whole], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, (str, bytes, int, float, *_CODE)):
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, (list, tuple, set, frozenset)):
            waiting += part
        elif isinstance(part, np.ndarray) and part.dtype == object:
            waiting += part.ravel().tolist()
        waiting += _attributes(part).values()


def _attributes(part: Any) -> dict[str, Any]:
    own = getattr(part, "__dict__", None)
    return own if isinstance(own, dict) else {}


def _width(own: dict[str, Any]) -> int:
    """How many columns an estimator takes; it skips its own check where it does not say."""
    width = own.get("n_features_in_")
    if not isinstance(width, Integral):
        raise ValueError("its trees do not say how many columns they take")
    return int(width)


def _check_tree(tree: Any, n_columns: int) -> None:
    # Before its arrays are asked for, which are as long as the count says.
    if tree.node_count != tree.capacity or tree.capacity < 1:
        raise ValueError("its trees are not whole arrays of nodes")
    left = tree.children_left
    sizes = np.array([len(left)])
    check_nodes(left, tree.children_right, tree.feature, left == -1, n_columns, sizes)


def _check_ensemble(own: dict[str, Any]) -> None:
    """Forests and boosting hand their rows to the trees unchecked."""
    trees = np.asarray(own["estimators_"], dtype=object)
    if trees.ndim == 2 and trees.shape[1] != 1:
        _check_stages(own, trees.shape[1])
    for tree in trees.ravel():
        if _width(_attributes(tree)) != _width(own):
            raise ValueError("its trees do not take the same columns as the model")


def _check_stages(own: dict[str, Any], n_trees: int) -> None:
    """ValueError where boosting of several classes would add up trees outside its own numbers.

    It has a tree for each class, and adds them where its first guess lies, unchecked: so that must
    be one number for each class, and nothing on the way may change how many there are.
    """
    loss, first = own.get("_loss"), own.get("init_")
    guess = _attributes(first)
    known = isinstance(first, str) or (
        _is(first, "sklearn.dummy", "DummyClassifier")
        and guess.get("_strategy") == "prior"
        and guess.get("n_outputs_") == 1
        and isinstance(guess.get("class_prior_"), np.ndarray)
        and guess["class_prior_"].shape == (n_trees,)
    )
    if (
        not known
        or len(np.atleast_1d(own.get("classes_", ()))) != n_trees
        or own.get("n_trees_per_iteration_") != n_trees
        or not _is(loss, "sklearn._loss.loss", "HalfMultinomialLoss")
        or "is_multiclass" in _attributes(loss)
        or not _is(_attributes(loss).get("link"), "sklearn._loss.link", "MultinomialLogit")
    ):
        raise ValueError("it does not have one tree for each class")


def _is(part: Any, module: str, name: str) -> bool:
    return (type(part).__module__, type(part).__name__) == (module, name)


def _check_boosting(own: dict[str, Any]) -> None:
    """HistGradientBoosting: nodes as records, categories as sets of bits."""
    width = _width(own)
    categorical = np.asarray(own["_bin_mapper"].is_categorical_)
    predictors = [one for stage in own["_predictors"] for one in stage]
    if own.get("_in_fit") or categorical.shape != (width,):
        raise ValueError("its trees do not take the same columns as the model")
    for predictor in predictors:
        nodes, bits = predictor.nodes, predictor.raw_left_cat_bitsets
        names = ("left", "right", "feature_idx", "is_leaf")
        left, right, feature, leaf = (nodes[name] for name in names)
        check_nodes(left, right, feature, leaf, width, np.array([len(nodes)]))
        by_set = nodes[(nodes["is_leaf"] == 0) & (nodes["is_categorical"] != 0)]
        known = categorical[by_set["feature_idx"]] & (by_set["bitset_idx"] < len(bits))
        if bits.ndim != 2 or bits.shape[1] != 8 or not known.all():
            raise ValueError("its trees use categories that it does not list")


def _check_index(tree: Any) -> None:
    """Neighbours: a binary tree by position, whose leaves are stretches of the training rows."""
    rows, order, nodes, bounds, *_ = tree.__getstate__()
    n_rows, n_nodes = len(rows), tree.__getstate__()[6]
    start, end = nodes["idx_start"], nodes["idx_end"]
    childless = 2 * np.arange(len(nodes)) + 2 >= len(nodes)
    if (
        not 0 < n_nodes == len(nodes) == bounds.shape[1]
        or bounds.shape[2:] != rows.shape[1:]
        or order.shape != (n_rows,)
        or not ((order >= 0) & (order < n_rows)).all()
        or not ((start >= 0) & (start <= end) & (end <= n_rows)).all()
        or not (nodes["is_leaf"][childless] != 0).all()
    ):
        raise ValueError("its index of neighbours leads nowhere")

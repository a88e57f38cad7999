"""LightGBM classifiers and boosters, live or as `lightgbm:FILE.txt`."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel, missing, spell
from limi.models._base import Decision, Model
from limi.models._booster import BoosterModel, gives_numbers
from limi.models._categories import pandas_of, refuse_text, with_categories
from limi.models._classifier import classifier
from limi.models._files import content_of, existing, unreadable
from limi.models._offers import ModelOffers
from limi.models._trees import check_nodes

__all__ = ["accepts", "load", "wrap"]

OFFERS = ModelOffers(data_only=True, endings=(".txt",), library="lightgbm")

_NUMBERS = (
    "regression",
    "regression_l1",
    "huber",
    "fair",
    "poisson",
    "quantile",
    "mape",
    "gamma",
    "tweedie",
)
_CLASSES = ("binary", "cross_entropy", "cross_entropy_lambda", "multiclass", "multiclassova")


def accepts(target: object) -> bool:
    """A Booster, or an estimator of the library."""
    lightgbm = sys.modules.get("lightgbm")
    return lightgbm is not None and isinstance(target, (lightgbm.Booster, lightgbm.LGBMModel))


def wrap(target: Any, decision: Decision) -> Model:
    """A model of a trained booster or fitted classifier."""
    import lightgbm

    if isinstance(target, lightgbm.LGBMModel):
        fitted = hasattr(target, "classes_") or target.__sklearn_is_fitted__()
        booster = target.booster_ if fitted else None
        names = None if booster is None else _names(booster)
        return classifier(
            target,
            decision,
            columns=names,
            n_columns=None if booster is None else booster.num_feature(),
            prepare=_Typed.of(booster) if names else None,
        )
    header = _header(target)
    objective, _, _ = header.get("objective", "none").partition(" ")
    classes = int(header.get("num_class", "1"))
    if not decision.for_numbers and objective in _NUMBERS:
        raise gives_numbers(objective)
    if decision.for_numbers and (classes > 1 or objective not in (*_NUMBERS, *_CLASSES)):
        raise BadModel(
            f"the booster has the objective {objective!r}, which does not return numbers"
        )
    if not decision.for_numbers and (
        objective not in _CLASSES or max(classes, 2) != len(decision.numbered)
    ):
        raise BadModel(
            f"the booster has the objective {objective!r} over {classes} outputs; limi tests "
            f"decisions between {len(decision.numbered)} classes, one for each label of the table, "
            f"so use an objective such as {spell(_CLASSES)}"
        )
    names = _names(target)
    return BoosterModel(
        target,
        target.predict,
        decision.outputs("probability"),
        columns=names,
        n_columns=target.num_feature(),
        notes=decision.output_notes(),
        prepare=_Typed.of(target) if names else None,
    )


def load(place: str, decision: Decision) -> Model:
    """The model of a .txt file."""
    path = existing(place, "lightgbm", OFFERS.endings)
    try:
        import lightgbm
    except ImportError:
        raise missing("lightgbm", "boosters", "reading a LightGBM model") from None
    content = content_of(path)
    try:
        _check(content)
        target = lightgbm.Booster(model_str=content.decode())
    except Exception as error:
        raise unreadable(place, "a LightGBM model", error) from error
    return wrap(target, decision)


def _header(booster: Any) -> dict[str, str]:
    """What a model file says before its first tree."""
    lines = booster.model_to_string(num_iteration=1).partition("\n\n")[0].splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _names(booster: Any) -> list[str] | None:
    names: list[str] = booster.feature_name()
    # So are the columns of an array called.
    nameless = all(name == f"Column_{position}" for position, name in enumerate(names))
    return None if nameless else names


@dataclass(frozen=True)
class _Typed:
    """Gives a frame the categories that a booster was trained on; text becomes categories."""

    categorical: tuple[int, ...]  # by the trees' own account
    categories: tuple[list[Any], ...]  # of the category columns of the training frame, in order

    @staticmethod
    def of(booster: Any) -> _Typed:
        infos = _header(booster).get("feature_infos", "").split(" ")
        return _Typed(
            tuple(p for p, info in enumerate(infos) if info[:1] not in ("[", "n")),
            tuple(booster.pandas_categorical or ()),
        )

    def __call__(self, frame: Any) -> Any:
        import pandas as pd

        frame = pandas_of(frame)
        places = self.categorical
        if len(places) != len(self.categories):
            # A column that no tree could use is not listed; the frame's own types must tell.
            places = tuple(
                p
                for p, dtype in enumerate(frame.dtypes)
                if isinstance(dtype, pd.CategoricalDtype | pd.StringDtype)
                or pd.api.types.is_object_dtype(dtype)
            )
        if self.categories and len(places) != len(self.categories):
            raise BadModel(
                f"the model was trained with {len(self.categories)} categorical columns, but the "
                f"table has {len(places)}; give the table that the model was trained on"
            )
        known = dict(zip(places, self.categories, strict=False))
        refuse_text(frame, allowed=known)
        return with_categories(frame, known)


def _check(content: bytes) -> None:
    """ValueError where the trees of a file lead nowhere: the library follows them unseen."""
    body, end, rest = content.partition(b"\nend of trees")
    starts = [found.start() for found in re.finditer(rb"^Tree=", body, re.MULTILINE)]
    # The library reads on where its parameters have no end, at times past the text's.
    if not starts or not end or b"\nend of parameters" not in rest:
        raise ValueError("it is cut off")
    header = _pairs(body[: starts[0]])
    width, outputs = int(header["max_feature_idx"]) + 1, int(header["num_class"])
    if int(header["num_tree_per_iteration"]) != outputs or len(starts) % outputs:
        raise ValueError("its trees do not fit each other")
    # The library jumps by these sizes, and would read other text where it lands by wrong ones.
    sizes = _numbers(header.get("tree_sizes", ""))
    if len(sizes) and np.diff(starts).tolist() != sizes[:-1].tolist():
        raise ValueError("its trees are not of the sizes that it states")
    for start, stop in zip(starts, [*starts[1:], len(body)], strict=True):
        _check_tree(_pairs(body[start:stop]), width)


def _check_tree(tree: dict[str, str], width: int) -> None:
    leaves = int(tree["num_leaves"])
    n = leaves - 1
    if n < 0 or len(tree["leaf_value"].split()) != leaves:
        raise ValueError("its trees are not whole arrays of nodes")
    if n:
        left, right, feature, kinds = (
            _numbers(tree[name])
            for name in ("left_child", "right_child", "split_feature", "decision_type")
        )
        threshold = np.array(tree["threshold"].split(), dtype=np.float64)
        if {part.shape for part in (left, right, feature, kinds, threshold)} != {(n,)}:
            raise ValueError("its trees are not whole arrays of nodes")
        if (left >= n).any() or (right >= n).any():
            raise ValueError("its trees lead nowhere")
        # A leaf is a node behind the inner ones: -1 is the first of them, and so on.
        first, second = (np.where(part < 0, n - 1 - part, part) for part in (left, right))
        first, second, feature = (np.append(p, [0] * leaves) for p in (first, second, feature))
        leaf = np.arange(n + leaves) >= n
        check_nodes(first, second, feature, leaf, width, np.array([n + leaves]))
        _check_categories(tree, threshold[kinds % 2 == 1])
    if int(tree.get("is_linear", "0")):
        used = _numbers(tree["leaf_features"])
        if not ((used >= 0) & (used < width)).all():
            raise ValueError("its trees lead nowhere")


def _check_categories(tree: dict[str, str], chosen: NDArray[np.float64]) -> None:
    """Splits by category name a stretch of bits by its number."""
    ends = _numbers(tree.get("cat_boundaries", ""))
    n_bits = len(tree.get("cat_threshold", "").split())
    n_sets = int(tree["num_cat"])
    known = ((chosen >= 0) & (chosen < n_sets)).all()
    whole = len(ends) == n_sets + 1 and ends[0] == 0 and ends[-1] == n_bits
    if not known or (n_sets and not (whole and (np.diff(ends) >= 0).all())):
        raise ValueError("its trees use categories that it does not list")


def _pairs(block: bytes) -> dict[str, str]:
    lines = [line.partition("=") for line in block.decode().splitlines() if "=" in line]
    found = {name: value for name, _, value in lines}
    if len(found) != len(lines):
        raise ValueError("it says something twice")
    return found


def _numbers(text: str) -> NDArray[np.int64]:
    return np.array(text.split(), dtype=np.int64)

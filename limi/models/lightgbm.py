"""LightGBM classifiers and boosters, live or as `lightgbm:FILE.txt`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from limi.errors import BadModel, listed, missing
from limi.models._base import Decision, Model
from limi.models._booster import BoosterModel
from limi.models._categories import pandas_of, refuse_text, with_categories
from limi.models._classifier import classifier
from limi.models._files import existing, unreadable

__all__ = ["accepts", "load", "wrap"]

ENDINGS = (".txt",)

_BINARY = ("binary", "cross_entropy", "cross_entropy_lambda", "multiclass", "multiclassova")


def accepts(target: object) -> bool:
    """A Booster, or an estimator of the library."""
    lightgbm = sys.modules.get("lightgbm")
    return lightgbm is not None and isinstance(target, (lightgbm.Booster, lightgbm.LGBMModel))


def wrap(target: Any, decision: Decision) -> Model:
    """A model of a trained booster or fitted classifier."""
    import lightgbm

    if isinstance(target, lightgbm.LGBMModel):
        booster = target.booster_ if hasattr(target, "classes_") else None
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
    if objective not in _BINARY or classes > 2:
        raise BadModel(
            f"the booster has the objective {objective!r} over {classes} outputs; limi tests "
            f"decisions between two classes, as by {listed(_BINARY)}"
        )
    names = _names(target)
    typed: Callable[[Any], Any] = _Typed.of(target) if names else lambda inputs: inputs
    return BoosterModel(
        target,
        lambda inputs: target.predict(typed(inputs)),
        decision.column([0, 1]),
        "probability",
        columns=names,
        n_columns=target.num_feature(),
        notes=decision.notes([0, 1]),
    )


def load(place: str, decision: Decision) -> Model:
    """The model of a .txt file."""
    path = existing(place, "lightgbm", ENDINGS)
    try:
        import lightgbm
    except ImportError:
        raise missing("lightgbm", "boosters", "reading a LightGBM model") from None
    try:
        target = lightgbm.Booster(model_file=path)
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
                f"the model was trained with {len(self.categories)} columns of categories and the "
                f"table has {len(places)}; give the table as the model was trained on it"
            )
        known = dict(zip(places, self.categories, strict=False))
        refuse_text(frame, allowed=known)
        return with_categories(frame, known)

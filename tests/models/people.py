"""A small mixed table, and what binds a model to it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from limi import models
from limi.models.target import Target, bind
from limi.table.files import infer
from limi.table.frames import Codec

LABELS = ("bad", "good")


@cache
def _people() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    n = 400
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "hours": rng.normal(40, 10, n).round(1),
            "sex": rng.choice(["F", "M"], n),
            "job": pd.Categorical(
                rng.choice(["clerk", "nurse", "smith"], n), categories=["smith", "clerk", "nurse"]
            ),
            "member": rng.random(n) < 0.5,
            "city": rng.choice(["Bonn", "Köln", "Ulm"], n),
            "grade": rng.integers(1, 5, n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "hours"] = np.nan
    frame.loc[rng.random(n) < 0.1, "city"] = np.nan
    return frame


def people() -> pd.DataFrame:
    """Integers, decimals, text, categories and truth values, some of them missing."""
    return _people().copy()


def truth() -> np.ndarray:
    """0 or 1 a person, with some noise, and more often 1 for men."""
    frame = _people()
    rng = np.random.default_rng(8)
    pull = (frame.age - 45) / 15 + 0.8 * (frame.sex == "M") - 0.6 * (frame.job == "smith")
    pull = (
        pull + 0.5 * frame.member + 0.7 * frame.city.isna() + 0.03 * (frame.hours.fillna(40) - 40)
    )
    return (pull + rng.normal(0, 0.7, len(frame)) > 0.3).astype(int).to_numpy()


def spelled() -> np.ndarray:
    """The same, spelled out."""
    return np.array(LABELS)[truth()]


def numbers() -> pd.DataFrame:
    """The columns that are numbers without gaps."""
    return people()[["age", "grade", "member"]].astype({"member": int})


def typed() -> pd.DataFrame:
    """The table with categories in place of text, as boosters are trained on it."""
    return people().astype({"sex": "category", "city": "category"})


def bound(model: Any, frame: Any, *, protected: Any = (), **given: Any) -> Target:
    """A live model or a KIND:PLACE, bound to a table and settled on its rows."""
    load = models.load if isinstance(model, str) else models.wrap
    schema = infer(frame)
    if protected:
        schema = schema.protect(protected)
    target = bind(load(model, **given), Codec.learn(frame, schema))
    return target.settled(target.codec.encode(frame))


def scored(model: Any, frame: Any, **given: Any) -> np.ndarray:
    """The scores of a table's own rows."""
    target = bound(model, frame, **given)
    return target.score(target.codec.encode(frame))

"""One small ensemble for every reader, on a table of mixed columns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier


def draw_table(rng: np.random.Generator, n: int = 300) -> pd.DataFrame:
    """Whole numbers, decimals, text and gaps; `good` is the label, and men have it more often."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 40, n),
            "pay": rng.normal(10, 3, n).round(2),
            "sex": rng.choice(["F", "M"], n),
            "job": rng.choice(["clerk", "nurse", "smith", "tailor"], n),
            "level": rng.integers(0, 6, n),
        }
    )
    pull = (frame.age - 30) / 6 + 0.3 * (frame.pay - 10) + 0.9 * (frame.sex == "M")
    pull += 0.8 * frame.job.isin(["nurse", "tailor"]) * (1 - 2 * (frame.sex == "F"))
    pull += rng.choice([-0.6, 0.6], 6)[frame.level]
    frame["good"] = (pull + rng.normal(0, 0.5, n) > 0.4).astype(int)
    return frame


def with_gaps(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The same with a tenth of two columns missing."""
    frame = frame.copy()
    for name in ("pay", "job"):
        frame.loc[rng.random(len(frame)) < 0.1, name] = np.nan
    return frame


def coded(frame: pd.DataFrame) -> pd.DataFrame:
    """Text as numbers."""
    codes = {name: pd.factorize(frame[name], sort=True)[0] for name in ("sex", "job")}
    numbers = frame.assign(**codes)
    return numbers.assign(job=numbers.job.where(numbers.job >= 0))


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Text as categories."""
    return frame.astype({"sex": "category", "job": "category"})


def split(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    return frame.drop(columns="good"), frame.good


def _steps() -> Any:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["sex"]),
        (OrdinalEncoder(encoded_missing_value=-1), ["job"]),
        (numbers, ["pay", "age"]),
        ("passthrough", ["level"]),
    )


def _in_pipeline(make: Callable[[int], Any]) -> Callable[..., Any]:
    def build(frame: pd.DataFrame, seed: int) -> tuple[Any, pd.DataFrame]:
        return make_pipeline(_steps(), make(seed)).fit(*split(frame)), frame

    return build


def _on(change: Callable[[pd.DataFrame], pd.DataFrame], make: Callable[[int], Any]) -> Any:
    def build(frame: pd.DataFrame, seed: int) -> tuple[Any, pd.DataFrame]:
        frame = change(frame)
        return make(seed).fit(*split(frame)), frame

    return build


def _as_onnx(make: Callable[[int], Any]) -> Any:
    def build(frame: pd.DataFrame, seed: int) -> tuple[Any, pd.DataFrame]:
        from skl2onnx import to_onnx

        frame = coded(frame).fillna(0).astype(np.float32).astype({"good": int})
        rows, labels = split(frame)
        graph = to_onnx(make(seed).fit(rows.to_numpy(), labels), rows.to_numpy()[:1])
        file = Path(tempfile.mkdtemp(), "model.onnx")
        file.write_bytes(graph.SerializeToString())
        return f"onnx:{file}", frame

    return build


def _xgboost(seed: int, **told: Any) -> Any:
    import xgboost

    return xgboost.XGBClassifier(
        n_estimators=8, max_depth=3, random_state=seed, n_jobs=1, tree_method="hist", **told
    )


def _lightgbm(seed: int, **told: Any) -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(
        n_estimators=8, num_leaves=8, random_state=seed, verbose=-1, n_jobs=1, **told
    )


def _catboost(seed: int) -> Any:
    import catboost

    return catboost.CatBoostClassifier(
        iterations=8, depth=3, random_seed=seed, verbose=0, allow_writing_files=False,
        thread_count=1,
    )  # fmt: skip


def _booster(make: Callable[[int], Any], name: str) -> Any:
    def build(frame: pd.DataFrame, seed: int) -> tuple[Any, pd.DataFrame]:
        frame = typed(frame)
        fitted = make(seed).fit(*split(frame))
        return getattr(fitted, name)() if name == "get_booster" else getattr(fitted, name), frame

    return build


CASES: dict[str, Callable[[pd.DataFrame, int], tuple[Any, pd.DataFrame]]] = {
    "forest": _in_pipeline(lambda s: RandomForestClassifier(7, max_depth=4, random_state=s)),
    "extra trees": _in_pipeline(lambda s: ExtraTreesClassifier(7, max_depth=4, random_state=s)),
    "one tree": _in_pipeline(lambda s: DecisionTreeClassifier(max_depth=5, random_state=s)),
    "boosting": _in_pipeline(lambda s: GradientBoostingClassifier(n_estimators=8, random_state=s)),
    "histograms": _in_pipeline(lambda s: HistGradientBoostingClassifier(max_iter=8)),
    "histograms of categories": _on(
        typed,
        lambda s: HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype"),
    ),
    "xgboost": _on(coded, _xgboost),
    "xgboost in a pipeline": _in_pipeline(_xgboost),
    "xgboost of categories": _on(typed, lambda s: _xgboost(s, enable_categorical=True)),
    "xgboost dart": _on(coded, lambda s: _xgboost(s, booster="dart", rate_drop=0.5)),
    "xgboost booster": _booster(lambda s: _xgboost(s, enable_categorical=True), "get_booster"),
    "lightgbm": _on(coded, _lightgbm),
    "lightgbm of categories": _on(typed, lambda s: _lightgbm(s, min_child_samples=3)),
    "lightgbm booster": _booster(lambda s: _lightgbm(s, min_child_samples=3), "booster_"),
    "lightgbm zero is missing": _on(coded, lambda s: _lightgbm(s, zero_as_missing=True)),
    "lightgbm forest": _on(
        coded, lambda s: _lightgbm(s, boosting_type="rf", subsample=0.6, subsample_freq=1)
    ),
    "catboost": _on(coded, _catboost),
    "catboost in a pipeline": _in_pipeline(_catboost),
    "onnx forest": _as_onnx(lambda s: RandomForestClassifier(7, max_depth=4, random_state=s)),
    "onnx extra trees": _as_onnx(lambda s: ExtraTreesClassifier(7, max_depth=4, random_state=s)),
    "onnx boosting": _as_onnx(lambda s: GradientBoostingClassifier(n_estimators=8, random_state=s)),
}

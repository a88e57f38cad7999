"""Everyday classifiers of scikit-learn and its neighbours, fitted on the table as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from lab.targets.making import Making
from limi.errors import missing

__all__ = ["Settings", "encode", "fit", "make"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which classifier."""

    kind: Literal["boosted", "logistic", "forest", "xgboost", "lightgbm"] = "boosted"
    seed: int = 0
    without: tuple[str, ...] = ()  # columns that it is trained without


def make(making: Making) -> Any:
    """The classifier; fitting takes seconds, so that nothing is kept."""
    told: Settings = making.settings
    frame, target = making.table.frame, making.table.target
    columns = [name for name in making.schema.names if name not in told.without]
    return fit(told.kind, frame[columns], frame[target], told.seed)


def fit(kind: str, frame: Any, labels: Any, seed: int = 0, weights: Any = None) -> Any:
    """A pipeline that takes frames of these columns: text, numbers and missing cells."""
    from sklearn.pipeline import make_pipeline
    from threadpoolctl import threadpool_limits

    model = _KINDS[kind](seed)
    pipeline = make_pipeline(encode(frame, one_hot=kind == "logistic"), model)
    told = {} if weights is None else {f"{pipeline.steps[-1][0]}__sample_weight": weights}
    labels = _number(labels) if kind == "xgboost" else labels
    # One thread: teams that wait for one another on a busy machine are slower.
    with threadpool_limits(limits=1):
        return pipeline.fit(frame, labels, **told)


def encode(frame: Any, *, one_hot: bool) -> Any:
    """Levels as numbers or as an axis each; numbers filled and scaled for linear models."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    text = make_column_selector(dtype_exclude="number")
    if not one_hot:
        encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        return make_column_transformer((encoder, text), remainder="passthrough")
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    levels = OneHotEncoder(handle_unknown="ignore", min_frequency=5, sparse_output=False)
    return make_column_transformer((levels, text), remainder=numbers)


def _number(labels: Any) -> Any:
    """Labels as 0 and 1 in their order, for who takes nothing else."""
    import numpy as np

    return np.unique(np.asarray(labels), return_inverse=True)[1]


def _boosted(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=2_000)


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=seed, n_jobs=1, max_depth=12)


def _xgboost(seed: int) -> Any:
    try:
        from xgboost import XGBClassifier
    except ImportError:
        raise missing("xgboost", "boosters", "an xgboost target") from None
    return XGBClassifier(random_state=seed, n_jobs=1, n_estimators=100, max_depth=6)


def _lightgbm(seed: int) -> Any:
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        raise missing("lightgbm", "boosters", "a lightgbm target") from None
    return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1)


_KINDS: dict[str, Callable[[int], Any]] = {
    "boosted": _boosted,
    "logistic": _logistic,
    "forest": _forest,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
}

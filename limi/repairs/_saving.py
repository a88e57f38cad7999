"""The repaired model as a file that holds data alone."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from limi.audits.problem import Problem
from limi.errors import MissingDependency
from limi.models._classifier import is_regressor
from limi.repairs._refit import Fitted
from limi.system.imports import import_library

__all__ = ["name_of", "require", "require_saving", "store"]


def name_of(fitted: Fitted) -> str | None:
    """How the file is called; None for what has no data-only format that limi knows."""
    return "model.skops" if _is_estimator(fitted.native) and find_spec("skops") else None


def require_saving(problem: Problem) -> None:
    """Refuse before the work starts where the repaired model could not be written."""
    require(getattr(problem.target.model, "estimator", None))


def require(native: Any) -> None:
    """Refuse where a scikit-learn model could not be written."""
    if _is_estimator(native) and not find_spec("skops"):
        raise MissingDependency(
            "writing a repaired scikit-learn model without code needs the package skops, which is "
            "not installed; try: pip install 'limi[skops]', or use --no-model to keep only the "
            "figures and the added rows"
        )


def store(fitted: Fitted) -> tuple[str, bytes] | None:
    """Name and content of the file."""
    name = name_of(fitted)
    if name is None:
        return None
    sio: Any = import_library("skops.io")
    content: bytes = sio.dumps(fitted.native)
    return name, content


def _is_estimator(native: Any) -> bool:
    return hasattr(native, "get_params") and (hasattr(native, "classes_") or is_regressor(native))

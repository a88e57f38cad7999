"""The folder of a repair as a model of MLflow: a file that names this module and the model's own.

`mlflow.pyfunc.load_model(FOLDER)` reads it and calls `_load_pyfunc` here. `predict` gives labels
where the model is a classifier, and favorable scores where it is a function. Nothing is pickled.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from limi.models.skops import open_estimator

__all__ = ["OPENED", "describe"]

OPENED = ("averaging.json", "model.skops")
"""Files that MLflow can be given, the first of them that is there."""

_OPENED_BY = "limi.repairs.mlflow"


def describe(name: str) -> str:
    """What MLflow reads of the folder (MLmodel, in YAML, of which JSON is a part)."""
    flavor = {"loader_module": _OPENED_BY, "data": name}
    return json.dumps({"flavors": {"python_function": flavor}}, indent=2) + "\n"


def _load_pyfunc(path: str) -> Any:
    """What MLflow asks for predictions, from the file that was described."""
    if Path(path).suffix == ".skops":
        return open_estimator(path)
    from limi.repairs._shipping import load_averaged

    return _Scores(load_averaged(path))


class _Scores:
    """A function of a frame as MLflow wants it."""

    def __init__(self, score: Any) -> None:
        self.score = score

    def predict(self, frame: Any) -> Any:
        return self.score(frame)

"""Model folders of MLflow, as `pyfunc:FOLDER`, only if trusted: opening one can run any program.

A folder that holds a scikit-learn model is asked for its probabilities. Any other is asked as
MLflow serves it, by `predict`, which often gives labels only.
"""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

from limi.errors import InvalidInput, missing
from limi.models._base import Decision, Model
from limi.models._files import unreadable, untrusted_pickle
from limi.models._offers import ModelOffers
from limi.system.reading import is_file

__all__ = ["load", "open_folder"]

OFFERS = ModelOffers()

_NAMED = "MLmodel"


def load(place: str, decision: Decision, trust_pickle: bool = False) -> Model:
    """The model that a folder of MLflow holds; InvalidInput unless its author is trusted."""
    folder = _find(place)
    if not trust_pickle:
        raise untrusted_pickle(place, "pyfunc", "a model folder of MLflow")
    from limi.models import adapt

    try:
        opened = open_folder(folder)
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "mlflow":
            raise missing("mlflow-skinny", "mlflow", "a model folder of MLflow") from None
        raise unreadable(place, "a model folder of MLflow", error) from error
    except Exception as error:
        raise unreadable(place, "a model folder of MLflow", error) from error
    return adapt(opened, decision)


def _find(place: str) -> Path:
    """The folder that was named, by itself or by the file in it that MLflow reads first."""
    path = Path(place)
    folder = path.parent if path.name == _NAMED else path
    if not is_file(folder / _NAMED):
        raise InvalidInput(
            f"{place!r} is not a model folder of MLflow, because there is no file {_NAMED} in it; "
            "name the folder that mlflow or limi repair wrote, as in pyfunc:model"
        )
    return folder


def open_folder(folder: Path) -> Any:
    """The classifier or the function that a folder holds; opening it may run any program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mlflow import pyfunc  # it sets the level of its log
        from mlflow.models import Model as Described

    log = logging.getLogger("mlflow")
    before = log.level
    log.setLevel(logging.ERROR)  # it tells of versions on a terminal that is limi's
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if "sklearn" in Described.load(str(folder)).flavors:
                from mlflow import sklearn

                return sklearn.load_model(str(folder))
            return pyfunc.load_model(str(folder)).predict
    finally:
        log.setLevel(before)

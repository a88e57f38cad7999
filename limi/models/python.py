"""Python functions and models, live or as `python:FILE.py:NAME`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from limi.errors import BadModel, InvalidInput, nearest, spell
from limi.models._base import Answers, Decision, Model, Takes
from limi.models._function import FunctionModel
from limi.models._offers import ModelOffers
from limi.system.foreign import at_work, reason
from limi.system.reading import is_file

__all__ = ["FunctionModel", "accepts", "attribute", "load", "wrap"]

OFFERS = ModelOffers(endings=(".py",), last_resort=2)


def accepts(target: object) -> bool:
    """Any callable that is not a class."""
    return callable(target) and not isinstance(target, type)


def wrap(target: Callable[[Any], Any], decision: Decision) -> FunctionModel:
    """A model of a function."""
    model = FunctionModel(target, Answers(decision))
    if model.takes not in get_args(Takes):
        raise InvalidInput(
            f"the function's attribute takes={model.takes!r} is unknown; use one of "
            f"{spell(get_args(Takes))}"
        )
    return model


def load(place: str, decision: Decision) -> Model:
    """The function or fitted model NAME of FILE.py; running the file is what the user asks for."""
    from limi.models import adapt

    return adapt(attribute(place), decision)


def attribute(place: str, form: str = "python:FILE.py:NAME") -> Any:
    """What FILE.py calls NAME, after running the file; `form` is how the user writes it."""
    path_text, _, name = place.rpartition(":")
    if not path_text:
        raise InvalidInput(
            f"{place!r} does not name a function; write {form}, where NAME is defined in the file"
        )
    path = Path(path_text)
    if not is_file(path):
        raise InvalidInput(f"there is no file {path_text!r}; write {form}")
    spec = importlib.util.spec_from_file_location(f"_limi_target_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{path_text!r} is not a Python file; write {form}")
    module = importlib.util.module_from_spec(spec)
    # The file may import its neighbours, as it would when run as a script.
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    sys.modules[spec.name] = module
    # A test leaves nothing beside the user's files, not even what Python compiled of them.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        with at_work(lambda error: BadModel(f"running {path_text!r} raised {reason(error)}")):
            spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
        with suppress(ValueError):  # the file may have changed the path itself
            sys.path.remove(folder)
    if not hasattr(module, name):
        known = [n for n, value in vars(module).items() if accepts(value) and n[0] != "_"]
        raise InvalidInput(f"{path_text!r} has no function {name!r}; {nearest(name, known)}")
    return getattr(module, name)

"""Targets that are plain Python functions of a frame."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limi.errors import BadModel, InvalidInput, nearest
from limi.models._base import Answers, Decision, Takes
from limi.types import Scores

__all__ = ["FunctionModel", "accepts", "load", "wrap"]


@dataclass(frozen=True)
class FunctionModel:
    """Score rows by calling a function with a frame; it returns scores or labels."""

    function: Callable[[Any], Any]
    answers: Answers

    @property
    def takes(self) -> Takes:
        """A frame, unless the function has the attribute `takes = "matrix"`."""
        wanted: Takes = getattr(self.function, "takes", "frame")
        return wanted

    @property
    def columns(self) -> Sequence[str] | None:
        """The function's attribute `columns`, where it has one."""
        names = getattr(self.function, "columns", None)
        return None if names is None else list(names)

    @property
    def n_columns(self) -> int | None:
        """A function does not say."""
        return None

    def score(self, inputs: Any) -> Scores:
        """What the function returns, read as scores."""
        return self.answers.read(self.function(inputs), len(inputs))


def accepts(target: object) -> bool:
    """Any callable that is not a class."""
    return callable(target) and not isinstance(target, type)


def wrap(target: Callable[[Any], Any], decision: Decision) -> FunctionModel:
    """A model of a function."""
    return FunctionModel(target, Answers(decision))


def load(place: str, decision: Decision) -> FunctionModel:
    """The function NAME of FILE.py; running the file is what the user asks for here."""
    path_text, _, name = place.rpartition(":")
    if not path_text:
        raise InvalidInput(
            f"python:{place} names no function; write python:FILE.py:NAME, "
            "where NAME takes a frame and returns scores or labels"
        )
    path = Path(path_text)
    if not path.is_file():
        raise InvalidInput(f"there is no file {path_text!r}; write python:FILE.py:NAME")
    spec = importlib.util.spec_from_file_location(f"_limi_target_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{path_text!r} is no Python file; write python:FILE.py:NAME")
    module = importlib.util.module_from_spec(spec)
    # The file may import its neighbours, as it would when run as a script.
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadModel(f"running {path_text!r} raised {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    function = getattr(module, name, None)
    if function is None:
        known = [n for n, value in vars(module).items() if callable(value) and n[0] != "_"]
        raise InvalidInput(f"{path_text!r} has no function {name!r}; {nearest(name, known)}")
    if not callable(function):
        raise InvalidInput(f"{name!r} in {path_text!r} is no function")
    return wrap(function, decision)

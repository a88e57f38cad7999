"""What a caller gives to a public function, held to the types in its signature.

A wrong type is told in one sentence at the door, instead of by whatever breaks inside:

>>> @checked
... def draw(n: int, name: str | None = None) -> None: ...
>>> draw("10")
Traceback (most recent call last):
limi.errors.InvalidInput: n is '10'; it must be a whole number
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from limi.errors import InvalidInput, LimiError
from limi.system.spelling import in_python, is_at_command_line
from limi.system.words import either

__all__ = ["check_fields", "checked"]

P = ParamSpec("P")
T = TypeVar("T")

_WORDS: dict[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    type(None): "None",
}
_LONGEST = 60  # characters of a value in a sentence


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """The function, refusing arguments whose type is not that of its signature; what it raises
    names parameters where it names options at the command line."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if is_at_command_line():  # which has read its options by their types
            return function(*args, **kwargs)
        hints = _hints(function)
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if signature.parameters[name].kind not in (
                inspect.Parameter.VAR_POSITIONAL,
                inspect.Parameter.VAR_KEYWORD,
            ):
                _require(name, hints.get(name, Any), value)
        try:
            return function(*args, **kwargs)
        except LimiError as error:
            if error.args:
                error.args = (in_python(str(error)), *error.args[1:])
            raise

    return call


def check_fields(value: Any) -> None:
    """InvalidInput where a field of a dataclass holds something of another type."""
    kind: Any = type(value)
    hints = _hints(kind)
    for field in dataclasses.fields(value):
        _require(field.name, hints[field.name], getattr(value, field.name))


@functools.cache
def _hints(owner: Any) -> dict[str, Any]:
    """Of fields or parameters; what is returned may be a type that is imported late."""
    if isinstance(owner, type):
        return get_type_hints(owner)
    function = inspect.unwrap(owner)
    given = {k: v for k, v in inspect.get_annotations(function).items() if k != "return"}
    return get_type_hints(types.SimpleNamespace(__annotations__=given), function.__globals__)


def _require(name: str, hint: Any, value: Any) -> None:
    if not _fits(hint, value):
        text = repr(value)
        shown = text if len(text) <= _LONGEST else f"of type {type(value).__name__}"
        kinds = list(dict.fromkeys(_describe(hint)))
        raise InvalidInput(f"{name} is {shown}; it must be {either(kinds, len(kinds))}")


def _fits(hint: Any, value: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(one, value) for one in inner)
    if hint is Any or isinstance(hint, (str, TypeVar)):
        return True
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if hint in (int, float):
        number = Integral if hint is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    if hint is Path:
        return isinstance(value, os.PathLike)
    kind = origin or hint
    if kind is Callable or getattr(kind, "__name__", "") == "Callable":
        return callable(value)
    if kind in (Sequence, list, tuple):
        listed = isinstance(value, (Collection, np.ndarray)) and not isinstance(
            value, (str, bytes, Mapping)
        )
        return listed and (not inner or all(_fits(inner[0], item) for item in value))
    if not isinstance(kind, type):
        return True
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(value, member) for member in _members(kind))
    return isinstance(value, kind)


def _members(protocol: Any) -> Iterator[str]:
    """What an object of a protocol has."""
    names = {*vars(protocol), *vars(protocol).get("__annotations__", ())}
    yield from (name for name in names if not name.startswith("_"))


def _describe(hint: Any) -> Iterator[str]:
    """What fits, in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        parts = [one for one in inner if one is not type(None)]
        yield from (words for one in parts for words in _describe(one))
        if len(parts) < len(inner):
            yield "None"
    elif origin is Literal:
        yield from map(repr, inner)
    elif hint in _WORDS:
        yield _WORDS[hint]
    elif origin in (Sequence, list, tuple):
        yield "a list of texts" if inner and inner[0] is str else "a list"
    elif origin is Mapping or hint is Mapping:
        yield "a mapping"
    elif getattr(origin, "__name__", "") == "Callable":
        yield "a function"
    else:
        name = getattr(hint, "__name__", str(hint))
        yield f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"

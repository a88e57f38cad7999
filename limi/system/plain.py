"""Dataclasses from the plain data that they were written as.

`read(type, tree)` is the inverse of `dataclasses.asdict` and JSON: tuples come back from lists,
and an unknown number, which is null in JSON, as NaN. What a person may have edited is held to the
type; a ValueError names the place that does not fit.

>>> from dataclasses import dataclass
>>> @dataclass
... class Point:
...     at: tuple[float, ...]
...     name: str = ""
>>> read(Point, {"at": [1.0, None]})
Point(at=(1.0, nan), name='')
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from limi.system.validate import require_type

__all__ = ["Known", "read"]

T = TypeVar("T")

_KNOWN = "known"
Known = Annotated[float, _KNOWN]
"""A number that is always known, so that null in its place is damage."""


def read(kind: type[T], tree: Any, name: str = "") -> T:
    """A value of a type from plain data; ValueError where they do not fit."""
    return cast(T, _read(kind, tree, name))


def _read(hint: Any, value: Any, name: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        if _KNOWN in inner and value is None:
            raise ValueError(f"{name} is missing")
        return _read(inner[0], value, name)
    if origin in (Union, types.UnionType):
        return _read_one(inner, value, name)
    if dataclasses.is_dataclass(hint):
        return _read_fields(cast(type, hint), value, name)
    if origin in (tuple, list):
        _need(isinstance(value, list | tuple), name, value)
        fixed = origin is tuple and inner[-1] is not ...
        _need(not fixed or len(value) == len(inner), name, value)
        kinds = inner if fixed else [inner[0]] * len(value)
        items = zip(kinds, value, strict=True)
        return origin(_read(one, item, f"{name}[{k}]") for k, (one, item) in enumerate(items))
    if origin in (dict, Mapping):
        _need(isinstance(value, dict), name, value)
        return {key: _read(inner[1], item, f"{name}.{key}") for key, item in value.items()}
    require_type(hint, value, name)
    return math.nan if hint is float and value is None else value


def _read_one(hints: tuple[Any, ...], value: Any, name: str) -> Any:
    """A value of the first of several types that it fits."""
    if value is None and type(None) in hints:
        return None
    told = ValueError(f"{name} is {value!r}")
    for hint in hints:
        if hint is not type(None):
            try:
                return _read(hint, value, name)
            except ValueError as error:
                told = error
    raise told


def _read_fields(kind: type, tree: Any, name: str) -> Any:
    _need(isinstance(tree, dict), name, tree)
    hints = _hints(kind)
    lacking = [f.name for f in dataclasses.fields(kind) if f.name not in tree and _is_needed(f)]
    if lacking:
        raise ValueError(f"{name}{lacking[0]} is missing")
    return kind(
        **{
            field.name: _read(hints[field.name], tree[field.name], f"{name}{field.name}")
            for field in dataclasses.fields(kind)
            if field.name in tree
        }
    )


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """Looked up once a class: a summary holds hundreds of some."""
    return get_type_hints(kind, include_extras=True)


def _need(fits: bool, name: str, value: Any) -> None:
    if not fits:
        shown = repr(value)
        raise ValueError(f"{name} is {shown if len(shown) <= 40 else f'{shown[:40]} ...'}")

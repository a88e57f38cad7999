"""Plain data held to declared types, for files that a person may have edited."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

__all__ = ["require_fields", "require_type"]

_HINTS: dict[type, dict[str, Any]] = {}
_LARGEST = 1e300  # numbers beyond it overflow when they are shown or added up


def require_fields(value: Any, name: str = "") -> None:
    """ValueError unless every field of a dataclass holds what its annotation says."""
    hints = _hints(type(value))
    for field in dataclasses.fields(value):
        require_type(hints[field.name], getattr(value, field.name), f"{name}{field.name}")


def _hints(kind: type) -> dict[str, Any]:
    """Looked up once a class: results of studies hold thousands of one."""
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    return _HINTS[kind]


def require_type(hint: Any, value: Any, name: str) -> None:
    """ValueError unless plain data are of a type: scalars, dataclasses, mappings and lists.

    A whole number is a number too, and None may stand for one, for JSON has no NaN.
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        _hold_one(inner, value, name)
    elif hint is Any:
        return
    elif origin is Literal:
        _need(value in inner, name, value)
    elif dataclasses.is_dataclass(hint):
        _need(isinstance(value, hint), name, value)  # type: ignore[arg-type]
        require_fields(value, f"{name}.")
    elif origin in (tuple, list):
        _need(isinstance(value, origin), name, value)
        for place, item in enumerate(value):
            require_type(inner[0], item, f"{name}[{place}]")
    elif origin in (dict, Mapping):
        _need(isinstance(value, dict), name, value)
        for key, item in value.items():
            require_type(inner[1], item, f"{name}.{key}")
    elif hint is float:
        _need(value is None or _is_number(value), name, value)
    elif hint is int:
        _need(_is_number(value) and isinstance(value, int), name, value)
    else:
        _need(isinstance(value, hint), name, value)


def _hold_one(hints: tuple[Any, ...], value: Any, name: str) -> None:
    for hint in hints:
        try:
            require_type(hint, value, name)
        except ValueError:
            continue
        return
    _need(False, name, value)


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # NaN passes: it is shown as such, and no sum overflows by it.
    return number and not abs(value) > _LARGEST


def _need(fits: bool, name: str, value: Any) -> None:
    if not fits:
        shown = repr(value)
        raise ValueError(f"{name} is {shown if len(shown) <= 40 else f'{shown[:40]} ...'}")

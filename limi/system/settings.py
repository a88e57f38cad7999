"""Settings of methods and generators, read from NAME=VALUE and described for programs.

A setting is a field of a frozen dataclass: its type, default and comment say what it is, and its
`__post_init__` refuses what it may not be.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from limi.errors import InvalidInput, LimiError, nearest

__all__ = [
    "comments_of",
    "describe_settings",
    "pairs_of",
    "range_in_words",
    "read_settings",
    "read_value",
    "value_in_words",
]

_TRIED = (-1, 0, 1, 2, 3)  # the smallest of these that is taken is the least
_TRIED_FLOATS = (-1.0, 0.0, 1e-9, 0.5, 1.0)


def pairs_of(settings: Sequence[str] | Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Names and values of a mapping, or of texts such as NAME=VALUE."""
    if isinstance(settings, Mapping):
        return list(settings.items())
    pairs = []
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidInput(f"setting {text!r} is not of the form NAME=VALUE")
        pairs.append((key.strip(), value.strip()))
    return pairs


def read_settings(
    settings: Sequence[str] | Mapping[str, Any],
    kind: type[Any],
    what: str,
    presets: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Values of a dataclass's fields; InvalidInput with the nearest name where there is none."""
    types_of = typing.get_type_hints(kind)
    fields = [field.name for field in dataclasses.fields(kind)]
    values: dict[str, Any] = {}
    for key, value in pairs_of(settings):
        if key == "preset" and presets:
            if value not in presets:
                raise InvalidInput(f"{what} has no preset {value!r}; {nearest(value, presets)}")
            values = {**presets[value], **values}
        elif key not in fields:
            if not fields:
                raise InvalidInput(f"{what} has no settings, so {key!r} cannot be set")
            raise InvalidInput(f"{what} has no setting {key!r}; {nearest(key, fields)}")
        else:
            values[key] = read_value(value, types_of[key], key) if isinstance(value, str) else value
    return values


def read_value(text: str, kind: Any, key: str) -> Any:
    """A text as the type of its field; as it is where the field takes anything."""
    if kind is Any:
        return text
    options = _options(kind)
    if text.lower() == "none" and type(None) in options:
        return None
    literals = [choice for one in options for choice in _choices(one)]
    if text in literals:
        return text
    plain = [one for one in options if one is not type(None) and not _choices(one)]
    if not plain:
        raise InvalidInput(f"setting {key} is {text!r}; {nearest(text, map(str, literals))}")
    first = plain[0]
    try:
        if typing.get_origin(first) is tuple:
            return _read_several(text, typing.get_args(first))
        if first is bool:
            return {"true": True, "false": False}[text.lower()]
        return first(text)
    except (ValueError, KeyError):
        raise InvalidInput(
            f"setting {key} is {text!r}; it must be of type {_name(first)}"
        ) from None


def _read_several(text: str, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    parts = [part.strip() for part in text.strip("()[]").split(",") if part.strip()]
    if kinds[-1] is not Ellipsis and len(parts) != len(kinds):
        raise ValueError
    return tuple(kinds[0](part) for part in parts)


def _options(kind: Any) -> tuple[Any, ...]:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return typing.get_args(kind)
    return (kind,)


def _choices(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()


def _name(kind: Any) -> str:
    if typing.get_origin(kind) is tuple:
        inner = typing.get_args(kind)
        return f"{inner[0].__name__},{inner[0].__name__},..."
    return str(getattr(kind, "__name__", kind))


def describe_settings(kind: type[Any]) -> dict[str, dict[str, Any]]:
    """Each setting of a dataclass: type, default, what it may be, and what its comment says."""
    types_of, said = typing.get_type_hints(kind), comments_of(kind)
    described: dict[str, dict[str, Any]] = {}
    for field in dataclasses.fields(kind):
        options = _options(types_of[field.name])
        default = None if field.default is dataclasses.MISSING else field.default
        plain = [one for one in options if one is not type(None) and not _choices(one)]
        choices = [choice for one in options for choice in _choices(one)]
        entry: dict[str, Any] = {
            "type": " or ".join(map(_name, plain)) or "text",
            "default": list(default) if isinstance(default, tuple) else default,
        }
        if choices:
            entry["choices"] = choices
        if type(None) in options:
            entry["may_be_none"] = True
        entry |= _bounds(kind, field.name, plain[0] if plain else None)
        if field.name in said:
            entry["meaning"] = said[field.name]
        described[field.name] = entry
    return described


def range_in_words(one: Mapping[str, Any]) -> str:
    """What a described setting may be, as far as it is known.

    >>> range_in_words({"at_least": 0, "at_most": 1, "may_be_none": True})
    'at least 0 and at most 1, or none'
    """
    words = []
    if "choices" in one:
        words.append(", ".join(map(str, one["choices"])))
    bounds = ("at_least", "above", "at_most", "below")
    told = [f"{name.replace('_', ' ')} {one[name]}" for name in bounds if name in one]
    if told:
        words.append(" and ".join(told))
    if one.get("may_be_none"):
        words.append("none")
    return ", or ".join(words)


def value_in_words(value: Any) -> str:
    """A value as `--set` takes it.

    >>> value_in_words(None), value_in_words(True), value_in_words([1, 2])
    ('none', 'true', '1,2')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _bounds(kind: type[Any], name: str, plain: Any) -> dict[str, Any]:
    """The least and the largest value that is taken, as far as a few tries tell."""
    if plain not in (int, float):
        return {}
    tried: tuple[float, ...] = _TRIED if plain is int else _TRIED_FLOATS
    taken = [value for value in tried if _takes(kind, name, value)]
    bounds: dict[str, Any] = {}
    if taken and taken[0] != tried[0]:
        least = taken[0]
        bounds = {"above": 0} if least == 1e-9 else {"at_least": least}
    if plain is float and taken and not _takes(kind, name, 1.5):
        bounds |= {"at_most": 1} if _takes(kind, name, 1.0) else {"below": 1}
    return bounds


def _takes(kind: type[Any], name: str, value: Any) -> bool:
    try:
        kind(**{name: value})
    except (LimiError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return False
    return True


def comments_of(kind: type[Any]) -> dict[str, str]:
    """What stands behind each field in the source; nothing where there is none to read."""
    said: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        try:
            source = inspect.getsource(base) if dataclasses.is_dataclass(base) else ""
        except (OSError, TypeError):
            continue
        said |= dict(re.findall(r"^    (\w+): [^\n#]*# +([^\n]+)$", source, re.MULTILINE))
    return said

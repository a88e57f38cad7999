"""Search methods: one file each, one frozen dataclass in it; the folder is the registry."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, cast

from limi._registry import Registry
from limi.errors import InvalidInput, nearest, spell
from limi.methods._phases import Pair
from limi.search import method as members
from limi.search.check import Checked
from limi.search.method import Exploiter, Explorer, Method, Named
from limi.search.session import Session

__all__ = [
    "Checked",
    "Exploiter",
    "Explorer",
    "Method",
    "Pair",
    "Session",
    "get",
    "name_of",
    "names",
    "parse",
    "presets",
]

_REGISTRY = Registry("limi.methods", "method")


def names() -> list[str]:
    """Every method."""
    return _REGISTRY.names()


def get(name: str) -> type[Method]:
    """The class of a method."""
    found = _REGISTRY.get(name)
    public = [found] if isinstance(found, type) else [vars(found).get(n) for n in found.__all__]
    method: Any = public[0] if len(public) == 1 else None
    if not isinstance(method, type) or not dataclasses.is_dataclass(method):
        raise InvalidInput(
            f"the method {name!r} is not a dataclass; its module must have the method alone in "
            "__all__, or its entry point must name it as 'module:Class'"
        )
    return cast("type[Method]", method)


def name_of(method: Method) -> str:
    """The name under which `limi list methods` shows a method; a pair names its parts.

    One that is listed nowhere, such as a class of a notebook, goes by its class.
    """
    if isinstance(method, Named):
        return method.name
    return _REGISTRY.name_of(type(method).__module__) or type(method).__name__.lower()


def presets(name: str) -> Mapping[str, Mapping[str, Any]]:
    """The settings of each of a method's presets; none where it has none."""
    return members.presets(get(name))


def parse(name: str, settings: Sequence[str] | Mapping[str, Any] = ()) -> Method:
    """A method with settings, given as a mapping or as the command line's NAME=VALUE.

    `"limi+adf"` is a pair: the seeds of one method, and another's search around them. Its parts'
    settings are `limi.step` and `adf.exploit_steps`.
    """
    if "+" in name:
        return _parse_pair(name, settings)
    method = get(name)
    types_of = typing.get_type_hints(method)
    fields = [f.name for f in dataclasses.fields(method)]  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    known = members.presets(method)
    for key, value in _take_given(settings):
        if key == "preset" and known:
            if value not in known:
                raise InvalidInput(
                    f"method {name!r} has no preset {value!r}; {nearest(value, known)}"
                )
            values = {**known[value], **values}
            continue
        if key not in fields:
            raise InvalidInput(f"method {name!r} has no setting {key!r}; {nearest(key, fields)}")
        values[key] = _read(value, types_of[key], key) if isinstance(value, str) else value
    return method(**values)


def _parse_pair(name: str, settings: Sequence[str] | Mapping[str, Any]) -> Pair:
    parts = [part.strip() for part in name.split("+")]
    if len(parts) != 2 or not all(parts):
        raise InvalidInput(
            f"method {name!r} has {len(parts)} parts; a pair is one method that explores and one "
            "that exploits, such as 'limi+adf'"
        )
    explorer, exploiter = parts
    if not isinstance(get(exploiter), Exploiter):
        able = [known for known in names() if isinstance(get(known), Exploiter)]
        raise InvalidInput(
            f"method {exploiter!r} cannot search around seeds; {nearest(exploiter, able)}"
        )
    types_of = typing.get_type_hints(Pair)
    own = ["n_seeds", "explore_rows"]
    values: dict[str, Any] = {}
    of_part: dict[str, dict[str, Any]] = {part: {} for part in parts}
    for key, value in _take_given(settings):
        part, dot, rest = key.partition(".")
        if dot and part in of_part:
            of_part[part][rest] = value
        elif key in own:
            values[key] = _read(value, types_of[key], key) if isinstance(value, str) else value
        else:
            raise InvalidInput(
                f"method {name!r} has no setting {key!r}; its own are {spell(own)}, those of its "
                f"parts begin with {spell(f'{part}.' for part in of_part)}"
            )
    searcher = parse(exploiter, of_part[exploiter])
    assert isinstance(searcher, Exploiter)
    return Pair(
        name=f"{explorer}+{exploiter}",
        explorer=parse(explorer, of_part[explorer]),
        exploiter=searcher,
        **values,
    )


def _take_given(settings: Sequence[str] | Mapping[str, Any]) -> list[tuple[str, Any]]:
    if isinstance(settings, Mapping):
        return list(settings.items())
    pairs = []
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidInput(f"setting {text!r} is not of the form NAME=VALUE")
        pairs.append((key.strip(), value.strip()))
    return pairs


def _read(text: str, kind: Any, key: str) -> Any:
    """A text as the type of its field."""
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        if text in options:
            return text
        raise InvalidInput(f"setting {key} is {text!r}; {nearest(text, map(str, options))}")
    if origin in (typing.Union, types.UnionType):
        if text.lower() == "none" and type(None) in options:
            return None
        kind = next(option for option in options if option is not type(None))
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        return kind(text)
    except (ValueError, KeyError):
        raise InvalidInput(
            f"setting {key} is {text!r}; it must be of type {kind.__name__}"
        ) from None

"""Search methods: one file each, one frozen dataclass in it; the folder is the registry."""

from __future__ import annotations

import dataclasses
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
from limi.system.settings import pairs_of, read_settings, read_value

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
    values = read_settings(settings, method, f"method {name!r}", members.presets(method))
    return method(**values)


def _parse_pair(name: str, settings: Sequence[str] | Mapping[str, Any]) -> Pair:
    parts = [part.strip() for part in name.split("+")]
    if len(parts) != 2 or not all(parts):
        raise InvalidInput(
            f"method {name!r} has {len(parts)} parts; join one method that explores and one that "
            "exploits, such as 'limi+adf'"
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
    for key, value in pairs_of(settings):
        part, dot, rest = key.partition(".")
        if dot and part in of_part:
            of_part[part][rest] = value
        elif key in own:
            values[key] = read_value(value, types_of[key], key) if isinstance(value, str) else value
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

"""Definitions of targets and of methods to try on them, read from TOML files.

A file holds a list `targets` and a list `methods`; `defaults` are what its targets share. The
benchmark's own files have the form of a user's.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from lab.targets import RECIPES
from limi.errors import InvalidInput, nearest, spell
from limi.system.settings import read_settings

__all__ = ["Definitions", "MethodEntry", "TargetSpec", "read", "read_target"]

NAME = re.compile(r"[a-z0-9][a-z0-9+.-]{0,79}")
_MOST_BYTES = 1 << 20
_PARTS = ("defaults", "targets", "methods")


@dataclass(frozen=True, kw_only=True)
class TargetSpec:
    """A target by its name: what it is made from, and how."""

    name: str
    recipe: str
    table: str = ""  # of `limi datasets`, `wide`, or a file
    protected: tuple[str, ...] = ()
    family: str = "other"  # targets that are told of together
    words: str = ""
    rules: bool = False  # do the table's rules hold, by which cells go along?
    settings: Mapping[str, Any] = field(default_factory=dict)  # the recipe's
    base: str = ""  # folder that file names are relative to
    stamp: str = ""  # of what files held when the definition was read

    def tree(self) -> dict[str, Any]:
        """For JSON; `read_target` of it is the same target."""
        return {
            "name": self.name,
            "recipe": self.recipe,
            "table": self.table,
            "protected": list(self.protected),
            "family": self.family,
            "words": self.words,
            "rules": self.rules,
            "settings": dict(self.settings),
            "base": self.base,
            "stamp": self.stamp,
        }

    def identity(self) -> dict[str, Any]:
        """What makes it this target and no other: not its words, its family or its place."""
        return {k: v for k, v in self.tree().items() if k not in ("words", "family", "base")}


@dataclass(frozen=True, kw_only=True)
class MethodEntry:
    """A method to try, with settings of its own."""

    name: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Definitions:
    """What files define."""

    targets: tuple[TargetSpec, ...] = ()
    methods: tuple[MethodEntry, ...] = ()


def read(path: Path) -> Definitions:
    """The definitions of a file; InvalidInput says what of it cannot be."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise InvalidInput(f"{str(path)!r} is larger than a megabyte; definitions are short")
        tree = tomllib.loads(content.decode())
    except OSError as error:
        raise InvalidInput(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{str(path)!r} is not a TOML file: {error}") from None
    unknown = [key for key in tree if key not in _PARTS]
    if unknown:
        raise InvalidInput(f"{str(path)!r} has {unknown[0]!r}; {nearest(unknown[0], _PARTS)}")
    defaults = tree.get("defaults", {})
    if not isinstance(defaults, dict):
        raise InvalidInput(f"'defaults' of {str(path)!r} must be a table of what the targets share")
    base = str(path.absolute().parent)
    targets = [
        _with_base(read_target({**defaults, **one}, str(path)), base)
        for one in _entries(tree, "targets", path)
    ]
    methods = [_read_method(one, str(path)) for one in _entries(tree, "methods", path)]
    if not targets and not methods:
        raise InvalidInput(
            f"{str(path)!r} defines no target and no method; begin with [[targets]] or [[methods]]"
        )
    for what, entries in (("target", targets), ("method", methods)):
        _require_single(what, [one.name for one in entries], str(path))
    return Definitions(tuple(targets), tuple(methods))


def read_target(given: Mapping[str, Any], where: str = "the definition") -> TargetSpec:
    """A target from a table of TOML or JSON; its recipe and settings must exist."""
    name = _name(given, "target", where)
    spoken = f"the target {name!r} of {where}"
    known = [one.name for one in fields(TargetSpec)]
    for key in given:
        if key not in known:
            raise InvalidInput(f"{spoken} has {key!r}; {nearest(key, known)}")
    for key, kind, words in (
        ("recipe", str, "a name"),
        ("table", str, "a name"),
        ("family", str, "a name"),
        ("words", str, "text"),
        ("base", str, "a folder"),
        ("stamp", str, "text"),
        ("rules", bool, "true or false"),
        ("settings", Mapping, "a table of names and values"),
    ):
        if key in given and not isinstance(given[key], kind):
            raise InvalidInput(f"{key!r} of {spoken} is {given[key]!r}; it must be {words}")
    if "recipe" not in given:
        raise InvalidInput(f"{spoken} has no recipe; it is one of {spell(RECIPES.names())}")
    module = RECIPES.get(given["recipe"])
    settings = read_settings(given.get("settings", {}), module.Settings, f"the recipe of {spoken}")
    _try(module.Settings, settings, spoken)
    protected = given.get("protected", ())
    if not isinstance(protected, Sequence) or isinstance(protected, str):
        raise InvalidInput(f"'protected' of {spoken} must be a list of columns")
    if not protected or not all(isinstance(one, str) and one for one in protected):
        raise InvalidInput(f"{spoken} needs 'protected', a list of at least one column")
    if not given.get("table"):
        raise InvalidInput(f"{spoken} has no table; name one of `limi datasets`, 'wide' or a file")
    return TargetSpec(**{**given, "protected": tuple(protected), "settings": settings})


def _with_base(spec: TargetSpec, base: str) -> TargetSpec:
    """Only files are looked for beside the definitions; other targets are the same anywhere."""
    if spec.recipe != "file":
        return spec
    placed = replace(spec, base=base)
    return replace(placed, stamp=RECIPES.get("file").stamp(placed))


def _try(kind: Any, settings: Mapping[str, Any], spoken: str) -> None:
    try:
        kind(**settings)
    except TypeError as error:
        raise InvalidInput(f"the settings of {spoken} cannot be used: {error}") from None


def _read_method(given: Mapping[str, Any], where: str) -> MethodEntry:
    from limi import methods

    name = _name(given, "method", where)
    known = [one.name for one in fields(MethodEntry)]
    for key in given:
        if key not in known:
            raise InvalidInput(f"the method {name!r} of {where} has {key!r}; {nearest(key, known)}")
    method, settings = given.get("method", name), given.get("settings", {})
    if not isinstance(method, str) or not isinstance(settings, Mapping):
        raise InvalidInput(
            f"the method {name!r} of {where} needs 'method', a name, and 'settings', a table"
        )
    methods.parse(method, settings)
    return MethodEntry(name=name, method=method, settings=settings)


def _entries(tree: Mapping[str, Any], key: str, path: Path) -> list[Mapping[str, Any]]:
    found = tree.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InvalidInput(f"{key!r} of {str(path)!r} is not a list of tables; write [[{key}]]")
    return found


def _name(given: Mapping[str, Any], what: str, where: str) -> str:
    name = given.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        shown = repr(name)[:80]
        raise InvalidInput(
            f"a {what} of {where} is called {shown}; a name begins with a-z or 0-9, continues with "
            "these or + . -, and has at most 80 characters"
        )
    return name


def _require_single(what: str, names: Sequence[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"{where} defines the {what} {name!r} twice; give each its own name")
        seen.add(name)

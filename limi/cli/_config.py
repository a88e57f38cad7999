"""`limi.toml`: the options of a test in one file, kept beside the model.

What the file may say is what the commands take: its keys are the names of their parameters, with
their types. At the top stand those of `limi test`, which other commands share where they have the
same one; a section `[compare]` or `[gate]` holds those of a command alone. Options of the command
line win. What is typed, and what could run code or replace a file, no file says: flags, outputs
and trust.
"""

from __future__ import annotations

import csv
import functools
import inspect
import io
import os
import tomllib
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer
from typer import Option

from limi.cli._apart import Reads
from limi.errors import InvalidInput, nearest

__all__ = ["FILE", "file_of", "known_keys", "read_file", "with_file"]

FILE = "limi.toml"
_META = "limi.cli.config"  # where a context keeps its file

_MAIN = "test"  # the command whose options stand at the top
_TYPED_ONLY = {"config", "html", "junit", "log", "markdown", "out", "rule", "sarif", "trust"}
_FLAGS = {"twin"}  # that say what is tested; all others are typed
_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
}
_OWN = {"settings"}  # of the method of a test; those of other commands are of other things
_ASKED = {"drop", "only", "protected_from", "key"}  # say which columns the model is given
_LABELS = {"favorable", "order"}  # that one text names with commas, and a list may name too
_LONGEST = 80  # characters of a value that are quoted

_COMMANDS: dict[str, dict[str, _Key]] = {}
_NOT_IN_FILES: dict[str, set[str]] = {}


@dataclass(frozen=True)
class _Key:
    """A parameter of a command that a file may give."""

    kind: type  # bool, int, float, str or Path
    several: bool = False  # is it a list?
    is_file: bool = False  # is it a text that names a file?


def with_file(name: str, command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option `--config`, whose file fills in what is not typed."""
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    _COMMANDS[name] = {
        parameter: key
        for parameter in signature.parameters
        if parameter not in _TYPED_ONLY and (key := _key(parameter, hints[parameter])) is not None
    }
    _NOT_IN_FILES[name] = set(signature.parameters) - set(_COMMANDS[name])
    option = inspect.Parameter(
        "config",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[
            str | None,
            Option(
                metavar="FILE",
                help=f"File with options (`limi init`), or none. Default: {FILE}, if there is one.",
                is_eager=True,
                callback=_fill_in,
            ),
            Reads(f"the {FILE}"),
        ],
    )

    @functools.wraps(command)
    def run(*, config: str | None = None, **given: Any) -> None:
        command(**given)

    *first, last = signature.parameters.values()
    resolved = [p.replace(annotation=hints[p.name]) for p in (*first, last)]
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*resolved[:-1], option, resolved[-1]]
    )
    run.__annotations__ = hints | {"config": option.annotation}
    return run


def _key(name: str, hint: Any) -> _Key | None:
    """What a parameter takes; None for a flag that is typed or not."""
    is_file = any(getattr(said, "metavar", None) == "FILE" for said in get_args(hint)[1:])
    while get_origin(hint) in (Annotated, Union, types.UnionType):
        inner = [one for one in get_args(hint) if one is not type(None)]
        hint = inner[0]
    if get_origin(hint) is list:
        return _Key(get_args(hint)[0], several=True)
    if hint not in _WORDS or (hint is bool and name not in _FLAGS):
        return None
    return _Key(hint, is_file=is_file)


def known_keys() -> dict[str, dict[str, str]]:
    """By command, the keys that a file may give, each with what its value must be."""
    return {
        command: {
            key: f"a list, each {_WORDS[wanted.kind]}" if wanted.several else _WORDS[wanted.kind]
            for key, wanted in keys.items()
        }
        for command, keys in _COMMANDS.items()
    }


def _fill_in(context: typer.Context, value: str | None) -> str | None:
    """Let the file's values stand where nothing is typed; the file."""
    if value == "none" or context.resilient_parsing:
        return None
    path = FILE if value is None and os.path.lexists(FILE) else value
    if path is not None:
        said = read_file(path)
        _require_question(path, str(context.info_name), said)
        context.default_map = said[str(context.info_name)]
        context.meta[_META] = path
    return path


def _require_question(path: str, command: str, said: Mapping[str, Mapping[str, Any]]) -> None:
    """InvalidInput where a command that asks the model has no option for a key of the file that
    says what is asked: it would ask something else in silence."""
    lacking = [name for name in said[_MAIN] if name in _ASKED and name not in _COMMANDS[command]]
    if lacking and "model" in _COMMANDS[command]:
        raise InvalidInput(
            f"{path!r} has {lacking[0]!r}, which limi {command} does not take, so it would ask a "
            "different question; give it a table that has all columns and a file without "
            f"{lacking[0]!r} (--config FILE, or --config none)"
        )


def file_of(context: typer.Context) -> str | None:
    """The file that a command took its options from."""
    path: str | None = context.meta.get(_META)
    return path


def read_file(path: str | Path) -> dict[str, dict[str, Any]]:
    """By command, what a file says of its parameters; InvalidInput for whatever it should not."""
    from limi.system.reading import read_text

    text = read_text(path, f"a {FILE}, such as `limi init` writes")
    name = str(path)
    try:
        tree = tomllib.loads(text)
    except ValueError as error:  # also for an integer of thousands of digits
        raise InvalidInput(f"{name!r} is not valid TOML: {error}") from None
    except RecursionError:
        raise InvalidInput(f"{name!r} is nested too deeply; a {FILE} has two levels") from None
    reader = _Reader(name, Path(path).parent)
    sections = {key for key in _COMMANDS if key not in _COMMANDS[_MAIN]}
    top = {key: value for key, value in tree.items() if key not in sections}
    shared = reader.read(top, _MAIN, others=sections)
    said: dict[str, dict[str, Any]] = {}
    for command, keys in _COMMANDS.items():
        main = _COMMANDS[_MAIN]
        said[command] = {
            key: value
            for key, value in shared.items()
            if keys.get(key) == main.get(key) and (command == _MAIN or key not in _OWN)
        }
        if command in sections and command in tree:
            if not isinstance(tree[command], dict):
                raise InvalidInput(
                    f"{command!r} in {name!r} is {_cut(tree[command])}; write a section [{command}]"
                )
            said[command] |= reader.read(tree[command], command)
    return said


@dataclass(frozen=True)
class _Reader:
    """Reads values of one file; relative paths start at its folder."""

    name: str
    folder: Path

    def read(
        self, tree: Mapping[str, Any], command: str, others: set[str] | None = None
    ) -> dict[str, Any]:
        """The values of a section for its command."""
        keys = _COMMANDS[command]
        where = f"{self.name!r}" if command == _MAIN else f"[{command}] of {self.name!r}"
        found: dict[str, Any] = {}
        rules: dict[str, Any] = {}
        for key, value in tree.items():
            if key in keys:
                found[key] = self._value(where, key, keys[key], value)
            elif command == "gate" and _is_metric(key):
                rules[key] = value
            else:
                raise self._unknown(where, key, command, [*keys, *(others or ())])
        if rules:
            from limi.gates import rule_texts

            found["rule"] = rule_texts(rules)
        return found

    def _unknown(self, where: str, key: str, command: str, known: list[str]) -> InvalidInput:
        if key.replace("-", "_") in _TYPED_ONLY | _NOT_IN_FILES[command]:
            return InvalidInput(
                f"{where} has {key!r}, which a file cannot set; give it on the command line"
            )
        if command == "gate":
            from limi.gates import METRICS

            known = [*known, *METRICS]
        return InvalidInput(f"{where} has {_cut(key)}; {nearest(key, known)}")

    def _value(self, where: str, key: str, wanted: _Key, value: Any) -> Any:
        if key == "schema" and isinstance(value, dict):
            return self.name  # [schema.columns...]: the file is its own schema
        if not wanted.several:
            listed = key in _LABELS and isinstance(value, list)
            return self._one(where, key, wanted, _join(where, key, value) if listed else value)
        if isinstance(value, dict):
            # NAME=VALUE, as the option is typed.
            value = [f"{name}={_cell(where, key, cell)}" for name, cell in value.items()]
        items = value if isinstance(value, list) else [value]
        return [self._one(where, key, wanted, item) for item in items]

    def _one(self, where: str, key: str, wanted: _Key, value: Any) -> Any:
        fits = {
            bool: isinstance(value, bool),
            int: isinstance(value, int),
            float: isinstance(value, (int, float)),
            str: isinstance(value, (str, int, float)),
            Path: isinstance(value, str),
        }[wanted.kind]
        if not fits or (isinstance(value, bool) and wanted.kind in (int, float)):
            said = _WORDS[wanted.kind]
            raise InvalidInput(f"{key!r} in {where} is {_cut(value)}; it must be {said}")
        if wanted.kind is Path or wanted.is_file:
            return self._beside(str(value))
        if wanted.kind is str:
            return _PLACES.get(key, _as_it_is)(self._beside, str(value))
        return value

    def _beside(self, place: str) -> str:
        """A path of the file, as seen from here."""
        return str(self.folder / place) if self.folder != Path() else place


def _join(where: str, key: str, labels: list[Any]) -> str:
    """Labels of a list as one text, as the option is typed."""
    for label in labels:
        if isinstance(label, bool) or not isinstance(label, (str, int, float)):
            raise InvalidInput(f"{key!r} in {where} holds {_cut(label)}; it must hold labels")
        if "," in str(label):
            raise InvalidInput(
                f"{key!r} in {where} holds {_cut(label)}, but commas separate labels; call limi "
                "from Python, where labels in a list may contain commas"
            )
    return ",".join(map(str, labels))


def _as_it_is(beside: Callable[[str], str], value: str) -> str:
    return value


def _table(beside: Callable[[str], str], value: str) -> str:
    from limi import data
    from limi.system.reading import is_file
    from limi.table.sources import is_source, move

    if is_source(value):
        return move(value, Path(beside("")))
    return value if value in data.names() and not is_file(beside(value)) else beside(value)


def _generator(beside: Callable[[str], str], value: str) -> str:
    from limi.system.reading import is_file

    return beside(value) if is_file(beside(value)) else value


def _model(beside: Callable[[str], str], value: str) -> str:
    """`KIND:PLACE`, where the place may be a file."""
    from limi import models

    kind, colon, place = value.partition(":")
    moved = f"{kind}{colon}{beside(place)}"
    is_place = colon and kind in models.names() and models.offers(kind).endings
    # A name that a kind knows, such as demo:income, is not a file.
    named = is_place and models.offers(kind).by_name and not models.files(moved)
    return moved if is_place and not named else value


_PLACES: dict[str, Callable[[Callable[[str], str], str], str]] = {
    "table": _table,
    "generator": _generator,
    "twin_generator": _generator,
    "model": _model,
}
"""Texts that may name a file: how each is seen from the folder of the command."""


def _cell(where: str, key: str, cell: Any) -> str:
    """One value, or several joined by commas."""
    cells = cell if isinstance(cell, list) else [cell]
    if not all(isinstance(one, (str, int, float)) for one in cells):
        raise InvalidInput(
            f"{key!r} in {where} holds {_cut(cell)}; write a value, or a list of values"
        )
    words = [str(one).lower() if isinstance(one, bool) else str(one) for one in cells]
    if len(words) == 1:
        return words[0]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(words)
    return line.getvalue()


def _is_metric(key: str) -> bool:
    from limi.gates import is_metric

    return is_metric(key)


def _cut(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."

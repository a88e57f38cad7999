"""What a shell offers behind an option: columns of the table, methods, generators, settings.

Completion must be quick and must never fail: what cannot be read offers nothing.
"""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from typer.models import OptionInfo

__all__ = ["with_completion"]

_LONGEST_HEADER = 1 << 20  # characters of a file's first line that are read


def with_completion(command: Callable[..., None]) -> Callable[..., None]:
    """The command, whose options complete what their names say."""
    hints = get_type_hints(command, include_extras=True)
    for name in inspect.signature(command).parameters:
        complete = _BY_NAME.get(name)
        for said in get_args(hints.get(name))[1:]:
            if complete is not None and isinstance(said, OptionInfo) and not said.autocompletion:
                said.autocompletion = complete
    # Annotations that are text would be read again, and without what was just said.
    command.__annotations__ = hints
    return command


def _columns(context: typer.Context, incomplete: str) -> Iterator[str]:
    """Columns of the table that stands on the line, or of the one that limi.toml names."""
    before, comma, last = incomplete.rpartition(",")
    yield from _offer(_column_names(_table_of(context)), last, before + comma)


def _settings_of_method(context: typer.Context, incomplete: str) -> Iterator[Any]:
    from limi import methods
    from limi.defaults import BUDGETED_METHOD, DEFAULT_METHOD

    usual = BUDGETED_METHOD if context.params.get("max_queries") else DEFAULT_METHOD
    name = str(context.params.get("method") or usual)
    with suppress(Exception):
        presets = list(methods.presets(name))
        yield from _offer_settings(methods.get(name), presets, incomplete)


def _settings_of_generator(context: typer.Context, incomplete: str) -> Iterator[Any]:
    from limi import generators
    from limi.defaults import DEFAULT_GENERATOR

    with suppress(Exception):
        name = str(context.params.get("generator") or DEFAULT_GENERATOR)
        kind = generators.settings_of(name)
        if kind is not None:
            yield from _offer_settings(kind, [], incomplete)


def _offer_settings(kind: type[Any], presets: list[str], incomplete: str) -> Iterator[Any]:
    """`NAME=` with what it means, and behind the sign the values there are to choose from."""
    from limi.system.settings import describe_settings, range_in_words

    described = describe_settings(kind)
    name, equals, value = incomplete.partition("=")
    if equals:
        choices = presets if name == "preset" else described.get(name, {}).get("choices", [])
        yield from _offer(map(str, choices), value, f"{name}=")
        return
    if presets and "preset".startswith(name):
        yield "preset=", ", ".join(presets)
    for setting, one in described.items():
        if setting.startswith(name):
            told = [one.get("meaning", ""), range_in_words(one), f"default {one['default']}"]
            yield f"{setting}=", "; ".join(words for words in told if words)


def _settings(context: typer.Context, incomplete: str) -> Iterator[Any]:
    if "method" in context.params or "methods" in context.params or context.info_name != "fit":
        yield from _settings_of_method(context, incomplete)
    else:
        yield from _settings_of_generator(context, incomplete)


def _methods(incomplete: str) -> Iterator[str]:
    from limi import methods

    before, sign, last = incomplete.rpartition("+")
    yield from _offer(methods.names(), last, before + sign)


def _several_methods(incomplete: str) -> Iterator[str]:
    before, comma, last = incomplete.rpartition(",")
    yield from (f"{before}{comma}{one}" for one in _methods(last))


def _generators(incomplete: str) -> Iterator[str]:
    from limi import generators

    yield from _offer([*generators.names(), "none"], incomplete)


def _kinds(incomplete: str) -> Iterator[str]:
    from limi import models

    if ":" not in incomplete:
        yield from _offer((f"{name}:" for name in models.names()), incomplete)


def _offer(names: Iterable[str], incomplete: str, before: str = "") -> Iterator[str]:
    yield from (f"{before}{name}" for name in names if name.startswith(incomplete))


def _table_of(context: typer.Context) -> str:
    # Behind an option that lacks its value, words are left over instead of parsed.
    left = (word for word in context.args if not word.startswith("-"))
    given = context.params.get("table") or next(left, None)
    if given:
        return str(given)
    with suppress(Exception):
        from limi.cli._config import FILE, read_file

        return str(read_file(FILE)["test"].get("table") or "")
    return ""


def _column_names(table: str) -> list[str]:
    """The columns of a table, by its header alone; none where that cannot be read."""
    with suppress(Exception):
        from limi import data

        path = Path(table)
        if table in data.names() and not path.is_file():
            return list(data.load(table).frame.columns)
        if path.suffix.lower() in (".parquet", ".pq"):
            import pyarrow.parquet as pq

            return list(pq.read_schema(path).names)
        with path.open(encoding="utf-8-sig", newline="") as file:
            line = file.readline(_LONGEST_HEADER)
        mark = max(",;\t|", key=line.count)
        return [name.strip() for name in next(csv.reader([line], delimiter=mark))]
    return []


_BY_NAME: dict[str, Callable[..., Any]] = {
    "protected": _columns,
    "target": _columns,
    "drop": _columns,
    "only": _columns,
    "redact": _columns,
    "keep": _columns,
    "key": _columns,
    "method": _methods,
    "methods": _several_methods,
    "generator": _generators,
    "twin_generator": _generators,
    "settings": _settings,
    "model": _kinds,
}

"""`limi list`: what there is."""

from __future__ import annotations

import inspect
from enum import StrEnum
from typing import Annotated, Any

from rich.table import Table
from typer import Argument, Option

from limi.cli import _console
from limi.cli._options import AsJson

__all__ = ["list_names"]


class Noun(StrEnum):
    """What can be listed."""

    METHODS = "methods"
    MODELS = "models"
    GENERATORS = "generators"
    METRICS = "metrics"
    DATASETS = "datasets"


def list_names(
    noun: Annotated[Noun, Argument(help="What to list.")],
    verbose: Annotated[
        bool,
        Option(
            "--verbose", help="Also show every setting of methods and generators, with defaults."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List methods, models, generators, metrics or data sets, one line each."""
    entries = _entries(noun)
    if as_json:
        _console.print_json(_described(noun, entries))
        return
    if verbose and noun in (Noun.METHODS, Noun.GENERATORS):
        _print_settings(_described(noun, entries))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name, words in entries.items():
        table.add_row(name, words)
    _console.out.print(table if entries else f"There are no {noun} yet.")


def _entries(noun: Noun) -> dict[str, str]:
    from limi import data, generators, methods, metrics, models

    if noun is Noun.DATASETS:
        return {name: data.title(name) for name in data.names()}
    if noun is Noun.METRICS:
        return metrics.names()
    if noun is Noun.METHODS:
        known = {name: methods.get(name) for name in methods.names()}
        return {name: _line(inspect.getmodule(one)) or _line(one) for name, one in known.items()}
    package = models if noun is Noun.MODELS else generators
    return {name: _line(package.get(name)) for name in package.names()}


def _described(noun: Noun, entries: dict[str, str]) -> dict[str, Any]:
    """Methods and generators with their settings; of all else the line."""
    from limi import generators, methods
    from limi.system.settings import describe_settings

    if noun is Noun.METHODS:
        return {
            name: {
                "line": line,
                "settings": describe_settings(methods.get(name)),
                "presets": {key: dict(value) for key, value in methods.presets(name).items()},
            }
            for name, line in entries.items()
        }
    if noun is Noun.GENERATORS:
        kinds = {name: generators.settings_of(name) for name in entries}
        return {
            name: {
                "line": line,
                "settings": {} if (kind := kinds[name]) is None else describe_settings(kind),
            }
            for name, line in entries.items()
        }
    return dict(entries)


def _print_settings(described: dict[str, Any]) -> None:
    """Each name with its line, and a table of its settings."""
    from limi.system.settings import range_in_words, value_in_words

    for name, one in described.items():
        _console.out.print(f"{name}: {one['line']}")
        table = Table("setting", "default", "may be", "meaning", box=None, padding=(0, 2, 0, 0))
        for setting, told in one["settings"].items():
            default, meaning = value_in_words(told["default"]), told.get("meaning", "")
            table.add_row(f"  {setting}", default, range_in_words(told), meaning)
        for preset, values in one.get("presets", {}).items():
            changed = ", ".join(f"{key}={value_in_words(v)}" for key, v in values.items())
            table.add_row(f"  preset={preset}", "", "", changed or "the defaults")
        if table.row_count:
            _console.out.print(table)
        _console.out.print()


def _line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]

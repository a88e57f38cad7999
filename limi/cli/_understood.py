"""What was understood of a table, said before a run: a paragraph, or every column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from limi.cli import _console

if TYPE_CHECKING:
    from limi.table.recognised import Recognised
    from limi.table.schema import Column, Schema

__all__ = ["say_understood"]

_KINDS = {
    "numerical": "numeric",
    "ordered": "ordered",
    "categorical": "categorical",
    "boolean": "boolean",
}


def say_understood(
    table: str, given: dict[str, Any], *, verbose: bool, shows_personal: bool = False
) -> None:
    """Say on standard error what a table holds, to somebody who sits there or asked for it; where
    personal data will be shown, say that to everybody."""
    if not verbose and not shows_personal and not _console.err.is_terminal:
        return
    from limi.errors import spell
    from limi.table import files
    from limi.table.recognised import recognise
    from limi.table.whole import count_rows

    frame, target = given["frame"], given["target"]
    left_out = () if target is None else (target,)
    schema = given["schema"] or files.infer(frame, exclude=left_out)
    found = recognise(frame, schema, labelled=target is not None)
    personal = [f"{name!r} ({seen.personal})" for name, seen in found.items() if seen.personal]
    if shows_personal and personal:
        _console.err.print(
            "Warning: columns with personal data that the model takes are shown and written: "
            f"{spell(personal)}.",
            soft_wrap=True,
        )
        if not verbose and not _console.err.is_terminal:
            return
    known = {*schema.names, *left_out}
    absent = [name for name in map(str, frame.columns) if name not in known]
    paragraph = " ".join(_tell(table, count_rows(frame), schema, found, absent, target))
    if personal and not shows_personal:
        paragraph += f" Personal data, hidden in everything that is written: {spell(personal)}."
    if not verbose:
        paragraph += (
            " See every column: --verbose. To change one: limi schema TABLE --out schema.toml."
        )
    _console.err.print(paragraph, soft_wrap=True)
    if verbose:
        _print_columns(schema, found, absent)


def _tell(
    table: str,
    n_rows: int,
    schema: Schema,
    found: dict[str, Recognised],
    absent: Collection[str],
    target: str | None,
) -> Iterator[str]:
    from limi.errors import spell

    aside = [name for name in found if found[name].is_aside and name in schema.guessed]
    kinds = Counter(column.kind for column in schema.columns if column.name not in aside)
    counted = ", ".join(f"{n:,} {_KINDS[kind]}" for kind, n in kinds.items())
    label = "" if target is None else f", of which {target!r} is the label"
    n_columns = len(schema) + len(absent) + (target is not None)
    yield f"{table}: {n_rows:,} rows and {n_columns:,} columns{label}; {counted}."
    for role, words in (("date", "dates"), ("id", "names or identifiers"), ("label", "the label")):
        names = [name for name in aside if found[name].role == role]
        if names:
            yield (
                f"{spell(map(repr, names))} {'look' if len(names) > 1 else 'looks'} like {words}: "
                "not generated, not changed, and left out unless the model takes them."
            )
    for role, words in (
        ("constant", "hold only one value"),
        ("numbers", "hold numbers stored as text, and are taken as ordered text"),
        ("words", "say yes or no in words"),
    ):
        names = [name for name in found if found[name].role == role]
        if names:
            yield f"{spell(map(repr, names))} {words}."
    if absent:
        yield f"{spell(map(repr, absent))} {'are' if len(absent) > 1 else 'is'} left out."


def _print_columns(schema: Schema, found: dict[str, Recognised], absent: Collection[str]) -> None:
    for column in schema.columns:
        seen = found[column.name]
        line = seen.line if seen.is_aside else _line(column)
        _console.err.print(f"  {column.name!r} {seen.said}; schema.toml: {line}", soft_wrap=True)
    for name in absent:
        _console.err.print(
            f"  {name!r} is left out: every cell is missing, or the schema ignores it",
            soft_wrap=True,
        )


def _line(column: Column) -> str:
    from limi.system.shown import to_toml

    other = "categorical" if column.kind == "numerical" else "ignored"
    return f"[columns.{to_toml(column.name)}] kind = {to_toml(other)}"

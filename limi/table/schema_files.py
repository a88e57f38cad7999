"""Schemas as files: TOML that a person can edit."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from limi.errors import InvalidInput, nearest
from limi.system.reading import read_text
from limi.system.shown import clean, to_toml
from limi.system.words import both
from limi.table.files import infer
from limi.table.frames import Frame
from limi.table.mining import Mined
from limi.table.rule_files import SECTIONS, dump_rules, read_rules
from limi.table.rules import Rules
from limi.table.schema import Column, Kind, Schema

__all__ = ["dump", "load", "parse", "read_for"]

FORMATS = (1, 2)  # the second has rules; what has none is written as the first

_IGNORED = "ignored"  # the kind of a column that is neither generated nor the model's

_KINDS_OF_FILE = "a schema as TOML (`limi schema`)"

_SECTIONS = {"format", "protected", "columns"}
_OF_FORMAT = {1: _SECTIONS, 2: _SECTIONS | SECTIONS}
_OF_EVERY_KIND = {"kind", "missing", "meaning"}
_OF_NUMBERS = {"low", "high", "step"}
_OF_LEVELS = {"levels", "labels"}
_FIELDS = _OF_EVERY_KIND | _OF_NUMBERS | _OF_LEVELS


def dump(
    schema: Schema, mined: Mined | None = None, ignored: Mapping[str, str] | None = None
) -> str:
    """The schema as TOML that a person can edit; with mined rules in place of its own.

    `ignored` are columns that the table has beside those of the schema, each with the reason.

    Written by hand because the standard library reads TOML but does not write it, and the few
    kinds of values here need no library.
    """
    rules = schema.rules if mined is None else mined.rules
    ruled = bool(rules) or (mined is not None and bool(mined.possible))
    lines = [
        "# What the columns of the table may hold. Edit kinds, levels and ranges as needed.",
        f"format = {FORMATS[ruled]}",
    ]
    if schema.protected:
        lines += ["", "[protected]"]
        for name, codes in zip(schema.protected, schema.protected_codes, strict=True):
            column = schema[name]
            lines.append(f"{to_toml(name)} = {to_toml([column.value(code) for code in codes])}")
    for column in schema.columns:
        lines += ["", f"[columns.{to_toml(column.name)}]", f"kind = {to_toml(column.kind)}"]
        if column.is_number:
            lines += [
                f"{name} = {to_toml(_number(getattr(column, name)))}"
                for name in ("low", "high", "step")
            ]
        else:
            lines.append(f"levels = {to_toml(list(column.levels))}")
        if column.missing:
            lines.append("missing = true")
        if column.labels:
            lines.append(f"labels = {to_toml(list(column.labels))}")
        if column.meaning:
            lines.append(f"meaning = {to_toml(column.meaning)}")
    for name, why in (ignored or {}).items():
        lines += ["", f"[columns.{to_toml(name)}]"]
        lines.append(f'kind = "{_IGNORED}"  # it {clean(why)}; "categorical" keeps it')
    lines += dump_rules(rules) if mined is None else _dump_mined(mined)
    return "\n".join(lines) + "\n"


def _dump_mined(mined: Mined) -> list[str]:
    """Mined rules with their counts, and what was seen but is not a rule yet, in comments."""
    caution = [f"# {clean(mined.caution)}"] if mined.caution else []
    if not (mined.rules or mined.remarks or mined.possible):
        return ["", "# No rules were found that the rows follow.", *caution]
    lines = [
        "",
        "# Found in the rows, for you to judge: delete coincidences and habits, keep what cannot",
        "# be otherwise. Counts are of the rows that a rule is about: how many break it, and how",
        "# many would if its columns had nothing to do with each other.",
        *caution,
        *dump_rules(mined.rules, mined.comments),
    ]
    sections = {role.protected for role in mined.rules.roles}
    for role, words in mined.possible:
        said = {("roles", f"{role.protected} {role.column}"): words}
        section, line = dump_rules(Rules(roles=(role,)), said)[1:]
        if role.protected in sections:  # TOML opens a section once
            lines += ["", f"# Perhaps a role; if it is one, write this line under {section}:"]
        else:
            lines += ["", "# Perhaps a role; if it is one, delete the first # of these lines:"]
            lines.append(f"# {section}")
        lines.append(f"# {line}")
        sections.add(role.protected)
    if mined.remarks:
        lines += ["", "# Seen in these rows, but perhaps not in others:"]
        lines += [f"# {clean(remark)}" for remark in mined.remarks]
    return lines


def load(path: str | Path) -> Schema:
    """The schema of a TOML file."""
    return parse(read_text(path, _KINDS_OF_FILE), name=str(path))


def parse(text: str, name: str = "the schema") -> Schema:
    """The schema of a TOML text."""
    tree = _read_tree(text, name)
    schema = _read_columns(tree, name)
    return _with_rules(schema, read_rules(tree, schema, name), name)


def read_for(frame: Frame, path: str | Path, *, exclude: tuple[str, ...] = ()) -> Schema:
    """The schema in a TOML file, for this frame; columns it leaves out are inferred.

    Excluded columns stand last where the file or its rules may mention them: who asked for the
    schema says what becomes of that (`rule_checks.set_target_aside`).
    """
    name = str(path)
    tree = _read_tree(read_text(path, _KINDS_OF_FILE), name)
    tables = _tables(tree, name)
    ignored = {key for key, table in tables.items() if _is_ignored(table)}
    bare = {key: table["kind"] for key, table in tables.items() if _is_bare(table)}
    given = {
        key: _column(key, table, name)
        for key, table in tables.items()
        if key not in {*ignored, *bare}
    }
    kinds = {key: kind for key, kind in bare.items() if key not in exclude}
    inferred = infer(frame, exclude=(*exclude, *(ignored - set(exclude))), kinds=kinds)
    for column in given:
        if column not in exclude:
            inferred.position(column)
    columns = [given.get(column.name, column) for column in inferred.columns]
    spoken_of = {*tables, *(exclude if tree.keys() & SECTIONS else ())} - ignored
    left_out = [
        given[column] if column in given else infer(frame)[column]
        for column in exclude
        if column in spoken_of
    ]
    whole = Schema((*columns, *left_out), guessed=inferred.guessed - set(tables))
    whole = _protect(whole, tree, name)
    return _with_rules(whole, read_rules(tree, whole, name), name)


def _read_tree(text: str, name: str) -> dict[str, Any]:
    try:
        tree = tomllib.loads(text)
    except ValueError as error:  # also for an integer of thousands of digits
        raise InvalidInput(f"{name} is not valid TOML: {error}") from None
    except RecursionError:
        raise InvalidInput(f"{name} is nested too deeply; a schema has three levels") from None
    if isinstance(tree.get("schema"), dict):
        tree = tree["schema"]  # a limi.toml that holds its schema
    version = tree.get("format", FORMATS[-1])
    if version not in FORMATS:
        raise InvalidInput(
            f"{name} has format {version}; this limi reads formats {both(map(str, FORMATS))}"
        )
    for section in sorted(tree.keys() & SECTIONS - _OF_FORMAT[version]):
        raise InvalidInput(f"{name} has [{section}], which format 1 does not; write format = 2")
    _hold_to(tree, _OF_FORMAT[version], name)
    return tree


def _tables(tree: dict[str, Any], name: str) -> dict[str, Any]:
    tables = tree.get("columns")
    if not isinstance(tables, dict) or not tables:
        raise InvalidInput(f"{name} lists no columns; write a [columns.NAME] table for each")
    return tables


def _is_ignored(table: Any) -> bool:
    """Is a column said to be nobody's?"""
    return isinstance(table, dict) and table.get("kind") == _IGNORED


def _is_bare(table: Any) -> bool:
    """Is a column's kind all that is said, so that the table's cells tell the rest?"""
    return isinstance(table, dict) and [*table] == ["kind"] and table["kind"] in get_args(Kind)


def _read_columns(tree: dict[str, Any], name: str) -> Schema:
    columns = {key: t for key, t in _tables(tree, name).items() if not _is_ignored(t)}
    schema = Schema(tuple(_column(key, table, name) for key, table in columns.items()))
    return _protect(schema, tree, name)


def _protect(schema: Schema, tree: dict[str, Any], name: str) -> Schema:
    protected = tree.get("protected")
    if protected is not None and not isinstance(protected, dict):
        raise InvalidInput(f"{name}: [protected] is a table of columns and their values")
    return schema.protect(protected) if protected else schema


def _with_rules(schema: Schema, rules: Rules, name: str) -> Schema:
    try:
        return replace(schema, rules=rules)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None


def _hold_to(tree: dict[str, Any], known: set[str], where: str) -> None:
    """InvalidInput for the first name that is not known, with the nearest of those."""
    odd = sorted(tree.keys() - known)
    if odd:
        raise InvalidInput(f"{where} has {odd[0]!r}; {nearest(odd[0], known)}")


def _column(key: str, table: Any, name: str) -> Column:
    if not isinstance(table, dict) or "kind" not in table:
        raise InvalidInput(f"{name}: column {key!r} needs a kind")
    _hold_to(table, _FIELDS, f"{name}: column {key!r}")
    idle = sorted(table.keys() & (_OF_LEVELS if table["kind"] == "numerical" else _OF_NUMBERS))
    if idle and table["kind"] in get_args(Kind):
        raise InvalidInput(
            f"{name}: column {key!r} is {table['kind']} and has {idle[0]!r}, which does not apply; "
            "a numerical column has low, high and step, any other has levels and labels"
        )
    for field in ("levels", "labels"):
        if not isinstance(table.get(field, []), list):
            raise InvalidInput(f"{name}: {field} of column {key!r} must be a list")
    try:
        return Column(
            name=key,
            kind=table["kind"],
            levels=tuple(table.get("levels", ())),
            low=float(table.get("low", 0.0)),
            high=float(table.get("high", 0.0)),
            step=float(table.get("step", 0.0)),
            missing=bool(table.get("missing", False)),
            labels=tuple(str(label) for label in table.get("labels", ())),
            meaning=str(table.get("meaning", "")),
        )
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{name}: column {key!r} cannot be read: {error}") from None


def _number(value: float) -> int | float:
    return int(value) if math.isfinite(value) and value == int(value) else value

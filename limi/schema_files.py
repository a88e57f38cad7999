"""Schemas as files: our own editable TOML, and the single-table JSON of SDV."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

from limi.errors import InvalidInput, nearest
from limi.frames import Frame
from limi.schema import Column, Kind, Schema
from limi.tables import infer
from limi.types import Value

__all__ = ["dump", "load", "parse", "read_for"]

FORMAT = 1

_FIELDS = {"kind", "levels", "low", "high", "step", "missing", "labels", "meaning"}
_SDV_KINDS: dict[str, Kind | None] = {
    "numerical": "numerical",
    "categorical": "categorical",
    "boolean": "boolean",
    "datetime": "ordered",
    "unknown": None,
}


def dump(schema: Schema) -> str:
    """The schema as TOML that a person can edit.

    Written by hand because the standard library reads TOML but does not write it, and the few
    kinds of values here need no library.
    """
    lines = [
        "# What the columns of the table may hold. Edit kinds, levels and ranges as needed.",
        f"format = {FORMAT}",
    ]
    if schema.protected:
        lines += ["", "[protected]"]
        for name, codes in zip(schema.protected, schema.protected_codes, strict=True):
            column = schema[name]
            values: list[Value] = [
                _number(code) if column.kind == "numerical" else column.levels[int(code)]
                for code in codes
            ]
            lines.append(f"{_toml(name)} = {_toml(values)}")
    for column in schema.columns:
        lines += ["", f"[columns.{_toml(column.name)}]", f"kind = {_toml(column.kind)}"]
        if column.kind == "numerical":
            lines += [
                f"{name} = {_toml(_number(getattr(column, name)))}"
                for name in ("low", "high", "step")
            ]
        else:
            lines.append(f"levels = {_toml(list(column.levels))}")
        if column.missing:
            lines.append("missing = true")
        if column.labels:
            lines.append(f"labels = {_toml(list(column.labels))}")
        if column.meaning:
            lines.append(f"meaning = {_toml(column.meaning)}")
    return "\n".join(lines) + "\n"


def load(path: str | Path) -> Schema:
    """The schema of a TOML file."""
    return parse(_read_text(Path(path)), name=str(path))


def parse(text: str, name: str = "the schema") -> Schema:
    """The schema of a TOML text."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{name} is no valid TOML: {error}") from None
    version = tree.get("format", FORMAT)
    if version != FORMAT:
        raise InvalidInput(f"{name} has format {version}; this limi reads format {FORMAT}")
    tables = tree.get("columns")
    if not isinstance(tables, dict) or not tables:
        raise InvalidInput(f"{name} lists no columns; write a [columns.NAME] table for each")
    schema = Schema(tuple(_column(key, table, name) for key, table in tables.items()))
    protected = tree.get("protected")
    if protected is not None and not isinstance(protected, dict):
        raise InvalidInput(f"{name}: [protected] is a table of columns and their values")
    return schema.protect(protected) if protected else schema


def read_for(frame: Frame, path: str | Path, *, exclude: tuple[str, ...] = ()) -> Schema:
    """The schema in a TOML or SDV JSON file, for this frame; columns it leaves out are inferred."""
    path = Path(path)
    if path.suffix.lower() == ".json":
        return infer(frame, exclude=exclude, kinds=_sdv_kinds(path, exclude))
    given = load(path)
    inferred = infer(frame, exclude=exclude)
    given_names = [name for name in given.names if name not in exclude]
    for name in given_names:
        inferred.position(name)
    columns = [given[c.name] if c.name in given_names else c for c in inferred.columns]
    return Schema(tuple(columns), given.protected, given.protected_codes)


def _sdv_kinds(path: Path, exclude: tuple[str, ...]) -> dict[str, Kind]:
    try:
        tree = json.loads(_read_text(path))
        if "tables" in tree:
            if len(tree["tables"]) != 1:
                raise InvalidInput(
                    f"{str(path)!r} describes {len(tree['tables'])} tables; limi tests one table"
                )
            tree = next(iter(tree["tables"].values()))
        columns = {name: column["sdtype"] for name, column in tree["columns"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{str(path)!r} is no SDV single-table metadata: it needs columns with an sdtype each"
        ) from None
    # Types such as email or phone_number are text to us, as is an identifier.
    kinds = {name: _SDV_KINDS.get(sdtype, "categorical") for name, sdtype in columns.items()}
    return {name: kind for name, kind in kinds.items() if kind and name not in exclude}


def _column(key: str, table: Any, name: str) -> Column:
    if not isinstance(table, dict) or "kind" not in table:
        raise InvalidInput(f"{name}: column {key!r} needs a kind")
    odd = sorted(set(table) - _FIELDS)
    if odd:
        raise InvalidInput(f"{name}: column {key!r} has {odd[0]!r}; {nearest(odd[0], _FIELDS)}")
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
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{name}: column {key!r} cannot be read: {error}") from None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {str(path)!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{str(path)!r} cannot be read: {error}") from None


def _number(value: float) -> int | float:
    return int(value) if math.isfinite(value) and value == int(value) else value


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value)

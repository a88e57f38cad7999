"""Tables that commands take: files, or known data sets by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from limi import data
from limi.errors import BadTable, InvalidInput, nearest
from limi.table import files, schema_files
from limi.table.frames import Codec
from limi.table.recognised import Recognised, recognise, tell_aside
from limi.table.rule_checks import add_constraints, require_kept, set_target_aside
from limi.table.schema import Schema
from limi.types import Rows

__all__ = ["check_target", "features", "is_known", "schema_for", "set_aside", "source"]


def is_known(table: str) -> bool:
    """Does the name stand for a known data set? A file of that name wins."""
    return table in data.names() and not Path(table).exists()


def source(
    table: str,
    target: str | None,
    favorable: str | None,
    schema: Path | None,
    constraints: list[str] | None,
    fit_rows: int | None = None,
) -> dict[str, Any]:
    """The table, its target, favorable label, schema and rules, as `limi.audit` takes them."""
    rules = tuple(constraints or ())
    if is_known(table):
        known = data.load(table)
        given = known.schema
        _refuse_to_draw(table, fit_rows, len(known.frame))
        if schema is not None:
            given = schema_files.read_for(known.frame, schema, exclude=(known.target,))
        return {
            "frame": known.frame,
            "target": target or known.target,
            "favorable": favorable if favorable is not None else known.favorable,
            "schema": given,
            "constraints": rules,
        }
    frame = files.read(table, fit_rows=fit_rows)
    if target is not None:
        check_target(table, frame, target)
    left_out = () if target is None else (target,)
    inferred = None if schema is None else schema_files.read_for(frame, schema, exclude=left_out)
    return {
        "frame": frame,
        "target": target,
        "favorable": favorable,
        "schema": inferred,
        "constraints": rules,
    }


def schema_for(table: str | None, schema: Path | None) -> Schema | None:
    """The schema of a table that was named with it."""
    if schema is None:
        return None
    if table is None:
        raise InvalidInput(
            f"--schema {str(schema)!r} belongs to a table; name the table with --table FILE"
        )
    frame = data.load(table).frame if is_known(table) else files.read(table)
    return schema_files.read_for(frame, schema)


def features(
    table: str,
    target: str | None,
    schema: Path | None,
    constraints: list[str] | None,
    fit_rows: int | None = None,
) -> tuple[Schema, Rows, tuple[str, ...]]:
    """Schema and rows of a table without its target, and what is to be said of its rules."""
    if is_known(table):
        known = data.load(table)
        frame, target, inferred = known.frame, known.target, known.schema
        _refuse_to_draw(table, fit_rows, len(frame))
    else:
        frame = files.read(table, fit_rows=fit_rows)
        if target is not None:
            check_target(table, frame, target)
        inferred = None
    left_out = () if target is None else (target,)
    if schema is not None:
        inferred = schema_files.read_for(frame, schema, exclude=left_out)
    if inferred is None:
        inferred = files.infer(frame, exclude=left_out)
    inferred, aside = set_aside(frame, inferred)
    inferred, notes = set_target_aside(inferred, target)
    inferred = add_constraints(inferred, constraints or (), target=target)
    rows = Codec.learn(frame, inferred).encode(frame)
    require_kept(inferred, rows)
    return inferred, rows, (*files.notes_of(frame), *tell_aside(aside, aside), *notes)


def set_aside(frame: Any, schema: Schema) -> tuple[Schema, dict[str, Recognised]]:
    """The schema without dates and identifiers that nobody described, and these."""
    found = recognise(frame, schema, schema.guessed - set(schema.protected))
    aside = {name: seen for name, seen in found.items() if seen.is_aside}
    left = [name for name in schema.names if name not in aside]
    if not aside or not left:
        return schema, {}
    return schema.select(left), aside


def _refuse_to_draw(table: str, fit_rows: int | None, n_rows: int) -> None:
    """InvalidInput where fewer rows are asked for than a known data set has."""
    if fit_rows is not None and fit_rows < n_rows:
        raise InvalidInput(
            f"fit-rows is {fit_rows}, but {table!r} is a known data set of {n_rows:,} rows, which "
            "is always used whole; leave --fit-rows out"
        )


def check_target(table: str, frame: Any, target: str) -> None:
    """BadTable where the table has no such column."""
    if target not in frame.columns:
        hint = nearest(target, frame.columns)
        raise BadTable(f"{table!r} has no target column {target!r}; {hint}")

"""Personal data hidden wherever rows of people are shown or written.

The search sees every cell, because the model does. What leaves a run (page, text, tables of
findings, schema) holds one word in the place of what is hidden.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from limi.audits.problem import Problem
from limi.audits.summary import Example, Field, Regions
from limi.metrics.regions import Region, Where
from limi.search.findings import Found
from limi.system.words import both
from limi.table.rows import KeySet, keys
from limi.table.rules import Rules
from limi.table.schema import Column, Schema

__all__ = [
    "HIDDEN",
    "count_real_people",
    "hide_cells",
    "hide_examples",
    "hide_regions",
    "hide_schema",
    "say_region",
]

HIDDEN = "hidden"


def hide_schema(schema: Schema, hidden: Collection[str]) -> Schema:
    """The schema with nothing of what hidden columns hold."""
    if not hidden:
        return schema
    kept = [name for name in schema.names if name not in hidden]
    rules = schema.enforcer.among(set(kept))
    columns = tuple(
        Column(name=column.name, kind="categorical", levels=(HIDDEN,))
        if column.name in hidden
        else column
        for column in schema.columns
    )
    return dataclasses.replace(schema, columns=columns, rules=rules)


def hide_cells(columns: Mapping[str, Any], hidden: Collection[str], backend: Any, n: int) -> Any:
    """Columns of findings, each hidden one filled with one word."""
    word = backend.plain_column(np.full(n, HIDDEN))
    names = {f"{name}{end}" for name in hidden for end in ("", "__partner")}
    return {name: word if name in names else cells for name, cells in columns.items()}


def hide_examples(shown: tuple[Example, ...], hidden: Collection[str]) -> tuple[Example, ...]:
    """Examples without what hidden columns hold."""
    if not hidden:
        return shown
    return tuple(
        dataclasses.replace(
            example,
            fields=tuple(
                Field(cell.name, HIDDEN, HIDDEN, cell.changed) if cell.name in hidden else cell
                for cell in example.fields
            ),
        )
        for example in shown
    )


def say_region(region: Region, hidden: Collection[str]) -> str:
    """The conditions of a region in words; of a hidden column, that there is one."""
    return " and ".join(
        f"{part.column.name} ({HIDDEN})" if part.column.name in hidden else str(part)
        for part in region.conditions
    )


def hide_regions(
    where: Where, shown: Regions | None, hidden: Collection[str]
) -> tuple[Where, Regions | None]:
    """Regions without those that a hidden column describes."""
    if not hidden or shown is None:
        return where, shown
    keep = [
        not any(clause.column in hidden for clause in region.conditions) for region in shown.rules
    ]
    rules = tuple(rule for rule, kept in zip(where.rules, keep, strict=True) if kept)
    regions = tuple(region for region, kept in zip(shown.rules, keep, strict=True) if kept)
    lost = len(keep) - len(rules)
    reason = shown.reason
    if lost and not rules:
        reason = f"what was found mentions {both(hidden)}, which is hidden"
    return (
        dataclasses.replace(where, rules=rules),
        dataclasses.replace(shown, rules=regions, reason=reason),
    )


def count_real_people(problem: Problem, found: Found) -> int:
    """How many findings hold a person of the table, as the row or as its partner."""
    schema = dataclasses.replace(problem.schema, protected=(), protected_codes=(), rules=Rules())
    known = KeySet()
    known.add(keys(schema, problem.rows))
    real = known.contains(keys(schema, found.rows)) | known.contains(keys(schema, found.partner))
    return int(real.sum())

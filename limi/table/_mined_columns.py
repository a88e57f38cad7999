"""Columns that another column decides: for mining."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limi.table._axes import is_evident
from limi.table._rule_syntax import quote_name
from limi.table.rules import Derived
from limi.table.schema import Schema
from limi.types import Index, Rows

__all__ = ["find_derived"]

_MOST_VALUES = 0.1  # of the rows: a column with more of them decides everything by chance
_MOST_LISTED = 200  # values of a source that are written down
_MOST_STEPS = 20
_GLANCE = 2000  # rows that are looked at first
_GLANCE_BROKEN = 0.02


@dataclass(frozen=True, eq=False)
class _Coded:
    """A column's cells as whole numbers, and the codes these stand for."""

    cells: Index
    codes: NDArray[np.float64]  # ascending, NaN last

    @property
    def most_common(self) -> int:
        return int(np.bincount(self.cells).max())


class _Decision(NamedTuple):
    """One column decides another, but for a few rows."""

    source: int
    column: int
    broken: int


def find_derived(
    schema: Schema, rows: Rows, protected: Collection[str]
) -> tuple[list[tuple[Derived, str]], list[str]]:
    """Derived columns, each with a comment, and remarks on those that are nearly so.

    Of several sources the one with the fewest values is taken. Of columns that decide each other
    one stays as it is: a protected one, else one of levels, else the first.
    """
    coded = [_code(cells) for cells in rows.T]
    n = len(rows)
    decisions = [
        _Decision(a, b, broken)
        for a, source in enumerate(coded)
        if 1 < len(source.codes) <= _MOST_VALUES * n
        for b, column in enumerate(coded)
        if a != b and (broken := _count_broken(source, column)) is not None
    ]

    def rank(position: int) -> tuple[bool, bool, int]:
        column = schema.columns[position]
        return column.name not in protected, column.is_number, position

    def is_turned(decision: _Decision) -> bool:
        """Does the other column decide this one, and is it the better source?"""
        back = any(d[:2] == (decision.column, decision.source) for d in decisions)
        return back and rank(decision.column) < rank(decision.source)

    decisions.sort(key=lambda d: (d.broken > 0, len(coded[d.source].codes), rank(d.source)))
    found: dict[int, tuple[Derived, str]] = {}
    remarks: dict[int, str] = {}
    for decision in decisions:
        a, b, broken = decision
        name = schema.columns[b].name
        if b in found or is_turned(decision):
            continue
        made = None
        if not broken and name not in protected:
            made = _write(schema, a, b, coded[a], coded[b])
        if made is not None:
            found[b] = made, f"{schema.columns[a].name} decides it in all {n:,} rows"
            continue
        kept = "all" if not broken else f"all but {broken:,} of"
        source = quote_name(schema.columns[a].name)
        remarks.setdefault(b, f"{source} decides {quote_name(name)} in {kept} {n:,} rows")
    return list(found.values()), [text for b, text in remarks.items() if b not in found]


def _code(cells: NDArray[np.float64]) -> _Coded:
    codes, places = np.unique(cells, return_inverse=True)
    return _Coded(places.ravel(), codes)


def _count_broken(source: _Coded, column: _Coded) -> int | None:
    """Rows in which a column is not what its source mostly says; None for too many."""
    n = len(source.cells)
    step = max(1, n // _GLANCE)
    glance = source.cells[::step]
    if _count_exceptions(glance, column.cells[::step]) > _GLANCE_BROKEN * len(glance):
        return None
    broken = _count_exceptions(source.cells, column.cells)
    return broken if is_evident(broken, n, n - column.most_common) else None


def _count_exceptions(source: Index, column: Index) -> int:
    width = int(column.max()) + 1
    joint, counts = np.unique(source.astype(np.int64) * width + column, return_counts=True)
    starts = np.flatnonzero(np.diff(joint // width, prepend=-1))
    return len(source) - int(np.maximum.reduceat(counts, starts).sum())


def _write(schema: Schema, a: int, b: int, source: _Coded, column: _Coded) -> Derived | None:
    """The derived column, where it can be written down."""
    decided = np.empty(len(source.codes), dtype=np.intp)
    decided[source.cells] = column.cells
    keys, results = source.codes, column.codes[decided]
    missing = np.isnan(keys)
    if not np.isnan(results[missing]).all() or np.isnan(results[~missing]).any():
        return None  # missing cells decide what is missing, and nothing else does
    keys, results = keys[~missing], results[~missing]
    one, other = schema.columns[a], schema.columns[b]
    if one.missing and not other.missing:
        return None
    values = [other.value(code) for code in results]
    if one.is_number:
        turns = np.flatnonzero(results[1:] != results[:-1]) + 1
        if len(turns) <= _MOST_STEPS and len(turns) + 1 < len(keys):
            return Derived(
                column=other.name,
                sources=(one.name,),
                steps=tuple(float(key) for key in keys[turns]),
                values=tuple(values[at] for at in (0, *turns)),
            )
    if len(keys) < one.size or not 0 < one.size <= _MOST_LISTED:
        return None
    lookup = tuple(((one.value(key),), value) for key, value in zip(keys, values, strict=True))
    return Derived(column=other.name, sources=(one.name,), lookup=lookup)

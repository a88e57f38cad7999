"""What a table's columns are likely to be, by their names and values; for a person to confirm."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from limi.table.schema import Column, Schema
from limi.types import Value

__all__ = ["Guess", "guess", "names_target", "parts_of", "says"]

# Parts of names, as they stand between underscores, spaces, dots, hyphens and capitals.
_TARGETS = (
    *("target", "label", "class", "y", "outcome", "decision", "approved", "accepted", "granted"),
    *("hired", "admitted", "income", "salary", "default", "risk", "credit", "recid", "recidivism"),
    *("deposit", "subscribed", "churn", "fraud", "loan", "status", "result", "ok"),
)
_PROTECTED = (
    *("sex", "gender", "race", "ethnicity", "ethnic", "nationality", "religion", "disability"),
    *("disabled", "pregnant", "orientation", "caste", "color", "colour", "skin", "veteran"),
)
_MAYBE_PROTECTED = (
    "age",
    "birth",
    "marital",
    "married",
    "native",
    "citizen",
    "language",
    "foreign",
)
_UNWANTED = (
    "default",
    "recid",
    "recidivism",
    "churn",
    "fraud",
    "risk",
    "rejected",
    "denied",
    "bad",
)
_GOOD = ("1", "yes", "true", "good", "approved", "accepted", "granted", "hired", "paid", "pass")
_BAD = ("0", "no", "false", "bad", "rejected", "denied", "refused", "default", "fail", "-1", "2")
_MOST_VALUES = 20  # of a column whose values are all tried
_STEPS = 8  # of a range of numbers


@dataclass(frozen=True)
class Guess:
    """Likely roles of columns."""

    target: str | None
    favorable: Value | None
    protected: tuple[str, ...]  # as `--protected` takes them
    maybe: tuple[str, ...]  # columns that may be protected as well


def guess(schema: Schema, *, target: str | None = None) -> Guess:
    """Guess from a schema of all columns; `target` is the label column where it is known."""
    if target is None:
        target = _target(schema.columns)
    favorable = None if target is None else _favorable(schema[target])
    others = [column for column in schema.columns if column.name != target]
    named = [column for column in others if says(column.name, _PROTECTED)]
    sure = [column for column in named if _size(column) <= _MOST_VALUES]
    maybe = [c for c in others if says(c.name, _MAYBE_PROTECTED) or (c in named and c not in sure)]
    return Guess(
        target,
        favorable,
        tuple(column.name for column in sure),
        tuple(_spell(column) for column in maybe),
    )


def names_target(name: str) -> bool:
    """Is a column called as label columns are, and not as protected ones are?"""
    return says(name, _TARGETS) and not says(name, (*_PROTECTED, *_MAYBE_PROTECTED))


def parts_of(name: str) -> list[str]:
    """The words of a name, as they stand between underscores, spaces, dots, digits and capitals."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [part for part in re.split(r"[\W_\d]+", spaced.casefold()) if part]


def says(name: str, words: Collection[str]) -> bool:
    """Is one of these words a part of the name?"""
    return any(part in words for part in parts_of(name))


def _size(column: Column) -> float:
    if not column.is_number:
        return column.size
    return (column.high - column.low) / column.step + 1 if column.step else float("inf")


def _target(columns: Sequence[Column]) -> str | None:
    """The last column with two values and a telling name, or the last one if it has two."""
    able = [column for column in columns if _size(column) == 2]
    unlikely = (*_PROTECTED, *_MAYBE_PROTECTED)
    telling = [c for c in able if names_target(c.name)]
    if telling:
        return telling[-1].name
    last = columns[-1]
    return last.name if last in able and not says(last.name, unlikely) else None


def _favorable(column: Column) -> Value | None:
    """The label that people want; None where neither of the two tells."""
    if column.is_number:
        if (column.low, column.high) != (0.0, 1.0):
            return None
        return 0 if says(column.name, _UNWANTED) else 1
    if len(column.levels) != 2:
        return None
    words = [" ".join(str(level).casefold().split()) for level in column.levels]
    if {*words} == {"0", "1"} or {*words} == {"false", "true"} or {*words} == {"no", "yes"}:
        wanted = ("0", "false", "no") if says(column.name, _UNWANTED) else ("1", "true", "yes")
        return column.levels[0 if words[0] in wanted else 1]
    good = [word in _GOOD or word.startswith(">") for word in words]
    bad = [word in _BAD or word.startswith("<") for word in words]
    if sum(good) == 1:
        return column.levels[good.index(True)]
    return column.levels[bad.index(False)] if sum(bad) == 1 else None


def _spell(column: Column) -> str:
    """A column as `--protected` takes it, in a few steps where it has many values."""
    if not column.is_number or _size(column) <= _MOST_VALUES or column.low == column.high:
        return column.name
    width = (column.high - column.low) / _STEPS
    step = max(column.step * round(width / column.step), column.step) if column.step else width
    last = column.low + step * int((column.high - column.low) / step + 1e-9)
    return f"{column.name}={column.low:g}-{last:g}:{step:g}"

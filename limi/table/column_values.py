"""How a user names values of a column: `race=White,Black`, `age=18-80`, `age=18-80:5`."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limi.errors import InvalidInput

if TYPE_CHECKING:
    from limi.table.schema import Column

__all__ = ["Between", "codes_between", "codes_of", "read_values", "split_name"]

# Each text is a number in one way only, else a long one would be tried in very many.
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"\s*({_NUMBER})\s*-\s*({_NUMBER})\s*(?::\s*({_NUMBER})\s*)?")

_MOST_CODES = 100_000


@dataclass(frozen=True)
class Between:
    """Numbers from low to high, both included; in steps where a step is given."""

    low: float
    high: float
    step: float | None


def split_name(text: str, names: Sequence[str]) -> tuple[str, str | None]:
    """The column that a text names, and what stands behind its equals sign; None without one."""
    # A column's own name may hold an equals sign; the longest name that exists wins.
    if text in names:
        return text, None
    for name in sorted(names, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return name, text[len(name) + 1 :]
    name, found, values = text.partition("=")
    return name.strip(), values if found else None


def read_values(column: Column, values: Any, what: str) -> Between | list[Any]:
    """A range of numbers, or the cells that a text or an iterable lists.

    `what` is the subject of the sentence that refuses, such as "protected column 'age'".
    """
    if isinstance(values, str):
        found = _RANGE.fullmatch(values)
        if column.is_number and found:
            low, high, step = (None if end is None else float(end) for end in found.groups())
            assert low is not None
            assert high is not None
            return _check(Between(low, high, step), column, what)
        try:
            cells = next(csv.reader([values], skipinitialspace=True), [])
        except csv.Error:
            raise InvalidInput(
                f"the values of {what} cannot be read: {values!r}; write them on one line, "
                "joined by commas"
            ) from None
        # A level may begin or end with a space of its own, which quotes keep.
        return [cell if cell in column.positions else cell.strip() for cell in cells]
    if not isinstance(values, Iterable):
        raise InvalidInput(
            f"{what} was given {values!r}; give a list of values or a range such as '18-80:5'"
        )
    return list(values)


def codes_of(column: Column, cells: Iterable[Any], what: str) -> tuple[float, ...]:
    """The codes of listed cells; InvalidInput where one is not a value, or is listed twice."""
    codes = tuple(column.code(cell) for cell in cells)
    if len(set(codes)) != len(codes):
        raise InvalidInput(f"{what} lists a value twice")
    return codes


def codes_between(column: Column, between: Between, what: str) -> tuple[float, ...]:
    """Every code of a range, in the column's own steps where none are given."""
    low, high = between.low, between.high
    step = column.step if between.step is None else between.step
    if step <= 0:
        raise InvalidInput(f"{what} needs a range with a step above 0; try {_example(column)!r}")
    if column.step and step % column.step > 1e-9 * step and -step % column.step > 1e-9 * step:
        raise InvalidInput(
            f"{what} moves in steps of {column.step:g}, so a step of {step:g} does not fit"
        )
    count = (high - low) / step + 1e-9 + 1
    if not count <= _MOST_CODES:
        raise InvalidInput(
            f"{what} would have {count:.6g} values; give a coarser step, for example "
            f"{_example(column)!r}"
        )
    codes = np.round(low + step * np.arange(int(count)), 12)
    for edge in (codes[0], codes[-1]):
        column.code(float(edge))
    return tuple(float(code) for code in codes)


def _check(between: Between, column: Column, what: str) -> Between:
    low, high = between.low, between.high
    if not all(math.isfinite(end) for end in (low, high, between.step or 0.0)):
        raise InvalidInput(
            f"{what} has a range of numbers that are too large; try {_example(column)!r}"
        )
    if not low <= high:
        raise InvalidInput(
            f"{what} has the range {low:g} to {high:g}; the first must not be above the second"
        )
    return between


def _example(column: Column) -> str:
    return f"{column.name}={column.low:g}-{column.high:g}:{(column.high - column.low) / 10:g}"

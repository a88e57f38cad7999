"""How a user names protected columns: `sex`, `race=White,Black`, `age=18-80:5`."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from limi.errors import InvalidInput

if TYPE_CHECKING:
    from limi.table.schema import Column, Schema

__all__ = ["parse"]

# Each text is a number in one way only, else a long one would be tried in very many.
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"\s*({_NUMBER})\s*-\s*({_NUMBER})\s*(?::\s*({_NUMBER})\s*)?")


def parse(
    schema: Schema, wanted: Sequence[str] | Mapping[str, object]
) -> dict[str, tuple[float, ...]]:
    """Codes to try for each protected column, in the order named."""
    if isinstance(wanted, str):
        wanted = [wanted]
    pairs: Iterable[tuple[str, object]] = (
        wanted.items() if isinstance(wanted, Mapping) else [_split(schema, text) for text in wanted]
    )
    choices: dict[str, tuple[float, ...]] = {}
    for name, values in pairs:
        column = schema[name]
        if name in choices:
            raise InvalidInput(f"protected column {name!r} is named twice; name it once")
        codes = _codes(column, values)
        if not codes:
            raise InvalidInput(f"protected column {name!r} was given no values; list two or more")
        if len(codes) < 2:
            raise InvalidInput(
                f"protected column {name!r} has one value only ({column.show(codes[0])}); "
                "a flip needs at least two"
            )
        choices[name] = codes
    if not choices:
        raise InvalidInput("no protected column was named; name one, for example 'sex'")
    if len(choices) == len(schema):
        raise InvalidInput("every column is protected; at least one must stay as it is")
    return choices


def _split(schema: Schema, text: str) -> tuple[str, object]:
    if not isinstance(text, str):
        raise InvalidInput(
            f"a protected column was given as {text!r}; write its name, such as 'sex', or "
            "'race=White,Black'"
        )
    # A column's own name may hold an equals sign; the longest name that exists wins.
    names = schema.names
    if text in names or "=" not in text:
        return text, None
    for name in sorted(names, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return name, text[len(name) + 1 :]
    name, _, values = text.partition("=")
    return name.strip(), values


def _codes(column: Column, values: object) -> tuple[float, ...]:
    if values is None or values == "":
        return _all_codes(column)
    if isinstance(values, str):
        between = _RANGE.fullmatch(values)
        if column.kind == "numerical" and between:
            low, high, step = between.groups()
            return _range(column, float(low), float(high), float(step) if step else column.step)
        try:
            values = next(csv.reader([values], skipinitialspace=True))
        except csv.Error:
            raise InvalidInput(
                f"the values of protected column {column.name!r} cannot be read: {values!r}; "
                "write them on one line, joined by commas"
            ) from None
    if not isinstance(values, Iterable):
        raise InvalidInput(
            f"protected column {column.name!r} was given {values!r}; "
            "give a list of values or a range such as '18-80:5'"
        )
    codes = [column.code(value) for value in values]
    if len(set(codes)) != len(codes):
        raise InvalidInput(f"protected column {column.name!r} lists a value twice")
    return tuple(codes)


def _all_codes(column: Column) -> tuple[float, ...]:
    if column.kind != "numerical":
        return tuple(float(position) for position in range(column.size))
    return _range(column, column.low, column.high, column.step)


def _range(column: Column, low: float, high: float, step: float) -> tuple[float, ...]:
    example = f"{column.name}={column.low:g}-{column.high:g}:{(column.high - column.low) / 10:g}"
    if step <= 0:
        raise InvalidInput(
            f"protected column {column.name!r} needs a range with a step above 0; try {example!r}"
        )
    if not all(map(math.isfinite, (low, high, step))):
        raise InvalidInput(
            f"protected column {column.name!r} has a range of numbers that are too large; "
            f"try {example!r}"
        )
    if not low <= high:
        raise InvalidInput(
            f"protected column {column.name!r} has the range {low:g} to {high:g}; "
            "the first must not be above the second"
        )
    if column.step and step % column.step > 1e-9 * step and -step % column.step > 1e-9 * step:
        raise InvalidInput(
            f"protected column {column.name!r} moves in steps of {column.step:g}, so a step of "
            f"{step:g} does not fit"
        )
    count = (high - low) / step + 1e-9 + 1
    if not count <= 100_000:
        raise InvalidInput(
            f"protected column {column.name!r} would have {count:.6g} values; "
            f"give a coarser step, for example {example!r}"
        )
    codes = np.round(low + step * np.arange(int(count)), 12)
    for edge in (codes[0], codes[-1]):
        column.code(float(edge))
    return tuple(float(code) for code in codes)

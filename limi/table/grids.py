"""Values to try of a protected number that was named without any: a few that people hold.

All values of a number with many would ask the model about a person dozens of times. Ten of them,
at the quantiles of the table and rounded as people round, tell as much and cost a tenth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.table.column_values import split_name
from limi.table.protected import codes_for
from limi.table.schema import MAX_COMBINATIONS, Column, Schema

__all__ = ["choose_grid", "choose_missing_values"]

_MOST_VALUES = 10  # a number that has no more of them is tried with all
_NICE = (5.0, 2.0, 1.0)  # parts of a power of ten that people round to

Numbers = NDArray[np.float64]


def choose_missing_values(
    schema: Schema,
    wanted: Sequence[str] | Mapping[str, object],
    numbers_of: Callable[[str], Numbers],
) -> tuple[Sequence[str] | Mapping[str, object], tuple[str, ...]]:
    """The protected columns with values for numbers that have none, and a sentence on each.

    `numbers_of` gives a column's cells. What cannot be understood comes back as it is, for whoever
    reads it next to refuse.
    """
    pairs = _read(schema, wanted)
    if pairs is None:
        return wanted, ()
    known = {
        name: _count(schema[name], values) for name, values in pairs.items() if name in schema.names
    }
    bare = [name for name, count in known.items() if count is None]
    if not bare:
        return wanted, ()
    most = _MOST_VALUES
    others = math.prod(count for count in known.values() if count is not None)
    while most > 2 and others * most ** len(bare) > MAX_COMBINATIONS:
        most -= 1
    told = []
    for name in bare:
        grid = choose_grid(schema[name], numbers_of(name), most)
        pairs[name] = grid
        shown = ", ".join(f"{value:g}" for value in grid)
        told.append(
            f"{name!r} was named without values, so {len(grid)} of the table's were chosen: "
            f"{shown}; choose others with a list, {name}={grid[0]:g},{grid[-1]:g}, or a range with "
            f"a step, {name}=LOW-HIGH:STEP"
        )
    return pairs, tuple(told)


def choose_grid(column: Column, cells: Numbers, most: int = _MOST_VALUES) -> list[float]:
    """At most so many values of a number: quantiles of its cells, rounded as people round."""
    known = cells[np.isfinite(cells)]
    places = (np.arange(most) + 0.5) / most
    quantiles = np.quantile(known, places, method="inverted_cdf")
    width = (quantiles[-1] - quantiles[0]) / most
    unit = _round_unit(width) if width > 0 else 0.0
    nice = np.round(quantiles / unit) * unit if unit else quantiles
    values = np.unique(_onto_steps(column, nice))
    if len(values) < 2:  # nearly all people hold one value; its ends are held by some
        values = np.array([known.min(), known.max()])
    return [float(value) for value in values]


def _round_unit(width: float) -> float:
    """The largest 1, 2 or 5 times a power of ten that is not above a width."""
    power = 10.0 ** math.floor(math.log10(width))
    return next((nice * power for nice in _NICE if nice * power <= width), power)


def _onto_steps(column: Column, values: Numbers) -> Numbers:
    """The nearest values that the column may hold."""
    if column.step > 0:
        values = column.low + np.round((values - column.low) / column.step) * column.step
    return np.clip(np.round(values, 12), column.low, column.high)


def _read(schema: Schema, wanted: Sequence[str] | Mapping[str, object]) -> dict[str, Any] | None:
    """Names and values as they were given; None where they cannot be read."""
    if isinstance(wanted, Mapping):
        return dict(wanted)
    if not all(isinstance(text, str) for text in wanted):
        return None
    pairs = [split_name(text, schema.names) for text in wanted]
    found = dict(pairs)
    return found if len(found) == len(pairs) else None


def _count(column: Column, values: object) -> int | None:
    """How many values are to be tried; None for a number of many values that has none named."""
    if values in (None, "") and column.is_number and not 0 < column.size <= _MOST_VALUES:
        return None
    return len(codes_for(column, values))

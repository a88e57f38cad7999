"""Neighbourhoods: which columns of a person may move, and how far.

`age=5` lets a number move by 5 either way, within the range of its column; `education=any` lets a
column take every value of its own. What is not named stays. Without a word each number moves by a
tenth of its standard deviation, or by one step where that is more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput, spell
from limi.table.schema import Column, Schema
from limi.types import Rows

__all__ = ["Near", "NearBy", "parse_near"]

NearBy: TypeAlias = str | Mapping[str, Any] | None
"""`"age=5,education=any"`, the same as a mapping, or None for the default."""

_SHARE = 0.1  # of a standard deviation
ANY = "any"


@dataclass(frozen=True, eq=False)
class Near:
    """How far each column may move: 0 for not at all, infinity for any value."""

    reach: NDArray[np.float64]  # (d,), in codes
    said: str  # in words, as the option is written

    def ends(self, schema: Schema, rows: Rows) -> tuple[Rows, Rows]:
        """Lowest and highest codes of the neighbourhoods of rows; NaN where a missing cell stays.

        With `any`, a missing cell may become any value, or stay missing.
        """
        free = np.isinf(self.reach)
        reach = np.where(free, 0.0, self.reach)
        low, high = np.maximum(rows - reach, schema.low), np.minimum(rows + reach, schema.high)
        return np.where(free, schema.low, low), np.where(free, schema.high, high)


def parse_near(schema: Schema, rows: Rows, near: NearBy) -> Near:
    """The neighbourhood that is meant; InvalidInput where it cannot be."""
    reach = np.zeros(len(schema))
    movable = set(schema.key_index.tolist())
    if near is None:
        spread = np.nan_to_num(np.nanstd(rows, axis=0))
        for place in sorted(movable):
            column = schema.columns[place]
            if column.kind == "numerical" and schema.high[place] > schema.low[place]:
                wide = max(_SHARE * float(spread[place]), column.step)
                reach[place] = _whole_steps(column, wide)
        return Near(reach, _say(schema, reach))
    named = set[int]()
    for name, value in _pairs(near):
        place = schema.position(name)
        _require_movable(schema, name, movable)
        if place in named:
            raise InvalidInput(f"near names {name!r} twice; give the distance only once")
        named.add(place)
        reach[place] = _read_reach(schema.columns[place], value)
    return Near(reach, _say(schema, reach))


def _pairs(near: str | Mapping[str, Any]) -> list[tuple[str, Any]]:
    if not isinstance(near, str):
        return [(str(name), value) for name, value in near.items()]
    pairs = []
    for word in near.split(","):
        name, sign, value = word.rpartition("=")
        if not sign or not name.strip():
            raise InvalidInput(
                f"near has {word.strip()!r}; write COLUMN=NUMBER or COLUMN=any, separated by "
                "commas, as in 'age=5,education=any'"
            )
        pairs.append((name.strip(), value.strip()))
    return pairs


def _require_movable(schema: Schema, name: str, movable: set[int]) -> None:
    if name in schema.protected:
        raise InvalidInput(
            f"near names {name!r}, which is protected, so all its values are tried anyway; leave "
            "it out"
        )
    if schema.position(name) not in movable:
        raise InvalidInput(
            f"near names {name!r}, which the rules derive from other columns; name those instead"
        )


def _read_reach(column: Column, value: Any) -> float:
    if isinstance(value, str) and value.lower() == ANY:
        return math.inf
    try:
        wide = float(value)
    except (TypeError, ValueError):
        wide = math.nan
    if isinstance(value, bool) or not (math.isfinite(wide) and wide >= 0):
        raise InvalidInput(
            f"near says {column.name}={value}; it must be 'any', or 0 or more: how far the column "
            "may move either way"
        )
    if column.kind in ("categorical", "boolean"):
        raise InvalidInput(
            f"near says {column.name}={value}, and the values of {column.name!r} have no order; "
            f"write {column.name}=any"
        )
    whole = column.last - column.first
    if wide > whole:
        raise InvalidInput(
            f"near says {column.name}={value}, which is wider than the whole range of the column "
            f"({whole:g}); write a smaller number, or {column.name}=any"
        )
    whole_steps = _whole_steps(column, wide)
    if wide > 0 == whole_steps:
        raise InvalidInput(
            f"near says {column.name}={value}, which is less than a step of the column, so that it "
            f"would not move; write {column.spacing:g} or more, or leave it out"
        )
    return whole_steps


def _whole_steps(column: Column, wide: float) -> float:
    step = column.spacing
    return math.floor(wide / step + 1e-9) * step if step else wide


def _say(schema: Schema, reach: NDArray[np.float64]) -> str:
    moved = [
        f"{schema.names[j]}={ANY if math.isinf(reach[j]) else f'{reach[j]:.6g}'}"
        for j in np.flatnonzero(reach)
    ]
    return spell(moved, most=len(moved)).replace(", ", ",") if moved else "nothing"

"""What a rule is made of once it is read: quantities and conditions over columns of codes.

Each condition answers two questions, where it surely holds and where it surely fails; what is
neither is unknown, because a value is missing. Arrays of numpy and tensors of torch alike.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.system.arrays import find_sorted, look_up, where

__all__ = [
    "CALCULATE",
    "AnyOf",
    "Array",
    "Calculation",
    "Cells",
    "ColumnCells",
    "Compare",
    "Condition",
    "IsMissing",
    "Not",
    "Number",
    "OneOf",
    "Quantity",
    "Table",
]

Array: TypeAlias = Any  # of numpy or torch
ColumnCells: TypeAlias = Mapping[int, Array]  # by the position of their column

CALCULATE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}

_FEW = 4  # constants that are compared one by one sooner than searched for
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Quantity(Protocol):
    """Numbers or codes, one for each row; NaN where unknown."""

    @property
    def whole(self) -> bool:
        """Whole numbers only? Then nothing is rounded, and equal means equal."""

    def looks_at(self) -> Iterator[int]: ...

    def values(self, cells: ColumnCells) -> Array: ...


class Condition(Protocol):
    """Something that holds, fails or is unknown in a row."""

    def looks_at(self) -> Iterator[int]: ...

    def holds(self, cells: ColumnCells) -> Array: ...

    def fails(self, cells: ColumnCells) -> Array: ...


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float

    @property
    def whole(self) -> bool:
        return self.value % 1 == 0

    def looks_at(self) -> Iterator[int]:
        return iter(())

    def values(self, cells: ColumnCells) -> Array:
        return self.value


@dataclass(frozen=True)
class Cells:
    """The cells of a column."""

    position: int
    whole: bool

    def looks_at(self) -> Iterator[int]:
        yield self.position

    def values(self, cells: ColumnCells) -> Array:
        return cells[self.position]


@dataclass(frozen=True, eq=False)
class Table:
    """A number for each code of a column; keys are the codes where they are not 0, 1, 2 ..."""

    position: int
    entries: NDArray[np.float64]  # one more than codes: NaN, for every other cell
    keys: NDArray[np.float64] | None = None  # ascending

    @property
    def whole(self) -> bool:
        known = self.entries[:-1]
        return bool(np.all((known % 1 == 0) | np.isnan(known)))

    def looks_at(self) -> Iterator[int]:
        yield self.position

    def values(self, cells: ColumnCells) -> Array:
        codes = cells[self.position]
        if self.keys is not None:
            return look_up(self.entries, find_sorted(self.keys, codes))
        size = len(self.entries) - 1
        return look_up(self.entries, where((codes >= 0) & (codes < size), codes, size))


@dataclass(frozen=True)
class Calculation:
    """A sum, difference, product or quotient; a quotient by zero is unknown."""

    sign: str
    left: Quantity
    right: Quantity

    @property
    def whole(self) -> bool:
        return self.sign != "/" and self.left.whole and self.right.whole

    def looks_at(self) -> Iterator[int]:
        yield from self.left.looks_at()
        yield from self.right.looks_at()

    def values(self, cells: ColumnCells) -> Array:
        left, right = self.left.values(cells), self.right.values(cells)
        if self.sign == "/" and not isinstance(right, float):
            right = where(right == 0, math.nan, right)
        return CALCULATE[self.sign](left, right)


@dataclass(frozen=True)
class Compare:
    """Two quantities and how they must relate."""

    sign: str
    left: Quantity
    right: Quantity

    def looks_at(self) -> Iterator[int]:
        yield from self.left.looks_at()
        yield from self.right.looks_at()

    def holds(self, cells: ColumnCells) -> Array:
        return self._relate(self.sign, cells)

    def fails(self, cells: ColumnCells) -> Array:
        return self._relate(_OPPOSITE[self.sign], cells)

    def _relate(self, sign: str, cells: ColumnCells) -> Array:
        """True where the two surely relate so: never where one is NaN."""
        left, right = self.left.values(cells), self.right.values(cells)
        if self._rounds:
            # 0.1 + 0.2 is meant to equal 0.3, so numbers are equal within the last digits.
            slack = _find_slack(left, right) * (abs(left) + abs(right))
            apart = left - right
            if sign in ("==", "!="):
                return abs(apart) <= slack if sign == "==" else abs(apart) > slack
            if sign in ("<=", ">="):
                return apart <= slack if sign == "<=" else apart >= -slack
            return apart < -slack if sign == "<" else apart > slack
        if sign == "!=":
            return (left < right) | (left > right)
        compare: Callable[[Array, Array], Array] = _COMPARE[sign]
        return compare(left, right)

    @property
    def _rounds(self) -> bool:
        computed = isinstance(self.left, Calculation) or isinstance(self.right, Calculation)
        return computed and not (self.left.whole and self.right.whole)


def _find_slack(left: Array, right: Array) -> float:
    """How far numbers of this precision may be apart and still count as equal."""
    single = any(getattr(side, "itemsize", 8) == 4 for side in (left, right))
    return 1e-5 if single else 1e-9


@dataclass(frozen=True)
class OneOf:
    """Is a quantity one of these numbers?"""

    value: Quantity
    numbers: tuple[float, ...]  # ascending

    def looks_at(self) -> Iterator[int]:
        return self.value.looks_at()

    def holds(self, cells: ColumnCells) -> Array:
        values = self.value.values(cells)
        if len(self.numbers) <= _FEW:
            return reduce(operator.or_, (values == number for number in self.numbers))
        return find_sorted(np.array(self.numbers), values) < len(self.numbers)

    def fails(self, cells: ColumnCells) -> Array:
        values = self.value.values(cells)
        return ~self.holds(cells) & (values == values)


@dataclass(frozen=True)
class IsMissing:
    """Is a quantity unknown? This itself never is."""

    value: Quantity

    def looks_at(self) -> Iterator[int]:
        return self.value.looks_at()

    def holds(self, cells: ColumnCells) -> Array:
        values = self.value.values(cells)
        return values != values

    def fails(self, cells: ColumnCells) -> Array:
        values = self.value.values(cells)
        return values == values


@dataclass(frozen=True)
class Not:
    """The opposite; what is unknown stays so."""

    condition: Condition

    def looks_at(self) -> Iterator[int]:
        return self.condition.looks_at()

    def holds(self, cells: ColumnCells) -> Array:
        return self.condition.fails(cells)

    def fails(self, cells: ColumnCells) -> Array:
        return self.condition.holds(cells)


@dataclass(frozen=True)
class AnyOf:
    """Does one of the conditions hold at least?"""

    parts: tuple[Condition, ...]

    def looks_at(self) -> Iterator[int]:
        for part in self.parts:
            yield from part.looks_at()

    def holds(self, cells: ColumnCells) -> Array:
        return reduce(operator.or_, (part.holds(cells) for part in self.parts))

    def fails(self, cells: ColumnCells) -> Array:
        return reduce(operator.and_, (part.fails(cells) for part in self.parts))

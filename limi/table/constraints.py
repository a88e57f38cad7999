"""Rules that rows of a table keep: `relationship == "Husband" implies sex == "Male"`.

A rule is read once for a schema, which turns the levels it names into codes; then it is arithmetic
on codes, for arrays of numpy and tensors of torch alike. Its logic is three-valued, as that of
CHECK in SQL: what depends on a missing value is unknown, and a rule is broken only where it is
surely false.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from limi.errors import InvalidInput
from limi.system.arrays import is_tensor
from limi.table import _rule_syntax as syntax
from limi.table._rule_logic import (
    CALCULATE,
    AnyOf,
    Array,
    Calculation,
    Cells,
    ColumnCells,
    Compare,
    Condition,
    IsMissing,
    Not,
    Number,
    OneOf,
    Quantity,
    Table,
)
from limi.table.schema import Column, Schema
from limi.types import Value

__all__ = ["Constraint", "find_broken"]

_CACHED = 16384  # rows that stay in a core's cache while the rules look at them
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True)
class Constraint:
    """A rule of a schema. Two are the same if their names and texts are."""

    name: str
    text: str
    columns: tuple[int, ...] = field(compare=False)  # positions that it looks at, ascending
    condition: Condition = field(compare=False, repr=False)

    @staticmethod
    def read(name: str, text: str, schema: Schema) -> Constraint:
        """The rule that a text means for a schema; InvalidInput where it means none."""
        if not isinstance(name, str) or not isinstance(text, str):
            raise InvalidInput(
                f"{syntax.call_rule(name)} is {text!r}; a constraint has a name and a rule as "
                "text, such as 'hours <= 7 * 24'"
            )
        try:
            condition = _Reader(schema).read_condition(syntax.parse_rule(text))
        except InvalidInput as error:
            raise InvalidInput(f"{syntax.call_rule(name)}: {error}") from None
        return Constraint(name, text, tuple(sorted(set(condition.looks_at()))), condition)

    def broken(self, rows: Array) -> Array:
        """(n,) for codes (n, d), numpy's or torch's: True where the rule is surely false."""
        return find_broken([self], rows)[:, 0]


def find_broken(constraints: Sequence[Constraint], rows: Array) -> Array:
    """(n, rules): which rules each row breaks."""
    if is_tensor(rows):
        cells = _gather(constraints, rows)
        masks = [constraint.condition.fails(cells) for constraint in constraints]
        return sys.modules["torch"].stack(masks, 1) if masks else rows[:, :0].bool()
    broken = np.empty((len(rows), len(constraints)), dtype=bool)
    with np.errstate(all="ignore"):
        for start in range(0, len(rows), _CACHED):
            part = slice(start, start + _CACHED)
            cells = _gather(constraints, rows[part])
            for number, constraint in enumerate(constraints):
                broken[part, number] = constraint.condition.fails(cells)
    return broken


def _gather(constraints: Sequence[Constraint], rows: Array) -> ColumnCells:
    """The columns that the rules look at, each in one piece: four times as fast to work on."""
    used = {position for constraint in constraints for position in constraint.columns}
    if is_tensor(rows):
        return {position: rows[:, position].contiguous() for position in used}
    return {position: rows[:, position].copy() for position in used}


@dataclass(frozen=True)
class _Levels:
    """A column of levels, before it is known what they are compared with."""

    position: int
    column: Column


@dataclass(frozen=True)
class _Choices:
    """A lookup whose results are values of another column."""

    position: int
    column: Column
    results: Mapping[float, Value]  # by the code of the key


_Operand: TypeAlias = Quantity | _Levels | _Choices | syntax.Constant


class _Reader:
    """What the tree of a rule means for one schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def read_condition(self, node: syntax.Node) -> Condition:
        match node:
            case syntax.Implies(condition, consequence):
                return AnyOf(
                    (Not(self.read_condition(condition)), self.read_condition(consequence))
                )
            case syntax.Some(parts):
                return AnyOf(tuple(self.read_condition(part) for part in parts))
            case syntax.Every(parts):
                return Not(AnyOf(tuple(Not(self.read_condition(part)) for part in parts)))
            case syntax.Negation(condition):
                return Not(self.read_condition(condition))
            case syntax.Comparison(sign, left, right):
                return self._compare(sign, self._read(left), self._read(right))
            case syntax.Within(value, choices):
                return self._find_among(self._read(value), choices)
            case syntax.Missing(value):
                return IsMissing(_know_of(self._read(value)))
            case syntax.Name(name):
                return _hold_true(self._read_column(name))
        raise InvalidInput("a rule is a condition, such as 'age >= 18'")

    def _read(self, node: syntax.Node) -> _Operand:
        match node:
            case syntax.Constant():
                return node
            case syntax.Name(name):
                return self._read_column(name)
            case syntax.Lookup(pairs, column):
                return self._look_up(pairs, self._schema.position(column.name))
            case syntax.Arithmetic(sign, left, right):
                return _calculate(sign, _as_number(self._read(left)), _as_number(self._read(right)))
        raise InvalidInput(
            "a condition is used where a number or a column is expected; join conditions with "
            "'and', 'or' or 'implies'"
        )

    def _read_column(self, name: str) -> Cells | _Levels:
        if name not in self._schema.names:
            self._hint_at_quotes(name)
        position = self._schema.position(name)
        column = self._schema.columns[position]
        if not column.is_number:
            return _Levels(position, column)
        return Cells(position, column.step > 0 and column.step % 1 == column.low % 1 == 0)

    def _hint_at_quotes(self, name: str) -> None:
        for column in self._schema.columns:
            if name in column.levels:
                raise InvalidInput(
                    f"there is no column {name!r}; it is a value of column {column.name!r}, and "
                    f"values are written in quotes: {syntax.quote_value(name)}"
                )

    def _look_up(
        self, pairs: tuple[tuple[syntax.Constant, syntax.Constant], ...], position: int
    ) -> Table | _Choices:
        column = self._schema.columns[position]
        results: dict[float, Value] = {}
        for key, result in pairs:
            code = _code(column, key.value)
            if code in results:
                raise InvalidInput(f"a lookup of column {column.name!r} names {key.value!r} twice")
            results[code] = result.value
        if any(isinstance(result, (str, bool)) for result in results.values()):
            return _Choices(position, column, results)
        return _make_table(position, column, {k: float(v) for k, v in results.items()})

    def _compare(self, sign: str, left: _Operand, right: _Operand) -> Condition:
        if isinstance(left, syntax.Constant | Number) or (
            isinstance(right, _Levels) and not isinstance(left, _Levels)
        ):
            left, right, sign = right, left, _MIRRORED[sign]
        if isinstance(left, syntax.Constant | Number):
            raise InvalidInput("the rule compares two constants; compare a column with one")
        if isinstance(left, _Levels):
            return self._compare_levels(sign, left, right)
        for side in (left, right):
            if isinstance(side, _Choices):
                raise InvalidInput(
                    f"the lookup of column {side.column.name!r} gives values of another column; "
                    "compare it with that column"
                )
        return Compare(sign, _as_number(left), _as_number(right))

    def _compare_levels(self, sign: str, left: _Levels, right: _Operand) -> Condition:
        column = left.column
        if sign not in ("==", "!="):
            _require_order(column, right)
        codes = Cells(left.position, whole=True)
        match right:
            case syntax.Constant(value):
                return Compare(sign, codes, Number(column.code(value)))
            case _Levels(position, source):
                places = {
                    float(code): float(column.positions.get(level, -1))
                    for code, level in enumerate(source.levels)
                }
                return Compare(sign, codes, _make_table(position, source, places))
            case _Choices(position, source, results):
                places = {code: column.code(value) for code, value in results.items()}
                return Compare(sign, codes, _make_table(position, source, places))
        if column.level_numbers is None:
            raise InvalidInput(f"column {column.name!r} holds text but is compared with numbers")
        return Compare(sign, Table(left.position, np.append(column.level_numbers, np.nan)), right)

    def _find_among(self, value: _Operand, choices: tuple[syntax.Constant, ...]) -> Condition:
        if isinstance(value, _Levels):
            codes = {value.column.code(choice.value) for choice in choices}
            return OneOf(Cells(value.position, whole=True), tuple(sorted(codes)))
        if isinstance(value, syntax.Constant | Number | _Choices):
            raise InvalidInput("only a column or a calculation with one can be 'in' a list")
        numbers = {_as_constant(choice.value) for choice in choices}
        if isinstance(value, Calculation):
            return AnyOf(tuple(Compare("==", value, Number(x)) for x in sorted(numbers)))
        return OneOf(value, tuple(sorted(numbers)))


def _hold_true(operand: Cells | _Levels) -> Condition:
    """A column of true and false that stands for a condition."""
    if isinstance(operand, _Levels):
        column = operand.column
        if all(isinstance(level, bool) for level in column.levels):
            true = column.positions.get(True, -1)
            return Compare("==", Cells(operand.position, whole=True), Number(float(true)))
    raise InvalidInput(
        "a column is used where a condition is expected; compare it with something, as in 'age >= "
        "18'"
    )


def _as_number(operand: _Operand) -> Quantity:
    """An operand as numbers to reckon with."""
    match operand:
        case syntax.Constant(value):
            return Number(_as_constant(value))
        case _Levels(position, column):
            if column.kind != "ordered" or column.level_numbers is None:
                raise InvalidInput(
                    f"column {column.name!r} is {column.kind} and holds no numbers; map its values "
                    f"to numbers: {{{syntax.quote_value(column.levels[0])}: 1, "
                    f"...}}[{syntax.quote_name(column.name)}]"
                )
            return Table(position, np.append(column.level_numbers, np.nan))
        case _Choices(_, column, _):
            raise InvalidInput(f"the lookup of column {column.name!r} gives text, not numbers")
    return operand


def _as_constant(value: Value) -> float:
    if isinstance(value, (str, bool)):
        raise InvalidInput(f"{value!r} is used where a number is expected")
    return float(value)


def _know_of(operand: _Operand) -> Quantity:
    """Something that is NaN exactly where the operand is unknown."""
    match operand:
        case syntax.Constant() | Number():
            raise InvalidInput("a constant is never missing; name a column")
        case _Levels(position, _):
            return Cells(position, whole=True)
        case _Choices(position, column, results):
            return _make_table(position, column, dict.fromkeys(results, 0.0))
    return operand


def _calculate(sign: str, left: Quantity, right: Quantity) -> Quantity:
    if sign == "/" and right == Number(0.0):
        raise InvalidInput("the rule divides by zero")
    if not (isinstance(left, Number) and isinstance(right, Number)):
        return Calculation(sign, left, right)
    value = CALCULATE[sign](left.value, right.value)
    if not math.isfinite(value):
        raise InvalidInput("the rule calculates a number that is too large")
    return Number(float(f"{value:.15g}"))  # 0.1 + 0.2 is meant to be 0.3


def _require_order(column: Column, other: _Operand) -> None:
    unordered = column if column.kind != "ordered" else None
    if isinstance(other, _Levels) and other.column.kind != "ordered":
        unordered = unordered or other.column
    if unordered:
        raise InvalidInput(
            f"the values of column {unordered.name!r} have no order, because it is "
            f"{unordered.kind}; use == or 'in', or make it ordered in the schema"
        )
    if isinstance(other, _Levels) and other.column.levels != column.levels:
        raise InvalidInput(
            f"columns {column.name!r} and {other.column.name!r} list different values, so they "
            "have no common order"
        )


def _code(column: Column, value: Value) -> float:
    """The code of a key of a lookup; a number may lie outside the range of its column."""
    return _as_constant(value) if column.is_number else column.code(value)


def _make_table(position: int, column: Column, results: Mapping[float, float]) -> Table:
    if not column.is_number:
        entries = [results.get(float(code), math.nan) for code in range(column.size)]
        return Table(position, np.array([*entries, math.nan]))
    keys = sorted(results)
    return Table(position, np.array([*map(results.get, keys), math.nan], float), np.array(keys))

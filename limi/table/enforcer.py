"""The rules of a schema at work: derived cells, partners that could exist, rows that cannot.

A role is a permutation of a column's levels for each value of its protected column. It is named
in part (under Male a Wife is a Husband) and closed to a permutation by joining the ends of its
chains (a Husband is then a Wife). So the level that a row would have under the first value is well
defined: its *canonical* cell. A partner is made from canonical cells, and keys are made of them,
which is why rows that are partners of each other have one key.

Everything here takes arrays of numpy and tensors of torch alike.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput, find_repeated, spell
from limi.system.arrays import is_tensor, where
from limi.table.rules import Derived, Role, Rules
from limi.types import Index

if TYPE_CHECKING:
    from limi.table.constraints import Constraint
    from limi.table.schema import Column, Schema

__all__ = ["Enforcer"]

_MOST_LEVELS = 4096  # of a column with a role
_MOST_KNOWN = 1_000_000  # combinations of source values that a derived column is looked up by


class Enforcer:
    """What the rules of a schema make of rows."""

    def __init__(self, schema: Schema) -> None:
        from limi.table.constraints import Constraint

        self._schema = schema
        rules = schema.rules
        self.constraints = tuple(Constraint.read(*told, schema) for told in rules.constraints)
        self._all_roles = [_BoundRole(role, schema) for role in rules.roles]
        self._derived = [_bind(derived, schema) for derived in rules.in_order]
        computed = {derived.column for derived in rules.derived}
        for name in schema.protected:
            if name in computed:
                sources = next(d.sources for d in rules.derived if d.column == name)
                raise InvalidInput(
                    f"column {name!r} is derived from {spell(sources)} and cannot change on its "
                    f"own; protect {spell(map(repr, sources))} instead"
                )
        for role in rules.roles:
            if role.column in computed:
                raise InvalidInput(
                    f"column {role.column!r} is derived, so it has no role for "
                    f"{role.protected!r}; it follows the columns that it is derived from"
                )

    @cached_property
    def roles(self) -> list[_BoundRole]:
        """Those of protected columns; a column that is protected itself changes by itself."""
        protected = set(self._schema.protected_index.tolist())
        return [r for r in self._all_roles if r.given in protected and r.moved not in protected]

    @cached_property
    def derived_index(self) -> Index:
        """Positions of the derived columns."""
        return np.array([d.column for d in self._derived], dtype=np.intp)

    @cached_property
    def moving_index(self) -> Index:
        """Positions of all columns in which a partner may differ from its row: with rules in
        ascending order, without them the protected ones as they are named."""
        if not self._schema.rules:
            return self._schema.protected_index
        moving = {*self._schema.protected_index.tolist(), *(role.moved for role in self.roles)}
        for derived in self._derived:
            if moving & set(derived.sources):
                moving.add(derived.column)
        return np.array(sorted(moving), dtype=np.intp)

    @cached_property
    def binding(self) -> tuple[Constraint, ...]:
        """The constraints that a partner may break where its row does not."""
        moving = set(self.moving_index.tolist())
        return tuple(c for c in self.constraints if moving & set(c.columns))

    @property
    def binds_partners(self) -> bool:
        """May a partner be another row, or none, because of the rules?"""
        return bool(self.binding) or len(self.moving_index) > len(self._schema.protected)

    def trace(self, columns: Collection[int]) -> list[int]:
        """The columns that these come from: themselves, or the sources of derived ones."""
        found = set(columns)
        for derived in reversed(self._derived):
            if derived.column in found:
                found = found - {derived.column} | set(derived.sources)
        return sorted(found)

    def among(self, names: Collection[str]) -> Rules:
        """The rules that these columns alone can keep."""
        kept, own = set(names), self._schema.names
        rules = self._schema.rules
        return Rules(
            tuple(
                (c.name, c.text) for c in self.constraints if {own[i] for i in c.columns} <= kept
            ),
            tuple(d for d in rules.derived if {d.column, *d.sources} <= kept),
            tuple(r for r in rules.roles if {r.column, r.protected} <= kept),
        )

    # -- constraints ------------------------------------------------------------------------

    def breaks(self, rows: Any) -> Any:
        """(n,): which rows break a constraint."""
        from limi.table.constraints import find_broken

        return find_broken(self.constraints, rows).any(1)

    def find_broken(self, rows: Any) -> Any:
        """(n, binding constraints): which of these rows break which."""
        from limi.table.constraints import find_broken

        return find_broken(self.binding, rows)

    def find_open(self, rows: Any, asked: Any) -> Any:
        """(n, G): which partners (n, G, d) may be asked; None for all.

        A partner is not asked where it breaks a constraint that its row keeps. Constraints over the
        same columns are one matter: of a Wife who is Male the partner is a Husband who is Female,
        and breaks the other of two.
        """
        if not self.binding:
            return None
        n, n_tried, width = asked.shape
        broken = self.find_broken(asked.reshape(-1, width))
        if not broken.any():
            return None
        own = self.find_broken(rows)
        for together in self._same_columns:
            own[:, together] |= own[:, together].any(1)[:, None]
        closed = (broken.reshape(n, n_tried, -1) & ~own[:, None]).any(2)
        return ~closed if closed.any() else None

    @cached_property
    def _same_columns(self) -> list[list[int]]:
        """Binding constraints that look at the same columns, where there are several."""
        alike: dict[tuple[int, ...], list[int]] = {}
        for number, constraint in enumerate(self.binding):
            alike.setdefault(constraint.columns, []).append(number)
        return [numbers for numbers in alike.values() if len(numbers) > 1]

    # -- rows -------------------------------------------------------------------------------

    def complete(self, rows: Any) -> Any:
        """Rows with their derived cells computed; the same object where nothing is derived."""
        return self._complete(_copy(rows), self._derived) if self._derived else rows

    def disagrees(self, rows: Any) -> Any:
        """(n,): in which rows a derived cell is not what it should be."""
        whole = self.complete(rows)
        same = (rows == whole) | ((rows != rows) & (whole != whole))
        return ~same.all(1)

    def canonical(self, rows: Any) -> Any:
        """Rows with the levels of roles as they would be under the first protected value."""
        if not self.roles:
            return rows
        rows = _copy(rows)
        for role in reversed(self.roles):
            rows[:, role.moved] = role.undo(rows[:, role.moved], rows[:, role.given])
        return rows

    def change(self, rows: Any, cells: Any) -> Any:
        """Rows with these protected cells (n, p), and all that must go along with them.

        A NaN leaves the protected value of the row as it is.
        """
        index = self._schema.protected_index
        changed = self.canonical(rows)
        changed = _copy(changed) if changed is rows else changed
        left = cells != cells
        changed[:, index] = where(left, rows[:, index], cells) if left.any() else cells
        return self._follow(changed)

    def expand(self, rows: Any, cells: Any) -> Any:
        """(n, G, d): rows with each of these protected cells (G, p), and all that goes along."""
        n, width = rows.shape
        index = self._schema.protected_index
        canonical = self.canonical(rows)
        if is_tensor(rows):
            asked = canonical[:, None].repeat(1, len(cells), 1)
        else:
            asked = np.repeat(canonical[:, None], len(cells), axis=1)
        left = cells != cells
        asked[:, :, index] = where(left, rows[:, None, index], cells) if left.any() else cells
        return self._follow(asked.reshape(-1, width)).reshape(n, len(cells), width)

    def _follow(self, rows: Any) -> Any:
        """Canonical rows with the levels of their own protected values and derived cells; in
        place."""
        for role in self.roles:
            rows[:, role.moved] = role.do(rows[:, role.moved], rows[:, role.given])
        return self._complete(rows, self.moving_derived)

    @cached_property
    def moving_derived(self) -> list[_Lookup | _Steps]:
        """Derived columns in which a partner may differ, each behind its sources."""
        moving = set(self.moving_index.tolist())
        return [derived for derived in self._derived if derived.column in moving]

    @staticmethod
    def _complete(rows: Any, derived: Sequence[_Lookup | _Steps]) -> Any:
        for each in derived:
            rows[:, each.column] = each.compute(rows)
        return rows


def _copy(rows: Any) -> Any:
    return rows.clone() if is_tensor(rows) else rows.copy()


# -- cells as places --------------------------------------------------------------------


@dataclass(frozen=True)
class _Axis:
    """The values of a column as places from 0; a missing cell has the place behind the last."""

    position: int
    low: float
    step: float
    size: int
    missing: bool

    @staticmethod
    def of(schema: Schema, name: str) -> _Axis:
        column, position = schema[name], schema.position(name)
        low, step = float(schema.low[position]), float(schema.step[position])
        return _Axis(position, low, step, column.size, column.missing)

    def places(self, cells: Any) -> Any:
        """(n,) whole numbers."""
        if self.missing:
            cells = where(cells != cells, self.low + self.step * self.size, cells)
        if (self.low, self.step) != (0.0, 1.0):
            cells = ((cells - self.low) / self.step).round()
        return cells.long() if is_tensor(cells) else cells.astype(np.intp)


class _Tables:
    """Arrays that are asked for on the device of whoever looks them up."""

    def __init__(self, **arrays: NDArray[Any]) -> None:
        self._here = arrays
        self._there: dict[tuple[str, str], Any] = {}

    def get(self, name: str, like: Any) -> Any:
        """The array itself, or its tensor on the device of another."""
        if not is_tensor(like):
            return self._here[name]
        key = (name, str(like.device))
        if key not in self._there:
            import torch

            self._there[key] = torch.tensor(self._here[name], device=like.device)
        return self._there[key]

    def __getstate__(self) -> dict[str, Any]:
        return {"_here": self._here, "_there": {}}


# -- roles ------------------------------------------------------------------------------


class _BoundRole:
    """A role as tables: by protected value (the first line for any that is not named) and place."""

    def __init__(self, role: Role, schema: Schema) -> None:
        given, moved = schema[role.protected], schema[role.column]
        if not 0 < moved.size <= _MOST_LEVELS:
            raise InvalidInput(
                f"column {moved.name!r} cannot have a role: it has "
                f"{f'{moved.size:,} values' if moved.size else 'any number of values'}, but a role "
                f"can have at most {_MOST_LEVELS:,}"
            )
        self.given, self.moved = schema.position(given.name), schema.position(moved.name)
        self._axis = _Axis.of(schema, moved.name)
        things = [
            {given.code(value): moved.code(level) for value, level in thing}
            for thing in role.things
        ]
        self._check(role, given, moved, things)
        self.values = list(dict.fromkeys(code for thing in things for code in thing))
        base = next((v for v in self.values if all(v in thing for thing in things)), None)
        if base is None:
            raise InvalidInput(
                f"the role of {moved.name!r} for {given.name!r} has no value of {given.name!r} "
                "that all its things share; give each a level under one common value"
            )
        forward = np.empty((1 + len(self.values), moved.size + 1))
        forward[:, :-1] = np.arange(moved.size)
        for line, value in enumerate(self.values, 1):
            partial = {
                int(self._axis.places(np.array(thing[base]))): int(
                    self._axis.places(np.array(thing[value]))
                )
                for thing in things
                if value in thing
            }
            for start, end in _close(partial).items():
                forward[line, start] = end
        back = np.empty_like(forward)
        back[:, :-1] = np.argsort(forward[:, :-1], axis=1)
        codes = self._axis.low + self._axis.step * np.stack([forward, back])
        codes[:, :, -1] = np.nan
        self._tables = _Tables(forward=codes[0], back=codes[1])

    @staticmethod
    def _check(role: Role, given: Column, moved: Column, things: list[dict[float, float]]) -> None:
        """InvalidInput where two spellings of a value or a level are one."""
        for thing, told in zip(things, role.things, strict=True):
            if len(thing) < len(told):
                raise InvalidInput(
                    f"the role of {moved.name!r} for {given.name!r} gives a value of "
                    f"{given.name!r} two levels: {spell(f'{v}: {level}' for v, level in told)}"
                )
        under = [(value, level) for thing in things for value, level in thing.items()]
        twice = find_repeated(
            f"{moved.show(level)} under {given.show(value)}" for value, level in under
        )
        if twice:
            raise InvalidInput(
                f"the role of {moved.name!r} for {given.name!r} names a level twice: {spell(twice)}"
            )

    def do(self, cells: Any, given: Any) -> Any:
        """Canonical cells as they are under these protected values."""
        return self._look_up("forward", cells, given)

    def undo(self, cells: Any, given: Any) -> Any:
        """Cells under these protected values as canonical ones."""
        return self._look_up("back", cells, given)

    def _look_up(self, name: str, cells: Any, given: Any) -> Any:
        table = self._tables.get(name, cells)
        line = 0
        for number, value in enumerate(self.values, 1):
            line = line + number * (given == value)
        return table[line, self._axis.places(cells)]


def _close(partial: dict[int, int]) -> dict[int, int]:
    """A one-to-one map of some places, closed to a permutation: chains become circles."""
    closed = dict(partial)
    for start in partial.keys() - set(partial.values()):
        end = start
        while end in partial:
            end = partial[end]
        closed[end] = start
    return closed


# -- derived columns --------------------------------------------------------------------


def _bind(derived: Derived, schema: Schema) -> _Lookup | _Steps:
    return _Steps(derived, schema) if derived.values else _Lookup(derived, schema)


def _check_missing(derived: Derived, schema: Schema) -> None:
    missing = [name for name in derived.sources if schema[name].missing]
    if missing and not schema[derived.column].missing:
        raise InvalidInput(
            f"column {derived.column!r} is derived from {missing[0]!r}, which may be missing, but "
            "cannot be missing itself"
        )


class _Lookup:
    """A derived column as a table over the places of its sources."""

    def __init__(self, derived: Derived, schema: Schema) -> None:
        self.column = schema.position(derived.column)
        self._axes = [_Axis.of(schema, name) for name in derived.sources]
        self.sources = tuple(axis.position for axis in self._axes)
        sizes = [axis.size + 1 for axis in self._axes]
        if not all(axis.size for axis in self._axes) or np.prod(sizes, dtype=float) > _MOST_KNOWN:
            raise InvalidInput(
                f"column {derived.column!r} cannot be looked up by {spell(derived.sources)}: they "
                f"have more than {_MOST_KNOWN:,} combinations of values"
            )
        _check_missing(derived, schema)
        goal = schema[derived.column]
        table = np.full(sizes, np.nan)
        told = np.zeros(sizes, dtype=bool)
        columns = [schema[name] for name in derived.sources]
        for values, value in derived.lookup:
            codes = [c.code(v) for c, v in zip(columns, values, strict=True)]
            at = tuple(
                int(axis.places(np.array(code)))
                for axis, code in zip(self._axes, codes, strict=True)
            )
            code = goal.code(value)
            if told[at] and table[at] != code:
                raise InvalidInput(
                    f"column {derived.column!r} has two values for {spell(values)}: "
                    f"{goal.show(table[at])} and {goal.show(code)}"
                )
            table[at], told[at] = code, True
        self._check_gaps(derived, schema, told)
        self._strides = [int(np.prod(sizes[k + 1 :])) for k in range(len(sizes))]
        self._tables = _Tables(values=table.ravel())

    @staticmethod
    def _check_gaps(derived: Derived, schema: Schema, told: NDArray[np.bool_]) -> None:
        columns = [schema[name] for name in derived.sources]
        inner = told[tuple(slice(None, -1) for _ in columns)]
        gaps = np.argwhere(~inner)
        if len(gaps):
            low, step = schema.low, schema.step
            at = [schema.position(column.name) for column in columns]
            shown = [
                column.show(low[position] + step[position] * place)
                for column, position, place in zip(columns, at, gaps[0], strict=True)
            ]
            raise InvalidInput(
                f"column {derived.column!r} has no value for {len(gaps):,} of {inner.size:,} "
                f"values of {spell(derived.sources)}, such as {spell(shown)}; name them all"
            )

    def compute(self, rows: Any) -> Any:
        """(n,) cells."""
        at = 0
        for axis, stride in zip(self._axes, self._strides, strict=True):
            at = at + axis.places(rows[:, axis.position]) * stride
        return self._tables.get("values", rows)[at]


class _Steps:
    """A derived column by steps of a numerical one."""

    def __init__(self, derived: Derived, schema: Schema) -> None:
        self.column = schema.position(derived.column)
        (name,) = derived.sources
        self.sources = (schema.position(name),)
        if not schema[name].is_number:
            raise InvalidInput(
                f"column {derived.column!r} has steps of {name!r}, which is {schema[name].kind}; "
                "only a numerical column has steps"
            )
        _check_missing(derived, schema)
        goal = schema[derived.column]
        codes = [goal.code(value) for value in derived.values]
        self._tables = _Tables(
            steps=np.array(derived.steps, dtype=np.float64), values=np.array([*codes, np.nan])
        )

    def compute(self, rows: Any) -> Any:
        """(n,) cells; a NaN sorts behind every step and has the last place."""
        cells = rows[:, self.sources[0]]
        steps, values = (self._tables.get(name, rows) for name in ("steps", "values"))
        if is_tensor(rows):
            import torch

            place = torch.searchsorted(steps, cells.contiguous(), right=True)
        else:
            place = np.searchsorted(steps, cells, side="right")
        return values[where(cells != cells, len(values) - 1, place)]

"""Over whom a model's answers are averaged, as lookups in the cells that the model itself is given.

Everything that is asked of a person is a function of what no partner of theirs differs in: of the
columns that never move, and of the *thing* that each level of a role is (a Wife and a Husband are
one). So all rows that are partners of each other, with what goes along or with nothing along, are
averaged over the same rows, and get the same answer. Nothing has to be believed of the rules for
that: a partner of a partner may be none, and still has the same things.

Of several protected values those count whose partner keeps the rules, which again is a function of
that person's things; where none does, all count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel, InvalidInput, nearest
from limi.models._averaged import Swaps
from limi.models.target import Target, settling_rows
from limi.table.constraints import find_broken
from limi.table.enforcer import Enforcer
from limi.table.partners import change
from limi.table.schema import Schema
from limi.types import Index, Rows

__all__ = ["POINTS", "PartnerTable", "Weights", "choose_cells", "make_table", "read_weights"]

POINTS = 16
"""Values of a numerical protected column that are averaged over where it has more."""

Weights = str | Mapping[str, Mapping[Any, float]]
"""`"table"`, `"uniform"`, or by protected column what each value counts."""

_MOST_ENTRIES = 20_000  # of one lookup
_ASKED = 16  # rows that show whether a model takes a protected value
_ROUNDING = 1e-6  # by which weights may miss 1


@dataclass(frozen=True)
class PartnerTable:
    """Over whom to average, and what each counts."""

    values: dict[str | int, list[Any]]  # protected columns that the model takes
    weights: tuple[float, ...]
    along: list[dict[str, Any]] = field(default_factory=list)
    closed: list[dict[str, Any]] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    shares: tuple[tuple[str, float], ...] = ()  # what each combination counts, in words

    @property
    def swaps(self) -> Swaps:
        """The same at work."""
        return Swaps(self.values, self.weights, self.along, self.closed)

    @property
    def asked(self) -> int:
        """How often the model is asked for one answer."""
        return sum(weight > 0 for weight in self.weights)


def make_table(
    target: Target,
    rows: Rows,
    *,
    weights: Weights = "table",
    points: int = POINTS,
    only: Rows | None = None,
) -> PartnerTable:
    """The partners that a model is asked for, from a table's rows.

    With `only` (K, p) they have these protected cells.
    """
    schema = target.codec.schema
    if target.blind:
        raise InvalidInput(
            f"the model does not take {_both(schema.protected)}, so there is nothing to average: "
            "its answers do not depend on it; limi test --twin shows what goes along with it in "
            "other columns, and --keep names the columns that may differ"
        )
    cells = choose_cells(schema, rows, points) if only is None else only
    counted = read_weights(schema, cells, weights, rows)
    taken, refused = _find_taken(target, rows, cells)
    if not counted[taken].sum() > 0:
        raise InvalidInput(
            "these weights are 0 for every value that the model accepts; give other weights, or "
            "weights='uniform'"
        )
    cells, counted = cells[taken], counted[taken] / counted[taken].sum()
    builder = _Builder(target, rows[0], cells)
    along = builder.follow()
    closed, unheard = builder.close()
    return PartnerTable(
        builder.values,
        tuple(float(w) for w in np.repeat(counted, builder.n_things) / builder.n_things),
        along,
        closed,
        notes=(*refused, *unheard),
        shares=tuple(zip(_name(schema, cells), map(float, counted), strict=True)),
    )


def _both(names: Sequence[str]) -> str:
    return " or ".join(names)


# -- which values, and what they count ---------------------------------------------------


def choose_cells(schema: Schema, rows: Rows, points: int) -> Rows:
    """(K, p): combinations of the values tried, of a number with many those at even quantiles."""
    if points < 2:
        raise InvalidInput(f"points is {points}; at least two values are needed to average over")
    columns = []
    for position, codes in zip(schema.protected_index, schema.protected_codes, strict=True):
        known = rows[:, position]
        known = known[(known >= min(codes)) & (known <= max(codes))]
        if schema.is_numerical[position] and len(codes) > points and len(known):
            ranks = (np.arange(points) + 0.5) / points
            columns.append(np.unique(np.quantile(known, ranks, method="nearest")))
        else:
            columns.append(np.array(codes))
    grid = np.meshgrid(*columns, indexing="ij")
    return np.stack([axis.ravel() for axis in grid], axis=1)


def read_weights(schema: Schema, cells: Rows, weights: Weights, rows: Rows) -> NDArray[np.float64]:
    """(K,): what each combination counts; they sum to 1."""
    if weights == "uniform":
        return np.full(len(cells), 1 / len(cells))
    if weights == "table":
        counts = _count(schema, cells, rows)
        total = counts.sum()
        return counts / total if total else np.full(len(cells), 1 / len(cells))
    if isinstance(weights, str) or not isinstance(weights, Mapping):
        raise InvalidInput(
            f"weights are {weights!r}; use 'table', 'uniform', or numbers by column and value, "
            "such as {'sex': {'Male': 0.5, 'Female': 0.5}}"
        )
    counted = np.ones(len(cells))
    for name in weights:
        if name not in schema.protected:
            raise InvalidInput(
                f"weights are given for {name!r}, which is not a protected column; "
                f"{nearest(str(name), schema.protected)}"
            )
    for place, name in enumerate(schema.protected):
        if name not in weights:
            raise InvalidInput(f"weights are given for some columns, but not for {name!r}")
        counted *= _read_column(schema, name, np.unique(cells[:, place]), weights[name])[
            np.searchsorted(np.unique(cells[:, place]), cells[:, place])
        ]
    return counted


def _read_column(
    schema: Schema, name: str, codes: Rows, given: Mapping[Any, float]
) -> NDArray[np.float64]:
    """What each of these codes counts, as given."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"the weights of {name!r} are {given!r}; give a number for each value")
    column = schema[name]
    counted = np.zeros(len(codes))
    for value, weight in given.items():
        if not isinstance(weight, (int, float)) or not 0 <= weight <= 1:
            raise InvalidInput(
                f"the weight of {value!r} of {name!r} is {weight!r}; weights lie between 0 and 1"
            )
        here = codes == column.code(value)
        if not here.any():
            raise InvalidInput(
                f"a weight is given for {value!r} of {name!r}, which is not one of the values that "
                f"are averaged over; {nearest(str(value), [column.show(c) for c in codes])}"
            )
        counted[here] += weight
    if not math.isclose(counted.sum(), 1, abs_tol=_ROUNDING):
        raise InvalidInput(
            f"the weights of {name!r} sum to {counted.sum():g}; they must add up to 1"
        )
    return counted


def _count(schema: Schema, cells: Rows, rows: Rows) -> NDArray[np.float64]:
    """How many rows hold each combination; a number counts for the nearest."""
    place = np.zeros(len(rows), dtype=np.intp)
    known = np.ones(len(rows), dtype=bool)
    for number, position in enumerate(schema.protected_index):
        codes, own = np.unique(cells[:, number]), rows[:, position]
        middles = (codes[1:] + codes[:-1]) / 2
        near = np.searchsorted(middles, own)
        known &= ~np.isnan(own)
        if not schema.is_numerical[position]:
            known &= codes[near] == own
        place = place * len(codes) + near
    by_code = np.bincount(place[known], minlength=len(cells)).astype(np.float64)
    # Combinations stand in the order of the codes as they were named.
    order = np.zeros(len(cells), dtype=np.intp)
    for number in range(cells.shape[1]):
        codes, at = np.unique(cells[:, number], return_inverse=True)
        order = order * len(codes) + at.ravel()
    return by_code[order]


def _find_taken(target: Target, rows: Rows, cells: Rows) -> tuple[Index, tuple[str, ...]]:
    """Which combinations the model answers at all, and a sentence on the others."""
    schema = target.codec.schema
    some = rows[settling_rows(len(rows), _ASKED)]
    taken, refused, why = [], [], ""
    for number, combination in enumerate(cells):
        try:
            target.score(change(schema, some, np.tile(combination, (len(some), 1))))
            taken.append(number)
        except BadModel as error:
            refused.append(number)
            why = why or str(error)
    if not taken:
        raise BadModel(f"the model answers for none of the protected values: {why}")
    if not refused:
        return np.array(taken), ()
    names = ", ".join(_name(schema, cells[refused]))
    return np.array(taken), (f"{names} was left out, because the model refuses it: {why}",)


def _name(schema: Schema, cells: Rows) -> list[str]:
    return [
        " and ".join(
            f"{name} {schema[name].show(code)}"
            for name, code in zip(schema.protected, combination, strict=True)
        )
        for combination in cells
    ]


# -- what goes along --------------------------------------------------------------------


@dataclass(frozen=True)
class _Builder:
    """Looks up what the rules say, and writes it in the model's own cells."""

    target: Target
    example: Rows  # (d,), for the columns that a lookup does not cover
    cells: Rows  # (K, p)

    @property
    def schema(self) -> Schema:
        return self.target.codec.schema

    @property
    def width(self) -> int:
        """Columns that the model takes; protected ones that it does not stand behind them."""
        return len(self.target.shown.schema)

    @property
    def enforcer(self) -> Enforcer:
        return self.schema.enforcer

    @property
    def values(self) -> dict[str | int, list[Any]]:
        """The protected cells of every partner."""
        return {
            self._key(position): self._natives(position, np.repeat(codes, self.n_things))
            for position, codes in zip(self.schema.protected_index, self.cells.T, strict=True)
            if position < self.width
        }

    @property
    def moved(self) -> list[int]:
        """Columns with roles that the model takes."""
        roles = self.enforcer.roles
        return list(dict.fromkeys(role.moved for role in roles))

    @property
    def n_things(self) -> int:
        """Rows that stand for a person under one combination: one, unless a level is several
        things under different values."""
        return math.prod(len(self._things(position)[1]) for position in self.moved)

    def _things(self, position: int) -> tuple[Index, Rows]:
        """Of a column with roles: the thing that each level is, and (bases, levels) the levels
        under the first value that stand for it."""
        levels = self._codes(position)[: self.schema.columns[position].size]
        roles = [role for role in self.enforcer.roles if role.moved == position]
        thing = np.arange(len(levels))
        for _ in levels:  # as many steps as the longest chain can have
            for role in roles:
                for value in role.values:
                    there = np.searchsorted(levels, role.do(levels, np.full(len(levels), value)))
                    thing = np.minimum(thing, thing[there])
                    np.minimum.at(thing, there, thing)
        named = self._named(position)
        bases = []
        for level, mine in zip(levels, thing, strict=True):
            same = levels[thing == mine]
            known = [one for one in same if one in named]
            bases.append(known or ([level] if len(same) == 1 else list(same)))
        most = max(map(len, bases))
        padded = np.array([[one[k % len(one)] for one in bases] for k in range(most)])
        return thing, padded

    def _named(self, position: int) -> set[float]:
        """Levels under the first value that a role names as one thing with others."""
        found = set()
        names = self.schema.names
        for told in self.schema.rules.roles:
            for role in self.enforcer.roles:
                if (names[role.moved], names[role.given]) != (told.column, told.protected):
                    continue
                if role.moved != position:
                    continue
                given, moved = self.schema[told.protected], self.schema[told.column]
                for thing in told.things:
                    value, level = thing[0]
                    back = role.undo(np.array([moved.code(level)]), np.array([given.code(value)]))
                    found.add(float(back[0]))
        return found

    def follow(self) -> list[dict[str, Any]]:
        """Lookups of what goes along: roles, then derived columns."""
        found = [self._role(position) for position in self.moved]
        found += [self._derived(each) for each in self.enforcer.moving_derived]
        return [one for one in found if one]

    def _role(self, position: int) -> dict[str, Any]:
        """The level of a column in every partner, by its level."""
        if position >= self.width:
            return {}
        sizes = [len(self._things(column)[1]) for column in self.moved]
        bases = self._things(position)[1]
        levels = self._codes(position)[: bases.shape[1]]
        place = self.moved.index(position)
        told = []
        for combination in self.cells:
            protected = dict(zip(self.schema.protected_index.tolist(), combination, strict=True))
            for thing in range(self.n_things):
                under = bases[np.unravel_index(thing, sizes)[place]]
                for role in self.enforcer.roles:
                    if role.moved == position:
                        under = role.do(under, np.full(len(under), protected[role.given]))
                told.append(self._natives(position, under))
        key = self._key(position)
        cells = [self._natives(position, levels)]
        return {"column": key, "by": [key], "cells": cells, "values": told}

    def _derived(self, derived: Any) -> dict[str, Any]:
        """A derived column in every partner, by those of its sources that are not protected."""
        if derived.column >= self.width:
            return {}
        by = self._free(derived.sources)
        grid = self._grid(by)
        if grid is None:
            name = self.schema.names[derived.column]
            raise InvalidInput(
                f"column {name!r} is derived from columns of more than {_MOST_ENTRIES:,} "
                "combinations of values, too many to look up in a model that is shipped"
            )
        told = [
            self._natives(derived.column, derived.compute(self._filled(grid, by, combination)))
            for combination in self.cells
        ]
        return {
            "column": self._key(derived.column),
            **self._described(by),
            "values": [told[k // self.n_things] for k in range(len(told) * self.n_things)],
        }

    def close(self) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        """Lookups of partners that break a rule, and sentences on rules that were not heard."""
        found: list[dict[str, Any]] = []
        notes = []
        for constraint in self.enforcer.binding:
            by = self._free(constraint.columns)
            grid = self._grid(by)
            if grid is None:
                notes.append(
                    f"the rule {constraint.text!r} involves columns with too many values to list, "
                    "so partners that break it were averaged over too"
                )
                continue
            told = [
                find_broken((constraint,), self._filled(grid, by, combination))[:, 0].tolist()
                for combination in self.cells
            ]
            if any(map(any, told)):
                told = [told[k // self.n_things] for k in range(len(told) * self.n_things)]
                found.append({**self._described(by), "values": told})
        return found, tuple(notes)

    # -- cells --------------------------------------------------------------------------

    def _free(self, columns: Sequence[int]) -> list[int]:
        protected = set(self.schema.protected_index.tolist())
        return [position for position in columns if position not in protected]

    def _codes(self, position: int) -> Rows:
        """Every code of a column, a missing cell last; empty for real numbers."""
        column = self.schema.columns[position]
        codes = self.schema.low[position] + self.schema.step[position] * np.arange(column.size)
        return np.append(codes, np.nan) if column.missing and column.size else codes

    def _grid(self, by: Sequence[int]) -> Rows | None:
        """(U, columns): every combination of their codes; None where there are too many."""
        codes = [self._codes(position) for position in by]
        if not all(map(len, codes)) or math.prod(map(len, codes)) > _MOST_ENTRIES:
            return None
        if not by:
            return np.empty((1, 0))
        return np.stack([axis.ravel() for axis in np.meshgrid(*codes, indexing="ij")], axis=1)

    def _filled(self, grid: Rows, by: Sequence[int], combination: Rows) -> Rows:
        rows = np.tile(self.example, (len(grid), 1))
        rows[:, by] = grid
        rows[:, self.schema.protected_index] = combination
        return rows

    def _described(self, by: Sequence[int]) -> dict[str, Any]:
        return {
            "by": [self._key(position) for position in by],
            "cells": [self._natives(position, self._codes(position)) for position in by],
        }

    def _key(self, position: int) -> str | int:
        """What the model calls a column: its name, or its place in an array."""
        is_frame = hasattr(self.target.present(self.example[None]), "columns")
        return self.target.shown.schema.names[position] if is_frame else int(position)

    def _natives(self, position: int, codes: Rows) -> list[Any]:
        """Cells of a column as the model is given them."""
        rows = np.tile(self.example, (len(codes), 1))
        rows[:, position] = codes
        given = self.target.present(rows)
        if isinstance(given, np.ndarray):
            return [_plain(cell) for cell in given[:, position].tolist()]
        import narwhals as nw

        frame = nw.from_native(given, eager_only=True)
        return [_plain(cell) for cell in frame[:, int(position)].to_list()]


def _plain(cell: Any) -> Any:
    """A cell that every file can hold."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or type(cell).__name__ == "NAType":
        return None
    return None if cell != cell else cell

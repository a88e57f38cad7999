"""What a table may hold: columns, their domains, and the protected ones with their combinations.

Rows are float64 codes. A number stands for itself, a level for its position in `levels`, NaN for
a missing value. So every column is either a grid (low, low + step, ... high) or, with step 0, a
real interval, and the arithmetic of methods and generators needs no other knowledge.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput, find_repeated, nearest, spell
from limi.table.enforcer import Enforcer
from limi.table.rules import Rules
from limi.types import Index, Mask, Rows, Value

__all__ = [
    "LARGEST",
    "LARGEST_EXACT",
    "MAX_COMBINATIONS",
    "Column",
    "Kind",
    "Schema",
    "is_text",
    "off_steps",
    "same_number",
]

Kind = Literal["numerical", "ordered", "categorical", "boolean"]

MAX_COMBINATIONS = 1000
"""Every row is asked once per combination of protected values, so this bounds the cost of a row."""

LARGEST = 1e300
"""Numbers beyond it overflow when they are added up."""

LARGEST_EXACT = 2.0**53
"""Beyond it float64 skips integers."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its kind and the values it may take."""

    name: str
    kind: Kind
    levels: tuple[Value, ...] = ()  # ordered, categorical, boolean: the values, in order
    low: float = 0.0  # numerical: smallest and largest value
    high: float = 0.0
    step: float = 0.0  # numerical: 1 for integers, 0 for real numbers
    missing: bool = False  # may a cell be missing?
    labels: tuple[str, ...] = ()  # what coded levels mean, for reports
    meaning: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not is_text(self.name):
            raise InvalidInput(f"a column is called {self.name!r}; names are text")
        if self.kind not in get_args(Kind):
            raise InvalidInput(
                f"column {self.name!r} has kind {self.kind!r}; kinds are {spell(get_args(Kind))}"
            )
        if self.is_number:
            self._check_range()
        elif not self.levels:
            raise InvalidInput(f"column {self.name!r} is {self.kind} and needs a list of levels")
        elif not all(map(_is_level, self.levels)):
            odd = next(level for level in self.levels if not _is_level(level))
            raise InvalidInput(
                f"column {self.name!r} lists a level of type {type(odd).__name__}; levels are "
                "text, finite numbers, true or false, and dates are text"
            )
        elif len({(type(v) is bool, v) for v in self.levels}) != len(self.levels):
            raise InvalidInput(f"column {self.name!r} lists a level twice: {spell(self.levels)}")
        if self.labels and len(self.labels) != len(self.levels):
            raise InvalidInput(
                f"column {self.name!r} has {len(self.levels)} levels and {len(self.labels)} labels;"
                " give one label for each level, or none"
            )

    def _check_range(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise InvalidInput(
                f"column {self.name!r} has the range {self.low} to {self.high}; both must be "
                "finite, and low must not exceed high"
            )
        if not (math.isfinite(self.step) and self.step >= 0):
            raise InvalidInput(f"column {self.name!r} has step {self.step}; it must be 0 or more")
        steps = (self.high - self.low) / (self.step or 1.0)
        if not (math.isfinite(steps) and (steps <= LARGEST_EXACT or not self.step)):
            raise InvalidInput(
                f"column {self.name!r} runs from {self.low} to {self.high}"
                + (f" in steps of {self.step}" if self.step else "")
                + ", more than floating-point numbers can tell apart; narrow the range"
            )
        if self.step and not math.isclose(steps, round(steps), abs_tol=1e-6):
            raise InvalidInput(
                f"column {self.name!r} runs from {self.low} to {self.high}, which is not a whole "
                f"number of steps of {self.step}"
            )

    @cached_property
    def size(self) -> int:
        """Number of values without missing; 0 for a real-valued column."""
        if not self.is_number:
            return len(self.levels)
        return round((self.high - self.low) / self.step) + 1 if self.step else 0

    @property
    def is_number(self) -> bool:
        """Do codes stand for themselves, instead of being places among levels?"""
        return self.kind == "numerical"

    @property
    def first(self) -> float:
        """Smallest code."""
        return self.low if self.is_number else 0.0

    @property
    def last(self) -> float:
        """Largest code."""
        return self.high if self.is_number else len(self.levels) - 1.0

    @property
    def spacing(self) -> float:
        """Distance between neighbouring codes; 0 for real numbers."""
        return self.step if self.is_number else 1.0

    def value(self, code: float) -> Value:
        """What a code stands for in the table: a number, whole where it is, or a level."""
        if not self.is_number:
            return self.levels[int(code)]
        return int(code) if code % 1 == 0 else float(code)

    def codes_at(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """The codes at these places of the grid, counted from the first."""
        return np.round(self.first + places * self.spacing, self.decimals)

    def fits(self, codes: NDArray[np.float64]) -> Mask:
        """Which codes the column may hold."""
        there = (codes >= self.first) & (codes <= self.last)
        if self.spacing:
            there &= ~off_steps(codes, self.first, self.spacing)
        return there | np.isnan(codes) if self.missing else there

    @cached_property
    def decimals(self) -> int:
        """Digits behind the point that a value of the grid may have."""
        exponents = [Decimal(str(x)).normalize().as_tuple().exponent for x in (self.step, self.low)]
        return max([-e for e in exponents if isinstance(e, int)] + [0])

    @cached_property
    def positions(self) -> dict[Value, int]:
        """Position of each level."""
        return {level: position for position, level in enumerate(self.levels)}

    @cached_property
    def level_numbers(self) -> NDArray[np.float64] | None:
        """Levels as numbers, or None where one is text."""
        if any(isinstance(level, str) for level in self.levels):
            return None
        return np.array([float(level) for level in self.levels])

    def show(self, code: float) -> str:
        """A code as a person would write it."""
        if math.isnan(code):
            return "missing"
        if not self.is_number:
            position = int(code)
            return self.labels[position] if self.labels else str(self.levels[position])
        return f"{code:.10g}" if code % 1 else f"{code:.0f}"

    def code(self, value: Value) -> float:
        """The code of a value, InvalidInput where the column cannot hold it."""
        if isinstance(value, int) and abs(value) > LARGEST:
            raise InvalidInput(
                f"a whole number of more than 300 digits is not a value of column {self.name!r}"
            )
        if self.is_number:
            try:
                number = float(value)
            except (TypeError, ValueError, OverflowError):
                raise InvalidInput(
                    f"{value!r} is not a number, and column {self.name!r} is numerical"
                ) from None
            if not self.low <= number <= self.high:
                raise InvalidInput(
                    f"{value!r} is outside the range of column {self.name!r}, which runs from "
                    f"{self.show(self.low)} to {self.show(self.high)}"
                )
            steps = (number - self.low) / self.step if self.step else 0.0
            if not math.isclose(steps, round(steps), abs_tol=1e-6):
                raise InvalidInput(
                    f"{value!r} is not a value of column {self.name!r}, which has steps of "
                    f"{self.step:g} from {self.show(self.low)}"
                )
            return number
        for candidate in (value, *self._readings(value)) if _is_hashable(value) else ():
            if candidate in self.positions:
                return float(self.positions[candidate])
        known = [*(str(v) for v in self.levels), *self.labels]
        raise InvalidInput(
            f"{value!r} is not a value of column {self.name!r}; {nearest(str(value), known)}"
        )

    def _readings(self, value: Value) -> list[Value]:
        """Levels that a user may have meant by this text: its label, or the level as text."""
        return [
            level
            for position, level in enumerate(self.levels)
            if str(value) in (str(level), *self.labels[position : position + 1])
            or same_number(value, level)
        ]


def is_text(value: str) -> bool:
    """Can a text be written to a file? Halves of characters cannot."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_level(value: object) -> bool:
    if isinstance(value, str):
        return is_text(value)
    return isinstance(value, (bool, int, float)) and abs(value) <= LARGEST


def off_steps(codes: NDArray[np.float64], low: float, step: float) -> NDArray[np.bool_]:
    """Which numbers are not a whole number of steps from the lowest."""
    steps = (codes - low) / step
    off: NDArray[np.bool_] = np.abs(steps - np.rint(steps)) > 1e-6
    return off


def same_number(text: Value, level: Value) -> bool:
    """Does a text such as "2" mean the number 2.0?"""
    if isinstance(level, (str, bool)):
        return False
    try:
        return float(text) == level
    except (TypeError, ValueError, OverflowError):
        return False


_NO_RULES = Rules()


@dataclass(frozen=True)
class Schema:
    """Columns in order, for each protected one the codes that are tried, and rules."""

    columns: tuple[Column, ...]
    protected: tuple[str, ...] = ()
    protected_codes: tuple[tuple[float, ...], ...] = ()
    rules: Rules = _NO_RULES
    guessed: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    # ^ columns that nobody described: what they may hold is what a table's cells suggest

    def __post_init__(self) -> None:
        names = self.names
        if not names:
            raise InvalidInput("a schema needs at least one column")
        if len(set(names)) != len(names):
            twice = find_repeated(names)
            raise InvalidInput(f"column names must differ; these occur twice: {spell(twice)}")
        _ = self.enforcer  # rules that do not fit the columns are told at once

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [column.name for column in self.columns]

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.position(name)]

    def position(self, name: str) -> int:
        """Where a column stands; InvalidInput with the nearest name where there is none."""
        position = self._positions.get(name)
        if position is None:
            raise InvalidInput(f"there is no column {name!r}; {nearest(name, self.names)}")
        return position

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {column.name: position for position, column in enumerate(self.columns)}

    def select(self, names: Sequence[str]) -> Schema:
        """The same schema with these columns only, in this order."""
        wanted = set(names)
        kept = [p for p in self.protected if p in wanted]
        codes = [self.protected_codes[self.protected.index(p)] for p in kept]
        rules = self.enforcer.among(wanted)
        columns = tuple(self[name] for name in names)
        return Schema(columns, tuple(kept), tuple(codes), rules, self.guessed & wanted)

    # -- rules --------------------------------------------------------------------------

    @cached_property
    def enforcer(self) -> Enforcer:
        """The rules at work; without rules it leaves every row as it is."""
        return Enforcer(self)

    @cached_property
    def moving_index(self) -> Index:
        """Positions of the columns in which a partner may differ from its row."""
        return self.enforcer.moving_index

    @cached_property
    def key_index(self) -> Index:
        """Positions of the columns that tell rows apart: neither protected nor derived."""
        return self.free_index[~np.isin(self.free_index, self.enforcer.derived_index)]

    @cached_property
    def unruled(self) -> Schema:
        """The same schema without rules: whatever the columns allow, and partners that differ in
        protected values alone."""
        return replace(self, rules=Rules()) if self.rules else self

    # -- domain, as arrays over columns -------------------------------------------------

    @cached_property
    def low(self) -> NDArray[np.float64]:
        """Smallest code of each column."""
        return np.array([c.first for c in self.columns])

    @cached_property
    def high(self) -> NDArray[np.float64]:
        """Largest code of each column."""
        return np.array([c.last for c in self.columns])

    @cached_property
    def step(self) -> NDArray[np.float64]:
        """Distance between neighbouring codes; 0 for real-valued columns."""
        return np.array([c.spacing for c in self.columns])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of codes of each column without missing; 0 for real-valued columns."""
        return np.array([c.size for c in self.columns], dtype=np.int64)

    @cached_property
    def may_miss(self) -> Mask:
        """Which columns may have missing values."""
        return np.array([c.missing for c in self.columns])

    @cached_property
    def is_numerical(self) -> Mask:
        """Which columns are numerical."""
        return np.array([c.is_number for c in self.columns])

    # -- protected columns --------------------------------------------------------------

    @cached_property
    def protected_index(self) -> Index:
        """Positions of the protected columns."""
        return np.array([self.position(name) for name in self.protected], dtype=np.intp)

    @cached_property
    def free_mask(self) -> Mask:
        """Which columns are not protected."""
        mask = np.ones(len(self), dtype=bool)
        mask[self.protected_index] = False
        return mask

    @cached_property
    def free_index(self) -> Index:
        """Positions of the columns that are not protected."""
        return np.flatnonzero(self.free_mask)

    @cached_property
    def combinations(self) -> Rows:
        """(K, p): every combination of protected codes, the first column slowest."""
        if not self.protected:
            raise InvalidInput("no protected column was named; name one, for example 'sex'")
        return np.array(list(itertools.product(*self.protected_codes)), dtype=np.float64)

    @cached_property
    def _sorted_codes(self) -> list[tuple[int, Index, NDArray[np.float64]]]:
        """For each protected column its position, the order of its codes, and they in order."""
        pairs = zip(
            self.protected_index.tolist(), map(np.asarray, self.protected_codes), strict=True
        )
        orders = [(position, codes, np.argsort(codes)) for position, codes in pairs]
        return [(position, order, codes[order]) for position, codes, order in orders]

    def combination_of(self, rows: Rows) -> Index:
        """(n,): which combination each row holds, -1 where it holds none of them."""
        found = np.zeros(len(rows), dtype=np.intp)
        known = np.ones(len(rows), dtype=bool)
        for position, ordered, ascending in self._sorted_codes:
            cells = rows[:, position]
            if len(ascending) == 2:
                above = cells == ascending[1]
                known &= above | (cells == ascending[0])
                found = found * 2 + ordered[above.view(np.int8)]
                continue
            place = np.minimum(np.searchsorted(ascending, cells), len(ascending) - 1)
            known &= ascending[place] == cells
            found = found * len(ascending) + ordered[place]
        return np.where(known, found, -1)

    def places_of(self, rows: Rows) -> Index:
        """(n, p): the place of each row's value among the codes of its column, -1 for none."""
        places = np.empty((len(rows), len(self.protected)), dtype=np.intp)
        for number, (position, order, ascending) in enumerate(self._sorted_codes):
            cells = rows[:, position]
            place = np.minimum(np.searchsorted(ascending, cells), len(ascending) - 1)
            places[:, number] = np.where(ascending[place] == cells, order[place], -1)
        return places

    def protect(self, wanted: Sequence[str] | Mapping[str, object]) -> Schema:
        """The same columns with these protected.

        `wanted` is a list of names, each with an optional choice of values (`"sex"`,
        `"race=White,Black"`, `"age=18-80:5"`), or a mapping from names to values.
        """
        from limi.table.protected import parse

        choices = parse(self, wanted)
        total = math.prod(len(codes) for codes in choices.values())
        if total > MAX_COMBINATIONS:
            sizes = " x ".join(f"{name} {len(codes)}" for name, codes in choices.items())
            raise InvalidInput(
                f"the protected columns have {total} combinations ({sizes}), more than "
                f"{MAX_COMBINATIONS}; name fewer columns, list values (race=White,Black) or "
                "use a coarser range (age=20-80:10)"
            )
        return replace(self, protected=tuple(choices), protected_codes=tuple(choices.values()))

"""What must hold in a row, and what must change with a protected value.

A *constraint* is a sentence that a row keeps or breaks (`limi.table.constraints`). A *derived*
column is computed from others. A *role* names levels that are the same thing under different
protected values: a Wife is to Female what a Husband is to Male. All of it is plain data in the
words of the table; `limi.table.enforcer` makes it work on rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from limi.errors import InvalidInput, find_repeated, spell
from limi.types import Value

__all__ = ["Derived", "Role", "Rules"]


@dataclass(frozen=True, kw_only=True)
class Derived:
    """A column that is computed from others: by a lookup, or by steps of one numerical column.

    >>> Derived(column="grade", sources=("school",), lookup=((("HS",), 9), (("College",), 13)))
    ... # doctest: +ELLIPSIS
    Derived(column='grade', ...)
    >>> Derived(column="ages", sources=("age",), steps=(25, 46), values=("young", "middle", "old"))
    ... # doctest: +ELLIPSIS
    Derived(column='ages', ...)

    Missing cells of a source make a missing cell.
    """

    column: str
    sources: tuple[str, ...]
    lookup: tuple[tuple[tuple[Value, ...], Value], ...] = ()  # values of the sources, and what then
    steps: tuple[float, ...] = ()  # where each value but the first begins, ascending
    values: tuple[Value, ...] = ()  # one more than steps

    def __post_init__(self) -> None:
        where = f"the derived column {self.column!r}"
        if not self.sources:
            raise InvalidInput(f"{where} names no column that it is derived from")
        if self.column in self.sources:
            raise InvalidInput(f"{where} is derived from itself; name other columns")
        if len(set(self.sources)) != len(self.sources):
            twice = spell(find_repeated(self.sources))
            raise InvalidInput(f"{where} names a column twice: {twice}")
        if bool(self.lookup) == bool(self.values):
            raise InvalidInput(
                f"{where} needs either a value for each level of {spell(self.sources)}, or steps "
                "and values"
            )
        if self.lookup:
            self._check_lookup(where)
        else:
            self._check_steps(where)

    def _check_lookup(self, where: str) -> None:
        if any(len(cells) != len(self.sources) for cells, _ in self.lookup):
            raise InvalidInput(
                f"{where} is derived from {spell(self.sources)}; each of its values needs one "
                "level for each of these columns"
            )

    def _check_steps(self, where: str) -> None:
        if len(self.sources) != 1:
            raise InvalidInput(
                f"{where} has steps of {spell(self.sources)}; steps need exactly one column"
            )
        if len(self.values) != len(self.steps) + 1:
            raise InvalidInput(
                f"{where} has {len(self.steps)} steps and {len(self.values)} values; it needs one "
                "value more than steps: below the first, between each two, and above the last"
            )
        if list(self.steps) != sorted(set(self.steps)):
            raise InvalidInput(f"{where} has steps that do not ascend: {spell(self.steps)}")


@dataclass(frozen=True, kw_only=True)
class Role:
    """Levels of a column that are one thing under different values of a protected column.

    >>> Role(protected="sex", column="relationship",
    ...      things=((("Female", "Wife"), ("Male", "Husband")),))  # doctest: +ELLIPSIS
    Role(protected='sex', ...)
    """

    protected: str
    column: str
    things: tuple[tuple[tuple[Value, Value], ...], ...]  # each: protected value and level, in pairs

    def __post_init__(self) -> None:
        where = f"the role of {self.column!r} for {self.protected!r}"
        if self.protected == self.column:
            raise InvalidInput(f"{where} names one column twice; a role needs another column")
        if not self.things:
            raise InvalidInput(f"{where} names no levels")
        for thing in self.things:
            twice = find_repeated(value for value, _ in thing)
            if twice:
                raise InvalidInput(f"{where} gives {spell(twice)} two levels of the same thing")
            if len(thing) < 2:
                raise InvalidInput(
                    f"{where} has a thing with {len(thing)} levels; it needs at least two, under "
                    f"different values of {self.protected!r}"
                )
        under = [pair for thing in self.things for pair in thing]
        twice = find_repeated(f"{level!r} under {value!r}" for value, level in under)
        if twice:
            raise InvalidInput(f"{where} names a level twice: {spell(twice)}")


@dataclass(frozen=True)
class Rules:
    """All rules of a table; without any a row is bound by the columns' domains alone."""

    constraints: tuple[tuple[str, str], ...] = ()  # name and text
    derived: tuple[Derived, ...] = ()
    roles: tuple[Role, ...] = ()

    def __post_init__(self) -> None:
        twice = find_repeated(name for name, _ in self.constraints)
        if twice:
            raise InvalidInput(f"constraints must have different names; used twice: {spell(twice)}")
        twice = find_repeated(derived.column for derived in self.derived)
        if twice:
            raise InvalidInput(
                f"each column can be derived in only one way; derived twice: {spell(twice)}"
            )
        twice = find_repeated(f"{role.column} for {role.protected}" for role in self.roles)
        if twice:
            raise InvalidInput(
                "each column can have only one role for a protected column; two for: "
                f"{spell(twice)}"
            )
        _ = self.in_order  # a circle has none

    def __bool__(self) -> bool:
        return bool(self.constraints or self.derived or self.roles)

    @property
    def in_order(self) -> tuple[Derived, ...]:
        """Derived columns, each behind those that it is derived from."""
        left, done = list(self.derived), list[Derived]()
        while left:
            waiting = {derived.column for derived in left}
            ready = [derived for derived in left if not waiting & set(derived.sources)]
            if not ready:
                raise InvalidInput(
                    f"these columns are derived from each other: {spell(sorted(waiting))}; one of "
                    "them must come from other columns"
                )
            done += ready
            left = [derived for derived in left if derived not in ready]
        return tuple(done)

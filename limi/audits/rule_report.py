"""How a run stood to the rules of its table, as plain data for a report.

Two questions are asked of the same people: what if only the protected values changed, which is the
papers' question, and what if all that must go along with them changed too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from limi.audits.what_if import WhatIf, what_ifs
from limi.metrics.individual import Rate
from limi.metrics.rates import UnderRules
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.schema import Schema
from limi.types import Rows

__all__ = ["RuleReport", "SameThing", "report_rules", "whole_people"]


@dataclass(frozen=True)
class SameThing:
    """Levels of a column that are one thing under different values of a protected column."""

    protected: str
    column: str
    levels: dict[str, str]  # by protected value, that of most people first


@dataclass(frozen=True)
class RuleReport:
    """The rules of a table, and what they made of a run."""

    constraints: dict[str, str]  # texts by name
    derived: dict[str, list[str]]  # by column: what it is derived from
    roles: tuple[SameThing, ...]  # of protected columns, those of most people first
    along: list[str]  # columns that may change with a protected value
    only_protected: dict[str, Rate]  # rates by population, if only protected values changed
    only_protected_what_if: tuple[WhatIf, ...]
    only_protected_by_column: dict[str, dict[str, Rate]] = field(default_factory=dict)
    # ^ with several protected columns, the rates if that column alone changed and nothing along
    breaking: dict[str, int] = field(default_factory=dict)
    # ^ people of each population who break a rule themselves: it does not bind their partner
    kept: dict[str, float] = field(
        default_factory=dict
    )  # share of drawn people that keep the rules
    proposed: int = 0  # rows that the search proposed
    refused: int = 0  # of them those that broke a rule; they were not asked, and cost nothing
    closed: int = 0  # partners that the search did not ask, because they could not exist


def _same_things(schema: Schema, rows: Rows) -> tuple[SameThing, ...]:
    """The roles of protected columns, those of most people first, as the table writes them."""
    moving = {schema.names[i] for i in schema.moving_index} - set(schema.protected)
    things = []
    for role in schema.rules.roles:
        if role.protected not in schema.protected or role.column not in moving:
            continue
        given, moved = schema[role.protected], schema[role.column]
        cells = rows[:, schema.position(role.column)]
        for thing in role.things:
            held = [
                (int((cells == moved.code(level)).sum()), given.code(value), moved.code(level))
                for value, level in thing
            ]
            held.sort(key=lambda one: -one[0])
            levels = {given.show(value): moved.show(level) for _, value, level in held}
            things.append((held[0][0], SameThing(role.protected, role.column, levels)))
    things.sort(key=lambda one: -one[0])
    return tuple(thing for _, thing in things)


def whole_people(samples: Mapping[str, Checked]) -> dict[str, Checked]:
    """Of each sample the people who could be asked under every value: only they can be compared."""
    return {
        name: checked if not len(checked.standing) else checked[checked.is_whole]
        for name, checked in samples.items()
    }


def report_rules(
    schema: Schema, under: UnderRules | None, session: Session, *, comparable: bool, regions: bool
) -> RuleReport | None:
    """What a report says of the rules; None where there are none."""
    if not schema.rules:
        return None
    protected = set(schema.protected)
    along = [schema.names[i] for i in schema.moving_index if schema.names[i] not in protected]
    plain = None if under is None else under.only_protected
    compared = what_ifs(
        schema.unruled,
        plain.checked if plain is not None and comparable else {},
        regions=regions,
        questions=2,
    )
    return RuleReport(
        dict(schema.rules.constraints),
        {derived.column: list(derived.sources) for derived in schema.rules.derived},
        _same_things(schema, session.rows),
        along,
        {} if plain is None else dict(sorted(plain.rates.items())),
        compared,
        {} if plain is None else plain.alone,
        {} if under is None else under.breaking,
        {} if under is None else under.kept,
        session.proposed,
        session.refused,
        session.closed,
    )

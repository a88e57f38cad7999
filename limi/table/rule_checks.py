"""Rules that a user gives, joined to a schema and held against the table's own rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from limi.errors import InvalidInput, spell
from limi.system.words import both
from limi.table._rule_syntax import call_rule, find_names, turn_around
from limi.table.constraints import Constraint, find_broken
from limi.table.rules import Rules
from limi.table.schema import Schema
from limi.types import Rows

__all__ = [
    "MOST_BROKEN",
    "GivenConstraints",
    "add_constraints",
    "describe_lost",
    "require_kept",
    "set_target_aside",
]

GivenConstraints = Mapping[str, str] | Sequence[str]

MOST_BROKEN = 0.05  # of a table's rows; a rule that more of them break does not describe it


def set_target_aside(schema: Schema, target: str | None) -> tuple[Schema, tuple[str, ...]]:
    """The schema without the target column, and a sentence on rules that go with it."""
    if target is None or target not in schema.names:
        return schema, ()
    if target in schema.protected:
        raise InvalidInput(
            f"{target!r} is the target column; a protected column must be one that the model takes"
        )
    rest = schema.select([name for name in schema.names if name != target])
    why = f"it mentions {target!r}, which the model decides; rules are about what a model sees"
    return rest, describe_lost(schema.rules, rest.rules, why)


def describe_lost(before: Rules, after: Rules, why: str) -> tuple[str, ...]:
    """A sentence on the rules that are no longer there, and why; none where all are."""
    constraints = dict(after.constraints)
    lost = [call_rule(name) for name, _ in before.constraints if name not in constraints]
    lost += [
        f"the derived column {one.column!r}" for one in before.derived if one not in after.derived
    ]
    lost += [
        f"the role of {one.column!r} for {one.protected!r}"
        for one in before.roles
        if one not in after.roles
    ]
    if not lost:
        return ()
    if len(lost) == 1:
        return (f"{lost[0]} has no effect, because {why}",)
    why = why.replace("it mentions", "they mention")
    return (f"{both(lost)} have no effect, because {why}",)


def add_constraints(
    schema: Schema, wanted: GivenConstraints, *, target: str | None = None
) -> Schema:
    """The schema with more constraints: a list of rules, or a mapping from names to rules.

    A rule without a name is named by its own text. None may mention the target.
    """
    if isinstance(wanted, str):
        wanted = [wanted]
    named = wanted if isinstance(wanted, Mapping) else {rule: rule for rule in wanted}
    if not named:
        return schema
    for name, rule in named.items():
        if isinstance(rule, str) and target is not None and target not in schema.names:
            _require_input(name, rule, target)
    rules = schema.rules
    merged = Rules((*rules.constraints, *named.items()), rules.derived, rules.roles)
    return replace(schema, rules=merged)


def _require_input(name: str, rule: str, target: str) -> None:
    """InvalidInput where a rule is about what the model decides."""
    try:
        names = find_names(rule)
    except InvalidInput as error:
        raise InvalidInput(f"{call_rule(name)}: {error}") from None
    if target in names:
        raise InvalidInput(
            f"{call_rule(name)} mentions {target!r}, the target column, which the model decides; "
            "rules are about what a model sees, so take it out of the rule"
        )


def require_kept(schema: Schema, rows: Rows) -> None:
    """InvalidInput where the table itself does not keep the rules of its schema."""
    enforcer = schema.enforcer
    if not len(rows):
        return
    constraints = enforcer.constraints
    broken = find_broken(constraints, rows)
    for constraint, count in zip(constraints, broken.sum(axis=0).tolist(), strict=True):
        if count > MOST_BROKEN * len(rows):
            raise InvalidInput(_describe_broken(constraint, count, schema, rows))
    if len(constraints) and broken.any(axis=1).all():
        raise InvalidInput(
            f"no row of the table keeps all {len(constraints)} constraints together; leave some out"
        )
    _require_derived(schema, rows)


def _describe_broken(constraint: Constraint, count: int, schema: Schema, rows: Rows) -> str:
    n = len(rows)
    said = (
        f"no row of the table keeps {call_rule(constraint.name)}"
        if count == n
        else f"{call_rule(constraint.name)} is broken by {count:,} of {n:,} rows "
        f"({100 * count / n:.0f} %)"
    )
    turned = turn_around(constraint.text)
    if turned is not None:
        other = int(Constraint.read(constraint.name, turned, schema).broken(rows).sum())
        if other <= MOST_BROKEN * n:
            return (
                f"{said}; did you mean the reverse, {turned!r}, which "
                f"{'1 row breaks' if other == 1 else f'{other:,} rows break'}?"
            )
    return f"{said}; nearly every row should keep a rule, so fix it or leave it out"


def _require_derived(schema: Schema, rows: Rows) -> None:
    whole = schema.enforcer.complete(rows)
    for derived in schema.rules.derived:
        position = schema.position(derived.column)
        held, computed = rows[:, position], whole[:, position]
        differs = (held != computed) & ~(np.isnan(held) & np.isnan(computed))
        count = int(differs.sum())
        if count <= MOST_BROKEN * len(rows):
            continue
        at, column = int(differs.argmax()), schema[derived.column]
        sources = [
            f"{name} {schema[name].show(rows[at, schema.position(name)])}"
            for name in derived.sources
        ]
        raise InvalidInput(
            f"column {derived.column!r} is derived from {spell(derived.sources)}, but {count:,} of "
            f"{len(rows):,} rows ({100 * count / len(rows):.0f} %) hold a different value: with "
            f"{spell(sources)} it is {column.show(held[at])}, not {column.show(computed[at])}; fix "
            "its values or leave it out"
        )

"""The rules of a schema as sections of its TOML file.

[constraints]                       # name = rule
husband = 'relationship == "Husband" implies sex == "Male"'

[derived.education_num]
from = "education"                  # a column, or a list of them
values = { "HS-grad" = 9 }          # nested in the order of the list

[derived.age_group]
from = "age"
steps = [25, 46]                    # where each value but the first begins
values = ["young", "middle", "old"]

[roles.sex]
relationship = [{ Female = "Wife", Male = "Husband" }]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from limi.errors import InvalidInput, nearest
from limi.system.shown import clean, to_toml
from limi.table.rules import Derived, Role, Rules
from limi.table.schema import Column, Schema
from limi.types import Value

__all__ = ["SECTIONS", "dump_rules", "read_rules"]

SECTIONS = frozenset({"constraints", "derived", "roles"})

_NO_COMMENTS: Mapping[tuple[str, str], str] = MappingProxyType({})
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_OF_DERIVED = {"from", "values", "steps"}


def dump_rules(rules: Rules, comments: Mapping[tuple[str, str], str] = _NO_COMMENTS) -> list[str]:
    """The lines of these sections, with a comment beside those that have one.

    Comments are found by section and name: of a constraint, of a derived column, of the protected
    column and that of a role with a space between.
    """

    def beside(section: str, name: str) -> str:
        said = comments.get((section, name))
        return "" if said is None else f"  # {clean(said)}"

    lines = []
    if rules.constraints:
        lines += ["", "[constraints]"]
        for name, rule in rules.constraints:
            lines.append(f"{_name(name)} = {_quote(rule)}{beside('constraints', name)}")
    for derived in rules.derived:
        sources = derived.sources[0] if len(derived.sources) == 1 else list(derived.sources)
        lines += ["", f"[derived.{_name(derived.column)}]{beside('derived', derived.column)}"]
        lines.append(f"from = {to_toml(sources)}")
        if derived.lookup:
            lines.append(f"values = {to_toml(_nest(derived.lookup))}")
        else:
            lines.append(f"steps = {to_toml([_number(step) for step in derived.steps])}")
            lines.append(f"values = {to_toml(list(derived.values))}")
    for protected in dict.fromkeys(role.protected for role in rules.roles):
        lines += ["", f"[roles.{_name(protected)}]"]
        for role in rules.roles:
            if role.protected == protected:
                things = [
                    {_key(value): _number(level) for value, level in thing} for thing in role.things
                ]
                said = beside("roles", f"{protected} {role.column}")
                lines.append(f"{_name(role.column)} = {to_toml(things)}{said}")
    return lines


def read_rules(tree: Mapping[str, Any], schema: Schema, name: str) -> Rules:
    """The rules of a file's tree, for its schema; InvalidInput begins with the file's name."""
    try:
        return Rules(
            tuple(_read_constraints(_section(tree, "constraints"))),
            tuple(
                _read_derived(column, told, schema)
                for column, told in _section(tree, "derived").items()
            ),
            tuple(
                _read_role(protected, column, told, schema)
                for protected, columns in _section(tree, "roles").items()
                for column, told in _columns_of_role(protected, columns)
            ),
        )
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None


def _section(tree: Mapping[str, Any], section: str) -> dict[str, Any]:
    found = tree.get(section, {})
    if not isinstance(found, dict):
        raise InvalidInput(f"[{section}] must be a table, as in the example in the docs")
    return found


def _read_constraints(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, rule in told.items():
        if not isinstance(rule, str):
            raise InvalidInput(
                f"constraint {name!r} must be a rule as text, such as 'hours <= 7 * 24'"
            )
        yield name, rule


def _read_derived(column: str, told: Any, schema: Schema) -> Derived:
    where = f"[derived.{column}]"
    if not isinstance(told, dict):
        raise InvalidInput(f"{where} must be a table with 'from' and 'values'")
    odd = sorted(told.keys() - _OF_DERIVED)
    if odd:
        raise InvalidInput(f"{where} has {odd[0]!r}; {nearest(odd[0], _OF_DERIVED)}")
    sources = told.get("from")
    sources = [sources] if isinstance(sources, str) else sources
    if not (isinstance(sources, list) and sources and all(isinstance(s, str) for s in sources)):
        raise InvalidInput(f"{where} needs 'from': a column, or a list of columns")
    values, steps = told.get("values"), told.get("steps")
    schema.position(column)
    columns = [schema[source] for source in sources]
    if steps is None:
        if not isinstance(values, dict) or not values:
            raise InvalidInput(
                f"{where} needs 'values': a value for each level of {sources[0]!r}, such as "
                '{ "HS-grad" = 9 }; or steps and a list of values'
            )
        lookup = tuple(_flatten(values, columns, where))
        return Derived(column=column, sources=tuple(sources), lookup=lookup)
    if not (isinstance(steps, list) and all(_is_number(step) for step in steps)):
        raise InvalidInput(f"{where} has steps that are not a list of numbers")
    if not isinstance(values, list):
        raise InvalidInput(
            f"{where} has steps, so its 'values' must be a list, one more than steps"
        )
    return Derived(
        column=column,
        sources=tuple(sources),
        steps=tuple(map(float, steps)),
        values=tuple(_value(value, where) for value in values),
    )


def _flatten(
    values: Mapping[str, Any], columns: Sequence[Column], where: str
) -> Iterator[tuple[tuple[Value, ...], Value]]:
    """Nested values as pairs: what the sources hold, and what the derived column does then."""
    for key, inner in values.items():
        first = _value_of(columns[0], key)
        if len(columns) == 1:
            yield (first,), _value(inner, where)
        elif isinstance(inner, dict):
            for rest, value in _flatten(inner, columns[1:], where):
                yield (first, *rest), value
        else:
            raise InvalidInput(
                f"{where} comes from {len(columns)} columns or more, so {key!r} needs a table of "
                f"the values of {columns[1].name!r}"
            )


def _columns_of_role(protected: str, told: Any) -> list[tuple[str, Any]]:
    if not isinstance(told, dict):
        raise InvalidInput(f"[roles.{protected}] must be a table of columns and their levels")
    return list(told.items())


def _read_role(protected: str, column: str, told: Any, schema: Schema) -> Role:
    if not (isinstance(told, list) and all(isinstance(thing, dict) for thing in told)):
        raise InvalidInput(
            f"{column!r} in [roles.{protected}] must be a list of tables, such as "
            '[{ Female = "Wife", Male = "Husband" }]'
        )
    given, moved = schema[protected], schema[column]
    return Role(
        protected=protected,
        column=column,
        things=tuple(
            tuple(
                (_value_of(given, key), _value_of(moved, _value(level, f"[roles.{protected}]")))
                for key, level in thing.items()
            )
            for thing in told
        ),
    )


def _value(value: Any, where: str) -> Value:
    if isinstance(value, (str, bool, int, float)):
        return value
    raise InvalidInput(f"{where} has a value of type {type(value).__name__}; use text or numbers")


def _value_of(column: Column, told: Value) -> Value:
    """What a column calls a value: keys of TOML are text, whatever they name."""
    return column.value(column.code(told))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _nest(lookup: Sequence[tuple[tuple[Value, ...], Value]]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for cells, value in lookup:
        inner = nested
        for cell in cells[:-1]:
            inner = inner.setdefault(_key(cell), {})
        inner[_key(cells[-1])] = value
    return nested


def _key(value: Value) -> str:
    return str(_number(value))


def _number(value: Value) -> Value:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _name(name: str) -> str:
    return name if _BARE.fullmatch(name) else to_toml(name)


def _quote(rule: str) -> str:
    """A rule as a person would write it: in single quotes, because its own are mostly double."""
    return f"'{rule}'" if rule.isprintable() and "'" not in rule else to_toml(rule)

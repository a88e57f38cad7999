"""Protected columns as a user names them: `sex`, `race=White,Black`, `age=18-80:5`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from limi.errors import InvalidInput, spell
from limi.table.column_values import Between, codes_between, codes_of, read_values, split_name

if TYPE_CHECKING:
    from limi.table.schema import Column, Schema

__all__ = ["codes_for", "parse"]


def parse(
    schema: Schema, wanted: Sequence[str] | Mapping[str, object]
) -> dict[str, tuple[float, ...]]:
    """Codes to try for each protected column, in the order named."""
    if isinstance(wanted, str):
        wanted = [wanted]
    pairs: Iterable[tuple[str, object]] = (
        wanted.items() if isinstance(wanted, Mapping) else [_name(schema, text) for text in wanted]
    )
    choices: dict[str, tuple[float, ...]] = {}
    for name, values in pairs:
        column = schema[name]
        if name in choices:
            raise InvalidInput(f"protected column {name!r} is named twice; name it once")
        codes = codes_for(column, values)
        if not codes:
            raise InvalidInput(f"protected column {name!r} was given no values; list two or more")
        if len(codes) < 2:
            raise InvalidInput(
                f"protected column {name!r} has only one value ({column.show(codes[0])}); a flip "
                "needs at least two"
            )
        choices[name] = codes
    if not choices:
        raise InvalidInput("no protected column was named; name one, for example 'sex'")
    if len(choices) == len(schema):
        raise InvalidInput(
            f"every column is protected ({spell(map(repr, choices))}); leave at least one column "
            "unprotected"
        )
    return choices


def _name(schema: Schema, text: str) -> tuple[str, object]:
    if not isinstance(text, str):
        raise InvalidInput(
            f"a protected column was given as {text!r}; write its name, such as 'sex', or "
            "'race=White,Black'"
        )
    return split_name(text, schema.names)


def codes_for(column: Column, values: object) -> tuple[float, ...]:
    """The codes that values stand for; all of the column's where none are given."""
    what = f"protected column {column.name!r}"
    if values is None or values == "":
        if not column.is_number:
            return tuple(float(position) for position in range(column.size))
        return codes_between(column, Between(column.low, column.high, None), what)
    wanted = read_values(column, values, what)
    if isinstance(wanted, Between):
        return codes_between(column, wanted, what)
    return codes_of(column, wanted, what)

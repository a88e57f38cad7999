"""The privileged group: whose decisions the others' are compared with.

A user names it for a protected column, or one rule chooses it: the value with the highest selection
rate by the model's own decisions among those with at least 30 rows; for a number with many values
the half of the table with the higher one. True labels have no say: the question is whom the model
prefers, and a table without labels has an answer too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput, nearest, spell
from limi.metrics._enough import FEWEST_TOLD
from limi.metrics._groups import MANY_VALUES
from limi.metrics.group import Tally, tally
from limi.table.column_values import Between, codes_between, codes_of, read_values, split_name
from limi.table.schema import Column, Schema
from limi.types import Labels, Mask

__all__ = [
    "LOWEST",
    "Counts",
    "Privileged",
    "Split",
    "choose",
    "count_by_value",
    "is_lowest",
    "lowest",
    "parse",
]

Privileged: TypeAlias = str | Sequence[str] | Mapping[str, Any]
"""`"sex=Male"`, `["sex=Male", "age=30-90"]`, `{"race": ["White", "Asian"]}`, or `"lowest"`."""

Counts: TypeAlias = Sequence[tuple[float, Tally]]
"""Codes of a column, ascending, with the decisions on the rows that have them."""

LOWEST = "lowest"  # the split behind the paper's tables: the lowest code against all others

_MOST_GROUPS = 1000  # values of a column whose counts are kept


@dataclass(frozen=True)
class Split:
    """A privileged group of a column: its codes, or all codes of a range."""

    words: str
    why: str
    low: float = math.inf
    high: float = -math.inf
    codes: frozenset[float] = frozenset()
    chosen_from: int = 1  # groups among which the rates themselves made the choice

    @property
    def confidence(self) -> float:
        """Of an interval that is to hold at 95 % for whichever group was chosen (Bonferroni).

        Of two groups either is the other's opposite, so that choosing between them costs nothing.
        """
        return 1 - 0.05 / (self.chosen_from if self.chosen_from > 2 else 1)

    def holds(self, code: float) -> bool:
        """Does a code belong to the group?"""
        return code in self.codes or self.low <= code <= self.high

    def mask(self, cells: NDArray[np.float64]) -> Mask:
        """Which cells of the column belong to it."""
        inside: Mask = np.isin(cells, list(self.codes))
        return inside | ((cells >= self.low) & (cells <= self.high))


# -- named by the user ------------------------------------------------------------------


def is_lowest(privileged: Privileged) -> bool:
    """Is the paper's split asked for, as a word or as a list of that word?"""
    return privileged == LOWEST or (
        not isinstance(privileged, str) and list(privileged) == [LOWEST]
    )


def parse(schema: Schema, privileged: Privileged) -> dict[str, Split]:
    """The privileged group of each protected column that was named; groups stay as they are."""
    names = schema.protected
    if isinstance(privileged, str):
        privileged = [privileged]
    pairs = (
        list(privileged.items())
        if isinstance(privileged, Mapping)
        else [_name(text, names) for text in privileged]
    )
    chosen = {}
    for name, values in pairs:
        if name not in names:
            raise InvalidInput(
                f"{name!r} is not a protected column of the run; {nearest(str(name), names)}"
            )
        if name in chosen:
            raise InvalidInput(
                f"privileged names {name!r} twice; list its values once, as {name}=FIRST,SECOND"
            )
        chosen[name] = values if isinstance(values, Split) else _state(schema[name], values)
    return chosen


def _name(text: object, names: Sequence[str]) -> tuple[str, str]:
    name, values = split_name(text, names) if isinstance(text, str) else ("", None)
    if values is None:
        raise InvalidInput(
            f"privileged is {text!r}; write COLUMN=VALUE, such as {names[0] + '=VALUE'!r}, or "
            f"{LOWEST!r}"
        )
    return name, values


def _state(column: Column, values: Any) -> Split:
    why, what = "it was stated", f"the privileged group of {column.name!r}"
    if not isinstance(values, str) and np.ndim(values) == 0:
        values = [values]
    wanted = read_values(column, values, what)
    if isinstance(wanted, Between) and wanted.step is None:
        words = f"{column.show(wanted.low)} to {column.show(wanted.high)}"
        return Split(words, why, low=wanted.low, high=wanted.high)
    if isinstance(wanted, Between):
        codes = codes_between(column, wanted, what)
    else:
        codes = codes_of(column, wanted, what)
    if not codes:
        raise InvalidInput(f"{what} has no value; name one")
    words = spell([column.show(code) for code in codes], most=4)
    return Split(words, why, codes=frozenset(codes))


# -- chosen by rule ---------------------------------------------------------------------


def count_by_value(
    cells: NDArray[np.float64], favorable: Mask, labels: Labels | None
) -> list[tuple[float, Tally]]:
    """Decisions by value of a column; missing cells count for no value."""
    codes = np.unique(cells[~np.isnan(cells)])
    if len(codes) > _MOST_GROUPS:
        # Values of a real-valued column: hundredths of its range tell as much.
        edges = np.unique(np.quantile(codes, np.linspace(0, 1, 101)))
        place = np.searchsorted(edges, cells, side="right") - 1
        cells = np.where(np.isnan(cells), np.nan, edges[place.clip(0, len(edges) - 1)])
        codes = np.unique(cells[~np.isnan(cells)])
    return [(float(code), tally(favorable, labels, cells == code)) for code in codes]


def choose(column: Column, counts: Counts) -> Split:
    """The group with the highest selection rate, where nobody has named one."""
    if column.kind == "numerical" and len(counts) > MANY_VALUES:
        return _choose_half(column, counts)
    able = [entry for entry in counts if entry[1].rows >= FEWEST_TOLD] or counts
    code, _ = max(able, key=lambda entry: _selection_rate(entry[1]))
    why = "it has the highest selection rate"
    if len(able) < len(counts):
        why += f" of the values with at least {FEWEST_TOLD} rows"
    return Split(column.show(code), why, codes=frozenset([code]), chosen_from=len(able))


def lowest(column: Column, codes: Iterable[float]) -> Split:
    """The lowest of the codes that a table holds."""
    code = float(min(codes))
    why = "it has the lowest code, as the paper's tables split groups"
    return Split(column.show(code), why, codes=frozenset([code]))


def _choose_half(column: Column, counts: Counts) -> Split:
    codes = np.array([code for code, _ in counts])
    rows = [group.rows for _, group in counts]
    half = np.searchsorted(np.cumsum(rows), sum(rows) / 2)
    cut = float(codes[max(1, int(half))])
    upper = Tally.total([group for code, group in counts if code >= cut])
    lower = Tally.total([group for code, group in counts if code < cut])
    why = "it is the half of the table with the higher selection rate"
    if _selection_rate(upper) >= _selection_rate(lower):
        return Split(f"{column.show(cut)} or more", why, low=cut, high=math.inf)
    below = float(codes[codes < cut][-1])
    return Split(f"under {column.show(cut)}", why, low=-math.inf, high=below)


def _selection_rate(group: Tally) -> float:
    return group.favorable / group.rows if group.rows else 0.0

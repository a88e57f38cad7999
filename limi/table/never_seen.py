"""Partners that hold what hardly anyone in the table holds: a warning for runs without rules."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limi.table._axes import Axis, is_unseen, make_axes
from limi.table.schema import Schema
from limi.types import Index, Rows

__all__ = ["NeverSeen", "find_never_seen"]

_MOST_ROWS = 50_000  # whose partners are counted
_LEAST_SHARE = 0.01  # of partners; fewer are not worth a sentence

# People who are near to a number, among whom a cell may be missed.
_NEAR = 400
_NEAR_SHARE = 0.02  # of the table, if that is more


@dataclass(frozen=True)
class NeverSeen:
    """The commonest of the combinations that partners hold and the table does not."""

    share: float  # of all partners, those that hold at least one such combination
    protected: str
    value: str
    column: str
    cell: str
    expected: float  # rows that would hold it if the two columns had nothing to do with each other
    seen: int
    near: int = (
        0  # where the protected value is a number, the people nearest to it who were counted
    )

    def describe(self, table: str | None = "TABLE", target: str | None = None) -> str:
        """What to warn of, with the command that finds rules for it; None where the columns are in
        two tables."""
        words = ["limi", "schema", table or "TABLE", "--mine", "--protected", self.protected]
        command = shlex.join(words if target is None else [*words, "--target", target])
        command = f"`{command}`" if table else f"`{command}`, with both columns in TABLE,"
        counted = f"{round(self.expected):,} expected, {self.seen:,} seen"
        value, finds = self.value, "suggests a rule"
        if self.near:
            value, finds = f"about {self.value}", "looks for rules"
            counted += f" among the {self.near:,} people nearest to it"
        return (
            f"{100 * self.share:.0f} % of partners have a combination that the table never or "
            f"hardly ever has: {self.column} {self.cell} with {self.protected} {value} "
            f"({counted}); {command} {finds}"
        )


def find_never_seen(schema: Schema, rows: Rows) -> NeverSeen | None:
    """What to warn of; None where partners hold what others in the table do."""
    places = schema.places_of(rows)
    own = _ruled(schema)
    axes = [axis for position, axis in make_axes(schema, rows).items() if position not in own]
    few = np.random.default_rng(0).permutation(len(rows))[:_MOST_ROWS]
    worst: _Worst | None = None
    fitting = np.ones(len(few))  # values that each row could take, over all protected columns
    own_fits = np.ones(len(few), dtype=bool)
    for number, codes in enumerate(schema.protected_codes):
        odd = np.zeros((len(few), len(codes)), dtype=bool)
        held = _who_holds(schema, rows, number, places[:, number])
        for axis in axes:
            seen, expected = _count(held, axis)
            never = is_unseen(seen, expected)
            odd |= never[:, axis.cells[few]].T
            partners = np.where(never, axis.counts - seen, 0)
            at = int(partners.argmax())
            if partners.flat[at] > (0 if worst is None else worst.partners):
                value, cell = divmod(at, len(axis))
                worst = _Worst(int(partners.flat[at]), number, codes[value], axis, cell)
                worst_counts = float(expected[value, cell]), int(seen[value, cell])
                near = len(held[value])
        fitting *= len(codes) - odd.sum(axis=1)
        place = places[few, number]
        own_fits &= (place >= 0) & ~odd[np.arange(len(few)), place]
    if worst is None:
        return None
    n_partners = len(schema.combinations) - (schema.combination_of(rows[few]) >= 0)
    share = 1 - float((fitting - own_fits).sum() / n_partners.sum())
    if share < _LEAST_SHARE:
        return None
    column = schema[schema.protected[worst.number]]
    near = near if column.is_number else 0
    return NeverSeen(
        share,
        column.name,
        column.show(worst.code),
        worst.axis.column.name,
        worst.axis.name(worst.cell),
        *worst_counts,
        near,
    )


def _ruled(schema: Schema) -> set[int]:
    """Positions of the protected columns, and of those that the rules of the table see to."""
    enforcer = schema.enforcer
    bound = {position for constraint in enforcer.binding for position in constraint.columns}
    return bound | set(enforcer.moving_index.tolist())


class _Worst(NamedTuple):
    partners: int
    number: int  # of the protected column
    code: float
    axis: Axis
    cell: int


def _who_holds(schema: Schema, rows: Rows, number: int, places: Index) -> list[Index]:
    """Rows that hold each value of a protected column; of a number, those that come nearest."""
    position, codes = int(schema.protected_index[number]), schema.protected_codes[number]
    if not schema.columns[position].is_number:
        return [np.flatnonzero(places == value) for value in range(len(codes))]
    cells = rows[:, position]
    order = np.argsort(cells, kind="stable")[: int((~np.isnan(cells)).sum())]
    ascending = cells[order]
    wanted = min(len(order), max(_NEAR, int(_NEAR_SHARE * len(order))))
    held = []
    for code in codes:
        at = int(np.searchsorted(ascending, code))
        away = np.abs(ascending[max(0, at - wanted) : at + wanted] - code)
        reach = float(np.partition(away, wanted - 1)[wanted - 1]) if wanted else 0.0
        # All of them who are equally far, and the last digits must not separate them.
        reach += 1e-9 * (1 + reach)
        start, end = np.searchsorted(ascending, [code - reach, code + reach])
        held.append(order[start:end])
    return held


def _count(held: Sequence[Index], axis: Axis) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(values, cells): rows that hold each pair, and that would by chance."""
    seen = np.stack([np.bincount(axis.cells[who], minlength=len(axis)) for who in held])
    expected = np.outer([len(who) for who in held], axis.counts) / len(axis.cells)
    return seen.astype(np.int64), expected

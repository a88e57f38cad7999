"""Partners that hold what hardly anyone in the table holds: a warning for runs without rules."""

from __future__ import annotations

import shlex
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


@dataclass(frozen=True)
class NeverSeen:
    """The commonest of the combinations that partners hold and the table does not."""

    share: float  # of all partners, those that hold one such combination at least
    protected: str
    value: str
    column: str
    cell: str
    expected: float  # rows that would hold it if the two columns had nothing to do with each other
    seen: int

    def describe(self, table: str = "TABLE", target: str | None = None) -> str:
        """What to warn of, with the command that finds rules for it."""
        words = ["limi", "schema", table, "--mine", "--protected", self.protected]
        command = shlex.join(words if target is None else [*words, "--target", target])
        return (
            f"{100 * self.share:.0f} % of partners hold a combination that the table never or "
            f"hardly ever has: {self.column} {self.cell} with {self.protected} {self.value} "
            f"({round(self.expected):,} expected, {self.seen:,} seen); `{command}` suggests a rule"
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
        for axis in axes:
            seen, expected = _count(places[:, number], len(codes), axis)
            never = is_unseen(seen, expected)
            odd |= never[:, axis.cells[few]].T
            partners = np.where(never, axis.counts - seen, 0)
            at = int(partners.argmax())
            if partners.flat[at] > (0 if worst is None else worst.partners):
                value, cell = divmod(at, len(axis))
                worst = _Worst(int(partners.flat[at]), number, codes[value], axis, cell)
                worst_counts = float(expected[value, cell]), int(seen[value, cell])
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
    return NeverSeen(
        share,
        column.name,
        column.show(worst.code),
        worst.axis.column.name,
        worst.axis.name(worst.cell),
        *worst_counts,
    )


def _ruled(schema: Schema) -> set[int]:
    """Positions of the protected columns, and of those that the rules of the table see to."""
    enforcer = schema.enforcer
    if enforcer is None:
        return set(schema.protected_index.tolist())
    bound = {position for constraint in enforcer.binding for position in constraint.columns}
    return bound | set(enforcer.moving_index.tolist())


class _Worst(NamedTuple):
    partners: int
    number: int  # of the protected column
    code: float
    axis: Axis
    cell: int


def _count(
    places: Index, n_values: int, axis: Axis
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(values, cells): rows that hold each pair, and that would by chance."""
    known = places >= 0
    joint = places[known] * len(axis) + axis.cells[known]
    seen = np.bincount(joint, minlength=n_values * len(axis)).reshape(n_values, len(axis))
    expected = np.outer(np.bincount(places[known], minlength=n_values), axis.counts) / len(places)
    return seen.astype(np.int64), expected

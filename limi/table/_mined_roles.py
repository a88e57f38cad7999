"""Levels that are one thing under different protected values: for mining.

A level is of one protected value if it hardly occurs under any other. Two such levels, of two
values, are one thing if each is what the people of the other would most likely hold: for every
Husband the likeliest level is asked were he Female, given his other columns, and for every Wife
were she Male.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from limi.table._axes import Axis, count_pairs, is_evident
from limi.table.rules import Role
from limi.table.schema import Column, Schema
from limi.types import Mask, Value

__all__ = ["find_roles"]

_AGREED = 0.9  # of the people with a level, so many must have the other as their likeliest
_COMMON = 0.5  # of people with another level; a role is not what most would hold anyway


def find_roles(
    schema: Schema, axes: Mapping[int, Axis], protected: Sequence[str]
) -> list[tuple[Role, str]]:
    """Roles of the protected columns, each with a comment."""
    positions = [schema.position(name) for name in protected]
    found = []
    for position in positions:
        if position not in axes:
            continue
        for axis in axes.values():
            if axis.column.kind == "numerical" or axis.position in positions:
                continue
            others = [o for o in axes.values() if o.position not in (*positions, axis.position)]
            things, words = _find_things(axes[position], axis, others)
            # A role needs one protected value that all its things have a level for.
            if things and set.intersection(*map(set, things)):
                role = Role(
                    protected=axes[position].column.name,
                    column=axis.column.name,
                    things=tuple(tuple(thing.items()) for thing in things),
                )
                found.append((role, "; ".join(words)))
    return found


def _find_things(
    given: Axis, moved: Axis, others: Sequence[Axis]
) -> tuple[list[dict[Value, Value]], list[str]]:
    own = _find_own(count_pairs(given, moved))
    things: list[dict[Value, Value]] = []
    words = []
    for one, other in ((a, b) for a in own for b in own if a < b and own[a] != own[b]):
        there = _find_likeliest(given, moved, others, one, own[one], own[other])
        back = _find_likeliest(given, moved, others, other, own[other], own[one])
        if (there[0], back[0]) != (other, one) or min(there[1], back[1]) < _AGREED:
            continue
        pairs = sorted(((own[one], one), (own[other], other)))
        _join(things, {_value(given, g): _value(moved, m) for g, m in pairs})
        words.append(
            f"{100 * there[1]:.0f} % of {moved.name(one)} would be {moved.name(other)}, "
            f"{100 * back[1]:.0f} % of {moved.name(other)} {moved.name(one)}"
        )
    return things, words


def _find_own(counts: NDArray[np.int64]) -> dict[int, int]:
    """Levels that hardly occur but under one protected value, and that value."""
    shares = counts.sum(axis=1) / counts.sum()
    own = {}
    for level, column in enumerate(counts.T):
        value, support = int(column.argmax()), int(column.sum())
        if is_evident(support - column[value], support, support * (1 - shares[value])):
            own[level] = value
    return own


def _find_likeliest(
    given: Axis, moved: Axis, others: Sequence[Axis], level: int, value: int, under: int
) -> tuple[int, float]:
    """What people with a level under a value would mostly hold under another, and how many.

    Nobody is said to where people with other levels would mostly hold it too, for then it is
    merely common.
    """
    model = given.cells == under
    of_value = given.cells == value
    votes = []
    for people in (of_value & (moved.cells == level), of_value & (moved.cells != level)):
        scores = np.log(np.bincount(moved.cells[model], minlength=len(moved)) + 1e-9)
        scores = np.tile(scores, (int(people.sum()), 1))
        for other in others:
            scores += _log_shares(moved, other, model)[:, other.cells[people]].T
        likeliest = np.bincount(scores.argmax(axis=1), minlength=len(moved))
        votes.append(likeliest / max(1, likeliest.sum()))
    best = int(votes[0].argmax())
    return best, float(votes[0][best]) if votes[1][best] <= _COMMON else 0.0


def _log_shares(moved: Axis, other: Axis, model: Mask) -> NDArray[np.float64]:
    """(levels, cells): how likely each cell of another column is with each level."""
    joint = moved.cells[model] * len(other) + other.cells[model]
    counts = np.bincount(joint, minlength=len(moved) * len(other)).reshape(len(moved), len(other))
    smooth = counts + 0.5
    shares: NDArray[np.float64] = np.log(smooth / smooth.sum(axis=1, keepdims=True))
    return shares


def _join(things: list[dict[Value, Value]], pair: dict[Value, Value]) -> None:
    """Add a pair to the thing that it continues, or as one of its own."""
    for thing in things:
        same = [value for value in pair if thing.get(value) == pair[value]]
        if same and all(thing.get(value, pair[value]) == pair[value] for value in pair):
            thing.update(pair)
            return
    things.append(pair)


def _value(axis: Axis, cell: int) -> Value:
    code = axis.meanings[cell]
    if not isinstance(code, float):
        raise TypeError("a missing value has no role")
    column: Column = axis.column
    if column.kind != "numerical":
        return column.levels[int(code)]
    return int(code) if code % 1 == 0 else code

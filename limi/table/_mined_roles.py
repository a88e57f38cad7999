"""Levels that are one thing under different protected values: for mining.

A level is of one protected value if it hardly occurs under any other. Two such levels, of two
values, are one thing if each is what the people of the other would most likely hold: for every
Husband the likeliest level is asked were he Female, given his other columns, and for every Wife
were she Male.

In a small table one odd row is a large share. So a level is of a value also where its exceptions
are no more than 0.2 % of people would make by chance, if a hundred times as many would be expected
of columns that have nothing to do with each other. Where exceptions are a few more, or all is
known of fewer people, the pair is possible: something to be looked at, and not a rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limi.table._axes import LEAST_EXPECTED, MOST_BROKEN, MOST_OF_EXPECTED, Axis, count_pairs
from limi.table.rules import Role
from limi.table.schema import Schema
from limi.types import Mask, Value

__all__ = ["FoundRole", "find_roles"]

_AGREED = 0.9  # of the people with a level, so many must have the other as their likeliest
_CHANCE = 0.05  # of as many exceptions or more, if 0.2 % of people are ones

# Of a pair that is only possible:
_AGREED_PERHAPS = 0.8
_LEAST_EXPECTED_PERHAPS = 20
_MOST_ODD_PERHAPS = 0.02  # of the people with a level
_MOST_OF_EXPECTED_PERHAPS = 0.05
_COMMON = 0.5  # of people with another level; a role is not what most would hold anyway


class FoundRole(NamedTuple):
    """A role, what is to be said beside it, and whether it is one or only possible."""

    role: Role
    words: str
    sure: bool


def find_roles(
    schema: Schema, axes: Mapping[int, Axis], protected: Sequence[str]
) -> list[FoundRole]:
    """Roles of the protected columns; a possible one has the things of the sure one as well."""
    positions = [schema.position(name) for name in protected]
    found = []
    for position in positions:
        if position not in axes:
            continue
        for axis in axes.values():
            if axis.column.is_number or axis.position in positions:
                continue
            others = [o for o in axes.values() if o.position not in (*positions, axis.position)]
            pairs = list(_find_pairs(axes[position], axis, others))
            sure = [pair for pair in pairs if pair.sure]
            for some in [sure, pairs] if len(sure) < len(pairs) else [sure]:
                things: list[dict[Value, Value]] = []
                for pair in some:
                    _join(things, pair.levels)
                # A role needs one protected value that all its things have a level for.
                if things and set.intersection(*map(set, things)):
                    role = Role(
                        protected=axes[position].column.name,
                        column=axis.column.name,
                        things=tuple(tuple(thing.items()) for thing in things),
                    )
                    words = "; ".join(pair.words for pair in some)
                    found.append(FoundRole(role, words, sure=some is sure))
    return found


class _Pair(NamedTuple):
    """Two levels that are one thing, by protected value."""

    levels: dict[Value, Value]
    words: str
    sure: bool


def _find_pairs(given: Axis, moved: Axis, others: Sequence[Axis]) -> Iterator[_Pair]:
    counts = count_pairs(given, moved)
    own = _find_own(counts)
    for one, other in ((a, b) for a in own for b in own if a < b):
        (value, of_one), (under, of_other) = own[one], own[other]
        if value == under:
            continue
        there = _find_likeliest(given, moved, others, one, value, under)
        back = _find_likeliest(given, moved, others, other, under, value)
        agreed = min(there[1], back[1])
        if (there[0], back[0]) != (other, one) or agreed < _AGREED_PERHAPS:
            continue
        odd = [
            f"{support - held:,} of {support:,} {moved.name(level)} not {given.name(place)}"
            for level, place in ((one, value), (other, under))
            for held, support in [(counts[place, level], counts[:, level].sum())]
        ]
        yield _Pair(
            {_value(given, g): _value(moved, m) for g, m in sorted(((value, one), (under, other)))},
            f"{100 * there[1]:.0f} % of {moved.name(one)} would be {moved.name(other)}, "
            f"{100 * back[1]:.0f} % of {moved.name(other)} {moved.name(one)}; {', '.join(odd)}",
            of_one and of_other and agreed >= _AGREED,
        )


def _find_own(counts: NDArray[np.int64]) -> dict[int, tuple[int, bool]]:
    """Levels that hardly occur but under one protected value: that value, and if it is sure."""
    from scipy.special import bdtrc  # late: it takes 0.15 s

    shares = counts.sum(axis=1) / counts.sum()
    own = {}
    for level, column in enumerate(counts.T):
        value, support = int(column.argmax()), int(column.sum())
        odd, expected = support - int(column[value]), support * (1 - shares[value])
        sure = expected >= LEAST_EXPECTED and odd <= MOST_OF_EXPECTED * expected
        sure = sure and bdtrc(odd - 1, support, MOST_BROKEN) >= _CHANCE
        if sure or (
            expected >= _LEAST_EXPECTED_PERHAPS
            and odd <= min(_MOST_ODD_PERHAPS * support, _MOST_OF_EXPECTED_PERHAPS * expected)
        ):
            own[level] = value, sure
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
    return axis.column.value(code)

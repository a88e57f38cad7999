"""Rules that the rows of a table keep by themselves: suggestions with their counts.

Nothing is enforced by being found. A suggestion is written down if at most 0.2 % of the rows that
it is about break it, if at least 50 rows would were its columns independent, and if a hundred
times as many would as do. Two columns of a shuffled table never agree so far.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limi.table._axes import LEAST_EXPECTED, MOST_BROKEN, Axis, count_pairs, is_evident, make_axes
from limi.table._mined_columns import find_derived
from limi.table._mined_roles import find_roles
from limi.table._rule_syntax import quote_name, quote_value
from limi.table.constraints import Constraint, find_broken
from limi.table.rules import Derived, Role, Rules
from limi.table.schema import Schema
from limi.types import Index, Mask, Rows

__all__ = ["Mined", "mine"]

_MOST_ROWS = 100_000  # rows looked at; more would find the same
_MOST_TRIED = 1000  # suggestions
_TRIED = 20_000  # rows with shuffled cells
_COMPARED = 500  # of them, those that break a rule, and as many that keep it
_UNTELLING = 0.95  # of shuffled rows
_NEW = 0.1  # of what a rule bars, so much must not be barred by others
_LEAST_BARRED = 5  # rows expected of a level that `not in` lists
_MOST_LISTED = 3  # levels that `in` lists
_MOST_BOUNDS = 10
_LEAST_BOUNDED = 0.05  # of the table's rows that a bound must exclude


@dataclass(frozen=True)
class _Suggestion:
    """A rule and its evidence."""

    text: str
    name: str
    support: int  # rows that it is about
    broken: int
    expected: float  # rows that would break it by chance
    form: int = 0  # of two that say the same, the lower is easier to read

    @property
    def counts(self) -> str:
        return f"broken by {self.broken:,} of {self.support:,}; by chance {round(self.expected):,}"


@dataclass(frozen=True)
class Mined:
    """What was found: rules, what to say beside each, and what is only said."""

    rules: Rules
    comments: Mapping[tuple[str, str], str] = field(default_factory=dict)  # by section and name
    remarks: tuple[str, ...] = ()
    possible: tuple[tuple[Role, str], ...] = ()  # roles for somebody to judge, and what to say
    caution: str = ""  # what to know of all that was found


def mine(schema: Schema, rows: Rows, protected: Sequence[str] = ()) -> Mined:
    """Suggestions for the rules of a table; those of its schema are not looked at."""
    schema = schema.unruled
    rng = np.random.default_rng(0)
    looked = rows if len(rows) <= _MOST_ROWS else rows[rng.choice(len(rows), _MOST_ROWS, False)]
    derived, remarks = find_derived(schema, looked, protected)
    derived = [pair for pair in derived if _holds_everywhere(schema, pair[0], rows)]
    computed = {schema.position(column.column) for column, _ in derived}
    axes = {p: axis for p, axis in make_axes(schema, looked).items() if p not in computed}
    numbers = [int(p) for p in np.flatnonzero(schema.is_numerical) if p not in computed]
    chosen = {schema.position(name) for name in protected}
    relations = _find_relations(schema, looked, numbers, chosen, rng)
    chooser = _Chooser(schema, looked, rng)
    kept = chooser.choose([*_find_implications(axes), *relations])
    bounds = chooser.choose(_find_bounds(schema, looked, axes, numbers, chosen))
    roles = find_roles(schema, axes, protected)
    named = _name_all(_recount(schema, one, rows, looked) for one in kept)
    rules = Rules(
        tuple((name, one.text) for name, one in named.items()),
        tuple(column for column, _ in derived),
        tuple(found.role for found in roles if found.sure),
    )
    replace(schema, rules=rules)  # what cannot be read back must not be written
    return Mined(
        rules,
        {("constraints", name): one.counts for name, one in named.items()}
        | {("derived", column.column): words for column, words in derived}
        | {
            ("roles", f"{found.role.protected} {found.role.column}"): found.words
            for found in roles
            if found.sure
        },
        (*remarks, *(f"{one.text}   # {one.counts}" for one in bounds[:_MOST_BOUNDS])),
        tuple((found.role, found.words) for found in roles if not found.sure),
    )


# -- what the rows say ------------------------------------------------------------------


def _find_implications(axes: Mapping[int, Axis]) -> Iterator[_Suggestion]:
    """`A == a implies B in [...]`, for all pairs of columns and cells of the first."""
    for one, other in itertools.permutations(axes.values(), 2):
        counts = count_pairs(one, other)
        support = counts.sum(axis=1)
        shares = other.counts / other.counts.sum()
        order = np.argsort(counts, axis=1, kind="stable")
        rising = np.take_along_axis(counts, order, axis=1).cumsum(axis=1)
        barred = np.zeros(counts.shape, dtype=bool)
        np.put_along_axis(barred, order, rising <= MOST_BROKEN * support[:, None], axis=1)
        hopeful = (support >= LEAST_EXPECTED) & one.can_be_said
        hopeful &= support * (barred * shares).sum(axis=1) >= LEAST_EXPECTED
        for cell in map(int, np.flatnonzero(hopeful)):
            consequence = _say_consequence(other, barred[cell], support[cell] * shares)
            if consequence is None:
                continue
            words, out, form = consequence
            broken, expected = int(counts[cell][out].sum()), support[cell] * shares[out].sum()
            if is_evident(broken, support[cell], expected):
                yield _Suggestion(
                    f"{one.say([cell])} implies {words}",
                    f"{_label(one, cell)} {other.column.name}",
                    int(support[cell]),
                    broken,
                    float(expected),
                    form,
                )


def _label(axis: Axis, cell: int) -> str:
    """What a rule about a cell is called after: a level speaks for itself, a number does not."""
    plain = not axis.column.is_number and isinstance(axis.meanings[cell], float)
    return axis.name(cell) if plain else f"{axis.column.name} {axis.name(cell)}"


def _say_consequence(
    axis: Axis, barred: Mask, expected: NDArray[np.float64]
) -> tuple[str, Mask, int] | None:
    """A condition that bars these cells, which it bars, and its form; None if there is none."""
    left = np.flatnonzero(~barred)
    if len(left) <= _MOST_LISTED and axis.can_be_said[left].all():
        return axis.say(left, surely=True), barred, 0
    # A long list of what may be says less than a list of what may not: of cells that are missed.
    out = barred & (expected >= _LEAST_BARRED) & axis.can_be_said
    return (axis.deny(np.flatnonzero(out)), out, 1) if out.any() else None


def _find_relations(
    schema: Schema,
    rows: Rows,
    numbers: Sequence[int],
    protected: Collection[int],
    rng: np.random.Generator,
) -> Iterator[_Suggestion]:
    """`x == y + c` and `x <= y` of a protected number, against what a shuffled column would do.

    Between other numbers they bind no partner.
    """
    cells = {p: rows[:, p] for p in numbers if len(np.unique(rows[:, p])) > 1}
    pairs = [pair for pair in itertools.combinations(cells, 2) if not {*pair}.isdisjoint(protected)]
    for x, y in pairs:
        apart, by_chance = cells[x] - cells[y], rng.permutation(cells[x]) - cells[y]
        known = ~np.isnan(apart)
        if not known.any():
            continue
        middle = float(np.median(apart[known]))
        for sign, limit in (("==", middle), ("<=", 0.0), (">=", 0.0)):
            broken, expected = (_count_against(sign, d, limit) for d in (apart, by_chance))
            if is_evident(broken, known.sum(), expected):
                text = f"{_name(schema, x)} {sign} {_name(schema, y)}{_offset(limit)}"
                name = f"{schema.names[x]} {schema.names[y]}"
                yield _Suggestion(text, name, int(known.sum()), broken, expected)
                break


def _count_against(sign: str, apart: NDArray[np.float64], limit: float) -> int:
    """Differences that surely do not relate so to a limit; NaN never does."""
    slack = 1e-9 * (1 + abs(limit))
    if sign == "==":
        return int((np.abs(apart - limit) > slack).sum())
    return int(((apart > limit + slack) if sign == "<=" else (apart < limit - slack)).sum())


def _find_bounds(
    schema: Schema,
    rows: Rows,
    axes: Mapping[int, Axis],
    numbers: Sequence[int],
    protected: Collection[int],
) -> Iterator[_Suggestion]:
    """`A == a implies x <= bound`, for the largest and the smallest x that was seen with a.

    Of two columns that are not protected it binds no partner.
    """
    ascending = {x: np.sort(rows[:, x][~np.isnan(rows[:, x])]) for x in numbers}
    for axis in axes.values():
        if axis.column.is_number:
            continue
        order = np.argsort(axis.cells, kind="stable")
        held = np.flatnonzero(axis.counts)
        starts = np.searchsorted(axis.cells[order], held)
        for x, all_of_them in ascending.items():
            if {x, axis.position}.isdisjoint(protected):
                continue
            cells = rows[order, x]
            for sign, extreme in (("<=", np.fmax), (">=", np.fmin)):
                bounds = extreme.reduceat(cells, starts)
                inside = np.searchsorted(all_of_them, bounds, "right" if sign == "<=" else "left")
                shares = inside / len(rows)
                shares = (len(all_of_them) / len(rows) - shares) if sign == "<=" else shares
                expected = shares * axis.counts[held]
                strong = (shares >= _LEAST_BOUNDED) & (expected >= LEAST_EXPECTED)
                strong &= ~np.isnan(bounds) & axis.can_be_said[held]
                for at in np.flatnonzero(strong):
                    cell = int(held[at])
                    text = f"{axis.say([cell])} implies {_name(schema, x)} {sign} "
                    yield _Suggestion(
                        text + quote_value(float(bounds[at])),
                        f"{_label(axis, cell)} {schema.names[x]}",
                        int(axis.counts[cell]),
                        0,
                        float(expected[at]),
                    )


def _name(schema: Schema, position: int) -> str:
    return quote_name(schema.names[position])


def _offset(limit: float) -> str:
    if not limit:
        return ""
    return f" {'+' if limit > 0 else '-'} {quote_value(abs(limit))}"


# -- of what was found, what says something new -----------------------------------------


class _Candidate(NamedTuple):
    """A suggestion as a rule, and shuffled rows that break it and that keep it."""

    suggestion: _Suggestion
    rule: Constraint
    broken: Index
    kept: Index


class _Chooser:
    """Takes rules one by one, each time the one that bars most of what the others leave open.

    Rows with shuffled cells in a rule's columns that break it are compared with those that keep it:
    if fewer of them are left open by the other rules, they have said it already, as a
    contrapositive or through a third column.
    """

    def __init__(self, schema: Schema, rows: Rows, rng: np.random.Generator) -> None:
        self._schema = schema
        places = rng.integers(0, len(rows), (rows.shape[1] + 1, _TRIED))
        self._whole = rows[places[0]]
        self._mixed = np.take_along_axis(rows, places[1:].T, axis=0)
        self.kept: list[_Candidate] = []

    def choose(self, found: Iterable[_Suggestion]) -> list[_Suggestion]:
        """Those of the suggestions that say something new, the strongest first."""
        strongest = sorted(found, key=lambda one: (-round(one.expected), one.form, len(one.text)))
        tried = map(self._try, strongest[:_MOST_TRIED])
        # Of rules that say the same, such as a contrapositive, the one that is easiest to read.
        by_meaning: dict[bytes, _Candidate] = {}
        for one in tried:
            by_meaning.setdefault(one.broken.tobytes(), one)
        candidates = list(by_meaning.values())
        # What a rule adds only shrinks as others are taken, so most need no second look.
        heap = [(-round(c.suggestion.expected), number) for number, c in enumerate(candidates)]
        before = len(self.kept)
        while heap:
            number = heapq.heappop(heap)[1]
            added = self._find_added(candidates[number], self.kept)
            if heap and LEAST_EXPECTED <= added < -heap[0][0]:
                heapq.heappush(heap, (-added, number))
            elif added >= LEAST_EXPECTED:
                self.kept.append(candidates[number])
        for candidate in reversed(self.kept[before:]):
            rest = [other for other in self.kept if other is not candidate]
            if self._find_added(candidate, rest) < LEAST_EXPECTED:
                self.kept = rest
        return [candidate.suggestion for candidate in self.kept[before:]]

    def _try(self, suggestion: _Suggestion) -> _Candidate:
        rule = Constraint.read("", suggestion.text, self._schema)
        broken = rule.broken(self._mixed)
        some = (np.flatnonzero(mask)[:_COMPARED] for mask in (broken, ~broken))
        return _Candidate(suggestion, rule, *some)

    def _find_added(self, candidate: _Candidate, others: Sequence[_Candidate]) -> int:
        """Rows that would break a rule by chance and none of the others."""
        columns = list(candidate.rule.columns)
        near = [other.rule for other in others if {*other.rule.columns} & {*columns}]
        if not near:
            return round(candidate.suggestion.expected)
        barred, kept = (
            find_broken(near, self._mix(places, columns))
            for places in (candidate.broken, candidate.kept)
        )
        if not len(barred) or not len(kept):
            return round(candidate.suggestion.expected)
        # An equation is broken by whatever is shuffled and tells nothing of what it says.
        telling = kept.mean(axis=0) < _UNTELLING
        left, usual = (np.mean(~mask[:, telling].any(axis=1)) for mask in (barred, kept))
        share = left / usual if usual else 1.0
        return round(candidate.suggestion.expected * share) if share >= _NEW else 0

    def _mix(self, places: Index, columns: list[int]) -> Rows:
        rows: Rows = self._whole[places]
        rows[:, columns] = self._mixed[places][:, columns]
        return rows


def _holds_everywhere(schema: Schema, derived: Derived, rows: Rows) -> bool:
    """Is a column derived so in every row, and not only in those that were looked at?"""
    enforcer = replace(schema, rules=Rules(derived=(derived,))).enforcer
    return not enforcer.disagrees(rows).any()


def _recount(schema: Schema, one: _Suggestion, rows: Rows, looked: Rows) -> _Suggestion:
    """The same with the counts of all rows."""
    if len(rows) == len(looked):
        return one
    times = len(rows) / len(looked)
    broken = int(Constraint.read("", one.text, schema).broken(rows).sum())
    return replace(
        one, support=round(one.support * times), broken=broken, expected=one.expected * times
    )


def _name_all(suggestions: Iterable[_Suggestion]) -> dict[str, _Suggestion]:
    named: dict[str, _Suggestion] = {}
    for one in suggestions:
        plain = re.sub(r"\W+", "_", one.name.lower()).strip("_") or "rule"
        name = next(n for n in _numbered(plain) if n not in named)
        named[name] = one
    return named


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(2))

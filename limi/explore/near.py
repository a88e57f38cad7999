"""The neighbourhood of one person: the nearest who flips, the nearest who does not, and single
changes that turn the decision.

People are as far apart as their cells: numbers and ordered levels by their difference in standard
deviations of the table, any other level counts one. Changes are tried in the order of that
distance, one cell first, then two, then three, each step from the people that came nearest to what
is sought. Whoever is found is brought nearer: what need not change is taken back, numbers are
halved down to the boundary, and more changes are tried as long as they lie nearer. What is found is
the nearest that was tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Rule
from limi.explore.asking import Asker
from limi.explore.jobs import Job
from limi.search.check import Checked, check_rows, query_cost
from limi.table.partners import complete, distinct_questions
from limi.table.schema import Schema
from limi.table.steps import movable
from limi.types import Mask, Rows, Scores

__all__ = ["Goal", "Near", "Neighbour", "Neighbourhood", "Turn"]

Goal = Literal["flip", "steady"]

_MOST_VALUES = 64  # of a number that are tried at first
_BEAM = 12  # people from whom another change is tried
_MOST_CHANGES = 3
_AT_ONCE = 512  # rows of one batch


@dataclass(frozen=True)
class Neighbour:
    """Somebody near the person."""

    row: NDArray[np.float64]
    distance: float
    changes: tuple[tuple[str, str, str], ...]  # column, the person's value, theirs


@dataclass(frozen=True)
class Near:
    """What a search around a person came to."""

    goal: Goal
    found: Neighbour | None
    asked: int  # people put to the model, each under every protected value
    queries: int
    budget: int
    spent: bool  # did the budget end it?
    itself: bool = False  # is the person one already?


@dataclass(frozen=True)
class Turn:
    """The smallest change of one column that turns the decision, on either side."""

    column: str
    position: int
    value: str
    to: str | None  # None where no value of the column does
    row: NDArray[np.float64] | None
    answer: float
    distance: float
    tried: int


class Neighbourhood:
    """People near one person who keep the rules that the person keeps."""

    def __init__(
        self,
        schema: Schema,
        row: NDArray[np.float64],
        scale: NDArray[np.float64],
        hidden: tuple[str, ...] = (),
    ) -> None:
        self.schema, self.row, self._scale, self._hidden = schema, row, scale, hidden
        moves = movable(schema)
        moves[[schema.position(name) for name in hidden]] = False
        self._columns = np.flatnonzero(moves)
        self._is_scale = np.array([c.kind in ("numerical", "ordered") for c in schema.columns])

    def distance(self, rows: Rows) -> NDArray[np.float64]:
        """How far people are from this one."""
        mine = self.row[None]
        same = (rows == mine) | (np.isnan(rows) & np.isnan(mine))
        apart = np.abs(rows - mine) / self._scale
        levels = ~self._is_scale[None] | np.isnan(rows) | np.isnan(mine)
        # What goes along by the rules costs nothing of its own.
        counted = np.zeros(len(self.schema), dtype=bool)
        counted[self.schema.key_index] = True
        counted[self.schema.protected_index] = True
        far = np.where(same, 0.0, np.where(levels, 1.0, apart))
        return np.asarray(np.where(counted, far, 0.0).sum(axis=1))

    def values(self, position: int) -> NDArray[np.float64]:
        """Values that are tried of a column, the person's own left out."""
        column = self.schema.columns[position]
        if column.size and column.size <= _MOST_VALUES:
            if column.kind == "numerical":
                codes = column.low + column.step * np.arange(column.size)
                codes = np.round(codes, column.decimals)
            else:
                codes = np.arange(float(column.size))
        else:
            codes = self._spread(position)
        if column.missing:
            codes = np.append(codes, np.nan)
        mine = self.row[position]
        own = np.isnan(codes) if np.isnan(mine) else codes == mine
        return np.asarray(codes[~own])

    def _spread(self, position: int) -> NDArray[np.float64]:
        """Values of a number with many: close to the person's own, and ever wider apart."""
        column = self.schema.columns[position]
        mine = float(self.row[position])
        mine = (column.low + column.high) / 2 if np.isnan(mine) else mine
        half = _MOST_VALUES // 2
        least = column.step or (column.high - column.low) / 10_000
        ways = [
            np.geomspace(least, end, half) if end > least else np.array([end])
            for end in (column.high - mine, mine - column.low)
        ]
        codes = np.concatenate([mine + ways[0], mine - ways[1], [column.low, column.high]])
        if column.step:
            codes = column.low + column.step * np.rint((codes - column.low) / column.step)
            codes = np.round(codes, column.decimals)
        return np.unique(np.clip(codes, column.low, column.high))

    def step(self, people: Rows) -> Rows:
        """Everybody with one more changed cell, in the order of distance, each once."""
        made = []
        for position in self._columns:
            codes = self.values(int(position))
            some = np.repeat(people, len(codes), axis=0)
            some[:, position] = np.tile(codes, len(people))
            made.append(some)
        if not made:
            return people[:0]
        rows: Rows = complete(self.schema, np.concatenate(made))
        rows = rows[self._could_be(rows)]
        rows = rows[distinct_questions(self.schema, rows).first] if len(rows) else rows
        return rows[np.argsort(self.distance(rows), kind="stable")]

    def _could_be(self, rows: Rows) -> Mask:
        """Who breaks no rule that the person keeps."""
        enforcer = self.schema.enforcer
        if not enforcer.constraints or not len(rows):
            return np.ones(len(rows), dtype=bool)
        from limi.table.constraints import find_broken

        own = find_broken(enforcer.constraints, self.row[None])
        return np.asarray(~(find_broken(enforcer.constraints, rows) & ~own).any(axis=1))

    def neighbour(self, row: NDArray[np.float64]) -> Neighbour:
        """Somebody, with what is different about them."""
        changes = tuple(
            (column.name, column.show(float(mine)), column.show(float(theirs)))
            for column, mine, theirs in zip(self.schema.columns, self.row, row, strict=True)
            if not (mine == theirs or (np.isnan(mine) and np.isnan(theirs)))
            and column.name not in self._hidden
        )
        return Neighbour(row, float(self.distance(row[None])[0]), changes)

    # -- the nearest who flips, or who does not -------------------------------------------------

    def find_nearest(self, goal: Goal, asker: Asker, budget: int, job: Job | None = None) -> Near:
        """The nearest person who flips, or who does not, within so many questions."""
        search = _Search(self, goal, asker, budget, job)
        return search.run()

    # -- which single change turns the decision -------------------------------------------------

    def walk(self, asker: Asker, job: Job | None = None) -> list[Turn]:
        """For each column the nearest value that alone turns the person's own decision."""
        own = asker.score(self.row[None], job)
        columns = [int(p) for p in (*self.schema.protected_index, *self._columns)]
        parts = [self._single(position) for position in columns]
        rows = np.concatenate(parts) if parts else self.row[None][:0]
        answers = asker.score(rows, job)
        turns, start = [], 0
        for position, part in zip(columns, parts, strict=True):
            told = answers[start : start + len(part)]
            start += len(part)
            turns.append(self._turn(position, part, told, own, asker, job))
        return sorted(turns, key=lambda t: (t.to is None, t.distance, t.position))

    def _single(self, position: int) -> Rows:
        codes = self.values(position)
        rows = np.repeat(self.row[None], len(codes), axis=0)
        rows[:, position] = codes
        whole: Rows = complete(self.schema, rows)
        return whole[self._could_be(whole)]

    def _turn(
        self,
        position: int,
        rows: Rows,
        answers: Scores,
        own: Scores,
        asker: Asker,
        job: Job | None,
    ) -> Turn:
        column = self.schema.columns[position]
        shown = column.show(float(self.row[position]))
        turned = np.flatnonzero(asker.rule.differ(answers, np.repeat(own, len(answers))))
        if not len(turned):
            return Turn(column.name, position, shown, None, None, float("nan"), np.inf, len(rows))
        far = self._along(position, rows[turned])
        best = turned[np.argsort(far, kind="stable")[0]]
        row, answer = rows[best], float(answers[best])
        if column.kind == "numerical" and column.size != len(rows) + 1:
            row, answer = self._refine(position, row, answer, own, asker, job)
        return Turn(
            column.name,
            position,
            shown,
            column.show(float(row[position])),
            row,
            answer,
            float(self._along(position, row[None])[0]),
            len(rows),
        )

    def _along(self, position: int, rows: Rows) -> NDArray[np.float64]:
        """How far people are in one column, and in no other."""
        mine, theirs = self.row[position], rows[:, position]
        if not self._is_scale[position] or np.isnan(mine):
            return np.ones(len(rows))
        apart = np.abs(theirs - mine) / self._scale[position]
        return np.where(np.isnan(apart), 1.0, apart)

    def _refine(
        self,
        position: int,
        row: NDArray[np.float64],
        answer: float,
        own: Scores,
        asker: Asker,
        job: Job | None,
    ) -> tuple[NDArray[np.float64], float]:
        """Halve the way to the boundary, where values between were not tried."""
        inner, outer = float(self.row[position]), float(row[position])
        while (middle := self.between(position, inner, outer)) is not None:
            tried = complete(
                self.schema, np.where(np.arange(len(row)) == position, middle, self.row)[None]
            )
            if not self._could_be(tried)[0]:  # nobody is such, so it is not an answer
                inner = middle
                continue
            told = asker.score(tried, job)
            if asker.rule.differ(told, own)[0]:
                outer, row, answer = middle, tried[0], float(told[0])
            else:
                inner = middle
        return row, answer

    def between(self, position: int, inner: float, outer: float) -> float | None:
        """The value half-way between two of a column; None where they are as good as the same."""
        column = self.schema.columns[position]
        if np.isnan(inner) or np.isnan(outer):
            return None
        middle = (inner + outer) / 2
        if column.step:
            steps = np.rint((middle - column.low) / column.step)
            middle = float(np.round(column.low + column.step * steps, column.decimals))
        near = abs(outer - inner) <= 1e-4 * self._scale[position]
        return None if near or middle in (inner, outer) else middle

    def count_changes(self, rows: Rows) -> NDArray[np.intp]:
        """In how many of the columns that may change people differ from this one."""
        mine, theirs = self.row[None, self._columns], rows[:, self._columns]
        same = (theirs == mine) | (np.isnan(theirs) & np.isnan(mine))
        return np.asarray((~same).sum(axis=1))

    def numbers_changed(self, row: NDArray[np.float64]) -> list[int]:
        """The numbers with more values than were tried in which somebody differs."""
        return [
            int(position)
            for position in self._columns
            if self.schema.columns[position].kind == "numerical"
            and not 0 < self.schema.columns[position].size <= _MOST_VALUES
            and row[position] != self.row[position]
        ]


class _Search:
    """Change after change, from the people that came nearest to what is sought."""

    def __init__(
        self, around: Neighbourhood, goal: Goal, asker: Asker, budget: int, job: Job | None
    ) -> None:
        self._around, self._goal, self._asker, self._job = around, goal, asker, job
        self._budget, self._spent = budget, False
        self._asked, self._queries = 0, 0
        self._rule: Rule = asker.rule

    def run(self) -> Near:
        around = self._around
        start = self._check(around.row[None])
        if start is None:
            return self._end(None)
        if self._is_sought(start)[0]:
            return self._end(around.neighbour(around.row), itself=True)
        people = around.row[None]
        best: Neighbour | None = None
        for n_changes in range(1, _MOST_CHANGES + 1):
            candidates = around.step(people)
            candidates = candidates[around.count_changes(candidates) == n_changes]
            if best is not None:
                # More changes only pay where they lead nearer.
                candidates = candidates[around.distance(candidates) < best.distance]
            found, checked = self._ask(candidates)
            if found is not None:
                best = self._refine(self._shorten(found))
            if self._spent or not len(checked):
                break
            promise = self._promise(checked)
            people = checked.rows[np.argsort(-promise, kind="stable")[:_BEAM]]
        return self._end(best)

    def _end(self, found: Neighbour | None, *, itself: bool = False) -> Near:
        return Near(
            self._goal, found, self._asked, self._queries, self._budget, self._spent, itself
        )

    def _ask(self, rows: Rows) -> tuple[Neighbour | None, Checked]:
        """Ask in the order of distance until somebody is found."""
        parts = [Checked.nothing(len(self._around.schema))]
        for begin in range(0, len(rows), _AT_ONCE):
            checked = self._check(rows[begin : begin + _AT_ONCE])
            if checked is None:
                break
            parts.append(checked)
            sought = np.flatnonzero(self._is_sought(checked))
            if len(sought):
                return self._around.neighbour(checked.rows[sought[0]]), Checked.join(parts)
            if self._job is not None:
                self._job.tell({"asked": self._asked, "queries": self._queries})
        return None, Checked.join(parts)

    def _check(self, rows: Rows) -> Checked | None:
        """Verdicts of as many rows as the budget still pays for; None where that is none."""
        schema = self._around.schema
        cost = query_cost(schema, rows, distinct_questions(schema, rows))
        fits = int(np.searchsorted(np.cumsum(cost), self._budget - self._queries, side="right"))
        if fits < len(rows):
            self._spent = True
        if not fits:
            return None
        checked = check_rows(self._score, schema, rows[:fits], decision=self._rule)
        self._asked += fits
        return checked

    def _score(self, rows: Rows) -> Scores:
        self._queries += len(rows)
        return self._asker.score(rows, self._job)

    def _is_sought(self, checked: Checked) -> Mask:
        return checked.flips if self._goal == "flip" else ~checked.flips & checked.is_paired

    def _promise(self, checked: Checked) -> NDArray[np.float64]:
        """How near people are to what is sought: a wide gap about the edge flips soon."""
        own, other = (
            np.asarray(self._rule.as_score(s)) for s in (checked.score, checked.partner_score)
        )
        gap = np.abs(own - other)
        edge = np.minimum(np.abs(own - 0.5), np.abs(other - 0.5))
        promise = gap - edge if self._goal == "flip" else edge - gap
        return np.asarray(np.nan_to_num(promise, nan=-1.0), dtype=np.float64)

    def _refine(self, best: Neighbour) -> Neighbour:
        """Halve the way of every changed number, where values between were not tried."""
        around, row = self._around, best.row
        for position in around.numbers_changed(row):
            outer, inner = float(row[position]), float(around.row[position])
            while (middle := around.between(position, inner, outer)) is not None:
                tried = row.copy()
                tried[position] = middle
                tried = complete(around.schema, tried[None])
                checked = self._check(tried) if around._could_be(tried)[0] else None
                if self._spent:
                    return around.neighbour(row)
                if checked is not None and self._is_sought(checked)[0]:
                    outer, row = middle, tried[0]
                else:
                    inner = middle
        return around.neighbour(row)

    def _shorten(self, best: Neighbour) -> Neighbour:
        """Take changes back one by one, as long as it is still somebody sought."""
        around, row = self._around, best.row
        for position in around._columns:
            mine, theirs = around.row[position], row[position]
            if mine == theirs or (np.isnan(mine) and np.isnan(theirs)):
                continue
            tried = row.copy()
            tried[position] = mine
            tried = complete(around.schema, tried[None])
            if not around._could_be(tried)[0]:
                continue
            checked = self._check(tried)
            if checked is None:
                break
            if self._is_sought(checked)[0]:
                row = tried[0]
        return around.neighbour(row)

"""Lines across the edge of a decision: how `guided` finds rare flips of models that tell labels.

Where protected values matter little, a row flips only if it lies very near the edge of the
decision. Labels do not say how near, but they say on which side. So one number of a natural row is
changed, farther and farther, until the label changes; the way back is halved until two rows a
single step apart are decided differently. The edge lies between them, and so does the edge under
another protected value if it has moved by more than what is left of the step: both rows are
checked. From there the next line starts along another number, where the edge is near already.

Numbers whose single steps matter little come nearest to the edge. Which these are is not known, so
numbers are drawn by how often their lines have ended at a flip.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.decisions import favors
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.partners import complete
from limi.table.rows import snap
from limi.table.schema import Schema
from limi.table.steps import movable
from limi.types import Index, Latents, Mask, Rows

__all__ = ["Lines"]

_HOPS = 3  # lines one after another: so many cells of a natural row change at most
_FARTHER = 4  # times as far, while the label stays
_NEAR = 64  # the first look of a line goes one such part of the column's range
_REAL_STEPS = 1 << 16  # in the range of a column without steps
_PRIOR = (0.15, 5.0)  # flips and edges that every number starts with
_QUESTIONS = 10  # that a line asks, about

Values = NDArray[np.float64]


class Lines:
    """Lines along numbers, and how often each number has led to a flip."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        ordered = np.array([column.kind in ("numerical", "ordered") for column in schema.columns])
        self._numbers = np.flatnonzero(movable(schema) & ordered)
        self._step = np.where(
            schema.step > 0, schema.step, (schema.high - schema.low) / _REAL_STEPS
        )
        self._flips = np.full(len(self._numbers), _PRIOR[0])
        self._edges = np.full(len(self._numbers), _PRIOR[1])

    @property
    def questions_each(self) -> int:
        """Questions that one natural row takes, about."""
        return _HOPS * _QUESTIONS

    @property
    def exist(self) -> bool:
        """Is there a number to go along?"""
        return len(self._numbers) > 0

    def search(
        self, session: Session, latents: Latents, rows: Rows, rng: np.random.Generator
    ) -> Iterator[tuple[Latents, Checked]]:
        """Rows at the edge with the latents of the rows that they come from, and their verdicts, as
        far as the budget goes."""
        labels = _ask(session, rows)
        for _ in range(_HOPS):
            if labels is None or not len(rows):
                return
            share = self._flips / self._edges
            which = rng.choice(len(self._numbers), size=len(rows), p=share / share.sum())
            line = _Line.of(self._schema, rows, self._numbers[which], self._step, rng)
            if not line.cross(session, labels) or not line.halve(session, labels):
                return
            there = np.flatnonzero(line.crossed)
            latents, labels, which = latents[there], labels[there], which[there]
            rows = line.put(there, line.near[there])
            both = np.concatenate([rows, line.put(there, line.far[there])])
            fresh = np.flatnonzero(session.unseen(both))
            checked = session.check_kept(both[fresh]).named("edge")
            of = fresh[: len(checked)] % max(len(there), 1)
            np.add.at(self._edges, which, 1.0)
            np.add.at(self._flips, which[np.unique(of[checked.flips])], 1.0)
            if len(checked):
                yield latents[of], checked
            if len(checked) < len(fresh):
                return


@dataclass
class _Line:
    """One number of each row: the last value with the row's label, and the first with another."""

    schema: Schema
    rows: Rows
    column: Index
    step: Values  # (n,) of that number
    near: Values
    far: Values  # NaN until the label has changed
    turn: Values  # 1 or -1: upwards or downwards
    first: Values  # how far the first look goes, in steps

    @staticmethod
    def of(
        schema: Schema, rows: Rows, column: Index, steps: Values, rng: np.random.Generator
    ) -> _Line:
        step = steps[column]
        cells = rows[np.arange(len(rows)), column]
        width = (schema.high - schema.low)[column] / step
        first = np.maximum(1.0, np.floor(width / _NEAR))
        turn = rng.choice([-1.0, 1.0], size=len(rows))
        return _Line(schema, rows, column, step, cells, np.full(len(rows), np.nan), turn, first)

    @property
    def crossed(self) -> Mask:
        """Which lines have met the edge."""
        return ~np.isnan(self.far)

    def put(self, lines: Index, cells: Values) -> Rows:
        """The rows of these lines with these values."""
        changed = self.rows[lines]
        changed[np.arange(len(lines)), self.column[lines]] = cells
        completed: Rows = complete(self.schema, snap(self.schema, changed))
        return completed

    def cross(self, session: Session, labels: Mask) -> bool:
        """Go farther until labels change, one way and then the other; False where the budget
        ends."""
        start, reach = self.near.copy(), self.first.copy()
        low, high = self.schema.low[self.column], self.schema.high[self.column]
        turns = np.where(np.isnan(start), 2, 0)  # a missing cell lies on no line
        while len(going := np.flatnonzero((turns < 2) & ~self.crossed)):
            away = start[going] + self.turn[going] * reach[going] * self.step[going]
            cells = np.clip(away, low[going], high[going])
            at_end = cells == self.near[going]
            back = going[at_end]
            turns[back] += 1
            self.turn[back] *= -1
            self.near[back], reach[back] = start[back], self.first[back]
            asked, cells = going[~at_end], cells[~at_end]
            told = _ask(session, self.put(asked, cells))
            if told is None:
                return False
            other = told != labels[asked]
            self.far[asked[other]] = cells[other]
            self.near[asked[~other]] = cells[~other]
            reach[asked] *= _FARTHER
        return True

    def halve(self, session: Session, labels: Mask) -> bool:
        """Bring both values of each line that crosses to a single step; False where the budget
        ends."""
        while True:
            steps = np.round((self.far - self.near) / self.step)
            middle = self.near + np.trunc(steps / 2) * self.step
            # NaN is not; and in a range of few numbers there may be none between two of them.
            between = (middle != self.near) & (middle != self.far)
            wide = np.flatnonzero((np.abs(steps) > 1) & between)
            if not len(wide):
                return True
            middle = middle[wide]
            told = _ask(session, self.put(wide, middle))
            if told is None:
                return False
            other = told != labels[wide]
            self.far[wide[other]] = middle[other]
            self.near[wide[~other]] = middle[~other]


def _ask(session: Session, rows: Rows) -> Mask | None:
    """Which rows are decided favorably; None where the budget ends."""
    if not len(rows):
        return np.zeros(0, dtype=bool)
    scores = session.ask(rows)
    return np.asarray(favors(scores)) if len(scores) == len(rows) else None

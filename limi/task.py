"""A task: everything a method may ask, and the memory of what was asked in this run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from limi.check import MAX_BATCH, Checked, Partner, check_rows, query_cost
from limi.generators._base import Generator
from limi.gradients import Gradients
from limi.rows import Distinct, KeySet, distinct, group
from limi.schema import Schema
from limi.tensors import OnDevice, Verdicts
from limi.thrift import Habits, check_thriftily, rows_at_once
from limi.types import Keys, Mask, Rows, Scores

__all__ = ["OutOfTime", "Task"]

_MOST_NOTED = 1 << 18  # keys that wait to be sorted


class OutOfTime(Exception):
    """The seconds of the budget are spent; the engine catches it and ends the run."""


@dataclass
class Task:
    """A schema, a target's `score` and a table, for one run of one method."""

    schema: Schema
    score: Callable[[Rows], Scores]
    rows: Rows
    partner: Partner = "widest"
    max_batch: int = MAX_BATCH
    generator: Generator | None = None
    keep_scores: bool = False  # do checks bring the scores under all combinations along?
    thrifty: bool = False  # ask protected values one after another, until a flip is seen
    gradients: Gradients | None = None
    on_device: OnDevice | None = None  # target and generator as tensors, where both can be
    rows_left: float = np.inf  # what the budget still pays for; the engine sets both
    queries_left: float = np.inf
    on_asked: Callable[[int], None] = lambda n: None
    out_of_time: Callable[[], bool] = lambda: False  # looked at before every call of the model
    notes: list[str] = field(default_factory=list)  # what a method wants the report to say
    facts: dict[str, float] = field(default_factory=dict)  # and its numbers
    _asked: KeySet = field(default_factory=KeySet, repr=False)

    def __post_init__(self) -> None:
        self._habits = Habits(len(self.schema.combinations))
        self._noted: list[Keys] = []
        self._n_noted = 0

    @property
    def capabilities(self) -> frozenset[str]:
        """What a method may rely on beside checks."""
        have = {
            "generator": self.generator is not None,
            "gradient": self.gradients is not None,
            "neurons": self.gradients is not None and bool(self.gradients.layers),
        }
        return frozenset(name for name, there in have.items() if there)

    def ask(self, rows: Any) -> Any:
        """Scores of rows as they are, as many as the budget pays for; tensors of tensors."""
        if len(rows) > self.queries_left:
            rows = rows[: int(self.queries_left)]
        self.queries_left -= len(rows)
        if self.on_device is not None and not isinstance(rows, np.ndarray):
            return self.on_device.ask(rows, self.spend, self._batch_there)
        starts = range(0, len(rows), self.max_batch)
        parts = [self._ask(rows[start : start + self.max_batch]) for start in starts]
        return np.concatenate([np.empty(0), *parts])

    def check(self, rows: Rows, origin: str = "") -> Checked:
        """Verdicts of rows, in order.

        Where the budget ends inside the batch, only the rows that it pays for come back; the
        engine stops there, so a method may yield what it gets without looking at its length.
        """
        if self.thrifty:
            return self._check_thriftily(rows).named(origin)
        rows, known = self._affordable(rows)
        checked = check_rows(
            self._ask,
            self.schema,
            rows,
            partner=self.partner,
            max_batch=self.max_batch,
            known=known,
            keep_scores=self.keep_scores,
        )
        self.rows_left -= len(rows)
        self.queries_left -= checked.queries
        self._note(known.keys[known.first])
        return checked.named(origin)

    def _check_thriftily(self, rows: Rows) -> Checked:
        """What a row costs is known only afterwards, so the oracle itself sees to the budget."""
        if len(rows) > self.rows_left:
            rows = rows[: int(self.rows_left)]
        parts: list[Checked] = []
        size = rows_at_once(self.schema)
        for start in range(0, max(len(rows), 1), size):
            part = rows[start : start + size]
            known = distinct(self.schema, part)
            checked = check_thriftily(
                self._ask,
                self.schema,
                part,
                known=known,
                habits=self._habits,
                max_batch=self.max_batch,
                max_queries=self.queries_left,
                keep_scores=self.keep_scores,
            )
            parts.append(checked)
            self.rows_left -= len(checked)
            self.queries_left -= checked.queries
            self._note(known.keys[known.first[known.first < len(checked)]])
            if len(checked) < len(part):
                self.queries_left = 0  # the next row might be too dear
                break
        return replace(Checked.join(parts), queries=sum(part.queries for part in parts))

    def check_tensors(self, rows: Any) -> tuple[Any, Verdicts]:
        """As many of these rows on the device as the budget has rows for, and their verdicts.

        For rows with keys that the run has not asked, and without a budget of queries.
        """
        assert self.on_device is not None
        if len(rows) > self.rows_left:
            rows = rows[: int(self.rows_left)]
        verdicts = self.on_device.check(rows, self.spend, self._batch_there, self.partner)
        self.rows_left -= len(rows)
        return rows, verdicts

    @property
    def _batch_there(self) -> int:
        """A device takes more rows at once, unless fewer than usual are wished for."""
        assert self.on_device is not None
        wished = self.max_batch
        return wished if wished < MAX_BATCH else max(wished, self.on_device.batch)

    def spend(self, n: int) -> None:
        """Count n rows that are asked elsewhere than by `score`; OutOfTime where it is too late."""
        if self.out_of_time():
            raise OutOfTime
        self.on_asked(n)

    def unseen(self, rows: Rows) -> Mask:
        """Which rows carry a key that was not asked before, the first of each key only."""
        self._settle()
        known = distinct(self.schema, rows)
        fresh = np.zeros(len(rows), dtype=bool)
        fresh[known.first[~self._asked.contains(known.keys[known.first])]] = True
        return fresh

    def _ask(self, rows: Rows) -> Scores:
        if self.out_of_time():
            raise OutOfTime
        scores = self.score(rows)
        self.on_asked(len(rows))
        return scores

    def _note(self, keys: Keys) -> None:
        """Remember keys that were asked; most methods never want to know, so sorting can wait."""
        self._noted.append(keys)
        self._n_noted += len(keys)
        if self._n_noted > _MOST_NOTED:
            self._settle()

    def _settle(self) -> None:
        """Put the keys that were noted into the set."""
        if self._noted:
            keys = np.concatenate(self._noted)
            keys = keys[group(keys)[0]]
            self._asked.add(keys[~self._asked.contains(keys)])
            self._noted, self._n_noted = [], 0

    def _affordable(self, rows: Rows) -> tuple[Rows, Distinct]:
        if len(rows) > self.rows_left:
            rows = rows[: int(self.rows_left)]
        known = distinct(self.schema, rows)
        if np.isfinite(self.queries_left):
            paid = np.cumsum(query_cost(self.schema, rows, known)) <= self.queries_left
            if not paid.all():
                # Nothing after the first row that is too dear, so that batches do not matter.
                rows = rows[: int(paid.argmin())]
                known = distinct(self.schema, rows)
                self.queries_left = float(query_cost(self.schema, rows, known).sum())
        return rows, known

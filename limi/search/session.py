"""A session: one run over a task, with what it has spent and what it has asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Rule
from limi.generators._base import Generator
from limi.gpu.verdicts import OnDevice, Verdicts
from limi.models.gradients import Gradients
from limi.search.ahead import GoesAhead
from limi.search.budget import Budget
from limi.search.check import (
    ALONE,
    MAX_BATCH,
    PAIRED,
    REFUSED,
    Checked,
    cause_sets,
    check_rows,
    query_cost,
)
from limi.search.frugal_check import FlipStatistics, check_frugally, rows_at_once
from limi.search.task import Task
from limi.search.tried import most_queries
from limi.system.watch import OutOfTime, Watch
from limi.table.partners import complete, distinct_questions
from limi.table.rows import Distinct, KeySet, distinct
from limi.table.schema import Schema
from limi.types import Index, Keys, Mask, Rows, Scores

__all__ = ["Session"]

_MOST_NOTED = 1 << 18  # keys that wait to be sorted
_MOST_REFUSED = 100  # rows that break a rule, for each that keeps them all ...
_FEW_REFUSED = 100_000  # ... and so many in any case, before a search is called vain


class Session:
    """What a method searches with: checks of rows, as far as the budget goes.

    A session that is part of something larger brings its `watch`, by which the task's `score` is
    timed already. `frugal` asks protected values one after another, until a flip is seen.
    """

    def __init__(
        self,
        task: Task,
        budget: Budget | None = None,
        watch: Watch | None = None,
        *,
        frugal: bool = False,
    ) -> None:
        budget = Budget() if budget is None else budget
        self.task = task
        self.watch = Watch(max_seconds=budget.max_seconds) if watch is None else watch
        self.frugal = frugal
        self.rows_left = np.inf if budget.max_rows is None else budget.max_rows
        self.is_starved = False  # hardly a proposed row keeps the rules
        self.queries_left = np.inf if budget.max_queries is None else budget.max_queries
        self.findings_left = np.inf if budget.max_findings is None else budget.max_findings
        self.remembers = True  # may `unseen` be asked for? A method that never does spares the keys
        self.keep_scores = False  # do checks bring the scores under all combinations along?
        self.notes: list[str] = []  # what the method wants the report to say
        self.facts: dict[str, float] = {}  # and its numbers
        self.used: dict[str, Any] = {}  # settings that the budget changed
        self.proposed = self.refused = 0  # rows of the method, and those that broke a rule
        self.alone = self.closed = 0  # rows without a partner, and partners that were not asked
        self.first_check: float | None = None  # the watch's seconds when the first row was checked
        self._score = self.watch.timed(task.score) if watch is None else task.score
        self._statistics = FlipStatistics(len(task.schema.combinations))
        self._asked = KeySet()
        self._noted: list[Keys] = []
        self._n_noted = 0

    @property
    def schema(self) -> Schema:
        """What rows may hold."""
        return self.task.schema

    @property
    def rows(self) -> Rows:
        """The rows of the table."""
        return self.task.rows

    @property
    def decision(self) -> Rule:
        """Which answers are different decisions."""
        return self.task.decision

    @property
    def max_batch(self) -> int:
        """Rows that the model is asked at once, at most."""
        return self.task.max_batch

    @property
    def generator(self) -> Generator | None:
        """The imitator of the table, where there is one."""
        return self.task.generator

    @property
    def gradients(self) -> Gradients | None:
        """Slopes of the model, where it has them."""
        return self.task.gradients

    @property
    def on_device(self) -> OnDevice | None:
        """Target and generator as tensors, where both can be."""
        return self.task.on_device

    @property
    def ahead(self) -> GoesAhead | None:
        """Workers that may look before the search does: where only rows and findings are counted,
        and no rule of the table has a say in what is asked."""
        ahead = self.task.ahead
        return ahead if ahead is not None and self.is_plain and ahead.can_go_ahead else None

    @property
    def is_plain(self) -> bool:
        """Are rows and findings all that is counted, and has the table no rules?"""
        plain = not self.schema.rules and not self.frugal and not self.keep_scores
        return plain and not self.watch.limited and not np.isfinite(self.queries_left)

    def look_up(self, rows: Rows, *, as_if: bool = False) -> Checked:
        """Verdicts of rows that count when they are taken (`take`), or not at all."""
        known = distinct_questions(self.schema, rows)
        return self._oracle(rows, known, self._score, as_if=as_if)

    def take_checked(self, checked: Checked) -> tuple[Checked, int]:
        """Of rows that a worker has checked, as many as the budget has rows for, and the questions
        that they have cost; they count as if they had been checked here."""
        if len(checked) > self.rows_left:
            checked = checked[: int(self.rows_left)]
        known = distinct_questions(self.schema, checked.rows)
        queries = int(query_cost(self.schema, checked.rows, known).sum())
        self.rows_left -= len(checked)
        self._note(known.keys[known.first])
        self.watch.count(queries)
        return checked, queries

    def take_surveyed(self, parts: Sequence[Checked]) -> Checked:
        """What `survey` would have told of rows that were looked up in parts."""
        checked = _together(parts)
        known = distinct_questions(self.schema, checked.rows)
        queries = int(query_cost(self.schema, checked.rows, known).sum())
        self.watch.count(queries)
        return replace(checked, queries=queries)

    def take(self, keys: Keys, queries: int) -> None:
        """Count rows with these keys that were looked up, here or by a worker."""
        self.rows_left -= len(keys)
        self._note(keys)
        self.watch.count(queries)

    def take_scores(self, scores: Scores) -> Scores:
        """Answers of a worker, as `ask` would tell them; they count as if they were asked here."""
        self.watch.count(len(scores))
        return np.asarray(self.decision.as_score(scores))

    def ask(self, rows: Any) -> Any:
        """Scores in [0, 1] of rows as they are, as many as the budget pays for; tensors of tensors.

        For what steers a search: of classes and numbers, what `Rule.as_score` makes of them.
        """
        rows = complete(self.schema, rows)
        if len(rows) > self.queries_left:
            rows = rows[: int(self.queries_left)]
        self.queries_left -= len(rows)
        there = self.on_device is not None and not isinstance(rows, np.ndarray)
        ask: Callable[[Any], Any] = self._ask_there if there else self._ask
        if not self.watch.limited or not len(rows):
            return self.decision.as_score(ask(rows))
        parts = list(self._in_time(ask, rows, 1))
        if not there:
            return self.decision.as_score(np.concatenate(parts))
        import torch

        return self.decision.as_score(torch.cat(parts))

    @property
    def affordable(self) -> float:
        """Rows that can surely be checked yet, whatever they cost."""
        most = most_queries(self.schema)
        paid = self.queries_left / (most + self.task.recheck)
        return min(self.rows_left, paid, self.watch.affordable / most)

    def release(self, checked: Checked, n_new: int) -> None:
        """Give back what was put by for flips that are in the ledger already: each finding is
        asked about again once, and these rows brought so many new ones."""
        if self.task.recheck and np.isfinite(self.queries_left) and checked.flips.any():
            flipping = distinct(self.schema, checked.rows[checked.flips])
            self.queries_left += self.task.recheck * (len(flipping.first) - n_new)

    def enter(self, phase: str, questions: int = 0) -> None:
        """A method says what it does from now on: labels, search."""
        if questions:
            self.watch.planned[phase] = questions
        self.watch.enter(phase)

    @contextmanager
    def beside_rows(self) -> Iterator[None]:
        """Rows checked in this block do not count; they answer for rows that do."""
        kept, self.rows_left = self.rows_left, np.inf
        try:
            yield
        finally:
            self.rows_left = kept

    def check(self, rows: Rows, origin: str = "", *, are_real: bool = False) -> Checked:
        """Verdicts of rows, in order.

        Where the budget ends inside the batch, only the rows that it pays for come back; the
        engine stops there, so a method may yield what it gets without looking at its length.

        Derived cells are computed first. A row that breaks a rule of the table is not asked and
        costs nothing: it comes back as one that does not flip, with scores of 0, as far from the
        edge as can be, so that no search is drawn to it (`Checked.is_asked` tells them apart).
        Rows of the table itself, which `are_real`, are asked in any case.
        """
        rows = complete(self.schema, rows)
        broken = None if are_real else self.find_refused(rows)
        if broken is None:
            return self.check_kept(rows).named(origin)
        kept = np.flatnonzero(~broken)
        checked = self.check_kept(rows[kept])
        end = len(rows) if len(checked) == len(kept) else int(kept[len(checked)])
        return self._with_refused(rows[:end], kept[: len(checked)], checked).named(origin)

    def check_kept(self, rows: Rows) -> Checked:
        """Verdicts of rows that keep the rules, as their proposer knows."""
        self._begin_checking()
        if self.frugal:
            return self._check_frugally(rows)
        return self._checked(self._check, rows)

    def _begin_checking(self) -> None:
        """What a method does before its first check, such as labels, can then be told apart."""
        if self.first_check is None:
            self.first_check = self.watch.seconds

    def find_broken(self, rows: Any) -> Any:
        """Which rows break a rule of the table; None where there are no such rules."""
        enforcer = self.schema.enforcer
        return None if not enforcer.constraints else enforcer.breaks(rows)

    def find_refused(self, rows: Any) -> Any:
        """Which of these proposed rows break a rule, and count them; None where none does."""
        broken = self.find_broken(rows)
        if broken is None:
            return None
        self.proposed += len(rows)
        refused = int(broken.sum())
        if not refused:
            return None
        self.refused += refused
        kept = self.proposed - self.refused
        if self.refused > max(_MOST_REFUSED * kept, _FEW_REFUSED):
            self.notes.append(
                f"the search ended early: of {self.proposed:,} rows that it proposed {kept:,} "
                "keep the rules of the table"
            )
            self.rows_left = 0
            self.is_starved = True
        return broken

    def _with_refused(self, rows: Rows, kept: Index, checked: Checked) -> Checked:
        """Verdicts of the rows that were asked, among those that were not."""
        n = len(rows)

        def spread(told: NDArray[Any], otherwise: Any) -> NDArray[Any]:
            whole = np.full((n, *told.shape[1:]), otherwise, dtype=told.dtype)
            whole[kept] = told
            return whole

        partner = rows.copy()
        partner[kept] = checked.partner
        asked = checked.standing if len(checked.standing) else PAIRED
        standing = np.full(n, REFUSED, dtype=np.int8)
        standing[kept] = asked
        return replace(
            checked,
            rows=rows,
            partner=partner,
            score=spread(checked.score, 0.0),
            partner_score=spread(checked.partner_score, 0.0),
            flips=spread(checked.flips, False),
            standing=standing,
            scores=spread(checked.scores, np.nan) if self.keep_scores else checked.scores,
            causes=spread(checked.causes, 0) if self._tells_causes else checked.causes,
            bits=spread(checked.bits, 0) if len(checked.bits) else checked.bits,
        )

    @property
    def _tells_causes(self) -> bool:
        return not self.frugal and bool(cause_sets(self.schema))

    def survey(self, rows: Rows) -> Checked:
        """Verdicts of rows beside any budget but that of seconds, with what is decided under every
        value: for rates."""
        return self._checked(
            lambda part: self._oracle(part, distinct_questions(self.schema, part), as_if=True),
            rows,
        )

    def without_rules(self) -> Session:
        """A session over the same task if nothing went along with protected values."""
        task = replace(self.task, schema=self.schema.unruled, score=self._score)
        return Session(task, watch=self.watch)

    def scores(self, rows: Rows) -> Scores:
        """Scores of rows as they are, beside any budget but that of seconds."""
        return self._ask(rows)

    def _checked(self, check: Callable[[Rows], Checked], rows: Rows) -> Checked:
        if not self.watch.limited or not len(rows):
            return check(rows)
        return _together(list(self._in_time(check, rows, len(self.schema.combinations))))

    def _in_time(self, ask: Callable[[Any], Any], rows: Any, cost: int) -> Iterator[Any]:
        """Answers to rows in parts of about a second, as many as budget and time allow.

        Where there is no time for the first of them, OutOfTime ends the run.
        """
        start = 0
        while start < len(rows):
            part = rows[start : start + max(1, self.watch.at_once(self.max_batch) // cost)]
            try:
                answer = ask(part)
            except OutOfTime:
                if not start:
                    raise
                return
            yield answer
            if len(answer) < len(part):
                return
            start += len(part)

    def _check(self, rows: Rows) -> Checked:
        """As many of the rows as are paid for, each with its second check if it flips: a row that
        does not flip leaves what was put by for it to the rows behind it."""
        if len(rows) > self.rows_left:
            rows = rows[: int(self.rows_left)]
        parts: list[Checked] = []
        start = 0
        while start < len(rows) or not parts:
            known = distinct_questions(self.schema, rows[start:])
            n = self._count_affordable(rows[start:], known)
            if n < len(rows) - start:
                known = distinct_questions(self.schema, rows[start : start + n])
            checked = self._oracle(rows[start : start + n], known)
            self._count(checked.closed, int((checked.standing == ALONE).sum()))
            self.rows_left -= n
            self._pay(checked, known)
            self._note(known.keys[known.first])
            parts.append(checked)
            start += n
            if not n:
                if start < len(rows):
                    # Nothing after the first row that is too dear, so that batches do not matter.
                    self.queries_left = 0.0
                break
        return _together(parts)

    def _pay(self, checked: Checked, known: Distinct) -> None:
        """Take what rows have cost, and what it will cost to ask about their flips again."""
        flips = np.unique(known.of[: len(checked)][checked.flips])
        self.queries_left -= checked.queries + self.task.recheck * len(flips)
        self.watch.owed += self.task.recheck * int(checked.flips.sum())

    def _oracle(
        self,
        rows: Rows,
        known: Distinct,
        ask: Callable[[Rows], Scores] | None = None,
        *,
        as_if: bool = False,
    ) -> Checked:
        return check_rows(
            ask or self._ask,
            self.schema,
            rows,
            partner=self.task.partner,
            max_batch=self.max_batch,
            known=known,
            keep_scores=self.keep_scores or (as_if and self.decision.kind != "favorable"),
            as_if=as_if,
            decision=self.decision,
        )

    def _check_frugally(self, rows: Rows) -> Checked:
        """What a row costs is known only afterwards, so the oracle itself sees to the budget."""
        if len(rows) > self.rows_left:
            rows = rows[: int(self.rows_left)]
        parts: list[Checked] = []
        size = rows_at_once(self.schema)
        for start in range(0, max(len(rows), 1), size):
            part = rows[start : start + size]
            known = distinct_questions(self.schema, part)
            paid, in_time = self.queries_left, self.watch.affordable
            checked = check_frugally(
                self._ask,
                self.schema,
                part,
                known=known,
                statistics=self._statistics,
                max_batch=self.max_batch,
                max_queries=min(paid, in_time),
                recheck=self.task.recheck,
                partner=self.task.partner,
                keep_scores=self.keep_scores,
                decision=self.decision,
            )
            parts.append(checked)
            self._count(checked.closed, int((checked.standing == ALONE).sum()))
            self.rows_left -= len(checked)
            self._pay(checked, known)
            self._note(known.keys[known.first[known.first < len(checked)]])
            if len(checked) < len(part):
                # The next row might be too dear, or take too long.
                if in_time < paid:
                    self.watch.ran_out = True
                else:
                    self.queries_left = 0
                break
        return _together(parts)

    def check_tensors(self, rows: Any) -> tuple[Any, Verdicts]:
        """As many of these rows on the device as the budget has rows for, and their verdicts.

        For rows with keys that the run has not asked, and without a budget of queries.
        """
        self._begin_checking()
        if len(rows) > self.rows_left:
            rows = rows[: int(self.rows_left)]
        if not self.watch.limited or not len(rows):
            verdicts = self._check_there(rows)
        else:
            cost = len(self.schema.combinations)
            verdicts = Verdicts.join(list(self._in_time(self._check_there, rows, cost)))
            rows = rows[: len(verdicts)]
        self.rows_left -= len(rows)
        return rows, verdicts

    def _check_there(self, rows: Any) -> Verdicts:
        assert self.on_device is not None
        start = self.watch.seconds
        verdicts = self.on_device.check(rows, self._spend, self._batch_there, self.task.partner)
        self._count(verdicts.closed, verdicts.alone)
        self.watch.learn(verdicts.queries, self.watch.seconds - start)
        return verdicts

    def _ask_there(self, rows: Any) -> Any:
        assert self.on_device is not None
        start = self.watch.seconds
        scores = self.on_device.ask(rows, self._spend, self._batch_there)
        self.watch.learn(len(rows), self.watch.seconds - start)
        return scores

    @property
    def _batch_there(self) -> int:
        """A device takes more rows at once, unless fewer than usual are asked for."""
        assert self.on_device is not None
        wished = self.max_batch
        most = wished if wished < MAX_BATCH else max(wished, self.on_device.batch)
        return self.watch.at_once(most)

    def _spend(self, n: int) -> None:
        """Count n rows before they are asked on a device; OutOfTime where it is too late."""
        self.watch.look()
        self.watch.count(n)

    def _count(self, closed: int, alone: int) -> None:
        self.closed += closed
        self.alone += alone

    def unseen(self, rows: Rows) -> Mask:
        """Which rows carry a key that was not asked before, the first of each key only; of rows
        that keep the rules of the table."""
        self._settle()
        fresh = np.zeros(len(rows), dtype=bool)
        broken = self.find_refused(rows)
        kept = np.arange(len(rows)) if broken is None else np.flatnonzero(~broken)
        known = distinct(self.schema, rows[kept])
        first = known.first[~self._asked.contains(known.keys[known.first])]
        fresh[kept[first]] = True
        return fresh

    def _ask(self, rows: Rows) -> Scores:
        return self.watch.ask(self._score, rows, self.max_batch)

    def _note(self, keys: Keys) -> None:
        """Remember keys that were asked; most methods never want to know, so sorting can wait."""
        if not self.remembers:
            return
        self._noted.append(keys)
        self._n_noted += len(keys)
        if self._n_noted > _MOST_NOTED:
            self._settle()

    def _settle(self) -> None:
        """Put the keys that were noted into the set."""
        if self._noted:
            self._asked.take_new(np.concatenate(self._noted))
            self._noted, self._n_noted = [], 0

    def _count_affordable(self, rows: Rows, known: Distinct) -> int:
        """How many of the rows are paid for even if all of them flip."""
        if not np.isfinite(self.queries_left):
            return len(rows)
        cost = query_cost(self.schema, rows, known)
        cost[known.first] += self.task.recheck
        paid = np.cumsum(cost) <= self.queries_left
        return len(rows) if paid.all() else int(paid.argmin())


def _together(parts: Sequence[Checked]) -> Checked:
    """Parts of one check as the check, with their counts."""
    if len(parts) == 1:
        return parts[0]
    favorable = [part.favorable for part in parts if len(part.favorable)]
    return replace(
        Checked.join(parts),
        queries=sum(part.queries for part in parts),
        favorable=np.sum(favorable, axis=0) if favorable else parts[0].favorable,
        closed=sum(part.closed for part in parts),
        as_if=tuple(map(np.concatenate, zip(*(part.as_if for part in parts), strict=True))),
    )

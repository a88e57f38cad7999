"""Rounds: rows that are drawn without looking at answers, checked one draw after another.

Such draws are known before they are asked, so that workers may check them ahead of the search,
which takes their verdicts in its own order and by its own budget. People of whom rates are measured
are such draws as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from limi.decisions import Rule, favors
from limi.search.ahead import News
from limi.search.check import Checked, check_rows
from limi.search.partner import Partner
from limi.search.session import Session
from limi.table.rows import KeySet, distinct, keys
from limi.table.schema import Schema
from limi.types import Rows, Scores

__all__ = ["check_rounds", "survey_people"]

_WORTH_IT = 8  # rounds that a budget of rows must allow, before workers go ahead
_SECONDS = 0.1  # of the model that a round of people takes at least ...
_ROUNDS_EACH = 2  # ... and rounds for each worker, because the slowest is waited for


def check_rounds(
    session: Session,
    draws: Iterator[Any],
    decode: Callable[[Any], Rows] = np.asarray,
    *,
    unseen: bool = False,
) -> Iterator[Checked]:
    """What is found of each draw, one after another; with `unseen` of rows alone whose keys were
    not asked before.

    Nothing else may be drawn from the same source, because draws are made ahead.
    """
    first = next(draws, None)
    if first is None:
        return
    draws = chain([first], draws)
    if session.ahead is not None and session.rows_left >= _WORTH_IT * len(first):
        yield from _follow(session, draws, decode, unseen=unseen)
    for drawn in draws:
        yield _check(session, decode(drawn), unseen=unseen)


def survey_people(
    session: Session, people: Any, decode: Callable[[Any], Rows] = np.asarray
) -> Checked:
    """What `Session.survey` tells of people, by workers where these are worth it."""
    ahead, n_rounds = session.ahead, 0
    if ahead is not None:
        seconds = len(people) * len(session.schema.combinations) * ahead.per_row
        n_rounds = min(_ROUNDS_EACH * ahead.n_workers, int(seconds / _SECONDS), len(people))
    if ahead is None or n_rounds < 2:
        return session.survey(decode(people))
    blocks = np.array_split(people, n_rounds)
    going = ahead.go_ahead(_scout(session, decode, as_if=True), blocks, News())
    parts: list[Checked] = []
    try:
        for brought in going:
            for known in brought:
                left = blocks[len(parts)]
                parts.append(session.look_up(decode(left), as_if=True) if known is None else known)
    finally:
        going.close()
    # Where workers cannot go on:
    parts += [session.look_up(decode(left), as_if=True) for left in blocks[len(parts) :]]
    return session.take_surveyed(parts)


def _scout(
    session: Session, decode: Callable[[Any], Rows], *, unseen: bool = False, as_if: bool = False
) -> _Checking:
    task = session.task
    told = task.schema, decode, task.partner, task.decision, task.max_batch
    return _Checking(*told, unseen=unseen, as_if=as_if)


def _check(session: Session, rows: Rows, *, unseen: bool) -> Checked:
    """Verdicts of one draw, asked here."""
    return session.check_kept(rows[session.unseen(rows)]) if unseen else session.check(rows)


def _follow(
    session: Session, draws: Iterable[Any], decode: Callable[[Any], Rows], *, unseen: bool
) -> Iterator[Checked]:
    """The same with verdicts that workers bring."""
    ahead = session.ahead
    assert ahead is not None
    scout = _scout(session, decode, unseen=unseen)
    news, drawn = News(), []

    def jobs() -> Iterator[Any]:
        for one in draws:
            drawn.append(one)
            yield one

    going = ahead.go_ahead(scout, jobs(), news)
    try:
        for brought in going:
            for known in brought:
                this = drawn.pop(0)
                if known is None:
                    checked = _check(session, decode(this), unseen=unseen)
                else:
                    checked = _take(session, known, unseen=unseen)
                if unseen:
                    news.tell(keys(session.schema, checked.rows))
                yield checked
    finally:
        going.close()
    for this in drawn:  # where workers cannot go on
        yield _check(session, decode(this), unseen=unseen)


def _take(session: Session, known: Checked, *, unseen: bool) -> Checked:
    """Verdicts that a worker has brought, as many as the budget has rows for."""
    if unseen:
        known = known[session.unseen(known.rows)]
    checked, queries = session.take_checked(known)
    favorable = np.zeros(0, dtype=np.int64)
    if session.decision.kind == "favorable":
        favorable = favors(session.decision.as_score(checked.scores)).sum(axis=0)
    return replace(checked, queries=queries, favorable=favorable, scores=np.empty((0, 0)))


@dataclass
class _Checking:
    """Checks draws; with `unseen` no keys that the search has told."""

    schema: Schema
    decode: Callable[[Any], Rows]
    partner: Partner
    decision: Rule
    max_batch: int
    unseen: bool = False
    as_if: bool = False  # are verdicts for a rate, with what is decided under every value?
    seen: KeySet = field(default_factory=KeySet)

    def hear(self, news: Any) -> None:
        """Keys that were asked."""
        self.seen.add(news)

    def look(self, score: Callable[[Rows], Scores], job: Any) -> Checked:
        """Verdicts of a draw, with the scores under every combination."""
        rows = self.decode(job)
        if self.unseen:
            known = distinct(self.schema, rows)
            rows = rows[known.first[~self.seen.contains(known.keys[known.first])]]
        return check_rows(
            score,
            self.schema,
            rows,
            partner=self.partner,
            max_batch=self.max_batch,
            keep_scores=not self.as_if or self.decision.kind != "favorable",
            as_if=self.as_if,
            decision=self.decision,
        )

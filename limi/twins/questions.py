"""Pairs of people put to the model: each distinct row once, as far as the budget goes."""

from __future__ import annotations

import numpy as np

from limi.decisions import favors, opposes
from limi.search.session import Session
from limi.search.steadiness import Steadiness, always_flip
from limi.types import Index, Mask, Rows, Scores

__all__ = ["Questions", "Spent", "cells_differ"]


class Spent(Exception):
    """The budget of queries or seconds is spent; what was answered before still holds."""


class Questions:
    """Asks a session about people and their twins.

    Columns that the model does not take (`seen` has the others) tell no questions apart: a twin
    that differs in them alone is not asked.
    """

    def __init__(
        self,
        session: Session,
        seen: Index,
        told: Steadiness | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.session, self.seen = session, seen
        self._told = told
        self._rng = np.random.default_rng(0) if rng is None else rng
        self.asked = 0

    def score(self, rows: Rows) -> Scores:
        """A score for each row; Spent where there is no budget for all of them."""
        if not len(rows):
            return np.empty(0)
        first, number = _distinct(rows[:, self.seen])
        answers: Scores = self.score_each(rows[first])[number]
        return answers

    def score_twins(self, rows: Rows, scores: Scores, twins: Rows) -> Scores:
        """Scores of the twins of rows whose own scores are known."""
        other = self.differ(rows, twins)
        told = scores.copy()
        told[other] = self.score(twins[other])
        return told

    def differ(self, rows: Rows, twins: Rows) -> Mask:
        """Which twins differ from their rows in what the model sees."""
        return np.asarray(cells_differ(rows[:, self.seen], twins[:, self.seen]).any(axis=1))

    def compare(self, rows: Rows, scores: Scores, twins: Rows) -> tuple[Mask, Mask]:
        """Who is decided favorably as their twin only, and who unfavorably.

        Where the model's answers move, a change counts only if both keep their decision each time
        they are asked, as everywhere.
        """
        answers = self.score_twins(rows, scores, twins)
        gains = opposes(scores) & favors(answers)
        losses = favors(scores) & opposes(answers)
        flips = np.flatnonzero(gains | losses)
        told = self._told
        if told is not None and not told.steady and len(flips):
            kept, _ = always_flip(
                self.score_each,
                rows[flips],
                twins[flips],
                self._rng,
                company=self.session.rows if told.in_company else None,
                max_batch=self.session.max_batch,
            )
            gains[flips[~kept]] = losses[flips[~kept]] = False
        return gains, losses

    def score_each(self, rows: Rows) -> Scores:
        """Scores of rows as they stand, also of those that repeat: their company may matter."""
        if len(rows) > self.session.queries_left:
            raise Spent
        answers: Scores = self.session.ask(rows)
        self.asked += len(answers)
        if len(answers) < len(rows):  # there was no time for the others
            raise Spent
        return answers


def cells_differ(rows: Rows, others: Rows) -> Mask:
    """Cell by cell; a missing one equals another."""
    return np.asarray((rows != others) & ~(np.isnan(rows) & np.isnan(others)))


def _distinct(rows: Rows) -> tuple[Index, Index]:
    """Where each distinct row stands first, in the order of the rows, and which one each is."""
    plain = np.ascontiguousarray(np.where(np.isnan(rows), np.nan, rows + 0.0))
    if not plain.shape[1]:
        return np.zeros(1, dtype=np.intp), np.zeros(len(rows), dtype=np.intp)
    whole = plain.view(np.dtype((np.void, plain.dtype.itemsize * plain.shape[1])))[:, 0]
    _, first, number = np.unique(whole, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[number]

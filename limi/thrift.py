"""The oracle for a budget of queries: protected values one after another, until a flip is seen.

A key that flips is settled by two values that disagree; only a key that does not flip needs them
all. Which values disagree soonest is learned on the way: those with the lowest and the highest
share of favorable decisions go first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from limi.check import Checked, _parts
from limi.rows import Distinct
from limi.schema import Schema
from limi.types import Index, Rows, Scores

__all__ = ["Habits", "check_thriftily"]


@dataclass
class Habits:
    """How often each protected combination was decided favorably so far."""

    n_combinations: int
    asked: NDArray[np.int64] = field(init=False)
    favorable: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.asked = np.zeros(self.n_combinations, dtype=np.int64)
        self.favorable = np.zeros(self.n_combinations, dtype=np.int64)

    def order(self) -> Index:
        """Combinations in turn from both ends: least favored, most favored, next least, ...

        Before anything was learned the ends are the first and the last combination, which for
        a number such as age are its extremes.
        """
        rate = (self.favorable + 0.5) / (self.asked + 1.0)
        ascending = np.argsort(rate, kind="stable")
        turns = np.empty_like(ascending)
        half = (self.n_combinations + 1) // 2
        turns[0::2] = ascending[:half]
        turns[1::2] = ascending[half:][::-1]
        return turns

    def learn(self, combination: int, favorable: int, asked: int) -> None:
        """Count decisions under one combination."""
        self.favorable[combination] += favorable
        self.asked[combination] += asked


def check_thriftily(
    score: Callable[[Rows], Scores],
    schema: Schema,
    rows: Rows,
    *,
    known: Distinct,
    habits: Habits,
    max_batch: int,
) -> Checked:
    """Verdicts of rows like those of `check_rows`, for fewer queries where rows flip.

    The partner is the first value seen on the other side. Rows of one key are taken together, so
    `rows` should not repeat keys with different protected values of their own.
    """
    combinations, index = schema.combinations, schema.protected_index
    n_keys = len(known.first)
    scores = np.full((n_keys, len(combinations)), np.nan)
    queries = 0

    def ask(keys: Index, combination: Index) -> None:
        nonlocal queries
        for part in _parts(len(keys), max_batch):
            asked = rows[known.first[keys[part]]].copy()
            asked[:, index] = combinations[combination[part]]
            scores[keys[part], combination[part]] = score(asked)
        queries += len(keys)

    open_keys = np.arange(n_keys)
    order = habits.order()  # fixed for the batch, so that the result depends on no part of it
    for place, combination in enumerate(order):
        if not len(open_keys):
            break
        ask(open_keys, np.full(len(open_keys), combination))
        answers = scores[open_keys, combination] > 0.5
        habits.learn(int(combination), int(answers.sum()), len(answers))
        if place:
            first = scores[open_keys, order[0]] > 0.5
            open_keys = open_keys[answers == first]

    own = schema.combination_of(rows)
    inside = own >= 0
    unknown = np.flatnonzero(inside & np.isnan(scores[known.of, np.maximum(own, 0)]))
    unknown = unknown[_first_of(known.of[unknown] * len(combinations) + own[unknown])]
    ask(known.of[unknown], own[unknown])
    mine = np.where(inside, scores[known.of, np.maximum(own, 0)], np.nan)
    stray = np.flatnonzero(~inside)
    for part in _parts(len(stray), max_batch):
        mine[stray[part]] = score(rows[stray[part]])
    queries += len(stray)
    return _verdicts(schema, rows, scores[known.of], mine, own, order, queries)


def _verdicts(
    schema: Schema,
    rows: Rows,
    scores: NDArray[np.float64],
    mine: Scores,
    own: Index,
    order: Index,
    queries: int,
) -> Checked:
    asked = ~np.isnan(scores)
    flipped = asked & ((scores > 0.5) != (mine > 0.5)[:, None])
    flips = flipped.any(axis=1)
    # The first on the other side in the order of asking; a row that does not flip was asked
    # under every combination, so its partner is the one with the widest gap, as elsewhere.
    line = np.arange(len(rows))
    gap = np.where(asked, np.round(np.abs(scores - mine[:, None]), 6), -1.0)
    inside = own >= 0
    gap[line[inside], own[inside]] = -1.0
    chosen = np.where(flips, order[flipped[:, order].argmax(axis=1)], gap.argmax(axis=1))
    partner = rows.copy()
    if len(rows):
        partner[:, schema.protected_index] = schema.combinations[chosen]
    return Checked(rows, mine, partner, scores[line, chosen], flips, queries=queries, scores=scores)


def _first_of(values: Index) -> Index:
    return np.sort(np.unique(values, return_index=True)[1])

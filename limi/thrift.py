"""The oracle for a budget of queries: protected values one after another, until a flip is seen.

A key that flips is settled by two values that disagree; only a key that does not flip needs them
all. The row's own value goes first, for a finding names its decision in any case; then the values
that disagree soonest with such a decision, which is learned on the way. (An own value that is not
among those compared goes last.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from limi.check import Checked, _parts
from limi.rows import Distinct
from limi.schema import Schema
from limi.types import Index, Mask, Rows, Scores

__all__ = ["Habits", "check_thriftily"]


@dataclass
class Habits:
    """How often each protected combination disagreed with a decision known before."""

    n_combinations: int
    asked: NDArray[np.int64] = field(init=False)
    differed: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        # One line for unfavorable, one for favorable decisions.
        self.asked = np.zeros((2, self.n_combinations), dtype=np.int64)
        self.differed = np.zeros((2, self.n_combinations), dtype=np.int64)

    def order(self) -> Index:
        """(2, combinations): for either decision, the combinations that flip it soonest first.

        What was never asked counts as likely, from both ends in turn: the ends of a number such
        as age are its extremes. Later combinations are counted where the earlier ones agreed, so
        that one that flips little more than the first may stay behind it.
        """
        rate = (self.differed + 0.5) / (self.asked + 1.0)
        ends = _from_both_ends(self.n_combinations)
        return ends[np.argsort(-rate[:, ends], axis=1, kind="stable")]

    def learn(self, decision: int, combination: Index, differed: Mask) -> None:
        """Count answers to combinations that were asked after this decision."""
        np.add.at(self.asked[decision], combination, 1)
        np.add.at(self.differed[decision], combination[differed], 1)


def _from_both_ends(n: int) -> Index:
    ends = np.empty(n, dtype=np.intp)
    half = (n + 1) // 2
    ends[0::2] = np.arange(half)
    ends[1::2] = np.arange(half, n)[::-1]
    return ends


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

    The partner is the value that showed the flip (of several the widest gap). Rows of one key are
    taken together; those with another protected value than the first of them cost a query more.
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

    own = schema.combination_of(rows)
    order = habits.order()  # fixed for the batch, so that the result depends on no part of it
    # Where a row's own value is none of the combinations, one of these stands for it: rows of
    # one key may bring several such values.
    base = np.where(own[known.first] >= 0, own[known.first], order[0, 0])
    ask(np.arange(n_keys), base)
    decided = (scores[np.arange(n_keys), base] > 0.5).astype(np.intp)
    open_keys = np.arange(n_keys)
    for place in range(len(combinations)):
        if not len(open_keys):
            break
        combination = order[decided[open_keys], place]
        new = combination != base[open_keys]
        keys, combination = open_keys[new], combination[new]
        ask(keys, combination)
        differs = (scores[keys, combination] > 0.5) != decided[keys]
        for decision in (0, 1):
            such = decided[keys] == decision
            habits.learn(decision, combination[such], differs[such])
        still = np.ones(n_keys, dtype=bool)
        still[keys[differs]] = False
        open_keys = open_keys[still[open_keys]]

    inside = own >= 0
    unknown = np.flatnonzero(inside & np.isnan(scores[known.of, np.maximum(own, 0)]))
    unknown = unknown[_first_of(known.of[unknown] * len(combinations) + own[unknown])]
    ask(known.of[unknown], own[unknown])
    mine = np.where(inside, scores[known.of, np.maximum(own, 0)], np.nan)
    stray = np.flatnonzero(~inside)
    for part in _parts(len(stray), max_batch):
        mine[stray[part]] = score(rows[stray[part]])
    queries += len(stray)
    return _verdicts(schema, rows, scores[known.of], mine, own, queries)


def _verdicts(
    schema: Schema,
    rows: Rows,
    scores: NDArray[np.float64],
    mine: Scores,
    own: Index,
    queries: int,
) -> Checked:
    asked = ~np.isnan(scores)
    flipped = asked & ((scores > 0.5) != (mine > 0.5)[:, None])
    flips = flipped.any(axis=1)
    # A row that does not flip was asked under every combination, so its partner is the one with
    # the widest gap, as elsewhere.
    line = np.arange(len(rows))
    gap = np.where(asked, np.round(np.abs(scores - mine[:, None]), 6), -1.0)
    inside = own >= 0
    gap[line[inside], own[inside]] = -1.0
    gap[flips] = np.where(flipped, gap, -1.0)[flips]
    chosen = gap.argmax(axis=1)
    partner = rows.copy()
    if len(rows):
        partner[:, schema.protected_index] = schema.combinations[chosen]
    return Checked(rows, mine, partner, scores[line, chosen], flips, queries=queries, scores=scores)


def _first_of(values: Index) -> Index:
    return np.sort(np.unique(values, return_index=True)[1])

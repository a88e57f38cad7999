"""The oracle: does a row's decision flip when nothing but its protected values change?

Rows times protected combinations are asked in bounded batches. Each distinct key (the
non-protected columns) is asked once: whether a row flips is a property of its key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from limi.rows import Distinct, distinct
from limi.schema import Schema
from limi.types import Index, Mask, Rows, Scores

__all__ = ["MAX_BATCH", "Checked", "Partner", "check_rows", "query_cost"]

Partner = Literal["widest", "first"]
"""Which counterpart is shown: of those that flip (or of all, where none does) the one whose score
is furthest away, or the first in the order of combinations."""

MAX_BATCH = 1 << 18
"""Rows given to the model at once; at 13 columns the expanded batch is 27 MB."""


@dataclass(frozen=True)
class Checked:
    """Rows with their verdicts."""

    rows: Rows
    score: Scores
    partner: Rows
    partner_score: Scores
    flips: Mask
    queries: int = 0  # rows that the model was asked for
    favorable: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # ^ for each combination, how many rows would be decided favorably under it
    origin: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Mask | Index | slice) -> Checked:
        """The verdicts of some rows; counts over the batch do not split and are dropped."""
        return Checked(
            self.rows[index],
            self.score[index],
            self.partner[index],
            self.partner_score[index],
            self.flips[index],
            origin=self.origin,
        )

    def where(self, mask: Mask, otherwise: Checked) -> Checked:
        """These verdicts where the mask is true, the others' elsewhere, row by row."""
        column = mask[:, None]
        return Checked(
            np.where(column, self.rows, otherwise.rows),
            np.where(mask, self.score, otherwise.score),
            np.where(column, self.partner, otherwise.partner),
            np.where(mask, self.partner_score, otherwise.partner_score),
            np.where(mask, self.flips, otherwise.flips),
            origin=self.origin,
        )

    @staticmethod
    def join(parts: Sequence[Checked]) -> Checked:
        """Several batches as one."""
        return Checked(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.score for part in parts]),
            np.concatenate([part.partner for part in parts]),
            np.concatenate([part.partner_score for part in parts]),
            np.concatenate([part.flips for part in parts]),
        )

    @staticmethod
    def nothing(width: int) -> Checked:
        """No rows: a method that prepares for long yields it, so that the engine sees the clock."""
        empty, none = np.empty((0, width)), np.empty(0)
        return Checked(empty, none, empty, none, np.zeros(0, dtype=bool))

    def named(self, origin: str) -> Checked:
        """The same verdicts under the name of the phase that asked for them."""
        return replace(self, origin=origin)


def query_cost(schema: Schema, rows: Rows, known: Distinct) -> NDArray[np.int64]:
    """How many queries each row adds: all combinations at the first row of a key, and one more
    where a row's own protected values are none of the combinations."""
    cost = (schema.combination_of(rows) < 0).astype(np.int64)
    cost[known.first] += len(schema.combinations)
    return cost


def check_rows(
    score: Callable[[Rows], Scores],
    schema: Schema,
    rows: Rows,
    *,
    partner: Partner = "widest",
    max_batch: int = MAX_BATCH,
    known: Distinct | None = None,
) -> Checked:
    """Verdicts of rows; `score` sees at most `max_batch` rows at a time (but at least one key's).

    `known` spares the keys where the caller has them already.
    """
    combinations = schema.combinations
    n_combinations, index = len(combinations), schema.protected_index
    n = len(rows)
    own = schema.combination_of(rows)
    known = known or distinct(schema, rows)
    first, key_of = known.first, known.of

    verdict = _Verdicts.empty(n, n_combinations)
    stray = np.flatnonzero(own < 0)  # their own protected values are none of the combinations
    for part in _parts(len(stray), max_batch):
        verdict.score[stray[part]] = score(rows[stray[part]])

    by_key = np.argsort(key_of, kind="stable") if len(first) < n else None
    for part in _parts(len(first), max(1, max_batch // n_combinations)):
        asked = np.repeat(rows[first[part]], n_combinations, axis=0)
        cells = asked.reshape(-1, n_combinations, rows.shape[1])
        cells[:, :, index] = combinations
        scores = score(asked).reshape(-1, n_combinations)
        if by_key is None:
            where = np.arange(part.start, part.stop)
        else:
            # Rows that share a key share its scores, whatever their own protected values.
            low, high = np.searchsorted(key_of[by_key], [part.start, part.stop])
            where = by_key[low:high]
            scores = scores[key_of[where] - part.start]
        verdict.settle(where, scores, own[where], partner)

    partners = rows.copy()
    if n:
        partners[:, index] = combinations[verdict.partner]
    return Checked(
        rows,
        verdict.score,
        partners,
        verdict.partner_score,
        verdict.flips,
        queries=len(first) * n_combinations + len(stray),
        favorable=verdict.favorable,
    )


@dataclass(frozen=True)
class _Verdicts:
    score: Scores
    partner: Index
    partner_score: Scores
    flips: Mask
    favorable: NDArray[np.int64]

    @staticmethod
    def empty(n: int, n_combinations: int) -> _Verdicts:
        return _Verdicts(
            np.empty(n),
            np.zeros(n, dtype=np.intp),
            np.empty(n),
            np.zeros(n, dtype=bool),
            np.zeros(n_combinations, dtype=np.int64),
        )

    def settle(self, where: Index, scores: NDArray[np.float64], own: Index, rule: Partner) -> None:
        """Judge rows from their scores under every combination."""
        line = np.arange(len(where))
        inside = own >= 0
        mine = np.where(inside, scores[line, own], self.score[where])
        decided = scores > 0.5
        flipped = decided != (mine > 0.5)[:, None]
        # Rounded, so that the last digits, which move with the batch, choose no partner.
        gap = np.round(np.abs(scores - mine[:, None]), 6)
        # A row is no partner of itself, even where every other score is the same as its own.
        gap[line[inside], own[inside]] = -1.0
        flips = flipped.any(axis=1)
        if rule == "first":
            chosen = np.where(flips, flipped.argmax(axis=1), gap.argmax(axis=1))
        else:
            chosen = np.where(flipped, gap + 2.0, gap).argmax(axis=1)
        self.score[where] = mine
        self.partner[where] = chosen
        self.partner_score[where] = scores[line, chosen]
        self.flips[where] = flips
        self.favorable[:] += decided.sum(axis=0)


def _parts(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]

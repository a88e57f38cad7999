"""The oracle: does a row's decision flip when nothing but its protected values change?

Rows times protected combinations are asked in bounded batches. Each distinct key (the
non-protected columns) is asked once: whether a row flips is a property of its key.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from limi.rows import Distinct, distinct
from limi.schema import Schema
from limi.types import Index, Mask, Rows, Scores

__all__ = ["MAX_BATCH", "Checked", "Partner", "cause_names", "check_rows", "query_cost"]

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
    causes: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    # ^ with several protected columns: which smallest sets of them flip a row (see `cause_names`)

    scores: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    # ^ (n, K) where the task keeps them: the score under every combination, NaN if not asked
    unflipped: int = 0  # rows beside these that did not flip, of which only the number is told

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
            causes=self.causes[index] if len(self.causes) else self.causes,
            scores=self.scores[index] if len(self.scores) else self.scores,
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
        """Several batches as one; their origins and counts are dropped."""
        parts = [part for part in parts if len(part)] or list(parts[:1])
        return Checked(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.score for part in parts]),
            np.concatenate([part.partner for part in parts]),
            np.concatenate([part.partner_score for part in parts]),
            np.concatenate([part.flips for part in parts]),
            causes=np.concatenate([part.causes for part in parts]),
            scores=np.concatenate([part.scores for part in parts]),
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
    keep_scores: bool = False,
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

    verdict = _Verdicts.empty(n, n_combinations, _reach(schema))
    kept = np.empty((n if keep_scores else 0, n_combinations))
    stray = np.flatnonzero(own < 0)  # their own protected values are none of the combinations
    for part in _parts(len(stray), max_batch):
        verdict.score[stray[part]] = score(rows[stray[part]])

    by_key = np.argsort(key_of, kind="stable") if len(first) < n else None
    ascending = key_of if by_key is None else key_of[by_key]
    for part in _parts(len(first), max(1, max_batch // n_combinations)):
        chosen = rows[part] if by_key is None else rows[first[part]]
        asked = np.repeat(chosen, n_combinations, axis=0)
        cells = asked.reshape(-1, n_combinations, rows.shape[1])
        cells[:, :, index] = combinations
        scores = score(asked).reshape(-1, n_combinations)
        if by_key is None:
            where = np.arange(part.start, part.stop)
        else:
            # Rows that share a key share its scores, whatever their own protected values.
            low, high = np.searchsorted(ascending, [part.start, part.stop])
            where = by_key[low:high]
            scores = scores[key_of[where] - part.start]
        verdict.settle(where, scores, own[where], partner)
        if keep_scores:
            kept[where] = scores

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
        causes=verdict.causes,
        scores=kept,
    )


_MOST_CAUSES = 3  # protected columns whose sets are told apart; a byte holds the sets of three


def cause_names(schema: Schema) -> list[str]:
    """What each bit of `Checked.causes` stands for: columns that flip a row together."""
    if not 2 <= len(schema.protected) <= _MOST_CAUSES:
        return []
    return ["+".join(schema.protected[i] for i in columns) for columns in _sets(schema)]


def _sets(schema: Schema) -> list[tuple[int, ...]]:
    """Sets of protected columns, smaller ones first."""
    places = range(len(schema.protected))
    return [s for size in places for s in itertools.combinations(places, size + 1)]


def _reach(schema: Schema) -> NDArray[np.bool_] | None:
    """(set, own, other): is the other combination reached by changing columns of the set alone?"""
    if not cause_names(schema):
        return None
    combinations = schema.combinations
    same = combinations[:, None, :] == combinations[None, :, :]
    return np.array([np.delete(same, list(s), axis=2).all(axis=2) for s in _sets(schema)])


@dataclass(frozen=True)
class _Verdicts:
    score: Scores
    partner: Index
    partner_score: Scores
    flips: Mask
    favorable: NDArray[np.int64]
    causes: NDArray[np.uint8]
    reach: NDArray[np.bool_] | None

    @staticmethod
    def empty(n: int, n_combinations: int, reach: NDArray[np.bool_] | None) -> _Verdicts:
        return _Verdicts(
            np.empty(n),
            np.zeros(n, dtype=np.intp),
            np.empty(n),
            np.zeros(n, dtype=bool),
            np.zeros(n_combinations, dtype=np.int64),
            np.zeros(0 if reach is None else n, dtype=np.uint8),
            reach,
        )

    def settle(self, where: Index, scores: NDArray[np.float64], own: Index, rule: Partner) -> None:
        """Judge rows from their scores under every combination."""
        line = np.arange(len(where))
        inside = own >= 0
        decided = scores > 0.5
        self.favorable[:] += decided.sum(axis=0)
        if scores.shape[1] == 2 and inside.all():
            # Two values and one of them its own: the partner is the other.
            self.score[where], self.partner[where] = scores[line, own], 1 - own
            self.partner_score[where] = scores[line, 1 - own]
            self.flips[where] = decided[:, 0] != decided[:, 1]
            return
        mine = np.where(inside, scores[line, own], self.score[where])
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
        if self.reach is not None and flips.any():
            self.causes[where[flips]] = _causes(self.reach, flipped[flips], own[flips])


def _causes(reach: NDArray[np.bool_], flipped: NDArray[np.bool_], own: Index) -> NDArray[np.uint8]:
    """The smallest sets of columns that flip each row; all of them for a row of no combination."""
    n_sets = len(reach)
    bits = 1 << np.arange(n_sets)
    # Which sets lie inside which: a set adds nothing where a part of it flips the row already.
    inside = [
        sum(1 << t for t in range(n_sets) if t != s and (reach[t] <= reach[s]).all())
        for s in range(n_sets)
    ]
    causes = np.zeros(len(own), dtype=np.int64)
    for s in range(n_sets):
        alone = (flipped & reach[s][np.maximum(own, 0)]).any(axis=1) & (own >= 0)
        causes |= np.where(alone & (causes & inside[s] == 0), bits[s], 0)
    return np.where(own < 0, bits[-1], causes).astype(np.uint8)


def _parts(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]

"""The oracle: does a row's decision flip when nothing but its protected values change?

Rows times protected combinations are asked in bounded batches. Each distinct key (the
non-protected columns) is asked once: what is decided under a combination is a property of the key.
Where the table has rules, what must go along with a protected value changes with it, and a
combination that would break a rule is not asked (`limi.table.partners`): its score is NaN, which
decides nothing.
Whether two answers are different decisions is said by a rule (`limi.decisions`).
A row whose own values are not all among those tried is asked for its mixtures as well
(`limi.search.tried`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.decisions import AS_DECIDED, Rule, favors
from limi.search.partner import Partner, choose_partner
from limi.search.tried import Mixtures, Tried, ask_mixed, ask_open, mixture_counts
from limi.table.partners import change, distinct_questions, expand
from limi.table.rows import Distinct
from limi.table.schema import Schema
from limi.types import Index, Mask, Rows, Scores

__all__ = [
    "ALONE",
    "MAX_BATCH",
    "PAIRED",
    "PARTLY",
    "REFUSED",
    "Checked",
    "batches",
    "cause_names",
    "cause_sets",
    "check_rows",
    "find_causes",
    "query_cost",
]

MAX_BATCH = 1 << 18
"""Rows given to the model at once; at 13 columns the expanded batch is 27 MB."""

REFUSED, ALONE, PARTLY, PAIRED = 0, 1, 2, 3
"""How a row stands to the rules: it breaks one and was not asked; no partner of it could exist, so
that it was asked by itself; some could; all could."""


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
    bits: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint8))
    # ^ of flipping rows, the favorable combinations as packed bits; empty if not all were asked
    as_if: tuple[NDArray[np.int8], ...] = ()
    # ^ where asked for: by protected column, (n, values): which way a row is decided if it has
    #   this value instead of its own, and all else is as it is (see `Rule.stands`). With several
    #   columns the last is (n, K), under every combination
    unflipped: int = 0  # rows beside these that did not flip, of which only the number is told
    standing: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    # ^ how each row stands to the rules; empty where every row has all its partners
    closed: int = 0  # combinations that were not asked, because a partner would break a rule

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
            bits=self.bits[index] if len(self.bits) else self.bits,
            as_if=tuple(told[index] for told in self.as_if),
            standing=self.standing[index] if len(self.standing) else self.standing,
        )

    @property
    def is_asked(self) -> Mask:
        """Which rows the model was asked about; the others break a rule of the table."""
        if not len(self.standing):
            return np.ones(len(self), dtype=bool)
        return np.asarray(self.standing > REFUSED)

    @property
    def is_paired(self) -> Mask:
        """Which rows have a partner, so that they can flip."""
        if not len(self.standing):
            return np.ones(len(self), dtype=bool)
        return np.asarray(self.standing >= PARTLY)

    @property
    def is_whole(self) -> Mask:
        """Which rows were asked under all that is tried of them."""
        if not len(self.standing):
            return np.ones(len(self), dtype=bool)
        return np.asarray(self.standing == PAIRED)

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
            standing=_standing([self, otherwise], partial(np.where, mask)),
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
            bits=_join_bits(parts),
            standing=_standing(parts, lambda *told: np.concatenate(told)),
        )

    @staticmethod
    def nothing(width: int) -> Checked:
        """No rows: a method that prepares for long yields it, so that the engine sees the clock."""
        empty, none = np.empty((0, width)), np.empty(0)
        return Checked(empty, none, empty, none, np.zeros(0, dtype=bool))

    def named(self, origin: str) -> Checked:
        """The same verdicts under the name of the phase that asked for them."""
        return replace(self, origin=origin)


def _standing(parts: Sequence[Checked], combine: Callable[..., Any]) -> NDArray[np.int8]:
    """The standing of several batches as one; empty where all rows have all partners."""
    if not any(len(part.standing) for part in parts):
        return np.zeros(0, dtype=np.int8)
    full = [
        part.standing if len(part.standing) else np.full(len(part), PAIRED, dtype=np.int8)
        for part in parts
    ]
    return np.asarray(combine(*full), dtype=np.int8)


def _join_bits(parts: Sequence[Checked]) -> NDArray[np.uint8]:
    """The bits of several batches; none where some flipping row has none."""
    told = [part.bits for part in parts if len(part.bits) or part.flips.any()]
    if not told or not all(map(len, told)):
        return np.zeros((0, 0), dtype=np.uint8)
    width = told[0].shape[1]
    return np.concatenate(
        [
            part.bits if len(part.bits) else np.zeros((len(part), width), dtype=np.uint8)
            for part in parts
        ]
    )


def query_cost(schema: Schema, rows: Rows, known: Distinct) -> NDArray[np.int64]:
    """How many queries each row adds: all combinations at the first row of a key, and mixtures
    where a row's own protected values are not one of the combinations."""
    cost = mixture_counts(schema, rows)
    cost[known.first] += len(schema.combinations)
    if schema.enforcer.binding:
        _, is_open = expand(schema, rows[known.first], schema.combinations)
        if is_open is not None:
            cost[known.first] -= (~is_open).sum(axis=1)
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
    as_if: bool = False,
    decision: Rule = AS_DECIDED,
) -> Checked:
    """Verdicts of rows; `score` sees at most `max_batch` rows at a time (but at least one key's).

    `known` spares the keys where the caller has them already; `as_if` keeps what is decided under
    every value of each protected column.
    """
    combinations = schema.combinations
    n_combinations = len(combinations)
    n = len(rows)
    own = schema.combination_of(rows)
    known = known or distinct_questions(schema, rows)
    first, key_of = known.first, known.of

    verdict = _Verdicts.empty(schema, n, partner, as_if, decision)
    kept = np.empty((n if keep_scores else 0, n_combinations))
    stray = np.flatnonzero(own < 0)
    mixed = ask_mixed(score, schema, rows[stray], max_batch)
    line = np.full(n, -1, dtype=np.intp)  # where a row stands among those that stray
    line[stray] = np.arange(len(stray))

    queries = mixed.queries
    by_key = np.argsort(key_of, kind="stable") if len(first) < n else None
    ascending = key_of if by_key is None else key_of[by_key]
    for part in batches(len(first), max(1, max_batch // n_combinations)):
        chosen = rows[part] if by_key is None else rows[first[part]]
        scores, asked = ask_open(score, *expand(schema, chosen, combinations))
        queries += asked
        if by_key is None:
            where = np.arange(part.start, part.stop)
        else:
            # Rows that share a key share its scores, whatever their own protected values.
            low, high = np.searchsorted(ascending, [part.start, part.stop])
            where = by_key[low:high]
            scores = scores[key_of[where] - part.start]
        verdict.settle_all(where, scores, own[where], mixed, line[where])
        if keep_scores:
            kept[where] = scores

    return Checked(
        rows,
        verdict.score,
        change(schema, rows, verdict.partner),
        verdict.partner_score,
        verdict.flips,
        queries=queries,
        favorable=verdict.favorable if decision.kind == "favorable" else verdict.favorable[:0],
        causes=verdict.causes,
        scores=kept,
        bits=verdict.told_bits,
        as_if=verdict.as_if,
        standing=verdict.told_standing,
        closed=int(verdict.closed.sum()),
    )


_MOST_CAUSES = 3  # protected columns whose sets are told apart; a byte holds the sets of three


def cause_names(schema: Schema) -> list[str]:
    """What each bit of `Checked.causes` stands for: columns that flip a row together."""
    return ["+".join(schema.protected[i] for i in columns) for columns, _ in cause_sets(schema)]


def cause_sets(schema: Schema) -> list[tuple[tuple[int, ...], int]]:
    """Sets of protected columns, smaller ones first, each with the bits of its own parts."""
    places = range(len(schema.protected))
    if not 2 <= len(places) <= _MOST_CAUSES:
        return []
    sets = [s for size in places for s in itertools.combinations(places, size + 1)]
    return [
        (columns, sum(1 << k for k, other in enumerate(sets) if set(other) < set(columns)))
        for columns in sets
    ]


@dataclass(frozen=True)
class _Verdicts:
    schema: Schema
    rule: Partner
    decision: Rule
    sets: list[tuple[tuple[int, ...], int]]
    score: Scores
    partner: NDArray[np.float64]  # (n, p): its protected cells, NaN where the own one is left
    partner_score: Scores
    flips: Mask
    favorable: NDArray[np.int64]
    causes: NDArray[np.uint8]
    bits: NDArray[np.uint8]
    as_if: tuple[NDArray[np.int8], ...]
    closed: NDArray[np.int64]  # (n,): of what is tried of a row, how much was not asked
    standing: NDArray[np.int8]

    @staticmethod
    def empty(schema: Schema, n: int, rule: Partner, as_if: bool, decision: Rule) -> _Verdicts:
        n_combinations, sets = len(schema.combinations), cause_sets(schema)
        sizes = [len(codes) for codes in schema.protected_codes] if as_if else []
        sizes += [n_combinations] if len(sizes) > 1 else []
        return _Verdicts(
            schema,
            rule,
            decision,
            sets,
            np.empty(n),
            np.empty((n, len(schema.protected))),
            np.empty(n),
            np.zeros(n, dtype=bool),
            np.zeros(n_combinations, dtype=np.int64),
            np.zeros(n if sets else 0, dtype=np.uint8),
            np.zeros((n, (n_combinations + 7) // 8), dtype=np.uint8),
            tuple(np.zeros((n, size), dtype=np.int8) for size in sizes),
            np.zeros(n if _may_close(schema) else 0, dtype=np.int64),
            np.full(n if _may_close(schema) else 0, PAIRED, dtype=np.int8),
        )

    @property
    def told_standing(self) -> NDArray[np.int8]:
        """Empty where every row has all its partners."""
        return self.standing if (self.standing < PAIRED).any() else self.standing[:0]

    @property
    def told_bits(self) -> NDArray[np.uint8]:
        """Empty where a flipping row was not asked under every combination, or nothing is
        favorable."""
        lacking = self.decision.kind != "favorable" or (
            len(self.closed) and (self.closed[self.flips] > 0).any()
        )
        return np.zeros((0, 0), dtype=np.uint8) if lacking else self.bits

    def settle_all(
        self, where: Index, scores: NDArray[np.float64], own: Index, mixed: Mixtures, line: Index
    ) -> None:
        """Judge rows from their scores under every combination, and those of their mixtures."""
        inside = own >= 0
        tried = Tried.of(self.schema)
        if inside.all():
            self.settle(where, scores, own, tried)
            return
        self.settle(where[inside], scores[inside], own[inside], tried)
        patterns = np.where(inside, 0, mixed.patterns[line])
        for pattern in np.unique(patterns[~inside]):
            tried = Tried.of(self.schema, int(pattern))
            here = np.flatnonzero(patterns == pattern)
            theirs = mixed.scores[line[here], : len(tried.mixtures)]
            self.settle(
                where[here],
                np.concatenate([scores[here], theirs], axis=1),
                tried.n_combinations + mixed.own[line[here]],
                tried,
            )

    def settle(self, where: Index, scores: NDArray[np.float64], own: Index, tried: Tried) -> None:
        """Judge rows that have the same tried of them; `own` is where they stand in it."""
        line = np.arange(len(where))
        decided = favors(self.decision.as_score(scores))
        self.favorable[:] += decided[:, : tried.n_combinations].sum(axis=0)
        mine = scores[line, own]
        for column, told in enumerate(self.as_if):
            if column < len(self.schema.protected):
                chosen = tried.alone(tried.places[own], column)
                told[where] = self.decision.stands(scores[line[:, None], chosen], mine[:, None])
            else:
                under = scores[:, : tried.n_combinations]
                told[where] = self.decision.stands(under, mine[:, None])
        self.score[where] = mine
        asked = ~np.isnan(scores) if len(self.closed) else None
        alone = None if asked is None else self._settle_closed(where, asked)
        if scores.shape[1] == 2:
            # Two values and one of them its own: the partner is the other.
            flips = self.decision.differ(scores[:, 0], scores[:, 1])
            other = 1 - own if alone is None else np.where(alone, own, 1 - own)
            self._note(where, scores, decided, other, flips, tried)
            return
        chosen, flipped, _ = choose_partner(
            scores, mine, own=own, candidates=asked, rule=self.rule, decision=self.decision
        )
        if alone is not None:
            chosen = np.where(alone, own, chosen)
        flips = flipped.any(axis=1)
        self._note(where, scores, decided, chosen, flips, tried)
        if len(self.causes) and flips.any():
            mine = tried.places[own[flips]]
            self.causes[where[flips]] = find_causes(self.sets, tried.places, mine, flipped[flips])

    def _settle_closed(self, where: Index, asked: NDArray[np.bool_]) -> Mask:
        """Count what was not asked of rows; which of them have no partner, but themselves."""
        n_asked = asked.sum(axis=1)
        alone: Mask = n_asked == 1
        self.closed[where] = asked.shape[1] - n_asked
        self.standing[where] = np.where(
            alone, ALONE, np.where(n_asked < asked.shape[1], PARTLY, PAIRED)
        )
        return alone

    def _note(
        self,
        where: Index,
        scores: NDArray[np.float64],
        decided: NDArray[np.bool_],
        chosen: Index,
        flips: Mask,
        tried: Tried,
    ) -> None:
        self.partner[where] = tried.cells[chosen]
        self.partner_score[where] = scores[np.arange(len(where)), chosen]
        self.flips[where] = flips
        hits = np.flatnonzero(flips)
        favorable = decided[hits, : tried.n_combinations]
        self.bits[where[hits]] = np.packbits(favorable, axis=1)


def _may_close(schema: Schema) -> bool:
    """May a rule forbid to ask for a partner?"""
    return bool(schema.enforcer.binding)


def find_causes(
    sets: list[tuple[tuple[int, ...], int]], places: Any, own: Any, flipped: Any
) -> Any:
    """(n,) whole numbers: the smallest sets of columns that flip each row, as bits in the order of
    `cause_names`; of arrays and tensors alike.

    `places` (G, p) are what is tried, `own` (n, p) the places of the rows' own values, `flipped`
    (n, G) what decides otherwise. A set flips a row if something does that leaves all other
    columns as they are.
    """
    same = [own[:, c, None] == places[None, :, c] for c in range(own.shape[1])]
    found = 0 * own[:, 0]
    for number, (columns, parts) in enumerate(sets):
        reached = flipped
        for c, kept in enumerate(same):
            if c not in columns:
                reached = reached & kept
        # A set adds nothing where a part of it flips the row already.
        alone = reached.any(1) & (found & parts == 0)
        found = found + alone * (1 << number)
    return found


def batches(n: int, size: int) -> list[slice]:
    """Where to cut n rows into batches of at most this size."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]

"""The oracle for a budget of queries: protected values one after another, until a flip is seen.

A key that flips is settled by two values that disagree; only a key that does not flip needs them
all. The row's own value goes first, because a finding names its decision in any case; then the
values that disagree soonest with such a decision, which is learned on the way. (An own value
that is not among those compared goes last, and its mixtures only where nothing has flipped by
then.)

A value can be asked only when the one before was answered, so many keys are under way together:
each step asks the next question of every one of them, and new keys take the places of those that
are settled. Steps depend on the budget and on answers, never on how the model is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from limi.decisions import AS_DECIDED, EDGE, Rule, favors, opposes
from limi.search.check import ALONE, PAIRED, PARTLY, Checked, batches
from limi.search.partner import Partner, choose_partner
from limi.search.tried import Mixtures, ask_mixed, mixture_counts
from limi.system.watch import OutOfTime
from limi.table.partners import change, expand
from limi.table.rows import Distinct
from limi.table.schema import Schema
from limi.types import Index, Mask, Rows, Scores

__all__ = ["FlipStatistics", "check_frugally", "rows_at_once"]

_FEWEST, _MOST = 64, 4096  # keys under way together
_SHARE = 8  # of the keys that the queries pay for at least, the part that is under way together
_KEPT = 1 << 22  # scores kept at once


@dataclass
class FlipStatistics:
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


def rows_at_once(schema: Schema) -> int:
    """How many rows to check together at most: their scores are kept until all are settled."""
    return max(_FEWEST, _KEPT // len(schema.combinations))


def check_frugally(
    score: Callable[[Rows], Scores],
    schema: Schema,
    rows: Rows,
    *,
    known: Distinct,
    statistics: FlipStatistics,
    max_batch: int,
    max_queries: float = np.inf,
    recheck: int = 0,
    partner: Partner = "widest",
    keep_scores: bool = True,
    decision: Rule = AS_DECIDED,
) -> Checked:
    """Verdicts of rows like those of `check_rows`, for fewer queries where rows flip.

    The partner is the value that showed the flip (of several the widest gap; or, if it is to be
    the first, the first of those asked, which are then asked in their order). Rows of one key are
    taken together; those with another protected value than the first of them cost a query more.
    Only the rows come back that `max_queries` pays for, with `recheck` more for each that flips:
    none is begun whose worst is too dear. Where time runs out, those before the first that is not
    settled.
    """
    flight = _Flight(schema, rows, known, statistics, max_queries, recheck, partner, decision)
    while flight.admit():
        asked = flight.questions()
        try:
            parts = [score(asked[part]) for part in batches(len(asked), max_batch)]
        except OutOfTime:
            break
        flight.answer(np.concatenate(parts))
    settled = flight.settled
    n = len(rows) if settled == len(known.first) else int(known.first[settled])
    scores = flight.scores[known.of[:n]]
    mine, own = flight.mine(n), flight.own[:n]
    checked = _verdicts(schema, rows[:n], scores, mine, own, partner, decision)
    closed = flight.n_closed[known.of[:n]]
    checked = replace(
        checked,
        queries=flight.queries,
        scores=scores if keep_scores else checked.scores,
        standing=_standing(schema, closed, flight.own[:n]),
        closed=int(closed.sum()),
    )
    steady = np.flatnonzero((flight.own[:n] < 0) & ~checked.flips)
    if len(schema.protected) == 1 or not len(steady):
        return checked
    try:
        mixed = ask_mixed(score, schema, rows[steady], max_batch, known=checked.score[steady])
    except OutOfTime:
        return replace(checked[: steady[0]], queries=checked.queries)
    return _with_mixtures(schema, checked, steady, mixed, partner, decision)


class _Flight:
    """Keys on their way: what is known of each, and what is asked next."""

    def __init__(
        self,
        schema: Schema,
        rows: Rows,
        known: Distinct,
        statistics: FlipStatistics,
        max_queries: float,
        recheck: int,
        partner: Partner,
        decision: Rule,
    ) -> None:
        n_keys, n_combinations = len(known.first), len(schema.combinations)
        self._schema, self._rows, self._known, self._statistics = schema, rows, known, statistics
        self._decision, self._in_order = decision, partner == "first"
        self.own = schema.combination_of(rows)
        self.scores = np.full((n_keys, n_combinations), np.nan)
        self._stray = np.full(len(rows), np.nan)  # scores of rows whose own value is not compared
        self.queries = self.begun = 0
        self._first_own = self.own[known.first]
        self._first = np.full(n_keys, np.nan)  # the score that others are compared with
        self._decided = np.zeros(n_keys, dtype=np.intp)  # what it says
        self._asked = np.zeros(n_keys, dtype=np.int64)
        mixtures = mixture_counts(schema, rows)
        spare = np.maximum(mixtures - 1, 0)  # beside the row itself
        self._mixtures = _sums(known.of, spare, n_keys)
        self._closed = _find_closed(schema, rows[known.first])
        self.n_closed = self._closed.sum(axis=1)
        self._n_open = n_combinations - self.n_closed
        self._worst = self._n_open + _sums(known.of, mixtures, n_keys)  # what a key may cost
        self._recheck = recheck  # and what it costs later, if it flips
        self._by_key = np.argsort(known.of, kind="stable")
        self._starts = np.searchsorted(known.of[self._by_key], np.arange(n_keys + 1))
        self._unpledged = max_queries  # queries that no key under way may need
        most = max_queries / (_SHARE * n_combinations)
        self._width = int(np.clip(min(most, _MOST), _FEWEST, _MOST))
        self._keys: Index = np.arange(0)  # under way
        self._combination: Index = np.arange(0)  # what each of them is asked under
        self._alone: Index = np.arange(0)  # rows that are asked as they are

    @property
    def settled(self) -> int:
        """How many keys are settled, of which none comes behind one that is not."""
        return int(min([self.begun, *self._keys[:1], *self._known.of[self._alone]]))

    def admit(self) -> bool:
        """Begin with as many keys as there are places and queries for; is any question open?"""
        room = self._width - len(self._keys)
        new = np.arange(self.begun, min(self.begun + room, len(self._worst)))
        pledged = np.cumsum(self._worst[new] + self._recheck)
        new = new[pledged <= self._unpledged]
        if len(new):
            self._unpledged -= int(pledged[len(new) - 1])
            self.begun += len(new)
            askable = self._n_open[new] > 0
            if not askable.all():
                self._let_go(new[~askable])
            self._keys = np.concatenate([self._keys, new[askable]])
        return bool(len(self._keys) or len(self._alone))

    def questions(self) -> Rows:
        """The next row of each key under way, then rows as they are."""
        self._combination = self._next()
        asked = self._rows[self._known.first[self._keys]]
        asked = change(self._schema, asked, self._schema.combinations[self._combination])
        return np.concatenate([asked, self._rows[self._alone]])

    def _next(self) -> Index:
        """The own value first, then the unasked one that most often disagrees, or the next."""
        order = self._statistics.order()
        if self._in_order:
            order[:] = np.arange(order.shape[1])
        keys = self._keys
        following = order[self._decided[keys]]
        done = ~np.isnan(self.scores[keys]) | self._closed[keys]
        asked = np.take_along_axis(done, following, axis=1)
        best = following[np.arange(len(keys)), asked.argmin(axis=1)]
        # Where a row's own value is not one of the combinations, one of these stands for it: rows
        # of one key may bring several such values.
        base = np.where(self._first_own[keys] >= 0, self._first_own[keys], best)
        return np.where(self._asked[keys] == 0, base, best)

    def answer(self, answers: Scores) -> None:
        """Enter the answers to `questions`, and let the keys go that are settled."""
        keys, combination = self._keys, self._combination
        n = len(keys)
        self._enter_alone(answers[n:])
        self.scores[keys, combination] = answers[:n]
        begins = self._asked[keys] == 0
        self._first[keys[begins]] = answers[:n][begins]
        first = self._first[keys]
        side = self._decision.as_score(first)
        self._decided[keys] = favors(side)
        differs = self._decision.differ(answers[:n], first)
        clear = favors(side) | opposes(side)  # what lies on the edge shows no habit
        for decision in (0, 1):
            such = ~begins & clear & (self._decided[keys] == decision)
            self._statistics.learn(decision, combination[such], differs[such])
        self._asked[keys] += 1
        self.queries += len(answers)
        settled = differs | (self._asked[keys] == self._n_open[keys])
        self._alone = self._unasked(keys[settled])
        spared = self._worst[keys[settled]].sum() - self._asked[keys[settled]].sum()
        unflipped = keys[settled & ~differs]
        spared -= self._mixtures[unflipped].sum()  # they are asked last, and may flip
        spared += self._recheck * (self._mixtures[unflipped] == 0).sum()
        self._unpledged += int(spared) - len(self._alone)
        self._keys = keys[~settled]

    def _let_go(self, keys: Index) -> None:
        """Keys of which no combination could exist: their rows are asked as they are."""
        alone = self._unasked(keys)
        self._alone = np.concatenate([self._alone, alone])
        # What else they may cost is asked last: their mixtures.
        spared = self._worst[keys].sum() - self._mixtures[keys].sum()
        spared += self._recheck * (self._mixtures[keys] == 0).sum()
        self._unpledged += int(spared) - len(alone)

    def mine(self, n: int) -> Scores:
        """The scores of the first n rows as they are."""
        own = self.own[:n]
        inside = self.scores[self._known.of[:n], np.maximum(own, 0)]
        return np.where(own >= 0, inside, self._stray[:n])

    def _unasked(self, keys: Index) -> Index:
        """Rows of settled keys that were not asked with their own values."""
        counts = self._starts[keys + 1] - self._starts[keys]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = self._by_key[np.repeat(self._starts[keys], counts) + within]
        key, own = self._known.of[rows], self.own[rows]
        stray = rows[own < 0]
        lacking = (own >= 0) & np.isnan(self.scores[key, np.maximum(own, 0)])
        key, own, rows = key[lacking], own[lacking], rows[lacking]
        first = np.unique(key * self.scores.shape[1] + own, return_index=True)[1]
        return np.concatenate([rows[np.sort(first)], stray])

    def _enter_alone(self, answers: Scores) -> None:
        own = self.own[self._alone]
        inside, key = own >= 0, self._known.of[self._alone]
        self.scores[key[inside], own[inside]] = answers[inside]
        self._stray[self._alone[~inside]] = answers[~inside]


def _verdicts(
    schema: Schema,
    rows: Rows,
    scores: NDArray[np.float64],
    mine: Scores,
    own: Index,
    partner: Partner,
    decision: Rule,
) -> Checked:
    # A row that does not flip was asked under every combination, so its partner is the one with
    # the widest gap, as elsewhere (unless it lies on the edge and another row settled its key).
    line = np.arange(len(rows))
    candidates = ~np.isnan(scores)
    inside = own >= 0
    candidates[line[inside], own[inside]] = False
    chosen, flipped, _ = choose_partner(
        scores, mine, candidates=candidates, rule=partner, decision=decision
    )
    if not len(rows):
        return Checked(rows, mine, rows, mine, flipped.any(axis=1))
    alone: Mask = np.logical_not(candidates.any(axis=1))
    cells = np.where(alone[:, None], np.nan, schema.combinations[chosen])
    partner_score = np.where(alone, mine, scores[line, chosen])
    return Checked(rows, mine, change(schema, rows, cells), partner_score, flipped.any(axis=1))


def _find_closed(schema: Schema, rows: Rows) -> NDArray[np.bool_]:
    """(n, K): which combinations of rows would break a rule."""
    nothing = np.zeros((len(rows), len(schema.combinations)), dtype=bool)
    if not schema.enforcer.binding:
        return nothing
    _, is_open = expand(schema, rows, schema.combinations)
    return nothing if is_open is None else ~is_open


def _standing(schema: Schema, closed: NDArray[np.int64], own: Index) -> NDArray[np.int8]:
    """How rows stand to the rules; empty where every combination could exist."""
    if not closed.any():
        return np.zeros(0, dtype=np.int8)
    left = len(schema.combinations) - closed - (own >= 0)
    some = np.where(closed > 0, PARTLY, PAIRED)
    return np.where(left > 0, some, ALONE).astype(np.int8)


def _with_mixtures(
    schema: Schema,
    before: Checked,
    steady: Index,
    mixed: Mixtures,
    rule: Partner,
    decision: Rule,
) -> Checked:
    """Verdicts of rows that no combination flips, from their mixtures as well."""
    mine, line = before.score[steady], np.arange(len(steady))
    chosen, flipped, ranks = choose_partner(
        mixed.scores,
        mine,
        own=mixed.own,
        candidates=~np.isnan(mixed.scores),
        rule=rule,
        decision=decision,
    )
    # Of equals the combination stays the partner, as where all are asked at once.
    both = np.concatenate([mixed.scores, before.partner_score[steady, None]], axis=1)
    wider = ranks.max(axis=1) > decision.rank(both, mine[:, None])[:, -1] + EDGE
    if len(before.standing):
        # A row without a combination of its own has a mixture for its partner, if it has one.
        wider |= (before.standing[steady] == ALONE) & (ranks.max(axis=1) >= 0)
    partner, partner_score = before.partner.copy(), before.partner_score.copy()
    flips = before.flips.copy()
    cells = mixed.cells(schema, chosen)
    partner[steady[wider]] = change(schema, before.rows[steady[wider]], cells[wider])
    partner_score[steady[wider]] = mixed.scores[line, chosen][wider]
    flips[steady] = flipped.any(axis=1)
    standing = before.standing.copy()
    if len(standing):
        mixes = (~np.isnan(mixed.scores)).sum(axis=1) > 1
        standing[steady[mixes]] = np.maximum(standing[steady[mixes]], PARTLY)
    return replace(
        before,
        standing=standing,
        partner=partner,
        partner_score=partner_score,
        flips=flips,
        queries=before.queries + mixed.queries,
    )


def _sums(of: Index, counts: NDArray[np.int64], n_keys: int) -> NDArray[np.int64]:
    """Counts of rows added up by key."""
    return np.bincount(of, counts, n_keys).astype(np.int64)

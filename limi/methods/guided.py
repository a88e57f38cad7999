"""Natural rows that learned models of the target expect to flip.

Each round learns from everything asked so far, draws many natural rows without asking the target,
guesses for each how likely its decision flips, and checks rows drawn with a probability that grows
with the guess. A share of plain natural rows keeps the guesses honest.

Most candidates are *neighbours* of earlier findings: the latent of a finding with one of its
numbers drawn anew. Latents are independent numbers, so that a neighbour of a natural row is as
natural, and what flips a decision often flips it there as well. Neighbours have no neighbours of
their own; otherwise the search would run away with the few kinds of people it found first.

Two learners guess, and a third weighs them: boosted trees of the target's *scores* (over all
columns; a flip is expected where the predicted scores of two protected values lie on both sides of
0.5) learn most from few queries, boosted trees of the *flips* (over the other columns) from many.
A logistic regression on what both guessed about the last two rounds before these were asked, and on
whether a row is a neighbour, turns them into one probability.

Faithfulness
- No paper has this method; it is limi's own. LIMI learns where the decision changes, by a plane in
  latent space; this learns where it changes *with the protected value*, which is what is sought.
- Rows are drawn by probability to a power: the smallest with which they promise `keenness` times
  the findings of the surest rows. Always taking the surest finds some more, all of the kind that is
  easy to predict: the findings look less like the population.
- Findings per thousand queries, 10,000 queries, two seeds, on seven benchmark networks: without
  neighbours 107 to 195, with them 132 to 296; plain natural rows 30 to 76, LIMI 41 to 87. Of the
  findings 89 to 99 % are no odder than 95 % of real rows, as a set they are less like the
  population (ATN of representative ones on census, sex: 0.76 with, 0.79 without, 0.82 for LIMI).
- Keenness 0.75, 0.85 and 0.9 on census (sex): 133, 159, 165 (ATN of representative ones 0.78, 0.77,
  0.77); on meps (sex): 174, 196, 212 (0.81, 0.80, 0.78).
- `preset=natural` (keenness 0.6, neighbours 0.3) finds fewer, and representative ones about as like
  the population as real people whose decision flips: with 60,000 queries 109 on census (sex; ATN
  0.815, real ones 0.815; LIMI finds 47), 85 on bank (0.893, 0.895; 41), 126 on meps (0.858, 0.878;
  70). One seed.
- Latents that are not independent (conditions of a CTGAN) are mixed all the same; a generator takes
  them as it takes LIMI's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Bands, Difference, Numbers, Rule, favors
from limi.errors import InvalidInput
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.partners import change
from limi.table.schema import Schema
from limi.types import Latents, Mask, Rows, Scores

__all__ = ["Guided"]

_PARTS = 8.0  # of the spread of numbers: what log-odds are to scores
_LARGEST_LOGIT = 7.0  # beyond it a score is as sure as it matters
_LOGIT_STEPS = 100  # in one unit of log-odds
_ODD_EDGE = 1 / np.pi
_MOST_LEVELS = 255  # what scikit-learn's boosted trees take as categories
_MOST_EXAMPLES = 120_000  # scores to fit on at most; a row gives one for each combination asked
_MOST_VAIN = 8  # pools without a new key, after which the generator counts as exhausted
_WEIGHED_ROUNDS = 2  # past rounds whose guesses the learners are weighed by
_FEWEST_WEIGHED = 30
_FIRST_WEIGHTS = np.array([2.0, 0.5, 0.7])  # before there is a round to weigh them by
_POWERS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0, 50.0, 1e6)
_LEARNERS = 2
_PREPARED_SHARE = 3  # of the time left, the part that choosing a round may take
_LEAST_ROUND = 0.1  # of the last round; a smaller one is not worth its learners
_ONE_NUMBER_OF = 32  # a neighbour has one new number of so many

Guesses = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Guided:
    """Check natural rows that learned models of the target expect to flip."""

    first: int = 400  # rows of the first, unguided round; fewer where the budget is small
    growth: float = 1.6  # each round is that much larger
    largest: int = 20_000  # rows of a round at most
    pool: int = 12  # natural rows drawn for every row checked
    keenness: float = 0.85  # 0: rows of the pool as they come; 1: the surest, less natural ones
    neighbours: float = 0.8  # share of the pool that lies near an earlier finding
    explore_share: float = 0.1  # plain natural rows in a round
    learn_from: int = 40_000  # rows to learn from at most
    trees: int = 80  # of each model that learns where decisions flip
    leaves: int = 31  # of each of these trees

    needs: ClassVar[frozenset[str]] = frozenset({"generator"})
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "natural": {"keenness": 0.6, "neighbours": 0.3},
    }

    def __post_init__(self) -> None:
        if self.first < 1 or self.largest < 1 or self.pool < 1 or self.growth < 1:
            raise InvalidInput("first, largest, pool and growth must be at least 1")
        if self.trees < 1 or self.leaves < 2 or self.learn_from < 1:
            raise InvalidInput("trees and learn_from must be at least 1, leaves at least 2")
        for name in ("explore_share", "neighbours", "keenness"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must lie between 0 and 1")
        if self.neighbours == 1:
            raise InvalidInput("neighbours is 1; below 1 there are fresh rows to find more in")

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """An unguided round, then guided ones of growing size."""
        size = self._first(session)
        memory = _Memory(session.schema, self.learn_from, session.decision)
        parents = _Parents(self.learn_from)
        scale = _Scale()
        session.keep_scores = True
        asked = _fresh(session, parents, 0.0, size, rng)
        checked = session.check_kept(asked.rows).named("natural")
        yield checked
        prepared = 0.0
        while len(checked):
            memory.add(checked)
            parents.add(asked[np.flatnonzero(checked.flips)])  # the budget may end inside a round
            size = self._next(session, size, prepared)
            if not size:
                return
            start = session.watch.seconds
            pool = _fresh(session, parents, self.neighbours, size * self.pool, rng)
            if not len(pool.rows):
                return
            guesses = self._guesses(session.schema, memory, pool, rng)
            chosen = self._choose(scale.log_odds(guesses), pool.bred, size, rng)
            asked = pool[chosen]
            del pool  # the next one is as large
            prepared = session.watch.seconds - start
            checked = session.check_kept(asked.rows).named("guided")
            yield checked
            scale.learn(guesses[chosen[: len(checked)]], checked.flips)

    def _first(self, session: Session) -> int:
        """A twentieth of what the budget pays for, within reason."""
        paid = min(session.rows_left, session.queries_left / len(session.schema.combinations))
        return self.first if not np.isfinite(paid) else int(np.clip(paid / 20, 40, self.first))

    def _next(self, session: Session, size: int, prepared: float) -> int:
        """Rows of the next round: more than of the last, but no more than there is time to choose.

        `prepared` is how long the last round took to be chosen.
        """
        grown = min(int(size * self.growth) + 1, self.largest)
        if not prepared:
            return grown
        share = session.watch.left / (_PREPARED_SHARE * prepared)
        if share >= self.growth:
            return grown
        session.watch.ran_out = share < _LEAST_ROUND
        return 0 if session.watch.ran_out else max(1, int(size * share))

    def _guesses(
        self, schema: Schema, memory: _Memory, pool: _Pool, rng: np.random.Generator
    ) -> Guesses:
        """(n, 3): what the scores and what the flips seen so far say, and which are neighbours."""
        by_scores = _ScoreLearner.fit(schema, memory, self.trees, self.leaves, rng)
        by_flips = _flip_log_odds(schema, memory, self.trees, self.leaves, pool.rows, rng)
        # Far from 0.5 a learner is sure, and no longer right about how sure.
        promised = np.clip(by_scores.promise(pool.rows), -4, 4)
        return np.column_stack([promised, np.clip(by_flips, -8, 8), pool.bred])

    def _choose(
        self, log_odds: NDArray[np.float64], bred: Mask, size: int, rng: np.random.Generator
    ) -> NDArray[np.intp]:
        """Rows drawn by their chance to flip, and then some plain ones as they came."""
        log_chance = -np.logaddexp(0.0, -log_odds)
        # Gumbel's trick: the largest of log-weight plus noise are a weighted draw without repeats.
        noise = -np.log(-np.log(rng.uniform(np.finfo(float).tiny, 1.0, len(log_odds))))
        n_guided = round(size * (1 - self.explore_share))
        power = _power(log_chance, noise, n_guided, self.keenness)
        best_first = np.argsort(-(power * log_chance + noise), kind="stable")
        others = np.sort(best_first[n_guided:])
        others = others[~bred[others]][: size - n_guided]
        return np.concatenate([best_first[:n_guided], others])


def _power(
    log_chance: NDArray[np.float64], noise: NDArray[np.float64], n: int, keenness: float
) -> float:
    """The smallest power of the chances with which n rows promise enough of the most findings."""
    if not 0 < n < len(log_chance):
        return 0.0
    chance = np.exp(log_chance)
    enough = keenness * np.partition(chance, -n)[-n:].sum()
    for power in _POWERS:
        chosen = np.argpartition(-(power * log_chance + noise), n)[:n]
        if chance[chosen].sum() >= enough:
            return power
    return _POWERS[-1]


@dataclass(frozen=True)
class _Pool:
    """Rows with the latents they came from, and which of them are neighbours of findings."""

    latents: Latents
    rows: Rows
    bred: Mask

    def __getitem__(self, which: Any) -> _Pool:
        return _Pool(self.latents[which], self.rows[which], self.bred[which])

    def joined(self, other: _Pool) -> _Pool:
        return _Pool(
            np.concatenate([self.latents, other.latents]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.bred, other.bred]),
        )


class _Parents:
    """Latents of findings that are not neighbours themselves; the oldest are forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._latents: Latents | None = None

    def add(self, findings: _Pool) -> None:
        """Remember where these findings lie."""
        new = findings.latents[~findings.bred]
        known = new if self._latents is None else np.concatenate([self._latents, new])
        self._latents = known[-self._most :]

    def breed(
        self, latents: Latents, which: Mask, rng: np.random.Generator
    ) -> tuple[Latents, Mask]:
        """These latents, some of them now neighbours of findings, and which of them are."""
        if self._latents is None or not len(self._latents):
            return latents, np.zeros(len(latents), dtype=bool)
        lines = np.flatnonzero(which)
        near = self._latents[rng.integers(len(self._latents), size=len(lines))]
        width = latents.shape[1]
        n_new = max(1, width // _ONE_NUMBER_OF)
        new = rng.integers(width, size=(len(lines), n_new))
        np.put_along_axis(near, new, np.take_along_axis(latents[lines], new, axis=1), axis=1)
        latents = latents.copy()
        latents[lines] = near
        return latents, which


class _Memory:
    """Rows with scores and flips to learn from: everything at first, later a recent part."""

    def __init__(self, schema: Schema, most: int, decision: Rule) -> None:
        self._schema, self._most, self.decision = schema, most, decision
        self._parts: list[Checked] = []

    def add(self, checked: Checked) -> None:
        """Remember answers; the oldest are forgotten first."""
        self._parts.append(checked)
        while len(self._parts) > 1 and sum(map(len, self._parts[1:])) >= self._most:
            del self._parts[0]

    def flips(self) -> tuple[Rows, Mask]:
        """Rows and whether they flip."""
        return (
            np.concatenate([part.rows for part in self._parts]),
            np.concatenate([part.flips for part in self._parts]),
        )

    def examples(self, most: int, rng: np.random.Generator) -> tuple[Rows, Scores]:
        """Rows under protected combinations that were asked, with their answers."""
        rows = np.concatenate([part.rows for part in self._parts])
        scores = np.concatenate([part.scores for part in self._parts])
        which, combination = np.nonzero(~np.isnan(scores))
        if len(which) > most:
            chosen = np.sort(rng.choice(len(which), most, replace=False))
            which, combination = which[chosen], combination[chosen]
        asked = change(self._schema, rows[which], self._schema.combinations[combination])
        return asked, scores[which, combination]

    def sides(self) -> NDArray[np.float64]:
        """Share of favorable decisions under each combination."""
        scores = np.concatenate([part.scores for part in self._parts])
        asked = ~np.isnan(scores)
        favorable = favors(self.decision.as_score(scores)).sum(axis=0)
        return np.asarray((favorable + 0.5) / (asked.sum(axis=0) + 1.0), dtype=np.float64)


@dataclass(frozen=True)
class _ScoreLearner:
    """Predicts the target's scores as log-odds; its numbers in eighths of their spread."""

    schema: Schema
    model: Any
    combinations: Rows
    decision: Rule

    @staticmethod
    def fit(
        schema: Schema, memory: _Memory, trees: int, leaves: int, rng: np.random.Generator
    ) -> _ScoreLearner:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits

        rows, scores = memory.examples(_MOST_EXAMPLES, rng)
        every = range(len(schema))
        model = HistGradientBoostingRegressor(
            **_shape(schema, every, len(rows), trees, leaves), random_state=int(rng.integers(2**31))
        )
        # The last digits of a score may depend on the batch it was asked in; what is learned
        # must not. Log-odds of plain models are round numbers, so that the edges of the steps,
        # where the last digit would tell, lie at odd ones.
        learned = np.floor(_as_log_odds(memory.decision, scores) * _LOGIT_STEPS + _ODD_EDGE)
        learned /= _LOGIT_STEPS
        # OpenMP teams that wait for one another on a busy machine are slower than one thread.
        with threadpool_limits(limits=1):
            model.fit(rows, learned)
        return _ScoreLearner(schema, model, _telling(schema, memory.sides()), memory.decision)

    def promise(self, rows: Rows) -> NDArray[np.float64]:
        """How far the predicted scores lie on both sides of 0.5, or numbers on both sides of a cut
        or beyond a difference; above 0 a flip is expected."""
        from threadpoolctl import threadpool_limits

        lowest = np.full(len(rows), np.inf)
        highest = np.full(len(rows), -np.inf)
        for combination in self.combinations:
            asked = change(self.schema, rows, np.tile(combination, (len(rows), 1)))
            with threadpool_limits(limits=1):
                predicted = self.model.predict(asked)
            np.minimum(lowest, predicted, out=lowest)
            np.maximum(highest, predicted, out=highest)
        return _promise(self.decision, lowest, highest)


def _as_log_odds(decision: Rule, answers: Scores) -> NDArray[np.float64]:
    """What is learned of answers."""
    if isinstance(decision, Numbers):
        return np.asarray(_PARTS * (answers - decision.middle) / decision.spread)
    small = np.exp(-_LARGEST_LOGIT)
    bounded = np.clip(decision.as_score(answers), small, 1 - small)
    return np.asarray(np.log(bounded / (1 - bounded)))


def _promise(
    decision: Rule, lowest: NDArray[np.float64], highest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How much lies between the lowest and the highest that was predicted of rows."""
    promise: NDArray[np.float64] = np.minimum(highest, -lowest)
    if isinstance(decision, Bands):
        cuts = _PARTS * (np.array(decision.cuts) - decision.middle) / decision.spread
        promise = np.max([np.minimum(highest - cut, cut - lowest) for cut in cuts], axis=0)
    elif isinstance(decision, Difference):
        least = _PARTS * decision.least / decision.spread
        if decision.relative:
            scaled = decision.middle * _PARTS / decision.spread
            nearer = np.minimum(np.abs(lowest + scaled), np.abs(highest + scaled))
            promise = highest - lowest - decision.least * nearer
        else:
            promise = highest - lowest - least
    return promise


def _flip_log_odds(
    schema: Schema, memory: _Memory, trees: int, leaves: int, rows: Rows, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Log-odds of a flip from a classifier of the flips seen so far; 0 where all were alike."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    asked, flips = memory.flips()
    if flips.all() or not flips.any():
        return np.zeros(len(rows))
    free = schema.free_index
    model = HistGradientBoostingClassifier(
        **_shape(schema, free, len(asked), trees, leaves), random_state=int(rng.integers(2**31))
    )
    with threadpool_limits(limits=1):
        model.fit(asked[:, free], flips)
        log_odds: NDArray[np.float64] = model.decision_function(rows[:, free])
    return log_odds


def _shape(schema: Schema, columns: Any, n: int, trees: int, leaves: int) -> dict[str, Any]:
    return {
        "max_iter": trees,
        "max_leaf_nodes": leaves,
        "min_samples_leaf": int(np.clip(n // 50, 2, 20)),
        "categorical_features": [
            schema.columns[i].kind in ("categorical", "boolean")
            and schema.columns[i].size <= _MOST_LEVELS
            for i in columns
        ],
        "early_stopping": False,
    }


class _Scale:
    """Turns the guesses of both learners into log-odds that fit what came of earlier ones."""

    def __init__(self) -> None:
        self._past: list[tuple[Guesses, Mask]] = []

    def learn(self, guesses: Guesses, flips: Mask) -> None:
        """Remember what was guessed of rows before they were asked, and what came of them."""
        self._past = [*self._past, (guesses, flips)][-_WEIGHED_ROUNDS:]

    def log_odds(self, guesses: Guesses) -> NDArray[np.float64]:
        """How likely rows flip."""
        from sklearn.linear_model import LogisticRegression

        flips = np.concatenate([np.zeros(0, dtype=bool), *(flips for _, flips in self._past)])
        weights, offset = _FIRST_WEIGHTS, 0.0
        if len(flips) >= _FEWEST_WEIGHED and flips.any() and not flips.all():
            model = LogisticRegression().fit(np.concatenate([g for g, _ in self._past]), flips)
            fitted = model.coef_[0].copy()
            # Rows were chosen by these guesses, so that one may seem to tell against a flip.
            fitted[:_LEARNERS] = np.maximum(fitted[:_LEARNERS], 0.0)
            if fitted[:_LEARNERS].any():
                weights, offset = fitted, float(model.intercept_[0])
        log_odds: NDArray[np.float64] = guesses @ weights + offset
        return log_odds


def _telling(schema: Schema, sides: NDArray[np.float64], most: int = 4) -> Rows:
    """The protected combinations worth predicting: all, or where there are many those with the
    lowest and the highest share of favorable decisions."""
    combinations = schema.combinations
    if len(combinations) <= most:
        return combinations
    ascending = np.argsort(sides, kind="stable")
    telling = np.sort(np.concatenate([ascending[: most // 2], ascending[-most // 2 :]]))
    chosen: Rows = combinations[telling]
    return chosen


def _fresh(
    session: Session, parents: _Parents, share: float, n: int, rng: np.random.Generator
) -> _Pool:
    """Up to n natural rows whose keys were never asked, a share of them neighbours of findings;
    fewer where the generator has no more."""
    assert session.generator is not None
    pool: _Pool | None = None
    vain = 0
    while (pool is None or len(pool.rows) < n) and vain < _MOST_VAIN:
        have = 0 if pool is None else len(pool.rows)
        size = max(n - have, n // 4)
        latents, bred = parents.breed(
            session.generator.sample_latents(size, rng), rng.random(size) < share, rng
        )
        new = _Pool(latents, session.generator.decode(latents), bred)
        pool = new if pool is None else pool.joined(new)
        pool = pool[session.unseen(pool.rows)]
        vain = vain + 1 if len(pool.rows) <= have else 0
    assert pool is not None
    return pool[:n]

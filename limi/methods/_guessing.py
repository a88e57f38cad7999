"""Guesses of which rows flip, learned from rows that were asked.

Two learners guess, and a third weighs them: boosted trees of the target's *scores* (over all
columns; a flip is expected where the predicted scores of two protected values lie on both sides of
0.5) learn most from few queries, boosted trees of the *flips* (over the other columns) from many.
A logistic regression on what both guessed about the last two rounds before these were asked, and on
whether a row is a neighbour, turns them into one probability.

Flips have few large trees, because they lie in small patches: rows near an earlier finding are
told apart by what became of others near it. Scores are smooth and have smaller trees, which are
asked about each protected combination. Rows are learned from again when there are three tenths more
of them, and guessed about without walks down the trees (`limi.trees.masks`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Bands, Difference, Numbers, Rule, favors
from limi.search.check import Checked
from limi.system.cores import n_free
from limi.table.partners import change
from limi.table.rows import fill_empty
from limi.table.schema import Schema
from limi.trees.histograms import plant
from limi.trees.masks import MOST_LEAVES, MaskedTrees
from limi.types import Mask, Rows, Scores

__all__ = ["Guesses", "Learners", "Memory", "Scale", "Values"]

_PARTS = 8.0  # of the spread of numbers: what log-odds are to scores
_LARGEST_LOGIT = 7.0  # beyond it a score is as sure as it matters
_LOGIT_STEPS = 100  # in one unit of log-odds
_ODD_EDGE = 1 / np.pi
_MOST_LEVELS = 255  # what scikit-learn's boosted trees take as categories
_MOST_EXAMPLES = 20_000  # scores to fit on at most; a row gives one for each combination asked
_FEW_ROWS = 10_000  # fewer are learned from by twice as many trees, in smaller steps
_STEPS = 2
_PACE = 6.0  # of learning, over all trees
_FASTEST = 0.5  # of one tree
_FEWER_LEAVES = 4  # times fewer for scores: they are smooth, and guessed for each combination
_LEARN_AGAIN = 1.3  # times the rows of the last learning
# Far from the edge a learner is sure, and no longer right about how sure.
_SURE_PROMISE = (-4.0, 4.0)
_SURE_FLIPS = (-8.0, 8.0)

_WEIGHED_ROUNDS = 2  # past rounds whose guesses the learners are weighed by
_FEWEST_WEIGHED = 30
_FIRST_WEIGHTS = np.array([2.0, 0.5, 0.7])  # before there is a round to weigh them by
_LEARNERS = 2

Guesses = NDArray[np.float64]
Values = NDArray[np.float64]


class Memory:
    """Rows with answers and flips to learn from: everything at first, later a recent part."""

    def __init__(self, schema: Schema, most: int, decision: Rule) -> None:
        self._schema, self._most, self.decision = schema, most, decision
        self._parts: list[Checked] = []
        self.n_seen = 0  # rows in all, the forgotten ones too

    def add(self, checked: Checked) -> None:
        """Remember answers; the oldest are forgotten first."""
        self.n_seen += len(checked)
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

    def sides(self) -> Values:
        """Share of favorable decisions under each combination."""
        scores = np.concatenate([part.scores for part in self._parts])
        asked = ~np.isnan(scores)
        favorable = favors(self.decision.as_score(scores)).sum(axis=0)
        return np.asarray((favorable + 0.5) / (asked.sum(axis=0) + 1.0), dtype=np.float64)


@dataclass(frozen=True)
class Learners:
    """What was learned of the target's scores, and of flips."""

    schema: Schema
    decision: Rule
    combinations: Rows  # those whose scores are worth predicting
    n_seen: int  # rows that had been asked by then
    scores: Any  # as log-odds; numbers in eighths of their spread
    flips: Any  # None where all rows were alike
    trees: MaskedTrees | None  # of both, without walks; None where that cannot be

    @staticmethod
    def fit(
        schema: Schema, memory: Memory, trees: int, leaves: int, rng: np.random.Generator
    ) -> Learners:
        """Learn from all that is remembered."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits

        examples, answers = memory.examples(_MOST_EXAMPLES, rng)
        rows, flips = memory.flips()
        # The last digits of a score may depend on the batch it was asked in; what is learned
        # must not. Log-odds of plain models are round numbers, so that the edges of the steps,
        # where the last digit would tell, lie at odd ones.
        learned = np.floor(_as_log_odds(memory.decision, answers) * _LOGIT_STEPS + _ODD_EDGE)
        learned /= _LOGIT_STEPS

        steps = _STEPS if len(rows) < _FEW_ROWS else 1
        trees *= steps
        few, many = max(2, leaves // _FEWER_LEAVES), max(2, leaves // steps)
        shape = _shape(schema, range(len(schema)), len(examples), trees, few)
        by_scores = HistGradientBoostingRegressor(**shape, random_state=int(rng.integers(2**31)))
        free, by_flips = schema.free_index, None
        # OpenMP teams that wait for one another on a busy machine are slower than one thread,
        # and sums over several of them end in other digits.
        with threadpool_limits(limits=1):
            by_scores.fit(fill_empty(examples), learned)
            if flips.any() and not flips.all():
                shape = _shape(schema, free, len(rows), trees, many)
                state = int(rng.integers(2**31))
                by_flips = HistGradientBoostingClassifier(**shape, random_state=state)
                by_flips.fit(fill_empty(rows[:, free]), flips)
        masked = None
        if leaves <= MOST_LEAVES and not _moves_along(schema):
            known = [plant(by_scores, np.arange(len(schema)))]
            known += [] if by_flips is None else [plant(by_flips, np.asarray(free))]
            masked = MaskedTrees.plant(schema, known, schema.protected_index)
        telling = _telling(schema, memory.sides())
        return Learners(
            schema, memory.decision, telling, memory.n_seen, by_scores, by_flips, masked
        )

    def are_stale(self, memory: Memory) -> bool:
        """Were enough rows asked since to learn again?"""
        return memory.n_seen >= _LEARN_AGAIN * self.n_seen

    def guess(self, rows: Rows) -> Values:
        """(n, 2): what the scores and what the flips seen so far say, as log-odds."""
        # Each row is guessed about by itself, so the result does not depend on threads.
        if self.trees is None:
            lowest, highest, by_flips = self._walk(rows)
        else:
            settings = np.zeros((len(self.combinations), len(self.schema)))
            settings[:, self.schema.protected_index] = self.combinations
            scores, *flips = self.trees.add_up(rows, settings, n_free())
            lowest, highest = scores.min(axis=1), scores.max(axis=1)
            by_flips = flips[0][:, 0] if flips else np.zeros(len(rows))
        promise = np.clip(_promise(self.decision, lowest, highest), *_SURE_PROMISE)
        return np.column_stack([promise, np.clip(by_flips, *_SURE_FLIPS)])

    def _walk(self, rows: Rows) -> tuple[Values, Values, Values]:
        """The lowest and the highest score of rows, and log-odds of a flip, tree by tree."""
        from threadpoolctl import threadpool_limits

        lowest = np.full(len(rows), np.inf)
        highest = np.full(len(rows), -np.inf)
        by_flips = np.zeros(len(rows))
        with threadpool_limits(limits=n_free()):
            if self.flips is not None:
                by_flips = self.flips.decision_function(rows[:, self.schema.free_index])
            for combination in self.combinations:
                asked = change(self.schema, rows, np.tile(combination, (len(rows), 1)))
                predicted = self.scores.predict(asked)
                np.minimum(lowest, predicted, out=lowest)
                np.maximum(highest, predicted, out=highest)
        return lowest, highest, by_flips


def _moves_along(schema: Schema) -> bool:
    """Do other cells change with protected ones? Masks are looked up for the protected alone."""
    return bool(len(np.setdiff1d(schema.moving_index, schema.protected_index)))


def _as_log_odds(decision: Rule, answers: Scores) -> Values:
    """What is learned of answers."""
    if isinstance(decision, Numbers):
        return np.asarray(_PARTS * (answers - decision.middle) / decision.spread)
    small = np.exp(-_LARGEST_LOGIT)
    bounded = np.clip(decision.as_score(answers), small, 1 - small)
    return np.asarray(np.log(bounded / (1 - bounded)))


def _promise(decision: Rule, lowest: Values, highest: Values) -> Values:
    """How much lies between the lowest and the highest that was predicted of rows, across the edge
    of the decision or beyond a difference; above 0 a flip is expected."""
    promise: Values = np.minimum(highest, -lowest)
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


def _shape(schema: Schema, columns: Any, n: int, trees: int, leaves: int) -> dict[str, Any]:
    return {
        "max_iter": trees,
        "learning_rate": min(_FASTEST, _PACE / trees),
        "max_leaf_nodes": leaves,
        "min_samples_leaf": int(np.clip(n // 50, 2, 20)),
        "categorical_features": [
            schema.columns[i].kind in ("categorical", "boolean")
            and schema.columns[i].size <= _MOST_LEVELS
            for i in columns
        ],
        "early_stopping": False,
    }


class Scale:
    """Turns the guesses of both learners into log-odds that fit what came of earlier ones."""

    def __init__(self) -> None:
        self._past: list[tuple[Guesses, Mask]] = []

    def learn(self, guesses: Guesses, flips: Mask) -> None:
        """Remember what was guessed of rows before they were asked, and what came of them."""
        self._past = [*self._past, (guesses, flips)][-_WEIGHED_ROUNDS:]

    def log_odds(self, guesses: Guesses) -> Values:
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
        log_odds: Values = guesses @ weights + offset
        return log_odds


def _telling(schema: Schema, sides: Values, most: int = 4) -> Rows:
    """The protected combinations worth predicting: all, or where there are many those with the
    lowest and the highest share of favorable decisions."""
    combinations = schema.combinations
    if len(combinations) <= most:
        return combinations
    ascending = np.argsort(sides, kind="stable")
    telling = np.sort(np.concatenate([ascending[: most // 2], ascending[-most // 2 :]]))
    chosen: Rows = combinations[telling]
    return chosen

"""Small local explainers of a black box: weighted linear ones, decision trees and their boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.search.session import Session
from limi.table.steps import Ladder
from limi.types import Index, Mask, Rows, Scores

__all__ = ["Linear", "Moments", "Paths", "Tree", "gaussian", "marginal", "n_affordable"]

_SHARE = 2  # a surrogate takes at most half of the queries, or of the time, that is left
_CLIMB_ROWS = 2048
_CHUNK = 256  # rows explained at once; bounds the matrix of weights


def n_affordable(session: Session, n: int) -> int:
    """How many of n rows may be asked for a surrogate, so that something is left for the search."""
    allowed = min(session.queries_left, session.watch.affordable)
    return n if np.isinf(allowed) else min(n, int(allowed) // _SHARE)


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of a table's positions, column by column."""

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]

    @staticmethod
    def of(ladder: Ladder, table: Rows) -> Moments:
        """The moments of a table."""
        positions = np.empty(table.shape)
        # In parts that stay in the cache: climbing takes a dozen passes.
        for start in range(0, len(table), _CLIMB_ROWS):
            part = slice(start, start + _CLIMB_ROWS)
            positions[part] = ladder.climb(table[part])
        return Moments(positions.mean(axis=0), positions.std(axis=0))


def gaussian(ladder: Ladder, table: Moments, n: int, rng: np.random.Generator) -> Rows:
    """n rows around the mean of a table, each column normal with the table's spread."""
    draws = rng.standard_normal((n, len(table.mean)))
    return ladder.descend(table.mean + draws * table.spread)


def marginal(table: Rows, n: int, rng: np.random.Generator) -> Rows:
    """n rows whose cells are drawn column by column from a table, each on its own."""
    place = np.floor(rng.random((n, table.shape[1])) * len(table)).astype(np.intp)
    return np.take_along_axis(table, place, axis=0)


@dataclass(frozen=True)
class Linear:
    """Linear explanations from one pool of scored rows.

    What a row's neighbours weigh falls with their distance; the pool itself is the same for all.
    """

    ladder: Ladder
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    pool: NDArray[np.float64]  # (m, d) standardised
    score: Scores
    alpha: float = 1.0  # ridge penalty
    width: float = 0.75  # of the kernel, times the square root of the number of columns

    @staticmethod
    def of(ladder: Ladder, table: Moments, pool: Rows, score: Scores) -> Linear:
        """An explainer whose columns are standardised by a table."""
        scale = np.where(table.spread > 0, table.spread, 1.0)
        points = (ladder.climb(pool) - table.mean) / scale
        return Linear(ladder, table.mean, scale, points, score)

    def coefficients(self, rows: Rows, score: Scores) -> NDArray[np.float64]:
        """(n, d): the influence of each column near each row, in standard deviations.

        A ridge regression with intercept on the pool and the row itself, weighted by
        sqrt(exp(-distance^2 / kernel width^2)).
        """
        from threadpoolctl import threadpool_limits

        points = (self.ladder.climb(rows) - self.mean) / self.scale
        upper = np.triu_indices(self.pool.shape[1])
        products = self.pool[:, upper[0]] * self.pool[:, upper[1]]
        # One matrix product gives every sum over the pool: weights, moments and products.
        sums = np.column_stack(
            [np.ones(len(self.pool)), self.score, self.pool, self.pool * self.score[:, None]]
        )
        sums = np.concatenate([sums, products], axis=1)
        # Small products: several threads would wait for each other most of the time.
        with threadpool_limits(limits=1, user_api="blas"):
            parts = [
                self._solve(points[start : start + _CHUNK], score[start : start + _CHUNK], sums)
                for start in range(0, len(points), _CHUNK)
            ]
        return np.concatenate([np.empty((0, self.pool.shape[1])), *parts])

    def _solve(
        self, points: NDArray[np.float64], score: Scores, sums: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        d = points.shape[1]
        distance = (
            (points**2).sum(axis=1)[:, None]
            + (self.pool**2).sum(axis=1)
            - 2.0 * points @ self.pool.T
        )
        weights = np.exp(-np.maximum(distance, 0.0) / (2.0 * self.width**2 * d))
        total = weights @ sums
        rows, columns = np.triu_indices(d)
        # The row itself is a neighbour at distance 0, so it weighs 1.
        n = total[:, 0] + 1.0
        mean_score = (total[:, 1] + score) / n
        mean = (total[:, 2 : 2 + d] + points) / n[:, None]
        cross = total[:, 2 + d : 2 + 2 * d] + points * score[:, None]
        gram = np.empty((len(points), d, d))
        gram[:, rows, columns] = total[:, 2 + 2 * d :] + points[:, rows] * points[:, columns]
        gram[:, columns, rows] = gram[:, rows, columns]
        gram -= n[:, None, None] * mean[:, :, None] * mean[:, None, :]
        gram += self.alpha * np.eye(d)
        right = cross - (n * mean_score)[:, None] * mean
        solved: NDArray[np.float64] = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
        return solved


@dataclass(frozen=True)
class Paths:
    """The tests that rows pass on their way down a tree, from the root on."""

    column: Index  # (n, depth), -1 behind the end of a path
    threshold: NDArray[np.float64]
    below: NDArray[np.bool_]  # the row's cell is at most the threshold
    confidence: NDArray[np.float64]  # share of the node's training rows that go the same way


@dataclass(frozen=True)
class Tree:
    """A fully grown classification tree on positions, as arrays over nodes; the root is node 0."""

    column: Index  # -1 at leaves
    threshold: NDArray[np.float64]
    left: Index  # where the rows at or below the threshold go
    right: Index
    n_rows: NDArray[np.float64]  # training rows in the node
    favorable: Mask

    @staticmethod
    def grow(positions: Rows, favorable: Mask, *, criterion: str, rng: np.random.Generator) -> Tree:
        """The tree of labelled positions."""
        from sklearn.tree import DecisionTreeClassifier

        state = int(rng.integers(2**31))
        learner = DecisionTreeClassifier(criterion=criterion, random_state=state)
        tree = learner.fit(positions, favorable).tree_
        inner = tree.children_left >= 0
        return Tree(
            np.where(inner, tree.feature, -1).astype(np.intp),
            tree.threshold.copy(),
            tree.children_left.astype(np.intp),
            tree.children_right.astype(np.intp),
            tree.n_node_samples.astype(np.float64),
            np.asarray(learner.classes_, dtype=bool)[tree.value[:, 0].argmax(axis=1)],
        )

    def paths(self, positions: Rows) -> Paths:
        """The path of each row."""
        line = np.arange(len(positions))
        node = np.zeros(len(positions), dtype=np.intp)
        steps = []
        while True:
            column, threshold = self.column[node], self.threshold[node]
            if (column < 0).all():
                break
            below = positions[line, column] <= threshold
            following = np.where(below, self.left[node], self.right[node])
            following = np.where(column < 0, node, following)
            confidence = self.n_rows[following] / self.n_rows[node]
            steps.append((column, threshold, below, confidence))
            node = following
        if not steps:
            nothing = np.empty((len(positions), 0))
            return Paths(nothing.astype(np.intp), nothing, nothing.astype(bool), nothing)
        return Paths(*(np.stack(parts, axis=1) for parts in zip(*steps, strict=True)))

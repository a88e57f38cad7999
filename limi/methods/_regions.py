"""Boxes behind negated tests of a tree, and rows moved into them.

Tests of a tree compare one column with a number, so a conjunction of them is a box: an interval a
column. Intersecting intervals answers what the published programs ask a solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from limi.methods._surrogate import Paths
from limi.table.steps import Ladder
from limi.types import Index, Rows

__all__ = [
    "Regions",
    "Values",
    "highest_below",
    "lowest_above",
    "prefixes",
    "solve",
    "toggles",
]

Values = Literal["nearest", "zero", "uniform"]
"""Which value of an interval: the one nearest to the row's own, to zero, or any of them."""

_REAL_GAP = 1e-6  # how far from a threshold real-valued positions stay, in steps


@dataclass(frozen=True)
class Regions:
    """Boxes of positions, each with the row to be moved into it."""

    row: Index  # (m,) which row
    place: Index  # (m,) which test of its path is negated
    low: NDArray[np.float64]  # (m, d) inclusive
    high: NDArray[np.float64]
    open: NDArray[np.bool_]  # (m, d) the columns that may change
    confidence: NDArray[np.float64]  # (m,) mean over the tests of the box

    def __getitem__(self, index: Any) -> Regions:
        return Regions(
            self.row[index],
            self.place[index],
            self.low[index],
            self.high[index],
            self.open[index],
            self.confidence[index],
        )

    def __len__(self) -> int:
        return len(self.row)

    def feasible(self) -> Regions:
        """Those that hold any row at all."""
        return self[(self.low <= self.high).all(axis=1)]


def highest_below(ladder: Ladder, columns: Index, thresholds: NDArray[np.float64]) -> Any:
    """The highest position that is at most a threshold."""
    return np.where(ladder.whole[columns], np.floor(thresholds), thresholds - _REAL_GAP)


def lowest_above(ladder: Ladder, columns: Index, thresholds: NDArray[np.float64]) -> Any:
    """The lowest position above a threshold."""
    return np.where(ladder.whole[columns], np.floor(thresholds) + 1, thresholds + _REAL_GAP)


def toggles(ladder: Ladder, paths: Paths) -> Regions:
    """For each test of each path, the rows that fail it alone: only its column may change.

    Tests of protected columns stay as they are.
    """
    column = paths.column
    depth = column.shape[1]
    same = (column[:, :, None] == column[:, None, :]) & ~np.eye(depth, dtype=bool)
    ceiling = np.where(paths.below, highest_below(ladder, column, paths.threshold), np.inf)
    floor = np.where(paths.below, -np.inf, lowest_above(ladder, column, paths.threshold))
    high = np.where(same, ceiling[:, None, :], np.inf).min(axis=2, initial=np.inf)
    low = np.where(same, floor[:, None, :], -np.inf).max(axis=2, initial=-np.inf)
    above, beneath = _negate(ladder, paths)
    low, high = np.maximum(low, above), np.minimum(high, beneath)

    length = (column >= 0).sum(axis=1)
    total = np.where(column >= 0, paths.confidence, 0.0).sum(axis=1)
    mean = (total[:, None] + 1.0 - 2.0 * paths.confidence) / np.maximum(length, 1)[:, None]

    row, place = np.nonzero(_free(ladder, column))
    changed = column[row, place]
    line = np.arange(len(row))
    lows, highs = _whole_domain(ladder, len(row))
    lows[line, changed] = np.maximum(lows[line, changed], low[row, place])
    highs[line, changed] = np.minimum(highs[line, changed], high[row, place])
    may_change = np.zeros(lows.shape, dtype=bool)
    may_change[line, changed] = True
    return Regions(row, place, lows, highs, may_change, mean[row, place])


def prefixes(ladder: Ladder, paths: Paths, threshold: float) -> Regions:
    """For each test of each path, the rows that pass the tests before it and fail it.

    All columns of those tests may change. Tests of protected columns are left out, and a path
    ends before the first test whose confidence is under the threshold (T1).
    """
    column = paths.column
    n, depth = column.shape
    free = _free(ladder, column)
    row, place = np.nonzero(free)
    at = row, place, column[row, place]
    lows = np.zeros((n, depth, len(ladder.low)))
    highs = np.broadcast_to(ladder.last, lows.shape).copy()
    tested = np.zeros(lows.shape, dtype=bool)
    ceiling = np.where(paths.below, highest_below(ladder, column, paths.threshold), np.inf)
    floor = np.where(paths.below, -np.inf, lowest_above(ladder, column, paths.threshold))
    lows[at] = np.maximum(lows[at], floor[row, place])
    highs[at] = np.minimum(highs[at], ceiling[row, place])
    tested[at] = True
    # What the tests before each one leave; nothing is left out before the first.
    before_low, before_high = _whole_domain(ladder, n)
    lows = np.maximum.accumulate(np.concatenate([before_low[:, None], lows], axis=1), axis=1)
    highs = np.minimum.accumulate(np.concatenate([before_high[:, None], highs], axis=1), axis=1)
    lows, highs = lows[:, :-1], highs[:, :-1]
    above, beneath = _negate(ladder, paths)
    lows[at] = np.maximum(lows[at], above[row, place])
    highs[at] = np.minimum(highs[at], beneath[row, place])

    confidence = np.where(free, paths.confidence, 0.0)
    total = np.cumsum(confidence, axis=1) - confidence
    mean = (total + 1.0 - paths.confidence) / np.maximum(np.cumsum(free, axis=1), 1)
    ended = np.logical_or.accumulate(free & (paths.confidence < threshold), axis=1)
    kept = ~ended[row, place]
    row, place = row[kept], place[kept]
    may_change = np.logical_or.accumulate(tested, axis=1)
    kept_at = row, place
    return Regions(row, place, lows[kept_at], highs[kept_at], may_change[kept_at], mean[kept_at])


def _negate(ladder: Ladder, paths: Paths) -> tuple[Any, Any]:
    """Lowest and highest position that fail each test."""
    above = lowest_above(ladder, paths.column, paths.threshold)
    beneath = highest_below(ladder, paths.column, paths.threshold)
    return np.where(paths.below, above, -np.inf), np.where(paths.below, np.inf, beneath)


def _free(ladder: Ladder, column: Index) -> Any:
    return (column >= 0) & ladder.schema.free_mask[column]


def _whole_domain(ladder: Ladder, n: int) -> tuple[Any, Any]:
    return np.zeros((n, len(ladder.low))), np.tile(ladder.last, (n, 1))


def solve(
    ladder: Ladder, rows: Rows, regions: Regions, values: Values, rng: np.random.Generator
) -> Rows:
    """The rows of feasible regions, moved into them; closed columns keep their cells."""
    own = rows[regions.row]
    here = ladder.climb(own)
    if values == "uniform":
        draws = rng.random(here.shape)
        width = regions.high - regions.low
        drawn = np.where(ladder.whole, np.floor(draws * (width + 1)), draws * width)
        there = regions.low + drawn
    else:
        wanted = here if values == "nearest" else (0.0 - ladder.low) / ladder.unit
        there = np.clip(wanted, regions.low, regions.high)
    return ladder.replace(own, there, regions.open & (there != here))

"""Sketches of columns that are read once: quantiles, how many values there are, a fair sample.

Each has a fixed size, whatever it is shown, and the same content however that is cut into batches
(the quantiles within their stated error); none draws a random number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limi.types import Mask

__all__ = ["DistinctCount", "Quantiles", "RowSampler", "row_ranks"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_BUFFER = 8192  # numbers in a buffer of quantiles
_HASHES = 4096  # lowest hashes that are kept
_SEED = np.uint64(0x6C696D69)  # so that rows are drawn in an order of limi's own


class Quantiles:
    """Quantiles of numbers within about a thousandth of their rank.

    Numbers wait in buffers; a full one is sorted and every second number goes to the next, where
    each stands for twice as many. Which half goes alternates, so that errors cancel out. With n
    numbers shown a rank is wrong by at most n * (levels / 8192), in practice by far less.
    """

    def __init__(self) -> None:
        self._levels: list[list[NDArray[np.float64]]] = [[]]
        self._odd = [False]

    def add(self, numbers: NDArray[np.float64]) -> None:
        """Show finite numbers, in any order."""
        if not len(numbers):
            return
        self._levels[0].append(np.array(numbers, dtype=np.float64))
        level = 0
        while sum(map(len, self._levels[level])) >= _BUFFER:
            ascending = np.sort(np.concatenate(self._levels[level]))
            even = len(ascending) // 2 * 2
            if level + 1 == len(self._levels):
                self._levels.append([])
                self._odd.append(False)
            self._levels[level + 1].append(ascending[int(self._odd[level]) : even : 2])
            self._levels[level] = [ascending[even:]] if even < len(ascending) else []
            self._odd[level] = not self._odd[level]
            level += 1

    def spread(self, n: int) -> NDArray[np.float64]:
        """At most n numbers with the quantiles of all that were shown; none where none was."""
        values = [np.concatenate(level) if level else np.empty(0) for level in self._levels]
        weights = np.concatenate(
            [np.full(len(part), 2.0**level) for level, part in enumerate(values)]
        )
        ascending = np.concatenate(values)
        if not len(ascending):
            return ascending
        order = np.argsort(ascending, kind="stable")
        ranks = np.cumsum(weights[order])
        wanted = (np.arange(n) + 0.5) / n * ranks[-1]
        chosen: NDArray[np.float64] = ascending[order][np.searchsorted(ranks, wanted)]
        return chosen


class DistinctCount:
    """About how many different values there are, within a few per cent: the lowest hashes tell."""

    def __init__(self) -> None:
        self._lowest = np.empty(0, dtype=np.uint64)

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Show 64-bit hashes of values."""
        lowest = np.unique(np.concatenate([self._lowest, hashes]))
        self._lowest = lowest[:_HASHES]

    @property
    def estimate(self) -> int:
        """How many different hashes were shown; exact below the size of the sketch."""
        if len(self._lowest) < _HASHES:
            return len(self._lowest)
        return round((_HASHES - 1) / (float(self._lowest[-1]) / 2.0**64))


def row_ranks(start: int, n: int) -> NDArray[np.uint64]:
    """Where rows stand in a random order that depends on their numbers alone."""
    with np.errstate(over="ignore"):
        mixed = (np.arange(start, start + n, dtype=np.uint64) + _SEED) * _GOLDEN
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    ranks: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return ranks


class RowSampler:
    """A fair sample of n rows of a table whose length shows at its end only.

    A row is kept if its rank is among the n lowest, so the sample is the same however rows are cut
    into batches, and whoever reads them.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self.limit = np.uint64(2**64 - 1)  # no row of a higher rank is kept
        self._ranks: list[NDArray[np.uint64]] = []
        self.n_seen = 0

    def offer(self, n: int) -> Mask:
        """Which of the next n rows to keep for now."""
        ranks = row_ranks(self.n_seen, n)
        self.n_seen += n
        keep: Mask = ranks <= self.limit
        self._ranks.append(ranks[keep])
        return keep

    def settle(self, *, at_end: bool = False) -> list[Mask] | None:
        """Which of the kept rows still belong, batch by batch; None while few are too many."""
        n_kept = sum(map(len, self._ranks))
        if n_kept <= (self._n if at_end else 2 * self._n):
            return None
        self.limit = np.partition(np.concatenate(self._ranks), self._n - 1)[self._n - 1]
        masks = [ranks <= self.limit for ranks in self._ranks]
        self._ranks = [ranks[mask] for ranks, mask in zip(self._ranks, masks, strict=True)]
        return masks

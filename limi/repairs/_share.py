"""The threshold at which as many people as before get a favorable decision."""

from __future__ import annotations

import numpy as np

from limi.decisions import EDGE
from limi.types import Mask, Scores

__all__ = ["choose_some", "keep_share"]


def choose_some(n: int, rng: np.random.Generator) -> Mask:
    """Half of so many rows, to choose a threshold on; all where there are few."""
    if n < 2:
        return np.ones(n, dtype=bool)
    some = np.zeros(n, dtype=bool)
    some[rng.permutation(n)[: (n + 1) // 2]] = True
    return some


def keep_share(scores: Scores, wanted: int) -> float:
    """The threshold above which as many of these scores lie as are wanted, as nearly as can be.

    It lies in the middle between two scores. Of two as near the one nearer to 0.5 is taken. No
    label is looked at.

    >>> keep_share(np.array([0.1, 0.2, 0.4, 0.45]), 2)
    0.3
    """
    values, counts = np.unique(scores, return_counts=True)
    above = np.concatenate([[len(scores)], len(scores) - np.cumsum(counts)])
    ends = np.concatenate([[0.0], values, [1.0]])
    middles = np.clip((ends[1:] + ends[:-1]) / 2, 2 * EDGE, 1 - 2 * EDGE)
    # Scores nearer than rounding are one score, and no threshold lies between them.
    apart = np.diff(ends) > 4 * EDGE
    apart[[0, -1]] = True
    missed = np.where(apart, np.abs(above - wanted), np.inf)
    near = np.flatnonzero(missed == missed.min())
    best = near[np.argmin(np.abs(middles[near] - 0.5))]
    return float(middles[best].round(6))

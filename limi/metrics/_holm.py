"""Many tests at once: p-values that count for their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["holm"]


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """P-values corrected for their number (Holm): rejecting those up to a level errs on any true
    hypothesis at most that often, however they depend on each other.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    left = len(p_values) - np.arange(len(p_values))
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(left * p_values[order]), 1.0)
    return corrected

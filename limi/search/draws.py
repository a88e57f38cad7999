"""Natural rows that a search asked with known probabilities: what a rate can be estimated from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Draws"]


@dataclass(frozen=True)
class Draws:
    """Natural rows, each of which was asked with a probability that was settled before.

    A row that was asked and flips weighs 1 / its probability; every other one weighs 0.
    """

    n: int  # natural rows drawn, asked or not
    asked: int  # of these, the rows whose verdict is known
    bound: float  # what a row can weigh at most: 1 / the smallest probability
    weights: NDArray[np.float64]  # of the rows that were asked and flip

"""Array aliases, with the shape and meaning that their names stand for."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Index", "Keys", "Labels", "Latents", "Mask", "Rows", "Scores", "Truth", "Value"]

Rows: TypeAlias = NDArray[np.float64]
"""(n, d): one person a row. Numbers stand for themselves, levels for their place, NaN: missing."""

Scores: TypeAlias = NDArray[np.float64]
"""(n,) in [0, 1]: above 0.5 the decision is favorable."""

Labels: TypeAlias = NDArray[np.int8]
"""(n,) of 0 and 1; 1 is favorable."""

Truth: TypeAlias = NDArray[Any]
"""(n,): labels; or what the target column holds as answers of a rule, a class's place or a number,
NaN where it is not known."""

Mask: TypeAlias = NDArray[np.bool_]
"""(n,): reads as a predicate."""

Index: TypeAlias = NDArray[np.intp]
"""(n,): positions, from 0."""

Keys: TypeAlias = NDArray[np.uint64]
"""(n, w): w 64-bit words that are equal exactly when the non-protected columns are."""

Latents: TypeAlias = NDArray[np.floating[Any]]
"""(n, k): points of a generator's latent space."""

Value: TypeAlias = str | int | float | bool
"""What a cell of a table may hold, in plain Python."""

"""Rows of a box, value by value: every combination of the codes of some columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from limi.table.rows import snap
from limi.table.schema import Schema
from limi.types import Rows

__all__ = ["MOST_ROWS", "codes_between", "combine", "count_between"]

MOST_ROWS = 20_000
"""Rows of a box that are looked at one by one; a box of more counts as too large."""


def count_between(low: NDArray[np.float64], high: NDArray[np.float64], step: Rows) -> Rows:
    """How many codes lie between two ends, these with them; real numbers that move are many."""
    on_grid = step > 0
    n: Rows = np.rint((high - low) / np.where(on_grid, step, 1.0)).astype(np.float64) + 1
    return np.where(high > low, np.where(on_grid, n, np.inf), 1.0)


def codes_between(low: float, high: float, step: float) -> NDArray[np.float64]:
    """The codes between two ends.

    >>> codes_between(1.0, 2.0, 0.5)
    array([1. , 1.5, 2. ])
    """
    nth = np.arange(int(np.rint((high - low) / step)) + 1)
    return np.asarray(low + step * nth, dtype=np.float64)


def combine(
    schema: Schema, base: Rows, columns: Sequence[int], choices: Sequence[NDArray[np.float64]]
) -> Rows:
    """A row with every combination of cells in some columns; the last column changes fastest."""
    rows = np.repeat(base[None], int(np.prod([len(codes) for codes in choices])), axis=0)
    for j, cells in zip(columns, np.meshgrid(*choices, indexing="ij"), strict=True):
        rows[:, j] = cells.ravel()
    on_grid = np.zeros(len(schema), dtype=bool)
    on_grid[list(columns)] = True
    on_grid &= schema.step > 0
    found: Rows = np.where(on_grid, snap(schema, rows), rows)
    return found

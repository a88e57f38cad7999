"""Every column as a ladder of steps, so that walks, trees and boxes share one arithmetic.

A cell's position is how many steps it lies above the column's lowest value. Levels and grids stand
on whole positions from 0 to `top`. A real-valued column has a hundred steps and every position
between them. A missing value is one step above the highest, as if it were one more value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.table.rows import snap
from limi.table.schema import Schema
from limi.types import Index, Mask, Rows

__all__ = ["Ladder"]

_REAL_STEPS = 100  # a step of a real-valued column is a hundredth of its range


@dataclass(frozen=True)
class Ladder:
    """The ladders of a schema's columns, as arrays over columns."""

    schema: Schema
    low: NDArray[np.float64]
    unit: NDArray[np.float64]  # what one step is worth
    top: NDArray[np.float64]  # position of the highest value
    last: NDArray[np.float64]  # position of the highest value, or of missing where there is such
    whole: Mask  # which columns have whole positions only

    @staticmethod
    def of(schema: Schema) -> Ladder:
        """The ladders of a schema."""
        span = schema.high - schema.low
        whole = schema.step > 0
        unit = np.where(whole, schema.step, span / _REAL_STEPS)
        unit = np.where(unit > 0, unit, 1.0)
        top = np.where(whole, np.rint(span / unit), span / unit)
        return Ladder(schema, schema.low, unit, top, top + schema.may_miss, whole)

    def climb(self, rows: Rows) -> Rows:
        """Positions of cells."""
        positions = (rows - self.low) / self.unit
        # Real positions are rounded, so that a step up and a step down lead to the same number.
        positions = np.where(self.whole, np.rint(positions), np.round(positions, 9))
        return np.where(np.isnan(rows), self.top + 1.0, positions)

    def descend(self, positions: Rows) -> Rows:
        """Cells at positions, moved into the domain."""
        positions = np.clip(positions, 0.0, self.last)
        rows = snap(self.schema, self.low + positions * self.unit)
        rows[positions > self.top + 0.5] = np.nan
        return rows

    def replace(self, rows: Rows, positions: Rows, where: NDArray[np.bool_]) -> Rows:
        """Rows with the cells in a mask put to positions; the others keep their exact value."""
        return np.where(where, self.descend(positions), rows)

    def step_cells(self, rows: Rows, columns: Index, steps: NDArray[np.float64]) -> Rows:
        """Rows with one cell each moved by a number of steps, as far as the column goes."""
        line = np.arange(len(rows))
        positions = self.climb(rows)
        positions[line, columns] += steps
        moved = np.zeros(rows.shape, dtype=bool)
        moved[line, columns] = True
        return self.replace(rows, positions, moved)

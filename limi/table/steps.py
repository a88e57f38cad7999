"""Steps of columns: what a method that changes rows counts its moves in.

A step is the column's own step, the way to the next level, or a hundredth of the range of a
real-valued column. Whatever moves cells counts in these, in one of two ways:

- `move` takes rows so many steps along, within the domain; a missing cell stays missing. That is
  what walks along a gradient need, because a missing cell has no slope.
- `Ladder` turns cells into positions and back, and a missing cell is one more value, a step above
  the highest. That is what trees and boxes need, because they split a column wherever they like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.table.rows import snap
from limi.table.schema import Schema
from limi.types import Index, Mask, Rows

__all__ = ["Ladder", "movable", "move", "step_sizes"]

_REAL_STEPS = 100  # in the range of a real-valued column


def step_sizes(schema: Schema) -> NDArray[np.float64]:
    """(d,): one step of each column, in its own unit; 0 where a real-valued one has no range."""
    return np.where(schema.step > 0, schema.step, (schema.high - schema.low) / _REAL_STEPS)


def movable(schema: Schema) -> Mask:
    """(d,): which columns a search may change: not protected, and of two values at least."""
    moves = np.zeros(len(schema), dtype=bool)
    moves[schema.key_index] = True
    return moves & (schema.high > schema.low)


def move(schema: Schema, rows: Rows, moves: NDArray[np.float64]) -> Rows:
    """Rows after so many steps in each column, within the domain; missing cells stay missing.

    Real-valued cells go to the marks that divide their range into a hundred, so that a way back
    meets the same numbers again, and not others that differ in the last digit.
    """
    size = step_sizes(schema)
    there = rows + moves * size
    real = np.flatnonzero((schema.step == 0) & movable(schema))
    if len(real):
        mark = (rows[:, real] - schema.low[real]) / size[real]
        turn = moves[:, real]
        mark = np.where(turn > 0, np.floor(mark + 1e-9), np.ceil(mark - 1e-9)) + turn
        there[:, real] = np.where(turn != 0, schema.low[real] + mark * size[real], rows[:, real])
    return snap(schema, there)


@dataclass(frozen=True)
class Ladder:
    """Positions of a schema's columns: steps above the lowest value, as arrays over columns.

    Levels and grids stand on whole positions from 0 to `top`; a real-valued column has every
    position between its hundred steps as well.
    """

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
        unit = step_sizes(schema)
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

"""The domain of a column as shares of [0, 1): every code alike, a real interval as one.

Generators leave a sliver of probability to whatever the schema allows, so that each cell of it has
a latent and a probability, also one that the table never held.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limi.generators._bins import inside_interval
from limi.table.schema import Column

__all__ = ["HIGHEST", "RARE", "cell_at", "probability_of", "share_of"]

RARE = 1e-6  # the share that leaves what was learned for something more general
HIGHEST = 1.0 - 2.0**-40  # a share must stay below 1 even after it is scaled and rounded

# The ends of a real interval have no latent of their own: share 0 would be a latent of -inf.
_END = 1e-9

_Cells = NDArray[np.float64]


def cell_at(shares: NDArray[np.float64], column: Column) -> _Cells:
    """The cell that each share of the domain names, NaN for missing."""
    turns = np.clip(shares, 0.0, HIGHEST) * _size(column)
    code = np.floor(turns)
    if column.size == 0:
        cells = column.low + (turns - code) * (column.high - column.low)
    else:
        cells = column.codes_at(code)
    return np.where(code < (column.size or 1), cells, np.nan)


def share_of(cells: _Cells, draws: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
    """A share inside (0, 1) that names each cell; of all that do, the one that a draw chooses."""
    inside = inside_interval(draws)
    if column.size == 0:
        width = column.high - column.low
        turns = np.clip((cells - column.low) / width, _END, 1 - _END) if width else inside
    else:
        turns = np.rint((cells - column.first) / column.spacing) + inside
    turns = np.where(np.isnan(cells), (column.size or 1) + inside, turns)
    return np.minimum(turns / _size(column), HIGHEST)


def probability_of(cells: _Cells, column: Column) -> NDArray[np.float64]:
    """Probability of each code among all of the domain; a density for real numbers."""
    width = column.high - column.low if column.size == 0 else 1.0
    return np.where(np.isnan(cells), 1.0, 1.0 / (width or 1.0)) / _size(column)


def _size(column: Column) -> int:
    """Codes of the domain; a real interval counts as one, and so does missing."""
    return (column.size or 1) + column.missing

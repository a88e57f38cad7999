"""Which category a row is asked to have: the condition vector of a conditional GAN.

A condition names one category of one discrete column. Training draws the column evenly and the
category by the logarithm of its count, so that rare ones are seen, and takes real rows that
fulfil the condition. Generating draws the category as often as the table holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.generators._modes import Encoded, Encoding, Modes
from limi.types import Index

__all__ = ["Conditions", "compute_released_chances", "data_chances"]

_Chances = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Conditions:
    """All conditions of a table, numbered column after column, and the rows that fulfil each."""

    columns: Index  # (c,) the column that each condition names
    places: Index  # (c,) and the place in the column's block
    counts: NDArray[np.int64]  # (c,) rows that fulfil it
    starts: NDArray[np.int64]  # (c,) where in `rows` their list begins
    rows: NDArray[np.int32]  # lists of rows, one condition behind the other

    @staticmethod
    def of(encoded: Encoded, encoding: Encoding) -> Conditions:
        """The conditions of an encoded table."""
        columns, places, counts, rows = [], [], [], []
        for j in encoding.discrete:
            width = int(encoding.widths[j])
            columns.append(np.full(width, j))
            places.append(np.arange(width))
            counts.append(np.bincount(encoded.places[:, j], minlength=width))
            rows.append(np.argsort(encoded.places[:, j], kind="stable").astype(np.int32))
        n = _join(counts, np.int64)
        return Conditions(
            columns=_join(columns, np.intp),
            places=_join(places, np.intp),
            counts=n,
            starts=np.cumsum(n) - n,
            rows=_join(rows, np.int32),
        )

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def training_chances(self) -> _Chances:
        """(c,): a column evenly, then a category by log(1 + count)."""
        return _within_columns(np.log1p(self.counts), self.columns)


def data_chances(conditions: Conditions) -> _Chances:
    """(c,): a column evenly, then a category as often as the table holds it."""
    return _within_columns(conditions.counts.astype(np.float64), conditions.columns)


def compute_released_chances(
    conditions: Conditions, encoded: Encoded, encoding: Encoding
) -> _Chances:
    """(c,): as the released programs draw conditions, which is not as the table holds them.

    They take a random row and a random discrete column of n categories, and then the largest of
    the first n numbers of the encoded row, whatever column those belong to.
    """
    chances = np.zeros(len(conditions))
    if not len(conditions):
        return chances
    discrete = np.unique(conditions.columns)
    widest = int(encoding.widths[discrete].max())
    front = _front(encoded, encoding, widest)
    for j in discrete:
        width = int(encoding.widths[j])
        picked = np.bincount(np.argmax(front[:, :width], axis=1), minlength=width)
        chances[conditions.columns == j] = picked / len(encoded) / len(discrete)
    return chances


def _front(encoded: Encoded, encoding: Encoding, n: int) -> NDArray[np.float32]:
    """The first n numbers of encoded rows in file order: a number's scalar before its block."""
    parts: list[NDArray[np.float32]] = []
    length = 0
    for j, part in enumerate(encoding.parts):
        if isinstance(part, Modes):
            parts.append(encoded.scalars[:, j : j + 1])
            length += 1
        width = min(len(part), max(n - length, 0))
        parts.append((encoded.places[:, j : j + 1] == np.arange(width)).astype(np.float32))
        length += width
        if length >= n:
            break
    return np.concatenate(parts, axis=1)


def _within_columns(weights: _Chances, columns: Index) -> _Chances:
    if not len(columns):
        return np.zeros(0)
    totals = np.bincount(columns, weights)
    return weights / totals[columns] / len(np.unique(columns))


def _join(parts: list[Any], dtype: Any) -> Any:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype=dtype)

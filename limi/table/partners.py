"""Rows with other protected values, and with all that must go along with these.

Without rules nothing goes along, and everything may be asked. With rules a partner that breaks one
is not asked, unless its own row breaks that rule too: what people are is not a reason to leave them
out of the question.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.table.rows import Distinct, distinct, group, keys
from limi.table.schema import Schema
from limi.types import Index, Rows

__all__ = ["change", "change_where_possible", "complete", "distinct_questions", "expand"]


def complete(schema: Schema, rows: Any) -> Any:
    """Rows with their derived cells computed; arrays and tensors alike."""
    return schema.enforcer.complete(rows)


def change(schema: Schema, rows: Rows, cells: NDArray[np.float64]) -> Rows:
    """Each row with protected cells (n, p) of its own; a NaN leaves the row's value."""
    changed: Rows = schema.enforcer.change(rows, cells)
    return changed


def change_where_possible(
    schema: Schema, rows: Rows, cells: NDArray[np.float64]
) -> tuple[Rows, Index]:
    """The partners with these protected cells that could exist, and whose they are."""
    changed = change(schema, rows, cells)
    is_open = schema.enforcer.find_open(rows, changed[:, None])
    if is_open is None:
        return changed, np.arange(len(rows))
    there = np.flatnonzero(is_open[:, 0])
    return changed[there], there


def expand(
    schema: Schema, rows: Rows, cells: NDArray[np.float64]
) -> tuple[Rows, NDArray[np.bool_] | None]:
    """(n, G, d): each row with each of these protected cells (G, p), where a NaN leaves its own;
    and which of them may be asked, None for all."""
    asked = schema.enforcer.expand(rows, cells)
    return asked, schema.enforcer.find_open(rows, asked)


def distinct_questions(schema: Schema, rows: Rows) -> Distinct:
    """Rows of which the same is asked: those of one key, unless they break different rules."""
    if not schema.enforcer.binding:
        return distinct(schema, rows)
    words = row_keys = keys(schema, rows)
    broken = schema.enforcer.find_broken(rows)
    if broken.any():
        bits = np.packbits(broken, axis=1)
        bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))
        words = np.concatenate([words, np.ascontiguousarray(bits).view(np.uint64)], axis=1)
    return Distinct(row_keys, *group(words))

"""What a generator refuses at its door: rows that no schema holds, latents of another shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, InvalidInput
from limi.table.schema import Schema
from limi.types import Latents, Rows

__all__ = ["check_latents", "prepare", "require_rows"]


def require_rows(rows: Rows, schema: Schema) -> Rows:
    """The rows as float64, where every cell is one that the schema allows; BadTable otherwise."""
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(schema):
        raise InvalidInput(
            f"the rows have the shape {rows.shape}, but the schema has {len(schema)} columns; give "
            "rows with one value for each column"
        )
    for position, column in enumerate(schema.columns):
        cells = rows[:, position]
        missing = np.isnan(cells)
        if missing.any() and not column.missing:
            raise BadTable(
                f"column {column.name!r} has {int(missing.sum())} missing cells where the schema "
                "allows none; set missing = true for it, or fill them"
            )
        low, high, step = column.first, column.last, column.spacing
        if np.isinf(cells).any():
            raise BadTable(
                f"column {column.name!r} holds {int(np.isinf(cells).sum())} infinite values; "
                "replace them by missing or by a finite number"
            )
        outside = (cells < low) | (cells > high)
        if outside.any():
            raise BadTable(
                f"column {column.name!r} holds {cells[outside][0]:g}, outside {low:g} to {high:g}; "
                "the schema does not fit the table, so widen it or give this table's own"
            )
        if step and not missing.all():
            steps = (cells[~missing] - low) / step
            if (np.abs(steps - np.rint(steps)) > 1e-6).any():
                raise BadTable(
                    f"column {column.name!r} holds values that are not on its schema's steps of "
                    f"{step:g} from {low:g}; set step = 0 for real numbers"
                )
    return rows


def check_latents(latents: Latents, latent_dim: int) -> NDArray[np.floating[Any]]:
    """The latents as an array of floats of this many columns; InvalidInput otherwise."""
    array = np.asarray(latents)
    if array.ndim != 2 or array.shape[1] != latent_dim:
        raise InvalidInput(
            f"the latents have the shape {array.shape}; this generator decodes (n, {latent_dim})"
        )
    if not np.issubdtype(array.dtype, np.floating):
        array = array.astype(np.float64)
    return array


def prepare(
    rows: Rows, schema: Schema, rng: np.random.Generator, max_rows: int
) -> tuple[Rows, list[str]]:
    """Rows to fit on, at most max_rows, and what to say of that."""
    rows = require_rows(rows, schema)
    if not len(rows):
        raise BadTable("the table has no rows; a generator needs at least one")
    if len(rows) <= max_rows:
        return rows, []
    note = f"fitted on {max_rows:,} of {len(rows):,} rows, drawn at random"
    return rows[np.sort(rng.permutation(len(rows))[:max_rows])], [note]

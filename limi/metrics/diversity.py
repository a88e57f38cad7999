"""How different findings are from one another."""

from __future__ import annotations

import numpy as np

from limi.metrics._base import EFFECTIVENESS, Evidence, metric
from limi.table.schema import Schema
from limi.types import Rows

__all__ = ["distinct_cells", "pairwise_distance", "share_one_apart"]


def pairwise_distance(
    rows: Rows, schema: Schema, rng: np.random.Generator, *, n_pairs: int = 20_000
) -> float:
    """Mean Gower distance of random pairs of rows, over the non-protected columns.

    A pair's distance averages over columns: |a - b| / range for numbers and ordered levels, 0 or 1
    for categories, 0 or 1 where one cell is missing. From 0 (all alike) to 1; higher is more
    diverse. NaN for fewer than two rows.
    """
    if len(rows) < 2:
        return float("nan")
    first = rng.integers(0, len(rows), n_pairs)
    second = (first + rng.integers(1, len(rows), n_pairs)) % len(rows)
    free = schema.free_index
    a, b = rows[first][:, free], rows[second][:, free]
    width = (schema.high - schema.low)[free]
    graded = np.array([schema.columns[i].kind in ("numerical", "ordered") for i in free])
    gap = np.where(graded, np.abs(a - b) / np.where(width > 0, width, 1.0), a != b)
    both_missing = np.isnan(a) & np.isnan(b)
    one_missing = np.isnan(a) ^ np.isnan(b)
    return float(np.where(both_missing, 0.0, np.where(one_missing, 1.0, gap)).mean())


def distinct_cells(rows: Rows, schema: Schema, *, bins: int = 4) -> int:
    """How many cells of a coarse grid the rows fall into.

    Numbers are cut into `bins` equal ranges, levels are kept as they are; protected columns do
    not count. Higher is more diverse.
    """
    if not len(rows):
        return 0
    cell = np.zeros(len(rows), dtype=np.int64)
    for place in schema.free_index:
        column, level = schema.columns[place], rows[:, place]
        if column.kind == "numerical":
            width = (column.high - column.low) or 1.0
            level = np.clip(np.floor((level - column.low) / width * bins), 0, bins - 1)
        codes = np.unique(level, return_inverse=True)[1]
        # Numbered again after each column, so that no number of columns overflows.
        cell = np.unique(cell * (codes.max() + 1) + codes, return_inverse=True)[1]
    return int(cell.max()) + 1


def share_one_apart(rows: Rows, schema: Schema) -> float:
    """The share of rows that differ from another one of them in a single non-protected column.

    From 0 (each stands alone) to 1. A walk that changes one cell at a time leaves such rows behind.
    Rows that are alike in every non-protected column do not count for one another.
    """
    free = schema.free_index
    if not len(rows):
        return float("nan")
    # A sum of random numbers, one for each value of each column, names a row; without a column's
    # number it names what is left. Two that should differ agree once in 2**64 pairs.
    rng = np.random.default_rng(0)
    parts = []
    for place in free:
        values, code = np.unique(rows[:, place], return_inverse=True)
        parts.append(rng.integers(0, 2**64, len(values), dtype=np.uint64)[code])
    whole = np.sum(parts, axis=0, dtype=np.uint64)
    _, first, back = np.unique(whole, return_index=True, return_inverse=True)
    beside = np.zeros(len(first), dtype=bool)
    for part in parts:
        _, group, n = np.unique((whole - part)[first], return_inverse=True, return_counts=True)
        beside |= n[group] > 1
    return float(beside[back].mean())


# -- measured in every run --------------------------------------------------------------


@metric(
    EFFECTIVENESS,
    name="distinct_cells",
    formula="cells of a coarse grid (numbers in four ranges, levels as they are) that hold a "
    "finding",
    range="",
    better="higher",
    unit="count",
    main=False,
)
def _count_cells(evidence: Evidence) -> int:
    """Cells of a coarse grid that hold a finding: how much of the domain they reach."""
    return distinct_cells(evidence.found.rows, evidence.schema)


@metric(
    EFFECTIVENESS,
    name="pairwise_distance",
    formula="mean Gower distance of two findings",
    range="0 to 1",
    better="higher",
    main=False,
)
def _measure_distance(evidence: Evidence) -> float | None:
    """Mean Gower distance of two findings."""
    if len(evidence.found) < 2:
        return None
    rng = evidence.rng("pairwise_distance")
    return pairwise_distance(evidence.found.rows, evidence.schema, rng)

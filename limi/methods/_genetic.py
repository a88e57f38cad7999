"""Genetic operators on whole populations: select by fitness, cross over, mutate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limi.table.rows import distinct, uniform
from limi.table.schema import Schema
from limi.types import Index, Rows

__all__ = [
    "exchange_fragments",
    "mutate",
    "n_copies",
    "select",
]


def select(fitness: NDArray[np.float64], rng: np.random.Generator) -> Index:
    """As many individuals as there are, drawn with a chance proportional to their fitness."""
    edges = np.cumsum(fitness)
    draws = rng.random(len(fitness))
    if not len(edges) or edges[-1] <= 0:
        # No one is fit at all: everyone is as good as the next.
        chosen = np.floor(draws * len(fitness))
    else:
        chosen = np.searchsorted(edges, draws * edges[-1], side="right")
        chosen = np.minimum(chosen, np.flatnonzero(fitness)[-1])
    return np.asarray(chosen, dtype=np.intp)


def n_copies(schema: Schema, rows: Rows) -> NDArray[np.int64]:
    """How often each row's key occurs among the rows."""
    known = distinct(schema, rows)
    return np.bincount(known.of, minlength=1)[known.of]


def exchange_fragments(rows: Rows, columns: Index, rate: float, rng: np.random.Generator) -> Rows:
    """Children of disjoint pairs, each of which exchanges a run of these columns at this rate.

    The run starts anywhere and has any length from there on; with an odd number one stays alone.
    """
    n_pairs, width = len(rows) // 2, len(columns)
    order = rng.permutation(len(rows))
    first, second = order[:n_pairs], order[n_pairs : 2 * n_pairs]
    draws = rng.random((n_pairs, 3))
    start = np.floor(draws[:, 1] * width)
    end = start + 1 + np.floor(draws[:, 2] * (width - start))
    place = np.arange(width)
    inside = (place >= start[:, None]) & (place < end[:, None]) & (draws[:, :1] < rate)
    children = rows.copy()
    one, other = rows[np.ix_(first, columns)], rows[np.ix_(second, columns)]
    children[np.ix_(first, columns)] = np.where(inside, other, one)
    children[np.ix_(second, columns)] = np.where(inside, one, other)
    return children


def mutate(schema: Schema, rows: Rows, rate: float, rng: np.random.Generator) -> Rows:
    """Rows with each free cell drawn again, from the whole domain, at this rate."""
    hit = (rng.random(rows.shape) < rate) & schema.free_mask
    return np.where(hit, uniform(schema, len(rows), rng), rows)

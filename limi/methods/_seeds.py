"""Seeds from the table: rows spread over clusters, as the published programs choose them."""

from __future__ import annotations

import numpy as np

from limi.search.session import Session
from limi.types import Rows

__all__ = ["cluster_rows", "fill_missing"]


def cluster_rows(
    session: Session, rng: np.random.Generator, *, n: int, clusters: int = 4, shuffled: bool = False
) -> Rows:
    """Up to n rows of the table, taken from each k-means cluster in turn, in the table's order.

    Clusters are those of the raw codes without scaling, as published. Where `shuffled`, the order
    within a cluster is random.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    rows = session.rows[rng.permutation(len(session.rows))] if shuffled else session.rows
    points = fill_missing(rows)
    # More clusters than different rows cannot be told apart; a few thousand rows show enough.
    clusters = min(clusters, len(np.unique(points[:: 1 + len(points) // 4096], axis=0)))
    if clusters <= 1 or len(rows) <= clusters:
        return rows[:n]
    state = int(rng.integers(2**31))
    # Many short rounds: several threads would wait for each other most of the time.
    with threadpool_limits(limits=1):
        labels = KMeans(clusters, n_init=10, random_state=state).fit_predict(points)
    # Position of each row inside its cluster; sorting by it deals the clusters out in turn.
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(clusters))
    turn = np.empty(len(rows), dtype=np.intp)
    turn[order] = np.arange(len(rows)) - starts[labels[order]]
    return rows[np.lexsort((labels, turn))[:n]]


def fill_missing(rows: Rows) -> Rows:
    """Rows with a number where a cell is missing: one below the column's smallest."""
    if not np.isnan(rows).any():
        return rows
    low = np.nanmin(np.where(np.isnan(rows).all(axis=0), 0.0, rows), axis=0)
    return np.where(np.isnan(rows), low - 1.0, rows)

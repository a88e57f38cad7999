"""Which columns carry the decisions that change: Shapley shares over columns that go together.

Between a person and their twin lie all mixtures of the two. A column's share is what it adds to
the decision when it is changed after others, on average over orders; the shares of a changed
decision add up to 1. Columns that tell much of each other are one carrier: half of a pair would
make people who do not exist, and its share would depend on the other half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from limi.decisions import favors, opposes
from limi.table.schema import Schema
from limi.twins.questions import cells_differ
from limi.types import Index, Rows, Scores

__all__ = ["MOST_CARRIERS", "PERMUTATIONS", "find_carriers", "share_out"]

PERMUTATIONS = 8  # of each person, and as many backwards
MOST_CARRIERS = 12  # beyond them, columns that move least are one

_TOGETHER = 0.4  # of the information of the simpler column: as much makes two columns one carrier
_MOST_ROWS = 10_000
_MOST_LEVELS = 32
_BINS = 8


def find_carriers(schema: Schema, rows: Rows, columns: Sequence[int]) -> list[tuple[int, ...]]:
    """These columns in groups that tell much of each other, in the order of the table.

    Protected columns are a carrier of their own.
    """
    protected = tuple(int(j) for j in schema.protected_index if j in set(columns))
    from scipy.cluster.hierarchy import fcluster, linkage  # late: they take half a second
    from scipy.spatial.distance import squareform

    free = [j for j in columns if j not in protected]
    some = rows[:: max(len(rows) // _MOST_ROWS, 1)]
    coarse = [_coarse(some[:, j]) for j in free]
    if len(free) < 2:
        groups = [(j,) for j in free]
    else:
        apart = np.zeros((len(free), len(free)))
        for a in range(len(free)):
            for b in range(a):
                apart[a, b] = apart[b, a] = 1.0 - _shared(coarse[a], coarse[b])
        tree = linkage(squareform(apart, checks=False), method="average")
        number = fcluster(tree, 1.0 - _TOGETHER, criterion="distance")
        members = [tuple(np.array(free)[number == n].tolist()) for n in np.unique(number)]
        groups = sorted(members, key=min)
    return [*([protected] if protected else []), *groups]


def _coarse(cells: NDArray[np.float64]) -> Index:
    """A column in few levels; missing is one."""
    values, codes = np.unique(cells, return_inverse=True)
    if len(values) <= _MOST_LEVELS:
        return np.asarray(codes)
    edges = np.unique(np.quantile(cells[~np.isnan(cells)], np.arange(1, _BINS) / _BINS))
    return np.where(np.isnan(cells), len(edges) + 1, np.searchsorted(edges, cells, side="right"))


def _shared(one: Index, other: Index) -> float:
    """Information that two columns share, as a part of the simpler one's."""
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1.0)
    table /= len(one)
    both, rows, columns = _entropy(table), _entropy(table.sum(axis=1)), _entropy(table.sum(axis=0))
    least = min(rows, columns)
    return 0.0 if least < 1e-9 else float(np.clip((rows + columns - both) / least, 0.0, 1.0))


def _entropy(p: NDArray[np.float64]) -> float:
    known = p[p > 0]
    return float(-(known * np.log(known)).sum())


def share_out(
    ask: Callable[[Rows], Scores],
    rows: Rows,
    twins: Rows,
    groups: Sequence[tuple[int, ...]],
    rng: np.random.Generator,
    *,
    favorably: bool = True,
) -> NDArray[np.float64]:
    """(n, groups): the share of each carrier in each person's changed decision.

    All must be decided favorably as their twin only, or unfavorably where `favorably` is false.
    Mixtures of one person that are the same are asked once.
    """
    n, size = len(rows), len(groups)
    number = np.full(rows.shape[1], -1, dtype=np.int64)
    for place, columns in enumerate(groups):
        number[list(columns)] = place
    other = cells_differ(rows, twins)
    moved = np.stack([other[:, list(columns)].any(axis=1) for columns in groups], axis=1)
    every = moved @ (1 << np.arange(size, dtype=np.int64))

    order = rng.random((n, PERMUTATIONS, size)).argsort(axis=2)
    order = np.concatenate([order, order[:, :, ::-1]], axis=1)
    until = np.cumsum(np.int64(1) << order, axis=2) & every[:, None, None]
    masks = np.concatenate([np.zeros_like(until[:, :, :1]), until], axis=2)

    whole = np.arange(n)[:, None, None] * (np.int64(1) << size) + masks
    distinct, at = np.unique(whole, return_inverse=True)
    person, mask = distinct >> size, distinct & ((1 << size) - 1)
    changed = np.zeros(len(distinct))
    changed[mask == every[person]] = 1.0
    inner = np.flatnonzero((mask > 0) & (mask < every[person]))
    taken = (number >= 0) & (mask[inner][:, None] >> np.maximum(number, 0) & 1).astype(bool)
    answers = ask(np.where(taken, twins[person[inner]], rows[person[inner]]))
    changed[inner] = favors(answers) if favorably else opposes(answers)

    steps = np.diff(changed[at.reshape(masks.shape)], axis=2)
    shares = np.empty_like(steps)
    np.put_along_axis(shares, order, steps, axis=2)
    return np.asarray(shares.mean(axis=1))

"""What is tried of a row: all combinations of protected values, and mixtures with its own.

A row may hold a protected value that is none of those tried: age 37 where 20, 30, 40 are, or a
missing one. With several protected columns the combinations alone would then never change one
column and leave the other as it is. So for such a row the columns in question have one more
choice, to be left; what comes out beside the combinations are its mixtures. One of them is the row
itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.table.partners import expand
from limi.table.schema import Schema
from limi.types import Index, Rows, Scores

__all__ = [
    "LEFT",
    "Mixtures",
    "Tried",
    "ask_mixed",
    "ask_open",
    "mixture_counts",
    "most_queries",
    "stray_patterns",
]

LEFT = -1  # the place of a value that is none of those tried


@dataclass(frozen=True, eq=False)
class Tried:
    """What is tried of rows whose own values are among those tried in the same columns.

    Each is a place among the codes of each protected column, `LEFT` where the row's own value is
    left. The combinations come first, in the order of `Schema.combinations`, then the mixtures.
    """

    places: NDArray[np.intp]  # (G, p)
    cells: NDArray[np.float64]  # (G, p): the codes, NaN where the own value is left
    n_combinations: int
    sizes: Index  # (p,): how many values of each column are tried
    order: Index  # where a row of places stands, by its number

    @staticmethod
    def of(schema: Schema, pattern: int = 0) -> Tried:
        """For rows that stray in the columns whose bits are set in the pattern."""
        kept: dict[int, Tried] = vars(schema).setdefault("_try_out", {})
        if pattern not in kept:
            kept[pattern] = _try_out(schema, pattern)
        return kept[pattern]

    @property
    def mixtures(self) -> NDArray[np.float64]:
        """(M, p): the cells of what is tried beside the combinations."""
        return self.cells[self.n_combinations :]

    def find(self, places: NDArray[np.intp]) -> Index:
        """Where rows of places (..., p) stand among what is tried."""
        return self.order[_numbers(places, self.sizes)]

    def alone(self, own: NDArray[np.intp], column: int) -> Index:
        """(n, values): what changes this column alone, for rows of own places (n, p)."""
        changed = np.repeat(own[:, None, :], self.sizes[column], axis=1)
        changed[:, :, column] = np.arange(self.sizes[column])
        return self.find(changed)


def _try_out(schema: Schema, pattern: int) -> Tried:
    sizes = _sizes(schema)
    choices = [
        [*range(size), *([LEFT] if pattern >> column & 1 else [])]
        for column, size in enumerate(sizes)
    ]
    places = np.array(list(itertools.product(*choices)), dtype=np.intp)
    mixed = (places == LEFT).any(axis=1)
    places = np.concatenate([places[~mixed], places[mixed]])
    codes = [np.append(column, np.nan) for column in schema.protected_codes]
    cells = np.stack([codes[c][places[:, c]] for c in range(len(sizes))], axis=1)
    order = np.full(int(np.prod(sizes + 1)), -1, dtype=np.intp)
    order[_numbers(places, sizes)] = np.arange(len(places))
    return Tried(places, cells, int((~mixed).sum()), sizes, order)


def _sizes(schema: Schema) -> Index:
    return np.array([len(codes) for codes in schema.protected_codes], dtype=np.intp)


def _numbers(places: NDArray[np.intp], sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows of places as one number each; a value that is left is one more choice of a column."""
    number = np.zeros(places.shape[:-1], dtype=np.intp)
    for column, size in enumerate(sizes):
        number = number * (size + 1) + places[..., column] + 1
    return number


def stray_patterns(places: NDArray[np.intp]) -> NDArray[np.int64]:
    """(n,): for own places (n, p), which columns hold a value that is none of those tried."""
    bits = 1 << np.arange(places.shape[1], dtype=np.int64)
    return np.asarray((places == LEFT) @ bits, dtype=np.int64)


def mixture_counts(schema: Schema, rows: Rows) -> NDArray[np.int64]:
    """(n,): how many mixtures are asked for each row, itself included; 0 for most rows."""
    counts = np.zeros(len(rows), dtype=np.int64)
    stray = np.flatnonzero(schema.combination_of(rows) < 0)
    left = schema.places_of(rows[stray]) == LEFT
    counts[stray] = np.prod(_sizes(schema) + left, axis=1) - len(schema.combinations)
    if schema.enforcer.binding and len(schema.protected) > 1:
        patterns = stray_patterns(schema.places_of(rows[stray]))
        for pattern in np.unique(patterns):
            here = stray[patterns == pattern]
            _, is_open = expand(schema, rows[here], Tried.of(schema, int(pattern)).mixtures)
            counts[here] -= 0 if is_open is None else (~is_open).sum(axis=1)
    return counts


def most_queries(schema: Schema) -> int:
    """Queries that the dearest row of a schema costs, where it strays wherever it can."""
    columns = (schema.columns[position] for position in schema.protected_index)
    pairs = zip(columns, schema.protected_codes, strict=True)
    choices = [len(codes) + (c.missing or len(codes) != c.size) for c, codes in pairs]
    return int(np.prod(choices))


@dataclass(frozen=True, eq=False)
class Mixtures:
    """Scores of the mixtures of rows that stray; NaN where a row has fewer, or was not asked."""

    scores: NDArray[np.float64]  # (n, M)
    places: NDArray[np.intp]  # (n, p): the rows' own places
    patterns: NDArray[np.int64]  # (n,)
    own: Index  # (n,): which mixture is the row itself
    queries: int

    def cells(self, schema: Schema, chosen: Index) -> NDArray[np.float64]:
        """(n, p): the cells of one mixture of each row, NaN where the own value is left."""
        cells = np.empty(self.places.shape)
        for pattern in np.unique(self.patterns):
            here = self.patterns == pattern
            cells[here] = Tried.of(schema, int(pattern)).mixtures[chosen[here]]
        return cells


def ask_mixed(
    score: Callable[[Rows], Scores],
    schema: Schema,
    rows: Rows,
    max_batch: int,
    known: Scores | None = None,
) -> Mixtures:
    """Scores of all mixtures of rows that stray; `known` are those of the rows themselves."""
    places = schema.places_of(rows)
    patterns = stray_patterns(places)
    kinds = {int(pattern): Tried.of(schema, int(pattern)) for pattern in np.unique(patterns)}
    most = max((len(tried.mixtures) for tried in kinds.values()), default=0)
    scores = np.full((len(rows), most), np.nan)
    own = np.zeros(len(rows), dtype=np.intp)
    queries = 0
    for pattern, tried in kinds.items():
        here = np.flatnonzero(patterns == pattern)
        mixtures = tried.mixtures
        own[here] = tried.find(places[here]) - tried.n_combinations
        size = max(1, max_batch // len(mixtures))
        for start in range(0, len(here), size):
            part = here[start : start + size]
            asked, wanted = expand(schema, rows[part], mixtures)
            if known is not None:
                wanted = np.ones(asked.shape[:2], dtype=bool) if wanted is None else wanted
                wanted[np.arange(len(part)), own[part]] = False
            told, n = ask_open(score, asked, wanted)
            scores[part, : len(mixtures)] = told
            if known is not None:
                scores[part, own[part]] = known[part]
            queries += n
    return Mixtures(scores, places, patterns, own, queries)


def ask_open(
    score: Callable[[Rows], Scores], asked: Rows, wanted: NDArray[np.bool_] | None
) -> tuple[NDArray[np.float64], int]:
    """(n, G) scores of rows (n, G, d), NaN where one is not wanted; and how many were asked."""
    n, n_tried, width = asked.shape
    if wanted is None:
        return score(asked.reshape(-1, width)).reshape(n, n_tried), n * n_tried
    scores = np.full((n, n_tried), np.nan)
    chosen = asked[wanted]
    if len(chosen):
        scores[wanted] = score(chosen)
    return scores, len(chosen)

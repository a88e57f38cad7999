"""Sequential conditional trees: a triangular map from normal numbers to rows, by inverse CDF.

Columns stand in an order. A classification tree predicts each from those before it, and a leaf
holds the counts of the training rows that fell into it. A latent z has one standard normal number
per column, and decodes column after column:

    u_j = Phi(z_j);   x_j = the value at share u_j of the leaf that x_1 .. x_(j-1) fall into

Levels without an order are put into one in which neighbours go with like rows. Columns of
thousands of levels or of real numbers are cut into bins for the tree; what is left of u_j inside
the bin says which of its values is meant (`_bins`). The lowest millionth of u_j stands for the
column's distribution without the tree, and the lowest millionth of that for the whole domain of
the column, so every row that the schema allows has a latent and a probability, while among a
million samples of ten columns about ten cells ignore their tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from limi.errors import InvalidInput
from limi.generators._base import GeneratorOffers, OnStep
from limi.generators._bins import Bins, column_order, cut
from limi.generators._checks import check_latents, prepare, require_rows
from limi.generators._conditional import Conditional, counted, from_arrays, to_arrays
from limi.generators._decision_diagram import Codes, DiagramWalk
from limi.generators._domain import HIGHEST
from limi.generators._state import Arrays, facts_of
from limi.system.cores import n_cores
from limi.table.schema import Schema
from limi.types import Index, Latents, Rows, Scores

__all__ = ["Settings", "Trees", "fit", "from_state"]

OFFERS = GeneratorOffers(quick=True, has_encoder=True, in_order=True)

_FEW_ROWS = 2000  # fewer say too little of levels to put them in an order
_CHUNK_ROWS = 1 << 14  # decoded at a time: enough to outweigh the calls, few enough for a cache
_CHUNK_CELLS = 1 << 19
_MOST_WEIGHED = 128  # earlier columns that are weighed as parents of a later one
# A tree of a few thousand rows that may choose among many parents and bins learns their noise: of
# 400 columns by 8,000 rows the wide settings find held-out cells likelier, in a fifth of the time.
_WIDE = 64  # columns; tables with more are wide
_MAX_BINS, _MAX_BINS_WIDE = 64, 32
_MAX_PARENTS, _MAX_PARENTS_WIDE = 40, 16


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How trees are grown, and in which order the columns stand.

    A table of more than 64 columns is wide. There are never more bins than an eighth of the rows,
    and of the earlier columns those that tell most are used.
    """

    min_leaf: int | None = None  # training rows in a leaf; by default a 160th, 30 to 100
    min_gain: float = 1.0  # what a split must tell, in multiples of what chance alone would
    max_bins: int | None = None  # bins of a column, about; by default 64, 32 in a wide table
    max_parents: int | None = None  # earlier columns a tree may use; by default 40, 16 if wide
    max_rows: int = 100_000  # rows fitted on; more are drawn from at random
    max_cells: int = 4_000_000  # rows times columns fitted on, likewise
    order: Literal["given", "fewest-first"] | tuple[str, ...] = "given"  # order of columns
    protected_first: bool = False  # then a changed protected column moves those behind it

    def __post_init__(self) -> None:
        for name in ("min_leaf", "max_bins", "max_parents", "max_rows", "max_cells"):
            given, least = getattr(self, name), 2 if name == "max_bins" else 1
            if given is not None and given < least:
                raise InvalidInput(f"{name} is {given}; it must be {least} or more")
        if self.min_gain < 0:
            raise InvalidInput(f"min_gain is {self.min_gain}; it must be 0 or more")


@dataclass(frozen=True, eq=False)
class Trees:
    """A fitted generator; latents have one standard normal number per column, in schema order."""

    schema: Schema
    conditionals: tuple[Conditional, ...]  # in the order of decoding
    settings: Settings
    notes: tuple[str, ...] = ()  # what the user should know of the fit
    threads: int = field(default_factory=lambda: _n_threads())

    kind: ClassVar[str] = "trees"

    @property
    def latent_dim(self) -> int:
        """Dimensions of the latent space: one per column."""
        return len(self.schema)

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the columns in the order of decoding."""
        return tuple(self.schema.names[c.position] for c in self.conditionals)

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        """(n, columns): standard normal numbers."""
        return rng.standard_normal((n, self.latent_dim))

    def decode(self, latents: Latents) -> Rows:
        """One row per latent, in chunks; the result does not depend on chunks or threads."""
        latents = check_latents(latents, self.latent_dim)
        rows = np.empty(latents.shape)

        def decode_part(part: slice) -> None:
            rows[part] = self._decode(latents[part])

        parts = list(self._chunks(len(latents)))
        for c in self.conditionals:
            c.walk.prepare()  # here, because each thread would work it out again
        threads = min(self.threads, n_cores())  # a worker that it was sent to has one
        if threads == 1 or len(parts) == 1:
            for part in parts:
                decode_part(part)
        else:
            with ThreadPoolExecutor(threads) as pool:
                for _ in pool.map(decode_part, parts):
                    pass
        return rows

    def encode(self, rows: Rows, rng: np.random.Generator) -> Latents:
        """Latents that decode to these rows, drawn from all that do.

        Any row of the schema has one. Real numbers come back to about ten digits.
        """
        rows = require_rows(rows, self.schema)
        latents = np.empty(rows.shape)
        for part in self._chunks(len(rows)):
            draws = rng.random(rows[part].shape)
            codes = _codes(rows[part], self._positions, self._bins)
            for c in self.conditionals:
                j = c.position
                u = c.share_of(rows[part, j], codes, draws[:, j], self.schema.columns[j])
                latents[part, j] = ndtri(u)
        return latents

    def log_prob(self, rows: Rows) -> Scores:
        """ln of each row's probability, exactly that with which a sampled latent decodes to it.

        A real-valued column contributes a density, except at values that the table repeats.
        """
        rows = require_rows(rows, self.schema)
        total = np.zeros(len(rows))
        for part in self._chunks(len(rows)):
            codes = _codes(rows[part], self._positions, self._bins)
            for c in self.conditionals:
                j = c.position
                total[part] += c.log_prob(rows[part, j], codes, self.schema.columns[j])
        return total

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays of all columns one after the other, and facts."""
        facts = {"settings": asdict(self.settings), "notes": list(self.notes)}
        return to_arrays(self.conditionals), facts

    def _chunks(self, n: int) -> Iterator[slice]:
        size = min(max(_CHUNK_CELLS // len(self.schema), 512), _CHUNK_ROWS)
        return (slice(start, min(start + size, n)) for start in range(0, n, size))

    @cached_property
    def _positions(self) -> list[int]:
        return [c.position for c in self.conditionals]

    @cached_property
    def _bins(self) -> list[Bins]:
        return [c.bins for c in sorted(self.conditionals, key=lambda c: c.position)]

    def _decode(self, latents: Latents) -> Rows:
        # Columns are read and written one at a time, so they lie side by side in memory.
        shares = np.empty(latents.shape, order="F")
        ndtr(latents.astype(np.float64, copy=False), out=shares)
        if np.isnan(shares).any():
            raise InvalidInput("the latents hold NaN; use finite numbers")
        np.minimum(shares, HIGHEST, out=shares)
        rows = np.empty(latents.shape, order="F")
        codes = np.empty(latents.shape, dtype=np.intp, order="F")
        for place, c in enumerate(self.conditionals):
            j = c.position
            bins, rows[:, j] = c.value_at(shares[:, j], codes, self.schema.columns[j])
            codes[:, place] = bins
        return rows


def fit(
    rows: Rows,
    schema: Schema,
    rng: np.random.Generator,
    *,
    settings: Settings | None = None,
    device: str = "cpu",
    on_step: OnStep = lambda done, words: None,
) -> Trees:
    """Trees over these rows; in threads, with a result that does not depend on them.

    `device` is ignored, trees grow on the CPU.
    """
    settings = settings or Settings()
    most = max(min(settings.max_rows, settings.max_cells // len(schema)), 1)
    rows, notes = prepare(rows, schema, rng, most)
    if notes:
        on_step(0.0, notes[0])
    wide = len(schema) > _WIDE
    max_bins = settings.max_bins or (_MAX_BINS_WIDE if wide else _MAX_BINS)
    max_bins = min(max_bins, max(len(rows) // 8, 2))
    max_parents = settings.max_parents or (_MAX_PARENTS_WIDE if wide else _MAX_PARENTS)
    bins = [
        cut(rows[:, j], real=column.size == 0, max_bins=max_bins)
        for j, column in enumerate(schema.columns)
    ]
    order = column_order(schema, bins, settings.order, settings.protected_first)
    codes = _codes(rows, order, bins)
    unordered = [
        place
        for place, j in enumerate(order)
        if schema.columns[j].kind == "categorical" and bins[j].n_known > 2
    ]
    if len(rows) < _FEW_ROWS:
        unordered = []
    for place, likeness in _likeness(codes, unordered):
        j = order[place]
        bins[j] = bins[j].in_order(np.argsort(likeness[: bins[j].n_known], kind="stable"))
    codes = _codes(rows, order, bins)
    seeds = rng.integers(0, 2**31 - 1, len(order))

    # Missing has a code even where no fitted row lacks the cell.
    n_codes = np.array([bins[j].n_known + 1 for j in order])
    varying = np.flatnonzero(codes.min(axis=0) < codes.max(axis=0))

    def grow(place: int) -> Conditional:
        earlier = varying[: np.searchsorted(varying, place)]
        parents = _parents(place, codes, earlier, max_parents)
        walk, leaf = _grow(place, codes, n_codes, parents, int(seeds[place]), settings)
        return counted(order[place], bins[order[place]], walk, leaf, codes[:, place])

    grown = []
    pool = ThreadPoolExecutor(_n_threads())
    try:
        for place, conditional in enumerate(pool.map(grow, range(len(order)))):
            grown.append(conditional)
            on_step((place + 1) / len(order), f"column {schema.names[order[place]]}")
    finally:
        pool.shutdown(cancel_futures=True)  # an interrupt need not wait for all columns
    return Trees(schema, tuple(grown), settings, tuple(notes))


def from_state(
    arrays: dict[str, NDArray[Any]],
    facts: dict[str, Any],
    schema: Schema,
    *,
    device: str = "cpu",
) -> Trees:
    """The generator that gave this state."""
    settings, notes = facts_of(facts, Settings)
    held = Arrays(arrays)
    conditionals = from_arrays(held, schema)
    held.end()
    return Trees(schema, conditionals, settings, notes)


def _n_threads() -> int:
    """Cores that this process may use, at most 8."""
    return min(n_cores(), 8)


# -- growing ----------------------------------------------------------------------------


def _codes(rows: Rows, order: list[int], bins: list[Bins]) -> Codes:
    """(n, columns in this order): the bin of each cell, as trees read them."""
    codes = np.empty(rows.shape, dtype=np.intp, order="F")
    for place, j in enumerate(order):
        codes[:, place] = bins[j].bin_of(rows[:, j])
    return codes


def _likeness(codes: Codes, places: list[int]) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """For columns of levels without order, a number a level; near ones go with like rows.

    The first axis of a correspondence analysis against the other columns. A tree that cuts levels
    in this order needs fewer cuts, and neighbouring latents decode to like levels.
    """
    if not places:
        return
    n, d = codes.shape
    some = codes[:: max(min(n * d // 400_000, n // _FEW_ROWS), 1)]
    coarse = {}
    for other in np.unique(np.linspace(0, d - 1, min(d, 64)).astype(np.intp)):
        levels = some[:, other]
        if levels.max() >= 32:
            levels = np.searchsorted(np.quantile(levels, np.arange(1, 8) / 8), levels)
        coarse[other] = levels
    for place in places:
        own = some[:, place]
        n_own = int(codes[:, place].max()) + 1
        counts = np.concatenate(
            [
                _table(own, levels, n_own, int(levels.max()) + 1)
                for other, levels in coarse.items()
                if other != place
            ]
            or [np.ones((n_own, 1), dtype=np.int64)],
            axis=1,
        )
        weight = np.sqrt(np.bincount(own, minlength=n_own) / len(own))
        expected = counts.sum(axis=0) / len(own)
        profile = counts / np.maximum(len(own) * weight**2, 1)[:, None] - expected
        profile /= np.sqrt(np.maximum(expected, 1e-12))
        profile *= weight[:, None]
        first_axis = np.linalg.eigh(profile @ profile.T)[1][:, -1]
        likeness = first_axis / np.maximum(weight, 1e-12)
        # The axis has no sign of its own; the most frequent level fixes it.
        yield place, likeness * (1 if likeness[weight.argmax()] >= 0 else -1)


def _grow(
    place: int, codes: Codes, n_codes: Index, parents: Index, seed: int, settings: Settings
) -> tuple[DiagramWalk, Index]:
    """The tree of one column over its parents, and the leaf of each row."""
    from sklearn.tree import DecisionTreeClassifier

    truth = codes[:, place]
    min_leaf = settings.min_leaf or min(max(len(truth) // 160, 30), 100)
    n_levels = len(np.unique(truth))
    if not len(parents) or n_levels == 1 or len(truth) < 2 * min_leaf:
        nothing = np.zeros(1, dtype=np.int32)
        return DiagramWalk(nothing, nothing, nothing - 1, nothing - 1, n_codes), np.zeros_like(
            truth
        )
    # A split on noise lowers the entropy by (levels - 1) / 2 nats over all rows on average.
    by_chance = (n_levels - 1) / (2 * math.log(2) * len(truth))
    tree = DecisionTreeClassifier(
        criterion="entropy",
        min_samples_leaf=min_leaf,
        min_impurity_decrease=settings.min_gain * by_chance,
        random_state=seed,
    )
    seen = codes[:, parents].astype(np.float32, order="C")
    nodes = tree.fit(seen, truth).tree_
    inner = nodes.children_left >= 0
    walk = DiagramWalk(
        np.where(inner, parents[nodes.feature * inner], 0).astype(np.int32),
        np.where(inner, np.floor(nodes.threshold), 0).astype(np.int32),
        nodes.children_left.astype(np.int32),
        nodes.children_right.astype(np.int32),
        n_codes,
    )
    return walk, nodes.apply(seen)


def _parents(place: int, codes: Codes, earlier: Index, most: int) -> Index:
    """The earlier columns that vary; where they are too many, those that share most information."""
    if len(earlier) <= most:
        return earlier
    if len(earlier) > _MOST_WEIGHED:
        # Evenly spread, so that the cost of a wide table grows with its columns, not their square.
        chosen = np.linspace(0, len(earlier) - 1, _MOST_WEIGHED).astype(np.intp)
        earlier = earlier[chosen]
    some = codes[:: max(len(codes) // 2000, 1)]
    information = np.array([_information(some[:, j], some[:, place]) for j in earlier])
    best = np.argsort(-information, kind="stable")[:most]
    return np.sort(earlier[best])


def _information(a: Index, b: Index) -> float:
    """Mutual information of two columns of codes, in nats."""
    table = _table(a, b, int(a.max()) + 1, int(b.max()) + 1) / len(a)
    independent = table.sum(axis=1, keepdims=True) * table.sum(axis=0)
    seen = table > 0
    return float((table[seen] * np.log(table[seen] / independent[seen])).sum())


def _table(a: Index, b: Index, n_a: int, n_b: int) -> NDArray[np.int64]:
    """(n_a, n_b): how often each two codes occur together."""
    return np.bincount(a * n_b + b, minlength=n_a * n_b).reshape(n_a, n_b)

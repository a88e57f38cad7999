"""Columns as numbers for a network, and the way back: mode-specific normalisation.

Every column becomes one block of which a single place is 1: the level of a category, or the mode
of a number, which is a component of a Gaussian mixture fitted to the column; missing is one more
place. A number has a scalar beside it, (v - mean) / (4 std) of its mode. A category of more levels
than `max_levels` is cut into bins, and its scalar says which level of the bin is meant.

Mixtures are variational with a Dirichlet-process prior (at most ten components; those of weight
0.005 or less are dropped), as `sklearn.mixture.BayesianGaussianMixture` fits them, but over
distinct values with their counts: a column of integers costs milliseconds, whatever its length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln, logsumexp

from limi.generators._bins import Bins, cut, pack_bins, take_bins
from limi.generators._state import Arrays, pack, require
from limi.table.schema import Column, Schema
from limi.types import Index, Mask, Rows

__all__ = ["Encoded", "Encoding", "Modes", "mixture"]

_Cells: TypeAlias = NDArray[np.float64]

MOST_VALUES = 10_000  # distinct values that a mixture is fitted to; more are drawn from
_CONCENTRATION = 0.001
_REGULARISATION = 1e-6  # of variances, in units of the column's
_TOLERANCE = 1e-3
_MOST_ROUNDS = 100
_EDGE = 0.99  # scalars stay inside, so that tanh can reach them


@dataclass(frozen=True, eq=False)
class Modes:
    """Modes of a numerical column, the largest first; missing comes behind them."""

    weights: _Cells
    means: _Cells
    stds: _Cells
    missing: bool

    def __len__(self) -> int:
        return len(self.means) + self.missing

    def check(self, column: Column) -> None:
        """ValueError where modes from a file are none of this column, or do not hold together."""
        name = repr(column.name)[:80]
        alike = len(self.weights) == len(self.means) == len(self.stds)
        require(alike and len(self) > 0, f"the modes of {name} lack parts")
        require(bool((self.weights > 0).all()), f"a mode of {name} has no weight")
        require(bool((self.stds >= 0).all()), f"a mode of {name} has a negative width")
        near = 1e-6 * (1 + column.high - column.low)
        inside = (self.means >= column.low - near) & (self.means <= column.high + near)
        require(bool(inside.all()), f"a mode of {name} lies outside its schema")
        require(not self.missing or column.missing, f"{name} cannot be missing by its schema")

    def locate(self, cells: _Cells, draws: _Cells) -> tuple[Index, _Cells]:
        """A mode of each cell, drawn by responsibility, and the cell's scalar in it.

        A cell that the fitted column has no mode for, missing or not, gets the last.
        """
        modes = np.full(len(cells), len(self) - 1, dtype=np.intp)
        scalars = np.zeros(len(cells))
        known = ~np.isnan(cells)
        if not known.any() or not len(self.means):
            return modes, scalars
        values, of = np.unique(cells[known], return_inverse=True)
        ends = np.cumsum(self.responsibilities(values), axis=1)
        chosen = (draws[known, None] >= ends[of, :-1]).sum(axis=1)
        spread = 4 * self.stds[chosen]
        away = cells[known] - self.means[chosen]
        modes[known] = chosen
        scalars[known] = np.where(spread > 0, away / np.where(spread > 0, spread, 1), 0.0)
        return modes, np.clip(scalars, -_EDGE, _EDGE)

    def responsibilities(self, values: _Cells) -> _Cells:
        """(values, modes): how probable it is that each value belongs to each mode."""
        stds = np.maximum(self.stds, 1e-12 * (1 + np.abs(self.means)))
        log = (
            np.log(self.weights) - np.log(stds) - 0.5 * ((values[:, None] - self.means) / stds) ** 2
        )
        shares = np.exp(log - logsumexp(log, axis=1, keepdims=True)) + 1e-6
        normed: _Cells = shares / shares.sum(axis=1, keepdims=True)
        return normed


def mixture(
    values: _Cells,
    counts: NDArray[np.integer[Any]],
    *,
    max_modes: int = 10,
    min_weight: float = 0.005,
) -> tuple[_Cells, _Cells, _Cells]:
    """Weights, means and standard deviations of the modes of distinct values with counts.

    Variational inference of a Gaussian mixture in one dimension, with the priors that scikit-learn
    takes from the data. Values are standardised first, so the unit of the column plays no part.
    """
    largest = float(np.abs(values).max()) or 1.0  # squares of larger numbers may overflow
    center = largest * float(np.average(values / largest, weights=counts))
    scale = largest * float(
        np.sqrt(np.average((values / largest - center / largest) ** 2, weights=counts))
    )
    if len(values) == 1 or scale == 0:
        return np.ones(1), values[:1].copy(), np.zeros(1)
    x, w = (values - center) / scale, counts.astype(np.float64)
    k = min(max_modes, len(x))
    spread = np.linspace(0, len(x) - 1, 2 * k + 1).round().astype(np.intp)[1::2]
    common = np.searchsorted(np.cumsum(w), (np.arange(k) + 0.5) / k * w.sum())
    heaviest = np.argsort(-w, kind="stable")[:k]
    # Inference finds a local optimum, so it starts thrice: from centers over the range, at even
    # shares of the rows, and at the values that occur most.
    fits = [_infer(x, w, np.unique(x[start])) for start in (spread, common, heaviest)]
    _, weights, means, stds = max(fits, key=lambda found: found[0])
    kept = np.flatnonzero(weights > min_weight)
    kept = kept[np.argsort(-weights[kept], kind="stable")]
    return weights[kept], center + scale * means[kept], scale * stds[kept]


def _infer(x: _Cells, w: _Cells, centers: _Cells) -> tuple[float, _Cells, _Cells, _Cells]:
    """Bound on the evidence, weights, means and standard deviations, from standardised values."""
    total = w.sum()
    prior_cov = total / max(total - 1, 1)  # the unbiased variance of standardised values
    shares = _first_shares(x, w, centers)
    bound = -np.inf
    for _ in range(_MOST_ROUNDS):
        weighted = shares * w[:, None]
        n = weighted.sum(axis=0) + 10 * np.finfo(np.float64).eps
        mean = (weighted * x[:, None]).sum(axis=0) / n
        spread = (weighted * (x[:, None] - mean) ** 2).sum(axis=0) / n + _REGULARISATION
        behind = np.append(np.cumsum(n[::-1])[-2::-1], 0.0)
        a, b = 1 + n, _CONCENTRATION + behind
        precision = freedom = 1 + n
        means = n * mean / precision  # the prior mean is 0
        covs = (prior_cov + n * spread + n / precision * mean**2) / freedom
        log_weight = digamma(a) - digamma(a + b)
        log_weight[1:] += np.cumsum(digamma(b) - digamma(a + b))[:-1]
        log_lambda = np.log(2) + digamma(freedom / 2)
        log_density = -0.5 * (np.log(2 * np.pi) + np.log(covs) + (x[:, None] - means) ** 2 / covs)
        log_density += 0.5 * (log_lambda - np.log(freedom) - 1 / precision)
        joint = log_density + log_weight
        log_shares = joint - logsumexp(joint, axis=1, keepdims=True)
        shares = np.exp(log_shares)
        log_det = -0.5 * (np.log(covs) + np.log(freedom))
        wishart = -(freedom * log_det + freedom / 2 * np.log(2) + gammaln(freedom / 2))
        entropy = -(w[:, None] * shares * log_shares).sum()
        before = bound
        bound = entropy - wishart.sum() + betaln(a, b).sum() - 0.5 * np.log(precision).sum()
        if abs(bound - before) < _TOLERANCE:
            break
    weights = a / (a + b) * np.concatenate([[1.0], np.cumprod(b / (a + b))[:-1]])
    return float(bound), weights / weights.sum(), means, np.sqrt(covs)


def _first_shares(x: _Cells, w: _Cells, centers: _Cells) -> _Cells:
    """One-hot shares of the clusters that k-means finds from these centers, heavy ones first.

    The process prior gives its first components the most weight.
    """
    for _ in range(50):
        cluster = np.searchsorted((centers[1:] + centers[:-1]) / 2, x)
        weight = np.bincount(cluster, w, minlength=len(centers))
        total = np.bincount(cluster, w * x, minlength=len(centers))
        moved = np.where(weight > 0, total / np.where(weight > 0, weight, 1), centers)
        if np.array_equal(moved, centers):
            break
        centers = moved
    rank = np.empty(len(centers), dtype=np.intp)
    rank[np.argsort(-weight, kind="stable")] = np.arange(len(centers))
    shares: _Cells = np.eye(len(centers))[rank[cluster]]
    return shares


def _modes_of(cells: _Cells, rng: np.random.Generator, max_modes: int) -> Modes:
    known = cells[~np.isnan(cells)]
    missing = len(known) < len(cells)
    if not len(known):
        return Modes(np.zeros(0), np.zeros(0), np.zeros(0), True)
    values, counts = np.unique(known, return_counts=True)
    if len(values) > MOST_VALUES:
        values, counts = np.unique(
            rng.choice(known, MOST_VALUES, replace=False), return_counts=True
        )
    return Modes(*mixture(values, counts, max_modes=max_modes), missing)


# -- a whole table ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows as a network sees them, kept small: which place of each block is 1, and scalars."""

    places: NDArray[np.int32]  # (n, d) within the block of the column
    scalars: NDArray[np.float32]  # (n, d), 0 for columns without one

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the columns of a schema become blocks and scalars.

    The network's row is all scalars, then all blocks, each in the order of the columns.
    """

    schema: Schema
    parts: tuple[Modes | Bins, ...]  # one per column

    @staticmethod
    def fit(
        rows: Rows,
        schema: Schema,
        rng: np.random.Generator,
        *,
        max_modes: int = 10,
        max_levels: int = 256,
    ) -> Encoding:
        """The encoding of a table."""
        parts: list[Modes | Bins] = []
        for position, column in enumerate(schema.columns):
            if column.is_number:
                parts.append(_modes_of(rows[:, position], rng, max_modes))
            else:
                parts.append(cut(rows[:, position], real=False, max_bins=max_levels))
        return Encoding(schema, tuple(parts))

    @cached_property
    def widths(self) -> Index:
        """(d,): places of each column's block."""
        return np.array([len(part) for part in self.parts], dtype=np.intp)

    @cached_property
    def starts(self) -> Index:
        """(d,): where each block begins, counted from the end of the scalars."""
        return np.concatenate([[0], np.cumsum(self.widths)[:-1]]).astype(np.intp)

    @cached_property
    def has_scalar(self) -> Mask:
        """(d,): numbers, and categories cut into bins."""
        return np.array([isinstance(p, Modes) or p.only_value is None for p in self.parts])

    @cached_property
    def scalar_columns(self) -> Index:
        """(s,): the columns with a scalar."""
        return np.flatnonzero(self.has_scalar)

    @cached_property
    def discrete(self) -> Index:
        """Columns that conditions may name: all but the numerical ones."""
        return np.flatnonzero([isinstance(part, Bins) for part in self.parts])

    @property
    def n_scalars(self) -> int:
        """Scalars of a row."""
        return len(self.scalar_columns)

    @property
    def n_places(self) -> int:
        """Places of all blocks."""
        return int(self.widths.sum())

    @property
    def width(self) -> int:
        """Numbers in the network's row."""
        return self.n_scalars + self.n_places

    def encode(self, rows: Rows, rng: np.random.Generator) -> Encoded:
        """Rows as places and scalars; modes, and levels within bins, are drawn."""
        draws = rng.random(rows.shape)
        places = np.empty(rows.shape, dtype=np.int32)
        scalars = np.zeros(rows.shape, dtype=np.float32)
        for j, part in enumerate(self.parts):
            if isinstance(part, Modes):
                places[:, j], scalars[:, j] = part.locate(rows[:, j], draws[:, j])
                continue
            places[:, j] = np.minimum(part.bin_of(rows[:, j]), len(part) - 1)
            if self.has_scalar[j]:
                inside = part.locate(rows[:, j], part.bin_of(rows[:, j]), draws[:, j])
                scalars[:, j] = np.clip(2 * np.nan_to_num(inside, nan=0.5) - 1, -_EDGE, _EDGE)
        return Encoded(places, scalars)

    # -- as arrays ----------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """Plain arrays that `from_state` takes."""
        modes = [p if isinstance(p, Modes) else None for p in self.parts]
        bins = [p if isinstance(p, Bins) else None for p in self.parts]
        none: NDArray[Any] = np.zeros(0)
        missing = [p.missing if isinstance(p, Modes) else p.n_missing for p in self.parts]
        return {
            "encoding_missing": np.array(missing, dtype=np.int64),
            **pack("encoding_mode_weights", [none if m is None else m.weights for m in modes]),
            **pack("encoding_means", [none if m is None else m.means for m in modes]),
            **pack("encoding_stds", [none if m is None else m.stds for m in modes]),
            **pack_bins("encoding_", bins),
        }

    @staticmethod
    def from_state(held: Arrays, schema: Schema) -> Encoding:
        """The encoding that gave these arrays."""
        d = len(schema)
        missing = held.wholes("encoding_missing", d)
        floats = [
            held.float_pieces(f"encoding_{name}", d) for name in ("mode_weights", "means", "stds")
        ]
        of_bins = take_bins(held, "encoding_", d)
        parts: list[Modes | Bins] = []
        for j, column in enumerate(schema.columns):
            weights, means, stds = (pieces[j] for pieces in floats)
            unused = of_bins[j] if column.is_number else (weights, means, stds)
            require(not any(map(len, unused)), f"column {j} is of a different kind")
            if column.is_number:
                parts.append(Modes(weights, means, stds, bool(missing[j])))
            else:
                parts.append(Bins(*of_bins[j], n_missing=int(missing[j]), real=False))
            parts[-1].check(column)
        return Encoding(schema, tuple(parts))

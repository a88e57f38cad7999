"""The numbers behind a report's pictures; drawing them is the page's business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.search.findings import Found
from limi.types import Rows

__all__ = ["curve", "densities", "score_pairs"]

_GRID = 81
_MOST_ROWS = 20_000


def densities(real: Rows, groups: Mapping[str, Rows]) -> dict[str, Any]:
    """Densities of groups of rows along the first principal component of the real ones.

    `{"x": grid, "share": explained variance, "lines": {name: density}}`; each line integrates
    to 1. Columns are scaled to unit variance first, and missing cells count as the mean.
    """
    real = real[:_MOST_ROWS]
    mean, spread = np.nanmean(real, axis=0), np.nanstd(real, axis=0)
    spread = np.where(spread > 0, spread, 1.0)

    def scaled(rows: Rows) -> Rows:
        cells: Rows = np.nan_to_num((rows[:_MOST_ROWS] - mean) / spread, nan=0.0)
        return cells

    values, vectors = np.linalg.eigh(np.cov(scaled(real), rowvar=False).reshape(len(mean), -1))
    axis = vectors[:, -1] * np.sign(vectors[np.abs(vectors[:, -1]).argmax(), -1])
    along = {"real": scaled(real) @ axis} | {n: scaled(rows) @ axis for n, rows in groups.items()}
    low, high = np.percentile(along["real"], [0.2, 99.8])
    grid = np.linspace(low - 0.1 * (high - low), high + 0.1 * (high - low), _GRID)
    return {
        "x": _round(grid),
        "share": round(float(values[-1] / max(values.sum(), 1e-12)), 4),
        "lines": {name: _round(_density(cells, grid)) for name, cells in along.items()},
    }


def _density(cells: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """A Gaussian kernel density by Silverman's rule, over a fine histogram."""
    if not len(cells):
        return np.zeros(len(grid))
    width = max(1.06 * float(cells.std()) * len(cells) ** -0.2, (grid[-1] - grid[0]) / 100)
    counts, edges = np.histogram(cells, bins=512, range=(grid[0] - 3 * width, grid[-1] + 3 * width))
    middles = (edges[1:] + edges[:-1]) / 2
    kernel = np.exp(-0.5 * ((grid[:, None] - middles[None, :]) / width) ** 2)
    density: NDArray[np.float64] = kernel @ counts / (len(cells) * width * np.sqrt(2 * np.pi))
    return density


def score_pairs(found: Found, most: int = 400) -> list[list[float]]:
    """[score, partner's score] of findings spread evenly over the order in which they came."""
    chosen = np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).astype(np.intp))
    pairs = np.stack([found.score[chosen], found.partner_score[chosen]], axis=1)
    return [_round(pair) for pair in pairs]


def curve(points: Sequence[tuple[int, int]], most: int = 120) -> list[list[int]]:
    """[queries, findings] along a run, thinned out."""
    chosen = np.unique(np.linspace(0, len(points) - 1, min(most, len(points))).astype(np.intp))
    return [list(points[place]) for place in chosen]


def _round(numbers: NDArray[np.float64]) -> list[float]:
    return [float(f"{number:.5g}") for number in numbers]

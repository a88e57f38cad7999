"""People on two axes, counted in hexagons: as many as there are, and no more marks than fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.explore.sheet import round_up
from limi.table.schema import Column
from limi.types import Latents

__all__ = ["Axis", "Bin", "Grid", "bin_people", "name_direction", "tell_directions"]

_ACROSS = 34  # hexagons in a line
_FEW = 24  # values from which on an axis is a scale
_TELLING = 3  # columns that name a direction
_WIDE = 2 * _ACROSS + 4  # numbers of hexagons in one line
_AT_ONCE = 1 << 16  # people that are placed at once: what is in between stays small


@dataclass(frozen=True, eq=False)
class Axis:
    """How cells of people become places from 0 to 1."""

    title: str
    low: float
    high: float
    column: Column | None = None
    values: NDArray[np.float64] | None = None  # of few values: each has a band of its own

    @staticmethod
    def of(
        column: Column, cells: NDArray[np.float64], values: NDArray[np.float64] | None = None
    ) -> Axis:
        """An axis for cells of a column; the outermost thousandth is drawn at the ends.

        Where the cells are a part of all, `values` are those that the others hold: a value that is
        rare has its band too.
        """
        known = cells[np.isfinite(cells)]
        others = np.empty(0) if values is None else values[np.isfinite(values)]
        values = np.unique(np.concatenate([known, others]))
        values = values if len(values) else np.zeros(1)
        if len(values) <= _FEW or column.kind != "numerical":
            return Axis(column.name, 0.0, float(len(values)), column, values)
        low, high = np.quantile(known, [0.001, 0.999])
        return Axis(column.name, float(low), float(high) if high > low else float(low) + 1, column)

    @property
    def is_banded(self) -> bool:
        """Has each value a band of its own?"""
        return self.values is not None

    def place(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Places from 0 to 1, NaN where a cell is missing."""
        if self.values is not None:
            found = np.searchsorted(self.values, cells).astype(np.float64) + 0.5
            return np.where(np.isnan(cells), np.nan, found / len(self.values))
        return np.clip((cells - self.low) / (self.high - self.low), 0.0, 1.0)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Places with words; of a scale, round numbers and no more than so many."""
        if self.values is not None and self.column is not None:
            n = len(self.values)
            return [((k + 0.5) / n, self.column.show(float(v))) for k, v in enumerate(self.values)]
        width = round_up((self.high - self.low) / (most - 1))
        first, last = math.ceil(self.low / width), math.floor(self.high / width)
        return [
            ((k * width - self.low) / (self.high - self.low), f"{k * width:.4g}")
            for k in range(first, last + 1)
        ]


@dataclass(frozen=True)
class Bin:
    """People at one place."""

    x: float
    y: float
    n: int
    findings: int
    first: int  # a finding here, or else a person; -1 for none
    is_finding: bool


@dataclass(frozen=True)
class Grid:
    """The map."""

    bins: tuple[Bin, ...]
    shape: str  # "hexagon" or "box"
    width: float  # of a mark, as part of the map
    height: float
    people: int
    findings: int
    left_out: int  # people or findings with a missing cell on an axis


def bin_people(
    axes: tuple[Axis, Axis],
    people: tuple[NDArray[np.float64], NDArray[np.float64]],
    findings: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> Grid:
    """Counts of people and of findings by place."""
    banded = axes[0].is_banded or axes[1].is_banded
    shape = "box" if banded else "hexagon"
    counted, left_out = [], 0
    for cells in (people, findings):
        tally = _Tally(axes, banded)
        for start in range(0, len(cells[0]), _AT_ONCE):
            tally.add(cells[0][start : start + _AT_ONCE], cells[1][start : start + _AT_ONCE], start)
        counted.append(tally.told())
        left_out += tally.left_out
    both = np.unique(np.concatenate([counted[0][0], counted[1][0]]))
    if banded:
        sizes = [_bands(axis) for axis in axes]
        width, height = 1 / sizes[0], 1 / sizes[1]
        xs, ys = (both // sizes[1] + 0.5) / sizes[0], (both % sizes[1] + 0.5) / sizes[1]
    else:
        width = 1 / _ACROSS
        height = width * 2 / math.sqrt(3)
        rows, columns = both // _WIDE, both % _WIDE
        xs, ys = columns * width / 2, rows * height * 0.75
    lines: list[Bin] = []
    n, first = _look_up(counted[0], both)
    found, first_found = _look_up(counted[1], both)
    for k in range(len(both)):
        is_finding = bool(found[k])
        which = int(first_found[k] if is_finding else first[k])
        lines.append(Bin(float(xs[k]), float(ys[k]), int(n[k]), int(found[k]), which, is_finding))
    totals = [int(part[1].sum()) for part in counted]
    return Grid(tuple(lines), shape, width, height, totals[0], totals[1], left_out)


def _bands(axis: Axis) -> int:
    return len(axis.values) if axis.values is not None else _ACROSS


def _boxes(
    axes: tuple[Axis, Axis], x: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.int64]:
    across, up = (_bands(axis) for axis in axes)
    column = np.minimum((x * across).astype(np.int64), across - 1)
    row = np.minimum((y * up).astype(np.int64), up - 1)
    return np.asarray(column * up + row)


def _hexagons(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]:
    """The number of the hexagon whose centre is nearest, of two lattices that interleave."""
    width = 1 / _ACROSS
    height = width * math.sqrt(3)  # from one line of a lattice to the next
    across, up = x / width, y / height
    even = np.rint(across), np.rint(up)
    odd = np.floor(across) + 0.5, np.floor(up) + 0.5
    # Distances in units of the width; a line is the square root of three high.
    d_even = (across - even[0]) ** 2 + 3 * (up - even[1]) ** 2
    d_odd = (across - odd[0]) ** 2 + 3 * (up - odd[1]) ** 2
    nearer = d_even <= d_odd
    column = np.where(nearer, 2 * even[0], 2 * odd[0]).astype(np.int64)
    line = np.where(nearer, 2 * even[1], 2 * odd[1]).astype(np.int64)
    return np.asarray(line * _WIDE + column)


class _Tally:
    """How many stand at each place, and who is the first there."""

    def __init__(self, axes: tuple[Axis, Axis], banded: bool) -> None:
        self._axes, self._banded = axes, banded
        lines = 2 * math.ceil(_ACROSS / math.sqrt(3)) + 2
        size = _bands(axes[0]) * _bands(axes[1]) if banded else lines * _WIDE
        self._counts = np.zeros(size, dtype=np.int64)
        self._first = np.full(size, -1, dtype=np.int64)
        self.left_out = 0

    def add(self, across: NDArray[np.float64], up: NDArray[np.float64], start: int) -> None:
        """People in order, of whom the first has this number."""
        x, y = self._axes[0].place(across), self._axes[1].place(up)
        known = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
        self.left_out += len(x) - len(known)
        x, y = x[known], y[known]
        keys = _boxes(self._axes, x, y) if self._banded else _hexagons(x, y)
        self._counts += np.bincount(keys, minlength=len(self._counts))
        here = np.full(len(self._counts), -1, dtype=np.int64)
        here[keys[::-1]] = known[::-1] + start  # what is written last stays: the first of all
        self._first = np.where(self._first < 0, here, self._first)

    def told(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Places that occur, how often, and who is the first at each."""
        present = np.flatnonzero(self._counts)
        return present, self._counts[present], self._first[present]


def _look_up(
    counted: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    keys: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    present, counts, first = counted
    n, who = np.zeros(len(keys), dtype=np.int64), np.full(len(keys), -1, dtype=np.int64)
    places = np.searchsorted(keys, present)
    n[places], who[places] = counts, first
    return n, who


def tell_directions(
    people: Latents, findings: Latents
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two directions of a latent space that tell most of who is found.

    The first parts findings from people best, as Fisher's discriminant does; the second is the one
    across it in which findings spread most unlike people.
    """
    width = people.shape[1]
    spread = np.cov(people, rowvar=False).reshape(width, width) + 1e-3 * np.eye(width)
    apart = findings.mean(axis=0) - people.mean(axis=0)
    first = np.linalg.solve(spread, apart)
    first = first / (np.linalg.norm(first) or 1.0)
    if not np.any(first):
        first = np.eye(width)[0]
    # Everything across the first.
    basis = np.linalg.qr(np.column_stack([first, np.eye(width)]))[0][:, 1:width]
    if not basis.shape[1]:
        return first, first
    mine = np.cov(people @ basis, rowvar=False).reshape(basis.shape[1], -1)
    theirs = np.cov(findings @ basis, rowvar=False).reshape(basis.shape[1], -1)
    mine = mine + 1e-3 * np.eye(len(mine))
    whiten = np.linalg.inv(np.linalg.cholesky(mine))
    sizes, ways = np.linalg.eigh(whiten @ theirs @ whiten.T)
    unlike = np.abs(np.log(np.maximum(sizes, 1e-9)))
    second = basis @ (whiten.T @ ways[:, int(np.argmax(unlike))])
    return first, second / (np.linalg.norm(second) or 1.0)


def name_direction(weights: NDArray[np.float64], names: Sequence[str]) -> str:
    """A direction by the columns that weigh most in it."""
    order = np.argsort(-np.abs(weights), kind="stable")[:_TELLING]
    return ", ".join(f"{'more' if weights[k] > 0 else 'less'} {names[k]}" for k in order)

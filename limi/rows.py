"""Arithmetic on rows of a schema: snap to the domain, draw, key, tell new keys from old ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.schema import Schema
from limi.types import Index, Keys, Mask, Rows

__all__ = ["Distinct", "KeySet", "distinct", "group", "keys", "snap", "uniform"]

_MIXER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio, odd


def snap(schema: Schema, rows: Rows) -> Rows:
    """Rows moved to the nearest point of the domain; missing cells stay missing."""
    snapped = np.clip(rows, schema.low, schema.high)
    grid = schema.step > 0
    step = np.where(grid, schema.step, 1.0)
    on_grid = schema.low + np.rint((snapped - schema.low) / step) * step
    snapped = np.where(grid, on_grid, snapped)
    for position, column in enumerate(schema.columns):
        if column.kind == "numerical" and column.step % 1:
            # 0.1 + 2 * 0.1 is not 0.3: cells must equal what a table would hold.
            snapped[:, position] = np.round(snapped[:, position], column.decimals)
    return snapped


def uniform(schema: Schema, n: int, rng: np.random.Generator) -> Rows:
    """n rows drawn uniformly from the domain, missing counted as one more value of a column.

    One float a cell is drawn in row order, so the rows do not depend on how n is split up.
    """
    draws = rng.random((n, len(schema)))
    rows = np.empty_like(draws)
    for position, column in enumerate(schema.columns):
        draw = draws[:, position]
        if column.size == 0:
            # A real column has no number of values to weigh missing against; it is not drawn.
            rows[:, position] = column.low + draw * (column.high - column.low)
            continue
        level = np.floor(draw * (column.size + column.missing))
        cells = schema.low[position] + level * schema.step[position]
        if column.missing:
            cells[level == column.size] = np.nan
        rows[:, position] = cells
    return snap(schema, rows)


def keys(schema: Schema, rows: Rows) -> Keys:
    """Exact keys over the non-protected columns, packed into as few 64-bit words as they need."""
    words: list[NDArray[np.uint64]] = []
    room = 0
    for position in schema.free_index:
        column, cells = schema.columns[position], rows[:, position]
        if column.size == 0:
            # + 0.0 turns -0.0 into 0.0; all NaN count as the same missing value.
            words.append(np.where(np.isnan(cells), np.nan, cells + 0.0).view(np.uint64))
            continue
        bits = (column.size + column.missing - 1).bit_length()
        if not bits:
            continue  # one value tells no rows apart
        code = _level(cells, schema.low[position], schema.step[position])
        if column.missing:
            code = np.where(np.isnan(cells), column.size, code)
        if bits > room:
            words.insert(0, code.astype(np.uint64))
            room = 64
        else:
            words[0] <<= np.uint64(bits)
            words[0] |= code.astype(np.uint64)
        room -= bits
    if not words:
        return np.zeros((len(rows), 1), dtype=np.uint64)
    return words[0][:, None] if len(words) == 1 else np.stack(words, axis=1)


def _level(cells: Rows, low: float, step: float) -> Rows:
    """Which step above low each cell is; whole numbers need no rounding, and most columns are."""
    if step == 1.0 and low == int(low):
        return cells - low
    return np.rint((cells - low) / step)


@dataclass(frozen=True)
class Distinct:
    """The distinct keys of a batch of rows."""

    keys: Keys  # (n, w) the key of every row
    first: Index  # (u,) where each distinct key occurs first, ascending
    of: Index  # (n,) which of those every row carries


def distinct(schema: Schema, rows: Rows) -> Distinct:
    """Keys of rows, and which of them repeat."""
    row_keys = keys(schema, rows)
    return Distinct(row_keys, *group(row_keys))


def group(keys: Keys) -> tuple[Index, Index]:
    """Where each distinct key occurs first, ascending, and which of those every key is.

    Keys are thrown into many buckets first: one that is alone in its bucket repeats no other, so
    only the few others are sorted.
    """
    n = len(keys)
    hashes = _hash(keys)
    bits = max(10, (4 * n).bit_length())
    bucket = ((hashes * _MIXER) >> np.uint64(64 - bits)).astype(np.intp)
    crowded = np.flatnonzero(np.bincount(bucket, minlength=1 << bits)[bucket] > 1)
    leader = np.arange(n)
    leader[crowded] = crowded[_leaders(keys[crowded], hashes[crowded])]
    is_first = leader == np.arange(n)
    rank = np.cumsum(is_first) - 1
    return np.flatnonzero(is_first), rank[leader]


def _leaders(keys: Keys, hashes: NDArray[np.uint64]) -> Index:
    """For each key the position of the first one that equals it."""
    order = np.argsort(hashes, kind="stable")
    starts = np.ones(len(keys), dtype=bool)
    starts[1:] = hashes[order[1:]] != hashes[order[:-1]]
    if keys.shape[1] > 1 and not starts.all():
        same = (keys[order[1:]] == keys[order[:-1]]).all(axis=1)
        if (~starts[1:] & ~same).any():  # two keys with one hash: sort by all words instead
            order = np.lexsort(keys.T)
            starts[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    # Both sorts are stable, so the first of a group is its earliest key.
    leaders = np.empty(len(keys), dtype=np.intp)
    leaders[order] = order[starts][np.cumsum(starts) - 1]
    return leaders


class KeySet:
    """A growing set of exact keys, asked and extended in batches.

    Kept as a few sorted runs whose sizes grow geometrically, so that adding n keys costs
    n log n in all, and memory is that of the keys. Runs are sorted by one word a key (the key
    itself, or a hash of its words); equal hashes are compared word by word.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[NDArray[np.uint64], Keys]] = []

    def __len__(self) -> int:
        return sum(len(hashes) for hashes, _ in self._runs)

    def contains(self, keys: Keys) -> Mask:
        """Which keys are in the set."""
        found = np.zeros(len(keys), dtype=bool)
        hashes = _hash(keys)
        order = np.argsort(hashes)  # ascending needles keep the binary searches in cache
        for run_hashes, run_keys in self._runs:
            found[order] |= _in_run(run_hashes, run_keys, hashes[order], keys[order])
        return found

    def add(self, keys: Keys) -> None:
        """Add keys that are distinct and not in the set yet."""
        if not len(keys):
            return
        hashes = _hash(keys)
        order = np.argsort(hashes, kind="stable")
        self._runs.append((hashes[order], keys[order]))
        while len(self._runs) > 1 and len(self._runs[-1][0]) * 2 > len(self._runs[-2][0]):
            later, earlier = self._runs.pop(), self._runs.pop()
            merged = np.concatenate([earlier[0], later[0]])
            order = np.argsort(merged, kind="stable")
            self._runs.append((merged[order], np.concatenate([earlier[1], later[1]])[order]))


def _hash(keys: Keys) -> NDArray[np.uint64]:
    hashes = keys[:, 0]
    for word in keys.T[1:]:
        hashes = (hashes ^ (hashes >> np.uint64(29))) * _MIXER + word
    return hashes


def _in_run(
    run_hashes: NDArray[np.uint64], run_keys: Keys, hashes: NDArray[np.uint64], keys: Keys
) -> Mask:
    found = np.zeros(len(keys), dtype=bool)
    place = np.searchsorted(run_hashes, hashes)
    open_index = np.arange(len(keys))
    while len(open_index):
        inside = place[open_index] < len(run_hashes)
        open_index = open_index[inside]
        at = place[open_index]
        same_hash = run_hashes[at] == hashes[open_index]
        open_index, at = open_index[same_hash], at[same_hash]
        same = (run_keys[at] == keys[open_index]).all(axis=1)
        found[open_index[same]] = True
        # Two keys with one hash: look at the next entry of the run.
        open_index = open_index[~same]
        place[open_index] += 1
    return found

"""Arithmetic on rows of a schema: snap to the domain, draw, key, tell new keys from old ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.table.key_runs import DiskRuns
from limi.table.schema import Schema
from limi.types import Index, Keys, Mask, Rows

__all__ = [
    "Distinct",
    "KeyNumbers",
    "KeySet",
    "distinct",
    "fill_empty",
    "group",
    "in_any",
    "keys",
    "snap",
    "uniform",
]

_MIXER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio, odd
_WORD = 1 << 64
_EXACT = 1 << 53  # up to here every whole number is a float64
_CACHED = 2048  # rows
_FEW = 512  # keys that are sorted sooner than thrown into buckets
MOST_IN_MEMORY = 1 << 20  # keys of a set; more of them lie on disk


def snap(schema: Schema, rows: Rows) -> Rows:
    """Rows moved to the nearest point of the domain; missing cells stay missing."""
    snapped = np.empty(rows.shape)
    for part in _parts(len(rows)):
        snapped[part] = _snap(schema, rows[part])
    return snapped


def fill_empty(rows: Rows) -> Rows:
    """Rows in which a column without any value is 0 throughout, so that nothing is learned of it;
    scikit-learn's boosted trees fail where a column is missing in every row."""
    empty = np.isnan(rows).all(axis=0)
    return np.where(empty, 0.0, rows) if len(rows) and empty.any() else rows


def uniform(schema: Schema, n: int, rng: np.random.Generator) -> Rows:
    """n rows drawn uniformly from the domain, missing counted as one more value of a column.

    One float per cell is drawn in row order, so the rows do not depend on how n is split up.
    """
    rows = np.empty((n, len(schema)))
    sizes = schema.sizes
    may_miss = schema.may_miss & (sizes > 0)
    for part in _parts(n):
        draws = rng.random((part.stop - part.start, len(schema)))
        level = np.floor(draws * (sizes + may_miss))
        # A real column has no number of values to weigh missing against; it is not drawn.
        real = schema.low + draws * (schema.high - schema.low)
        cells = np.where(sizes > 0, schema.low + level * schema.step, real)
        rows[part] = np.where((level == sizes) & may_miss, np.nan, _snap(schema, cells))
    return rows


def _snap(schema: Schema, rows: Rows) -> Rows:
    snapped = np.minimum(np.maximum(rows, schema.low), schema.high)
    grid = schema.step > 0
    step = np.where(grid, schema.step, 1.0)
    on_grid = schema.low + np.rint((snapped - schema.low) / step) * step
    snapped = np.where(grid, on_grid, snapped)
    for position in np.flatnonzero(schema.is_numerical & (schema.step % 1 > 0)):
        # 0.1 + 2 * 0.1 is not 0.3: cells must equal what a table would hold.
        decimals = schema.columns[position].decimals
        snapped[:, position] = np.round(snapped[:, position], decimals)
    return snapped


def _parts(n: int) -> list[slice]:
    """Stretches of rows that stay in a core's cache over several passes."""
    return [slice(start, min(start + _CACHED, n)) for start in range(0, n, _CACHED)]


def keys(schema: Schema, rows: Rows) -> Keys:
    """Exact keys over the non-protected columns, packed into as few 64-bit words as they need.

    With rules a row has the key of its partners: derived columns tell nothing, and levels with a
    role count as what they are under the first protected value.
    """
    packing = _packing(schema)
    rows = schema.enforcer.canonical(rows)
    codes = rows if packing.plain else np.rint((rows - schema.low) / packing.unit)
    sums = packing.sum_up(codes)
    if any(np.isnan(total.sum()) for total in sums):
        # A missing cell, even of a column between those that count, because NaN times 0 is NaN:
        # count it as one more level.
        codes = np.where(np.isnan(codes), packing.absent, codes)
        sums = packing.sum_up(codes)
    words = np.zeros((len(rows), packing.n_words), dtype=np.uint64)
    for total, (word, factor), offset in zip(sums, packing.places, packing.offsets, strict=True):
        whole = (total - offset).astype(np.int64).view(np.uint64)
        words[:, word] += whole if factor == 1 else whole * factor
    for word, position in enumerate(packing.real, packing.n_words - len(packing.real)):
        cells = rows[:, position]
        # + 0.0 turns -0.0 into 0.0; all NaN count as the same missing value.
        words[:, word] = np.where(np.isnan(cells), np.nan, cells + 0.0).view(np.uint64)
    return words


@dataclass(frozen=True)
class _Packing:
    """How the columns of a schema make keys: mixed-radix numbers, one weighted sum of cells each.

    A float64 sum of whole numbers is exact below 2^53, so a word of 64 bits takes up to two sums.
    """

    plain: bool  # do cells count in ones? Then they are summed as they are
    unit: NDArray[np.float64]
    absent: NDArray[np.float64]  # what a missing cell counts as
    weights: list[NDArray[np.float64]]  # a sum each, 0 for columns that are not in it
    spans: list[slice]  # of each sum: the columns from its first to its last
    offsets: list[float]  # what the lowest cells sum up to
    places: list[tuple[int, np.uint64]]  # of each sum: its word, and what it is multiplied by
    real: list[int]  # columns whose cells are words of their own, behind the others
    n_words: int

    def sum_up(self, codes: Rows) -> list[NDArray[np.float64]]:
        """The weighted sums of codes, each over its own columns: a wide table has many sums."""
        return [
            np.einsum("ij,j->i", codes[:, span], weights[span])
            for span, weights in zip(self.spans, self.weights, strict=True)
        ]


def _packing(schema: Schema) -> _Packing:
    """The packing of a schema, kept with it: a lookup by value would cost more than the keys."""
    kept: _Packing | None = vars(schema).get("_packing")
    if kept is None:
        kept = vars(schema)["_packing"] = _pack(schema)
    return kept


def _pack(schema: Schema) -> _Packing:
    grid = schema.step > 0
    plain = bool(((schema.step == 1) & (schema.low == np.rint(schema.low)))[grid].all())
    low, high = schema.low, schema.high + schema.may_miss
    n_levels = [column.size + column.missing for column in schema.columns]
    free = [int(i) for i in schema.key_index]

    weights: list[NDArray[np.float64]] = []
    places: list[tuple[int, np.uint64]] = []
    word, in_word, in_sum = -1, _WORD + 1, _EXACT + 1
    for position in free:
        n = n_levels[position]
        if not grid[position] or n == 1:
            continue  # one value tells no rows apart
        if in_word * n > _WORD:
            word, in_word, in_sum = word + 1, 1, _EXACT + 1
        if in_sum * n > _EXACT:
            weights.append(np.zeros(len(schema)))
            places.append((word, np.uint64(in_word)))
            in_sum = 1
        weights[-1][position] = in_sum
        in_word, in_sum = in_word * n, in_sum * n
    # Years are whole numbers too, but far from zero: their sums must be exact as well.
    reach = np.maximum(np.abs(low), np.abs(high))
    plain = plain and all(float(reach @ w) < _EXACT for w in weights)
    steps = np.where(grid, schema.step, 1.0)
    top = np.rint((schema.high - schema.low) / steps) + 1.0
    real = [position for position in free if not grid[position]]
    return _Packing(
        plain,
        steps,
        np.where(schema.may_miss & grid, top + (low if plain else 0.0), 0.0),
        weights,
        [slice(int(np.flatnonzero(w)[0]), int(np.flatnonzero(w)[-1]) + 1) for w in weights],
        [float(low @ w) if plain else 0.0 for w in weights],
        places,
        real,
        max(word + 1 + len(real), 1),
    )


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
    only the few others are sorted. A few keys are sorted at once.
    """
    n = len(keys)
    hashes = _hash(keys)
    if n <= _FEW:
        ascending = np.sort(hashes)
        if (ascending[1:] != ascending[:-1]).all():
            return np.arange(n), np.arange(n)
        leader = _leaders(keys, hashes)
        is_first = leader == np.arange(n)
        return np.flatnonzero(is_first), (np.cumsum(is_first) - 1)[leader]
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
    order = np.argsort(hashes)  # a stable sort takes three times as long
    starts = np.ones(len(keys), dtype=bool)
    starts[1:] = hashes[order[1:]] != hashes[order[:-1]]
    if keys.shape[1] > 1 and not starts.all():
        same = (keys[order[1:]] == keys[order[:-1]]).all(axis=1)
        if (~starts[1:] & ~same).any():  # two keys with one hash: sort by all words instead
            order = np.lexsort(keys.T)
            starts[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    leaders = np.empty(len(keys), dtype=np.intp)
    if len(keys):
        leaders[order] = np.minimum.reduceat(order, np.flatnonzero(starts))[np.cumsum(starts) - 1]
    return leaders


class KeySet:
    """A growing set of exact keys, asked and extended in batches.

    Kept as a few sorted runs whose sizes grow geometrically, so that adding n keys costs
    n log n in all, and memory is that of the keys. Runs are sorted by one word per key (the key
    itself, or a hash of its words); equal hashes are compared word by word. Of more than
    `most_in_memory` keys (a million by default) the runs lie on disk, and memory stays as it is.
    """

    def __init__(self, most_in_memory: int | None = None) -> None:
        self._runs: list[tuple[NDArray[np.uint64], Keys]] = []
        self._most = MOST_IN_MEMORY if most_in_memory is None else most_in_memory
        self._on_disk: DiskRuns | None = None

    def __len__(self) -> int:
        on_disk = 0 if self._on_disk is None else len(self._on_disk)
        return self._n_in_memory + on_disk

    @property
    def _n_in_memory(self) -> int:
        return sum(len(hashes) for hashes, _ in self._runs)

    def contains(self, keys: Keys) -> Mask:
        """Which keys are in the set."""
        return in_any([self], keys)

    def holds(self, hashes: NDArray[np.uint64], keys: Keys) -> Mask:
        """Which of these keys are in the set; soonest where they are sorted by their hashes."""
        found = np.zeros(len(keys), dtype=bool)
        for run_hashes, run_keys in self._runs:
            found |= _in_run(run_hashes, run_keys, hashes, keys)
        if self._on_disk is not None:
            open_keys = np.flatnonzero(~found)
            found[open_keys] = self._on_disk.contains(hashes[open_keys], keys[open_keys], _in_run)
        return found

    def add(self, keys: Keys) -> None:
        """Add keys that are distinct and not in the set yet."""
        self._add_sorted(*_sort_by_hash(_hash(keys), keys))

    def _add_sorted(self, hashes: NDArray[np.uint64], keys: Keys) -> None:
        if not len(keys):
            return
        self._runs.append((hashes, keys))
        spills = self._n_in_memory > self._most
        while len(self._runs) > 1 and (spills or self._last_is_long()):
            later, earlier = self._runs.pop(), self._runs.pop()
            pairs = zip(earlier, later, strict=True)
            both = (np.concatenate(pair) for pair in pairs)
            self._runs.append(_sort_by_hash(*both))
        if spills:
            self._on_disk = DiskRuns() if self._on_disk is None else self._on_disk
            self._on_disk.add(*self._runs.pop())

    def take_new(self, keys: Keys, most: int | None = None) -> Index:
        """Add keys that are not in the set yet, at most so many; where each occurs first.

        Keys of one word are sorted once for all of it.
        """
        if keys.shape[1] > 1 or len(keys) <= _FEW:
            first, _ = group(keys)
            new = first[~self.contains(keys[first])][:most]
            self.add(keys[new])
            return new
        hashes = keys[:, 0]
        order = np.argsort(hashes)
        ascending = hashes[order]
        starts = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))
        words = ascending[starts]
        first = np.minimum.reduceat(order, starts)  # the sort is not stable
        is_new = ~self.holds(words, words[:, None])
        first, words = first[is_new], words[is_new]
        in_turn = np.sort(first)
        if most is not None and len(first) > most:
            in_turn = in_turn[:most]
            words = words[first <= in_turn[-1]] if most else words[:0]
        self._add_sorted(words, words[:, None])
        return in_turn

    def _last_is_long(self) -> bool:
        """Is it time to merge? Short runs always are: each costs a search at every question."""
        last, before = len(self._runs[-1][0]), len(self._runs[-2][0])
        return last * 2 > before or before <= _FEW


def in_any(sets: Iterable[KeySet], keys: Keys) -> Mask:
    """Which keys are in one of these sets."""
    found = np.zeros(len(keys), dtype=bool)
    sets = [one for one in sets if len(one)]
    if not sets or not len(keys):
        return found
    hashes = _hash(keys)
    if len(keys) <= _FEW:
        for one in sets:
            found |= one.holds(hashes, keys)
        return found
    order = np.argsort(hashes)  # ascending needles keep the binary searches in cache
    hashes, keys = hashes[order], keys[order]
    for one in sets:
        found[order] |= one.holds(hashes, keys)
    return found


class KeyNumbers:
    """Numbers for keys, from 0 on, as they come: equal keys have equal numbers."""

    def __init__(self) -> None:
        self._hashes = np.zeros(0, dtype=np.uint64)  # ascending
        self._numbers = np.zeros(0, dtype=np.intp)  # of those
        self._keys: Keys | None = None  # by their numbers

    def __len__(self) -> int:
        return len(self._hashes)

    def number(self, keys: Keys) -> Index:
        """The number of each key; one that is new has the next."""
        first, of = group(keys)
        distinct_keys = keys[first]
        numbers, hashes = self._find(distinct_keys), _hash(distinct_keys)
        new = np.flatnonzero(numbers < 0)
        numbers[new] = len(self) + np.arange(len(new))
        known = distinct_keys[:0] if self._keys is None else self._keys
        self._keys = np.concatenate([known, distinct_keys[new]])
        ascending = new[np.argsort(hashes[new])]
        place = np.searchsorted(self._hashes, hashes[ascending])
        self._hashes = np.insert(self._hashes, place, hashes[ascending])
        self._numbers = np.insert(self._numbers, place, numbers[ascending])
        return numbers[of]

    def _find(self, keys: Keys) -> Index:
        """The number of each key, -1 where it has none."""
        numbers = np.full(len(keys), -1, dtype=np.intp)
        if self._keys is None or not len(self):
            return numbers
        hashes = _hash(keys)
        place = np.searchsorted(self._hashes, hashes)
        open_index = np.arange(len(keys))
        while len(open_index):
            at = place[open_index]
            near = self._hashes.take(at, mode="clip") == hashes[open_index]
            open_index = open_index[near & (at < len(self))]
            found = self._numbers[place[open_index]]
            same = (self._keys[found] == keys[open_index]).all(axis=1)
            numbers[open_index[same]] = found[same]
            # Two keys with one hash: look at the next one.
            open_index = open_index[~same]
            place[open_index] += 1
        return numbers


def _sort_by_hash(hashes: NDArray[np.uint64], keys: Keys) -> tuple[NDArray[np.uint64], Keys]:
    """Hashes in ascending order, and the keys with them; a key of one word is its own hash."""
    if keys.shape[1] == 1:
        hashes = np.sort(hashes)
        return hashes, hashes[:, None]
    order = np.argsort(hashes)
    return hashes[order], keys[order]


def _hash(keys: Keys) -> NDArray[np.uint64]:
    hashes = keys[:, 0]
    for word in keys.T[1:]:
        hashes = (hashes ^ (hashes >> np.uint64(29))) * _MIXER + word
    return hashes


def _in_run(
    run_hashes: NDArray[np.uint64], run_keys: Keys, hashes: NDArray[np.uint64], keys: Keys
) -> Mask:
    place = np.searchsorted(run_hashes, hashes)
    found = run_hashes.take(place, mode="clip") == hashes
    if keys.shape[1] == 1 or not found.any():
        return np.asarray(found)  # a key of one word is its own hash
    open_index = np.flatnonzero(found)
    found = np.zeros(len(keys), dtype=bool)
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

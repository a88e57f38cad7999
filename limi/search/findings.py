"""The ledger: distinct flipping rows in the order they were found, with time and origin.

Of very many, keys and rows lie on disk: keys as sorted runs, by which a row is told to be new, and
rows one after the other, as they came. What is found does not depend on where it lies.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.search.check import ALONE, REFUSED, Checked
from limi.system.scratch import Scratch
from limi.table.rows import KeySet, keys
from limi.table.schema import Schema
from limi.table.sketches import RowSampler, row_ranks
from limi.types import Index, Mask, Rows, Scores

__all__ = ["Findings", "Found", "Spool"]

MOST_IN_MEMORY = 1 << 17  # findings; more of them lie on disk
_AT_ONCE = 1 << 16  # findings that are read back together
_MOST_UNDER_WAY = 2  # batches that wait to be written, or are


@dataclass(frozen=True)
class Found:
    """Findings as arrays, oldest first."""

    rows: Rows
    partner: Rows
    score: Scores
    partner_score: Scores
    origin: NDArray[np.str_]
    seconds: NDArray[np.float64]  # since the search began
    causes: NDArray[np.uint8]  # see `limi.search.check.cause_names`; 0 where it was not asked for
    naturalness: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    # ^ p-value of the row (`limi.metrics.row_naturalness`); empty where none was told
    partner_naturalness: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    bits: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint8))
    # ^ see `limi.search.check.Checked.bits`; empty where not every combination was asked
    chances: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 7)))
    # ^ of a model that answers by chance: how often each side was asked, and for the row and its
    #   partner the chance of the favorable answer with the ends of its interval
    span: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    # ^ where decisions are bands: how many of them all protected variants of a row span

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Mask | Index | slice) -> Found:
        return Found(
            self.rows[index],
            self.partner[index],
            self.score[index],
            self.partner_score[index],
            self.origin[index],
            self.seconds[index],
            self.causes[index],
            self.naturalness[index] if len(self.naturalness) else self.naturalness,
            self.partner_naturalness[index] if len(self.naturalness) else self.naturalness,
            self.bits[index] if len(self.bits) else self.bits,
            self.chances[index] if len(self.chances) else self.chances,
            self.span[index] if len(self.span) else self.span,
        )


class Spool:
    """Findings on disk, in the order in which they came.

    They are written by a thread, while whoever finds them goes on.
    """

    def __init__(self) -> None:
        self._bytes: Scratch[np.uint8] = Scratch(np.uint8)
        self._places: list[dict[str, tuple[int, Any, tuple[int, ...]]]] = []
        self._n = 0
        self._writer = ThreadPoolExecutor(1, "limi-spool")
        self._under_way: deque[Future[None]] = deque()
        weakref.finalize(self, self._writer.shutdown, wait=False)

    def __len__(self) -> int:
        return self._n

    def append(self, found: Found) -> None:
        """Write findings behind the others; what went wrong with earlier ones is raised here."""
        self._await(_MOST_UNDER_WAY - 1)
        self._under_way.append(self._writer.submit(self._write, found))
        self._n += len(found)

    def _await(self, most: int = 0) -> None:
        """Until so many writes at the most are under way."""
        while len(self._under_way) > most:
            self._under_way.popleft().result()

    def _write(self, found: Found) -> None:
        for start in range(0, len(found), _AT_ONCE):
            part = found[start : start + _AT_ONCE]
            place = {}
            for one in fields(Found):
                cells = np.ascontiguousarray(getattr(part, one.name))
                place[one.name] = (len(self._bytes), cells.dtype, cells.shape)
                self._bytes.append(np.frombuffer(cells.tobytes(), dtype=np.uint8))
            self._places.append(place)

    def pieces(self) -> Iterator[Found]:
        """All of them, in the pieces in which they were written."""
        self._await()
        for place in self._places:
            data = self._bytes.look()
            arrays = [
                data[start : start + math.prod(shape) * dtype.itemsize].copy().view(dtype)
                for start, dtype, shape in place.values()
            ]
            shapes = [shape for _, _, shape in place.values()]
            del data
            self._bytes.forget()
            yield Found(
                *(cells.reshape(shape) for cells, shape in zip(arrays, shapes, strict=True))
            )

    def parts(self) -> Iterator[Found]:
        """All of them, so many at once, whatever pieces they came in."""
        return _rebatch(self.pieces())

    def all(self) -> Found:
        """All of them, in memory."""
        return _join(list(self.pieces()))

    def sample(self, n: int) -> Found:
        """A fair sample of n findings, the same one every time, in their order."""
        if n >= self._n:
            return self.all()
        sampler = RowSampler(n)
        for start in range(0, self._n, _AT_ONCE):
            sampler.offer(min(_AT_ONCE, self._n - start))
            sampler.settle()
        sampler.settle(at_end=True)
        kept, start = [], 0
        for part in self.pieces():
            kept.append(part[row_ranks(start, len(part)) <= sampler.limit])
            start += len(part)
        return _join(kept)


def _join(parts: Sequence[Found]) -> Found:
    if len(parts) == 1:
        return parts[0]
    return Found(*(np.concatenate([getattr(p, one.name) for p in parts]) for one in fields(Found)))


def _rebatch(parts: Iterable[Found]) -> Iterator[Found]:
    """The same findings in batches of one size, but for the last."""
    waiting: list[Found] = []
    for part in parts:
        waiting.append(part)
        while sum(map(len, waiting)) >= _AT_ONCE:
            joined = _join(waiting)
            yield joined[:_AT_ONCE]
            waiting = [joined[_AT_ONCE:]] if len(joined) > _AT_ONCE else []
    if waiting:
        yield _join(waiting)


def _take(checked: Checked, new: Index, seconds: float) -> Found:
    """These rows of a batch as findings, apart from the batch."""
    n = len(new)

    def take(cells: Any) -> Any:
        # All rows of a batch, as a device sends them, are copied faster than gathered.
        return cells.copy() if n == len(checked) else cells[new]

    return Found(
        take(checked.rows),
        take(checked.partner),
        take(checked.score),
        take(checked.partner_score),
        np.full(n, checked.origin),
        np.full(n, seconds),
        take(checked.causes) if len(checked.causes) else np.zeros(n, dtype=np.uint8),
        bits=take(checked.bits) if len(checked.bits) else checked.bits,
    )


class Findings:
    """Append-only; a finding is distinct by its non-protected columns, for every method.

    Of more than `most_in_memory` findings the rows lie on disk.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        sided: bool = True,
        most_in_memory: int | None = None,
        on_new: Callable[[Found], None] | None = None,
    ) -> None:
        self.schema = schema
        self._on_new = on_new  # told of new findings, in their order
        self.sided = sided  # are decisions favorable or not? Only then `favorable` counts anything
        self.rows_checked = 0
        self.flips = 0  # flipping rows, repeated keys included
        self.alone = 0  # of the rows checked, those that cannot have a partner
        self.favorable = np.zeros(len(schema.combinations), dtype=np.int64)
        self._known = KeySet()
        self._parts: list[Found] = []
        self._most = MOST_IN_MEMORY if most_in_memory is None else most_in_memory
        self._n_held = 0  # in memory
        self._spool: Spool | None = None
        self._has_bits = True

    def __len__(self) -> int:
        return len(self._known)

    def add(self, checked: Checked, seconds: float = 0.0, *, most: int | None = None) -> int:
        """Record a batch, keeping at most `most` new findings; the number of new ones."""
        refused, alone = ((checked.standing == kind).sum() for kind in (REFUSED, ALONE))
        self.rows_checked += len(checked) + checked.unflipped - int(refused)
        self.alone += int(alone)
        self.flips += int(checked.flips.sum())
        if len(checked.favorable):
            self.favorable += checked.favorable
        new = np.flatnonzero(checked.flips)
        if not len(new):
            return 0
        rows = checked.rows if len(new) == len(checked) else checked.rows[new]
        new = new[self._known.take_new(keys(self.schema, rows), most)]
        if not len(new):
            return 0
        self._parts.append(_take(checked, new, seconds))
        if self._on_new is not None:
            self._on_new(self._parts[-1])
        self._has_bits &= len(self._parts[-1].bits) > 0
        self._n_held += len(new)
        if self._n_held > self._most:
            self._spill()
        return len(new)

    @property
    def is_spilled(self) -> bool:
        """Do they lie on disk, because they are too many?"""
        return self._spool is not None

    def parts(self) -> Iterator[Found]:
        """Every finding so far, in batches of one size that fit into memory."""
        on_disk = () if self._spool is None else self._spool.pieces()
        return _rebatch(part for parts in (on_disk, self._parts) for part in self._alike(parts))

    def _spill(self) -> None:
        self._spool = Spool() if self._spool is None else self._spool
        for part in self._parts:
            self._spool.append(part)
        self._parts, self._n_held = [], 0

    def _alike(self, parts: Iterable[Found]) -> Iterator[Found]:
        """Findings of which all or none have what was decided under every combination."""
        none = np.zeros((0, 0), dtype=np.uint8)
        for part in parts:
            yield part if self._has_bits else replace(part, bits=none)

    def all(self) -> Found:
        """Every finding so far."""
        if self._spool is not None:
            return _join(list(self.parts()))
        if not self._parts:
            width = len(self.schema)
            empty = np.empty(0)
            nothing = np.empty((0, width))
            origin, causes = np.empty(0, dtype=str), np.empty(0, dtype=np.uint8)
            return Found(nothing, nothing, empty, empty, origin, empty, causes)
        if len(self._parts) > 1:
            self._parts = [_join(list(self._alike(self._parts)))]
        return self._parts[0]

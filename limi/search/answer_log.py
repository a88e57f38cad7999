"""A log of every answer, so that a killed run goes on where it stopped and asks nothing twice.

A search is a function of its seed and of the model's answers. Replaying the answers therefore
brings a method back to where it was, whatever state it keeps. An answer is found by its row, so
that it does not matter in which batches rows were asked, which depends on the clock.

What was logged decides what is found, so it is not taken on trust: every record carries checksums,
they must be such as the model may give, and it is asked again for a sample of its answers. Where a
record is damaged, or a kill has cut it short, the log is cut behind the last good one, and that is
said: what stood there is asked again.

A search that is replayed asks in the order in which it was logged, but for what batches and workers
make of it. So some millions of answers are held at once, and the log may be larger than memory.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.decisions import AS_DECIDED, Rule
from limi.errors import CorruptStore
from limi.generators._counter_rng import mix
from limi.search.steadiness import TIMES
from limi.system import writing
from limi.types import Index, Rows, Scores

__all__ = ["AnswerLog", "hash_rows", "looks_like_one"]

_HEAD = struct.Struct("<4sI")  # magic, number of rows; then their hashes, then their scores
_SUM = struct.Struct("<I")  # of the head, behind it; of the whole record, behind all
_START = _HEAD.size + _SUM.size
_MAGIC = b"LJ02"
_BEFORE = b"LJ01"  # had no checksum of the scores
_ASKED_AGAIN = 256  # answers at most
_CUT_SHORT = "it was cut short, as by a kill"
_PART = 1 << 18  # answers of the log that are read together, at least ...
_MOST_PARTS = 16  # ... and parts that are held


class AnswerLog:
    """Wraps a score function: answers from the log first, then asks and logs.

    `hashes` gives a number for each of the things asked, where they are not rows of a table.
    """

    def __init__(
        self,
        log: io.FileIO,
        score: Callable[[Any], Scores],
        decision: Rule = AS_DECIDED,
        *,
        hashes: Callable[[Any], NDArray[np.int64]] = lambda rows: hash_rows(rows),
    ) -> None:
        self.replayed = 0
        self.asked_again = 0
        self._moves = False  # does the model itself answer otherwise each time?
        self._score = score
        self._hashes = hashes
        self._log = log
        self._decision = decision
        held = _hold_to_its_sums(log, decision)
        log.truncate(held.end)
        self._damage = held.damage
        self._known = _Known(log, held.parts)
        n_known = sum(part.n for part in held.parts)
        self.is_replaying = n_known > 0  # did the log know what was asked last?
        # Drawn, not evenly apart: a row's protected values are asked one after another.
        draw = np.random.default_rng(n_known)
        chosen = draw.choice(n_known, min(n_known, _ASKED_AGAIN), replace=False)
        self._sample: Index = np.sort(chosen)

    def score(self, rows: Any) -> Scores:
        """The scores of rows, from the log where it has them."""
        hashes = self._hashes(rows)
        place, scores = self._known.take(hashes)
        known = place >= 0
        self.is_replaying = bool(known.any())
        if not self.is_replaying:
            return self._ask(rows, hashes)
        self._ask_again(rows[known], scores[known], place[known])
        self.replayed += int(known.sum())
        if not known.all():
            scores[~known] = self._ask(rows[~known], hashes[~known])
        return scores

    def _ask(self, rows: Any, hashes: NDArray[np.int64]) -> Scores:
        scores = self._score(rows)
        self.add(hashes, scores)
        return scores

    def add(self, hashes: NDArray[np.int64], scores: Scores) -> None:
        """Log answers to rows with these hashes."""
        try:
            writing.append(self._log.fileno(), _record(hashes, scores))
        except OSError as error:
            advice = "continue elsewhere with --resume"
            raise writing.refusal("the answers of the model", error, advice) from None

    @property
    def notes(self) -> list[str]:
        """What a report says of a run that was resumed; nothing of one that was not."""
        told = [self._damage] if self._damage else []
        if not self.replayed:
            return told
        ends = "showed that its answers vary by themselves" if self._moves else "found the same"
        told.append(
            f"the run was resumed: {self.replayed:,} answers are from the log of the run before; "
            f"asking the model again for some of them, {self.asked_again:,} queries outside the "
            f"budget, {ends}"
        )
        return told

    def _ask_again(self, rows: Any, known: Scores, place: Index) -> None:
        """Hold the log to the model by those of the sample that are among these rows."""
        chosen = np.flatnonzero(np.isin(place, self._sample))
        if self._moves or not len(chosen):
            return
        self.asked_again += len(chosen)
        if not self._decision.moved(self._score(rows[chosen]), known[chosen]).any():
            return
        # The answers may depend on the batch, or on chance: then there is nothing to hold them to.
        now, self._moves = self._ask_often(rows)
        wrong = np.flatnonzero(self._decision.moved(now, known))
        if len(wrong) and not self._moves:
            raise CorruptStore(
                "the log of the unfinished run does not match the model: asked again about one "
                f"row, the model says {now[wrong[0]]:.6g}, but the log says {known[wrong[0]]:.6g}; "
                "start again with --force"
            )

    def _ask_often(self, rows: Any) -> tuple[Scores, bool]:
        """What the model says of a whole batch, and whether it says so not every time."""
        first = self._score(rows)
        self.asked_again += len(rows)
        for _ in range(TIMES - 1):
            self.asked_again += len(rows)
            if self._decision.moved(first, self._score(rows)).any():
                return first, True
        return first, False


def looks_like_one(path: Path) -> bool:
    """Does a file begin as a journal does? An empty one is a journal without answers."""
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    return start in (_MAGIC, _BEFORE) or (len(start) < len(_MAGIC) and _MAGIC.startswith(start))


@dataclass(frozen=True)
class _Place:
    """Where some records of a log are, one after the other."""

    start: int  # in bytes
    end: int
    first: int  # answer of the log
    n: int  # answers


class _Known:
    """Answers of an earlier run, found by the hash of their row.

    A row that was asked several times has several answers, which are given in their order: those
    of some models move, and then the run that goes on must see them move as well.
    """

    def __init__(self, log: io.FileIO, places: Sequence[_Place]) -> None:
        self._log = log
        self._places = deque(places)
        self._parts: deque[_KnownPart] = deque()  # which are held

    def take(self, hashes: NDArray[np.int64]) -> tuple[Index, Scores]:
        """Where in the log the next answer to each row is, -1 where there is none, and the answer.

        More of the log is read where rows are lacking, and its first part let go of where so much
        is held already that the search must have come far behind it.
        """
        place, scores = np.full(len(hashes), -1), np.empty(len(hashes))
        open_ones = np.arange(len(hashes))
        at = 0
        while len(open_ones):
            if at == len(self._parts):
                if not self._can_read_more:
                    break
                if len(self._parts) == _MOST_PARTS:
                    self._parts.popleft()
                self._parts.append(_KnownPart(self._log, self._places.popleft()))
                at = len(self._parts) - 1
            part = self._parts[at]
            found, told = part.take(hashes[open_ones])
            here = found >= 0
            place[open_ones[here]] = found[here] + part.first
            scores[open_ones[here]] = told[here]
            open_ones = open_ones[~here]
            if part.n_left:
                at += 1
            else:
                del self._parts[at]
        return place, scores

    @property
    def _can_read_more(self) -> bool:
        """Is there more of the log, and either room for it, or was a part far behind used?"""
        if not self._places or len(self._parts) < _MOST_PARTS:
            return bool(self._places)
        return any(part.is_used for part in list(self._parts)[_MOST_PARTS // 2 :])


class _KnownPart:
    """Answers of a part of a log."""

    def __init__(self, log: io.FileIO, place: _Place) -> None:
        hashes, self._scores = _read_answers(log, place)
        self.first = place.first
        self._order = np.argsort(hashes, kind="stable").astype(np.int32)
        self._ascending = hashes[self._order]
        self._used = np.zeros(place.n, dtype=np.int32)  # by the first place of a hash
        self.n_left = place.n

    @property
    def is_used(self) -> bool:
        """Was one of its answers given?"""
        return self.n_left < len(self._scores)

    def take(self, hashes: NDArray[np.int64]) -> tuple[Index, Scores]:
        """Where in the part the next answer to each row is, -1 where there is none, and it."""
        order = np.argsort(hashes, kind="stable")
        ascending = hashes[order]
        first = np.searchsorted(self._ascending, ascending, side="left")
        last = np.searchsorted(self._ascending, ascending, side="right")
        found = first < last
        turn = np.arange(len(order)) - np.searchsorted(ascending, ascending, side="left")
        at = first + turn
        at[found] += self._used[first[found]]
        found &= at < last
        np.add.at(self._used, first[found], 1)
        self.n_left -= int(found.sum())
        place = np.full(len(hashes), -1)
        place[order[found]] = self._order[at[found]]
        return place, self._scores[place]


def hash_rows(rows: Rows) -> NDArray[np.int64]:
    """A number for each row: equal rows have equal ones, and others almost surely do not."""
    cells = np.ascontiguousarray(rows, dtype=np.float64).view(np.int64)
    hashes = np.full(len(rows), cells.shape[1], dtype=np.int64)
    for column in cells.T:
        hashes = mix(hashes ^ column)
    return hashes


def _record(hashes: NDArray[np.int64], scores: Scores) -> bytes:
    head = _HEAD.pack(_MAGIC, len(scores))
    body = hashes.astype("<i8").tobytes() + scores.astype("<f8").tobytes()
    return b"".join(
        (head, _SUM.pack(zlib.crc32(head)), body, _SUM.pack(zlib.crc32(body, zlib.crc32(head))))
    )


@dataclass(frozen=True)
class _Held:
    """What a log holds up to its last good record."""

    end: int  # of that record, in bytes
    parts: list[_Place]
    damage: str  # a sentence on what is behind it and not as it was written


def _hold_to_its_sums(log: io.FileIO, decision: Rule) -> _Held:
    """The good records of a log; CorruptStore where one is good and no answer of such a model."""
    size = os.fstat(log.fileno()).st_size
    end = n_records = 0
    why = ""
    parts: list[_Place] = []
    while end < size:
        n_records += 1
        start = _read(log, end, min(_START, size - end))
        if len(start) < _START:
            why = _CUT_SHORT
            break
        head, (sum_of_head,) = start[: _HEAD.size], _SUM.unpack_from(start, _HEAD.size)
        if head.startswith(_BEFORE) and n_records == 1:
            raise CorruptStore(
                "the unfinished run was begun by an earlier limi, whose log has no checksums; "
                "start again with --force"
            )
        if not head.startswith(_MAGIC) or zlib.crc32(head) != sum_of_head:
            why = "its head is not as it was written"
            break
        _, count = _HEAD.unpack(head)
        if size - end < _START + 16 * count + _SUM.size:
            why = _CUT_SHORT
            break
        rest = _read(log, end + _START, 16 * count + _SUM.size)
        body, (sum_of_all,) = rest[: 16 * count], _SUM.unpack_from(rest, 16 * count)
        if zlib.crc32(body, sum_of_head) != sum_of_all:
            why = "its answers are not those that were written"
            break
        given = np.frombuffer(body, dtype="<f8", offset=8 * count)
        # A NaN compares as false, so it is caught here too.
        if not decision.allows(given).all():
            raise CorruptStore(
                f"the log of the unfinished run has answers in record {n_records:,} that are not "
                f"{decision.allowed}, so it belongs to another model; start again with --force"
            )
        _add_record(parts, end, end + _START + len(rest), count)
        end += _START + len(rest)
    damage = (
        f"the log of the run before was damaged at record {n_records:,} ({why}), so it was cut "
        f"after the last good one; what was in its last {size - end:,} bytes was asked again"
    )
    return _Held(end, parts, damage if why else "")


def _add_record(parts: list[_Place], start: int, end: int, n: int) -> None:
    """Enter a record into the last part, or begin one."""
    last = parts[-1] if parts else _Place(0, 0, 0, _PART)
    if last.n < _PART:
        parts[-1] = _Place(last.start, end, last.first, last.n + n)
    else:
        parts.append(_Place(start, end, last.first + last.n if parts else 0, n))


def _read_answers(log: io.FileIO, place: _Place) -> tuple[NDArray[np.int64], Scores]:
    """The hashes of rows, and their scores, of records that were held to their sums."""
    data = _read(log, place.start, place.end - place.start)
    hashes, scores, at = [np.empty(0, dtype=np.int64)], [np.empty(0)], 0
    while at < len(data):
        _, n = _HEAD.unpack_from(data, at)
        at += _START
        hashes.append(np.frombuffer(data, dtype="<i8", count=n, offset=at).astype(np.int64))
        scores.append(np.frombuffer(data, dtype="<f8", count=n, offset=at + 8 * n).astype(float))
        at += 16 * n + _SUM.size
    return np.concatenate(hashes), np.concatenate(scores)


def _read(log: io.FileIO, start: int, n: int) -> bytes:
    """So many bytes from a place on, which are known to be there."""
    log.seek(start)
    parts = []
    while n and (part := log.read(n)):
        parts.append(part)
        n -= len(part)
    return b"".join(parts)

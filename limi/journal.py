"""A log of every answer, so that a killed run goes on where it stopped and asks nothing twice.

A search is a function of its seed and of the model's answers. Replaying the answers in their
order therefore brings a method back to where it was, whatever state it keeps.

What was logged decides what is found, so it is not taken on trust: every record carries checksums,
scores must be numbers from 0 to 1, and the model is asked again for a sample of its answers. A
record that a kill cut short at the end is asked anew; any other damage is said.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from limi import files
from limi.errors import CorruptStore
from limi.steadiness import TIMES, apart
from limi.types import Index, Rows, Scores

__all__ = ["Journal", "looks_like_one"]

_HEAD = struct.Struct("<4sII")  # magic, number of rows, checksum of the rows
_SUM = struct.Struct("<I")  # of the head, behind it; of head and scores, behind these
_START = _HEAD.size + _SUM.size
_MAGIC = b"LJ02"
_BEFORE = b"LJ01"  # had no checksum of the scores
_ASKED_AGAIN = 256  # answers at most


class Journal:
    """Wraps a score function: answers from the log first, then asks and logs."""

    def __init__(self, log: io.FileIO, score: Callable[[Rows], Scores]) -> None:
        self.replayed = 0
        self.asked_again = 0
        self._moves = False  # does the model itself answer otherwise each time?
        self._score = score
        self._log = log
        self._end, n_answers = _held_to_its_sums(log)
        log.truncate(self._end)
        self._place = 0
        # Drawn, not evenly apart: a row's protected values are asked one after another.
        n = min(n_answers, _ASKED_AGAIN)
        draw = np.random.default_rng(n_answers)
        self._sample: Index = np.sort(draw.choice(n_answers, n, replace=False))

    def score(self, rows: Rows) -> Scores:
        """The scores of rows, from the log where it has them."""
        check = zlib.crc32(np.ascontiguousarray(rows).tobytes())
        if self._place < self._end:
            return self._next(rows, check)
        scores = self._score(rows)
        try:
            files.append(self._log.fileno(), _record(len(rows), check, scores))
        except OSError as error:
            advice = "go on with --resume from elsewhere"
            raise files.refusal("the answers of the model", error, advice) from None
        return scores

    @property
    def note(self) -> str:
        """What a report says of a run that was resumed."""
        ends = "found that its answers move by themselves" if self._moves else "found the same"
        return (
            f"the run was resumed: {self.replayed:,} answers are from the log of the run before; "
            f"asking the model again for some of them, {self.asked_again:,} queries beside the "
            f"budget, {ends}"
        )

    def _next(self, rows: Rows, check: int) -> Scores:
        _, count, logged = _HEAD.unpack_from(_read(self._log, self._place, _START))
        if (count, logged) != (len(rows), check):
            raise CorruptStore(
                "the unfinished run was made with other settings, data or model; "
                "start again with --force, or restore them"
            )
        body = _read(self._log, self._place + _START, 8 * count)
        known = np.frombuffer(body, dtype="<f8").astype(np.float64)
        self._ask_again(rows, known)
        self._place += _START + len(body) + _SUM.size
        self.replayed += count
        return known

    def _ask_again(self, rows: Rows, known: Scores) -> None:
        """Hold the log to the model by those of the sample that are among these rows."""
        first, last = np.searchsorted(self._sample, [self.replayed, self.replayed + len(rows)])
        chosen = self._sample[first:last] - self.replayed
        if self._moves or not len(chosen):
            return
        self.asked_again += len(chosen)
        if not apart(self._score(rows[chosen]), known[chosen]).any():
            return
        # The answers may hang on the batch, or on chance: then there is nothing to hold them to.
        now, self._moves = self._ask_often(rows)
        wrong = np.flatnonzero(apart(now, known))
        if len(wrong) and not self._moves:
            raise CorruptStore(
                "the answers in the log of the unfinished run are not the model's: asked again for "
                f"one of them it says {now[wrong[0]]:.6g}, and the log {known[wrong[0]]:.6g}; "
                "start again with --force"
            )

    def _ask_often(self, rows: Rows) -> tuple[Scores, bool]:
        """What the model says of a whole batch, and whether it says so not every time."""
        first = self._score(rows)
        self.asked_again += len(rows)
        for _ in range(TIMES - 1):
            self.asked_again += len(rows)
            if apart(first, self._score(rows)).any():
                return first, True
        return first, False


def looks_like_one(path: Path) -> bool:
    """Does a file begin as a journal does? An empty one is a journal without answers."""
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    return start in (_MAGIC, _BEFORE) or (len(start) < len(_MAGIC) and _MAGIC.startswith(start))


def _record(n: int, check: int, scores: Scores) -> bytes:
    head = _HEAD.pack(_MAGIC, n, check)
    body = scores.astype("<f8").tobytes()
    return b"".join(
        (head, _SUM.pack(zlib.crc32(head)), body, _SUM.pack(zlib.crc32(body, zlib.crc32(head))))
    )


def _held_to_its_sums(log: io.FileIO) -> tuple[int, int]:
    """Where the last whole record ends, and how many answers there are; CorruptStore where one is
    not as it was written."""
    size = os.fstat(log.fileno()).st_size
    end = n_records = n_answers = 0
    while size - end >= _START:
        n_records += 1
        start = _read(log, end, _START)
        head, (sum_of_head,) = start[: _HEAD.size], _SUM.unpack_from(start, _HEAD.size)
        if head.startswith(_BEFORE):
            raise CorruptStore(
                "the unfinished run was begun by an earlier limi, whose log has no checksums; "
                "start again with --force"
            )
        if not head.startswith(_MAGIC) or zlib.crc32(head) != sum_of_head:
            raise _damage(n_records, "its head is not as it was written")
        _, count, _ = _HEAD.unpack(head)
        if size - end < _START + 8 * count + _SUM.size:
            break  # a kill came while it was written
        rest = _read(log, end + _START, 8 * count + _SUM.size)
        body, (sum_of_all,) = rest[: 8 * count], _SUM.unpack_from(rest, 8 * count)
        if zlib.crc32(body, sum_of_head) != sum_of_all:
            raise _damage(n_records, "its scores are not those that were written")
        scores = np.frombuffer(body, dtype="<f8")
        # A NaN compares as false, so it is caught here too.
        if not ((scores >= 0) & (scores <= 1)).all():
            raise _damage(n_records, "its scores are not numbers from 0 to 1")
        end += _START + len(rest)
        n_answers += count
    return end, n_answers


def _read(log: io.FileIO, start: int, n: int) -> bytes:
    """So many bytes from a place on, which are known to be there."""
    log.seek(start)
    parts = []
    while n and (part := log.read(n)):
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def _damage(record: int, why: str) -> CorruptStore:
    return CorruptStore(
        f"the log of the unfinished run is damaged at record {record:,}: {why}; its answers cannot "
        "be used, so start again with --force"
    )

"""A log of every answer, so that a killed run goes on where it stopped and asks nothing twice.

A search is a function of its seed and of the model's answers. Replaying the answers in their
order therefore brings a method back to where it was, whatever state it keeps.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import numpy as np

from limi.errors import CorruptStore
from limi.types import Rows, Scores

__all__ = ["Journal"]

_HEAD = struct.Struct("<4sII")  # magic, number of rows, checksum of the rows
_MAGIC = b"LJ01"


class Journal:
    """Wraps a score function: answers from the log first, then asks and logs."""

    def __init__(self, path: Path, score: Callable[[Rows], Scores]) -> None:
        self.replayed = 0
        self._score = score
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._replaying = True

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def score(self, rows: Rows) -> Scores:
        """The scores of rows, from the log where it has them."""
        check = zlib.crc32(np.ascontiguousarray(rows).tobytes())
        if self._replaying:
            known = self._next(len(rows), check)
            if known is not None:
                self.replayed += len(rows)
                return known
        scores = self._score(rows)
        record = _HEAD.pack(_MAGIC, len(rows), check) + scores.astype("<f8").tobytes()
        self._file.write(record)
        self._file.flush()
        return scores

    def _next(self, n: int, check: int) -> Scores | None:
        start = self._file.tell()
        head = self._file.read(_HEAD.size)
        if len(head) == _HEAD.size:
            magic, count, logged = _HEAD.unpack(head)
            if magic != _MAGIC or (count, logged) != (n, check):
                raise CorruptStore(
                    "the unfinished run was made with other settings, data or model; "
                    "start again with --force, or restore them"
                )
            body = self._file.read(8 * n)
            if len(body) == 8 * n:
                return np.frombuffer(body, dtype="<f8").astype(np.float64)
        # The end, or a record that a kill cut short: go on from here.
        self._file.seek(start)
        self._file.truncate()
        self._replaying = False
        return None

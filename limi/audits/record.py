"""The record of an exploration: `explore.jsonl` in a run folder, one line per question.

Every question that somebody asked of the model stands there with what it was answered, in the
table's own values, so that it can be read, and repeated. Bookmarks are lines like the others.
"""

from __future__ import annotations

import io
import json
import math
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.errors import CorruptStore
from limi.system import writing
from limi.system.reading import is_file
from limi.system.shown import spell_json
from limi.table.schema import Schema

__all__ = ["RECORD", "Bookmark", "Record", "cells_of", "read_bookmarks", "read_entries", "row_of"]

RECORD = "explore.jsonl"
FORMAT = 1

Making: TypeAlias = Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Any]]
"""A line from those before it."""

_MOST_BYTES = 1 << 28
_MOST_NOTE = 2_000  # characters
_PATIENCE = 50  # tries for the lock of another program that writes a line


@dataclass(frozen=True)
class Bookmark:
    """A person whom somebody kept, with a note."""

    number: int
    note: str
    cells: tuple[tuple[str, str], ...]
    decision: str
    figure: str
    partner: tuple[tuple[str, str, str], ...]  # column, the person's value, the partner's
    partner_decision: str
    partner_figure: str
    flips: bool
    changed: tuple[tuple[str, str, str], ...] = ()  # column, what it was at the start, and now
    at: str = ""


class Record:
    """A record that grows; without a place it is kept in memory alone.

    Several programs may write one: each line is written under the system's lock, by a program that
    has read what the others wrote before.
    """

    def __init__(self, path: Path | None, clock: Callable[[], str]) -> None:
        self.path, self._clock = path, clock
        self.entries: list[dict[str, Any]] = []
        self._end = 0  # bytes of the file that are known
        self._lock = threading.RLock()  # answers come from several threads, and numbers are single
        if path is not None:
            writing.place(path)
            self.refresh()

    def add(self, entry: Mapping[str, Any] | Making) -> dict[str, Any]:
        """Write one line, whole or not at all; FailedWrite where the system cannot.

        A line that depends on the others is made by a function of them, while nobody else writes.
        """
        with self._lock, self._alone() as file:
            told = entry(self.entries) if callable(entry) else entry
            number = 1 + max((known.get("number", 0) for known in self.entries), default=0)
            whole = {"format": FORMAT, "number": number, "at": self._clock(), **told}
            line = spell_json(json.dumps(_plain(whole), ensure_ascii=False, allow_nan=False))
            if file is not None:
                self._append(file, f"{line}\n".encode("utf-8", "backslashreplace"))
            added: dict[str, Any] = json.loads(line)
            self.entries.append(added)
        return added

    def refresh(self) -> None:
        """Read what other programs have written; CorruptStore where it is not limi's."""
        with self._lock:
            if self.path is None or not is_file(self.path):
                return
            size = self.path.stat().st_size
            if size < self._end:  # somebody wrote another file in its place
                self.entries.clear()
                self._end = 0
            if size > self._end:
                fresh = _read_lines(self.path, self._end)
                self.entries += _parse(fresh, self.path, 1 + len(self.entries))
                self._end += len(fresh)

    @contextmanager
    def _alone(self) -> Iterator[io.FileIO | None]:
        """A block in which no other program writes, and all that they wrote is known."""
        if self.path is None:
            yield None
            return
        try:
            with self._wait() as file:
                self.refresh()
                yield file
        except OSError as error:
            raise writing.refusal(self.path, error, "name another --record FILE") from None

    def _wait(self) -> io.FileIO:
        assert self.path is not None
        for _ in range(_PATIENCE):
            try:
                return writing.lock(self.path)
            except writing.Held:
                time.sleep(0.02)
        raise TimeoutError("another program keeps it locked")

    def _append(self, file: io.FileIO, line: bytes) -> None:
        os.ftruncate(file.fileno(), self._end)  # without what is not a whole line
        file.seek(max(self._end - 1, 0))
        if file.read(1) not in (b"\n", b""):  # an editor may have left out the last one
            line = b"\n" + line
        writing.append(file.fileno(), line)
        self._end += len(line)

    @property
    def bookmarks(self) -> list[Bookmark]:
        """Those that nobody has removed."""
        return _bookmarks(self.entries)


def read_entries(path: Path) -> list[dict[str, Any]]:
    """The lines of a record; CorruptStore where one is not limi's."""
    return _parse(_read_lines(path, 0), path, 1)


def _read_lines(path: Path, start: int) -> bytes:
    """The whole lines behind so many bytes; a killed program may have left a part of one."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise CorruptStore(f"{str(path)!r} is too large to be a limi record")
        with path.open("rb") as file:
            file.seek(start)
            text = file.read()
    except (OSError, ValueError) as error:
        raise CorruptStore(f"{str(path)!r} cannot be read: {error}") from None
    end = text.rfind(b"\n") + 1
    return text if _is_json(text[end:]) else text[:end]


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(text: bytes, path: Path, first: int) -> list[dict[str, Any]]:
    entries = []
    for number, line in enumerate(text.split(b"\n"), first):
        if not line.strip():
            continue
        try:
            entry = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, dict) or not isinstance(entry.get("number"), int):
            raise CorruptStore(f"line {number} of {str(path)!r} is not one that limi explore wrote")
        if not isinstance(entry.get("format"), int) or entry["format"] > FORMAT:
            raise CorruptStore(
                f"line {number} of {str(path)!r} was written by a newer limi; upgrade limi"
            )
        entries.append(entry)
    return entries


def read_bookmarks(folder: str | Path) -> list[Bookmark]:
    """The bookmarks of a run folder; none where nobody explored it."""
    path = Path(folder) / RECORD
    if not is_file(path):
        return []
    try:
        return _bookmarks(read_entries(path))
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptStore(f"a bookmark in {str(path)!r} is damaged: {error}") from None


def _bookmarks(entries: Sequence[Mapping[str, Any]]) -> list[Bookmark]:
    gone = {entry["forget"] for entry in entries if "forget" in entry}
    return [
        Bookmark(
            int(entry["number"]),
            str(entry["bookmark"])[:_MOST_NOTE],
            tuple((str(name), str(value)) for name, value in entry["shown"]),
            str(entry["decision"]),
            str(entry["figure"]),
            tuple((str(a), str(b), str(c)) for a, b, c in entry["partner"]),
            str(entry["partner_decision"]),
            str(entry["partner_figure"]),
            bool(entry["flips"]),
            tuple((str(a), str(b), str(c)) for a, b, c in entry["changed"]),
            str(entry["at"]),
        )
        for entry in entries
        if "bookmark" in entry and entry["number"] not in gone
    ]


def cells_of(
    schema: Schema, row: NDArray[np.float64], hidden: Collection[str] = ()
) -> dict[str, Any]:
    """A row in the table's own values; what is missing is None, and what is hidden is left out."""
    cells: dict[str, Any] = {}
    for column, code in zip(schema.columns, row.tolist(), strict=True):
        if column.name in hidden:
            continue
        if math.isnan(code):
            cells[column.name] = None
        else:
            cells[column.name] = code if column.kind == "numerical" else column.levels[int(code)]
    return cells


def row_of(schema: Schema, cells: Mapping[str, Any]) -> NDArray[np.float64]:
    """The row that cells stand for; CorruptStore where they are not a row of the schema."""
    absent = [name for name in schema.names if name not in cells]
    if absent:
        raise CorruptStore(f"a person of the record has no {absent[0]!r}, or it is hidden")
    row = np.empty(len(schema))
    for position, column in enumerate(schema.columns):
        value = cells[column.name]
        row[position] = math.nan if value is None else column.code(value)
    return row


def _plain(value: Any) -> Any:
    """For JSON: what is not a finite number is None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

"""The record of an exploration: `explore.jsonl` in a run folder, one line per question.

Every question that somebody asked of the model stands there with what it was answered, in the
table's own values, so that it can be read, and repeated. Bookmarks are lines like the others.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """A record that grows; without a place it is kept in memory alone."""

    def __init__(self, path: Path | None, clock: Callable[[], str]) -> None:
        self.path, self._clock = path, clock
        self.entries: list[dict[str, Any]] = []
        self._lock = threading.Lock()  # answers come from several threads, and numbers are single
        if path is not None:
            writing.place(path)
            if is_file(path):
                self.entries = read_entries(path)

    def add(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Write one line, whole or not at all; FailedWrite where the system cannot."""
        with self._lock:
            whole = {"format": FORMAT, "number": self._next, "at": self._clock(), **entry}
            line = spell_json(json.dumps(_plain(whole), ensure_ascii=False, allow_nan=False))
            if self.path is not None:
                self._append(f"{line}\n".encode("utf-8", "backslashreplace"))
            added: dict[str, Any] = json.loads(line)
            self.entries.append(added)
        return added

    @property
    def _next(self) -> int:
        return 1 + max((entry.get("number", 0) for entry in self.entries), default=0)

    def _append(self, line: bytes) -> None:
        import time

        assert self.path is not None
        for _ in range(_PATIENCE):
            try:
                with writing.lock(self.path) as file:
                    writing.append(file.fileno(), line)
                return
            except writing.Held:
                time.sleep(0.02)
            except OSError as error:
                raise writing.refusal(self.path, error, "name another --record FILE") from None
        raise writing.refusal(
            self.path, TimeoutError("another program keeps it locked"), "name another --record FILE"
        )

    @property
    def bookmarks(self) -> list[Bookmark]:
        """Those that nobody has removed."""
        return _bookmarks(self.entries)


def read_entries(path: Path) -> list[dict[str, Any]]:
    """The lines of a record; CorruptStore where one is not limi's."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise CorruptStore(f"{str(path)!r} is larger than a record of limi ever gets")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise CorruptStore(f"{str(path)!r} cannot be read: {error}") from None
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
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

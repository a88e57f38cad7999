"""Every answer that was given, so that no row is paid for twice.

A cache file is a SQLite database in which each request stands with the keys of the rows that it
sent: before it is sent without answers, afterwards with them. So whatever moment a kill picks,
the rows that were sent are counted, and those without an answer are known as asked before. The
answers are kept as the server gave them, because what they mean is the run's to say. No row is
kept, only its key (`limi.remote.cells`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from limi.errors import CorruptStore, FailedWrite, InvalidInput
from limi.remote.cells import Keys, names
from limi.system import writing
from limi.system.reading import regular
from limi.types import Index

__all__ = ["Memory"]

_APPLICATION = 0x4C494D49  # "LIMI", by which SQLite tells whose file it is
_FORMAT = 1
_PATIENCE = 20.0  # seconds that another program may keep the file locked
_MAGIC = b"SQLite format 3\x00"
_TABLES = """
CREATE TABLE requests (
    id INTEGER PRIMARY KEY, model TEXT NOT NULL, run TEXT NOT NULL, keys BLOB NOT NULL,
    new INTEGER NOT NULL, answers TEXT);
CREATE INDEX by_model ON requests (model);
CREATE INDEX by_run ON requests (run);
CREATE TABLE facts (model TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (model, name)) WITHOUT ROWID;
"""


class Memory:
    """Answers of one model by the keys of their rows, in this process and in a file."""

    def __init__(
        self, model: str, path: str | Path | None = None, *, run: str = "", resume: bool = False
    ) -> None:
        self.model, self.run = model, run
        self.path = None if path is None else writing.place(path)
        self._place_of: dict[bytes, int] = {}
        self._answers: list[Any] = []
        self._unanswered: set[bytes] = set()  # sent once, and nothing came back
        self.new = 0  # rows that this run has sent, each counted once
        self._facts: dict[str, str] = {}
        self._file: sqlite3.Connection | None = None
        if self.path is not None:
            with self._said("read"):
                self._load(_open(self.path), resume)

    def find(self, keys: Keys) -> Index:
        """Where the answer to each row is, -1 where there is none."""
        found = map(self._place_of.get, names(keys), repeat(-1))
        return np.fromiter(found, dtype=np.intp, count=len(keys))

    def answers(self, places: Sequence[int]) -> list[Any]:
        """The answers at these places."""
        return list(map(self._answers.__getitem__, places))

    def count_new(self, keys: Keys) -> int:
        """How many of these rows were never sent."""
        return len(keys) - len(self._unanswered.intersection(names(keys)))

    def begin(self, keys: Keys) -> int:
        """Note that rows are about to be sent; the number by which their answers are noted."""
        named = names(keys)
        new = len(named) - len(self._unanswered.intersection(named))
        self.new += new
        self._unanswered.update(named)
        if self.path is None:
            return 0
        with self._writing() as file:
            line = file.execute(
                "INSERT INTO requests (model, run, keys, new) VALUES (?, ?, ?, ?)",
                (self.model, self.run, b"".join(named), new),
            )
        return line.lastrowid or 0

    def end(self, number: int, keys: Keys, answers: Sequence[Any]) -> None:
        """Keep the answers to rows."""
        named = names(keys)
        start = len(self._answers)
        self._place_of.update(zip(named, range(start, start + len(named)), strict=True))
        self._answers.extend(answers)
        self._unanswered.difference_update(named)
        if self.path is not None:
            with self._writing() as file:
                file.execute(
                    "UPDATE requests SET answers = ? WHERE id = ?", (json.dumps(answers), number)
                )

    def fact(self, name: str) -> str | None:
        """What is known of the model beside its answers."""
        return self._facts.get(name)

    def keep_fact(self, name: str, value: str) -> None:
        """Keep something that the server said of the model."""
        self._facts[name] = value
        if self.path is not None:
            with self._writing() as file:
                file.execute(
                    "INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (self.model, name, value)
                )

    def close(self) -> None:
        """Let go of the file, until something is to be written again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    def _load(self, file: sqlite3.Connection, resume: bool) -> None:
        self._file = file
        self._facts = dict(
            file.execute("SELECT name, value FROM facts WHERE model = ?", (self.model,))
        )
        if not resume:
            # A run that starts anew counts anew; what was answered before stays known.
            with file:
                file.execute("UPDATE requests SET run = '' WHERE run = ?", (self.run,))
        lines = file.execute(
            "SELECT run, keys, new, answers FROM requests WHERE model = ? ORDER BY id",
            (self.model,),
        )
        for run, joined, new, text in lines:
            named = np.frombuffer(joined[: len(joined) // 16 * 16], dtype="V16").tolist()
            mine = self.run and run == self.run
            self.new += new if mine else 0
            if text is None:
                if mine:
                    self._unanswered.update(named)
                continue
            answers = json.loads(text)
            if len(joined) % 16 or not isinstance(answers, list) or len(answers) != len(named):
                raise CorruptStore(
                    f"the cache {str(self.path)!r} is damaged: a request of {len(named)} rows does "
                    "not have as many answers; name another file with --cache, or remove it"
                )
            start = len(self._answers)
            self._place_of.update(zip(named, range(start, start + len(named)), strict=True))
            self._answers.extend(answers)
            self._unanswered.difference_update(named)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """The file, whose changes hold together or not at all."""
        assert self.path is not None
        with self._said("written"):
            if self._file is None:
                self._file = _open(self.path)
            with self._file as file:
                yield file

    @contextmanager
    def _said(self, what: str) -> Iterator[None]:
        """A sentence instead of what SQLite says."""
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            self.close()
            if isinstance(error, (InvalidInput, CorruptStore)):
                raise
            name = repr(str(self.path))
            if "locked" in str(error):
                raise CorruptStore(
                    f"the cache {name} is locked by another program; wait for it, or name another "
                    "file with --cache"
                ) from None
            if isinstance(error, sqlite3.OperationalError) and what == "written":
                raise FailedWrite(
                    f"the cache {name} cannot be written: {error}; what was answered before is kept"
                ) from None
            raise CorruptStore(
                f"the cache {name} cannot be {what}: {error}; name another file with --cache, or "
                "remove it"
            ) from None


def _open(path: Path) -> sqlite3.Connection:
    new = not path.exists() or not path.stat().st_size
    if not new:
        with regular(path, "a file that limi keeps answers in").open("rb") as there:
            if there.read(len(_MAGIC)) != _MAGIC:
                raise _strange(path)
    file = sqlite3.connect(path, timeout=_PATIENCE)
    try:
        if new:
            file.execute("PRAGMA journal_mode = WAL")
            file.executescript(
                f"BEGIN IMMEDIATE; PRAGMA application_id = {_APPLICATION};"
                f"PRAGMA user_version = {_FORMAT}; {_TABLES} COMMIT;"
            )
        elif file.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise _strange(path)
        elif file.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
            raise CorruptStore(
                f"the cache {str(path)!r} was written by another version of limi; name another "
                "file with --cache"
            )
        # A commit survives a kill in any case; only the last ones may be lost with the power.
        file.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        file.close()
        raise
    return file


def _strange(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{str(path)!r} is not a cache of limi, so nothing is written into it; name another file "
        "with --cache"
    )

"""Every answer that was given, so that no row is paid for twice.

A cache file is a SQLite database in which each request stands with the keys of the rows that it
sent: before it is sent without answers, afterwards with them. So whatever moment a kill picks,
the rows that were sent are counted, and those without an answer are known as asked before. The
answers are kept as the server gave them, because what they mean is the run's to say. No row is
kept, only its key (`limi.remote.cells`), and of the model a digest of all that it is known by.
Several runs may share a file at the same time; each sees what the others were answered.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from limi.errors import CorruptStore, FailedWrite, InvalidInput, LimiError
from limi.system import writing
from limi.system.reading import regular
from limi.types import Index

__all__ = ["Memory", "remove_empty"]

_APPLICATION = 0x4C494D49  # "LIMI", by which SQLite tells whose file it is
_FORMAT = 2
_KEY = 16  # bytes
_PATIENCE = 20.0  # seconds that another program may keep the file locked
_MAGIC = b"SQLite format 3\x00"
_TABLES = """
CREATE TABLE requests (
    id INTEGER PRIMARY KEY, model TEXT NOT NULL, run TEXT NOT NULL, keys BLOB NOT NULL,
    new INTEGER NOT NULL, answers BLOB);
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
        self.model = hashlib.blake2b(model.encode(), digest_size=16).hexdigest()
        self.run = run
        self.path = None if path is None else writing.place(path)
        self._place_of: dict[bytes, int] = {}
        self._answers: list[Any] = []
        self._unanswered: set[bytes] = set()  # sent once, and nothing came back
        self.new = 0  # rows that this run has sent, each counted once
        self._facts: dict[str, str] = {}
        self._file: sqlite3.Connection | None = None
        self._closing: Callable[[], Any] = int  # closes the file, also where nobody holds us
        self._version: int | None = None  # of the file, which other programs change
        self._read: set[int] = set()  # requests of the file that need not be read again
        self._made = self.path is not None and not self.path.exists()
        if self.path is not None:
            with self._said("read"):
                self._load(self._connect(), resume)

    def find(self, named: Sequence[bytes]) -> Index:
        """Where the answer to each row is, -1 where there is none."""
        found = map(self._place_of.get, named, repeat(-1))
        return np.fromiter(found, dtype=np.intp, count=len(named))

    def answers(self, places: Sequence[int]) -> list[Any]:
        """The answers at these places."""
        return list(map(self._answers.__getitem__, places))

    def count_new(self, named: Sequence[bytes]) -> int:
        """How many of these rows were never sent."""
        if not self._unanswered:
            return len(named)
        return len(named) - len(self._unanswered.intersection(named))

    def begin(self, named: Sequence[bytes]) -> int:
        """Note that rows are about to be sent; the number by which their answers are noted."""
        new = self.count_new(named)
        self.new += new
        if self.path is None:
            return 0
        with self._writing() as file:
            line = file.execute(
                "INSERT INTO requests (model, run, keys, new) VALUES (?, ?, ?, ?)",
                (self.model, self.run, b"".join(named), new),
            )
        self._read.add(line.lastrowid or 0)
        return line.lastrowid or 0

    def lose(self, named: Sequence[bytes]) -> None:
        """Note that rows were sent and no answer will come."""
        self._unanswered.update(named)

    def end(self, number: int, named: Sequence[bytes], answers: Sequence[Any]) -> int:
        """Keep the answers to rows; the place of the first of them, behind which the others are."""
        start = self._keep(named, answers)
        if self.path is not None:
            with self._writing() as file:
                file.execute(
                    "UPDATE requests SET answers = ? WHERE id = ?", (_pack(answers), number)
                )
        return start

    def refresh(self) -> bool:
        """Read what other programs were answered meanwhile; True where there is something."""
        if self._file is None:
            return False
        with self._said("read"):
            (version,) = self._file.execute("PRAGMA data_version").fetchone()
            if version == self._version:
                return False
            self._version = version
            known = len(self._answers)
            self._read_answers(self._file)
            return len(self._answers) > known

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
        """Let go of the file, until something is to be written again.

        One that was made here and holds nothing is taken away, as after a wrong address.
        """
        if self._file is not None:
            self._closing()
            self._file = None
            if self._made and self.path is not None and not (self._answers or self._facts):
                remove_empty(self.path)

    def _connect(self) -> sqlite3.Connection:
        assert self.path is not None
        self._file = file = _open(self.path)
        self._closing = weakref.finalize(self, file.close)
        return file

    def _load(self, file: sqlite3.Connection, resume: bool) -> None:
        self._facts = dict(
            file.execute("SELECT name, value FROM facts WHERE model = ?", (self.model,))
        )
        if self.run and resume:
            mine = "FROM requests WHERE model = ? AND run = ?"
            which = (self.model, self.run)
            (self.new,) = file.execute(f"SELECT coalesce(sum(new), 0) {mine}", which).fetchone()
            for (joined,) in file.execute(f"SELECT keys {mine} AND answers IS NULL", which):
                self._unanswered.update(self._split(joined))
        elif self.run:
            # A run that starts again counts again; what was answered before stays known.
            with file:
                file.execute("UPDATE requests SET run = '' WHERE run = ?", (self.run,))
        (self._version,) = file.execute("PRAGMA data_version").fetchone()
        self._read_answers(file)

    def _read_answers(self, file: sqlite3.Connection) -> None:
        """Read the requests that have answers and were not read yet."""
        lines = file.execute(
            "SELECT id, keys, answers FROM requests "
            "WHERE model = ? AND answers IS NOT NULL ORDER BY id",
            (self.model,),
        )
        for number, joined, packed in lines:
            if number in self._read:
                continue
            named, answers = self._split(joined), _unpack(packed)
            if len(answers) != len(named):
                raise CorruptStore(
                    f"the cache {str(self.path)!r} is damaged: a request of {len(named)} rows has "
                    "a different number of answers; name another file with --cache, or remove it"
                )
            self._keep(named, answers)
            self._read.add(number)

    def _keep(self, named: Sequence[bytes], answers: Sequence[Any]) -> int:
        start = len(self._answers)
        self._place_of.update(zip(named, range(start, start + len(named)), strict=True))
        self._answers.extend(answers)
        if self._unanswered:
            self._unanswered.difference_update(named)
        return start

    def _split(self, joined: Any) -> list[bytes]:
        if not isinstance(joined, bytes) or len(joined) % _KEY:
            raise CorruptStore(
                f"the cache {str(self.path)!r} is damaged: the keys of a request are cut off; name "
                "another file with --cache, or remove it"
            )
        named: list[bytes] = np.frombuffer(joined, dtype=f"V{_KEY}").tolist()
        return named

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """The file, whose changes hold together or not at all."""
        with self._said("written"), self._file or self._connect() as file:
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
                    f"the cache {name} cannot be written: {error}; the answers so far are kept"
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
    # Only one thread asks at a time, but it need not be the same one.
    file = sqlite3.connect(path, timeout=_PATIENCE, check_same_thread=False)
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


def remove_empty(path: Path) -> None:
    """Remove a cache that holds no answer, where a run ended before it got one."""
    with suppress(sqlite3.Error, OSError, LimiError):
        file = _open(path)
        try:
            kept = any(
                file.execute(f"SELECT 1 FROM {what} LIMIT 1").fetchone()
                for what in ("requests WHERE answers IS NOT NULL", "facts")
            )
        finally:
            file.close()
        if not kept:
            for ending in ("", "-wal", "-shm"):
                path.with_name(path.name + ending).unlink(missing_ok=True)


def _pack(answers: Sequence[Any]) -> bytes | str:
    """Numbers by their bits, whatever else as JSON."""
    if set(map(type, answers)) == {float}:
        return np.array(answers, dtype="<f8").tobytes()
    return json.dumps(answers)


def _unpack(packed: Any) -> list[Any]:
    """What was packed; ValueError where it cannot have been."""
    if isinstance(packed, bytes):
        numbers: list[Any] = np.frombuffer(packed, dtype="<f8").tolist()
        return numbers
    answers = json.loads(packed) if isinstance(packed, str) else None
    if not isinstance(answers, list):
        raise ValueError("answers that are not a list")
    return answers


def _strange(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{str(path)!r} is not a limi cache, so limi does not write to it; name another file with "
        "--cache"
    )

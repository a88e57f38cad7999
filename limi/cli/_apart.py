"""What a command writes, kept apart from what it reads.

Every option that names a file says so in its annotation: `Reads` or `Writes`. From these marks
`keep_apart` sees, before a command runs, that nothing it writes is something it reads. A test
refuses an option with a path that has neither mark.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, get_args, get_type_hints

__all__ = [
    "HEADERS",
    "MODEL",
    "RUN",
    "RUN_FILES",
    "TABLE",
    "TRAINER",
    "Reads",
    "Writes",
    "keep_apart",
    "run_files",
    "table_files",
]

Named: TypeAlias = Iterable[tuple[str, str | Path]]
"""Places, each with what it is or with the option that names it."""


@dataclass(frozen=True)
class Reads:
    """Marks an option that names something to read, and says what that is.

    `find` turns a value into the files behind it, where the value is not a path itself.
    """

    what: str
    find: Callable[[Any], Named] | None = None

    def places(self, value: Any) -> Named:
        """The files and folders that a value names; a name of something else is none."""
        from limi.errors import LimiError
        from limi.system.reading import is_file

        if value is None:
            return
        with suppress(LimiError):  # what cannot be read is reported where it is used
            if self.find is not None:
                yield from self.find(value)
            elif is_file(value):
                yield self.what, value


@dataclass(frozen=True)
class Writes:
    """Marks an option that names a file or folder to write.

    `find` turns a value into all the places that it means, where that is not the value alone.
    """

    find: Callable[[Any], Named] | None = None

    def places(self, option: str, value: Any) -> Named:
        """The places to write, each by the option that names it."""
        if self.find is not None:
            yield from self.find(value)
        elif value is not None:
            yield option, value


def table_files(table: str) -> Named:
    """What a table is read from; nothing for a query or the name of a shipped table."""
    from limi import data
    from limi.system.reading import is_file
    from limi.table.parts import find_parts, is_many
    from limi.table.sources import file_of

    path = file_of(table)
    if path is None or (table in data.names() and not is_file(path)):
        return
    yield "the table", path
    if is_many(path) and not path.is_dir():
        yield from (("the table", part) for part in find_parts(path).files)


def _headers(texts: list[str]) -> Named:
    """Files that hold the values of headers, written `NAME: @FILE`."""
    values = (text.partition(":")[2].strip() for text in texts)
    yield from (("a header", value[1:]) for value in values if value.startswith("@"))


def _trainer(place: str) -> Named:
    yield "the --fit", place.rpartition(":")[0]


def _model_files(uri: str) -> Named:
    from limi.models import files

    return [("the model", path) for path in files(uri)]


def _run(folder: Path) -> Named:
    yield "the run", folder
    yield from _behind(folder)


def run_files(folder: str | Path) -> Named:
    """The files of a run, with the table and the model that it was made with."""
    from limi.audits.record import RECORD

    names = ("summary.json", "manifest.json", "schema.toml", "findings.parquet", "metrics.json")
    yield from (("part of the run", Path(folder) / name) for name in (*names, RECORD))
    yield from ((what, path) for what, path in _behind(folder) if what != "the run")


def _behind(folder: str | Path) -> Named:
    """The table and the model that a run was made with."""
    from limi.audits.reopen import Run

    return Run.at(folder).inputs()


TABLE = Reads("the table", table_files)
"""Marks a table: a file, a folder or pattern of files, a database, or a name of a shipped one."""

HEADERS = Reads("a header", _headers)
"""Marks headers of requests, whose values may stand in files."""

TRAINER = Reads("the --fit", _trainer)
"""Marks a function, as FILE.py:NAME."""

MODEL = Reads("the model", _model_files)
"""Marks a model, as KIND:PLACE."""

RUN = Reads("the run", _run)
"""Marks a run folder, into which nothing is written."""

RUN_FILES = Reads("the run", run_files)
"""Marks a run folder that may get another file, beside those of the run."""


def keep_apart(command: Callable[..., None]) -> Callable[..., None]:
    """The command, refused where a place to write is one that it reads, is in or around one."""
    marks = dict(_marks(command))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        _require_apart(marks, given)
        command(**given)

    return run


def _marks(command: Callable[..., None]) -> Iterator[tuple[str, Reads | Writes]]:
    """The marks of a command's options, by their names."""
    for name, hint in get_type_hints(command, include_extras=True).items():
        for said in get_args(hint)[1:]:
            if isinstance(said, (Reads, Writes)):
                yield name, said


def _require_apart(marks: dict[str, Reads | Writes], given: dict[str, Any]) -> None:
    from limi.system import writing

    outputs: list[tuple[str, str | Path]] = []
    inputs: list[tuple[str, str | Path]] = []
    for name, mark in marks.items():
        if isinstance(mark, Reads):
            inputs += mark.places(given.get(name))
        else:
            outputs += mark.places(f"--{name.replace('_', '-')}", given.get(name))
    writing.require_apart(outputs, inputs)

"""A table in parts: one file or several, read batch by batch with the types of the whole.

A folder is one table, and so is a pattern (`people-*.parquet`). Folders named `column=value` inside
it are a column, as pandas has it.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from limi.errors import BadTable, InvalidInput, spell
from limi.system.reading import regular
from limi.table.frames import check_names
from limi.table.text_files import read_text_table

__all__ = ["PARQUET", "TEXT", "Batches", "Parts", "find_parts", "is_many"]

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".txt")
_AT_ONCE = 1 << 16  # rows
_CELL = 5  # bytes of a cell of text, with its separator
_ZIPPED = 4  # times as long once it is unpacked


class Batches(Protocol):
    """Tables of Arrow of one type, one after the other, as often as they are wanted."""

    @property
    def notes(self) -> Sequence[str]:
        """What there is to say of how they were read."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


def is_many(place: str | Path) -> bool:
    """Does a path stand for several files: a folder, or a pattern that is not itself a file?"""
    try:
        if Path(place).is_dir():
            return True
        return glob.has_magic(str(place)) and not os.path.lexists(place)
    except (OSError, ValueError):  # a name that no file can have
        return False


@dataclass(frozen=True)
class Parts:
    """The files of a table, in the order of their names."""

    files: tuple[Path, ...]
    values: tuple[tuple[tuple[str, str], ...], ...]  # of each file: its folders `column=value`

    @property
    def is_text(self) -> bool:
        """Are they text?"""
        return self.files[0].name.lower().endswith(TEXT)

    @cached_property
    def n_cells(self) -> int:
        """How many cells there are; of text, about so many."""
        if self.is_text:
            sizes = (
                path.stat().st_size * (_ZIPPED if path.suffix.lower() == ".gz" else 1)
                for path in self.files
            )
            return sum(sizes) // _CELL
        return sum(rows * columns for rows, columns in map(_shape, self.files))

    @cached_property
    def sha256(self) -> str:
        """Of all files, one after the other, each with its folders."""
        digest = hashlib.sha256()
        for path, values in zip(self.files, self.values, strict=True):
            with path.open("rb") as file:
                sums = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"{sums}{values}\n".encode())
        return digest.hexdigest()

    def open(self) -> Batches:
        """The rows, with the types that they have together."""
        if self.is_text:
            return _TextParts(*self.read_text())
        return _ParquetParts.of(self.files, self.values)

    def read_text(self) -> tuple[Any, list[str]]:
        """The pandas frame of files of text, and what there is to say."""
        return read_text_table(self.files, self.values)


def find_parts(place: str | Path) -> Parts:
    """The files that a path stands for; InvalidInput where it stands for none."""
    path = Path(place)
    if not is_many(place):
        return Parts((regular(place, "a CSV or Parquet file"),), ((),))
    if path.is_dir():
        found = sorted(_walk(path))
    else:
        found = sorted(Path(name) for name in glob.glob(str(place), recursive=True))
        found = [part for part in found if not part.is_dir()]
    known = [part for part in found if part.name.lower().endswith((*PARQUET, *TEXT))]
    if not known:
        raise InvalidInput(
            f"{str(place)[:160]!r} holds no table; give a CSV or Parquet file, or a folder or a "
            "pattern of such files"
        )
    families = {part.name.lower().endswith(TEXT) for part in known}
    if len(families) > 1:
        raise InvalidInput(
            f"{str(place)[:160]!r} holds both text and Parquet files; keep only one kind"
        )
    files = tuple(regular(part, "a CSV or Parquet file") for part in known)
    n_fixed = len(path.parts) if path.is_dir() else _count_fixed(path)
    values = tuple(_folder_values(part.parts[n_fixed:-1]) for part in files)
    keys = {tuple(name for name, _ in pairs) for pairs in values}
    if len(keys) > 1:
        raise BadTable(
            f"the files of {str(place)[:160]!r} are in folders with different columns: "
            f"{spell(' / '.join(names) or 'none' for names in sorted(keys))}"
        )
    return Parts(files, values)


def _walk(folder: Path) -> Iterator[Path]:
    """Files in a folder and below, without those that writers hide (`_SUCCESS`, `.crc`)."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        yield from (Path(here) / name for name in names if not name.startswith((".", "_")))


def _count_fixed(pattern: Path) -> int:
    """How many parts of a path come before the first that is a pattern."""
    return next(n for n, part in enumerate(pattern.parts) if glob.has_magic(part))


def _folder_values(folders: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = (part.partition("=") for part in folders)
    return tuple((name, unquote(value)) for name, equals, value in pairs if equals and name)


def _shape(path: Path) -> tuple[int, int]:
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        head = pq.ParquetFile(file).metadata
        return int(head.num_rows), int(head.num_columns)


@dataclass(frozen=True)
class _TextParts:
    """Text of one table, which pandas reads as a whole: types depend on all cells of a column."""

    frame: Any
    notes: list[str]

    def __iter__(self) -> Iterator[Any]:
        import pyarrow as pa

        table = pa.Table.from_pandas(self.frame, preserve_index=False)
        for batch in table.replace_schema_metadata(None).to_batches(_AT_ONCE):
            yield pa.Table.from_batches([batch])


@dataclass(frozen=True)
class _ParquetParts:
    """Parquet files of one table."""

    files: tuple[Path, ...]
    values: tuple[tuple[tuple[str, str], ...], ...]
    schema: Any  # of Arrow, of all files together
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(files: Sequence[Path], values: Sequence[tuple[tuple[str, str], ...]]) -> _ParquetParts:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schemas = []
        for path in files:
            with path.open("rb") as file:
                schemas.append(pq.read_schema(file))
                check_names(schemas[-1].names)
        for path, schema in zip(files, schemas, strict=True):
            if set(schema.names) != set(schemas[0].names):
                odd = sorted(set(schema.names) ^ set(schemas[0].names))
                raise BadTable(
                    f"the files {files[0].name!r} and {path.name!r} belong to one table but have "
                    f"different columns; not in both: {spell(map(repr, odd))}"
                )
        try:
            schema = pa.unify_schemas(schemas, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            said = str(error).partition("\n")[0]
            raise BadTable(
                f"the files of the table store a column in types that do not match: {said}"
            ) from None
        schema = schema.with_metadata(schemas[0].metadata)
        for name, kind in _folder_types(values).items():
            if name in schema.names:
                raise BadTable(f"{name!r} is both a column of the files and one of their folders")
            schema = schema.append(pa.field(name, kind))
        return _ParquetParts(tuple(files), tuple(values), schema)

    def __iter__(self) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        for path, values in zip(self.files, self.values, strict=True):
            with path.open("rb") as file:
                opened = pq.ParquetFile(file)
                for batch in opened.iter_batches(_AT_ONCE, use_threads=False):
                    table = pa.Table.from_batches([batch])
                    for name, value in values:
                        kind = self.schema.field(name).type
                        cell = pa.scalar(value).cast(kind.value_type)
                        cells = pa.repeat(cell, len(table)).dictionary_encode()
                        table = table.append_column(name, cells.cast(kind))
                    yield table.select(self.schema.names).cast(self.schema)


def _folder_types(values: Sequence[tuple[tuple[str, str], ...]]) -> dict[str, Any]:
    """Types of the columns that folders are: categories of whole numbers, or of text."""
    import pyarrow as pa

    known: dict[str, list[str]] = {}
    for pairs in values:
        for name, value in pairs:
            known.setdefault(name, []).append(value)
    return {
        name: pa.dictionary(
            pa.int32(), pa.int32() if all(map(_is_whole, cells)) else pa.string(), ordered=False
        )
        for name, cells in known.items()
    }


def _is_whole(text: str) -> bool:
    try:
        return -(2**31) <= int(text) < 2**31 and str(int(text)) == text
    except ValueError:
        return False

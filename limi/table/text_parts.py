"""Text tables that do not fit into memory: the types that pandas would give the whole, in parts.

pandas decides on a column's type when it has seen all its cells. So files are read twice: first to
see what is in each column, then with the types that this makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from limi.errors import BadTable, spell
from limi.table import text_files as text

__all__ = ["TextParts"]


@dataclass(frozen=True)
class _File:
    """A file of text, and how it is written."""

    path: Path
    encoding: str
    separator: str
    header: tuple[str, ...]

    def frames(self, rows: int, **more: Any) -> Iterator[Any]:
        """Frames of so many rows each, as pandas types them, or as they are told to be."""
        import pandas as pd

        with pd.read_csv(
            self.path,
            sep=self.separator,
            encoding=self.encoding,
            low_memory=False,
            chunksize=rows,
            **text.as_written(pd.__version__),
            **more,
        ) as reader:
            for frame in reader:
                if not isinstance(frame.index, pd.RangeIndex):
                    raise BadTable(
                        f"{str(self.path)!r} has rows with more cells than the header has names; "
                        "do the lines end with a separator, or is a name missing?"
                    )
                yield frame


@dataclass
class _Seen:
    """What was seen in a column."""

    kinds: set[str] = field(default_factory=set)  # of i, u, f, b, O
    gaps: bool = False

    def look(self, cells: Any) -> None:
        gaps = cells.isna()
        self.gaps |= bool(gaps.any())
        if gaps.all():
            return  # pandas calls a column without a cell one of numbers
        kind = getattr(cells.dtype, "kind", "O")
        if kind not in "iufb":  # truth values with gaps come as objects
            known = cells[~gaps]
            kind = "b" if all(isinstance(cell, bool) for cell in known.unique()) else "O"
        self.kinds.add(kind)

    @property
    def dtype(self) -> str:
        """What pandas would make of all of it."""
        if not self.kinds:
            return "float64"
        if self.kinds == {"b"}:
            return "boolean" if self.gaps else "bool"
        if "O" in self.kinds or "b" in self.kinds:
            return "str"
        if self.kinds == {"i"} and not self.gaps:
            return "int64"
        return "uint64" if self.kinds == {"u"} and not self.gaps else "float64"


@dataclass(frozen=True)
class TextParts:
    """Files of text of one table."""

    files: tuple[_File, ...]
    values: tuple[tuple[tuple[str, str], ...], ...]
    rows: int  # at once
    dtypes: dict[str, str]  # by column, as pandas takes them
    marks: dict[str, tuple[str, str]]  # of numbers with commas: what groups digits, and the point
    notes: tuple[str, ...]

    @staticmethod
    def of(
        files: Sequence[Path], values: Sequence[tuple[tuple[str, str], ...]], rows: int
    ) -> TextParts:
        """Look at all cells, and settle on the types."""
        seen: dict[str, _Seen] = {}
        opened: list[_File] = []
        notes: list[str] = []
        counts = True
        for path in files:
            file, found, counted, told = _look_through(path, rows)
            opened.append(file)
            counts &= counted
            notes += [note for note in told if note not in notes]
            if seen and list(found) != list(seen):
                odd = [repr(name) for name in [*found, *seen] if (name in found) != (name in seen)]
                raise BadTable(
                    f"the files {files[0].name!r} and {path.name!r} belong to one table but "
                    "have different columns"
                    f"{'; not in both: ' + spell(odd) if odd else ', or in a different order'}"
                )
            for name, one in found.items():
                both = seen.setdefault(name, _Seen())
                both.kinds |= one.kinds
                both.gaps |= one.gaps
        dtypes = {name: one.dtype for name, one in seen.items()}
        if counts and len(dtypes) > 1:
            dtypes.pop(next(iter(dtypes)))
            notes.append(text.COUNTER)
        plain = TextParts(tuple(opened), tuple(values), rows, dtypes, {}, tuple(notes))
        return plain._with_numbers()

    def _with_numbers(self) -> TextParts:
        """The same where columns whose cells are numbers with commas are numbers."""
        import pandas as pd

        names = [name for name, dtype in self.dtypes.items() if dtype == "str"]
        matches = {name: text.Matches() for name in names}
        examples: dict[str, str] = {}
        for frame in self._frames(names):
            for name in [name for name in names if matches[name].possible]:
                cells = frame[name].dropna()
                matches[name].look(cells)
                if len(cells):
                    examples.setdefault(name, str(cells.iloc[0]))
            names = [name for name in names if matches[name].possible]
            if not names:
                break
        marks = text.choose_marks(matches, self.files[0].separator)
        dtypes = dict(self.dtypes)
        for frame in self._frames(list(marks)) if marks else ():
            for name, (group, point) in marks.items():
                cells = text.to_numbers(frame[name], group, point)
                whole = dtypes[name] in ("str", "int64") and pd.api.types.is_integer_dtype(cells)
                dtypes[name] = "int64" if whole else "float64"
        told = text.tell_marks(marks, examples)
        return replace(self, dtypes=dtypes, marks=marks, notes=(*self.notes, *told))

    def _frames(self, names: Sequence[str]) -> Iterator[Any]:
        """Columns as text."""
        for file in self.files if names else ():
            yield from file.frames(self.rows, usecols=list(names), dtype=str)

    def __iter__(self) -> Iterator[Any]:
        import pyarrow as pa

        kinds = {"int64": pa.int64(), "uint64": pa.uint64(), "float64": pa.float64()}
        kinds |= {"bool": pa.bool_(), "boolean": pa.bool_(), "str": pa.string()}
        schema = pa.schema([(name, kinds[dtype]) for name, dtype in self.dtypes.items()])
        typed = {name: "str" if name in self.marks else d for name, d in self.dtypes.items()}
        for file, values in zip(self.files, self.values, strict=True):
            for frame in file.frames(self.rows, usecols=list(typed), dtype=typed):
                for name, (group, point) in self.marks.items():
                    frame[name] = text.to_numbers(frame[name], group, point)
                table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
                for name, value in values:
                    cells = pa.repeat(pa.scalar(value), len(table)).dictionary_encode()
                    table = table.append_column(name, cells)
                # What pandas noted of a part is not true of the whole.
                yield table.replace_schema_metadata(None)


def _look_through(path: Path, rows: int) -> tuple[_File, dict[str, _Seen], bool, list[str]]:
    """How a file is written, what its columns hold, whether the first counts rows, and notes."""
    last: UnicodeDecodeError | None = None
    for encoding in text.encodings(path):
        try:
            header, separator = text.read_header(path, encoding)
            file = _File(path, encoding, separator, tuple(header))
            found, counts = _look_at(file, rows)
        except UnicodeDecodeError as error:
            last = error
            continue
        notes = text.tell_renamed(header, list(found))
        return file, found, counts, text.tell_encoding(encoding) + notes
    raise BadTable(f"{str(path)!r} cannot be read as a table: {last}")


def _look_at(file: _File, rows: int) -> tuple[dict[str, _Seen], bool]:
    seen: dict[str, _Seen] = {}
    counts, following, n = file.header[0] in ("", "Unnamed: 0"), -1, 0
    for frame in file.frames(rows):
        for name in frame.columns:
            seen.setdefault(str(name), _Seen()).look(frame[name])
        first = frame.iloc[:, 0].to_numpy()
        n += len(first)
        if counts and len(first):
            start = following if following >= 0 else first[0]
            counts = (
                first.dtype.kind in "iu"
                and start in ((0, 1) if following < 0 else (following,))
                and bool((first == start + np.arange(len(first))).all())
            )
            following = int(first[-1]) + 1 if counts else 0
    return seen, counts and n > 1

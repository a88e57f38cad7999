"""Text tables as they come: any encoding, separator and way to write a number.

What pandas would read by itself is left as pandas reads it, because models are mostly trained on
such frames. What it would take for text, or not read at all, is understood here and said.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from limi.errors import BadTable, spell

__all__ = ["read_text_table"]

_COUNTER = (
    "its first column has no name and counts the rows, so it was left out; give it a name if the "
    "model takes it"
)

_LONGEST_LINE = 1 << 24  # characters of a header
_SEPARATORS = ",;\t|"
_LOOKED_AT = 50  # records that show which separator it is
_PROBED = 1_000  # bytes that show whether every second one is zero; cells that show a number
_MARKS = (  # the longer one first, because it begins like the shorter one
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_GUESSED = ("cp1252", "latin-1")  # what is not UTF-8 is mostly one of these
_GROUPS_BY_COMMA = r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_DECIMAL_COMMA = r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?"


@dataclass(frozen=True)
class _File:
    """A file of text as pandas reads it, and how it is written."""

    path: Path
    encoding: str
    separator: str
    header: list[str]
    frame: Any


def read_text_table(
    paths: Sequence[Path], values: Sequence[tuple[tuple[str, str], ...]]
) -> tuple[Any, list[str]]:
    """The pandas frame of CSV or TSV files of one table, and what was not as pandas expects it.

    `values` has for each file the columns and values that its folders stand for.
    """
    files = [_open(path) for path in paths]
    for file in files[1:]:
        _require_same_columns(files[0], file)
    told = [_tell_encoding(f.encoding) + _tell_renamed(f.header, [*f.frame]) for f in files]
    notes = list(dict.fromkeys(note for some in told for note in some))
    frames = _type_alike(files)
    if all(_counts_rows(file.frame, file.header) for file in files):
        frames = [frame.iloc[:, 1:] for frame in frames]
        notes.append(_COUNTER)
    frame, numbers = _read_numbers(_join(frames), files[0].separator)
    return _add_folders(frame, [len(file.frame) for file in files], values), notes + numbers


def _open(path: Path) -> _File:
    last: UnicodeDecodeError | None = None
    for encoding in _encodings(path):
        try:
            header, separator = _read_header(path, encoding)
            return _File(path, encoding, separator, header, _read(path, encoding, separator))
        except UnicodeDecodeError as error:
            last = error
    raise BadTable(f"{str(path)!r} cannot be read as a table: {last}")


def _require_same_columns(first: _File, other: _File) -> None:
    names, others = list(first.frame), list(other.frame)
    if names != others:
        odd = [repr(name) for name in [*others, *names] if (name in names) != (name in others)]
        what = f"columns; not in both: {spell(odd)}" if odd else "columns, or in a different order"
        raise BadTable(
            f"the files {first.path.name!r} and {other.path.name!r} belong to one table but have "
            f"different {what}"
        )


def _type_alike(files: Sequence[_File]) -> list[Any]:
    """The frames of the files, typed as pandas would type all of them together.

    What is text in one file and numbers or truth values in another is text in both, as written.
    """
    kinds = [{name: _kind(file.frame[name]) for name in file.frame} for file in files]
    text = []
    for name in kinds[0]:
        seen = {kind[name] for kind in kinds}
        if len(seen) > 1 and ("text" in seen or len(seen - {""}) > 1):
            text.append(name)
    if not text:
        return [file.frame for file in files]
    asked = {"usecols": text, "dtype": str}
    again = [_read(file.path, file.encoding, file.separator, **asked) for file in files]
    return [file.frame.assign(**other) for file, other in zip(files, again, strict=True)]


def _kind(cells: Any) -> str:
    """What pandas found in a column of a file; nothing where every cell is missing."""
    known = cells.dropna()
    if not len(known):
        return ""
    if known.dtype.kind == "b" or all(isinstance(cell, bool) for cell in known.iloc[:_PROBED]):
        return "truth"
    return "number" if _is_plain(cells.dtype) else "text"


def _join(frames: Sequence[Any]) -> Any:
    import pandas as pd

    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def _add_folders(
    frame: Any, lengths: Sequence[int], values: Sequence[tuple[tuple[str, str], ...]]
) -> Any:
    """The frame with a column of categories for each name of the folders `column=value`."""
    import pandas as pd

    for place, (name, _) in enumerate(values[0]):
        cells = [pairs[place][1] for pairs in values]
        if name in frame:
            raise BadTable(f"{name!r} is both a column of the files and one of their folders")
        categories = list(dict.fromkeys(cells))
        frame = frame.assign(**{name: pd.Categorical(np.repeat(cells, lengths), categories)})
    return frame


def _tell_encoding(encoding: str) -> list[str]:
    """A sentence on an encoding that is not UTF-8."""
    if encoding in ("utf-8", "utf-8-sig"):
        return []
    return [
        f"it is not UTF-8 and was read as {encoding}; if names or cells look wrong, save it as "
        "UTF-8"
    ]


def _encodings(path: Path) -> Sequence[str]:
    """Encodings to try, likeliest first."""
    with _open_bytes(path) as file:
        start = file.read(_PROBED)
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return (encoding,)
    # Latin letters in UTF-16 without a mark: every second byte is zero.
    even, odd = start[::2].count(0), start[1::2].count(0)
    if max(even, odd) * 4 > len(start) and min(even, odd) * 40 <= len(start):
        return ("utf-16-be" if even > odd else "utf-16-le",)
    return ("utf-8", *_GUESSED)


@contextmanager
def _open_bytes(path: Path) -> Iterator[IO[bytes]]:
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rb") as file:
        yield file


def _read(path: Path, encoding: str, separator: str, **more: Any) -> Any:
    import pandas as pd

    # In one piece: read in parts, a column of mostly numbers would hold numbers and text.
    frame = pd.read_csv(
        path,
        sep=separator,
        encoding=encoding,
        low_memory=False,
        **_as_written(pd.__version__),
        **more,
    )
    if not isinstance(frame.index, pd.RangeIndex):
        raise BadTable(
            f"{str(path)!r} has rows with more cells than the header has names; do the lines end "
            "with a separator, or is a name missing?"
        )
    return frame


def _read_header(path: Path, encoding: str) -> tuple[list[str], str]:
    """The names as they stand there, and the separator."""
    with _open_bytes(path) as raw:
        file = codecs.getreader(encoding)(raw)
        first = file.readline(_LONGEST_LINE)
        if len(first) == _LONGEST_LINE:
            raise BadTable(
                f"the first line of {str(path)!r} has more than {_LONGEST_LINE:,} characters; a "
                "table begins with a line of names"
            )
        if not first.strip("\ufeff \t\r\n"):
            raise BadTable(f"{str(path)!r} is empty; a table needs a header and at least one row")
        # A name in quotes may go on in the next line.
        lines = [first, *itertools.islice(file, _LOOKED_AT)]
    if _is_binary("".join(lines), guessed=encoding in _GUESSED):
        raise BadTable(
            f"{str(path)!r} cannot be read as a table: it is not text; give a CSV file, or use the "
            "file ending that matches its format (.parquet, .feather)"
        )
    try:
        records = {mark: list(csv.reader(lines, delimiter=mark)) for mark in _SEPARATORS}
    except csv.Error as error:
        raise BadTable(f"the header of {str(path)!r} cannot be read: {error}") from None
    separator = max(_SEPARATORS, key=lambda mark: _fit(records[mark]))
    return [name.removeprefix("\ufeff") for name in records[separator][0]], separator


def _is_binary(text: str, *, guessed: bool) -> bool:
    """Does it hold what no text holds? Where the encoding was guessed, any control character."""
    if "\0" in text:
        return True
    return guessed and any(character < " " and character not in "\t\r\n" for character in text)


def _fit(records: list[list[str]]) -> tuple[float, int]:
    """How well a separator parts these records: as many cells in each, and many of them."""
    width = len(records[0])
    if width == 1:
        return 0.0, 0
    # The last may be cut.
    others = [len(record) for record in records[1:-1] or records[1:] if record]
    return sum(cells == width for cells in others) / max(len(others), 1) + 0.5, width


def _as_written(version: str) -> dict[str, Any]:
    """What makes pandas read the number that stands there, so that a table reads as it was written.

    Before 3.1 it took the number beside it now and then, unless told otherwise; since then it
    warns those who tell it.
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _tell_renamed(header: list[str], names: list[str]) -> list[str]:
    """Sentences on columns that pandas named differently from the file."""
    renamed = [
        f"{new!r}" for old, new in zip(header, names, strict=False) if old and str(old) != str(new)
    ]
    unnamed = [repr(new) for old, new in zip(header[1:], names[1:], strict=False) if not old]
    notes = []
    if renamed:
        notes.append(
            f"{len(renamed)} column names occur more than once; the later ones are called "
            f"{spell(renamed)}"
            if len(renamed) > 1
            else f"a column name occurs twice; the second one is called {renamed[0]}"
        )
    if unnamed:
        notes.append(f"columns without a name are called {spell(unnamed)}")
    return notes


def _counts_rows(frame: Any, header: list[str]) -> bool:
    """Has the first column no name, and does it only count the rows?"""
    if header[0] not in ("", "Unnamed: 0") or len(frame.columns) < 2 or len(frame) < 2:
        return False
    cells = frame.iloc[:, 0].to_numpy()
    return cells.dtype.kind in "iu" and bool((np.diff(cells) == 1).all()) and cells[0] in (0, 1)


def _read_numbers(frame: Any, separator: str) -> tuple[Any, list[str]]:
    """The frame with numbers for columns whose cells all are numbers written with commas."""
    text = frame.columns[[not _is_plain(frame[name].dtype) for name in frame.columns]]
    marks = _choose_marks({name: frame[name].dropna() for name in text}, separator)
    examples = {name: str(frame[name].dropna().iloc[0]) for name in marks}
    numbers = {name: _to_numbers(frame[name], *signs) for name, signs in marks.items()}
    return frame.assign(**numbers), _tell_marks(marks, examples)


_DECIMAL, _GROUPED = (".", ","), (",", ".")  # what groups digits, and the point


def _choose_marks(columns: dict[str, Any], separator: str) -> dict[str, tuple[str, str]]:
    """For columns of numbers with commas, what groups their digits and what is their point."""
    fits = {
        name: (_all_match(cells, _DECIMAL_COMMA), _all_match(cells, _GROUPS_BY_COMMA))
        for name, cells in columns.items()
    }
    found = {name: fit for name, fit in fits.items() if any(fit) and _has_comma(columns[name])}
    decimal = [name for name, fit in found.items() if fit == (True, False)]
    grouped = [name for name, fit in found.items() if fit == (False, True)]
    # "1,234" may be either: as in the other columns, else as the separator lets expect.
    many = decimal if bool(decimal) > bool(grouped) or separator != "," else grouped
    many.extend(name for name, fit in found.items() if all(fit))
    return dict.fromkeys(decimal, _DECIMAL) | dict.fromkeys(grouped, _GROUPED)


def _tell_marks(marks: dict[str, tuple[str, str]], examples: dict[str, str]) -> list[str]:
    """A sentence on the columns of each way to write a number."""
    notes = []
    for signs, words in ((_DECIMAL, "a decimal comma"), (_GROUPED, "commas between thousands")):
        names = [name for name, held in marks.items() if held == signs]
        if names:
            notes.append(
                f"{spell(map(repr, names))} {'are' if len(names) > 1 else 'is'} written with "
                f"{words}, as in {examples[names[0]][:40]!r}, and read as numbers"
            )
    return notes


def _is_plain(dtype: Any) -> bool:
    """Did pandas read numbers, dates or booleans?"""
    return getattr(dtype, "kind", "O") in "iufbmMc"


def _has_comma(cells: Any) -> bool:
    return bool(cells.astype(str).str.contains(",", regex=False).any())


def _all_match(cells: Any, pattern: str) -> bool:
    """Are all cells text of such numbers?"""
    if not all(isinstance(cell, str) for cell in cells.iloc[:_PROBED]):
        return False
    if not all(re.fullmatch(pattern, cell.strip()) for cell in cells.iloc[:_PROBED]):
        return False
    return bool(cells.astype(str).str.strip().str.fullmatch(pattern).all())


def _to_numbers(cells: Any, group: str, point: str) -> Any:
    """Numbers that are written with commas, as numbers."""
    import pandas as pd

    plain = cells.str.strip().str.replace(group, "", regex=False)
    return pd.to_numeric(plain.str.replace(point, ".", regex=False))

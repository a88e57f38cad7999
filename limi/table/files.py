"""Tables from files and frames: read them, and infer what their columns may hold."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, InvalidInput, LimiError, nearest
from limi.system.reading import regular
from limi.table.frames import Frame, check_names, columns_of, plain, reading_cells
from limi.table.schema import Column, Kind, Schema, off_steps
from limi.types import Value

__all__ = ["infer", "read"]

_LARGEST_EXACT = 2.0**53  # beyond it float64 skips integers
_MOST_DECIMALS = 6  # a column with more digits behind the point counts as real-valued
_LONGEST_LINE = 1 << 24  # characters of a header

_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".txt")


def read(path: str | Path) -> Frame:
    """The pandas frame of a CSV or Parquet file, typed as pandas itself would type it.

    Models are mostly trained on frames that pandas read, so limi reads as pandas does. Parquet
    keeps dtypes and categories; prefer it where a model depends on them.
    """
    path = regular(path, "a CSV or Parquet file")
    name = path.name.lower()
    if not name.endswith((*_PARQUET, *_TEXT)):
        raise InvalidInput(
            f"{str(path)!r} has an unknown ending; tables are read from .csv, .tsv, .csv.gz "
            "or .parquet files"
        )
    try:
        frame = (_read_parquet if name.endswith(_PARQUET) else _read_csv)(path)
    except (LimiError, MemoryError, ImportError):  # of pandas itself, for want of memory
        raise
    except Exception as error:  # parsers have an exception for each kind of damage
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise BadTable(f"{str(path)!r} cannot be read as a table: {said[:200]}") from None
    check_names(list(frame.columns))
    if not len(frame):
        raise BadTable(f"{str(path)!r} holds no rows; a table needs a header and at least one row")
    return frame


def _read_parquet(path: Path) -> Frame:
    import pandas as pd
    import pyarrow.parquet as pq

    # Opened here, for Arrow takes no name that is not UTF-8.
    with path.open("rb") as file:
        check_names(pq.read_schema(file).names)
        file.seek(0)
        return pd.read_parquet(file)


def _read_csv(path: Path) -> Frame:
    import gzip

    import pandas as pd

    opener = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        first = file.readline(_LONGEST_LINE)
        if len(first) == _LONGEST_LINE:
            raise BadTable(
                f"the first line of {str(path)!r} has more than {_LONGEST_LINE:,} characters; a "
                "table begins with a line of names"
            )
        if not first.strip():
            raise BadTable(f"{str(path)!r} is empty; a table needs a header and at least one row")
        separator = max(",;\t|", key=first.count)
        try:
            # A name in quotes may go on in the next line.
            header = next(csv.reader(itertools.chain([first], file), delimiter=separator))
        except csv.Error as error:
            raise BadTable(f"the header of {str(path)!r} cannot be read: {error}") from None
    # pandas renames a repeated name to "name.1" without a word, so the header is read first.
    check_names(header)
    # In one piece: read in parts, a column of mostly numbers would hold numbers and text.
    frame = pd.read_csv(
        path, sep=separator, encoding="utf-8-sig", low_memory=False, **_as_written(pd.__version__)
    )
    if not isinstance(frame.index, pd.RangeIndex):
        raise BadTable(
            f"{str(path)!r} has rows with more cells than the header has names; "
            "is there a separator at the end of the lines, or a name missing?"
        )
    return frame


def _as_written(version: str) -> dict[str, Any]:
    """What makes pandas read the number that stands there, so that a table reads as it was written.

    Before 3.1 it took the number beside it now and then, unless told otherwise; since then it
    warns those who tell it.
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def infer(
    frame: Frame,
    *,
    exclude: Collection[str] = (),
    kinds: Mapping[str, Kind] | None = None,
) -> Schema:
    """The schema that a frame's own cells suggest: its levels, ranges, steps and missing values.

    `kinds` overrides the kind of named columns, for integer codes that are categories.
    """
    kinds = dict(kinds or {})
    columns = columns_of(frame)
    names = dict.fromkeys(name for name, _, _ in columns)
    for name in [*exclude, *kinds]:
        if name not in names:
            raise BadTable(f"the table has no column {name!r}; {nearest(name, names)}")
    kept = [c for c in columns if c[0] not in exclude]
    if not kept:
        raise BadTable("the table has no column left to test; it needs at least two")
    found = []
    for name, cells, backend in kept:
        with reading_cells(name, backend.dtype(cells)):
            found.append(_infer(name, cells, backend, kinds.get(name)))
    return Schema(tuple(found))


def _infer(name: str, series: Any, backend: Any, kind: Kind | None) -> Column:
    dtype = backend.dtype(series)
    if backend.is_number(dtype) and kind in (None, "numerical"):
        numbers = backend.numbers(series)
        if kind or not _too_large(numbers):
            return _numerical(name, numbers)
    if kind == "numerical":
        raise BadTable(f"column {name!r} is stored as {dtype} and cannot be numerical")
    codes, cells = backend.factorize(series)
    values = [plain(cell) for cell in cells]
    levels = [v for v in values if not (isinstance(v, float) and math.isnan(v))]
    missing = bool((codes < 0).any()) or len(levels) < len(values)
    if not levels:
        raise BadTable(
            f"column {name!r} is empty: every cell is missing; leave it out of the table"
        )
    if len({isinstance(level, str) for level in levels}) > 1:
        raise BadTable(
            f"column {name!r} mixes text and numbers, such as {levels[0]!r} and "
            f"{next(v for v in levels if isinstance(v, str) != isinstance(levels[0], str))!r}; "
            "make it one or the other"
        )
    categories = backend.categories(series)
    if backend.is_bool(dtype) and kind in (None, "boolean"):
        seen = tuple(value for value in (False, True) if value in levels)
        return Column(name=name, kind="boolean", levels=seen, missing=missing)
    if kind == "boolean" and len(levels) != 2:
        raise BadTable(f"column {name!r} has {len(levels)} values and cannot be boolean")
    if categories:
        order = {plain(value): place for place, value in enumerate(categories[0])}
        levels.sort(key=order.__getitem__)
        kind = kind or ("ordered" if categories[1] else "categorical")
    else:
        levels.sort(key=_sort_key)
    return Column(name=name, kind=kind or "categorical", levels=tuple(levels), missing=missing)


def _sort_key(value: Value) -> tuple[bool, float, str]:
    text = isinstance(value, str)
    return text, 0.0 if text else float(value), str(value)


def _too_large(numbers: NDArray[np.float64]) -> bool:
    """Integers beyond 2^53 are identifiers, not quantities, and would not decode exactly."""
    finite = numbers[np.isfinite(numbers)]
    return bool(len(finite) and np.abs(finite).max() > _LARGEST_EXACT)


def _numerical(name: str, numbers: NDArray[np.float64]) -> Column:
    missing = np.isnan(numbers)
    known = numbers[~missing]
    if np.isinf(known).any():
        raise BadTable(
            f"column {name!r} holds {int(np.isinf(known).sum())} infinite values; "
            "replace them by missing or by a finite number"
        )
    if not len(known):
        raise BadTable(
            f"column {name!r} is empty: every cell is missing; leave it out of the table"
        )
    return Column(
        name=name,
        kind="numerical",
        low=float(known.min()),
        high=float(known.max()),
        step=_step(known),
        missing=bool(missing.any()),
    )


def _step(known: NDArray[np.float64]) -> float:
    """1 for whole numbers, 0.1, 0.01 ... for decimals, 0 where cells have more digits."""
    for decimals in range(_MOST_DECIMALS + 1):
        if np.abs(known).max() * 10.0**decimals > _LARGEST_EXACT / 8:
            break
        if np.array_equal(np.round(known, decimals), known):
            step = float(f"1e-{decimals}")
            # So many steps that rounding blurs them are none.
            return 0.0 if off_steps(known, float(known.min()), step).any() else step
    return 0.0

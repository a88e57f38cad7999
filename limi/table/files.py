"""Tables from files and frames: read them, and infer what their columns may hold."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, InvalidInput, LimiError, nearest
from limi.system.reading import regular
from limi.table.frames import Frame, check_names, columns_of, plain, reading_cells
from limi.table.large import DEFAULT_FIT_ROWS, MOST_CELLS, draw_from_parts, read_whole
from limi.table.parts import PARQUET, TEXT, find_parts, is_many
from limi.table.schema import LARGEST_EXACT, Column, Kind, Schema, off_steps
from limi.table.sources import SHEETS, is_source, read_sheet, read_source
from limi.table.whole import shown_by
from limi.types import Value

__all__ = ["FEW_LEVELS", "as_numbers", "infer", "notes_of", "read"]

FEW_LEVELS = 20
"""A column of no more values than these may well be codes; of more, they are measured or named."""

_NOTES = "limi.notes"
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_MOST_DECIMALS = 6  # a column with more digits behind the point counts as real-valued

_FEATHER = (".feather", ".arrow")


def read(path: str | Path, *, fit_rows: int | None = None, most_cells: int = MOST_CELLS) -> Frame:
    """The pandas frame of a CSV, Parquet, Feather or Excel file, a table of SQLite or a query of
    DuckDB, typed as pandas itself would type it.

    Models are mostly trained on frames that pandas read, so limi reads as pandas does. Parquet
    keeps dtypes and categories; prefer it where a model depends on them. What was understood
    beyond what pandas would (an encoding, decimal commas, repeated names) `notes_of` tells.

    A folder of CSV or Parquet files is one table, and so is a pattern (`people-*.parquet`). Of a
    Parquet table of more than `most_cells` cells, `fit_rows` rows are drawn at random (200,000 by
    default), and of a smaller one where `fit_rows` are given; `limi.table.whole` tells what all of
    it holds. Text of that size is refused.
    """
    if fit_rows is not None and fit_rows < 1:
        raise InvalidInput(f"fit-rows is {fit_rows}; it must be at least 1")
    try:
        frame, notes = _read_any(path, fit_rows, most_cells)
    except (LimiError, MemoryError, ImportError):  # of pandas itself, when memory runs out
        raise
    except Exception as error:  # parsers have an exception for each kind of damage
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise BadTable(f"{str(path)!r} cannot be read as a table: {said[:200]}") from None
    check_names(list(frame.columns))
    if not len(frame):
        raise BadTable(f"{str(path)!r} holds no rows; a table needs a header and at least one row")
    name = str(path) if is_source(path) else Path(path).name
    frame.attrs[_NOTES] = tuple(f"the table {name!r}: {note}" for note in notes)
    return frame


def notes_of(frame: Frame) -> tuple[str, ...]:
    """What there is to say of how a frame was read, where `read` read it."""
    return tuple(getattr(frame, "attrs", {}).get(_NOTES, ()))


def _read_any(place: str | Path, fit_rows: int | None, most_cells: int) -> tuple[Frame, list[str]]:
    if is_source(place):
        return _some_of(*read_source(str(place)), fit_rows)
    if is_many(place):
        return _read_in_parts(place, fit_rows, most_cells)
    path = regular(place, "a CSV or Parquet file")
    name = path.name.lower()
    if not name.endswith((*PARQUET, *_FEATHER, *TEXT, *SHEETS)):
        raise InvalidInput(
            f"{str(path)!r} has an unknown ending; tables are read from .csv, .tsv, .csv.gz, "
            ".parquet, .feather or .xlsx files, from folders of CSV or Parquet files, from "
            "sqlite:FILE:TABLE and duckdb:QUERY"
        )
    if name.endswith(SHEETS):
        return _some_of(*read_sheet(path), fit_rows)
    if name.endswith(_FEATHER):
        return _some_of(_read_feather(path), [], fit_rows)
    if name.endswith(PARQUET) and fit_rows is None and find_parts(path).n_cells <= most_cells:
        return _read_parquet(path), []
    return _read_in_parts(path, fit_rows, most_cells)


def _read_in_parts(
    place: str | Path, fit_rows: int | None, most_cells: int
) -> tuple[Frame, list[str]]:
    parts = find_parts(place)
    many = parts.n_cells > most_cells
    if parts.is_text and many:
        raise InvalidInput(
            f"{str(place)[:160]!r} has about {parts.n_cells:,} cells, more than limi reads from "
            f"text ({most_cells:,}); store it as Parquet, for example with DuckDB: "
            "COPY (FROM 'people.csv') TO 'people.parquet'"
        )
    if fit_rows is None and not many:
        return parts.read_text() if parts.is_text else read_whole(parts)
    return draw_from_parts(parts, DEFAULT_FIT_ROWS if fit_rows is None else fit_rows)


def _some_of(frame: Frame, notes: list[str], fit_rows: int | None) -> tuple[Frame, list[str]]:
    """A frame that is in memory as a whole, if no fewer rows are asked for."""
    if fit_rows is not None and fit_rows < len(frame):
        raise InvalidInput(
            f"fit-rows is {fit_rows}, and rows are drawn from CSV and Parquet files only; store "
            "the table as one of these, or leave --fit-rows out"
        )
    return frame, notes


def _read_feather(path: Path) -> Frame:
    from pyarrow import feather

    with path.open("rb") as file:
        table = feather.read_table(file, memory_map=False)
    check_names(table.column_names)
    return table.to_pandas()


def _read_parquet(path: Path) -> Frame:
    import pandas as pd
    import pyarrow.parquet as pq

    # Opened here, for Arrow takes no name that is not UTF-8.
    with path.open("rb") as file:
        check_names(pq.read_schema(file).names)
        file.seek(0)
        return pd.read_parquet(file)


def infer(
    frame: Frame,
    *,
    exclude: Collection[str] = (),
    kinds: Mapping[str, Kind] | None = None,
) -> Schema:
    """The schema that a frame's own cells suggest: its levels, ranges, steps and missing values.

    `kinds` overrides the kind of named columns, for integer codes that are categories. Columns in
    which every cell is missing tell nothing and are left out.
    """
    kinds = dict(kinds or {})
    columns = columns_of(shown_by(frame))
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
            column = _infer(name, cells, backend, kinds.get(name))
        if column is not None:
            found.append(column)
    if not found:
        raise BadTable("every cell of the table is missing; give a table with values")
    return Schema(
        tuple(found), guessed=frozenset(column.name for column in found if column.name not in kinds)
    )


def _infer(name: str, series: Any, backend: Any, kind: Kind | None) -> Column | None:
    """What a column may hold; None where every cell is missing."""
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
        return None
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
    elif numbers_in_text := as_numbers(levels):
        # As they are written, because a model may know these texts alone; but in their order.
        levels.sort(key=numbers_in_text.__getitem__)
        kind = kind or ("ordered" if len(levels) > FEW_LEVELS else "categorical")
    else:
        levels.sort(key=_sort_key)
    return Column(name=name, kind=kind or "categorical", levels=tuple(levels), missing=missing)


def as_numbers(levels: Sequence[Value]) -> dict[Value, tuple[float, str]]:
    """The numbers that texts stand for, by the text; empty unless each of them is one."""
    if not all(isinstance(level, str) and _NUMBER.fullmatch(level.strip()) for level in levels):
        return {}
    return {level: (float(str(level)), str(level)) for level in levels}


def _sort_key(value: Value) -> tuple[bool, float, str]:
    text = isinstance(value, str)
    return text, 0.0 if text else float(value), str(value)


def _too_large(numbers: NDArray[np.float64]) -> bool:
    """Integers beyond 2^53 are identifiers, not quantities, and would not decode exactly."""
    finite = numbers[np.isfinite(numbers)]
    return bool(len(finite) and np.abs(finite).max() > LARGEST_EXACT)


def _numerical(name: str, numbers: NDArray[np.float64]) -> Column | None:
    missing = np.isnan(numbers)
    known = numbers[~missing]
    if np.isinf(known).any():
        raise BadTable(
            f"column {name!r} holds {int(np.isinf(known).sum())} infinite values; "
            "replace them by missing or by a finite number"
        )
    if not len(known):
        return None
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
        if np.abs(known).max() * 10.0**decimals > LARGEST_EXACT / 8:
            break
        if np.array_equal(np.round(known, decimals), known):
            step = float(f"1e-{decimals}")
            # So many steps that rounding blurs them are none.
            return 0.0 if off_steps(known, float(known.min()), step).any() else step
    return 0.0

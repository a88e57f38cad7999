"""Rows to frames and back, exactly: the door between arrays and whatever frame the user has.

A `Codec` learns from one frame how each column is stored. Decoding then gives back the same frame
type, column order, dtypes, category sets and kind of missing value, so that a model receives rows
that it cannot tell from those it was trained on.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, LimiError, find_repeated, spell
from limi.table.schema import LARGEST, Column, Schema, is_text, off_steps
from limi.table.whole import shown_by
from limi.types import Index, Mask, Rows, Value

__all__ = [
    "Codec",
    "Frame",
    "check_names",
    "columns_of",
    "plain",
    "reading_cells",
]

_LISTED = 12  # levels, at most, that an error lists
Frame = Any
"""A pandas, polars or pyarrow frame."""


@dataclass(frozen=True)
class Misfits:
    """Rows that do not fit a schema, by the columns whose cells do not."""

    rows: dict[str, int]
    why: dict[str, str]  # in words, about one of the cells

    def __bool__(self) -> bool:
        return bool(self.rows)

    def describe(self, hidden: Collection[str] = ()) -> str:
        """How many rows each column keeps out, and an example; of hidden columns none."""
        shown = [why for name, why in self.why.items() if name not in hidden]
        if len(self.rows) == 1 and shown:
            return shown[0]
        counts = ", ".join(f"{n:,} in {name!r}" for name, n in self.rows.items())
        return f"{counts}; for example, {shown[0]}" if shown else counts


@dataclass(frozen=True)
class Codec:
    """Encodes frames into rows of a schema and decodes rows into such frames."""

    schema: Schema
    backend: _Backend
    stores: tuple[_Store, ...]

    @staticmethod
    def learn(frame: Frame, schema: Schema) -> Codec:
        """Remember how `frame` stores the columns of `schema`, or the table that it is of."""
        backend, native = _open(shown_by(frame))
        present = set(backend.names(native))
        absent = [name for name in schema.names if name not in present]
        if absent:
            raise BadTable(
                f"the table lacks {spell(absent)} that the schema names; "
                f"it has {spell(backend.names(native))}"
            )
        stores = []
        for column in schema.columns:
            series = backend.column(native, column.name)
            with reading_cells(column.name, backend.dtype(series)):
                stores.append(_learn(backend, series, column))
        return Codec(schema, backend, tuple(stores))

    @property
    def is_polars(self) -> bool:
        """Does it make frames of polars?"""
        return isinstance(self.backend, _Polars)

    @property
    def forks(self) -> bool:
        """Can a forked process make frames? The threads of polars stay behind in its parent."""
        return not self.is_polars

    def select(self, names: Sequence[str]) -> Codec:
        """The same codec for these columns only, in this order."""
        stores = tuple(self.stores[self.schema.position(name)] for name in names)
        return Codec(self.schema.select(names), self.backend, stores)

    def encode(self, frame: Frame) -> Rows:
        """Rows of a frame; BadTable where a cell does not fit the schema."""
        rows, fits, misfits = self._read(frame)
        if not fits.all():
            raise BadTable(next(iter(misfits.why.values())))
        return rows

    def encode_fitting(self, frame: Frame) -> tuple[Rows, Mask, Misfits]:
        """The rows of a frame that fit the schema, which they are, and why the others do not."""
        rows, fits, misfits = self._read(frame)
        return rows[fits], fits, misfits

    def _read(self, frame: Frame) -> tuple[Rows, Mask, Misfits]:
        backend, native = _open(frame)
        rows = np.empty((backend.length(native), len(self.schema)))
        fits = np.ones(len(rows), dtype=bool)
        misfits = Misfits({}, {})
        present = set(backend.names(native))
        for position, column in enumerate(self.schema.columns):
            if column.name not in present:
                raise BadTable(f"the table lacks the column {column.name!r}")
            series = backend.column(native, column.name)
            with reading_cells(column.name, backend.dtype(series)):
                rows[:, position], wrong, why = _codes(backend, series, column)
            fits &= ~wrong
            if why:
                misfits.rows[column.name] = int(wrong.sum())
                misfits.why[column.name] = why
        return rows, fits, misfits

    def decode(self, rows: Rows) -> Frame:
        """The frame that these rows stand for."""
        columns = {}
        for position, (column, store) in enumerate(
            zip(self.schema.columns, self.stores, strict=True)
        ):
            columns[column.name] = _decode(self.backend, rows[:, position], column, store)
        return self.backend.frame(columns)

    def matrix(self, rows: Rows) -> Rows:
        """Rows with each level replaced by its number, as models trained on arrays receive them.

        Text levels have no number; they keep their position.
        """
        values = rows
        for position, column in enumerate(self.schema.columns):
            numbers = column.level_numbers
            if column.is_number or numbers is None:
                continue
            if np.array_equal(numbers, np.arange(len(numbers))):
                continue
            if values is rows:
                values = rows.copy()
            cells = rows[:, position]
            known = ~np.isnan(cells)
            values[known, position] = numbers[cells[known].astype(np.intp)]
        return values


@dataclass(frozen=True)
class _Store:
    """How one column is kept: a native series of its levels, or the dtype of its numbers."""

    dtype: Any
    levels: Any = None  # native series: one entry a level, then the missing value if there is one
    gap: str = ""  # how a missing number is kept where the library has two ways: "null" or "nan"


class _Backend(Protocol):
    """What differs between frame libraries; the rest of this module does not."""

    def names(self, frame: Any) -> list[str]: ...
    def length(self, frame: Any) -> int: ...
    def column(self, frame: Any, name: str) -> Any: ...
    def dtype(self, series: Any) -> Any: ...
    def gap(self, series: Any) -> str: ...
    def is_number(self, dtype: Any) -> bool: ...
    def is_bool(self, dtype: Any) -> bool: ...
    def categories(self, series: Any) -> tuple[list[Any], bool] | None: ...
    def numbers(self, series: Any) -> NDArray[np.float64]: ...
    def factorize(self, series: Any) -> tuple[Index, list[Any]]: ...
    def take(self, series: Any, index: Index) -> Any: ...
    def append(self, series: Any, values: list[Any], dtype: Any) -> Any: ...
    def from_numbers(self, values: NDArray[np.float64], dtype: Any, gap: str) -> Any: ...
    def frame(self, columns: dict[str, Any]) -> Any: ...
    def plain_column(self, cells: NDArray[Any]) -> Any: ...
    def to_arrow(self, frame: Any) -> Any: ...


def columns_of(frame: Frame) -> list[tuple[str, Any, _Backend]]:
    """Name, native series and backend of each column."""
    backend, native = _open(frame)
    names = backend.names(native)
    check_names(names)
    return [(name, backend.column(native, name), backend) for name in names]


def check_names(names: Sequence[Any]) -> None:
    """BadTable unless the names of columns are text and differ."""
    odd = [name for name in names if not (isinstance(name, str) and is_text(name))]
    if odd:
        raise BadTable(
            f"column names must be text; these are not: {spell(map(repr, odd))}. "
            "Try: frame.columns = frame.columns.astype(str)"
        )
    if len(set(names)) < len(names):
        raise BadTable(
            f"column names must differ; these occur twice: {spell(map(repr, find_repeated(names)))}"
        )


@contextmanager
def reading_cells(name: str, dtype: Any) -> Iterator[None]:
    """BadTable where a library cannot take the cells of a column for values."""
    try:
        yield
    except BadTable as error:
        if repr(name) in str(error):
            raise
        raise BadTable(f"column {name!r} cannot be used: {error}") from None
    except (LimiError, MemoryError, ImportError, KeyboardInterrupt):
        raise
    # Each library has its own for lists, structures and the like; those of polars that come from
    # Rust are not even exceptions.
    except BaseException as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:160]
        raise BadTable(
            f"column {name!r} is stored as {str(dtype)[:80]}, whose cells cannot be read ({said}); "
            "limi reads numbers, text, booleans and dates"
        ) from None


def plain(value: Any) -> Value:
    """A cell as plain Python that TOML and JSON can hold."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _moment(value)  # .item() would give nanoseconds as a plain number
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (datetime.timedelta, decimal.Decimal)):
        return str(value)
    if isinstance(value, str) and not is_text(value):
        raise BadTable(
            f"a cell holds {value[:40]!r}, which is not text that a file can hold; read the table "
            "in its own encoding"
        )
    if isinstance(value, int) and abs(value) > LARGEST:
        raise BadTable(
            "a cell holds a whole number of more than 300 digits, too large for a number; store "
            "the column as text"
        )
    if isinstance(value, (bool, str, int, float)):
        return value
    raise BadTable(
        f"a cell holds {type(value).__name__} ({str(value)[:40]!r}); "
        "limi reads numbers, text, booleans and dates"
    )


def _moment(value: Any) -> str:
    import pandas as pd

    try:
        moment = pd.Timestamp if isinstance(value, np.datetime64) else pd.Timedelta
        return str(moment(value).isoformat())
    except ValueError:  # before or after all the years that pandas knows
        return str(value)


# -- columns ----------------------------------------------------------------------------


def _learn(backend: _Backend, series: Any, column: Column) -> _Store:
    dtype = backend.dtype(series)
    if column.is_number:
        return _Store(dtype, gap=backend.gap(series))
    codes, wrong, why = _codes(backend, series, column)
    if wrong.any():
        raise BadTable(why)
    # A slot a level and one for missing: where the frame shows it first, else -1. Taking the
    # frame's own cells keeps None apart from NaN and every dtype as it is.
    slots = np.full(column.size + column.missing, -1, dtype=np.intp)
    slot_of = np.where(np.isnan(codes), column.size, codes).astype(np.intp)
    seen, first = np.unique(slot_of, return_index=True)
    slots[seen] = first
    pool = backend.take(series, slots[slots >= 0])
    unseen = np.flatnonzero(slots < 0)
    if len(unseen):
        values = [*column.levels, None]
        try:
            pool = backend.append(pool, [values[slot] for slot in unseen], dtype)
        except (TypeError, ValueError, OverflowError):
            wanted = spell("missing" if values[s] is None else repr(values[s]) for s in unseen)
            raise BadTable(
                f"column {column.name!r} is stored as {dtype}, which cannot hold {wanted} that "
                "the schema allows; store the column in a wider type, or narrow the schema"
            ) from None
    order = np.empty(len(slots), dtype=np.intp)
    order[slots >= 0] = np.arange(len(slots) - len(unseen))
    order[unseen] = np.arange(len(slots) - len(unseen), len(slots))
    return _Store(dtype, levels=backend.take(pool, order))


def _codes(backend: _Backend, series: Any, column: Column) -> tuple[NDArray[np.float64], Mask, str]:
    """Codes of cells, which of the cells the column cannot hold, and why."""
    read = _number_codes if column.is_number else _level_codes
    codes, wrong, why = read(backend, series, column)
    gaps = np.isnan(codes) & ~wrong
    if column.missing or not gaps.any():
        return codes, wrong, why
    lacking = (
        f"column {column.name!r} has {int(gaps.sum())} missing cells where the schema allows none; "
        "set missing = true for it, or fill them"
    )
    return codes, wrong | gaps, why or lacking


def _level_codes(
    backend: _Backend, series: Any, column: Column
) -> tuple[NDArray[np.float64], Mask, str]:
    positions, cells = backend.factorize(series)
    values = [plain(cell) for cell in cells]
    gaps = [isinstance(value, float) and math.isnan(value) for value in values]
    places = [column.positions.get(value) for value in values]
    unknown = [place is None and not gap for place, gap in zip(places, gaps, strict=True)]
    codes = np.array([math.nan if place is None else float(place) for place in places] + [math.nan])
    why = ""
    if any(unknown):
        why = (
            f"column {column.name!r} holds {values[unknown.index(True)]!r}, which is not one of "
            f"its {len(column.levels)} levels"
            # A list of many helps nobody, and may be one of people.
            + (f": {spell(column.levels)}" if len(column.levels) <= _LISTED else "")
        )
    return codes[positions], np.array([*unknown, False])[positions], why


def _number_codes(
    backend: _Backend, series: Any, column: Column
) -> tuple[NDArray[np.float64], Mask, str]:
    try:
        codes = backend.numbers(series)
    except (TypeError, ValueError, ArithmeticError):
        raise BadTable(
            f"column {column.name!r} is numerical in the schema, but its cells "
            f"({backend.dtype(series)}) cannot be read as numbers"
        ) from None
    outside = (codes < column.low) | (codes > column.high)
    off = off_steps(codes, column.low, column.step) if column.step else np.zeros_like(outside)
    why = ""
    if outside.any():
        why = (
            f"column {column.name!r} holds {codes[outside][0]:g}, outside its range "
            f"{column.show(column.low)} to {column.show(column.high)}; widen the schema"
        )
    elif off.any():
        why = (
            f"column {column.name!r} holds {codes[off][0]:g}, which is not a step of "
            f"{column.step:g} from {column.show(column.low)}; set step = 0 for real numbers"
        )
    return codes, outside | off, why


def _decode(backend: _Backend, codes: NDArray[np.float64], column: Column, store: _Store) -> Any:
    missing = np.isnan(codes)
    if missing.any() and not column.missing:
        raise BadTable(f"column {column.name!r} cannot be missing, by its schema")
    if column.is_number:
        return backend.from_numbers(codes, store.dtype, store.gap)
    slots = np.where(missing, column.size, codes).astype(np.intp)
    return backend.take(store.levels, slots)


# -- frame libraries --------------------------------------------------------------------


def _open(frame: Frame) -> tuple[_Backend, Any]:
    try:
        wrapped = nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError:
        twice = spell(map(repr, find_repeated(frame.columns)))
        raise BadTable(f"column names must differ; these occur twice: {twice}") from None
    except TypeError:
        raise BadTable(
            f"a table was expected, not {type(frame).__name__}; give a pandas, polars (collected) "
            "or pyarrow frame, for example pandas.DataFrame(array, columns=names)"
        ) from None
    if wrapped.implementation.is_pandas():
        return _Pandas(), frame
    if wrapped.implementation.is_polars():
        return _Polars(), frame
    return _Arrow(), wrapped.to_arrow()


@dataclass(frozen=True)
class _Pandas:
    def names(self, frame: Any) -> list[str]:
        return list(frame.columns)

    def length(self, frame: Any) -> int:
        return len(frame)

    def column(self, frame: Any, name: str) -> Any:
        return _cells(frame[name])

    def dtype(self, series: Any) -> Any:
        return series.dtype

    def gap(self, series: Any) -> str:
        return ""

    def is_number(self, dtype: Any) -> bool:
        import pandas as pd

        return (
            pd.api.types.is_numeric_dtype(dtype)
            and not pd.api.types.is_bool_dtype(dtype)
            and not pd.api.types.is_complex_dtype(dtype)
        )

    def is_bool(self, dtype: Any) -> bool:
        import pandas as pd

        return pd.api.types.is_bool_dtype(dtype) and not isinstance(dtype, pd.CategoricalDtype)

    def categories(self, series: Any) -> tuple[list[Any], bool] | None:
        import pandas as pd

        if not isinstance(series.dtype, pd.CategoricalDtype):
            return None
        return list(series.dtype.categories), bool(series.dtype.ordered)

    def numbers(self, series: Any) -> NDArray[np.float64]:
        import pandas as pd

        array: NDArray[np.float64] = pd.Series(series).to_numpy(dtype=np.float64, na_value=np.nan)
        return array

    def factorize(self, series: Any) -> tuple[Index, list[Any]]:
        import pandas as pd

        codes, uniques = pd.factorize(series, use_na_sentinel=True)
        return codes, list(uniques)

    def take(self, series: Any, index: Index) -> Any:
        return series.take(index)

    def append(self, series: Any, values: list[Any], dtype: Any) -> Any:
        import pandas as pd

        known = getattr(dtype, "categories", None)
        if known is not None and any(v is not None and v not in known for v in values):
            raise ValueError("not a category")
        more = pd.Series(values, dtype=dtype)
        return _cells(pd.concat([pd.Series(series, dtype=dtype), more], ignore_index=True))

    def from_numbers(self, values: NDArray[np.float64], dtype: Any, gap: str) -> Any:
        import pandas as pd

        if isinstance(dtype, np.dtype):
            return values.astype(dtype)
        return pd.Series(values).convert_dtypes().astype(dtype).array

    def frame(self, columns: dict[str, Any]) -> Any:
        import pandas as pd

        # pandas 3 would turn an object array of text into its string dtype.
        kept = {
            name: pd.Series(cells, dtype=object) if cells.dtype == object else cells
            for name, cells in columns.items()
        }
        return pd.DataFrame(kept, copy=False)

    def plain_column(self, cells: NDArray[Any]) -> Any:
        import pandas as pd

        return _cells(pd.Series(cells, dtype="str" if cells.dtype.kind == "U" else None))

    def to_arrow(self, frame: Any) -> Any:
        import pyarrow as pa

        return pa.Table.from_pandas(frame, preserve_index=False)


@dataclass(frozen=True)
class _Arrow:
    def names(self, frame: Any) -> list[str]:
        return list(frame.column_names)

    def length(self, frame: Any) -> int:
        return int(frame.num_rows)

    def column(self, frame: Any, name: str) -> Any:
        return frame.column(name)

    def dtype(self, series: Any) -> Any:
        return series.type

    def gap(self, series: Any) -> str:
        # Arrow and polars tell null from NaN; decoding gives back the kind that was there.
        import pyarrow as pa
        import pyarrow.compute as pc

        if not pa.types.is_floating(series.type) or series.null_count:
            return "null"
        return "nan" if pc.any(pc.is_nan(series)).as_py() else "null"

    def is_number(self, dtype: Any) -> bool:
        import pyarrow.types as types

        return bool(types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype))

    def is_bool(self, dtype: Any) -> bool:
        import pyarrow.types as types

        return bool(types.is_boolean(dtype))

    def categories(self, series: Any) -> tuple[list[Any], bool] | None:
        import pyarrow as pa

        if not pa.types.is_dictionary(series.type):
            return None
        return _unique_in_order(series.unify_dictionaries()), bool(series.type.ordered)

    def numbers(self, series: Any) -> NDArray[np.float64]:
        import pyarrow as pa

        cells = series.cast(pa.float64(), safe=False).to_numpy()
        return np.array(cells, dtype=np.float64)

    def factorize(self, series: Any) -> tuple[Index, list[Any]]:
        import pyarrow as pa

        if pa.types.is_dictionary(series.type):
            series = series.cast(series.type.value_type)
        encoded = series.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return codes.astype(np.intp), encoded.dictionary.to_pylist()

    def take(self, series: Any, index: Index) -> Any:
        import pyarrow as pa

        return series.take(pa.array(index))

    def append(self, series: Any, values: list[Any], dtype: Any) -> Any:
        import pyarrow as pa

        more = pa.array(values, type=dtype)
        joined = pa.chunked_array([*series.chunks, more], type=dtype)
        return joined.unify_dictionaries()

    def from_numbers(self, values: NDArray[np.float64], dtype: Any, gap: str) -> Any:
        import pyarrow as pa

        array = pa.array(values, from_pandas=gap == "null")
        return pa.chunked_array([array.cast(dtype, safe=False)])

    def frame(self, columns: dict[str, Any]) -> Any:
        import pyarrow as pa

        return pa.table(columns)

    def plain_column(self, cells: NDArray[Any]) -> Any:
        import pyarrow as pa

        if cells.dtype.kind == "U":
            return pa.chunked_array([pa.array(cells.tolist(), type=pa.string())])
        return pa.chunked_array([pa.array(cells)])

    def to_arrow(self, frame: Any) -> Any:
        return frame


@dataclass(frozen=True)
class _Polars:
    def names(self, frame: Any) -> list[str]:
        return list(frame.columns)

    def length(self, frame: Any) -> int:
        return int(frame.height)

    def column(self, frame: Any, name: str) -> Any:
        return frame.get_column(name)

    def dtype(self, series: Any) -> Any:
        return series.dtype

    def gap(self, series: Any) -> str:
        if not series.dtype.is_float() or series.null_count():
            return "null"
        return "nan" if series.is_nan().any() else "null"

    def is_number(self, dtype: Any) -> bool:
        return bool(dtype.is_numeric())

    def is_bool(self, dtype: Any) -> bool:
        import polars as pl

        return bool(dtype == pl.Boolean)

    def categories(self, series: Any) -> tuple[list[Any], bool] | None:
        import polars as pl

        if isinstance(series.dtype, pl.Enum):
            return series.dtype.categories.to_list(), False
        if isinstance(series.dtype, pl.Categorical):
            return series.unique(maintain_order=True).drop_nulls().cast(pl.String).to_list(), False
        return None

    def numbers(self, series: Any) -> NDArray[np.float64]:
        import polars as pl

        cells: NDArray[np.float64] = series.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return cells

    def factorize(self, series: Any) -> tuple[Index, list[Any]]:
        import polars as pl

        if isinstance(series.dtype, (pl.Enum, pl.Categorical)):
            series = series.cast(pl.String)
        uniques = series.drop_nulls().unique(maintain_order=True)
        ranks = pl.DataFrame({"value": uniques, "code": np.arange(len(uniques))})
        codes = pl.DataFrame({"value": series}).join(
            ranks, on="value", how="left", maintain_order="left"
        )["code"]
        return codes.fill_null(-1).to_numpy().astype(np.intp), uniques.to_list()

    def take(self, series: Any, index: Index) -> Any:
        return series.gather(index)

    def append(self, series: Any, values: list[Any], dtype: Any) -> Any:
        import polars as pl

        try:
            more = pl.Series(values, dtype=dtype, strict=True)
        except pl.exceptions.PolarsError as error:
            raise ValueError(str(error)) from None
        return pl.concat([series.alias(""), more.alias("")])

    def from_numbers(self, values: NDArray[np.float64], dtype: Any, gap: str) -> Any:
        import polars as pl

        series = pl.Series(values)
        return (series.fill_nan(None) if gap == "null" else series).cast(dtype)

    def frame(self, columns: dict[str, Any]) -> Any:
        import polars as pl

        return pl.DataFrame({name: series.alias(name) for name, series in columns.items()})

    def plain_column(self, cells: NDArray[Any]) -> Any:
        import polars as pl

        if cells.dtype.kind == "U":
            return pl.Series(cells.tolist(), dtype=pl.String)
        return pl.Series(cells)

    def to_arrow(self, frame: Any) -> Any:
        return frame.to_arrow()


def _cells(series: Any) -> Any:
    """A pandas series without its index. Plain arrays stay plain: pandas' own take loses None."""
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array


def _unique_in_order(dictionaries: Any) -> list[Any]:
    """Values of a unified dictionary array, in dictionary order."""
    chunks = dictionaries.chunks
    values: list[Any] = chunks[0].dictionary.to_pylist() if chunks else []
    return values

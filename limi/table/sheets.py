"""Rows as frames and files of their own, where no table tells how they are stored.

Parquet keeps every value. A CSV file may be opened by a spreadsheet, which runs a cell of text that
begins like a formula (`=cmd|...`), so there such text and such names get an apostrophe in front:
spreadsheets show the rest as text, and a program that wants the value takes it off, or Parquet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from limi.table.frames import Frame
from limi.table.schema import Column, Schema
from limi.types import Rows, Value

__all__ = ["formulas", "guard_cells", "plain_frame", "write_csv", "write_parquet"]

# What begins a formula, also in full width, or hides its beginning.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # noqa: RUF001
_LARGEST = 2**63 - 1


def plain_frame(schema: Schema, rows: Rows) -> Frame:
    """A pandas frame of rows: levels as they are named, whole numbers as integers, gaps as
    pandas' own. Types depend on the schema alone, so that parts of a table fit together."""
    import pandas as pd

    cells = zip(schema.columns, rows.T, strict=True)
    return pd.DataFrame({column.name: _cells(column, codes) for column, codes in cells})


def write_parquet(file: BinaryIO, schema: Schema, parts: Iterable[Rows]) -> None:
    """Rows as one Parquet file, part after part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"i": pa.int64(), "f": pa.float64(), "b": pa.bool_(), "U": pa.string()}
    fields = [(column.name, kinds[_kind(column)]) for column in schema.columns]
    writer = None
    for rows in parts:
        frame = plain_frame(schema, rows)
        table = pa.Table.from_pandas(frame, schema=pa.schema(fields), preserve_index=False)
        writer = writer or pq.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def write_csv(file: BinaryIO, schema: Schema, parts: Iterable[Rows]) -> None:
    """Rows as one CSV file, part after part, without a cell that a spreadsheet would run."""
    names = [guard_cells(name) for name in schema.names]
    for number, rows in enumerate(parts):
        frame = plain_frame(schema, rows)
        for column in schema.columns:
            told = {str(v): guard_cells(str(v)) for v in column.levels if _is_formula(str(v))}
            if told and _kind(column) == "U":
                frame[column.name] = frame[column.name].replace(told)
        text = frame.to_csv(index=False, header=False if number else names)
        file.write(text.encode("utf-8"))


def formulas(schema: Schema) -> list[str]:
    """Columns whose name or text a spreadsheet would take for a formula."""
    return [
        column.name
        for column in schema.columns
        if _is_formula(column.name)
        or (_kind(column) == "U" and any(_is_formula(str(v)) for v in column.levels))
    ]


def guard_cells(text: str) -> str:
    """Text that a spreadsheet shows as text.

    >>> guard_cells("=1+1"), guard_cells("a=b"), guard_cells("-5")
    ("'=1+1", 'a=b', '-5')
    """
    return f"'{text}" if _is_formula(text) else text


def _is_formula(text: str) -> bool:
    if not text.startswith(_FORMULA) or len(text) == 1:
        return False
    try:
        float(text)
    except ValueError:
        return True
    return text[0] in "\t\r\n"  # a number of its own is not a formula


def _cells(column: Column, codes: NDArray[np.float64]) -> Any:
    import pandas as pd

    kind = _kind(column)
    if column.is_number:
        if kind == "f":
            return pd.Series(codes)
        return pd.Series(codes, dtype="Int64") if column.missing else codes.astype(np.int64)
    values: list[Value] = [str(v) for v in column.levels] if kind == "U" else [*column.levels]
    pool = pd.Series(values, dtype=_DTYPES[kind][column.missing])
    slots = np.where(np.isnan(codes), -1, codes).astype(np.intp)
    return pool.reindex(slots).reset_index(drop=True) if column.missing else pool.array.take(slots)


_DTYPES = {
    "i": ("int64", "Int64"),
    "f": ("float64", "float64"),
    "b": ("bool", "boolean"),
    "U": ("str", "str"),
}


def _kind(column: Column) -> str:
    """Whole numbers, real ones, booleans or text."""
    if column.is_number:
        ends = (column.low, column.high, column.step)
        whole = all(end == int(end) and abs(end) <= _LARGEST for end in ends)
        return "i" if whole and column.step else "f"
    types = {type(level) for level in column.levels}
    if types == {bool}:
        return "b"
    if types == {int} and all(abs(int(level)) <= _LARGEST for level in column.levels):
        return "i"
    return "f" if types <= {int, float} and float in types else "U"

"""Tables that nobody expects, in every frame library and as files: they work, or say why not."""

import datetime
import decimal
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limi.errors import BadTable, LimiError
from limi.table import files
from limi.table.frames import Codec
from limi.table.schema import Column


def both_ways(frame):
    """A frame inferred, encoded and decoded, or the sentence that refuses it."""
    try:
        schema = files.infer(frame)
        codec = Codec.learn(frame, schema)
        rows = codec.encode(frame)
    except LimiError as error:
        return str(error)
    codec.decode(rows)
    return schema


def read_or_refused(path):
    """The frame of a file, or a small one in its place where a sentence refuses it."""
    try:
        return files.read(path)
    except BadTable:
        return pd.DataFrame({"x": [1, 2]})


NS = datetime.timedelta(microseconds=1)


ARROW = {
    "lists": pa.array([[1], [2, 3], None]),
    "large lists": pa.array([[1], [2], [3]], type=pa.large_list(pa.int8())),
    "fixed lists": pa.array([[1, 2], [3, 4], [5, 6]], type=pa.list_(pa.int8(), 2)),
    "structures": pa.array([{"x": 1}, {"x": 2}, {"x": None}]),
    "maps": pa.array([[("k", 1)], [("k", 2)], []], type=pa.map_(pa.string(), pa.int8())),
    "bytes": pa.array([b"a", b"\xff", b"c"]),
    "fixed bytes": pa.array([b"ab", b"cd", b"ef"], type=pa.binary(2)),
    "nothing": pa.nulls(3),
    "lists in categories": pa.DictionaryArray.from_arrays([0, 1, 0], pa.array([[1], [2]])),
    "decimals": pa.array([decimal.Decimal("1." + "1" * 37), None, decimal.Decimal(2)]),
    "large decimals": pa.array([decimal.Decimal("9" * 70)] * 3, type=pa.decimal256(76, 0)),
    "half floats": pa.array(np.array([1, 2, 3], dtype=np.float16)),
    "nanoseconds": pa.array([1, 2, 3], type=pa.duration("ns")),
    "seconds": pa.array([1, 2**60, None], type=pa.duration("s")),
    "far dates": pa.array([1, 2**50, None], type=pa.timestamp("s")),
    "times": pa.array([1, 2, 3], type=pa.time64("ns")),
    "zones": pa.array([1, 2, 3], type=pa.timestamp("us", tz="Europe/Berlin")),
    "days": pa.array([1, 2, None], type=pa.date32()),
    "views": pa.array(["a", "b", None], type=pa.string_view()),
    "large text": pa.array(["a", "b", None], type=pa.large_string()),
    "unsigned": pa.array([1, 2**64 - 1, None], type=pa.uint64()),
    "runs": pa.RunEndEncodedArray.from_arrays([1, 3], pa.array([7, 8])),
    "unions": pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], type=pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])]
    ),
}


def frames_of(array):
    table = pa.table({"x": array, "y": pa.array([1, 2, 3])})
    yield "arrow", lambda: table
    yield "pandas", table.to_pandas
    yield "arrow in pandas", lambda: table.to_pandas(types_mapper=pd.ArrowDtype)
    yield "polars", lambda: pl.from_arrow(table)


@pytest.mark.parametrize("kind", ARROW)
def test_any_type_of_arrow_is_read_or_refused_in_a_sentence(kind):
    for library, make in frames_of(ARROW[kind]):
        try:
            frame = make()
        except (Exception, pl.exceptions.PanicException):
            continue  # a library that cannot hold it cannot hand it over
        came = both_ways(frame)
        if kind in ("lists", "structures", "maps", "bytes"):
            assert "limi reads numbers, text, booleans and dates" in came, library
            assert "'x'" in came


NOT_IN_PARQUET = {"lists in categories", "runs", "unions"}  # Arrow's writer refuses them


@pytest.mark.parametrize("kind", [kind for kind in ARROW if kind not in NOT_IN_PARQUET])
def test_any_type_in_a_parquet_file_is_read_or_refused(tmp_path, kind):
    pq.write_table(pa.table({"x": ARROW[kind], "y": pa.array([1, 2, 3])}), tmp_path / "a.parquet")
    both_ways(read_or_refused(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    "cells",
    [
        [10**400, 1, 2],
        [10**5000, 1, 2],
        ["a\ud800", "b", "c"],
        [1 + 2j, 1, 2],
        [{"a": 1}, "b", None],
        [None, [1], "b"],
        [{1}, {2}, {3}],
        [object(), "b", "c"],
        [pd.Interval(0, 1), pd.Interval(1, 2), None],
        [pd.Period("2020"), None, None],
        [float("inf"), True, "x"],
        [float("inf"), True, False],
        [decimal.Decimal("1e999999"), None, 1],
        [np.datetime64("9999999-01-01", "D"), None, None],
        [pd.NA, pd.NaT, None],
        [b"a", b"b", None],
        [np.ma.masked, 1, 2],
        [NS, NS * 2, None],
    ],
    ids=lambda cells: type(cells[0]).__name__,
)
def test_any_object_in_a_cell_is_read_or_refused(cells):
    both_ways(pd.DataFrame({"x": pd.Series(cells, dtype=object), "y": [1, 2, 3]}))


def test_a_masked_array_is_a_column_with_gaps():
    frame = pd.DataFrame({"x": pd.Series(np.ma.array([1, 2, 3], mask=[0, 1, 0])), "y": [1, 2, 3]})
    assert files.infer(frame)["x"] == Column(
        name="x", kind="numerical", low=1, high=3, step=1, missing=True
    )


def test_digits_without_end_are_refused_with_the_column(tmp_path):
    (tmp_path / "a.csv").write_text("id,ok\n" + "1" * 400 + ",1\n2,0\n")
    with pytest.raises(BadTable, match=r"'id'.*more than 300 digits.*store the column as text"):
        files.infer(files.read(tmp_path / "a.csv"))


@pytest.mark.parametrize("name", [3, ("a", "b"), None, "a\ud800", float("nan")])
def test_names_that_are_not_text_are_refused(name):
    with pytest.raises(BadTable, match="column names must be text"):
        files.infer(pd.DataFrame([[1, 2]], columns=pd.Index(["y", name], dtype=object)))


METADATA = [
    b"{",
    b"[]",
    b"3",
    b"{}",
    b"\xff",
    b"[" * 100_000,
    b'{"index_columns": 3, "columns": []}',
    b'{"index_columns": ["x", "y"], "columns": [], "column_indexes": []}',
    b'{"index_columns": ["nope"], "columns": [], "column_indexes": []}',
    b'{"index_columns": [{"kind": "range", "start": 0, "stop": 9, "step": 0}], "columns": []}',
    b'{"index_columns": [], "columns": [{"name": 3}], "column_indexes": [{}]}',
    json.dumps(
        {
            "index_columns": [],
            "column_indexes": [
                {"name": None, "field_name": None, "pandas_type": "int64", "numpy_type": "int64"}
            ],
            "columns": [
                {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": kind}
                for name, kind in (("x", "banana"), ("y", "category"))
            ],
        }
    ).encode(),
]


@pytest.mark.parametrize("metadata", METADATA, ids=lambda given: str(given[:60]))
def test_odd_metadata_of_pandas_are_one_sentence_at_most(tmp_path, metadata):
    table = pa.table({"x": [1, 2, 3], "y": ["a", "b", "c"]})
    path = tmp_path / "a.parquet"
    pq.write_table(table.replace_schema_metadata({b"pandas": metadata}), path)
    both_ways(read_or_refused(path))

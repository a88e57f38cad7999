"""Tables that nobody expects, in every frame library and as files: they work, or say why not."""

import datetime
import decimal
import json
import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limi.errors import BadTable, InvalidInput, LimiError, listed, nearest, repeated
from limi.table import files, protected, schema_files
from limi.table.frames import Codec, check_names
from limi.table.schema import Column, Schema


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


@pytest.mark.parametrize("kind", ARROW)
def test_any_type_in_a_parquet_file_is_read_or_refused(tmp_path, kind):
    try:
        pq.write_table(
            pa.table({"x": ARROW[kind], "y": pa.array([1, 2, 3])}), tmp_path / "a.parquet"
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        pytest.skip("Parquet has no such type")
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


# -- text files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("x" * 140_000 + ",y", "the header of .* cannot be read: field larger than field limit"),
        ('"' + "x\n" * 100_000, "the header of .* cannot be read"),
        ("x" * (1 << 24), "has more than 16,777,216 characters"),
        ("a,b,a", "these occur twice: 'a'"),
        ('"a\nb",c,"a\nb"', "these occur twice"),
    ],
    ids=["long name", "open quote", "long line", "twice", "twice in two lines"],
)
def test_headers_that_are_none(tmp_path, header, words):
    (tmp_path / "a.csv").write_text(f"{header}\n1,2,3\n")
    with pytest.raises(BadTable, match=words):
        files.read(tmp_path / "a.csv")


def test_a_name_in_quotes_may_hold_a_line_end(tmp_path):
    (tmp_path / "a.csv").write_text('"a\nb",c\n1,2\n')
    assert list(files.read(tmp_path / "a.csv")) == ["a\nb", "c"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
def test_a_name_that_is_not_utf8_is_a_name(tmp_path, ending):
    path = os.fsdecode(os.fsencode(tmp_path / "t") + b"\xff." + ending.encode())
    frame = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    if ending == "parquet":
        with open(path, "wb") as file:
            frame.to_parquet(file)
    else:
        frame.to_csv(path, index=False)
    pd.testing.assert_frame_equal(files.read(path), frame)


# -- what is no file --------------------------------------------------------------------------


@pytest.mark.parametrize("read", [files.read, schema_files.load])
def test_what_is_not_a_file_is_not_opened(tmp_path, read):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "zero.csv"):
        with pytest.raises(InvalidInput, match="is a pipe or a device, not a file; give"):
            read(tmp_path / name)
    with pytest.raises(InvalidInput, match="is a folder; give"):
        read(tmp_path)
    with pytest.raises(InvalidInput, match="there is no file"):
        read(tmp_path / "nowhere.csv")
    for name in ("x" * 300 + ".csv", "a\x00.csv"):
        with pytest.raises(InvalidInput, match="cannot be read: "):
            read(tmp_path / name)
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    with pytest.raises(InvalidInput, match="symbolic links"):
        read(tmp_path / "loop.csv")


# -- schemas ----------------------------------------------------------------------------------

COLUMN = '[columns.x]\nkind = "categorical"\nlevels = {}\n'
RANGE = '[columns.x]\nkind = "numerical"\nlow = {}\nhigh = {}\nstep = {}\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = " + "[" * 50_000, "nested too deeply|no valid TOML"),
        ("x = " + "1" * 5000, "no valid TOML"),
        ("\x00", "no valid TOML"),
        (COLUMN.format("[1979-05-27]"), "a level of type date"),
        (COLUMN.format("[nan]"), "a level of type float"),
        (COLUMN.format("[[1]]"), "a level of type list"),
        (COLUMN.format("[{a = 1}]"), "a level of type dict"),
        (COLUMN.format("[1" + "0" * 400 + "]"), "a level of type int"),
        (RANGE.format("1" + "0" * 400, 2, 1), "cannot be read"),
        (RANGE.format(0, "inf", 1), "low must be finite"),
        (RANGE.format("-1e308", "1e308", 1), "narrow the range"),
        (RANGE.format("-1e308", "1e308", 0), "narrow the range"),
        (RANGE.format(0, "1e300", "1e-300"), "narrow the range"),
        (RANGE.format(0, 1, "nan"), "step nan"),
        ('[columns.x]\nkind = []\nlevels = ["a"]\n', "has kind"),
    ],
    ids=lambda text: text[:24],
)
def test_schemas_that_cannot_be_used_say_why(tmp_path, text, words):
    with pytest.raises(InvalidInput, match=words) as told:
        schema_files.parse(text)
    assert len(str(told.value)) < 2000


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "3",
        "null",
        '{"columns": []}',
        '{"columns": {"x": []}}',
        '{"columns": {"x": {"sdtype": []}}}',
        '{"columns": {"x": {"sdtype": {}}}}',
        '{"columns": {"x": {"sdtype": null}}}',
        '{"columns": {"x": {"sdtype": 3}}}',
        '{"tables": []}',
        '{"tables": [1]}',
        '{"tables": {"a": 3}}',
        "\x00",
        '{"columns": {"x": {"sdtype": "numerical"}}, "a": ' + "1" * 5000 + "}",
    ],
    ids=lambda text: text[:40],
)
def test_sdv_metadata_that_are_none_say_so(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InvalidInput, match=r"is no SDV single-table metadata|describes 0 tables"):
        schema_files.read_for(pd.DataFrame({"x": [1, 2]}), tmp_path / "a.json")


def test_unsafe_names_and_levels_read_back_from_toml():
    unsafe = "a\x1b[31m\x7f\x85\x9b\u202eb\u2028\t\n\"\\'"
    schema = Schema(
        (
            Column(name=unsafe, kind="categorical", levels=(unsafe, "b"), meaning=unsafe),
            Column(name="x", kind="numerical", low=0, high=1),
        )
    )
    text = schema_files.dump(schema)
    assert all(line.isprintable() for line in text.splitlines())
    assert schema_files.parse(text) == schema


# -- protected values ---------------------------------------------------------------------------

AGE = Schema(
    (
        Column(name="age", kind="numerical", low=0, high=100, step=1),
        Column(name="job", kind="categorical", levels=("a", "b")),
    )
)


MANY = 2_000_000  # a pattern that is quadratic in the length would not come back


@pytest.mark.parametrize(
    "values",
    [
        *("1" * MANY, "1-" + "1" * MANY, "1." * MANY, "1e" * MANY, "1-1e400:1", "-" * MANY),
        *(" " * MANY, "1e400-1e400:1e400", "0-1e300:1e-300", "0-100:nan", "--", "0-9:1e400"),
        *("a" * MANY, ",".join(["1"] * 20_000), '"' * 20_001, "\ud800"),
    ],
    ids=lambda values: values[:8],
)
@pytest.mark.parametrize("column", ["age", "job"])
def test_values_that_mean_nothing_are_told_at_once(column, values):
    with pytest.raises(InvalidInput):
        protected.parse(AGE, [f"{column}={values}"])


@pytest.mark.parametrize(
    "value",
    [10**400, 10**5000, [1], {}, None, float("nan"), float("inf"), "1" * 5000],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("column", ["age", "job"])
def test_values_of_any_type_are_held_to_the_column(column, value):
    with pytest.raises(InvalidInput):
        AGE.protect({column: [value, value]})


def test_names_of_any_length_are_compared_in_time():
    long = ["x" * 100_000 + str(i) for i in range(3)]
    told = nearest("x" * 100_000, long)
    assert len(told) < 1000
    assert len(listed(long)) < 1000
    assert repeated(["b", "a", "b", 3, 3]) == ["3", "b"]


def test_thousands_of_columns_cost_a_step_each():
    """Names are looked up, never searched: comparisons of names grow with the columns alone."""

    class Name(str):
        compared = 0
        __slots__ = ()

        def __eq__(self, other):
            Name.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    n = 2000
    columns = tuple(
        Column(name=Name(f"c{i}"), kind="numerical", low=0, high=1, step=1) for i in range(n)
    )
    Name.compared = 0
    schema = Schema(columns)
    for i in range(n):
        assert schema.position(Name(f"c{i}")) == i
    schema.select([Name(f"c{i}") for i in range(n)])
    check_names([Name(f"c{i}") for i in range(n)])
    assert Name.compared < 20 * n

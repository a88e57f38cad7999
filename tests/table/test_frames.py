"""Rows to frames and back: what comes out cannot be told from what went in."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from limi.errors import BadTable, InvalidInput
from limi.table import files, schema_files
from limi.table.frames import Codec
from limi.table.rows import uniform
from limi.table.schema import Column, Schema


def pandas_frame():
    return pd.DataFrame(
        {
            "int": [1, 2, 3, 2],
            "tiny": np.array([1, 2, 3, 1], dtype=np.int8),
            "float": [0.5, 1.25, np.nan, 2.0],
            "single": np.array([0.1, 0.2, 0.3, 0.1], dtype=np.float32),
            "text": ["a", "b", None, "a"],
            "object": pd.Series(["x", None, None, "y"], dtype=object),
            "object_nan": pd.Series(["x", np.nan, np.nan, "y"], dtype=object),
            "string": pd.array(["q", None, "r", "q"], dtype="string"),
            "bool": [True, False, True, True],
            "boolean": pd.array([True, None, False, True], dtype="boolean"),
            "Int": pd.array([1, None, 3, 4], dtype="Int64"),
            "Float": pd.array([1.5, None, 3, 4], dtype="Float64"),
            "ordered": pd.Categorical(
                ["lo", "hi", None, "lo"], categories=["lo", "mid", "hi"], ordered=True
            ),
            "codes": pd.Categorical([3, 1, 3, 1], categories=[3, 2, 1]),
            "date": pd.to_datetime(["2020-01-01", "2021-01-01", None, "2020-01-01"]),
            "id": [2**60, 2**60 + 1, 5, 7],
            "arrow_int": pd.array([1, None, 2, 3], dtype="int64[pyarrow]"),
            "arrow_float": pd.array([1.5, None, 2, 3], dtype="double[pyarrow]"),
            "arrow_text": pd.array(["u", None, "v", "u"], dtype="string[pyarrow]"),
        }
    )


def polars_frame():
    return pl.DataFrame(
        {
            "int": [1, 2, None],
            "byte": pl.Series([1, 2, 3], dtype=pl.UInt8),
            "nan": [0.5, float("nan"), 1.0],
            "null": [0.5, None, 1.0],
            "text": ["a", None, "b"],
            "enum": pl.Series(["u", "v", "u"], dtype=pl.Enum(["v", "u", "w"])),
            "cat": pl.Series(["u", None, "u"], dtype=pl.Categorical),
            "bool": [True, None, False],
            "date": [datetime.date(2020, 1, 1), None, datetime.date(2021, 1, 1)],
            "money": pl.Series(["1.10", "2.25", None]).cast(pl.Decimal(10, 2)),
        }
    )


def arrow_table():
    return pa.table(
        {
            "int": pa.array([1, 2, None], pa.int16()),
            "null": [0.5, None, 1.0],
            "text": ["a", None, "b"],
            "dictionary": pa.array(["x", "y", None]).dictionary_encode(),
            "bool": [True, None, False],
            "time": pa.array([datetime.datetime(2020, 1, 1), None, datetime.datetime(2021, 1, 1)]),
        }
    )


def round_trip(frame):
    codec = Codec.learn(frame, files.infer(frame))
    rows = codec.encode(frame)
    assert rows.dtype == np.float64
    return codec, rows, codec.decode(rows)


def test_pandas_comes_back_as_it_went():
    frame = pandas_frame()
    _, _, back = round_trip(frame)
    pd.testing.assert_frame_equal(frame, back, check_exact=True)
    assert back["object"].tolist()[1] is None
    assert isinstance(back["object_nan"].tolist()[1], float)
    assert back["ordered"].cat.categories.tolist() == ["lo", "mid", "hi"]
    assert back["codes"].cat.categories.tolist() == [3, 2, 1]


def test_polars_comes_back_as_it_went():
    frame = polars_frame()
    _, _, back = round_trip(frame)
    assert back.schema == frame.schema
    assert back.equals(frame)


def test_arrow_comes_back_as_it_went():
    frame = arrow_table()
    _, _, back = round_trip(frame)
    assert back.schema == frame.schema
    assert back.to_pylist() == frame.to_pylist()


def test_an_index_is_no_part_of_a_row():
    frame = pandas_frame().set_index(pd.Index([9, 8, 7, 7]))
    _, rows, _ = round_trip(frame)
    np.testing.assert_array_equal(rows, round_trip(pandas_frame())[1])


def test_codes_are_numbers_places_and_nan():
    codec, rows, _ = round_trip(pandas_frame()[["int", "text", "bool", "ordered"]])
    assert codec.schema["ordered"].levels == ("lo", "hi")
    assert rows[0].tolist() == [1, 0, 1, 0]
    assert rows[1].tolist() == [2, 1, 0, 1]
    assert np.isnan(rows[2][[1, 3]]).all()


@pytest.mark.parametrize("frame", [pandas_frame(), polars_frame(), arrow_table()])
def test_every_row_of_the_domain_decodes_and_encodes_to_itself(frame):
    codec, _, _ = round_trip(frame)
    rows = uniform(codec.schema, 200, np.random.default_rng(0))
    single = [i for i, c in enumerate(codec.schema.columns) if c.name == "single"]
    rows[:, single] = rows[:, single].astype(np.float32)
    np.testing.assert_array_equal(codec.encode(codec.decode(rows)), rows)


cells = st.one_of(st.none(), st.text(max_size=3), st.booleans())


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(
        st.one_of(st.none(), st.integers(-(2**52), 2**52), st.floats(-1e9, 1e9)),
        min_size=1,
        max_size=12,
    ),
    text=st.text(max_size=2),
)
@example(numbers=[116582, 0.03125], text="")  # ten thousand million steps of 0.00001
def test_any_numbers_survive_the_trip(numbers, text):
    if all(n is None for n in numbers):
        numbers = [*numbers, 1]
    frame = pd.DataFrame({"n": pd.array(numbers, dtype="Float64"), "t": [text] * len(numbers)})
    _, _, back = round_trip(frame)
    pd.testing.assert_frame_equal(frame, back, check_exact=True)


def test_levels_and_missing_values_that_the_frame_does_not_show():
    frame = pd.DataFrame({"c": pd.Categorical(["a", "b"], categories=["a", "z", "b"])})
    schema = Schema((Column(name="c", kind="categorical", levels=("b", "z", "a"), missing=True),))
    codec = Codec.learn(frame, schema)
    decoded = codec.decode(np.array([[0.0], [1.0], [2.0], [np.nan]]))
    assert decoded["c"].tolist()[:3] == ["b", "z", "a"]
    assert decoded["c"].isna().tolist() == [False, False, False, True]
    assert decoded["c"].dtype == frame["c"].dtype


def test_matrix_gives_numbers_for_numeric_levels():
    frame = pd.DataFrame({"code": [0, 100, 7], "n": [1, 2, 3]})
    schema = files.infer(frame, kinds={"code": "categorical"})
    codec = Codec.learn(frame, schema)
    rows = codec.encode(frame)
    assert rows[:, 0].tolist() == [0, 2, 1]
    np.testing.assert_array_equal(codec.matrix(rows), frame.to_numpy(dtype=float))


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"a": [1.0, np.inf]}), "1 infinite values"),
        (pd.DataFrame({"a": [np.nan, np.nan]}), "every cell is missing"),
        (pd.DataFrame({"a": [None, None]}), "every cell is missing"),
        (pd.DataFrame({"a": [[1], [2]]}), "reads numbers, text, booleans and dates"),
        (pd.DataFrame({1: [1]}), "column names must be text"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "occur twice: 'a'"),
        (np.zeros((2, 2)), "a table was expected, not ndarray"),
        (polars_frame().lazy(), "collected"),
    ],
)
def test_tables_that_cannot_be_read(frame, words):
    with pytest.raises(BadTable, match=words):
        files.infer(frame)


@pytest.mark.parametrize(
    ("cells", "column", "words"),
    [
        (["a", "z"], Column(name="c", kind="categorical", levels=("a",)), "holds 'z'"),
        (["a", None], Column(name="c", kind="categorical", levels=("a",)), "1 missing cells"),
        ([1, 9], Column(name="c", kind="numerical", low=0, high=5), "holds 9, outside"),
        ([1.5], Column(name="c", kind="numerical", low=0, high=5, step=1), "no step of 1"),
        (["x"], Column(name="c", kind="numerical", low=0, high=5), "cannot be read as numbers"),
    ],
)
def test_cells_that_do_not_fit_the_schema(cells, column, words):
    with pytest.raises(BadTable, match=words):
        Codec.learn(pd.DataFrame({"c": cells}), Schema((column,))).encode(
            pd.DataFrame({"c": cells})
        )


# -- schema files -----------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pandas_frame(), polars_frame(), arrow_table()])
def test_a_schema_survives_its_file(frame, tmp_path):
    schema = files.infer(frame).protect(["text"])
    path = tmp_path / "schema.toml"
    path.write_text(schema_files.dump(schema), encoding="utf-8")
    assert schema_files.load(path) == schema


def test_hostile_names_survive_too():
    nasty = 'a"b\\c\n[x]\t\u2028é'
    schema = Schema(
        (Column(name=nasty, kind="categorical", levels=(nasty, "1", 1.5, 2), meaning=nasty),)
    )
    assert schema_files.parse(schema_files.dump(schema)) == schema


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = ", "no valid TOML"),
        ("format = 9", "this limi reads format 1"),
        ("format = 1", "lists no columns"),
        ("[columns.a]\nlow = 1", "needs a kind"),
        ('[columns.a]\nkind = "numerical"\nhigth = 1', "did you mean 'high'"),
        ('[columns.a]\nkind = "numerical"\nlow = "x"', "cannot be read"),
        ('[protcted]\nsex = ["F"]\n[columns.a]\nkind = "boolean"', "did you mean 'protected'"),
        ('[colums.a]\nkind = "boolean"', "has 'colums'; did you mean 'columns'"),
        ('formt = 1\n[columns.a]\nkind = "boolean"', "has 'formt'; did you mean 'format'"),
        ('[columns.a]\nkind = "numerical"\nlevels = [1, 2]', "is numerical and has 'levels'"),
        ('[columns.a]\nkind = "ordered"\nlevels = [1, 2]\nlow = 1', "is ordered and has 'low'"),
        ('[columns.a]\nkind = "numericl"\nlow = 1\nhigh = 2', "has kind 'numericl'; kinds are"),
        ('[protected]\nsx = ["F"]\n[columns.sex]\nkind = "categorical"\nlevels = ["F"]', "'sex'"),
    ],
)
def test_schema_files_that_cannot_be_used(text, words):
    with pytest.raises(InvalidInput, match=words):
        schema_files.parse(text)


def test_edited_columns_win_and_others_are_inferred(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": [0, 1], "y": [0, 1]})
    path = tmp_path / "s.toml"
    path.write_text('[columns.b]\nkind = "categorical"\nlevels = [0, 1]\n', encoding="utf-8")
    schema = schema_files.read_for(frame, path, exclude=("y",))
    assert [c.kind for c in schema.columns] == ["numerical", "categorical"]


def test_sdv_metadata_is_read(tmp_path):
    frame = pd.DataFrame({"n": [1, 2, 3], "c": [0, 1, 0], "b": [0, 1, 1], "t": ["x", "y", "y"]})
    columns = {
        "n": {"sdtype": "numerical", "computer_representation": "Int64"},
        "c": {"sdtype": "categorical"},
        "b": {"sdtype": "boolean"},
        "t": {"sdtype": "city", "pii": True},
    }
    single = {"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "columns": columns}
    for tree in (single, {"tables": {"people": single}}):
        path = tmp_path / "metadata.json"
        path.write_text(json.dumps(tree), encoding="utf-8")
        schema = schema_files.read_for(frame, path)
        kinds = [c.kind for c in schema.columns]
        assert kinds == ["numerical", "categorical", "boolean", "categorical"]
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(InvalidInput, match="no SDV single-table metadata"):
        schema_files.read_for(frame, path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"primry_key": "n"}, "has 'primry_key'; did you mean 'primary_key'"),
        ({"Columns": {}}, "has 'Columns'; did you mean 'columns'"),
        (
            {"columns": {"n": {"sdtyp": "numerical"}}},
            "column 'n' has 'sdtyp'; did you mean 'sdtype'",
        ),
        ({"columns": {"n": {"sdtype": "numericl"}}}, "'numericl'; did you mean 'numerical'"),
        ({"columns": {"N": {"sdtype": "numerical"}}}, "no column 'N'; did you mean 'n'"),
        ({"columns": ["n"]}, "no SDV single-table metadata"),
    ],
)
def test_slips_in_sdv_metadata_are_told_with_the_nearest_name(tmp_path, change, words):
    frame = pd.DataFrame({"n": [1, 2, 3], "c": [0, 1, 0]})
    tree = {"columns": {"n": {"sdtype": "numerical"}}, "primary_key": "n"} | change
    path = tmp_path / "metadata.json"
    for written in (tree, {"tables": {"people": tree}, "relationships": []}):
        path.write_text(json.dumps(written), encoding="utf-8")
        with pytest.raises((InvalidInput, BadTable), match=words):
            schema_files.read_for(frame, path)
    path.write_text(json.dumps({"tables": {"people": tree}, "relationship": []}), encoding="utf-8")
    with pytest.raises(InvalidInput, match="did you mean 'relationships'"):
        schema_files.read_for(frame, path)


# -- files ------------------------------------------------------------------------------


def test_csv_and_parquet_read_as_pandas_reads_them(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "s": ["x, y", None], "f": [0.5, None]})
    for separator in ",;\t|":
        path = tmp_path / "t.csv"
        frame.to_csv(path, index=False, sep=separator)
        pd.testing.assert_frame_equal(files.read(path), pd.read_csv(path, sep=separator))
    parquet = tmp_path / "t.parquet"
    pandas_frame().to_parquet(parquet)
    pd.testing.assert_frame_equal(files.read(parquet), pd.read_parquet(parquet))


@pytest.mark.parametrize(
    ("name", "content", "error", "words"),
    [
        ("none.csv", None, InvalidInput, "there is no file"),
        ("t.xlsx", b"x", InvalidInput, "unknown ending"),
        ("t.csv", b"", BadTable, "is empty"),
        ("t.csv", b"a,b\n", BadTable, "holds no rows"),
        ("t.csv", b"a,b,a\n1,2,3\n", BadTable, "occur twice: 'a'"),
        ("t.csv", b"a,b\n1,2\n1,2,3,4\n", BadTable, "cannot be read as a table"),
        ("t.csv", b"\xff\xfe\x00a", BadTable, "cannot be read as a table"),
        ("t.parquet", b"PAR1 not really", BadTable, "cannot be read as a table"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, error, words):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=words) as caught:
        files.read(path)
    assert "\n" not in str(caught.value)

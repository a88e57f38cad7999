"""Rows to frames and back: what comes out cannot be told from what went in."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from limi.errors import BadTable
from limi.table import files
from limi.table.frames import Codec, plain
from limi.table.rows import uniform
from limi.table.schema import Column, Schema
from tests.table.mixed import arrow_table, pandas_frame, polars_frame


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
        (pd.DataFrame({"a": [np.nan, np.nan]}), "every cell of the table is missing"),
        (pd.DataFrame({"a": [None, None]}), "every cell of the table is missing"),
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
        ([1.5], Column(name="c", kind="numerical", low=0, high=5, step=1), "not a step of 1"),
        (["x"], Column(name="c", kind="numerical", low=0, high=5), "cannot be read as numbers"),
    ],
)
def test_cells_that_do_not_fit_the_schema(cells, column, words):
    with pytest.raises(BadTable, match=words):
        Codec.learn(pd.DataFrame({"c": cells}), Schema((column,))).encode(
            pd.DataFrame({"c": cells})
        )


def test_dates_are_text_in_every_unit():
    assert plain(np.datetime64("2020-01-02", "ns")) == plain(np.datetime64("2020-01-02T00", "s"))
    assert str(plain(np.datetime64("2020-01-02", "ns"))).startswith("2020-01-02")

"""Rows have equal keys exactly where their cells have equal types and values."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from limi.remote.cells import names, read, turned


def keys_of(**columns):
    return names(read(pd.DataFrame(columns))[1])


def test_cells_keep_their_types_and_missing_ones_are_null():
    frame = pd.DataFrame(
        {
            "i": [1, 2],
            "f": [0.5, np.nan],
            "b": [True, False],
            "s": ["a", None],
            "c": pd.Categorical(["x", None]),
            "n": pd.array([3, None], dtype="Int64"),
        }
    )
    cells, _ = read(frame)
    assert cells.rows == [(1, 0.5, True, "a", "x", 3), (2, None, False, None, None, None)]
    assert [type(cell) for cell in cells.rows[0]] == [int, float, bool, str, str, int]


def test_a_row_has_the_same_key_wherever_it_stands():
    frame = pd.DataFrame({"a": [1, 2, 3, 1], "s": ["x", "y", "x", "x"]})
    keys = names(read(frame)[1])
    assert keys[0] == keys[3]
    assert len(set(keys)) == 3
    assert names(read(frame[::-1])[1]) == keys[::-1]
    assert names(read(frame[1:2])[1]) == keys[1:2]


def test_other_types_names_places_and_values_have_other_keys():
    cases = [
        keys_of(a=[1]),
        keys_of(a=[1.0]),
        keys_of(a=[True]),
        keys_of(a=["1"]),
        keys_of(a=[None]),
        keys_of(a=[2]),
        keys_of(b=[1]),
        keys_of(a=[1], b=[2]),
        keys_of(b=[2], a=[1]),
        keys_of(a=[2], b=[1]),
        keys_of(a=[0.0]),
        keys_of(a=[-0.0]),
    ]
    assert len({key for (key,) in cases}) == len(cases)


def test_mixed_cells_that_python_calls_equal_are_told_apart():
    column = pd.Series([1, 1.0, True, "1"], dtype=object)
    cells, keys = read(column.to_frame("a"))
    assert len(set(names(keys))) == 4
    assert [type(cell) for cell in cells.columns[0]] == [int, float, bool, str]


def test_the_library_of_a_frame_does_not_matter():
    columns = {"a": [1, 2], "s": ["x", "y"], "f": [0.5, 0.25]}
    assert names(read(pd.DataFrame(columns))[1]) == names(read(pl.DataFrame(columns))[1])


def test_the_second_asking_of_a_row_is_another_question():
    keys = read(pd.DataFrame({"a": [1, 2]}))[1]
    turns = [names(turned(keys, np.array([n, n]))) for n in range(4)]
    assert turns[0] == names(keys)
    assert len({key for turn in turns for key in turn}) == 8


@pytest.mark.parametrize("n", [0, 1])
def test_no_row_and_one_row_can_be_read(n):
    cells, keys = read(pd.DataFrame({"a": [1], "s": ["x"]})[:n])
    assert len(cells) == len(keys) == n

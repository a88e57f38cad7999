"""Frames of pandas, Polars and Arrow with columns of every kind, some cells missing."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa


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

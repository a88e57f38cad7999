"""Rows as files: Parquet keeps all of them, CSV nothing that a spreadsheet would run."""

import io

import numpy as np
import pandas as pd
import pytest

from limi.table import files
from limi.table.frames import Codec
from limi.table.schema import Column, Schema
from limi.table.sheets import formulas, guard_cells, plain_frame, write_csv, write_parquet

FORMULA = "=cmd|' /C calc'!A0"
JOBS = (FORMULA, "+1", "-", "@x", "a,b", "<5", "-5")
SCHEMA = Schema(
    (
        Column(
            name="job", kind="categorical", levels=(FORMULA, "+1", "-", "@x", "a,b", "<5", "-5")
        ),
        Column(name="=sum", kind="ordered", levels=("low", "high"), missing=True),
        Column(name="age", kind="numerical", low=18, high=80, step=1),
        Column(name="left", kind="numerical", low=-5, high=5, step=1, missing=True),
        Column(name="half", kind="numerical", low=0.5, high=9.5, step=1),
        Column(name="real", kind="numerical", low=-1e300, high=1.0, missing=True),
        Column(name="huge", kind="numerical", low=0, high=2.0**70, step=2.0**60),
        Column(name="code", kind="categorical", levels=(3, 1, 2), missing=True),
        Column(name="ok", kind="boolean", levels=(False, True), missing=True),
        Column(name="sure", kind="boolean", levels=(False, True)),
        Column(name="id", kind="categorical", levels=(10**30, 10**31)),
        Column(name="mixed", kind="categorical", levels=(True, 2)),
    )
)
MISSING = SCHEMA.may_miss


def rows(n=40, seed=0, missing=True):
    rng = np.random.default_rng(seed)
    drawn = []
    for column in SCHEMA.columns:
        if column.size:
            low, step = (column.low, column.step) if column.kind == "numerical" else (0.0, 1.0)
            drawn.append(low + step * rng.integers(0, column.size, n))
        else:
            drawn.append(rng.uniform(-1, 1, n))
    cells = np.stack(drawn, axis=1)
    cells[np.ix_(rng.random(n) < 0.4, MISSING)] = np.nan if missing else 0.0
    return cells


def test_types_depend_on_the_schema_and_not_on_the_rows():
    parts = [plain_frame(SCHEMA, rows(seed=seed, missing=bool(seed))) for seed in (0, 1)]
    assert list(parts[0].dtypes) == list(parts[1].dtypes)
    kinds = dict(parts[0].dtypes.astype(str))
    assert kinds["age"] == "int64"
    assert kinds["left"] == "Int64"
    assert kinds["half"] == kinds["huge"] == kinds["real"] == "float64"
    assert kinds["code"] == "Int64"
    assert (kinds["ok"], kinds["sure"]) == ("boolean", "bool")


def test_parquet_gives_the_same_frame_back_in_any_number_of_parts():
    whole = rows()
    sinks = [io.BytesIO(), io.BytesIO()]
    write_parquet(sinks[0], SCHEMA, [whole])
    write_parquet(sinks[1], SCHEMA, [whole[:1], whole[1:17], whole[17:]])
    expected = plain_frame(SCHEMA, whole)
    for sink in sinks:
        pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(sink.getvalue())), expected)


def test_csv_is_the_same_in_any_number_of_parts():
    whole = rows()
    sinks = [io.BytesIO(), io.BytesIO()]
    write_csv(sinks[0], SCHEMA, [whole])
    write_csv(sinks[1], SCHEMA, [whole[:1], whole[1:17], whole[17:]])
    assert sinks[0].getvalue() == sinks[1].getvalue()


def test_no_cell_of_a_csv_file_begins_a_formula():
    sink = io.BytesIO()
    write_csv(sink, SCHEMA, [rows(200)])
    read = pd.read_csv(io.BytesIO(sink.getvalue()), dtype=str)
    assert formulas(SCHEMA) == ["job", "=sum"]
    for cell in [*read.columns, *read["job"].unique()]:
        assert guard_cells(cell) == cell
    assert {"'" + FORMULA, "+1", "-", "'@x", "<5", "-5"} <= set(read["job"])
    assert "'=sum" in read.columns


def test_what_was_guarded_reads_back_without_the_apostrophe(tmp_path):
    whole = rows(60)
    with (tmp_path / "a.csv").open("wb") as file:
        write_csv(file, SCHEMA, [whole])
    frame = files.read(tmp_path / "a.csv").rename(columns={"'=sum": "=sum"})
    frame["job"] = frame["job"].str.removeprefix("'")
    kept = SCHEMA.select(["job", "=sum", "age", "left", "half", "code", "sure"])
    places = [SCHEMA.position(name) for name in kept.names]
    read = Codec.learn(frame[kept.names], kept).encode(frame[kept.names])
    np.testing.assert_array_equal(read, whole[:, places])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=1", "'=1"),
        ("+a", "'+a"),
        ("-a", "'-a"),
        ("@a", "'@a"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n1", "'\n1"),
        ("\uff1d1", "'\uff1d1"),
        ("-5", "-5"),
        ("+1e3", "+1e3"),
        ("-", "-"),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_formulas_are_told_from_numbers_and_words(text, shown):
    assert guard_cells(text) == shown

"""What columns seem to be: dates, identifiers, one value, words, personal data."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from limi.table import files, schema_files
from limi.table.recognised import recognise, tell_aside
from tests.table.courts import court_file

N = 40
RNG = np.random.default_rng(3)


def seen(cells, name="x"):
    frame = pd.DataFrame({name: cells, "other": np.arange(len(cells)) % 3})
    return recognise(frame, files.infer(frame))[name]


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%d.%m.%Y",
        "%m/%d/%y",
        "%d/%m/%Y",
        "%d-%m-%Y",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M:%SZ",
        "%d %b %Y",
        "%B %d, %Y",
    ],
)
def test_dates_are_told_however_they_are_written(form):
    days = pd.date_range("2019-01-28", periods=N, freq="11D").strftime(form)
    assert seen(days.tolist()).role == "date"
    assert seen([*days.tolist(), None]).role == "date"


@pytest.mark.parametrize("library", [pl.DataFrame, pa.table, pd.DataFrame])
def test_columns_of_dates_are_dates_in_every_library(library):
    days = pd.date_range("2020-01-01", periods=4).to_pydatetime().tolist()
    frame = library({"when": days, "a": [1, 2, 3, 4]})
    assert recognise(frame, files.infer(frame))["when"].role == "date"


@pytest.mark.parametrize(
    ("cells", "name", "role"),
    [
        ([f"case {k}" for k in range(N)], "x", "id"),
        ([f"case {k}" for k in range(N - 1)] + [None], "x", "id"),
        ([f"case {k // 2}" for k in range(N)], "x", "plain"),
        ([f"case {k}" for k in range(6)], "x", "plain"),  # all differ, but so few may
        (np.arange(1, N + 1), "x", "id"),
        (np.arange(N), "year", "id"),
        (np.arange(1950, 1950 + N), "year", "plain"),
        (RNG.permutation(N) + 1000, "customer_id", "id"),
        (RNG.permutation(N) + 1000, "customerId", "id"),
        (RNG.permutation(N) + 1000, "income", "plain"),
        (RNG.permutation(N) % 7, "zone_id", "plain"),
        ([2**60 + k for k in range(N)], "x", "id"),
        (["same"] * N, "x", "constant"),
        ([7] * N, "x", "constant"),
        (["yes", "no"] * 20, "x", "words"),
        (["Y", "N"] * 20, "x", "words"),
        (["red", "blue"] * 20, "x", "plain"),
        ([str(k % 25) for k in range(N)], "x", "numbers"),
        (["2020-13-45"] * 20 + ["a"] * 20, "x", "plain"),
        (["12-5", "3-44"] * 20, "x", "plain"),
    ],
)
def test_columns_are_told_by_what_they_hold(cells, name, role):
    assert seen(cells, name).role == role


@pytest.mark.parametrize(
    ("cells", "name", "kind"),
    [
        ([f"p{k % 9}@mail.example" for k in range(N)], "contact", "e-mail addresses"),
        ([f"+44 20 7946 0{k:03d}" for k in range(N)], "x", "phone numbers"),
        ([f"0207946{k:04d}" for k in range(N)], "phone", "phone numbers"),
        ([f"{k} Long Road" for k in range(N)], "street", "streets"),
        ([f"Ann {chr(65 + k % 25)}." for k in range(N)], "full_name", "names"),
        ([f"Ann{k % 25}" for k in range(N)], "first", "names"),
        ([f"first class {k % 25}" for k in range(N)], "first_class", ""),
        (["Iris", "Rose"] * 20, "plant name", ""),
        (RNG.permutation(N) + 1000, "customer_id", "identifiers"),
        ([f"{k:05d}" for k in range(N // 2)] * 2, "zip", ""),
        ([f"{10 + k % 25}-{20 + k % 25}" for k in range(N)], "range", ""),
    ],
)
def test_personal_data_are_told_by_cells_and_names(cells, name, kind):
    assert seen(cells, name).personal == kind


def test_text_that_holds_numbers_is_ordered_as_numbers_and_stays_text():
    frame = pd.DataFrame({"a": [str(k % 30) for k in range(60)], "b": ["2", "10"] * 30})
    schema = files.infer(frame)
    assert schema["a"].kind == "ordered"
    assert schema["a"].levels == tuple(str(k) for k in range(30))
    assert schema["b"].kind == "categorical"  # so few may be codes
    assert schema["b"].levels == ("2", "10")


def test_a_court_file_is_understood(tmp_path):
    court_file().to_csv(tmp_path / "court.csv", index=False)
    frame = files.read(tmp_path / "court.csv")
    assert len(frame.columns) == 53
    found = recognise(frame, files.infer(frame))
    roles = {role: [n for n, s in found.items() if s.role == role] for role in ("date", "id")}
    assert len(roles["date"]) == 14
    assert roles["id"] == ["id", "name", "c_case_number", "r_case_number", "vr_case_number"]
    assert "violent_recid" not in found  # every cell is missing
    assert {n for n, s in found.items() if s.role == "constant"} == {
        "type_of_assessment",
        "v_type_of_assessment",
    }
    assert {found["name"].personal, found["id"].personal} == {"names", "identifiers"}
    assert "'compas_screening_date'" in tell_aside(found, roles["date"])[0]


def test_a_schema_file_ignores_columns_and_takes_a_bare_kind(tmp_path):
    frame = pd.DataFrame({"case": [f"c{k}" for k in range(N)], "a": [1, 2] * 20, "b": [1, 3] * 20})
    place = tmp_path / "schema.toml"
    place.write_text(
        '[columns.case]\nkind = "ignored"\n[columns.a]\nkind = "categorical"\n', encoding="utf-8"
    )
    schema = schema_files.read_for(frame, place)
    assert schema.names == ["a", "b"]
    assert (schema["a"].kind, schema["a"].levels) == ("categorical", (1, 2))
    assert schema.guessed == {"b"}
    place.write_text('[columns.case]\nkind = "categorical"\n', encoding="utf-8")
    assert len(schema_files.read_for(frame, place)["case"].levels) == N


def test_what_a_schema_ignores_is_read_back_as_ignored(tmp_path):
    frame = pd.DataFrame({"case": [f"c{k}" for k in range(N)], "a": [1, 2] * 20})
    text = schema_files.dump(files.infer(frame, exclude=["case"]), None, {"case": "is an id"})
    (tmp_path / "schema.toml").write_text(text, encoding="utf-8")
    assert schema_files.read_for(frame, tmp_path / "schema.toml").names == ["a"]
    assert schema_files.parse(text).names == ["a"]

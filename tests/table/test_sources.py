"""Tables that are not a file of rows: workbooks, SQLite, DuckDB."""

import sqlite3

import pandas as pd
import pytest

from limi.audits.reopen import Run
from limi.errors import LimiError
from limi.table import files, sources

PEOPLE = pd.DataFrame({"age": [20, 30, 40], "sex": ["F", "M", "F"]})


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "a b:c.db"  # a colon in a path belongs to the path
    with sqlite3.connect(path) as opened:
        PEOPLE.to_sql('odd "name"', opened, index=False)
        opened.execute("create view grown as select * from 'odd \"name\"' where age > 25")
    opened.close()
    return path


def test_a_table_or_view_of_sqlite_is_read(database):
    pd.testing.assert_frame_equal(
        files.read(f'sqlite:{database}:odd "name"'), PEOPLE, check_dtype=False
    )
    assert files.read(f"sqlite:{database}:grown")["age"].tolist() == [30, 40]


def test_a_database_is_not_written_to(database):
    before = database.read_bytes()
    files.read(f"sqlite:{database}:grown")
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("sqlite:{}:grow", "did you mean 'grown'"),
        ("sqlite:{}", "there is no file"),  # its last colon parts a file from a table
        ("sqlite:people.db", "write sqlite:FILE:TABLE"),
        ("sqlite::", "write sqlite:FILE:TABLE"),
        ("sqlite:gone.db:people", "there is no file 'gone.db'"),
        ("sqlite:{}:a\0b", "has no table"),
    ],
)
def test_what_names_no_table_of_sqlite_is_refused(database, table, said):
    with pytest.raises(LimiError, match=said):
        files.read(table.format(database))


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "people.csv").write_text("age\n1\n")
    with pytest.raises(LimiError, match="cannot be read as an SQLite database"):
        files.read(f"sqlite:{tmp_path / 'people.csv'}:people")


def test_a_query_of_duckdb_reads_files(tmp_path):
    PEOPLE.to_parquet(tmp_path / "people.parquet")
    found = files.read(f"duckdb:select * from '{tmp_path / 'people.parquet'}' where age > 25")
    assert found["age"].tolist() == [30, 40]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("create table t (a int)", "must be a single SELECT"),
        ("select 1; select 2", "must be a single SELECT"),
        ("copy (select 1) to '{}/out.csv'", "must be a single SELECT"),
        ("install httpfs", "must be a single SELECT"),
        ("attach '{}/new.db'", "must be a single SELECT"),
        ("", "must be a single SELECT"),
        ("select gone from nowhere", "the DuckDB query fails"),
        ("select", "the DuckDB query fails"),
        ("select 1 as a where false", "holds no rows"),
    ],
)
def test_a_query_that_is_no_select_or_fails_is_refused(tmp_path, query, said):
    with pytest.raises(LimiError, match=said):
        files.read("duckdb:" + query.format(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_first_sheet_of_a_workbook_is_read_and_the_others_are_said(tmp_path):
    place = tmp_path / "People.XLSX"
    with pd.ExcelWriter(place, engine="openpyxl") as book:
        PEOPLE.to_excel(book, sheet_name="2025", index=False)
        PEOPLE.to_excel(book, sheet_name="2024", index=False)
    frame = files.read(place)
    pd.testing.assert_frame_equal(frame, PEOPLE, check_dtype=False)
    assert "only its first sheet '2025' was read, not '2024'" in files.notes_of(frame)[0]


def test_a_damaged_workbook_is_one_sentence(tmp_path):
    (tmp_path / "people.xlsx").write_bytes(b"PK\3\4 no workbook")
    with pytest.raises(LimiError, match="cannot be read as a table"):
        files.read(tmp_path / "people.xlsx")


def test_places_of_sources_move_with_a_folder(tmp_path):
    assert sources.move("sqlite:a.db:t", tmp_path) == f"sqlite:{tmp_path / 'a.db'}:t"
    assert sources.move("duckdb:select 1", tmp_path) == "duckdb:select 1"
    assert sources.move("a.csv", tmp_path) == str(tmp_path / "a.csv")
    assert sources.file_of(f"sqlite:{tmp_path}/a.db:t") == tmp_path / "a.db"
    assert sources.file_of("duckdb:select 1") is None


def test_a_run_folder_does_not_run_its_query_by_itself(tmp_path):
    lacking = dict.fromkeys(("target", "favorable", "model_sha256"))
    known = {
        "table": "duckdb:select 1",
        "origin": ".",
        "model": "x",
        "data_sha256": "",
        "format": 1,
    }
    run = Run(tmp_path, None, known | lacking)
    with pytest.raises(LimiError, match="is a query, which can read any file"):
        run.table()

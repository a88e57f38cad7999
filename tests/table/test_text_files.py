"""Text tables as they come: encodings, separators, numbers, names."""

import gzip

import numpy as np
import pandas as pd
import pytest

from limi.table import files, text_files

PEOPLE = "name;größe;plan\nJosé;1,80;a\nZoë;1,75;b\nÅse;;a\n"


def read(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content)
    frame = files.read(path)
    return frame, files.notes_of(frame)


@pytest.mark.parametrize(
    ("encoding", "told"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("cp1252", "cp1252"),
        ("latin-1", "cp1252"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("utf-32", "utf-32"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_every_usual_encoding_gives_the_same_table(tmp_path, encoding, told, packed):
    content = PEOPLE.encode(encoding)
    name = "t.csv.gz" if packed else "t.csv"
    frame, notes = read(tmp_path, gzip.compress(content) if packed else content, name)
    assert list(frame) == ["name", "größe", "plan"]
    assert frame["name"].tolist() == ["José", "Zoë", "Åse"]
    assert frame["größe"].iloc[:2].tolist() == [1.8, 1.75]
    assert np.isnan(frame["größe"].iloc[2])
    said = [note for note in notes if "UTF-8" in note]
    assert len(said) == (told is not None)
    assert told is None or f"read as {told};" in said[0]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_what_parts_all_lines_alike(tmp_path, separator):
    rows = [["a,b;c", "x"], ["1;2", "3,4,5"], ["6", "7|8;9"]]
    text = "\n".join(separator.join(f'"{cell}"' for cell in row) for row in rows)
    frame, notes = read(tmp_path, text.encode())
    assert [list(frame), *frame.astype(str).to_numpy().tolist()] == rows
    assert notes == ()


def test_a_title_with_more_commas_than_the_separator_does_not_mislead(tmp_path):
    text = "sum, of all, parts, in pounds;x\n1;2\n3;4\n"
    frame, _ = read(tmp_path, text.encode())
    assert list(frame) == ["sum, of all, parts, in pounds", "x"]


def test_one_column_is_a_table(tmp_path):
    assert read(tmp_path, b"x\n1\n2\n")[0]["x"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "wanted", "words"),
    [
        ("x;y\n1,5;a\n2;b\n", [1.5, 2.0], "a decimal comma"),
        ("x;y\n1.234,5;a\n-2,0;b\n", [1234.5, -2.0], "a decimal comma"),
        ("x;y\n1,234;a\n2,500;b\n", [1.234, 2.5], "a decimal comma"),
        ('x,y\n"1,234",a\n"22",b\n', [1234, 22], "commas between thousands"),
        ('x,y\n"1,234.5",a\n22,b\n', [1234.5, 22], "commas between thousands"),
        ('x,y\n"1,5",a\n"22",b\n', [1.5, 22], "a decimal comma"),
        ('x,y,z\n"1,234",a,"0,5"\n"2,000",b,"1,5"\n', [1.234, 2.0], "a decimal comma"),
        ("x\ty\n1,5\ta\n\tb\n3,5\tc\n", [1.5, None, 3.5], "a decimal comma"),
    ],
)
def test_numbers_with_commas_are_numbers_and_said(tmp_path, text, wanted, words):
    frame, notes = read(tmp_path, text.encode())
    assert frame["x"].dtype.kind in "if"
    assert [None if pd.isna(x) else x for x in frame["x"]] == wanted
    assert len(notes) == 1
    assert words in notes[0]
    assert "'x'" in notes[0]
    assert notes[0].startswith("the table 't.csv': ")


@pytest.mark.parametrize(
    "cells", [["1,5", "n/k"], ["1,2,3", "4,5,6"], ["12,", "3"], ["1,23,456", "1,2.3,4"], ["a", "b"]]
)
def test_cells_that_only_look_like_numbers_stay_text(tmp_path, cells):
    text = "x;y\n" + "".join(f"{cell};1\n" for cell in cells)
    frame, notes = read(tmp_path, text.encode())
    assert frame["x"].tolist() == cells
    assert notes == ()


def test_repeated_names_are_renamed_as_pandas_does_and_said(tmp_path):
    frame, (note,) = read(tmp_path, b"a,b,a,b,a\n1,2,3,4,5\n6,7,8,9,0\n")
    assert list(frame) == ["a", "b", "a.1", "b.1", "a.2"]
    assert "3 column names occur more than once" in note
    assert "'a.1', 'b.1'" in note
    _, (note,) = read(tmp_path, b"a,b,a\n1,2,3\n6,7,8\n")
    assert note == "the table 't.csv': a column name occurs twice; the second one is called 'a.1'"


def test_an_index_without_a_name_is_left_out_and_other_unnamed_columns_are_kept(tmp_path):
    plain = pd.DataFrame({"x": [5, 6, 7], "y": list("abc")})
    frame, (note,) = read(tmp_path, plain.to_csv().encode())
    pd.testing.assert_frame_equal(frame, pd.DataFrame({"x": [5, 6, 7], "y": list("abc")}))
    assert "counts the rows, so it was left out" in note
    plain.index = [3, 5, 9]
    frame, _ = read(tmp_path, plain.to_csv().encode())
    assert list(frame) == ["Unnamed: 0", "x", "y"]
    frame, (note,) = read(tmp_path, b"x,,y\n1,2,3\n4,5,6\n")
    assert list(frame) == ["x", "Unnamed: 1", "y"]
    assert "columns without a name are called 'Unnamed: 1'" in note


def test_a_feather_file_is_a_table(tmp_path):
    frame = pd.DataFrame({"x": [1, 2], "y": pd.Categorical(["a", "b"])})
    frame.to_feather(tmp_path / "t.feather")
    pd.testing.assert_frame_equal(files.read(tmp_path / "t.feather"), frame)


@pytest.mark.parametrize(
    ("version", "told"), [("2.2.3", True), ("3.0.6", True), ("3.1.0", False), ("4.0.0rc1", False)]
)
def test_an_older_pandas_is_told_to_read_numbers_exactly(version, told):
    assert bool(text_files._as_written(version)) == told

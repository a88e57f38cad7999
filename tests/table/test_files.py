"""Tables from files: read as their own library reads them, or refused in one sentence."""

import gzip
import os

import numpy as np
import pandas as pd
import pytest

from limi.errors import BadTable, InvalidInput
from limi.table import files, schema_files
from tests.table.mixed import pandas_frame


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
        ("t.ods", b"x", InvalidInput, "unknown ending"),
        ("t.csv", b"", BadTable, "is empty"),
        ("t.csv", b"a,b\n", BadTable, "holds no rows"),
        ("t.csv", b"a,b\n1,2\n1,2,3,4\n", BadTable, "cannot be read as a table"),
        ("t.csv", b"\xff\xfe\x00a", BadTable, "holds no rows"),
        ("t.csv", b"\x89PNG\r\n\x1a\n\x00\x00", BadTable, "it is not text"),
        ("t.csv", bytes(range(256)) * 9, BadTable, "it is not text"),
        ("t.feather", b"ARROW1 not really", BadTable, "cannot be read as a table"),
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


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("x" * 140_000 + ",y", "the header of .* cannot be read: field larger than field limit"),
        ('"' + "x\n" * 100_000, "cannot be read as a table: .*EOF inside string"),
        ("x" * (1 << 24), "has more than 16,777,216 characters"),
    ],
    ids=["long name", "open quote", "long line"],
)
def test_headers_that_are_none(tmp_path, header, words):
    (tmp_path / "a.csv").write_text(f"{header}\n1,2,3\n")
    with pytest.raises(BadTable, match=words):
        files.read(tmp_path / "a.csv")


def test_numbers_written_and_read_again_are_the_same(tmp_path):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=2_000) * 10.0 ** rng.integers(-20, 20, 2_000)
    pd.DataFrame({"x": numbers}).to_csv(tmp_path / "t.csv", index=False)
    assert files.read(tmp_path / "t.csv")["x"].tolist() == numbers.tolist()


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


@pytest.mark.parametrize("read", [files.read, schema_files.load])
def test_what_is_not_a_file_is_not_opened(tmp_path, read):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "zero.csv"):
        with pytest.raises(InvalidInput, match="is a pipe or a device, not a file; give"):
            read(tmp_path / name)
    # A folder may be a table, and then none of its files is one of these.
    folder = "is a pipe or a device" if read is files.read else "is a folder; give"
    with pytest.raises(InvalidInput, match=folder):
        read(tmp_path)
    with pytest.raises(InvalidInput, match="there is no file"):
        read(tmp_path / "nowhere.csv")
    for name in ("x" * 300 + ".csv", "a\x00.csv"):
        with pytest.raises(InvalidInput, match="cannot be read: "):
            read(tmp_path / name)
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    with pytest.raises(InvalidInput, match="symbolic links"):
        read(tmp_path / "loop.csv")


def test_rows_longer_than_the_header_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sex,a,y\nM,M,1,0\nF,F,2,1\n")
    with pytest.raises(BadTable, match="more cells than the header"):
        files.read(path)


def test_a_cut_gzip_file_is_one_sentence(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 5000)[:60])
    with pytest.raises(BadTable, match="cannot be read as a table"):
        files.read(path)

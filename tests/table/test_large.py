"""Tables in parts: what is inferred and drawn is what the whole table would give."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limi
from limi.errors import BadTable, InvalidInput, LimiError
from limi.table import large, parts
from limi.table.files import infer, notes_of, read
from limi.table.frames import Codec
from limi.table.grids import choose_grid
from limi.table.sketches import row_ranks
from limi.table.whole import whole_of

N = 1_200


@pytest.fixture(autouse=True)
def _few_at_once(monkeypatch):
    monkeypatch.setattr(parts, "_AT_ONCE", 100)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 91, N),
            "debt": rng.normal(0, 2, N).round(1),
            "income": rng.lognormal(10, 1, N),
            "children": np.where(np.arange(N) == 777, np.nan, rng.integers(0, 5, N)),
            "sex": rng.choice(["F", "M"], N),
            "job": np.where(np.arange(N) == 901, "astronaut", rng.choice(list("abcde"), N)),
            "grade": pd.Categorical(rng.choice(["low", "mid", "top"], N), ["low", "mid", "top"]),
            "married": rng.random(N) < 0.5,
            "ok": rng.choice(["yes", "no"], N),
        }
    )
    frame.loc[5, "debt"] = 7.25  # two decimals, once
    frame.loc[1_100, "income"] = 1e7
    frame.loc[300:320, "job"] = None
    return frame


def drawn(n):
    return np.sort(np.argsort(row_ranks(0, N))[:n])


@pytest.fixture(params=["parquet", "csv", "parquet folder", "csv folder"])
def place(request, table, tmp_path):
    """The table as files, and as pandas reads it."""
    kind, *many = request.param.split()
    if kind == "csv":
        table = table.assign(grade=table["grade"].astype(str))
    spans = [slice(0, 500), slice(500, 510), slice(510, N)] if many else [slice(0, N)]
    folder = tmp_path / "table"
    folder.mkdir()
    for number, span in enumerate(spans):
        part = table.iloc[span]
        path = folder / f"part-{number}.{kind}"
        if kind == "csv":
            part.to_csv(path, index=False)
        else:
            part.to_parquet(path, index=False, row_group_size=170)
    (folder / "_SUCCESS").touch()
    whole = pd.concat([table]) if kind == "csv" else table
    return (folder if many else folder / f"part-0.{kind}"), whole.reset_index(drop=True)


def test_a_sample_tells_what_the_whole_table_holds(place):
    path, table = place
    frame, whole = read(path, fit_rows=200), infer(table.drop(columns="ok"))
    assert infer(frame, exclude=("ok",)) == whole
    rows = Codec.learn(frame, whole).encode(frame)
    np.testing.assert_array_equal(rows, Codec.learn(table, whole).encode(table)[drawn(200)])
    told = whole_of(frame)
    assert told.n_rows == N
    assert "it has 1,200 rows, of which 200 were drawn at random" in notes_of(frame)[-1]
    for name in ("age", "income"):
        column = whole[name]
        cells = table[name].to_numpy(dtype=float)
        assert choose_grid(column, told.quantiles[name]) == choose_grid(column, cells)


def test_the_number_of_threads_changes_nothing(place, monkeypatch):
    path, _ = place
    frames = []
    for n in (1, 2, 7):
        monkeypatch.setattr(large, "n_cores", lambda n=n: n)
        frames.append(read(path, fit_rows=200))
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frame, frames[0])
        assert notes_of(frame) == notes_of(frames[0])
        one, other = whole_of(frame), whole_of(frames[0])
        pd.testing.assert_frame_equal(one.witness, other.witness)
        assert one.quantiles.keys() == other.quantiles.keys()
        for name, numbers in one.quantiles.items():
            np.testing.assert_array_equal(numbers, other.quantiles[name])


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_damaged_file_is_told_from_whichever_thread_reads_it(n, table, tmp_path, monkeypatch):
    monkeypatch.setattr(large, "n_cores", lambda: n)
    for name in ("a", "b"):
        table.to_parquet(tmp_path / f"{name}.parquet", index=False, row_group_size=170)
    content = bytearray((tmp_path / "b.parquet").read_bytes())
    content[200:2_000] = bytes(1_800)
    (tmp_path / "b.parquet").write_bytes(content)
    with pytest.raises(LimiError):
        read(tmp_path, fit_rows=200)


def test_a_sample_is_typed_as_pandas_types_the_whole(place):
    path, table = place
    frame = read(path, fit_rows=200)
    expected = table.iloc[drawn(200)].reset_index(drop=True)
    pd.testing.assert_frame_equal(frame, expected, check_flags=False)
    # Cells of levels that the sample lacks come back as the table stores them.
    schema = infer(frame)
    back = Codec.learn(frame, schema).decode(Codec.learn(table, schema).encode(table))
    pd.testing.assert_frame_equal(back, table)


def test_parts_of_a_table_under_the_limit_are_the_table(place):
    path, table = place
    frame = read(path)
    pd.testing.assert_frame_equal(frame, table, check_flags=False)
    assert whole_of(frame) is None
    pd.testing.assert_frame_equal(read(path, fit_rows=N), frame, check_flags=False)


def test_a_table_over_the_limit_is_drawn_from_unless_it_is_text(place, monkeypatch):
    path, _ = place
    monkeypatch.setattr("limi.table.files.DEFAULT_FIT_ROWS", 150)
    assert len(read(path)) == N
    if "csv" in str(path) or list(path.glob("*.csv")):
        with pytest.raises(InvalidInput, match=r"more than limi reads from text .* as Parquet"):
            read(path, most_cells=1_000)
    else:
        assert len(read(path, most_cells=1_000)) == 150


def test_folders_of_values_are_a_column_as_pandas_has_it(table, tmp_path):
    for year, span in ((2023, slice(0, 700)), (2024, slice(700, N))):
        folder = tmp_path / "table" / f"year={year}" / "place=a%20b"
        folder.mkdir(parents=True)
        table.iloc[span].to_parquet(folder / "people.parquet", index=False)
    frame = read(tmp_path / "table")
    expected = pd.read_parquet(tmp_path / "table")
    assert list(frame["year"].unique()) == [2023, 2024]
    pd.testing.assert_frame_equal(frame, expected, check_flags=False)
    some = read(tmp_path / "table", fit_rows=100)
    assert some["year"].dtype == expected["year"].dtype
    assert read(str(tmp_path / "table" / "year=*" / "*" / "*.parquet")).shape == (N, 11)


def test_types_go_together_across_files(tmp_path):
    for number, cells in enumerate(([1, 2], [2.5, 3.5])):
        pd.DataFrame({"a": cells, "b": ["x", "y"]}).to_parquet(tmp_path / f"{number}.parquet")
    assert read(tmp_path)["a"].tolist() == [1.0, 2.0, 2.5, 3.5]
    pd.DataFrame({"a": [1], "c": ["x"]}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(
        BadTable, match="belong to one table but have different columns; not in both: 'b', 'c'"
    ):
        read(tmp_path)
    (tmp_path / "2.parquet").unlink()
    pd.DataFrame({"a": [1]}).to_csv(tmp_path / "3.csv")
    with pytest.raises(InvalidInput, match="both text and Parquet"):
        read(tmp_path)


def test_text_is_typed_by_all_of_its_files(tmp_path):
    (tmp_path / "1.csv").write_text("a;b;c;d\n1;1,5;True;x\n2;2,25;;y\n")
    (tmp_path / "2.csv").write_text("a;b;c;d\nmany;3;False;1\n;4;True;\n")
    frame = read(tmp_path)
    assert frame["a"].tolist()[:3] == ["1", "2", "many"]
    assert frame["b"].tolist() == [1.5, 2.25, 3.0, 4.0]
    assert frame["c"].tolist()[2:] == [False, True]
    assert pd.isna(frame["c"][1])
    assert frame["d"].tolist()[:3] == ["x", "y", "1"]
    assert any("a decimal comma, as in '1,5'" in note for note in notes_of(frame))
    one = tmp_path / "one" / "all.csv"
    one.parent.mkdir()
    one.write_text("a;b;c;d\n1;1,5;True;x\n2;2,25;;y\nmany;3;False;1\n;4;True;\n")
    pd.testing.assert_frame_equal(frame, read(one), check_flags=False)
    for name, value in (("x", "old"), ("y", "new")):
        (tmp_path / f"kind={value}").mkdir()
        (tmp_path / f"kind={value}" / "1.csv").write_text(f"a,b\n1,{name}\n")
    folders = read(str(tmp_path / "kind=*" / "*.csv"))
    assert list(folders["kind"]) == ["new", "old"]
    assert folders["kind"].dtype == "category"
    (tmp_path / "3.csv").write_text("a;b\n1;2\n")
    with pytest.raises(BadTable, match="have different columns"):
        read(str(tmp_path / "*.csv"))


def test_a_first_column_that_counts_is_left_out_in_parts_too(tmp_path):
    frame = pd.DataFrame({"a": np.arange(300) % 7, "b": list("xyz") * 100})
    frame.to_csv(tmp_path / "t.csv")
    read_in_parts = read(tmp_path / "t.csv", fit_rows=300)
    pd.testing.assert_frame_equal(read_in_parts, read(tmp_path / "t.csv"), check_flags=False)
    assert any("counts the rows" in note for note in notes_of(read_in_parts))


def test_names_of_people_are_left_out_and_counted(table, tmp_path, monkeypatch):
    named = table.assign(name=[f"person {n}" for n in range(N)], number=2**60 + np.arange(N))
    named.to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr("limi.table.large._MOST_LEVELS", 500)
    frame = read(tmp_path / "t.parquet", fit_rows=100)
    assert list(frame.columns) == list(table.columns)
    told = " ".join(notes_of(frame))
    assert "'name' holds about 1,200 different values" in told
    assert "'number' holds whole numbers beyond 2^53" in told


def test_columns_that_a_sample_leaves_out_are_kept_where_all_rows_are_read(tmp_path):
    numbers = 2**60 + np.arange(20)
    for number, part in enumerate(np.split(numbers, 2)):
        people = pd.DataFrame({"number": part, "b": part % 3})
        people.to_parquet(tmp_path / f"{number}.parquet", index=False)
    for fit_rows in (None, 20):
        frame = read(tmp_path, fit_rows=fit_rows)
        assert frame["number"].tolist() == numbers.tolist()
        assert notes_of(frame) == ()
    assert infer(frame)["number"].levels == tuple(numbers.tolist())


def test_odd_cells_are_told_of_any_row(tmp_path):
    cells = np.where(np.arange(N) == 999, np.inf, 1.5)
    pd.DataFrame({"a": cells, "b": 1}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(BadTable, match="'a' holds 1 infinite values"):
        infer(read(tmp_path / "t.parquet", fit_rows=10))
    dates = [datetime.date(2020, 1, 1 + day % 28) for day in range(N)]
    pq.write_table(pa.table({"when": dates, "b": np.arange(N)}), tmp_path / "d.parquet")
    known = infer(read(tmp_path / "d.parquet", fit_rows=10))
    assert known == infer(read(tmp_path / "d.parquet"))
    assert len(known["when"].levels) == 28


@pytest.mark.parametrize("what", ["a folder without tables", "a pattern without files"])
def test_what_stands_for_no_file_is_told(tmp_path, what):
    place = tmp_path if what.startswith("a folder") else tmp_path / "no-*.parquet"
    with pytest.raises(InvalidInput, match="holds no table; give a CSV or Parquet file"):
        read(place)
    with pytest.raises(InvalidInput, match="fit-rows is 0"):
        read(place, fit_rows=0)


def approve(frame):
    return (frame["age"] > 40 + 10 * (frame["sex"] == "F")).to_numpy() * 1.0


def test_an_audit_of_a_sample_says_of_how_many_rows(place, tmp_path):
    path, _ = place
    result = limi.audit(
        approve,
        read(path, fit_rows=300),
        protected=["sex"],
        target="ok",
        favorable="yes",
        max_rows=300,
        rate_rows=1_000,
        out=tmp_path / "run",
        table_name=str(path),
    )
    summary = result.summary
    assert (summary.n_rows, len(result.problem.rows)) == (N, 300)
    assert summary.rates["real"].n == 300
    assert any("300 were drawn at random" in note for note in summary.notes)
    assert result.manifest["fit_rows"] == 300
    assert "all rows of the table" not in str(summary.as_dict())
    again = limi.reopen(tmp_path / "run", model=approve)
    assert again.problem.n_table == N

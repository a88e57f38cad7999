"""Known tables: their cells, their schemas, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import limi.data
from limi.errors import BadTable, InvalidInput
from limi.table.constraints import find_broken
from limi.table.frames import Codec

_TOOL = Path(__file__).parents[2] / "tools" / "build_tables.py"
_SPEC = importlib.util.spec_from_file_location("build_tables", _TOOL)
build_tables = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(build_tables)

TABLES = Path(limi.data.__file__).parent / "tables"
REFERENCE = Path(os.environ.get("LIMI_DATA") or Path(__file__).parents[3] / "shared" / "data")

needs_reference = pytest.mark.skipif(
    not (REFERENCE / "benchmark").is_dir(),
    reason="the reference encodings are elsewhere; set LIMI_DATA to the folder of benchmark/",
)

SHIPPED = [
    ("adult", "train"),
    ("adult", "test"),
    ("german-credit", "train"),
    ("bank-marketing", "train"),
    ("census", "train"),
    ("census", "test"),
    ("credit", "train"),
    ("bank", "train"),
]

LABELS = {
    ("adult", "train"): {"<=50K": 24_720, ">50K": 7_841},
    ("adult", "test"): {"<=50K": 12_435, ">50K": 3_846},
    ("german-credit", "train"): {1: 700, 2: 300},
    ("bank-marketing", "train"): {"no": 39_922, "yes": 5_289},
    ("census", "train"): {0: 24_720, 1: 7_841},
    ("census", "test"): {0: 12_435, 1: 3_846},
    ("credit", "train"): {0: 300, 1: 300},
    ("bank", "train"): {0: 39_922, 1: 5_289},
}


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    monkeypatch.delenv("LIMI_DATA", raising=False)


# -- what is shipped ----------------------------------------------------------------------


def test_shipped_files_have_their_sums_and_are_small():
    lines = (TABLES / "SHA256SUMS").read_text().splitlines()
    sums = dict(reversed(line.split("  ")) for line in lines)
    shipped = {path.name for path in TABLES.iterdir() if path.suffix in (".parquet", ".txt")}
    assert set(sums) == shipped
    for name, expected in sums.items():
        content = (TABLES / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == expected
        assert len(content) < 700_000


@pytest.mark.parametrize("name", build_tables.UCI)
def test_shipped_tables_are_the_uci_files_byte_for_byte(name):
    text = build_tables.uci_text(name, pd.read_parquet(TABLES / name))
    assert hashlib.sha256(text).hexdigest() == build_tables.UCI[name][1]


def test_credit_rows_are_those_of_the_published_rule():
    """All bad risks, and two stretches of the good ones sorted as comma-joined text."""
    raw = limi.data.load("german-credit").frame
    kept = np.loadtxt(TABLES / "credit-rows.txt", dtype=int)
    schema = limi.data.load("credit").schema
    coded = limi.data._encodings.credit(raw, schema, np.arange(len(raw)))
    coded["age"] = raw["age"]
    text = coded.astype(str).agg(",".join, axis=1)
    good = text[raw["credit_risk"] == 1].sort_values().index
    bad = text[raw["credit_risk"] == 2].index
    assert sorted(kept) == sorted([*bad, *good[:179], *good[302:423]])


# -- cells --------------------------------------------------------------------------------


@needs_reference
@pytest.mark.parametrize(
    ("name", "part", "file"),
    [
        ("census", "train", "census.csv"),
        ("census", "test", "census_test.csv"),
        ("credit", "train", "credit.csv"),
        ("bank", "train", "bank.csv.gz"),
        ("meps", "train", "meps.csv.gz"),
    ],
)
def test_encodings_equal_the_reference_cell_by_cell(name, part, file):
    path = REFERENCE if name == "meps" else None
    frame = limi.data.load(name, part=part, path=path).frame
    pd.testing.assert_frame_equal(frame, pd.read_csv(REFERENCE / "benchmark" / file))


@needs_reference
def test_adult_equals_the_reference_cell_by_cell():
    with gzip.open(REFERENCE / "raw" / "adult.data.gz") as file:
        expected = pd.read_csv(file, header=None, skipinitialspace=True, na_values=["?"])
    frame = limi.data.load("adult").frame
    expected.columns = frame.columns
    pd.testing.assert_frame_equal(frame, expected)


def test_census_follows_its_rules_on_rows_worked_out_by_hand():
    frame = limi.data.load("census").frame
    first = [3, 5, 3, 0, 2, 8, 3, 0, 1, 2, 0, 40, 0, 0]
    assert frame.iloc[0].tolist() == first
    assert set(frame.dtypes) == {np.dtype(np.int64)}
    # Row 14: Private, Assoc-voc, Married-civ-spouse, Craft-repair, country unknown, over 50K.
    assert frame.iloc[14].tolist() == [4, 0, 6, 6, 0, 1, 2, 1, 1, 0, 0, 40, 100, 1]


def test_bank_rounds_negative_balances_down_and_cuts_the_ends():
    raw, coded = limi.data.load("bank-marketing").frame, limi.data.load("bank").frame
    assert coded["balance"][raw["balance"] == -1].unique().tolist() == [-1]
    assert coded["balance"][raw["balance"] < -1_000].unique().tolist() == [-20]
    assert coded["duration"].max() == 99
    assert ((raw["pdays"] == -1) == (coded["pdays"] == 1)).all()


@pytest.mark.parametrize(("name", "part"), SHIPPED)
def test_labels_and_rows_are_counted_as_published(name, part):
    table = limi.data.load(name, part=part)
    assert Counter(table.frame[table.target].tolist()) == LABELS[name, part]
    assert table.frame.columns[-1] == table.target
    assert table.favorable in LABELS[name, part]


def test_a_question_mark_of_adult_is_missing():
    frame = limi.data.load("adult").frame
    gaps = frame.isna().sum()
    assert gaps[gaps > 0].to_dict() == {
        "workclass": 1836,
        "occupation": 1843,
        "native_country": 583,
    }


def test_a_caller_may_change_its_frame():
    mine = limi.data.load("census").frame
    mine["age"] = 0
    mine.iloc[0, 3] = -1
    assert limi.data.load("census").frame["age"].min() == 1
    assert limi.data.load("census").frame.iloc[0, 3] == 0


# -- schemas ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "part"), SHIPPED)
def test_frames_fit_their_schema_and_come_back(name, part):
    table = limi.data.load(name, part=part)
    features = table.frame.drop(columns=table.target)
    assert table.schema.names == list(features.columns)
    assert not table.schema.protected
    codec = Codec.learn(features, table.schema)
    pd.testing.assert_frame_equal(codec.decode(codec.encode(features)), features)


@pytest.mark.parametrize("name", ["adult", "german-credit", "bank-marketing", "census", "bank"])
def test_every_level_and_end_of_a_range_occurs(name):
    parts = ["train", "test"] if name in ("adult", "census") else ["train"]
    frame = pd.concat([limi.data.load(name, part=part).frame for part in parts])
    for column in limi.data.load(name).schema.columns:
        cells = frame[column.name]
        assert column.missing == cells.isna().any()
        if column.kind == "numerical":
            assert (column.low, column.high, column.step) == (cells.min(), cells.max(), 1)
        else:
            assert set(column.levels) == set(cells.dropna())


@pytest.mark.parametrize("name", limi.data.names())
def test_every_column_says_what_it_means(name):
    assert all(column.meaning for column in limi.data._schema(name).columns)


def test_adult_education_is_ordered_as_its_rank():
    table = limi.data.load("adult")
    column = table.schema["education"]
    ranks = table.frame.groupby("education")["education_num"].first()
    assert column.kind == "ordered"
    assert [ranks[level] for level in column.levels] == list(range(1, 17))


def test_shipped_rules_are_kept_by_the_rows_but_for_those_that_the_file_counts():
    for name, parts in (("adult", ("train", "test")), ("bank-marketing", ("train",))):
        schema = limi.data.load(name).schema
        frame = pd.concat([limi.data.load(name, part=part).frame for part in parts])
        rows = Codec.learn(frame, schema).encode(frame)
        counts = find_broken(schema.enforcer.constraints, rows).sum(axis=0)
        broken = {
            rule.name: int(count)
            for rule, count in zip(schema.enforcer.constraints, counts, strict=True)
            if count
        }
        told = {"husband_is_male": 1, "wife_is_female": 3, "married_is_family": 23}
        assert broken == (told if name == "adult" else {})
        assert not schema.enforcer.disagrees(rows).any()


def test_the_encodings_of_the_papers_have_no_rules():
    assert not any(limi.data._schema(name).rules for name in limi.data.encodings())


def test_codes_are_shown_by_their_meaning():
    census, german = limi.data.load("census").schema, limi.data.load("german-credit").schema
    assert census["workclass"].show(census["workclass"].code(100)) == "? (missing)"
    assert german["purpose"].show(german["purpose"].code("A410")) == "others"


@pytest.mark.parametrize("name", ["adult", "german-credit", "bank-marketing", "census", "credit"])
def test_usual_protected_columns_can_be_protected(name):
    table = limi.data.load(name)
    assert table.protected
    for column in table.protected:
        assert table.schema.protect([column]).protected == (column,)


# -- declared bounds ----------------------------------------------------------------------


def test_paper_bounds_cut_the_rows_of_census():
    found, declared = limi.data.load("census"), limi.data.load("census", domain="paper")
    assert declared.schema["workclass"].levels == tuple(range(8))
    assert declared.schema["native_country"].levels == tuple(range(40))
    assert (declared.schema["fnlwgt"].high, declared.schema["capital_loss"].high) == (39, 39)
    cut = (declared.frame != found.frame).any(axis=1)
    assert cut.sum() == 2_427
    was_missing = found.frame["workclass"] == 100
    assert declared.frame["workclass"][was_missing].unique().tolist() == [7]
    assert set(declared.frame.dtypes) == {np.dtype(np.int64)}


@pytest.mark.parametrize("name", ["census", "credit", "bank"])
def test_paper_bounds_hold_every_row(name):
    table = limi.data.load(name, domain="paper")
    features = table.frame.drop(columns=table.target)
    codec = Codec.learn(features, table.schema)
    assert codec.encode(features).shape == features.shape


def test_paper_bounds_of_bank_and_credit_are_wider_than_the_data():
    bank, credit = (limi.data.load(n, domain="paper").schema for n in ("bank", "credit"))
    assert (bank["pdays"].low, bank["pdays"].high) == (-1, 39)
    assert 7 in credit["purpose"].levels
    assert 7 not in limi.data.load("credit").schema["purpose"].levels
    assert (credit["duration"].low, credit["age"].high) == (1, 8)


# -- meps ---------------------------------------------------------------------------------


def _tiny_meps() -> pd.DataFrame:
    schema = limi.data._schema("meps")
    cells = {c.name: [int(c.low if c.kind == "numerical" else c.levels[0])] for c in schema.columns}
    return pd.DataFrame({**cells, "utilization": [1]})


def test_meps_without_a_file_says_how_to_get_it():
    with pytest.raises(InvalidInput, match=r"LIMI_tabular/datasets/meps.*LIMI_DATA"):
        limi.data.load("meps")


@pytest.mark.parametrize("place", ["meps.csv.gz", "benchmark/meps.csv.gz"])
def test_meps_is_found_below_the_data_folder(tmp_path, monkeypatch, place):
    (tmp_path / place).parent.mkdir(exist_ok=True)
    _tiny_meps().to_csv(tmp_path / place, index=False)
    monkeypatch.setenv("LIMI_DATA", str(tmp_path))
    pd.testing.assert_frame_equal(limi.data.load("meps").frame, _tiny_meps())


def test_meps_as_the_papers_share_it_is_read_too(tmp_path):
    published = _tiny_meps().rename(columns={"utilization": "label"}).rename(columns=str.upper)
    published.rename(columns={"LABEL": "label"}).to_csv(tmp_path / "meps", index=False)
    assert limi.data.load("meps", path=tmp_path / "meps").frame["utilization"].tolist() == [1]


def test_a_wrong_meps_file_is_refused(tmp_path):
    file = tmp_path / "meps.csv"
    _tiny_meps().drop(columns="sex").to_csv(file, index=False)
    with pytest.raises(BadTable, match="lacks sex"):
        limi.data.load("meps", path=file)
    _tiny_meps().assign(sex=5).to_csv(file, index=False)
    os.utime(file, ns=(1, 1))
    with pytest.raises(BadTable, match="'sex' holds 5"):
        limi.data.load("meps", path=file)
    with pytest.raises(InvalidInput, match="not a file"):
        limi.data.load("meps", path=tmp_path / "nowhere")


# -- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "adlut"}, "did you mean 'adult'"),
        ({"name": "credit", "part": "test"}, "there are test rows for adult, adult-hours, census"),
        ({"name": "census", "part": "both"}, "part is 'both'"),
        ({"name": "adult", "domain": "paper"}, "census, credit, bank, meps"),
        ({"name": "census", "domain": "papers"}, "did you mean 'paper'"),
        ({"name": "census", "path": "census.csv"}, "path is for meps"),
    ],
)
def test_what_does_not_exist_is_refused(arguments, words):
    with pytest.raises(InvalidInput, match=words):
        limi.data.load(**arguments)


def test_names_lists_raw_tables_and_encodings():
    raw = ["adult", "german-credit", "bank-marketing", "german-amount", "adult-hours"]
    assert limi.data.names() == [*raw, "census", "credit", "bank", "meps"]
    assert limi.data.encodings() == ["census", "credit", "bank", "meps"]


def test_made_tables_are_those_of_uci_with_another_target():
    german, amount = (limi.data.load(name) for name in ("german-credit", "german-amount"))
    assert amount.frame.credit_amount.tolist() == german.frame.credit_amount.tolist()
    assert list(amount.frame)[-1] == amount.target
    assert "credit_risk" not in amount.frame
    assert amount.favorable is None
    adult, made = (limi.data.load(name) for name in ("adult", "adult-hours"))
    worked = adult.frame.hours_per_week
    wanted = ["under 35" if h < 35 else "35 to 44" if h < 45 else "45 or more" for h in worked]
    assert made.frame.hours.tolist() == wanted
    assert made.schema.names == [name for name in made.frame if name != "hours"]
    assert len(limi.data.load("adult-hours", part="test").frame) == 16281


def test_titles_need_no_file():
    assert all(limi.data.title(name) for name in limi.data.names())
    with pytest.raises(InvalidInput, match="did you mean 'census'"):
        limi.data.title("sensus")


@pytest.mark.parametrize("name", limi.data.names())
def test_licence_and_citation_are_stated(name, tmp_path):
    file = tmp_path / "meps.csv"
    _tiny_meps().to_csv(file, index=False)
    table = limi.data.load(name, path=file if name == "meps" else None)
    assert table.title
    assert table.source
    assert table.notes
    assert table.licence == "CC BY 4.0" or name == "meps"
    if name != "meps":
        doi = table.citation.rpartition("doi:")[2]
        assert doi in (TABLES / "ATTRIBUTION.md").read_text()

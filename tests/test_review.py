"""Defects that were found once, and must not come back."""

import gzip

import numpy as np
import pandas as pd
import pytest

import limi
from limi.errors import BadTable, InvalidInput
from limi.search.check import check_rows
from limi.table import files, schema_files
from limi.table.frames import plain
from limi.table.rows import distinct, uniform
from limi.table.schema import Column, Schema
from tests.toy import MIXED, Linear, integers


def frame(n=60, **more):
    rng = np.random.default_rng(0)
    columns = {"sex": rng.choice(["F", "M"], n), "a": rng.integers(0, 30, n)}
    return pd.DataFrame(columns | more | {"y": rng.integers(0, 2, n)})


def model(asked):
    return 1 / (1 + np.exp(15 - asked["a"] - 4 * (asked["sex"] == "M")))


def audit(table, score=model, **more):
    given = {"protected": ["sex"], "target": "y", "method": "real", "generator": None, **more}
    return limi.audit(score, table, **given)


@pytest.mark.parametrize("method", ["real", "themis", "natural"])
def test_a_constant_column_is_no_trouble(method):
    table = frame(const="k")[["const", "sex", "a", "y"]]
    result = audit(table, method=method, generator="trees", max_rows=500, rate_rows=50)
    assert result.summary.findings > 0


def test_constant_columns_alone_make_one_key():
    schema = Schema((integers("c", 3, 3), integers("p", 0, 1))).protect(["p"])
    rows = uniform(schema, 10, np.random.default_rng(0))
    assert len(distinct(schema, rows).first) == 1
    assert check_rows(Linear((0.0, 1.0), -0.5), schema, rows).flips.all()


def test_themis_scores_do_not_depend_on_the_kind_of_budget():
    table = frame(group=np.arange(60) % 3)
    given = {"protected": ["group"], "method": "themis", "rate_rows": 0}

    def follows(asked):
        return (asked["group"] == 2).to_numpy() * 1.0

    for budget in ({"max_rows": 2_000}, {"max_queries": 3_000, "max_rows": None}):
        scores = audit(table, follows, **given, **budget).summary.scores
        assert scores["group_discrimination"] == 1.0


def test_causes_are_left_out_where_they_are_not_known():
    table = frame(group=np.arange(60) % 3)
    given = {"protected": ["sex", "group"]}
    assert "flipped_by" in audit(table, **given).findings
    thrifty = audit(table, **given, max_queries=400, rate_rows=0)
    assert thrifty.summary.findings > 0
    assert "flipped_by" not in thrifty.findings


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


def test_columns_of_text_and_numbers_are_refused_before_any_query():
    with pytest.raises(BadTable, match="mixes text and numbers"):
        audit(frame(zip=pd.Series([1, "AB1"] * 30, dtype=object)))


def test_a_changed_function_cannot_take_over_an_unfinished_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").write_text(
        "n = []\ndef f(x):\n    n.append(1)\n    if len(n) > 14: raise RuntimeError('down')\n"
        "    return (x['sex'] == 'M').to_numpy() * 1.0\n"
    )
    given = {"protected": ["sex"], "target": "y", "method": "themis", "generator": None}
    given |= {"max_rows": 5_000, "max_batch": 4, "rate_rows": 4, "out": tmp_path / "run"}
    with pytest.raises(limi.LimiError, match="down"):
        limi.audit("python:m.py:f", frame(), **given)
    assert (tmp_path / "run.partial").exists()
    (tmp_path / "m.py").write_text("def f(x):\n    return (x['a'] > 3).to_numpy() * 1.0\n")
    with pytest.raises(InvalidInput, match="other settings"):
        limi.audit("python:m.py:f", frame(), resume=True, **given)


@pytest.mark.parametrize("spec", ["age=30.5,40.5", "age=30.5-50.5:1", "price=0.05,0.1"])
def test_protected_values_lie_on_the_column_s_grid(spec):
    with pytest.raises(InvalidInput, match="in steps of"):
        MIXED.protect([spec])


@pytest.mark.parametrize(
    "wanted", [{"sex": []}, {"age": [20, None]}, [("sex", "F")], ["job=a\nb"], {"sex": 3}]
)
def test_odd_ways_to_name_protected_values(wanted):
    with pytest.raises(InvalidInput):
        MIXED.protect(wanted)


def test_a_name_with_an_equals_sign_takes_values():
    schema = Schema(
        (Column(name="a=b", kind="categorical", levels=("x", "y,z", "w")), *MIXED.columns)
    )
    assert schema.protect(['a=b=x,"y,z"']).protected_codes == ((0.0, 1.0),)


@pytest.mark.parametrize(
    "text", ["protected = 3", '[columns.a]\nkind = "categorical"\nlevels = "MF"']
)
def test_odd_schema_files(text):
    with pytest.raises(InvalidInput):
        schema_files.parse(
            f'[columns.b]\nkind = "numerical"\n{text}' if text[10:11] == "=" else text
        )


def test_labels_that_became_floats_can_be_named_as_written():
    table = frame()
    table["y"] = (table["y"] + 1).astype(float)
    table.loc[0, "y"] = np.nan
    assert audit(table, favorable="2").summary.favorable == "2.0"


def test_dates_are_text_in_every_unit():
    assert plain(np.datetime64("2020-01-02", "ns")) == plain(np.datetime64("2020-01-02T00", "s"))
    assert str(plain(np.datetime64("2020-01-02", "ns"))).startswith("2020-01-02")


def test_force_replaces_nothing_but_runs(tmp_path, monkeypatch):
    kept = tmp_path / "thesis"
    kept.mkdir()
    (kept / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidInput, match="holds other files"):
        audit(frame(), out=kept, force=True)
    assert (kept / "thesis.txt").read_text() == "years of work"
    monkeypatch.chdir(kept)
    for place in (".", ".."):
        with pytest.raises(InvalidInput, match="name a new folder"):
            audit(frame(), out=place, force=True)


def test_a_report_that_cannot_be_written_is_one_sentence(tmp_path):
    with pytest.raises(InvalidInput, match="there is no folder"):
        audit(frame()).report(tmp_path / "none" / "x.html")


def test_a_boolean_of_one_value_cannot_be_protected():
    with pytest.raises(InvalidInput, match="one value only"):
        audit(frame(vip=True), protected=["vip"])

"""A run opened again is the run it was, wherever it is opened from."""

import json
import os
import shutil
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import skops.io as sio
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import limi
from limi.errors import BadModel, BadTable, CorruptStore, InvalidInput
from tests.repairs.test_repair import people as borrowers
from tests.repairs.test_repair import pipeline


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 60, n),
            "sex": rng.choice(["F", "M"], n),
            "race": rng.choice(["a", "b", "c"], n),
            "job": rng.choice(["clerk", "nurse", "smith"], n),
        }
    )
    frame["ok"] = np.where(rng.random(n) < 0.5, "yes", "no")
    return frame


pytestmark = pytest.mark.usefixtures("untried")

FRAME = people()


def model(frame):
    """Flips by sex for nurses and smiths of some ages, by race for clerks of others."""
    by_sex = (frame["sex"] == "M") & frame["job"].isin(["nurse", "smith"]) & (frame["age"] > 40)
    by_race = (frame["race"] == "c") & (frame["job"] == "clerk") & (frame["age"] < 30)
    return (0.3 + 0.5 * by_sex + 0.4 * by_race).to_numpy()


GIVEN = {
    "protected": ["sex", "race"],
    "target": "ok",
    "favorable": "yes",
    "method": "natural",
    "max_rows": 3000,
    "rate_rows": 3000,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return folder / "run", limi.audit(model, FRAME, out=folder / "run", **GIVEN)


def test_everything_a_run_had_is_there_again(made):
    folder, result = made
    again = limi.reopen(folder, table=FRAME, model=model)
    pd.testing.assert_frame_equal(again.findings, result.findings)
    pd.testing.assert_frame_equal(again.ranked(20), result.ranked(20))
    pd.testing.assert_frame_equal(again.representative(30), result.representative(30))
    assert {"sex", "race"} <= set(again.findings["flipped_by"])
    assert (again.findings["naturalness"] <= 1).all()
    assert again.rates == result.rates
    assert again.summary == result.summary
    assert again.metrics() == json.loads(json.dumps(result.metrics()))
    assert again.where() == result.where() != []
    assert np.array_equal(
        again.inside(again.where()[0], FRAME), result.inside(again.where()[0], FRAME)
    )
    for other in ("age > 3", None, again.where()):
        with pytest.raises(InvalidInput, match="where"):
            again.inside(other, FRAME)
    assert dict(again.manifest) == json.loads(json.dumps(dict(result.manifest)))
    assert again.problem.model_name == result.problem.model_name == "model"
    assert repr(again) == repr(result)


def test_a_run_without_findings_opens_too(tmp_path):
    limi.audit(lambda frame: np.full(len(frame), 0.2), FRAME, out=tmp_path / "run", **GIVEN)
    again = limi.reopen(tmp_path / "run", table=FRAME, model=lambda frame: np.full(len(frame), 0.2))
    assert len(again.findings) == 0
    assert again.where() == []


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"table": FRAME.drop(columns="job")}, BadTable, "the frame is not the one that the run"),
        ({"table": FRAME.drop(columns="ok")}, BadTable, "no target column 'ok'"),
        ({"table": FRAME.assign(job="pilot")}, BadTable, "the frame is not the one that the run"),
        ({"table": FRAME.assign(age="old")}, BadTable, "the frame is not the one that the run"),
        ({"table": FRAME[:0]}, BadTable, "the table is empty"),
        (
            {"table": people(seed=1)},
            BadTable,
            "the frame has different rows from what the run tested",
        ),
        ({"table": "none.csv"}, InvalidInput, "there is no file 'none.csv'"),
        ({"model": lambda f: f["wage"]}, BadModel, "the model raised KeyError"),
        (
            {"model": lambda f: 1 - model(f)},
            BadModel,
            "the model gives answers that differ from those in the run",
        ),
        ({"model": LogisticRegression()}, BadModel, "the model does not fit the run"),
        ({"model": "skops:none.skops"}, InvalidInput, "there is no file 'none.skops'"),
        ({"model": "none"}, InvalidInput, "is not of the form KIND:PLACE"),
    ],
)
def test_a_table_or_a_model_that_does_not_fit_gets_one_sentence(made, change, error, words):
    folder, _ = made
    with pytest.raises(error, match=words) as caught:
        limi.reopen(folder, **{"table": FRAME, "model": model} | change)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder with a table and a model, and a run that was started there."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "data").mkdir()
    FRAME.to_csv(folder / "data/people.csv", index=False)
    known = pd.read_csv(folder / "data/people.csv")
    fitted = make_pipeline(OneHotEncoder(), LogisticRegression())
    sio.dump(fitted.fit(known.drop(columns="ok"), known["ok"]), folder / "model.skops")
    here = os.getcwd()
    try:
        os.chdir(folder)
        limi.audit(
            *("skops:model.skops", known),
            **GIVEN | {"method": "real", "generator": None, "rate_rows": 0},
            table_name="data/people.csv",
            out="runs/first",
        )
    finally:
        os.chdir(here)
    return folder


def test_relative_paths_start_where_the_run_was_started(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(limi.reopen(project / "runs/first").problem.rows) == len(FRAME)
    monkeypatch.chdir(project / "runs/first")
    assert len(limi.reopen(".").problem.rows) == len(FRAME)
    # A project that moves as a whole still holds together.
    shutil.copytree(project, tmp_path / "elsewhere")
    assert len(limi.reopen(tmp_path / "elsewhere/runs/first").problem.rows) == len(FRAME)


def test_the_error_names_the_path_that_was_tried(project, tmp_path, monkeypatch):
    shutil.copytree(project / "runs/first", tmp_path / "a/b/first")
    monkeypatch.chdir(project)  # where the files lie; but they are not sought here
    tried = tmp_path / "a/data/people.csv"
    with pytest.raises(InvalidInput) as caught:
        limi.reopen(tmp_path / "a/b/first")
    assert f"is not at {str(tried)!r}" in str(caught.value)
    with pytest.raises(InvalidInput) as caught:
        limi.reopen(tmp_path / "a/b/first", table="data/people.csv")
    assert f"is not at {str(tmp_path / 'a/model.skops')!r}" in str(caught.value)
    again = limi.reopen(tmp_path / "a/b/first", table="data/people.csv", model="skops:model.skops")
    assert len(again.problem.rows) == len(FRAME)


def test_folders_of_earlier_versions_start_here(project, tmp_path, monkeypatch):
    shutil.copytree(project / "runs/first", tmp_path / "first")
    path = tmp_path / "first/manifest.json"
    tree = json.loads(path.read_text())
    del tree["origin"]
    path.write_text(json.dumps(tree))
    monkeypatch.chdir(project)
    assert len(limi.reopen(tmp_path / "first").problem.rows) == len(FRAME)


# -- a table and a model in files ------------------------------------------------------------

PLAIN = {"protected": ["sex"], "target": "ok", "favorable": "yes"}
SMALL = {"method": "natural", "max_rows": 800, "rate_rows": 0}


@pytest.fixture(scope="module")
def filed(tmp_path_factory):
    """A run folder beside its table and model, and the result as it was."""
    folder = tmp_path_factory.mktemp("run")
    frame = borrowers()
    frame["score"] = frame["income"] % 3  # a column that our own name clashes with
    frame.loc[3, "debt"] = np.nan
    frame = frame[["income", "debt", "score", "sex", "ok"]]
    frame.to_csv(folder / "people.csv", index=False)
    known = pd.read_csv(folder / "people.csv")
    filled = make_filled()
    sio.dump(filled.fit(known.drop(columns="ok"), known["ok"]), folder / "model.skops")
    result = limi.audit(
        f"skops:{folder / 'model.skops'}",
        known,
        out=folder / "out",
        table_name=str(folder / "people.csv"),
        **PLAIN,
        **SMALL,
    )
    return folder, result


def make_filled():
    columns, last = pipeline().steps[0][1], pipeline().steps[1][1]
    return make_pipeline(columns, SimpleImputer(), last)


def test_a_folder_opens_as_the_result_it_was(filed):
    folder, result = filed
    again = limi.reopen(folder / "out")
    assert np.array_equal(again.problem.rows, result.problem.rows, equal_nan=True)
    assert np.array_equal(again.problem.labels, result.problem.labels)
    for name in ("rows", "partner", "score", "partner_score", "origin"):
        mine, before = getattr(again.found, name), getattr(result.found, name)
        if mine.dtype.kind == "f":
            assert np.allclose(mine, before, rtol=0, atol=0, equal_nan=True), name
        else:
            assert np.array_equal(mine, before), name
    assert again.problem.schema == result.problem.schema
    assert again.summary.as_dict() == result.summary.as_dict()


def copied(filed, tmp_path, **changes):
    """The run folder with another manifest."""
    folder, _ = filed
    shutil.copytree(folder / "out", tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return tmp_path / "out"


def test_a_moved_table_or_model_can_be_named(filed, tmp_path):
    folder, result = filed
    moved = copied(filed, tmp_path, table="gone.csv", model="skops:gone.skops")
    with pytest.raises(InvalidInput, match=r"is not at '.*gone.csv'.*table.*FILE"):
        limi.reopen(moved)
    with pytest.raises(InvalidInput, match=r"is not at '.*gone.skops'.*model.*skops:PLACE"):
        limi.reopen(moved, table=str(folder / "people.csv"))
    again = limi.reopen(
        moved, table=str(folder / "people.csv"), model=f"skops:{folder / 'model.skops'}"
    )
    assert len(again.found) == len(result.found)


@pytest.mark.parametrize(
    ("column", "told"), [("income", "different rows from"), ("ok", "different labels from")]
)
def test_a_changed_table_is_refused(filed, tmp_path, column, told):
    folder, _ = filed
    frame = pd.read_csv(folder / "people.csv")
    frame.loc[[0, 1], column] = frame.loc[[1, 0], column].to_numpy()
    if column == "ok":
        frame["ok"] = frame["ok"].map({"yes": "no", "no": "yes"})
    else:
        frame["income"] = frame["income"].to_numpy()[::-1]
    frame.to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(BadTable, match=told):
        limi.reopen(folder / "out", table=str(tmp_path / "other.csv"))


def test_a_changed_model_is_refused(filed, tmp_path):
    folder, _ = filed
    frame = pd.read_csv(folder / "people.csv")
    other = make_filled().fit(frame.drop(columns="ok"), frame["ok"].to_numpy()[::-1])
    sio.dump(other, tmp_path / "other.skops")
    with pytest.raises(BadModel, match="has changed since the run"):
        limi.reopen(folder / "out", model=f"skops:{tmp_path / 'other.skops'}")
    # A folder that knows no sum of its model is held to the scores it wrote.
    unknown = copied(filed, tmp_path, model_sha256=None)
    with pytest.raises(BadModel, match="gives answers that differ from those in the run"):
        limi.reopen(unknown, model=f"skops:{tmp_path / 'other.skops'}")


def test_a_model_in_memory_or_one_that_runs_code_must_be_named(filed, tmp_path):
    with pytest.raises(InvalidInput, match=r"a Pipeline that was given in memory.*limi.repair"):
        limi.reopen(copied(filed, tmp_path / "a", model="Pipeline"))
    with pytest.raises(InvalidInput, match=r"opening it may run code.*model.*python:evil.py:f"):
        limi.reopen(copied(filed, tmp_path / "b", model="python:evil.py:f"))


def test_a_kind_of_another_package_must_be_named(filed, tmp_path, monkeypatch):
    monkeypatch.setattr("limi.models.names", lambda: ["plugin"])
    monkeypatch.setattr("limi.models.get", lambda kind: ModuleType(kind))
    with pytest.raises(InvalidInput, match=r"opening it may run code.*model.*plugin:x"):
        limi.reopen(copied(filed, tmp_path, model="plugin:x"))


def test_what_is_no_run_folder_is_said(filed, tmp_path):
    with pytest.raises(InvalidInput, match="there is no run folder"):
        limi.reopen(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorruptStore, match="not a run folder of limi"):
        limi.reopen(tmp_path / "empty")
    with pytest.raises(CorruptStore, match="written by a newer limi"):
        limi.reopen(copied(filed, tmp_path / "newer", format=99))
    with pytest.raises(CorruptStore, match="format is 'one'"):
        limi.reopen(copied(filed, tmp_path / "odd", format="one"))
    damaged = copied(filed, tmp_path / "damaged")
    (damaged / "findings.parquet").write_bytes(b"PAR1")
    with pytest.raises(CorruptStore, match=r"findings in .* cannot be read"):
        limi.reopen(damaged)
    (damaged / "findings.parquet").unlink()
    with pytest.raises(CorruptStore, match=r"has no findings.parquet"):
        limi.reopen(damaged)
    (damaged / "manifest.json").write_text("[]")
    with pytest.raises(CorruptStore, match="damaged"):
        limi.reopen(damaged)

"""A run opened again is the run it was, wherever it is opened from."""

import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import limi
from limi.errors import BadModel, BadTable, InvalidInput


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
        ({"table": people(seed=1)}, BadTable, "the frame holds other rows than the run tested"),
        ({"table": "none.csv"}, InvalidInput, "there is no file 'none.csv'"),
        ({"model": lambda f: f["wage"]}, BadModel, "the model raised KeyError"),
        (
            {"model": lambda f: 1 - model(f)},
            BadModel,
            "the model answers otherwise than in the run",
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
    sio = pytest.importorskip("skops.io")
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

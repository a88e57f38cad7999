"""Run folders opened again, and what is refused: moved, changed, newer, or none."""

import json

import numpy as np
import pandas as pd
import pytest
import skops.io as sio

import limi
from limi.errors import BadModel, BadTable, CorruptStore, InvalidInput
from tests.repairs.test_repair import people, pipeline

GIVEN = {"protected": ["sex"], "target": "ok", "favorable": "yes"}
SMALL = {"method": "natural", "max_rows": 800, "rate_rows": 0}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run folder beside its table and model, and the result as it was."""
    folder = tmp_path_factory.mktemp("run")
    frame = people()
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
        **GIVEN,
        **SMALL,
    )
    return folder, result


def make_filled():
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    columns, last = pipeline().steps[0][1], pipeline().steps[1][1]
    return make_pipeline(columns, SimpleImputer(), last)


def test_a_folder_opens_as_the_result_it_was(made):
    folder, result = made
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


def copied(made, tmp_path, **changes):
    """The run folder with another manifest."""
    import shutil

    folder, _ = made
    shutil.copytree(folder / "out", tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return tmp_path / "out"


def test_a_moved_table_or_model_can_be_named(made, tmp_path):
    folder, result = made
    moved = copied(made, tmp_path, table="gone.csv", model="skops:gone.skops")
    with pytest.raises(InvalidInput, match=r"is not at '.*gone.csv'.*--table FILE"):
        limi.reopen(moved)
    with pytest.raises(InvalidInput, match=r"is not at '.*gone.skops'.*--model skops:PLACE"):
        limi.reopen(moved, table=str(folder / "people.csv"))
    again = limi.reopen(
        moved, table=str(folder / "people.csv"), model=f"skops:{folder / 'model.skops'}"
    )
    assert len(again.found) == len(result.found)


@pytest.mark.parametrize(
    ("column", "told"), [("income", "other rows than"), ("ok", "other labels than")]
)
def test_a_changed_table_is_refused(made, tmp_path, column, told):
    folder, _ = made
    frame = pd.read_csv(folder / "people.csv")
    frame.loc[[0, 1], column] = frame.loc[[1, 0], column].to_numpy()
    if column == "ok":
        frame["ok"] = frame["ok"].map({"yes": "no", "no": "yes"})
    else:
        frame["income"] = frame["income"].to_numpy()[::-1]
    frame.to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(BadTable, match=told):
        limi.reopen(folder / "out", table=str(tmp_path / "other.csv"))


def test_a_changed_model_is_refused(made, tmp_path):
    folder, _ = made
    frame = pd.read_csv(folder / "people.csv")
    other = make_filled().fit(frame.drop(columns="ok"), frame["ok"].to_numpy()[::-1])
    sio.dump(other, tmp_path / "other.skops")
    with pytest.raises(BadModel, match="has changed since the run"):
        limi.reopen(folder / "out", model=f"skops:{tmp_path / 'other.skops'}")
    # A folder that knows no sum of its model is held to the scores it wrote.
    unknown = copied(made, tmp_path, model_sha256=None)
    with pytest.raises(BadModel, match="answers otherwise than in the run"):
        limi.reopen(unknown, model=f"skops:{tmp_path / 'other.skops'}")


def test_a_model_in_memory_or_one_that_runs_code_must_be_named(made, tmp_path):
    with pytest.raises(InvalidInput, match=r"a Pipeline that was given in memory.*limi.repair"):
        limi.reopen(copied(made, tmp_path / "a", model="Pipeline"))
    with pytest.raises(InvalidInput, match=r"opening it may run code.*--model python:evil.py:f"):
        limi.reopen(copied(made, tmp_path / "b", model="python:evil.py:f"))


def test_what_is_no_run_folder_is_said(made, tmp_path):
    with pytest.raises(InvalidInput, match="there is no run folder"):
        limi.reopen(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorruptStore, match="no run folder of limi"):
        limi.reopen(tmp_path / "empty")
    with pytest.raises(CorruptStore, match="written by a newer limi"):
        limi.reopen(copied(made, tmp_path / "newer", format=99))
    with pytest.raises(CorruptStore, match="its format is 'one'"):
        limi.reopen(copied(made, tmp_path / "odd", format="one"))
    damaged = copied(made, tmp_path / "damaged")
    (damaged / "findings.parquet").write_bytes(b"PAR1")
    with pytest.raises(CorruptStore, match=r"findings in .* cannot be read"):
        limi.reopen(damaged)
    (damaged / "findings.parquet").unlink()
    with pytest.raises(CorruptStore, match=r"has no findings.parquet"):
        limi.reopen(damaged)
    (damaged / "manifest.json").write_text("[]")
    with pytest.raises(CorruptStore, match="damaged"):
        limi.reopen(damaged)

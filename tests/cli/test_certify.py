"""`limi certify` as a user calls it."""

import json

import numpy as np
import pytest

from tests.trees.cases import coded, draw_table, split

pytestmark = pytest.mark.usefixtures("untried")

WORDS = ("--target", "good", "--favorable", "1", "--protected", "sex")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    import xgboost

    folder = tmp_path_factory.mktemp("certify")
    frame = coded(draw_table(np.random.default_rng(5), 200))
    frame.to_csv(folder / "people.csv", index=False)
    model = xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1, random_state=0)
    model.fit(*split(frame)).save_model(folder / "model.json")
    (folder / "model.py").write_text("def f(frame):\n    return frame.age / 100\n")
    return folder


@pytest.fixture
def certify(limi, place, monkeypatch):
    monkeypatch.chdir(place)
    return lambda *more: limi(
        "certify", "people.csv", "--model", "xgboost:model.json", *WORDS, *more
    )


def test_a_proof_is_told_and_written(certify, place):
    code, out, err = certify("--near", "age=2,pay=0.1", "--rows", "60", "--out", "proof")
    assert (code, err) == (0, "")
    assert "of 60 people" in out
    assert "it is proven that nobody near them" in out
    assert "near means: age=2, pay=0.1" in out
    tree = json.loads((place / "proof" / "proof.json").read_text())
    assert sum(tree["answers"].values()) == 60
    assert "People by score" in (place / "proof" / "report.html").read_text()
    code, _, err = certify("--rows", "60", "--out", "proof")
    assert code == 2
    assert "exists already" in err
    assert certify("--rows", "20", "--out", "proof", "--force")[0] == 0


def test_workers_change_no_byte_of_the_people(certify, place):
    for workers in ("1", "2"):
        code, _, err = certify("--rows", "60", "--workers", workers, "--out", f"by {workers}")
        assert (code, err) == (0, "")
    one, two = ((place / f"by {n}" / "people.parquet").read_bytes() for n in "12")
    assert one == two


def test_json_is_one_object(certify):
    code, out, _ = certify("--rows", "30", "--json", "--domain", "--domain-seconds", "10")
    assert code == 0
    tree = json.loads(out)
    assert tree["domain"]["optimal"]
    assert tree["people"] == 30


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--near", "sex=any"), 2, "which is protected"),
        (("--near", "age=1000"), 2, "wider than the whole range"),
        (("--near", "age=0.4"), 2, "less than a step"),
        (("--rows", "-3"), 2, "rows is -3"),
        (("--workers", "0"), 2, "--no-solver"),
        (("--workers", "two"), 2, "must be a number"),
        (("--cluster", "dask"), 2, "write ray"),
        (("--constraint", "age > 1000"), 2, "no row of the table keeps"),
        (("--model", "python:model.py:f"), 4, "made of trees"),
    ],
)
def test_bad_input_is_one_sentence(certify, words, code, told):
    found, out, err = certify(*words)
    assert (found, out) == (code, "")
    assert told in err
    assert err.count("\n") == 1

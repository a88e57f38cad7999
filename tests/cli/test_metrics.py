"""`limi metrics` as a user runs it."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from limi.cli import main

MODEL = """
import numpy as np

def approve(frame):
    merit = frame["income"] / 2 + (frame["sex"] == "M") * 0.8 + frame["age"] / 60
    return 1 / (1 + np.exp(3 - merit))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("metrics")
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "sex": rng.choice(["F", "M"], n),
            "income": rng.normal(3, 1, n).round(1),
            "ok": rng.choice(["yes", "no"], n),
        }
    )
    frame.to_csv(place / "people.csv", index=False)
    (place / "model.py").write_text(MODEL, encoding="utf-8")
    return place


@pytest.fixture
def limi(monkeypatch, capsys, folder):
    monkeypatch.chdir(folder)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["limi", *words])
        with pytest.raises(SystemExit) as done:
            main()
        shown = capsys.readouterr()
        return done.value.code, shown.out, shown.err

    if not (folder / "run").exists():
        run = ["test", "people.csv", "--model", "python:model.py:approve", "--target", "ok"]
        run += ["--favorable", "yes", "--protected", "sex", "--max-rows", "3000", "--out", "run"]
        assert call(*run)[0] == 0
    return call


def test_every_metric_has_a_number_and_a_reading_aid(limi):
    code, out, _ = limi("metrics", "run")
    assert code == 0
    shown = " ".join(out.split())
    for words in (
        *("flip rate of real rows (IF_o)", "flip rate of uniform rows (IF_r)"),
        *("(SPD)", "(AOD)", "Privileged: sex M, because it has the highest selection rate"),
        *("lower is better", "higher is better", "favored by sex, real rows"),
        *("odd partners", "nearest-neighbour distance", "findings per second (EGS)"),
    ):
        assert words in shown
    assert "people affected" not in shown


def test_json_has_what_the_summary_stores_and_what_follows_from_it(limi, folder):
    code, out, _ = limi("metrics", "run", "--json")
    assert code == 0
    shown = json.loads(out)
    stored = json.loads((folder / "run" / "summary.json").read_text())
    for family, entries in stored["metrics"].items():
        assert entries.items() <= shown[family].items()
    for name, rate in stored["rates"].items():
        assert shown["individual"]["flip_rates"][name]["value"] == pytest.approx(rate["estimate"])
    assert shown["effectiveness"]["findings"]["value"] == stored["findings"]


def test_volume_and_privileged_are_asked_of_the_stored_run(limi):
    _, out, _ = limi(*("metrics", "run", "--json", "--volume", "5000", "--privileged", "sex=F"))
    tree = json.loads(out)
    rate = tree["individual"]["flip_rates"]["real"]
    assert tree["severity"]["affected"]["real"]["value"] == round(5000 * rate["value"])
    assert tree["group"]["sex"]["privileged"] == "F"
    code, out, _ = limi("metrics", "run", "--volume", "5000", "--privileged", "sex=F")
    assert code == 0
    assert "of 5,000 people like these" in " ".join(out.split())
    assert "because it was stated" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["none"], 2, "there is no run folder"),
        ([".", "--json"], 4, "is not a run folder of limi"),
        (["run", "--privileged", "sex=Z"], 2, "is not a value of column 'sex'"),
        (["run", "--privileged", "height=3"], 2, "not a protected column"),
        (["run", "--privileged", "sex"], 2, "write COLUMN=VALUE"),
        (["run", "--privileged", "sex="], 2, "has no value; name one"),
        (["run", "--privileged", "sex=M,M"], 2, "lists a value twice"),
        (["run", "--privileged", "sex=M\nF"], 2, "cannot be read"),
        (["run", "--volume", "-3"], 2, "volume is -3"),
    ],
)
def test_bad_input_gets_one_sentence(limi, words, code, sentence):
    given, out, err = limi("metrics", *words)
    assert given == code
    assert sentence in err
    assert "Traceback" not in err
    assert not out


def test_a_run_of_an_earlier_limi_is_told_apart(limi, folder):
    old = folder / "old"
    old.mkdir(exist_ok=True)
    tree = json.loads((folder / "run" / "summary.json").read_text())
    del tree["metrics"]
    (old / "summary.json").write_text(json.dumps(tree))
    code, _, err = limi("metrics", "old")
    assert code == 4
    assert "run the test again" in err
    assert limi("report", "old")[0] == 0

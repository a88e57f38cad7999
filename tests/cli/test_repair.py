"""`limi repair` as a user runs it: output, files, exit codes, sentences."""

import json
import sys

import pandas as pd
import pytest
import skops.io as sio

from limi.cli import main
from limi.repairs import _compare, _verify
from tests.repairs.test_repair import people, pipeline

AVERAGED = ("repair", "run", "--how", "average", "--seeds", "1")

pytestmark = pytest.mark.usefixtures("untried")

FIT = """
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

calls = []

def blind(frame, labels):
    columns = make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")
    return make_pipeline(columns, LogisticRegression(C=0.5)).fit(frame, labels)

def half_way(frame, labels):
    calls.append(1)
    if len(calls) > 1:
        raise RuntimeError("no more")
    return blind(frame, labels)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a table, a model, and a finished run of it."""
    folder = tmp_path_factory.mktemp("home")
    frame = people()
    frame.to_csv(folder / "people.csv", index=False)
    sio.dump(pipeline().fit(frame.drop(columns="ok"), frame["ok"]), folder / "model.skops")
    (folder / "fit.py").write_text(FIT, encoding="utf-8")
    return folder


@pytest.fixture
def limi(home, monkeypatch, capsys):
    monkeypatch.chdir(home)
    monkeypatch.setattr(_compare, "_RATE_ROWS", 300)
    monkeypatch.setattr(_compare, "_SEARCH_ROWS", 200)
    monkeypatch.setattr(_verify, "quick_generators", lambda: ["trees"])

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["limi", *map(str, words)])
        with pytest.raises(SystemExit) as done:
            main()
        shown = capsys.readouterr()
        return done.value.code, shown.out, shown.err

    if not (home / "run").exists():
        code, _, err = call(
            *("test", "people.csv", "--model", "skops:model.skops", "--target", "ok"),
            *("--favorable", "yes", "--protected", "sex", "--max-rows", "1000", "--out", "run"),
        )
        assert code == 0, err
    return call


def test_repair_prints_the_verdict_and_writes_the_folder(limi, home, tmp_path):
    out = tmp_path / "out"
    code, shown, err = limi(
        *("repair", "run", "--how", "findings", "--out", out, "--seeds", "2"),
        *("--max-accuracy-loss", "0.2"),
    )
    assert code == 0, err
    said = " ".join(shown.split())
    assert said.startswith("Take findings: trained again with the run's findings. Flips re")
    assert "added.parquet" in said
    assert {path.name for path in out.iterdir()} == {
        *("model.skops", "MLmodel", "card.md", "report.html", "repair.json", "added.parquet")
    }
    assert "<svg" in (out / "report.html").read_text()
    assert "limi repair run" in (out / "card.md").read_text()
    code, shown, _ = limi(
        *("test", "people.csv", "--model", f"skops:{out / 'model.skops'}", "--target", "ok"),
        *("--favorable", "yes", "--protected", "sex", "--max-rows", "500", "--json"),
    )
    assert code == 0
    assert json.loads(shown)["rates"]["real"]["estimate"] == 0


def test_all_repairs_stand_side_by_side_and_the_one_to_take_is_written(limi, home, tmp_path):
    out = tmp_path / "out"
    code, shown, err = limi(
        *("repair", "run", "--out", out, "--seeds", "2", "--max-accuracy-loss", "0.2")
    )
    assert code == 0, err
    said = " ".join(shown.split())
    assert said.startswith(("Take average: ", "Take drop: ", "Take copies: "))
    assert "as it is average drop copies findings" in said
    assert "pairs was not tried" in said
    tree = json.loads((out / "repair.json").read_text())
    assert [one["how"] for one in tree["tried"]] == ["average", "drop", "copies", "findings"]
    page = (out / "report.html").read_text()
    for one in tree["tried"]:
        assert one["why"]
        assert one["figures"]["accuracy"].keys() >= {"value", "low", "high"}
        assert f"<h3><bdi>{one['how']}</bdi></h3>" in page
    assert {path.name for path in out.iterdir()} >= {"model.skops", "card.md", "report.html"}


@pytest.mark.parametrize("how", ["average", "drop"])
def test_shipped_files_have_no_direct_flips(limi, home, tmp_path, how):
    out = tmp_path / "out"
    code, _, err = limi(
        *("repair", "run", "--how", how, "--out", out, "--seeds", "1", "--onnx"),
        *("--max-accuracy-loss", "0.3"),
    )
    assert code == 0, err
    for file in ("skops:model.skops", "onnx:model.onnx"):
        kind, _, name = file.partition(":")
        code, shown, err = limi(
            *("test", "people.csv", "--model", f"{kind}:{out / name}", "--target", "ok"),
            *("--favorable", "yes", "--protected", "sex", "--max-rows", "500", "--json"),
        )
        assert code == 0, err
        tree = json.loads(shown)
        assert tree["findings"] == 0
        assert {rate["estimate"] for rate in tree["rates"].values()} == {0}


def test_json_has_before_after_and_verdict(limi, tmp_path):
    code, shown, _ = limi(
        *("repair", "run", "--out", tmp_path / "out", "--seeds", "1", "--preset", "paper"),
        *("--how", "findings"),
        *("--label", "vote", "--fraction", "0.2", "--privileged", "sex=M", "--json"),
    )
    assert code == 0
    tree = json.loads(shown)
    (one,) = tree["tried"]
    for side in (tree["before"], one["figures"]):
        assert {"accuracy", "auc", "real", "natural", "twins", "spd"} <= set(side)
        assert side["real"].keys() >= {"value", "low", "high"}
    assert one["verdict"].split(":")[0].split()[0] in (
        *("removed", "reduced", "inconclusive", "unchanged", "worse", "too"),
    )
    assert tree["groups"] == {"privileged": "sex=M", "why": "as stated"}
    assert tree["settings"]["recipe"] == "alone"
    added = pd.read_parquet(tmp_path / "out" / "added.parquet")
    assert len(added) == 120
    assert json.loads((tmp_path / "out" / "repair.json").read_text()) == tree


def test_a_fit_function_of_a_file(limi, tmp_path):
    code, _, err = limi(
        *("repair", "run", "--out", tmp_path / "out", "--seeds", "1", "--fit", "fit.py:blind"),
        *("--how", "findings"),
    )
    assert code == 0, err
    assert "the function blind" in (tmp_path / "out" / "card.md").read_text()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["nowhere"], 2, "there is no run folder"),
        (["."], 4, "not a run folder of limi"),
        (["run", "--fraction", "0"], 2, "fraction is 0"),
        (["run", "--fraction", "1.2"], 2, "fraction is 1.2"),
        (["run", "--preset", "worst"], 2, "unknown preset 'worst'"),
        (["run", "--fit", "fit.py"], 2, "does not name a function"),
        (["run", "--fit", "gone.py:f"], 2, "there is no file 'gone.py'"),
        (["run", "--fit", "fit.py:blnid"], 2, "did you mean 'blind'"),
        (["run", "--fit", "fit.py:half_way"], 4, "nothing was written"),
        (["run", "--table", "gone.csv"], 2, "there is no file 'gone.csv'"),
        (["run", "--privileged", "income=3"], 2, "not a protected column of the run"),
        (["run", "--how", "avrage"], 2, "did you mean 'average'"),
        (["run", "--workers", "0"], 2, "workers is 0"),
        (["run", "--workers", "two"], 2, "must be a number"),
        (["run", "--cluster", "dask"], 2, "write ray"),
        (["run", "--how", "pairs"], 2, "needs a fit function that also takes partners"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(limi, tmp_path, words, code, told):
    done, shown, err = limi("repair", *words, "--out", tmp_path / "out")
    assert done == code
    assert told in " ".join(err.split())
    assert "Traceback" not in err
    assert not shown
    assert not list(tmp_path.iterdir())


def test_the_run_itself_is_never_replaced(limi, home):
    before = sorted(path.name for path in (home / "run").iterdir())
    code, _, err = limi("repair", "run", "--out", home / "run", "--seeds", "1", "--force")
    assert code == 2
    assert "which is the run of this command" in err
    assert sorted(path.name for path in (home / "run").iterdir()) == before


def test_an_existing_folder_needs_force(limi, tmp_path):
    limi(*AVERAGED, "--out", tmp_path / "out", "--no-model")
    assert not (tmp_path / "out" / "model.skops").exists()
    code, _, err = limi(*AVERAGED, "--out", tmp_path / "out")
    assert code == 2
    assert "exists already" in err
    code, _, err = limi(*AVERAGED, "--out", tmp_path / "out", "--force")
    assert code == 0, err
    assert (tmp_path / "out" / "model.skops").exists()


CUT = """
import numpy as np

def middle(values):
    return np.clip(values, 0, 60)
"""


def test_the_steps_that_a_run_and_its_repair_print_work_as_printed(limi, home, monkeypatch):
    """The model holds a function that has to be trusted each time it is opened."""
    (home / "cutting.py").write_text(CUT)
    monkeypatch.syspath_prepend(home)
    from cutting import middle
    from sklearn.preprocessing import FunctionTransformer

    frame = people()
    model = pipeline()
    model.steps.insert(1, ("cut", FunctionTransformer(middle)))
    sio.dump(model.fit(frame.drop(columns="ok"), frame["ok"]), home / "cutting.skops")
    code, shown, err = limi(
        *("test", "people.csv", "--model", "skops:cutting.skops", "--target", "ok"),
        *("--favorable", "yes", "--protected", "sex", "--max-rows", "1000", "--out", "cut"),
        *("--rate-rows", "500", "--trust", "cutting.middle"),
    )
    assert code == 0, err
    repair = next(line.split() for line in shown.splitlines() if "limi repair" in line)
    loss = ("--max-accuracy-loss", "0.9")
    code, shown, err = limi(*repair[1:], "--how", "average", "--seeds", "1", *loss)
    assert code == 0, err
    test = next(line.split() for line in shown.splitlines() if "  limi test" in line)
    code, _, err = limi(*test[1:], "--max-rows", "50", "--rate-rows", "50")
    assert code == 0, err

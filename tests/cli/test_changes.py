"""`limi replay` and `limi diff` as they are typed."""

import json

import numpy as np
import pandas as pd
import pytest

MODEL = """
import numpy as np

def before(frame):
    young = frame["age"] < 40
    return np.where(young & (frame["sex"] == "M"), 0.8, 0.2)

def after(frame):
    young = frame["age"] < 25
    return np.where(young & (frame["sex"] == "M"), 0.8, 0.2)

def gender(frame):
    return np.where((frame["age"] < 25) & (frame["gender"] == "M"), 0.8, 0.2)
"""
BEFORE, AFTER = "python:model.py:before", "python:model.py:after"
MODULE = "python:tests/test_fairness.py:before"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, three models, and a run of the first."""
    place = tmp_path_factory.mktemp("changes")
    rng = np.random.default_rng(0)
    n = 300
    people = pd.DataFrame(
        {
            "age": rng.integers(18, 60, n),
            "sex": rng.choice(["F", "M"], n),
            "approved": rng.choice(["yes", "no"], n),
        }
    )
    people.to_csv(place / "people.csv", index=False)
    people.rename(columns={"sex": "gender"}).to_csv(place / "new.csv", index=False)
    (place / "model.py").write_text(MODEL, encoding="utf-8")
    return place


@pytest.fixture
def here(folder, monkeypatch, limi):
    monkeypatch.chdir(folder)
    if not (folder / "run").exists():
        words = ("test", "people.csv", "--protected", "sex", "--target", "approved")
        words += ("--favorable", "yes", "--generator", "none", "--method", "real")
        for name, model in (("run", BEFORE), ("newer", AFTER)):
            code, _, err = limi(*words, "--model", model, "--rate-rows", "200", "--out", name)
            assert (code, err) == (0, "")
    return folder


def test_a_replay_says_what_became_of_the_findings(here, limi):
    code, out, err = limi("replay", "run", "--model", AFTER, "--out", "told.parquet", "--force")
    assert (code, err) == (0, "")
    told = pd.read_parquet(here / "told.parquet")
    gone = (told["outcome"] == "no longer flips").sum()
    assert 0 < gone < len(told)
    assert f"{gone} no longer flip" in out
    assert ((told["age"] >= 25) == (told["outcome"] == "no longer flips")).all()


def test_a_replay_is_one_json_object(here, limi):
    code, out, err = limi("replay", "run", "--model", AFTER, "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["findings"] == sum(told["outcomes"].values())


def test_a_replay_finds_renamed_columns(here, limi):
    words = ("replay", "run", "--model", "python:model.py:gender", "--table", "new.csv")
    code, _, err = limi(*words)
    assert code == 4
    assert "--rename OLD=NEW" in err
    code, out, err = limi(*words, "--rename", "sex=gender", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["outcomes"]["not asked"] == 0


def test_a_diff_compares_a_run_with_a_model_and_with_a_run(here, limi):
    words = ("diff", "run", "--before", BEFORE, "--rows", "200")
    code, out, err = limi(*words, "--model", AFTER, "--html", "d.html", "--out", "d.json")
    assert (code, err) == (0, "")
    assert out.startswith("Better: ")
    told = json.loads((here / "d.json").read_text())
    assert told["rates"][0]["verdict"] == "better"
    assert "Two models, the same people" in (here / "d.html").read_text()
    code, out, err = limi(*words[:2], "newer", *words[2:], "--model", AFTER, "--json")
    assert (code, err) == (0, "")
    both = json.loads(out)
    assert both["rates"] == told["rates"]
    assert both["findings_after"]["outcomes"]["still flips"] > 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("replay", "gone", "--model", AFTER), 2, "there is no run folder"),
        (("replay", "run", "--model", AFTER, "--out", "x.csv"), 2, "must end in .parquet"),
        (
            ("replay", "run", "--model", AFTER, "--schema", "s.toml"),
            2,
            "name the table with --table",
        ),
        (("replay", "run", "--model", AFTER, "--fill", "x"), 2, "write --fill COLUMN=VALUE"),
        (("diff", "run"), 2, "name a second run, or the newer model"),
        (("diff", "run", "--model", AFTER), 2, "name it: --before python:model.py:before"),
        (("diff", "run", "--model", AFTER, "--out", "x", "--html", "x"), 2, "is the --out of this"),
        (("diff", "run", "newer", "--before", BEFORE), 2, "name it: --model python:"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(here, limi, words, code, says):
    before = sorted(here.iterdir())
    done, out, err = limi(*words)
    assert (done, out) == (code, "")
    assert says in err
    assert err.count("\n") == 1
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("diff", "--out", "people.csv"), "which is the table"),
        (("diff", "--out", "d.json", "--html", "run/summary.json"), "lies in the run"),
        (("diff", "--html", "newer/x.html"), "lies in the run"),
        (("diff", "--out", "model.py"), "is the model"),
        (("replay", "--force", "--out", "run/findings.parquet"), "lies in the run"),
        (("replay", "--force", "--out", "people.parquet", "--table", "people.parquet"), "table"),
        (("export", "--pytest", "run"), "lies in the run"),
        (("export", "--force", "--pytest", "tests", "--model", MODULE), "is the model"),
        (("pack", "--force", "--out", "run/summary.json"), "lies in the run"),
        (("pack", "--force", "--out", "people.csv"), "is the table"),
        (("repair", "--force", "--out", "run/inside"), "lies in the run"),
        (("report", "--html", "run/summary.json"), "is part of the run"),
    ],
)
def test_no_output_takes_the_place_of_an_input(here, limi, words, says):
    command, *rest = words
    (here / "tests").mkdir(exist_ok=True)
    (here / "tests" / "test_fairness.py").write_text(MODEL, encoding="utf-8")
    pd.read_csv(here / "people.csv").to_parquet(here / "people.parquet")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    more = {
        "diff": ("newer", "--before", BEFORE, "--model", AFTER, "--rows", "50"),
        "replay": ("--model", AFTER),
        "repair": ("--model", BEFORE),
        "export": () if MODULE in rest else ("--model", BEFORE),
    }
    code, out, err = limi(command, "run", *more.get(command, ()), *rest)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert says in err
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "--methods", "real", "--html"),
        ("fit", "--force", "--out"),
        ("schema", "--force", "--out"),
        ("gate", "--rule", "real_rate <= 1 %", "--junit"),
    ],
)
@pytest.mark.parametrize("what", ["people.csv", "limi.toml"])
def test_no_output_takes_the_place_of_what_a_limi_toml_names_or_of_itself(
    here, limi, tmp_path, monkeypatch, words, what
):
    for name in ("people.csv", "model.py"):
        (tmp_path / name).write_bytes((here / name).read_bytes())
    (tmp_path / "limi.toml").write_text(
        f'table = "people.csv"\nmodel = "{BEFORE}"\ntarget = "approved"\nfavorable = "yes"\n'
        'protected = ["sex"]\noutput = "score"\ngenerator = "trees"\n'
    )
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = limi(*words, what)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert "of this command" in err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_run_does_not_replace_the_folder_that_its_schema_lies_in(here, limi):
    import shutil

    shutil.copytree(here / "run", here / "old", dirs_exist_ok=True)
    words = ("--model", BEFORE, "--protected", "sex", "--target", "approved", "--favorable", "yes")
    code, out, err = limi(
        *("test", "people.csv", *words, "--schema", "old/schema.toml", "--out", "old", "--force")
    )
    assert (code, out) == (2, "")
    assert "which holds the schema of this command" in err
    assert (here / "old" / "summary.json").is_file()


def test_a_run_of_a_newer_limi_is_told(here, limi, tmp_path):
    import shutil

    shutil.copytree(here / "run", tmp_path / "run")
    path = tmp_path / "run" / "summary.json"
    tree = json.loads(path.read_text())
    path.write_text(json.dumps(tree | {"format": 99}))
    code, _, err = limi("replay", str(tmp_path / "run"), "--model", AFTER)
    assert code == 4
    assert "was written by a newer limi" in err

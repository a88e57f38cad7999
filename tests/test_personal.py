"""A secret planted in personal columns is found in nothing that limi shows or writes.

Every command and every public function runs on one table of people whose names and addresses
hold the secret. All that is printed, and every file that appears, is searched for it: text as it
is, Parquet cell by cell, archives file by file.
"""

import io
import json
import sys
import zipfile

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import limi as package
from limi.audits.problem import prepare
from limi.cli import main
from limi.explore.opening import explore_problem
from tests.explore.conftest import Browser

SECRET = "Zq7xSecret"
PERSONAL = ("name", "email")
MODEL = """
import numpy as np

def takes_names(frame):
    known = frame["name"].astype(str).str.len() + frame["email"].astype(str).str.len()
    return np.where((frame["age"] > 40) & (frame["sex"] == "M") & (known > 0), 0.8, 0.2)

def newer(frame):
    return np.where((frame["age"] > 60) & (frame["sex"] == "M"), 0.8, 0.2)

def older(frame):
    return np.where((frame["age"] > 40) & (frame["sex"] == "M"), 0.8, 0.2)

def blind(frame):
    return np.where(frame["age"] > 40, 0.8, 0.2)
"""


def people(n=240, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    age = rng.integers(18, 80, n)
    return pd.DataFrame(
        {
            "age": age,
            "sex": sex,
            "name": [f"{SECRET} Number {k}" for k in rng.permutation(n)],
            "email": [f"{SECRET}.{k}@example.org" for k in rng.permutation(n)],
            "approved": np.where((age > 45) & (sex == "M"), "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("given")
    frame = people()
    frame.to_csv(place / "people.csv", index=False)
    new = frame.copy()
    new.loc[:2, "name"] = [f"{SECRET} Somebody Else {k}" for k in range(3)]
    new.loc[3, "age"] = 99
    new.to_csv(place / "new.csv", index=False)
    frame.drop(columns="sex").to_csv(place / "without.csv", index=False)
    frame[["name", "sex"]].to_csv(place / "beside.csv", index=False)
    (place / "model.py").write_text(MODEL, encoding="utf-8")
    encoded = ColumnTransformer(
        [("words", OneHotEncoder(handle_unknown="ignore"), ["sex", "name", "email"])],
        remainder="passthrough",
    )
    model = make_pipeline(encoded, GradientBoostingClassifier(n_estimators=5, max_depth=2))
    x = frame[["age", "sex", "name", "email"]]
    joblib.dump(model.fit(x, frame["approved"]), place / "model.joblib")
    return place


@pytest.fixture
def call(folder, tmp_path, monkeypatch, capsys, untried):
    """Run a command beside the given files and return all that it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["limi", *(w.format(at=folder) for w in words)])
        with pytest.raises(SystemExit) as done:
            main()
        shown = capsys.readouterr()
        assert done.value.code in (0, 1, 3), shown.err
        return shown.out + shown.err

    return run


def text_of(name, content):
    """All that a file says, archives and Parquet opened."""
    if content[:4] == b"PAR1":
        return pd.read_parquet(io.BytesIO(content)).to_csv()
    if content[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(content)) as inner:
            return "".join(text_of(part, inner.read(part)) for part in inner.namelist())
    return content.decode("utf-8", "replace")


def require_silent(printed, place, *, but=()):
    assert SECRET not in printed
    for path in sorted(place.rglob("*")):
        if path.is_file() and path.name not in but:
            assert SECRET not in text_of(path.name, path.read_bytes()), path
            assert SECRET.encode() not in path.read_bytes(), path


ASKED = ("--protected", "sex", "--target", "approved", "--favorable", "yes")
NAMES = ("{at}/people.csv", *ASKED, "--model", "python:{at}/model.py:takes_names")
PLAIN = ("{at}/people.csv", *ASKED, "--model", "python:{at}/model.py:older", "--only", "age,sex")
TREES = ("{at}/people.csv", *ASKED, "--model", "joblib:{at}/model.joblib", "--trust-pickle")
SMALL = ("--max-rows", "400", "--rate-rows", "100")
BROKEN = ("--rule", "real_rate <= 1 %", "--rule", "worst_region_rate <= 1 %")


@pytest.mark.parametrize("asked", [NAMES, TREES], ids=["function", "trees"])
def test_a_test_and_all_that_reads_its_folder(asked, call, tmp_path):
    printed = call("test", *asked, *SMALL, "--out", "run", "--full", "--verbose")
    printed += call("test", *asked, *SMALL, "--json", "--held-out", "{at}/new.csv")
    printed += call("test", *asked, "--plan") + call("test", *asked, "--dry-run")
    for command in ("report", "metrics"):
        printed += call(command, "run", "--json") + call(command, "run")
    call("report", "run", "--html", "page.html")
    printed += call("pack", "run", "--out", "pack.zip", "--findings")
    require_silent(printed, tmp_path)


@pytest.mark.parametrize("asked", [NAMES, TREES], ids=["function", "trees"])
def test_a_broken_gate(asked, call, tmp_path):
    outputs = ("--out", "gate.json", "--junit", "gate.xml", "--sarif", "gate.sarif")
    printed = call("gate", *asked, *BROKEN, *outputs, "--markdown", "gate.md")
    assert "Decisions that flip" in printed
    assert json.loads((tmp_path / "gate.json").read_text())["hidden"] == [*PERSONAL]
    printed += call("gate", *asked, *BROKEN, "--json")
    require_silent(printed, tmp_path)


def test_a_gate_gives_the_model_what_its_file_says(call, folder, tmp_path):
    """Columns left out in limi.toml never reach the model, by test or by gate."""
    (tmp_path / "seen.py").write_text(
        "import numpy as np\n\n\ndef decide(frame):\n"
        "    with open('seen.txt', 'a') as file:\n"
        "        file.write(' '.join(frame.columns) + '\\n' + frame.to_csv() + '\\n')\n"
        "    return np.where((frame['age'] > 40) & (frame['sex'] == 'M'), 0.8, 0.2)\n"
    )
    (tmp_path / "limi.toml").write_text(
        f"table = {str(folder / 'people.csv')!r}\nmodel = 'python:seen.py:decide'\n"
        "protected = ['sex']\ntarget = 'approved'\nfavorable = 'yes'\n"
        f"drop = {list(PERSONAL)!r}\n[gate]\nreal_rate = '<= 1 %'\n"
    )
    printed = call("gate")
    assert (tmp_path / "seen.txt").exists()
    require_silent(printed, tmp_path)


def test_protected_columns_of_another_table_reach_a_gate(call, tmp_path):
    asked = ("{at}/without.csv", *ASKED, "--model", "python:{at}/model.py:blind")
    beside = ("--protected-from", "{at}/beside.csv", "--key", "name")
    printed = call("gate", *asked, *beside, "--rule", "spd <= 0.01", "--out", "gate.json")
    require_silent(printed, tmp_path)
    assert json.loads((tmp_path / "gate.json").read_text())["protected"] == {"sex": ["F", "M"]}


def test_a_proof(call, tmp_path):
    printed = call("certify", *TREES, "--rows", "20", "--no-solver", "--out", "proof")
    printed += call("certify", *TREES, "--rows", "20", "--no-solver", "--json")
    require_silent(printed, tmp_path)
    shown = pd.read_parquet(tmp_path / "proof" / "people.parquet")
    assert set(shown["name"]) == set(shown["email"]) == {"hidden"}
    assert json.loads((tmp_path / "proof" / "proof.json").read_text())["hidden"] == [*PERSONAL]


def test_commands_on_a_run_whose_model_takes_no_names(call, tmp_path):
    printed = call("test", *PLAIN, *SMALL, "--out", "run")
    given = ("--model", "python:{at}/model.py:newer")
    printed += call("replay", "run", *given, "--out", "replay.parquet")
    before = ("--before", "python:{at}/model.py:older", "--rows", "100")
    printed += call("diff", "run", *given, *before, "--out", "diff.json", "--html", "diff.html")
    printed += call("diff", "run", *given, *before, "--table", "{at}/people.csv", "--json")
    printed += call("export", "run", "--pytest", "tests", *given[:1], "python:{at}/model.py:older")
    average = ("--how", "average", "--seeds", "1", "--no-model")
    printed += call(
        "repair", "run", "--out", "repaired", *average, "--model", "python:{at}/model.py:older"
    )
    require_silent(printed, tmp_path)


def test_commands_of_research(call, tmp_path):
    printed = call("compare", *NAMES, "--max-queries", "500", "--html", "page.html")
    printed += call("schema", "{at}/people.csv", "--target", "approved", "--out", "columns.toml")
    printed += call("fit", "{at}/people.csv", "--target", "approved", "--out", "people.limi")
    printed += call("sample", "people.limi", "--rows", "30", "--out", "more.csv")
    printed += call("init", "{at}/people.csv", "--model", "python:{at}/model.py:older")
    require_silent(printed, tmp_path)


def test_what_python_shows_of_results(call, folder, tmp_path):
    model, frame = joblib.load(folder / "model.joblib"), people()
    asked = {"protected": ["sex"], "target": "approved", "favorable": "yes"}
    result = package.audit(model, frame, **asked, max_rows=400, rate_rows=100)
    gate = package.gate(model, frame, ["real_rate <= 1 %"], **asked)
    told = package.replay(result, model)
    changed = package.diff(result, model=model, rows=100)
    repaired = package.repair(result, how="average", seeds=1)
    proof = package.certify(model, frame, **asked, rows=20, solver=False)
    shown = [result, gate, told.as_dict(), changed.as_dict(), repaired, proof, proof.as_dict()]
    shown += [gate.as_dict(), result._repr_html_(), result.summary, repaired.as_dict(), told]
    shown += [result.metrics(), [str(rule) for rule in result.summary.where.rules]]
    shown += [result.plot.rates(), result.plot.where(), result.plot.pairs()]
    result.report("result.html")
    changed.report("changed.html")
    repaired.save("repaired", model=False)
    require_silent(repr(shown), tmp_path)


def test_explore(call, folder, tmp_path):
    problem = prepare(
        joblib.load(folder / "model.joblib"),
        people(),
        protected=["sex"],
        target="approved",
        favorable="yes",
    )
    x = explore_problem(problem, record=tmp_path / "record.jsonl")
    browser = Browser(x)
    pages = ["/", "/people", "/person/r0", "/map", "/where", "/record", "/export/csv"]
    require_silent("".join(browser.get(page).text for page in pages), tmp_path)

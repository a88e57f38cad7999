"""The commands as a user runs them: output, files, exit codes, sentences."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from limi.cli import _console, demo
from limi.cli.demo import _is_demo

MODEL = """
import numpy as np

def approve(frame):
    merit = frame["income"].fillna(3) / 2 + (frame["sex"] == "M") * 0.8 + frame["age"] / 60
    return 1 / (1 + np.exp(3 - merit))

def noisy(frame):
    return np.random.default_rng().random(len(frame))

def nan(frame):
    return np.full(len(frame), np.nan)

def broken(frame):
    raise KeyError("colour")

not_a_function = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "sex": rng.choice(["F", "M"], n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.normal(3, 1, n).round(1)),
            "ok": rng.choice(["yes", "no"], n),
        }
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("nobody's", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


TEST = ["test", "people.csv", "--model", "python:model.py:approve", "--target", "ok"]
FULL = [
    *TEST,
    "--favorable",
    "yes",
    "--protected",
    "sex",
    "--max-rows",
    "3000",
    "--rate-rows",
    "500",
]


def test_a_plan_is_one_line_and_writes_nothing(folder, limi):
    before = sorted(path.name for path in folder.iterdir())
    words = (*FULL, "--max-rows", "2000", "--rate-rows", "300", "--out", "run", "--plan")
    code, out, err = limi(*words)
    assert (code, err) == (0, "")
    words_of = r"about [\d,]+ questions, .* s at the measured speed, after the fit of .* trees\n"
    assert re.fullmatch(words_of, out)
    code, out, err = limi(*words, "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["phases"]["search"] == 2 * 2000
    assert told["phases"]["rates"] == 3 * 2 * 300
    assert told["questions"] == sum(told["phases"].values())
    assert told["generator_to_fit"] == "trees"
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".pyc") in (
        before,
        sorted([*before, "__pycache__"]),
    )


@pytest.mark.parametrize("how", ["--plan", "--dry-run"])
def test_a_plan_promises_no_more_questions_than_the_budget_allows(folder, limi, how):
    code, out, _ = limi(*FULL, "--max-queries", "2000", how, "--json")
    assert code == 0
    told = json.loads(out)
    assert sum(told["phases"].values()) == told["questions"] == 2000


def test_a_terminal_is_told_what_a_run_will_cost(folder, limi, monkeypatch):
    words = (*FULL, "--max-rows", "500", "--rate-rows", "100", "--json")
    assert limi(*words)[2] == ""
    monkeypatch.setattr(type(_console.err), "is_terminal", True)
    code, _, err = limi(*words)
    assert code == 0
    assert re.search(r"about [\d,]+ questions, .* s at the measured speed", err)


def test_a_run_keeps_what_it_was_to_cost_and_what_each_phase_took(folder, limi):
    code, out, err = limi(*FULL, "--max-rows", "500", "--rate-rows", "100", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["estimate"]["phases"]["search"] == 1000
    phases = told["phases"]
    assert list(phases) == [
        *("contract", "generator", "rates", "labels", "search", "second_check", "metrics")
    ]
    assert phases["second_check"]["questions"] == 2 * told["findings"]
    assert phases["labels"]["questions"] == told["used"]["n_labelled"] == 200
    assert all(spent["seconds"] >= 0 for spent in phases.values())
    code, out, _ = limi(*FULL, "--max-rows", "500", "--rate-rows", "100", "--full")
    words = " ".join(out.split())  # lines break where the durations push them
    assert "searching" in words
    assert "asking findings again" in words


def test_test_prints_the_answer_and_writes_the_folder(folder, limi):
    code, out, _ = limi(*FULL, "--out", "run")
    assert code == 0
    assert "would be decided differently if only sex changed" in " ".join(out.split())
    assert "sex" in out
    found = pd.read_parquet(folder / "run" / "findings.parquet")
    assert list(found) == [
        *("age", "sex", "income", "sex__partner", "score", "partner_score", "origin"),
        *("severity", "naturalness", "partner_naturalness"),
    ]
    assert (found["sex"] != found["sex__partner"]).all()
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    assert manifest["command"].startswith("limi test people.csv")


def test_json_is_one_object_with_the_promised_names(folder, limi):
    code, out, _ = limi(*FULL, "--method", "themis", "--rate-rows", "3000", "--json")
    assert code == 0
    tree = json.loads(out)
    assert tree["method"] == "themis"
    assert list(tree["protected"]) == ["sex"]
    assert tree["rows_checked"] == 3000
    assert tree["stop"] == "rows"
    assert tree["findings"] > 0
    assert tree["queries"] > 3000
    assert tree["seconds"] >= 0
    assert set(tree["rates"]) == {"real", "uniform", "natural"}
    for rate in tree["rates"].values():
        assert set(rate) == {"estimate", "low", "high", "n", "anytime"}
        assert rate["low"] <= rate["estimate"] <= rate["high"]
    assert tree["scores"]["causal_discrimination"] == pytest.approx(
        tree["rates"]["uniform"]["estimate"],
        abs=5e-7,  # a method's own numbers are written with six digits
    )


def test_batch_size_changes_no_byte_of_the_findings(folder, limi):
    for name, batch in (("a", "64"), ("b", "9999")):
        options = ["--method", "themis", "--max-rows", "2000", "--max-batch", batch]
        assert limi(*FULL, *options, "--out", name)[0] == 0
    assert (folder / "a/findings.parquet").read_bytes() == (
        folder / "b/findings.parquet"
    ).read_bytes()


def test_a_known_data_set_brings_target_and_schema(limi, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").write_text("def f(x):\n    return (x['sex'] == 1).to_numpy()\n")
    code, out, _ = limi(
        *("test", "credit", "--model", "python:m.py:f", "--protected", "sex", "--json"),
        *("--method", "real"),
    )
    assert code == 0
    tree = json.loads(out)
    assert tree["target"] == "credit_risk"
    assert tree["rates"]["real"]["estimate"] == 1.0
    assert tree["rates"]["real"]["n"] == 600


def test_report_shows_a_finished_run_again(folder, limi):
    _, first, _ = limi(*FULL, "--out", "run", "--json")
    code, again, _ = limi("report", "run", "--json", "--html", "again.html")
    assert code == 0
    assert json.loads(first) == json.loads(again)
    assert (folder / "again.html").read_text() == (folder / "run/report.html").read_text()
    assert limi("report", "run")[0] == 0


def test_a_schema_can_be_written_edited_and_used(folder, limi):
    assert limi("schema", "people.csv", "--out", "s.toml")[0] == 0
    assert limi("schema", "people.csv", "--out", "s.toml")[0] == 2
    text = (folder / "s.toml").read_text()
    assert '[columns."sex"]' in text
    (folder / "s.toml").write_text(text.replace("high = 79", "high = 99"))
    code, out, _ = limi(*FULL, "--schema", "s.toml", "--protected", "age=90,99", "--json")
    assert code == 0
    assert json.loads(out)["protected"]["age"] == ["90", "99"]
    code, out, _ = limi("schema", "people.csv")
    assert out == text


def test_rules_are_mined_written_and_used(folder, limi):
    code, out, _ = limi("schema", "people.csv", "--mine", "--protected", "sex")
    assert code == 0
    assert "[protected]" in out
    assert "# No rules were found that the rows follow." in out
    (folder / "p.toml").write_text(out)
    few = ["--favorable", "yes", "--max-rows", "10", "--rate-rows", "0"]
    code, told, _ = limi(*TEST, *few, "--schema", "p.toml", "--json")
    assert (code, json.loads(told)["protected"]) == (0, {"sex": ["F", "M"]})
    code, _, err = limi(*TEST, *few)
    assert (code, "no protected column was named; name one" in err) == (2, True)
    (folder / "s.toml").write_text(out + "[constraints]\nold = 'age >= 18'\n")
    (folder / "s.toml").write_text((folder / "s.toml").read_text().replace("format = 1", ""))
    code, _, _ = limi(*FULL, "--schema", "s.toml", "--constraint", "age <= 120", "--out", "run")
    assert code == 0
    written = (folder / "run/schema.toml").read_text()
    assert "[constraints]\nold = 'age >= 18'\n\"age <= 120\" = 'age <= 120'\n" in written
    code, _, err = limi(*FULL, "--constraint", "aeg <= 120")
    assert (code, "did you mean 'age'" in err) == (2, True)


def test_no_mined_rule_speaks_of_the_target(folder, limi):
    code, out, err = limi("schema", "people.csv", "--mine", "--target", "ok")
    assert (code, err) == (0, "")
    assert '[columns."ok"]' not in out
    assert "No --target was named" not in out
    assert "No --target was named" in limi("schema", "people.csv", "--mine")[1]
    code, _, err = limi("schema", "people.csv", "--target", "okay")
    assert (code, "did you mean 'ok'" in err) == (4, True)
    code, _, err = limi(*FULL, "--constraint", 'ok == "yes" implies age > 3')
    assert (code, "mentions 'ok', the target column" in err) == (2, True)
    text = limi("schema", "people.csv")[1].replace("format = 1", "")
    rule = "[constraints]\nodd = 'ok == \"yes\" implies age > 3'\n"
    (folder / "s.toml").write_text(text + rule)
    told = "constraint 'odd' has no effect, because it mentions 'ok'"
    code, out, _ = limi(*FULL, "--schema", "s.toml", "--max-rows", "10", "--json")
    assert (code, told in " ".join(json.loads(out)["notes"])) == (0, True)
    words = ["fit", "people.csv", "--target", "ok", "--schema", "s.toml", "--out", "g.limi"]
    assert told in limi(*words)[2]


@pytest.mark.parametrize("noun", ["methods", "models", "generators", "metrics", "datasets"])
def test_lists_have_a_line_for_each_name(limi, noun):
    code, out, _ = limi("list", noun, "--json")
    assert code == 0
    entries = json.loads(out)
    lines = [told["line"] if isinstance(told, dict) else told for told in entries.values()]
    assert all(words.endswith((".", ")")) or words for words in lines)
    assert limi("list", noun)[0] == 0
    if noun == "methods":
        assert {"real", "themis"} <= set(entries)
    if noun == "models":
        assert {"python", "sklearn", "onnx", "skops", "torch", "xgboost"} <= set(entries)
    if noun == "datasets":
        assert {"adult", "census", "credit", "bank", "meps"} <= set(entries)


def test_datasets_show_and_doctor(limi):
    code, out, _ = limi("datasets", "show", "adult")
    assert code == 0
    assert "CC BY 4.0" in out
    assert "Role: relationship Wife as sex Female is Husband as sex Male" in out
    code, out, _ = limi("datasets", "show", "adult", "--json")
    assert json.loads(out)["rows"] == 32_561
    assert json.loads(out)["derived"] == {"education_num": ["education"]}
    code, out, _ = limi("doctor", "--json")
    assert code == 0
    assert json.loads(out)["extras"]["onnx"]["install"] == "pip install 'limi[onnx]'"
    assert limi("doctor")[0] == 0


def test_brackets_in_what_is_shown_are_no_markup(limi, monkeypatch):
    monkeypatch.setattr("limi.cli.doctor._version", lambda package: None)
    _, out, _ = limi("doctor")
    assert "limi[onnx]" in out


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["test", "none.csv", *FULL[2:]], 2, "there is no file 'none.csv'"),
        ([*TEST[:2], "--protected", "sex"], 2, "--model is missing"),
        ([*TEST[:4], "--target", "okay", "--protected", "sex"], 4, "did you mean 'ok'"),
        ([*TEST, "--protected", "sex"], 2, "say which one people want"),
        ([*TEST, "--favorable", "yess", "--protected", "sex"], 2, "did you mean 'yes'"),
        ([*TEST, "--favorable", "yes", "--protected", "sax"], 2, "did you mean 'sex'"),
        ([*FULL, "--method", "themes"], 2, "did you mean 'themis'"),
        ([*FULL, "--set", "margin=1"], 2, "has no setting 'margin'"),
        ([*FULL, "--max-rows", "0"], 2, "a budget must be above 0"),
        ([*FULL, "--max-queries", "1"], 2, "asked about at least 40 rows"),
        ([*FULL, "--twin", "--keep", "sex"], 2, "'sex' is protected and cannot be kept"),
        ([*FULL, "--twin", "--keep", "income,agee"], 2, "did you mean 'age'"),
        ([*FULL, "--keep", "income"], 2, "add --twin"),
        ([*FULL, "--twin", "--twin-generator", "ctgan"], 2, "'ctgan' cannot make twins"),
        ([*FULL, "--protected-from", "people.csv"], 2, "--protected-from and --key go together"),
        ([*FULL, "--protected-from", "gone.csv", "--key", "id"], 2, "there is no file 'gone.csv'"),
        ([*FULL, "--protected-from", "people.csv", "--key", "id"], 2, "has no key column 'id'"),
        ([*FULL, "--out", "model.py"], 2, "is the model of this command"),
        ([*FULL, "--out", "notes.txt"], 2, "is not a folder"),
        ([*FULL, "--resume", "--out", "fresh"], 2, "no unfinished run"),
        ([*FULL, "--schema", "none.toml"], 2, "there is no file"),
        ([*FULL, "--model", "model.py"], 2, "KIND:PLACE"),
        ([*FULL, "--model", "pyton:model.py:approve"], 2, "did you mean 'python'"),
        ([*FULL, "--model", "python:model.py:aprove"], 2, "did you mean 'approve'"),
        (
            [*FULL, "--model", "python:model.py:not_a_function"],
            2,
            "is not a model that limi recognises",
        ),
        ([*FULL, "--model", "python:none.py:f"], 2, "there is no file"),
        ([*FULL, "--model", "python:model.py:nan"], 4, "NaN or infinite"),
        ([*FULL, "--model", "python:model.py:broken"], 4, "the model raised KeyError"),
        ([*FULL, "--model", "onnx:none.onnx"], 2, "there is no file"),
        ([*FULL, "--model", "pickle:model.py"], 2, "--trust-pickle"),
        (["report", "none"], 2, "there is no run folder"),
        (["report", "."], 4, "is not a run folder of limi"),
        (["datasets", "show", "adlt"], 2, "did you mean 'adult'"),
    ],
)
def test_bad_input_is_one_sentence_and_an_exit_code(folder, limi, words, code, sentence):
    before = sorted(p.name for p in folder.iterdir())
    got, out, err = limi(*words)
    assert got == code, err
    said = " ".join(err.split())
    assert sentence in said
    assert "Traceback" not in err
    assert out == ""
    after = sorted(p.name for p in folder.iterdir() if p.name != "__pycache__")
    assert after == before


def test_a_model_that_answers_at_random_is_told_and_accused_of_nothing(folder, limi):
    code, out, err = limi(*FULL, "--model", "python:model.py:noisy", "--method", "real")
    assert code == 0, err
    assert out.startswith("0 % of real rows")
    assert "the model does not always give the same answer:" in " ".join(out.split())


def test_held_out_rows_and_what_a_function_answers(folder, limi):
    people = pd.read_csv(folder / "people.csv")
    people[::2].to_csv(folder / "new.csv", index=False)
    given = [*FULL, "--method", "themis", "--generator", "none", "--json"]
    code, out, err = limi(*given, "--held-out", "new.csv", "--output", "score")
    assert code == 0, err
    tree = json.loads(out)
    assert (tree["held_out"], tree["n_held_out"]) == ("new.csv", len(people[::2]))
    assert "held-out" in tree["rates"]
    assert "real" in tree["unmeasured"]
    for words, code in ((["--held-out", "none.csv"], 2), (["--output", "run"], 2)):
        got, out, err = limi(*given, *words)
        assert (got, out) == (code, "")
    assert "label or score (the run folder is --out)" in " ".join(err.split())
    people.drop(columns="sex").to_csv(folder / "new.csv", index=False)
    code, out, err = limi(*given, "--held-out", "new.csv")
    assert (code, out) == (4, "")
    assert "the held-out rows (new.csv) lack the column 'sex'" in " ".join(err.split())


def test_a_model_that_never_sees_the_column_is_asked_about_twins(folder, limi):
    people = pd.read_csv(folder / "people.csv")
    people["id"] = range(len(people))
    people["income"] = people["income"] + (people["sex"] == "M")
    people[["id", "sex"]].to_csv(folder / "sexes.csv", index=False)
    people.drop(columns="sex").to_csv(folder / "blind.csv", index=False)
    (folder / "blind.py").write_text(
        "def earns(frame):\n"
        "    assert list(frame.columns) == ['age', 'income']\n"
        "    return (frame['income'].fillna(3) > 3.5) * 0.8 + 0.1\n",
        encoding="utf-8",
    )
    given = ["test", "blind.csv", "--model", "python:blind.py:earns", "--target", "ok"]
    given += ["--favorable", "yes", "--protected", "sex", "--max-queries", "6000"]
    given += ["--protected-from", "sexes.csv", "--key", "id", "--keep", "age", "--out", "run"]
    code, out, err = limi(*given, "--full")
    assert code == 0, err
    said = " ".join(out.split())
    assert "people with sex F are decided unfavorably, and their twins with sex M favorably" in said
    assert "If sex alone changed: 0 % (the model does not take it)." in said
    assert "if age may differ" in said
    code, out, err = limi("report", "run", "--json")
    tree = json.loads(out)["twins"]
    assert tree["unseen"] == ["sex"]
    assert tree["queries"] <= 6000


def test_fit_and_sample(folder, limi):
    code, out, err = limi("fit", "people.csv", "--target", "ok", "--out", "people.trees", "--json")
    assert code == 0, err
    tree = json.loads(out)
    assert tree["generator"] == "trees"
    assert tree["naturalness"] > 0.85
    assert {"copies_generated", "copies_held_out", "two_sample_auc_boosted"} <= set(tree)
    assert "Content-Security-Policy" in (folder / "people.trees.html").read_text()
    for name in ("a.parquet", "b.parquet"):
        assert limi("sample", "people.trees", "-n", "50", "--seed", "3", "--out", name)[0] == 0
    drawn = pd.read_parquet("a.parquet")
    assert drawn.equals(pd.read_parquet("b.parquet"))
    assert list(drawn.columns) == ["age", "sex", "income"]
    assert set(drawn["sex"]) == {"F", "M"}
    assert drawn["age"].between(18, 79).all()
    assert limi("fit", "people.csv", "--out", "people.trees")[0] == 2
    code, _, err = limi("sample", "people.trees", "--out", "a.parquet")
    assert code == 2
    assert "--force" in err
    code, out, _ = limi(*FULL, "--generator", "people.trees", "--method", "natural", "--json")
    assert code == 0
    assert json.loads(out)["generator"] == "people.trees"
    (folder / "broken.trees").write_bytes(b"PK not")
    code, _, err = limi("sample", "broken.trees", "--out", "c.parquet")
    assert code == 4
    assert "not a generator file" in err


METHODS = ["natural", "themis", "real"]


def test_compare_shows_methods_side_by_side(folder, limi):
    options = ["--methods", "natural,themis,real", "--max-queries", "1500", "--html", "c.html"]
    words = ["compare", *FULL[1:10], *options]
    code, out, err = limi(*words, "--json")
    assert code == 0, err
    lines = json.loads(out)["methods"]
    assert [line["method"] for line in lines] == METHODS
    assert all(line["queries"] <= 1500 for line in lines)
    assert all(line["findings"] > 0 for line in lines)
    assert "natural" in (folder / "c.html").read_text()
    code, out, _ = limi(*words, "--width", "160")  # into a pipe
    assert code == 0
    table = [s for s in out.splitlines() if s.startswith(("method", *METHODS)) and "  " in s]
    assert len(table) == 4
    assert "\u2026" not in out
    assert all(line.startswith(name) for line, name in zip(table[1:], METHODS, strict=True))
    assert len({len(line.rstrip()) for line in table}) == 1  # all columns, aligned at the right
    code, _, err = limi(*words[:-5], "natural,thems", "--max-queries", "1500")
    assert code == 2
    assert "did you mean 'themis'" in err


def test_usage_errors_leave_with_two(folder):
    for words in (["test"], ["tset"], ["list", "things"], ["test", "people.csv", "--nope"]):
        done = subprocess.run(
            [sys.executable, "-m", "limi", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr


def test_an_existing_folder_is_not_overwritten(folder, limi):
    assert limi(*FULL, "--out", "run")[0] == 0
    before = Path("run/summary.json").read_bytes()
    code, _, err = limi(*FULL, "--out", "run")
    assert code == 2
    assert "--force" in err
    assert Path("run/summary.json").read_bytes() == before
    assert limi(*FULL, "--out", "run", "--force")[0] == 0


@pytest.mark.timeout(240)
def test_the_demo_tests_a_real_model(tmp_path, limi):
    code, out, err = limi("demo", "--out", str(tmp_path / "demo"), "--json")
    assert code == 0, err
    tree = json.loads(out)
    assert tree["findings"] > 100
    # With a Wife for a Husband; if only sex changed, half as many people would flip.
    assert 0.045 < tree["rates"]["real"]["estimate"] < 0.062
    assert 0.02 < tree["rules"]["only_protected"]["real"]["estimate"] < 0.035
    assert tree["method"] == "limi"
    assert set(tree["rates"]) == {"real", "natural"}  # hardly any uniform row keeps the rules
    assert "<title>" in (tmp_path / "demo" / "report.html").read_text()


@pytest.mark.parametrize("installed", [True, False])
def test_the_demo_adds_to_the_report_what_that_does_not_say(monkeypatch, installed):
    monkeypatch.setattr(demo, "find_spec", lambda _: installed or None)
    told = demo._next_steps(Path("here"))
    assert "limi explore here" in told
    assert ("limi[explore]" in told) is not installed
    assert "limi repair" not in told  # with it the report ends


def test_the_demo_replaces_its_own_folders_only(tmp_path):
    place = tmp_path / "demo"
    assert _is_demo(place)
    for folder in (place, tmp_path / "demo.partial"):
        folder.mkdir()
        assert _is_demo(place) is (folder != place)
        (folder / "manifest.json").write_text('{"command": "limi test people.csv"}')
        assert not _is_demo(place)
        (folder / "manifest.json").write_text('{"command": "limi demo --out demo --seed 0"}')
        assert _is_demo(place)
    (place / "manifest.json").write_text('{"command": "limi test people.csv"}')
    assert not _is_demo(place)

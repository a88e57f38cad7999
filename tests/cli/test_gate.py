"""`limi gate` and `limi init` as a build runs them."""

import json
import sys
import tomllib

import numpy as np
import pandas as pd
import pytest

from limi.cli import _config, _console

MODEL = """
import numpy as np

def fair(frame):
    return np.where(frame["age"] > 50, 0.8, 0.2)

def unfair(frame):
    return np.where((frame["age"] > 50) & (frame["sex"] == "M"), 0.8, 0.2)

def edge(frame):
    return np.where((frame["number"] % 10 == 0) & (frame["sex"] == "M"), 0.8, 0.2)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    n = 500
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "sex": rng.choice(["F", "M"], n),
            "number": np.arange(n),
            "approved": rng.choice(["yes", "no"], n),
        }
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


BASE = ("gate", "people.csv", "--protected", "sex", "--target", "approved", "--favorable", "yes")
FAIR, UNFAIR, EDGE = (
    (*BASE, "--model", f"python:model.py:{name}", "--generator", "none")
    for name in ("fair", "unfair", "edge")
)


def test_a_fair_model_passes_with_exit_code_0(folder, limi):
    code, out, err = limi(*FAIR, "--rule", "real_rate <= 2 %")
    assert (code, err) == (0, "")
    assert out.startswith("Pass: the rule is kept")
    assert "0 of" in out


def test_an_unfair_model_fails_with_exit_code_1_and_says_on_whom(folder, limi):
    code, out, err = limi(*UNFAIR, "--rule", "real_rate <= 2 %")
    assert (code, err) == (1, "")
    assert out.startswith("Fail: real_rate <= 2 % is broken")
    assert "sex " in out.partition("Decisions that flip:")[2]


def test_a_model_at_the_limit_is_inconclusive_with_exit_code_3_or_what_is_wished(folder, limi):
    words = (*EDGE, "--rule", "real_rate <= 10 %", "--max-queries", "900")
    code, out, _ = limi(*words)
    assert code == 3
    assert out.startswith(
        "Inconclusive: real_rate <= 10 % is neither clearly kept nor clearly broken"
    )
    assert "the budget of queries is spent" in out
    # A table whose rows are all asked leaves nothing open.
    assert limi(*words[:-1], "2000")[0] == 0
    assert limi(*words, "--inconclusive", "pass")[0] == 0
    assert limi(*words, "--inconclusive", "fail")[0] == 1


def test_the_numbers_are_json_on_a_wish_and_in_a_file(folder, limi):
    code, out, _ = limi(*UNFAIR, "--rule", "real_rate <= 2 %", "--out", "gate.json", "--json")
    assert code == 1
    told = json.loads(out)
    assert told == json.loads((folder / "gate.json").read_text())
    (rule,) = told["rules"]
    assert (told["answer"], rule["answer"], rule["limit"]) == ("fail", "fail", 0.02)
    assert rule["low"] > 0.02
    assert rule["hits"] <= rule["rows"]
    assert told["command"].startswith("limi gate people.csv")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "the gate has no rule"),
        (("--rule", "real_rate <= 1"), "has no unit"),
        (("--rule", "real_rat <= 1 %"), "did you mean 'real_rate'"),
        (("--rule", "real_rate <= 1 %", "--inconclusive", "maybe"), "--inconclusive is 'maybe'"),
        (("--rule", "real_rate <= 1 %", "--error", "2"), "error is 2.0"),
        (("--rule", "real_rate <= 1 %", "--decision", "score > 2"), "the threshold is 2"),
        (("--rule", "real_rate <= 1 %", "--out", "gone/x.json"), "no folder"),
        (("--rule", "real_rate <= 1 %", "--baseline", "gone"), "no rule compares"),
        (
            ("--rule", "real_rate no worse than baseline by 1 point", "--baseline", "gone"),
            "there is no run folder",
        ),
    ],
)
def test_a_slip_is_one_sentence_and_leaves_nothing(folder, limi, words, says):
    before = sorted(folder.iterdir())
    code, out, err = limi(*FAIR, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert [p for p in sorted(folder.iterdir()) if p.name != "__pycache__"] == before


def test_a_baseline_of_the_file_is_left_alone_where_typed_rules_need_none(folder, limi):
    (folder / "limi.toml").write_text(
        '[gate]\nbaseline = "gone"\nreal_rate = "no worse than baseline by 1 point"\n'
    )
    code, _, err = limi(*FAIR)
    assert (code, "there is no run folder" in err) == (2, True)
    assert limi(*FAIR, "--rule", "real_rate <= 2 %")[0] == 0
    code, _, err = limi(*FAIR, "--rule", "real_rate <= 2 %", "--baseline", "gone")
    assert (code, "no rule compares" in err) == (2, True)


# -- limi init ------------------------------------------------------------------------------


def test_init_writes_a_file_that_test_and_gate_take(folder, limi):
    code, out, err = limi("init", "people.csv", "--model", "python:model.py:unfair")
    assert (code, err) == (0, "")
    assert out.startswith("Written: limi.toml and schema.toml")
    tree = tomllib.loads((folder / "limi.toml").read_text())
    assert (tree["target"], tree["favorable"]) == ("approved", "yes")
    assert tree["protected"] == ["sex"]
    assert '# protected as well? "age=18-74:8"' in (folder / "limi.toml").read_text()
    assert "approved" not in tomllib.loads((folder / "schema.toml").read_text())["columns"]
    assert _config.read_file("limi.toml")["gate"]["rule"] == ["natural_rate <= 1 %"]
    assert limi("gate")[0] == 1
    code, _, err = limi("test", "--max-rows", "50", "--rate-rows", "20")
    assert (code, err) == (0, "")


def test_init_replaces_nothing_unless_it_is_told_to(folder, limi):
    words = ("init", "people.csv", "--model", "python:model.py:unfair")
    (folder / "schema.toml").write_text("mine")
    code, _, err = limi(*words)
    assert (code, "exists already" in err) == (2, True)
    assert not (folder / "limi.toml").exists()
    assert (folder / "schema.toml").read_text() == "mine"
    assert limi(*words, "--force")[0] == 0


def test_init_writes_paths_as_seen_from_the_file(folder, limi):
    (folder / "gates").mkdir()
    words = ("init", "people.csv", "--model", "python:model.py:unfair")
    assert limi(*words, "--out", "gates/limi.toml")[0] == 0
    tree = tomllib.loads((folder / "gates" / "limi.toml").read_text())
    assert (tree["table"], tree["model"]) == ("../people.csv", "python:../model.py:unfair")
    code, _, err = limi("gate", "--config", "gates/limi.toml", "--rule", "real_rate <= 3 %")
    assert (code, err) == (1, "")


def test_init_takes_what_is_typed(folder, limi):
    code, out, _ = limi(
        *("init", "people.csv", "--model", "python:model.py:fair", "--protected", "age=20-70:10"),
        *("--favorable", "no", "--json"),
    )
    assert code == 0
    told = json.loads(out)
    assert (told["favorable"], told["protected"]) == ("no", ["age=20-70:10"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("people.csv",), "--model is missing"),
        (("people.csv", "--model", "onnx:m.onnx", "--target", "gone"), "'gone'"),
        (("people.csv", "--model", "onnx:m.onnx", "--protected", "gone"), "'gone'"),
        (("plain.csv", "--model", "onnx:m.onnx"), "limi cannot tell which column"),
        (
            ("plain.csv", "--model", "onnx:m.onnx", "--target", "b"),
            "which label of 'b' people want",
        ),
        (
            ("plain.csv", "--model", "onnx:m.onnx", "--target", "b", "--favorable", "u"),
            "--protected COLUMN",
        ),
    ],
)
def test_what_init_cannot_guess_it_asks_for_by_name(folder, limi, words, says):
    pd.DataFrame({"a": [1, 2, 3], "b": list("uvu"), "c": [4, 5, 6]}).to_csv(
        "plain.csv", index=False
    )
    code, out, err = limi("init", *words)
    assert (code in (2, 4), out, err.count("\n")) == (True, "", 1)
    assert says in err
    assert not (folder / "limi.toml").exists()


def test_init_asks_on_a_terminal(folder, limi, monkeypatch):
    asked = []

    def answer(question, default):
        asked.append((question, default))
        return {"Model": "python:model.py:fair", "Protected": "sex; age=20-70:25"}.get(
            question.split()[0].strip(","), default
        )

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(type(_console.out), "is_terminal", True)
    monkeypatch.setattr("limi.cli.init.ask", answer)
    assert limi("init", "people.csv")[0] == 0
    assert [default for _, default in asked] == [None, "approved", "yes", "sex"]
    tree = tomllib.loads((folder / "limi.toml").read_text())
    assert tree["protected"] == ["sex", "age=20-70:25"]


def test_odd_names_do_not_break_the_file(folder, limi):
    odd = 'se"x\\ #1'
    frame = pd.read_csv("people.csv").rename(columns={"sex": odd})
    frame.to_csv("odd.csv", index=False)
    words = ("init", "odd.csv", "--model", "python:m.py:n", "--protected", odd)
    assert limi(*words)[0] == 0
    assert tomllib.loads((folder / "limi.toml").read_text())["protected"] == [odd]


# -- files for CI systems --------------------------------------------------------------------


def test_files_for_ci_systems_are_written_together(folder, limi):
    words = ("--junit", "j.xml", "--sarif", "s.json", "--markdown", "m.md", "--out", "o.json")
    code, out, err = limi(*UNFAIR, "--rule", "real_rate <= 2 %", *words)
    assert (code, err) == (1, "")
    assert "<failure" in (folder / "j.xml").read_text()
    (result,) = json.loads((folder / "s.json").read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "people.csv"}  # no file held the rules
    assert (folder / "m.md").read_text().startswith("### Fairness gate: failed")
    assert out.startswith("Fail")


def test_markdown_may_be_standard_output(folder, limi):
    code, out, _ = limi(*FAIR, "--rule", "real_rate <= 2 %", "--markdown", "-")
    assert (code, out.splitlines()[0]) == (0, "### Fairness gate: passed")


def test_two_outputs_are_two_files_and_none_is_an_input(folder, limi):
    rule = ("--rule", "real_rate <= 2 %")
    for words, says in (
        (("--junit", "x", "--sarif", "./x"), "--sarif names"),
        (("--out", "people.csv"), "which is the table of this command"),
        (("--markdown", "-", "--json"), "both write to standard output"),
        (("--junit", "gone/j.xml"), "there is no folder"),
    ):
        code, out, err = limi(*FAIR, *rule, *words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert says in err
        assert not (folder / "x").exists()
    assert (folder / "people.csv").read_text().startswith("age,")


def test_no_output_takes_the_place_of_the_model_or_of_the_baseline(folder, limi):
    run = ("test", *UNFAIR[1:], "--method", "real", "--rate-rows", "100", "--out", "run")
    code, _, err = limi(*run)
    assert (code, err) == (0, "")
    (folder / "linked").symlink_to("run")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for words, says in (
        (("--junit", "model.py"), "which is the model of this command"),
        (("--out", "run/summary.json"), "which lies in the run of this command"),
        (("--sarif", "run/more.json"), "which lies in the run of this command"),
        (("--markdown", "linked/manifest.json"), "which lies in the run of this command"),
    ):
        code, out, err = limi(*FAIR, "--rule", "real_rate <= 2 %", "--baseline", "./linked", *words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert says in err
        now = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert now == before


def test_a_workflow_of_github_gets_annotations_and_a_summary(folder, limi, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    (folder / "summary.md").write_text("before\n")
    code, out, _ = limi(*UNFAIR, "--rule", "real_rate <= 2 %")
    assert code == 1
    assert [line for line in out.splitlines() if line.startswith("::error file=people.csv")]
    assert (folder / "summary.md").read_text().startswith("before\n### Fairness gate: failed")
    code, out, err = limi(*UNFAIR, "--rule", "real_rate <= 2 %", "--json")
    assert json.loads(out)["answer"] == "fail"
    assert err.startswith("::error")
    assert (folder / "summary.md").read_text().count("###") == 2
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "gone" / "summary.md"))
    assert limi(*FAIR, "--rule", "real_rate <= 2 %")[0] == 2

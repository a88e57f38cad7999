"""limi.toml: options in a file, merged with those that are typed."""

import json
import tomllib

import numpy as np
import pandas as pd
import pytest

from limi.cli import _config
from limi.cli._app import app
from limi.errors import InvalidInput

MODEL = """
def approve(frame):
    return 0.2 + 0.4 * (frame["sex"] == "M") + 0.3 * (frame["age"] > 60)
"""
TEXT = """
table = "people.csv"
model = "python:model.py:approve"
target = "ok"
favorable = 1
protected = ["sex"]
generator = "none"
max_rows = 60
rate_rows = 40
method = "themis"

[settings]
confidence = 0.9

[gate]
real_rate = "<= 1 %"
max_queries = 700

[compare]
methods = "themis"
max_queries = 90
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    people = {"age": rng.integers(18, 80, 90), "sex": rng.choice(["F", "M"], 90)}
    frame = pd.DataFrame(people | {"ok": rng.integers(2, size=90)})
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "limi.toml").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_test_needs_no_words_in_a_folder_with_a_file(folder, limi):
    code, out, err = limi("test", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["table"], told["model"]) == ("people.csv", "python:model.py:approve")
    assert (told["method"], told["settings"]["confidence"]) == ("themis", 0.9)
    assert list(told["protected"]) == ["sex"]
    assert told["rates"]["real"]["n"] == 40


GRADES = """
def grade(frame):
    places = (frame["age"] > 40).astype(int) + (frame["sex"] == "M") * (frame["age"] > 55)
    return places.map({0: "low", 1: "medium", 2: "high"}).to_numpy()
"""


@pytest.mark.parametrize("order", ['"low, medium, high"', '["low", "medium", "high"]'])
def test_a_file_may_order_classes(folder, limi, order):
    people = pd.read_csv("people.csv")
    people["ok"] = np.array(["low", "medium", "high"])[np.arange(90) % 3]
    people.to_csv("people.csv", index=False)
    (folder / "model.py").write_text(GRADES, encoding="utf-8")
    text = TEXT.replace("approve", "grade").replace("favorable = 1", f"order = {order}")
    (folder / "limi.toml").write_text(text, encoding="utf-8")
    code, out, err = limi("test", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["decision"], told["ordered"]) == ("class", True)
    assert told["classes"] == ["low", "medium", "high"]
    older = int((people.age > 55).sum())
    (move,) = next(one for one in told["outcomes"] if one["population"] == "real")["moves"]
    assert 0 < sum(map(sum, move["counts"])) - np.trace(move["counts"]) <= older
    assert limi("gate")[0] == 1


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('["a,b", "c"]', "commas separate labels"),
        ("[true, 1]", "it must hold labels"),
        ("{low = 1}", "it must be text"),
    ],
)
def test_an_order_of_a_file_that_names_no_labels_is_refused(folder, limi, said, words):
    text = TEXT.replace("favorable = 1", f"order = {said}")
    (folder / "limi.toml").write_text(text, encoding="utf-8")
    code, out, err = limi("test")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_the_schema_may_stand_in_the_file_itself(folder, limi):
    text = TEXT.replace(
        "[settings]",
        "[schema.columns.age]\nkind = 'numerical'\nlow = 0\nhigh = 99\nstep = 1\n[settings]",
    )
    (folder / "limi.toml").write_text(text, encoding="utf-8")
    assert limi("test", "--out", "run")[0] == 0
    held = tomllib.loads((folder / "run" / "schema.toml").read_text())["columns"]["age"]
    assert (held["low"], held["high"]) == (0, 99)
    (folder / "limi.toml").write_text(text.replace("kind = ", "kid = "), encoding="utf-8")
    code, out, err = limi("test")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "needs a kind" in err


def test_what_is_typed_wins(folder, limi):
    code, out, _ = limi("test", "--rate-rows", "20", "--protected", "age=20-70:50", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["rates"]["real"]["n"] == 20
    assert told["protected"] == {"age": ["20", "70"]}


def test_every_command_with_a_table_takes_the_file(folder, limi):
    assert limi("schema")[0] == 0
    code, out, err = limi("compare", "--json")
    assert (code, err) == (0, "")
    (method,) = json.loads(out)["methods"]
    assert (method["method"], method["queries"] <= 90) == ("themis", True)
    assert limi("gate")[0] == 1
    assert limi("fit", "--out", "g.gen", "--generator", "trees", "--held-out", "0")[0] == 0


def test_commands_with_a_table_are_those_with_a_config():
    from typer.main import get_command

    for name, command in get_command(app).commands.items():
        names = {parameter.name for parameter in getattr(command, "params", ())}
        if name != "init" and getattr(command, "callback", None):
            takes = any(
                p.name == "table" and not p.opts[0].startswith("--") for p in command.params
            )
            assert ("config" in names) == takes, name


def test_paths_start_at_the_file(folder, limi, monkeypatch, tmp_path_factory):
    away = tmp_path_factory.mktemp("away")
    monkeypatch.chdir(away)
    code, out, err = limi("test", "--config", str(folder / "limi.toml"), "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["table"] == str(folder / "people.csv")


def test_a_file_can_be_left_out(folder, limi):
    code, _, err = limi("test", "--config", "none")
    assert code == 2
    assert "Missing" in err


def test_names_of_data_sets_and_of_models_are_not_paths(tmp_path):
    (tmp_path / "limi.toml").write_text('table = "adult"\nmodel = "demo:income"\n')
    said = _config.read_file(tmp_path / "limi.toml")["test"]
    assert said == {"table": "adult", "model": "demo:income"}
    (tmp_path / "adult").write_text("")
    assert _config.read_file(tmp_path / "limi.toml")["test"]["table"] == str(tmp_path / "adult")


def test_options_of_the_same_name_and_another_kind_are_not_shared(tmp_path):
    (tmp_path / "limi.toml").write_text('held_out = "rest.csv"\nseed = 3\n[fit]\nheld_out = 0.1\n')
    said = _config.read_file(tmp_path / "limi.toml")
    assert said["test"] == {"held_out": str(tmp_path / "rest.csv"), "seed": 3}
    assert said["fit"] == {"held_out": 0.1, "seed": 3}
    assert said["schema"] == {}


def test_rules_of_the_table_and_twins_are_options_like_others(tmp_path):
    (tmp_path / "limi.toml").write_text(
        'constraint = ["age <= 90"]\ntwin = true\nprotected_from = "people.csv"\n'
    )
    said = _config.read_file(tmp_path / "limi.toml")
    assert said["test"] == {
        "constraint": ["age <= 90"],
        "twin": True,
        "protected_from": str(tmp_path / "people.csv"),
    }
    # A gate asks the question of the test; whether twins are asked about too is the test's alone.
    assert said["gate"] == {key: said["test"][key] for key in ("constraint", "protected_from")}


def test_lists_may_be_one_text_or_a_table(tmp_path):
    (tmp_path / "limi.toml").write_text(
        'protected = "sex"\n[settings]\nstep = 0.5\nbold = true\n'
        '[gate.privileged]\nsex = "M"\nrace = ["a", "b, c"]\n'
    )
    said = _config.read_file(tmp_path / "limi.toml")
    assert said["test"]["protected"] == ["sex"]
    assert said["test"]["settings"] == ["step=0.5", "bold=true"]
    assert said["gate"]["privileged"] == ["sex=M", 'race=a,"b, c"']


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("table = ", "is not valid TOML"),
        ("a = " + "[" * 5_000, "nested too deeply"),
        ("x = 1" + "0" * 5_000, "is not valid TOML"),
        ('[project]\nname = "x"', "has 'project'; .*nown: .*"),
        ('protectd = "sex"', "has 'protectd'; did you mean 'protected'"),
        ('"max-queries" = 3', "did you mean 'max_queries'"),
        ("trust_pickle = true", "'trust_pickle', which a file cannot set"),
        ('trust = ["os.system"]', "'trust', which a file cannot set"),
        ('out = "run"', "'out', which a file cannot set"),
        ("force = true", "'force', which a file cannot set"),
        ('max_queries = "many"', "'max_queries' in .* is 'many'; it must be a whole number"),
        ("max_queries = true", "it must be a whole number"),
        ("max_queries = 1.5", "it must be a whole number"),
        ("max_seconds = []", "it must be a number"),
        ("seed = 1979-05-27", "it must be a whole number"),
        ("table = 1979-05-27", "it must be text"),
        ("schema = 3", "it must be a path"),
        ("twin = 1", "it must be true or false"),
        ("protected = [[1]]", "it must be text"),
        ("[settings]\nstep = {}", "write a value, or a list"),
        ("gate = 3", "write a section"),
        ('[gate]\nnatural_rat = "<= 1 %"', r"\[gate\] of .* did you mean 'natural_rate'"),
        ("[gate]\nmax_querys = 3", "did you mean 'max_queries'"),
        ("[gate]\nnatural_rate = true", "write a limit as text"),
        ('[gate]\nout = "x"', "which a file cannot set"),
        ('[gate]\nrule = ["spd <= 0.1"]', "which a file cannot set"),
        ("[compare]\nmethod = 3", "did you mean 'methods'"),
        ('[compare]\n"\\u001b[31m" = 3', r"has '\\x1b\[31m'"),
    ],
)
def test_what_a_file_should_not_say_is_refused_in_one_sentence(tmp_path, text, says):
    (tmp_path / "limi.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=says):
        _config.read_file(tmp_path / "limi.toml")


def test_the_file_must_be_one(folder, limi):
    for words in (("--config", "gone.toml"), ("--config", "."), ("--config", "people.csv")):
        code, out, err = limi("test", *words)
        assert (code, out, err.count("\n")) == (2, "", 1)
    (folder / "limi.toml").unlink()
    (folder / "limi.toml").mkdir()
    assert "is a folder" in limi("test")[2]


def test_whatever_could_run_code_or_replace_a_file_is_typed():
    for command, keys in _config._COMMANDS.items():
        assert keys, command
        assert not {"trust_pickle", "trust", "out", "html", "force", "resume", "config"} & set(keys)

"""The help: groups, examples that exist, what a shell completes, words, settings, the next step."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from limi.cli import _complete, _help
from limi.cli._app import app
from limi.cli._examples import EXAMPLES
from limi.cli.doctor import next_step

PANELS = ["Test", "Understand", "Repair", "Automate", "Research"]


def test_every_command_has_a_group_and_examples():
    commands = get_command(app).commands
    assert {command.rich_help_panel for command in commands.values()} == set(PANELS)
    assert set(EXAMPLES) == set(commands)
    for name, command in commands.items():
        assert all(line in command.epilog for line in EXAMPLES[name])


def test_examples_are_commands_with_options_that_exist():
    for lines in EXAMPLES.values():
        for line in lines:
            command, words = get_command(app), line.split()[1:]
            while words and words[0] in getattr(command, "commands", {}):
                command, words = command.commands[words[0]], words[1:]
            known = {name for p in command.params for name in p.opts}
            assert {word for word in words if word.startswith("-")} <= known, line


def test_help_shows_the_groups_in_their_order(limi):
    _, out, _ = limi("--help")
    places = [re.search(rf"─ {panel} ─", out).start() for panel in PANELS]
    assert places == sorted(places)
    _, out, _ = limi("gate", "--help")
    assert "limi gate --junit gate.xml" in out


def test_help_names_what_stands_behind_an_option(limi):
    _, out, _ = limi("test", "--help")
    assert "limi test [OPTIONS] TABLE" in out
    assert re.search(r"--seed +N ", out)
    assert re.search(r"--resume +Continue", out)
    assert not re.search(r"<(bool|int|float|path|list)", out)


def test_many_options_stand_under_headings_and_few_do_not(limi):
    _, out, _ = limi("test", "--help")
    panels = re.findall(r"─ ([A-Z][a-z ]+) ─", out)
    assert panels[:3] == ["Arguments", "Options", "Model"]
    assert {"Table", "Search", "Budget", "Remote models", "Output"} <= set(panels)
    _, out, _ = limi("demo", "--help")
    assert re.findall(r"─ ([A-Z][a-z ]+) ─", out) == ["Options"]


def test_every_option_under_a_heading_exists():
    every = {
        name for one in get_command(app).commands.values() for p in one.params for name in p.opts
    }
    assert set(_help._PANEL_OF) <= every


def complete(words, folder):
    """What bash is offered behind these words."""
    env = os.environ | {
        "_LIMI_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "limi"],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_a_shell_completes_columns_of_the_table_on_the_line(tmp_path):
    (tmp_path / "people.csv").write_text("age;sex;score\n1;f;2\n", encoding="utf-8")
    assert complete("limi test people.csv --protected s", tmp_path) == ["sex", "score"]


class Context:
    """As much of a context as completion looks at."""

    def __init__(self, name="test", args=(), **params):
        self.info_name, self.args, self.params = name, list(args), params


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        (lambda: _complete._methods("the"), ["themis"]),
        (lambda: _complete._methods("limi+a"), ["limi+adf", "limi+aequitas"]),
        (lambda: _complete._several_methods("limi,them"), ["limi,themis"]),
        (lambda: _complete._generators("t"), ["transport", "trees"]),
        (lambda: _complete._kinds("sk"), ["sklearn:", "skops:"]),
        (lambda: _complete._kinds("skops:mo"), []),
        (lambda: _complete._columns(Context(table="adult"), "se"), ["sex"]),
        (lambda: _complete._columns(Context(table="adult"), "race,se"), ["race,sex"]),
        (lambda: _complete._columns(Context(table="no such file"), ""), []),
        (lambda: _complete._settings(Context(method="limi"), "preset=p"), ["preset=paper"]),
        (lambda: _complete._settings(Context(method="nothing"), ""), []),
    ],
)
def test_what_is_offered(offered, expected):
    assert list(offered()) == expected


def test_settings_are_offered_with_what_they_mean():
    offered = dict(_complete._settings(Context("fit", generator="trees"), "m"))
    assert offered
    assert all(name.endswith("=") and "default" in told for name, told in offered.items())


def test_a_file_that_is_no_table_offers_nothing(tmp_path):
    (tmp_path / "noise.parquet").write_bytes(b"\x00\x01")
    assert _complete._column_names(str(tmp_path / "noise.parquet")) == []


def test_words_and_abbreviations_of_metrics_are_explained(limi):
    for term, said in {
        "aod": "odds",
        "ATN": "naturalness",
        "twin": "group",
        "IF_r": "flip",
    }.items():
        code, out, _ = limi("explain", term)
        assert code == 0
        assert said in out


def test_verbose_lists_have_settings_and_defaults(limi):
    code, out, _ = limi("list", "methods", "--verbose")
    assert code == 0
    assert "preset=paper" in out
    assert "0.3" in out.partition("\nlimi:")[2].partition("\n\n")[0]


def extras(version):
    return {
        name: {"packages": {name: version}, "install": f"pip install 'limi[{name}]'"}
        for name in ("onnx", "skops", "torch", "boosters", "tables")
    }


def test_the_next_step_follows_from_what_lies_in_the_folder(tmp_path):
    assert next_step(tmp_path, extras("1")) == "limi demo"
    (tmp_path / "my people.csv").write_text("a\n1\n")
    assert next_step(tmp_path, extras("1")) == "limi init 'my people.csv' --model KIND:PLACE"
    (tmp_path / "limi.toml").write_text("")
    assert next_step(tmp_path, extras("1")).startswith("limi test")
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "summary.json").write_text("{}")
    assert next_step(tmp_path, extras("1")) == "limi report runs/a"
    (tmp_path / "model.onnx").write_bytes(b"")
    assert next_step(tmp_path, extras("1")) == "limi report runs/a"
    assert next_step(tmp_path, extras(None)).startswith("pip install 'limi[onnx]'")
    assert next_step(tmp_path / "nowhere", extras("1")) == "limi demo"


def test_doctor_says_what_to_do_next(limi, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "next: limi demo" in limi("doctor")[1]
    assert json.loads(limi("doctor", "--json")[1])["next"] == "limi demo"

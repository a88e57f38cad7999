"""What `tests/hostile` cannot reach: other packages, workers, baselines, and names on pages."""

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
import skops.io as sio

import limi
from limi.cli import main
from limi.errors import InvalidInput
from limi.repairs import _core, _verify
from limi.report import repair as page
from tests.repairs.test_repair import people, pipeline


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    frame = people(200)
    frame.to_csv(folder / "people.csv", index=False)
    sio.dump(pipeline().fit(frame.drop(columns="ok"), frame["ok"]), folder / "model.skops")
    limi.audit(
        f"skops:{folder / 'model.skops'}",
        pd.read_csv(folder / "people.csv"),
        protected=["sex"],
        target="ok",
        favorable="yes",
        method="natural",
        max_rows=300,
        rate_rows=100,
        out=folder / "run",
        table_name=str(folder / "people.csv"),
    )
    return folder


@pytest.fixture
def call(home, monkeypatch, capsys):
    monkeypatch.chdir(home)
    monkeypatch.setattr(_core, "_RATE_ROWS", 200)
    monkeypatch.setattr(_core, "_SEARCH_ROWS", 100)
    monkeypatch.setattr(_verify, "quick_generators", lambda: ["trees"])

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["limi", *map(str, words)])
        with pytest.raises(SystemExit) as done:
            main()
        shown = capsys.readouterr()
        return done.value.code, shown.out, shown.err

    return run


def test_a_kind_of_another_package_must_be_named(home, tmp_path, monkeypatch):
    copy = Path(shutil.copytree(home / "run", tmp_path / "run"))
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | {"model": "plugin:x"}))
    monkeypatch.setattr("limi.models.names", lambda: ["plugin"])
    monkeypatch.setattr("limi.models.get", lambda kind: ModuleType(kind))
    with pytest.raises(InvalidInput, match=r"opening it may run code.*--model plugin:x"):
        limi.reopen(copy)


# -- marks in names -------------------------------------------------------------------------

NASTY = "</td><script>alert(1)</script>|`x`[l](http://e)\n# H\x1b[31m"


def test_a_card_and_notes_take_names_for_text(call, tmp_path):
    code, _, err = call("repair", "run", "--seeds", 1, "--no-model", "--out", tmp_path / "out")
    assert code == 0, err
    tree = json.loads((tmp_path / "out" / "repair.json").read_text())
    plain = page.card(tree)
    tree["run"] |= {
        "model": NASTY,
        "table": NASTY,
        "target": NASTY,
        "favorable": NASTY,
        "protected": {NASTY: [NASTY, "M"]},
        "generator": NASTY,
    }
    tree |= {"groups": {"privileged": NASTY, "why": NASTY}, "command": f"limi repair {NASTY}"}
    card = page.card(tree)
    assert len(card.splitlines()) == len(plain.splitlines())
    assert "\x1b" not in card
    spoken = [line for line in card.splitlines() if not line.startswith("Made by")]
    assert "<script" not in "\n".join(spoken)
    assert "](" not in "\n".join(spoken).replace("\\[l](", "")
    made = next(line for line in card.splitlines() if line.startswith("Made by"))
    assert made.count("``") == 2  # a fence that the name does not close
    assert "<script" not in page.render(tree)

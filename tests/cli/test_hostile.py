"""Careless and hostile input to commands that read what earlier ones wrote: one sentence each."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import skops.io as sio

import limi
from limi.cli import main
from limi.errors import BadModel, CorruptStore, InvalidInput
from limi.models.python import attribute
from limi.repairs import _core, _verify
from limi.report import repair as page
from limi.studies import _formats, _pool, _results, _run, _watch
from limi.system.words import markdown
from tests.repairs.test_repair import people, pipeline

FIT = """
def ends(frame, labels):
    raise SystemExit(0)

def fills(frame, labels):
    raise MemoryError("too many")

def interrupted(frame, labels):
    raise KeyboardInterrupt
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    frame = people(200)
    frame.to_csv(folder / "people.csv", index=False)
    sio.dump(pipeline().fit(frame.drop(columns="ok"), frame["ok"]), folder / "model.skops")
    (folder / "fit.py").write_text(FIT, encoding="utf-8")
    (folder / "evil.py").write_text("open('ran', 'w')\ndef f(frame): return 0.5", encoding="utf-8")
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


@pytest.fixture
def copy(home, tmp_path):
    """The run folder, to be damaged."""
    return Path(shutil.copytree(home / "run", tmp_path / "run"))


def edit(path, *keys, value):
    tree = json.loads(path.read_text())
    part = tree
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    path.write_text(json.dumps(tree))


# -- damaged run folders -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (["rates"], "x"),
        (["rates", "real", "low"], [1]),
        (["n_rows"], "\x1b[31m"),
        (["seed"], "x"),
        (["method"], 3),
        (["protected_values"], {"sex": 3}),
        (["metrics", "individual", "flip_rates", "real", "value"], "x"),
        (["metrics", "individual", "consistency", "n"], {}),
        (["metrics", "group", "sex"], None),
        (["metrics", "severity"], [1]),
        (["metrics", "effectiveness", "findings_per_second", "value"], 10**400),
    ],
    ids=lambda given: str(given)[:40],
)
@pytest.mark.parametrize("command", ["metrics", "report"])
def test_an_edited_summary_is_one_sentence_and_shows_nothing(call, copy, keys, value, command):
    edit(copy / "summary.json", *keys, value=value)
    code, out, err = call(command, copy)
    assert (code, out) == (4, "")
    assert len(err.strip().splitlines()) == 1
    assert "\x1b" not in err


def test_counts_that_were_edited_are_found_when_groups_are_asked_for(call, copy):
    edit(copy / "summary.json", "metrics", "group", "sex", "counts", 0, "rows", value="x")
    code, out, err = call("metrics", copy, "--privileged", "sex=M")
    assert (code, out) == (4, "")
    assert "the summary in" in err


@pytest.mark.parametrize("name", ["summary.json", "manifest.json"])
@pytest.mark.parametrize("content", ["[" * 100_000, "[]", "", '{"format": []}', "\x00"])
def test_json_that_is_none_of_ours(call, copy, tmp_path, name, content):
    (copy / name).write_text(content)
    code, out, err = call("repair", copy, "--out", tmp_path / "out")
    assert (code, out) == (4, "")
    assert len(err.strip().splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_a_pipe_in_a_run_folder_is_not_waited_for(copy):
    (copy / "summary.json").unlink()
    os.mkfifo(copy / "summary.json")
    with pytest.raises(CorruptStore, match="it is no file"):
        limi.reopen(copy)


@pytest.mark.parametrize(
    "change",
    [
        ('["F", "M"]', '[["F"], "M"]'),
        ("high = 19", "high = inf"),
        ("format = 1", "format = 9"),
        ("format = 1", "x = " + "[" * 5000),
    ],
    ids=["levels", "range", "newer", "deep"],
)
def test_a_damaged_schema_is_a_damaged_run(call, copy, change):
    text = (copy / "schema.toml").read_text()
    assert change[0] in text
    (copy / "schema.toml").write_text(text.replace(*change))
    code, _, err = call("metrics", copy)
    assert code == 4
    assert "the schema in" in err


@pytest.mark.parametrize(
    ("name", "value"),
    [("target", 3), ("target", ["ok"]), ("table", None), ("model", {}), ("data_sha256", None)],
)
def test_a_manifest_of_other_types_is_damaged(copy, name, value):
    edit(copy / "manifest.json", name, value=value)
    with pytest.raises(CorruptStore, match=f"its {name} is"):
        limi.reopen(copy)


def test_a_table_whose_name_no_file_can_have(copy):
    edit(copy / "manifest.json", "table", value="x" * 5000)
    with pytest.raises(InvalidInput, match="is not at"):
        limi.reopen(copy)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.assign(score="x"),
        lambda f: f.assign(score=[[0.5]] * len(f)),
        lambda f: f.assign(partner_score=5.0),
        lambda f: f.assign(sex__partner=f["sex"]),
        lambda f: f.drop(columns="origin"),
    ],
    ids=["text", "lists", "partner score", "partner", "no origin"],
)
def test_edited_findings_are_refused(copy, change):
    path = copy / "findings.parquet"
    change(pd.read_parquet(path)).to_parquet(path)
    with pytest.raises((CorruptStore, BadModel), match=r"findings in|answers otherwise"):
        limi.reopen(copy)


# -- code that a folder would like to run ------------------------------------------------


@pytest.mark.parametrize("given", [[], ["--model", ""], ["--trust-pickle"]])
@pytest.mark.parametrize(
    "kind", ["python:evil.py:f", "pickle:evil.pkl", "joblib:x", "plugin:x", "torch:x.pt2"]
)
def test_no_manifest_chooses_code_to_run(call, copy, home, tmp_path, given, kind):
    edit(copy / "manifest.json", "model", value=kind)
    edit(copy / "manifest.json", "trust_pickle", value=True)
    code, _, err = call("repair", copy, "--out", tmp_path / "out", *given)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert not (home / "ran").exists()


def test_a_kind_of_another_package_must_be_named(copy, monkeypatch):
    monkeypatch.setattr("limi.models.names", lambda: ["plugin"])
    monkeypatch.setattr("limi.models.get", lambda kind: ModuleType(kind))
    edit(copy / "manifest.json", "model", value="plugin:x")
    with pytest.raises(InvalidInput, match=r"opening it may run code.*--model plugin:x"):
        limi.reopen(copy)


def test_an_error_does_not_steer_the_terminal(call, copy, tmp_path):
    edit(copy / "manifest.json", "model", value="python:a\nb\x1b[31m.py:f")
    code, _, err = call("repair", copy, "--out", tmp_path / "out")
    assert code == 2
    assert "\x1b" not in err
    assert len(err.strip().splitlines()) == 1


# -- functions that fit -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "told"), [("ends", "raised SystemExit: 0"), ("fills", "raised MemoryError: too many")]
)
def test_a_fit_function_neither_ends_the_program_nor_fills_the_screen(call, tmp_path, name, told):
    code, out, err = call(
        *("repair", "run", "--seeds", 1, "--out", tmp_path / "out", "--fit", f"fit.py:{name}")
    )
    assert (code, out) == (4, "")
    assert told in err
    assert not list(tmp_path.iterdir())


def test_an_interrupt_is_said_and_leaves_nothing(call, tmp_path):
    code, _, err = call(
        *("repair", "run", "--seeds", 1, "--out", tmp_path / "out", "--fit", "fit.py:interrupted")
    )
    assert code == 130
    assert err.strip() == "limi: interrupted"
    assert not list(tmp_path.iterdir())


def test_a_file_that_ends_the_program_is_a_bad_model(tmp_path):
    (tmp_path / "ends.py").write_text("import sys; sys.exit(0)")
    with pytest.raises(BadModel, match="raised SystemExit"):
        attribute(f"{tmp_path / 'ends.py'}:f")


@pytest.mark.parametrize("seeds", [0, 10**20])
def test_seeds_have_an_end(call, tmp_path, seeds):
    code, _, err = call("repair", "run", "--out", tmp_path / "out", "--seeds", seeds)
    assert code == 2
    assert f"seeds is {seeds}" in err


def test_volume_and_groups_that_mean_nothing(call):
    code, _, err = call("metrics", "run", "--volume", 10**400)
    assert code == 2
    assert "from 1 to 1,000,000,000,000" in err
    code, _, err = call("metrics", "run", "--privileged", "sex=M", "--privileged", "sex=F")
    assert code == 2
    assert "names 'sex' twice" in err


# -- folders to write ---------------------------------------------------------------------


def test_a_link_that_leads_to_itself_is_no_folder_to_repair_into(call, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    code, _, err = call("repair", "run", "--out", tmp_path / "loop")
    assert code == 2
    assert "cannot be written to" in err


# -- studies --------------------------------------------------------------------------------

CELL = {"cell": "credit-sex/limi/0", "digest": "d", "status": "done", "took": 1.0}


@pytest.mark.parametrize(
    "change",
    [
        {"cell": "<script>/limi/0"},
        {"cell": "credit-sex/../0"},
        {"cell": "credit-sex/limi/-1"},
        {"cell": 3},
        {"status": None},
        {"status": "fine"},
        {"took": "long"},
        {"took": -1},
        {"given": []},
        {"given": {"target": 3}},
        {"measures": "many"},
        {"measures": {"findings": "many"}},
        {"measures": {"findings": 10**400}},
        {"measures": {"findings": float("inf")}},
        {"measures": {"before": 3}},
        {"measures": {"picture": {"x": [1.0, 2.0], "real": [1.0]}}},
        {"measures": {"picture": {}}},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_cell_that_was_edited_is_refused(tmp_path, change):
    study = limi.studies.load("dnn")
    path = tmp_path / "cells" / "smoke" / "dnn" / "a.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(CELL | {"measures": {"findings": 3, "stop": "rows"}}))
    assert len(limi.studies.read(study, "smoke", tmp_path).outcomes) == 1
    path.write_text(json.dumps(CELL | change))
    with pytest.raises(CorruptStore, match="delete it, and run again"):
        limi.studies.read(study, "smoke", tmp_path)


@pytest.mark.parametrize(
    "tree",
    [
        [],
        {"format": "x", "made": {}, "cells": []},
        {"made": [], "cells": []},
        {"made": {"versions": 3}, "cells": []},
        {"made": {}, "cells": 3},
        {"made": {}},
    ],
)
def test_a_kept_file_that_was_edited_is_refused(tmp_path, tree):
    (tmp_path / "smoke").mkdir()
    (tmp_path / "smoke" / "dnn.json").write_text(json.dumps(tree))
    with pytest.raises(CorruptStore, match="holds no results of a study"):
        limi.studies.read(limi.studies.load("dnn"), "smoke", tmp_path)


def test_no_cell_is_run_where_results_cannot_be_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(_run, "measured", lambda cell, shop: pytest.fail("a cell was run"))
    (tmp_path / "file").write_text("")
    study = limi.studies.load("dnn")
    for kept in (tmp_path / "file", tmp_path / ("x" * 300)):
        with pytest.raises(InvalidInput, match=r"--keep names .* cannot be written"):
            _run.run([study], scale="smoke", out=tmp_path / "out", kept=kept, workers=1)
    with pytest.raises(InvalidInput, match="seeds is 100000000000"):
        _run.run([study], scale="smoke", out=tmp_path / "out", seeds=10**11)
    with pytest.raises(InvalidInput, match="cannot be read"):
        _results.read(study, "smoke", tmp_path / ("x" * 300))


@pytest.mark.parametrize("content", ["[]", '{"a": 3}', '{"a": {"findings": "x"}}', "[" * 100_000])
def test_a_damaged_baseline_is_said_before_the_watch(tmp_path, content):
    (tmp_path / "watch.json").write_text(content)
    with pytest.raises(CorruptStore, match="the baseline"):
        _watch.watch(tmp_path / "watch.json")


def test_a_worker_that_ended_before_its_job_fails_that_job_alone():
    with _pool.Pool(abs, workers=2) as pool:
        assert sorted(result for _, result in pool.each([-1, -2])) == [1, 2]
        gone = pool._crew[0]
        os.kill(gone._process.pid, signal.SIGKILL)
        gone._process.join()
        results = dict(pool.each([-3, -4]))
    assert [one.kind for one in results.values() if isinstance(one, _pool.Failure)] == ["Killed"]
    assert len([one for one in results.values() if one in (3, 4)]) == 1


PARENT = """
import time
from limi.studies._pool import Pool
if __name__ == "__main__":
    with Pool(time.sleep, workers=2) as pool:
        jobs = pool.each([0.01, 0.01])
        next(jobs), next(jobs)
        print("working", flush=True)
        list(pool.each([600, 600]))
"""


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    root = Path(__file__).parents[2]
    parent = subprocess.Popen(
        [sys.executable, "parent.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "working\n"
    parent.kill()
    parent.wait()
    # The workers hold the other end of this pipe until they end.
    closed, _, _ = select.select([parent.stdout], [], [], 60)
    assert closed
    assert parent.stdout.read() == ""
    parent.stdout.close()


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


def test_marks_of_markdown_and_notes():
    assert markdown("a|b") == r"a\|b"
    table = _formats.Table("t", ("a", "b"), (("x", "y"),), (f"failed: `x`: {NASTY}",))
    drawn = _formats.render(table, "markdown")
    assert "<script" not in drawn
    assert "\n# H" not in drawn
    assert "- failed: `x`: " in drawn
    assert np.array([line.startswith("- ") for line in drawn.splitlines()]).sum() == 1

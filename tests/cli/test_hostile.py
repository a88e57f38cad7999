"""What `tests/hostile` cannot reach: other packages, workers, baselines, and names on pages."""

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
from limi.errors import CorruptStore, InvalidInput
from limi.repairs import _core, _verify
from limi.report import repair as page
from limi.studies import _formats, _pool, _results, _run, _watch
from limi.system.words import markdown
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


# -- studies --------------------------------------------------------------------------------


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

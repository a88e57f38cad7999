"""Runs of studies that stop and go on, and what is refused before the first cell."""

import json
import os
import signal
import subprocess
import sys

import pytest

from lab import cells as _cells
from lab import results as _results
from lab import run as _run
from lab.cells import expand
from lab.files import load
from lab.formats import render
from lab.outdated import describe_outdated, find_outdated
from lab.results import DONE, read
from lab.tables import tables
from limi import methods
from limi.errors import CorruptStore, InvalidInput
from tests.lab.small import ROOT


@pytest.fixture
def fake(monkeypatch):
    """Cells that count how often they are measured, and need nothing."""
    ran = []

    def measure_cell(cell, shop):
        ran.append(cell.name)
        return {"findings": 100 + 10 * cell.seed, "atn": 0.5, "accuracy": 0.9}

    monkeypatch.setattr(_run, "measure_cell", measure_cell)
    monkeypatch.setattr(_run, "needs_of", lambda cells: [])
    return ran


def go(tmp_path, name="dnn", **given):
    return _run.run(
        [load(name)], **{"scale": "smoke", "out": tmp_path / "out", "workers": 1, **given}
    )


def test_a_second_run_does_nothing_and_a_lost_cell_is_run_again(fake, tmp_path):
    first = go(tmp_path)
    assert first.run == first.cells == len(fake) == first.counts[DONE] == 12
    assert go(tmp_path).run == 0
    (tmp_path / "out" / "cells" / "smoke" / "dnn" / "credit-sex.adf.0.json").unlink()
    fake.clear()
    again = go(tmp_path)
    assert (again.run, again.cells, fake) == (1, 12, ["credit-sex/adf/0"])


def test_more_seeds_run_only_the_new_ones(fake, tmp_path):
    go(tmp_path)
    fake.clear()
    assert go(tmp_path, seeds=3).run == 24
    assert {name.rpartition("/")[2] for name in fake} == {"1", "2"}


def test_cells_of_other_revisions_or_settings_are_stale_and_of_other_versions_not(
    fake, tmp_path, monkeypatch
):
    go(tmp_path)
    monkeypatch.setattr(_cells, "tools", lambda: {"numpy": "9.9"})
    assert go(tmp_path).run == 0

    def describe():
        known = read(load("dnn"), "smoke", tmp_path / "out")
        return describe_outdated(known, find_outdated(known, expand(load("dnn"), "smoke", 1)))

    assert describe() == ""
    monkeypatch.setattr(methods.get("adf"), "revision", 2, raising=False)
    assert describe() == (
        "1 of the cells shown would be run again today: `adf` (1): revision 1 of the method, which "
        "is now at 2."
    )
    fake.clear()
    assert go(tmp_path).run == 1
    assert fake == ["credit-sex/adf/0"]
    found = read(load("dnn"), "smoke", tmp_path / "out").outcomes
    assert (found["credit-sex/adf/0"].revision, found["credit-sex/limi/0"].revision) == (2, 1)
    assert go(tmp_path).run == 0
    plain = _cells._settings
    monkeypatch.setattr(
        _cells,
        "_settings",
        lambda size, method: plain(size, method) | ({"n_seeds": 7} if method == "adf" else {}),
    )
    fake.clear()
    assert go(tmp_path).run == 1
    assert fake == ["credit-sex/adf/0"]
    assert go(tmp_path, fresh=True).run == 12


def test_only_some_cells(fake, tmp_path):
    ran = go(tmp_path, only="*/l*/0")
    assert fake == ["credit-sex/limi/0"]
    assert ran.counts == {DONE: 1, "missing": 11}
    with pytest.raises(InvalidInput, match="no cell is called 'nothing'"):
        go(tmp_path, only="nothing")


def test_kept_results_count_as_done_and_are_one_line_a_cell(fake, tmp_path, monkeypatch):
    go(tmp_path, kept=tmp_path / "kept")
    text = (tmp_path / "kept" / "smoke" / "dnn.json").read_text()
    assert len(json.loads(text)["cells"]) == 12
    assert len(text.splitlines()) == 14  # a line a cell, one before, one behind
    fake.clear()
    other = _run.run(
        [load("dnn")], scale="smoke", out=tmp_path / "new", workers=1, kept=tmp_path / "kept"
    )
    assert (other.run, fake, other.counts) == (0, [], {DONE: 12})
    assert (tmp_path / "kept" / "smoke" / "dnn.json").read_text() == text
    # Cells that another machine has run keep their maker beside the new one's.
    monkeypatch.setattr(_results, "machine", lambda: {"processor": "another", "cores": 1})
    go(tmp_path, kept=tmp_path / "kept", seeds=2)
    made = read(load("dnn"), "smoke", tmp_path / "kept").made
    assert made["processor"] == "another"
    assert [one["cores"] for one in made["earlier"]] == [os.cpu_count()]


def test_a_failing_cell_is_kept_as_failed_and_tried_again(fake, tmp_path, monkeypatch):
    good = _run.measure_cell

    def sometimes(cell, shop):
        if cell.variant == "sg":
            raise InvalidInput("sg is on strike")
        return good(cell, shop)

    monkeypatch.setattr(_run, "measure_cell", sometimes)
    ran = go(tmp_path)
    assert ran.counts == {DONE: 11, "failed": 1}
    assert ran.problems == (("dnn credit-sex/sg/0", "sg is on strike"),)
    shown = render(tables(load("dnn"), read(load("dnn"), "smoke", tmp_path / "out"))[0])
    assert "failed: credit-sex, sg: sg is on strike" in shown
    monkeypatch.setattr(_run, "measure_cell", good)
    assert go(tmp_path).counts == {DONE: 12}


KILLED = """
import os, signal, sys
from pathlib import Path
from lab import files as _files
from lab import run as _run

def measure_cell(cell, shop):
    if cell.variant == "eidig":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"findings": 1}

_run.measure_cell = measure_cell
_run.needs_of = lambda cells: []
_run.run([_files.load("dnn")], scale="smoke", out=Path(sys.argv[1]), workers=1)
"""


def test_a_killed_run_goes_on_where_it_was(fake, tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out")], cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    assert go(tmp_path).run == 9  # aequitas, sg and adf were done
    assert "credit-sex/aequitas/0" not in fake
    assert fake[0] == "credit-sex/eidig/0"


def test_a_table_that_is_not_there_makes_its_cells_absent(fake, tmp_path, monkeypatch):
    monkeypatch.delenv("LIMI_DATA", raising=False)
    ran = go(tmp_path, scale="small", seeds=1)
    assert ran.counts == {DONE: 72, "absent": 12}
    assert not any("meps" in name for name in fake)
    assert "LIMI_DATA" in ran.problems[0][1]
    results = read(load("dnn"), "small", tmp_path / "out")
    shown = tables(load("dnn"), results)
    row = next(r for r in shown[0].rows if r[:2] == ("meps-sex", "limi"))
    assert row[2:5] == ("absent", "109,701", "")
    assert sum(note.startswith("absent: meps: ") for note in shown[0].notes) == 1
    # A mean over benchmarks of which one is missing would be another mean.
    mean = next(r for r in shown[0].rows if r[:2] == ("mean", "limi"))
    assert mean[2] == "-"
    # Where the table comes back, its cells are run.
    monkeypatch.setattr(_run, "_absent_tables", lambda cells: {})
    assert go(tmp_path, scale="small", seeds=1).run == 12


def test_progress_is_told_cell_by_cell(fake, tmp_path):
    told = []
    go(tmp_path, on_progress=told.append)
    assert told[0].startswith("1 of 12: dnn credit-sex/")
    assert told[-1].startswith("12 of 12: dnn credit-sex/")


def test_bad_numbers_and_places_are_refused(fake, tmp_path):
    with pytest.raises(InvalidInput, match="seeds is 0"):
        go(tmp_path, seeds=0)
    with pytest.raises(InvalidInput, match="workers is 0"):
        go(tmp_path, workers=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be written"):
        go(tmp_path, out=tmp_path / "file")
    place = tmp_path / "out" / "cells" / "smoke" / "dnn"
    place.mkdir(parents=True)
    (place / "x.json").write_text("{")
    with pytest.raises(CorruptStore, match=r"x\.json.*holds no results"):
        go(tmp_path)
    (place / "x.json").write_text('{"cell": "a", "digest": "", "status": "done"}')
    with pytest.raises(CorruptStore, match="holds no results"):
        go(tmp_path)


def test_no_cell_is_run_where_results_cannot_be_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(_run, "measure_cell", lambda cell, shop: pytest.fail("a cell was run"))
    (tmp_path / "file").write_text("")
    study = load("dnn")
    for kept in (tmp_path / "file", tmp_path / ("x" * 300)):
        with pytest.raises(InvalidInput, match=r"--keep names .* cannot be written"):
            _run.run([study], scale="smoke", out=tmp_path / "out", kept=kept, workers=1)
    with pytest.raises(InvalidInput, match="seeds is 100000000000"):
        _run.run([study], scale="smoke", out=tmp_path / "out", seeds=10**11)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read(study, "smoke", tmp_path / ("x" * 300))

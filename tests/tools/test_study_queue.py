"""The queue of cells for a borrowed machine: what it leaves out, and what it keeps."""

import dataclasses
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from limi import studies
from limi.studies import _results
from tests.studies.small import outcome

FILE = Path(__file__).parent.parent.parent / "tools" / "study_queue.py"


def test_a_cell_that_has_changed_is_run_again_and_one_that_has_not_is_left_out(tmp_path):
    study = studies.load("combination")
    cells = {c.name: c for c in studies.expand(study, "small") if c.benchmark == "credit-sex"}
    kept, changed = "credit-sex/adf/0", "credit-sex/adf/1"
    outcomes = {
        kept: dataclasses.replace(outcome(kept), digest=cells[kept].digest()),
        changed: outcome(changed),
    }
    _results.keep(_results.Results(study.name, "small", outcomes), tmp_path)
    only = ["--only", "combination small credit-sex/*", "--list"]
    told = subprocess.run(
        [sys.executable, FILE, "--done", tmp_path, *only],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    listed = {line.removeprefix("combination small ").strip() for line in told if "/" in line}
    assert listed == set(cells) - {kept}


STUDY = studies.load("combination")
TODAY = {c.name: c.digest() for c in studies.expand(STUDY, "small")}
GOOD, THIRD, NEW = "credit-sex/adf/0", "credit-sex/adf/2", "census-sex/adf/0"


def cell(name, findings, **changes):
    made = outcome(name, findings=findings)
    given = made.given | {"machine": "old" if findings == 1 else "new"}
    return dataclasses.replace(made, **{"digest": TODAY.get(name, "d"), "given": given} | changes)


def keep(folder, machine, *cells):
    made = {"processor": machine, "cores": 2}
    of = {one.cell: one for one in cells}
    _results.keep(_results.Results(STUDY.name, "small", of, made), folder)


@pytest.fixture(scope="module")
def queue():
    spec = importlib.util.spec_from_file_location("study_queue", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(os.environ), mock.patch.object(sys, "path", [*sys.path]):
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def merge(queue, capsys):
    def call(fresh, kept):
        """What is kept afterwards, and what was said."""
        queue.merge(fresh, kept)
        return _results.read(STUDY, "small", kept), capsys.readouterr().out.strip()

    return call


def test_cells_in_miniature_are_trained_for_next_to_nothing(queue):
    extras = [cell.extra for cell in queue.list_cells(tiny=True)]
    assert {extra["epochs"] for extra in extras if "epochs" in extra} == {1}
    assert {extra["length"] for extra in extras if "length" in extra} == {0.01}


def found(results):
    return {name: one.measures["findings"] for name, one in results.outcomes.items()}


def test_cells_of_a_call_replace_the_kept_ones_in_the_order_of_the_study(merge, tmp_path):
    kept, fresh = tmp_path / "kept", tmp_path / "fresh"
    keep(kept, "old", cell(THIRD, 1), cell(GOOD, 1))
    keep(fresh, "new", cell(NEW, 2), cell(GOOD, 2), cell("credit-sex/adf/99", 2))
    merged, said = merge(fresh, kept)
    assert found(merged) == {GOOD: 2, THIRD: 1, NEW: 2}  # no cell is added that no one plans
    assert list(merged.outcomes) == [name for name in TODAY if name in (GOOD, THIRD, NEW)]
    assert merged.made["processor"] == "new"
    assert [one["processor"] for one in merged.made["earlier"]] == ["old"]
    assert said == "small/combination: 2 new of 3; 1 not planned"


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ({}, {"status": "failed"}, "failed"),
        ({}, {"status": "absent"}, "not done, where a kept one is"),
        ({}, {"digest": "other settings"}, "with other settings"),
        ({"digest": "other settings"}, {"digest": "other settings"}, ""),
        ({"digest": "other settings"}, {}, ""),
        ({"status": "absent"}, {"digest": "other settings"}, ""),
        (
            {"status": "unable"},
            {"status": "absent", "digest": "other settings"},
            "with other settings",
        ),
        ({"status": "unable"}, {"status": "absent"}, ""),
        ({"status": "absent"}, {"status": "failed"}, "failed"),
        (None, {"status": "failed"}, "failed"),
        (None, {"status": "unable"}, ""),
        (None, {"digest": "other settings"}, "with other settings"),
    ],
)
def test_a_failed_or_outdated_cell_replaces_no_good_one(old, new, refusal, merge, tmp_path):
    kept, fresh = tmp_path / "kept", tmp_path / "fresh"
    keep(kept, "old", cell(THIRD, 1), *([cell(GOOD, 1, **old)] if old is not None else []))
    keep(fresh, "new", cell(GOOD, 2, **new))
    before = (kept / "small" / "combination.json").read_bytes()
    merged, said = merge(fresh, kept)
    assert (found(merged).get(GOOD) == 2) == (not refusal)
    told = f"0 new of 1; 1 {refusal}" if refusal else "1 new of 1"
    assert said == f"small/combination: {told}"
    if refusal:
        assert (kept / "small" / "combination.json").read_bytes() == before


def test_kept_cells_of_more_seeds_than_are_planned_stay(merge, tmp_path):
    kept, fresh = tmp_path / "kept", tmp_path / "fresh"
    keep(kept, "old", cell("credit-sex/adf/99", 1), cell(GOOD, 1))
    keep(fresh, "new", cell(NEW, 2))
    merged, _ = merge(fresh, kept)
    assert found(merged) == {NEW: 2, GOOD: 1, "credit-sex/adf/99": 1}


def test_who_made_no_cell_is_not_named_first(merge, tmp_path):
    kept, fresh = tmp_path / "kept", tmp_path / "fresh"
    keep(kept, "old", cell(GOOD, 1))
    keep(fresh, "new", cell(NEW, 2, status="unable"))
    merged, _ = merge(fresh, kept)
    assert merged.made == {"processor": "old", "cores": 2}


def test_nothing_kept_before_means_no_other_maker(merge, tmp_path):
    keep(tmp_path / "fresh", "new", cell(GOOD, 2, given={"target": "dnn"}))  # does not say where
    merged, _ = merge(tmp_path / "fresh", tmp_path / "kept")
    assert merged.made == {"processor": "new", "cores": 2}

"""The queue of cells for a borrowed machine: what it leaves out, and what it keeps."""

import dataclasses
import subprocess
import sys
from pathlib import Path

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


def test_a_failed_or_outdated_cell_goes_over_no_good_one(tmp_path):
    study = studies.load("combination")
    today = {c.name: c.digest() for c in studies.expand(study, "small")}
    names = [f"credit-sex/adf/{seed}" for seed in (0, 1, 2)] + ["census-sex/adf/0"]
    again, failed, outdated, new = names

    def cell(name, findings, **changes):
        made = outcome(name, findings=findings)
        given = made.given | {"machine": "old" if findings == 1 else "new"}
        return dataclasses.replace(made, **{"digest": today[name], "given": given} | changes)

    def keep(folder, cells, machine):
        of = {one.cell: one for one in cells}
        made = {"processor": machine, "cores": 2}
        _results.keep(_results.Results(study.name, "small", of, made), folder)

    kept, fresh = tmp_path / "kept", tmp_path / "fresh"
    keep(kept, [cell(name, 1) for name in (again, failed, outdated)], "old")
    bad = [cell(failed, 2, status="failed"), cell(outdated, 2, digest="another")]
    keep(fresh, [cell(again, 2), cell(new, 2), *bad], "new")
    subprocess.run([sys.executable, FILE, "--merge", fresh, "--done", kept], check=True)
    merged = _results.read(study, "small", kept)
    found = {name: one.measures["findings"] for name, one in merged.outcomes.items()}
    assert found == {again: 2, failed: 1, outdated: 1, new: 2}
    assert merged.made["processor"] == "new"
    assert [one["processor"] for one in merged.made["earlier"]] == ["old"]

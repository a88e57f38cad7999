"""The queue of cells for a borrowed machine: what it leaves out."""

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

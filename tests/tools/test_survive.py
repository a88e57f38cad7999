"""A part of `make survive`: kills, a full disk and two runs at once end in the same results."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TOOL = ROOT / "tools" / "survive.py"

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="it looks up open files in /proc"
)


@pytest.mark.timeout(900)  # seconds on an idle machine
def test_disturbed_runs_end_in_the_same_results():
    done = subprocess.run(
        [sys.executable, str(TOOL), "--short"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.findall(r"^ *([\d,]+)  (\w+): (.*), with the same results$", done.stdout, re.M)
    assert {(victim, how) for _, victim, how in counts} >= {
        ("themis", "was resumed"),
        ("themis", "one of two that wanted the same folder"),
        ("fit", "was run again"),
    }
    total, defects = re.search(r"([\d,]+) disturbed runs, (\d+) defects", done.stdout).groups()
    assert (int(total) > 8, defects) == (True, "0")


def test_it_touches_no_folder_that_it_did_not_make(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # which it sets for itself
    spec = importlib.util.spec_from_file_location("survive", TOOL)
    tool = importlib.util.module_from_spec(spec)
    sys.modules["survive"] = tool
    spec.loader.exec_module(tool)
    for place in (tmp_path, tmp_path / "limi-survive-x", Path("/"), Path.home()):
        with pytest.raises(SystemExit, match="not in a folder of this program's own"):
            tool.held(place)

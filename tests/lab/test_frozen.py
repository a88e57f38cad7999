"""What studies run and what their pages say stays the same while their code is moved and cut.

Write the file anew with: python -m tests.lab.test_frozen
"""

import hashlib
import json
from pathlib import Path

from lab import bench_page as _bench_page
from lab import cells as _cells
from lab import extend as _extend
from lab import files as _files
from lab import page as _page
from lab import results as _results
from lab.standings import Standings

KEPT = Path(__file__).with_name("frozen.json")
RESULTS = _files.shipped_results()


def _sha256(content):
    return hashlib.sha256(content.encode()).hexdigest()


def digests_of_cells():
    """One sha256 per study and scale, of the names and digests of all its cells."""
    known = [_files.load(name) for name in (*_files.names(), "watch", "bench")]
    return {
        f"{study.name}/{scale}": _sha256(
            json.dumps(sorted((cell.name, cell.digest()) for cell in _cells.expand(study, scale)))
        )
        for study in known
        for scale in _files.SCALES
    }


def digests_of_pages():
    bench = _extend.load_bench()
    standings = Standings(bench, _results.read(bench, "small", RESULTS))
    made = {
        **_page.pages(RESULTS),
        "bench-results.md": _bench_page.bench_page(standings),
    }
    return {name: _sha256(text) for name, text in sorted(made.items())}


def test_cells_are_those_of_before():
    """A cell with another digest would be run again: hours of work."""
    assert digests_of_cells() == json.loads(KEPT.read_text())["cells"]


def test_pages_are_those_of_before():
    assert digests_of_pages() == json.loads(KEPT.read_text())["pages"]


if __name__ == "__main__":
    held = {"cells": digests_of_cells(), "pages": digests_of_pages()}
    KEPT.write_text(json.dumps(held, indent=1) + "\n")

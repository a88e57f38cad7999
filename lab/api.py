"""Studies: the tables and figures of the LIMI paper, and some of our own, as data that runs.

A study is a TOML file: benchmarks, methods, settings and scales. It expands into cells, each of
which is run on its own, kept as it finishes, and shown beside the paper's numbers.
"""

from __future__ import annotations

from lab.bench_page import bench_figures, bench_page
from lab.cells import Cell, expand
from lab.extend import extend, load_bench
from lab.files import SCALES, Study, load, names, shipped_results
from lab.formats import StudyTable, render
from lab.page import check_pages, figures, pages
from lab.results import Outcome, Results, keep, read
from lab.run import Ran, run
from lab.standings import MEASURES as BENCH_MEASURES
from lab.standings import Standings
from lab.watch import Watched, watch

__all__ = [
    "BENCH_MEASURES",
    "SCALES",
    "Cell",
    "Outcome",
    "Ran",
    "Results",
    "Standings",
    "Study",
    "StudyTable",
    "Watched",
    "bench_figures",
    "bench_page",
    "check_pages",
    "expand",
    "extend",
    "figures",
    "keep",
    "load",
    "load_bench",
    "names",
    "pages",
    "read",
    "render",
    "run",
    "shipped_results",
    "watch",
]

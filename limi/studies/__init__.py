"""Studies: the tables and figures of the LIMI paper, and some of our own, as data that runs.

A study is a TOML file: benchmarks, methods, settings and scales. It expands into cells, each of
which is run on its own, kept as it finishes, and shown beside the paper's numbers.
"""

from __future__ import annotations

from limi.studies._bench_page import bench_figures, bench_page
from limi.studies._cells import Cell, expand
from limi.studies._extend import collect_bench, extend, load_bench
from limi.studies._figures import figure
from limi.studies._files import SCALES, Study, load, names, shipped_results
from limi.studies._formats import FORMATS, StudyTable, render
from limi.studies._page import check_pages, figures, list_waiting, page, pages
from limi.studies._results import Outcome, Results, keep, read
from limi.studies._run import Ran, StudyProgress, run
from limi.studies._standings import MEASURES as BENCH_MEASURES
from limi.studies._standings import Standings
from limi.studies._tables import tables
from limi.studies._watch import Watched, watch

__all__ = [
    "BENCH_MEASURES",
    "FORMATS",
    "SCALES",
    "Cell",
    "Outcome",
    "Ran",
    "Results",
    "Standings",
    "Study",
    "StudyProgress",
    "StudyTable",
    "Watched",
    "bench_figures",
    "bench_page",
    "check_pages",
    "collect_bench",
    "expand",
    "extend",
    "figure",
    "figures",
    "keep",
    "list_waiting",
    "load",
    "load_bench",
    "names",
    "page",
    "pages",
    "read",
    "render",
    "run",
    "shipped_results",
    "tables",
    "watch",
]

"""Cells of studies by their worth, on a borrowed machine that may be taken back at any minute.

    python tools/study_queue.py --out OUT --seconds 500 --workers 16 --device cuda
    python tools/study_queue.py --out OUT --tiny          # the same queue in miniature, on a CPU

`limi study run` goes study by study, and makes everything that cells share first. Here the most
valuable cells come first whatever their study, a cell waits for its own generator alone, and what
is finished is written every half a minute: OUT/results.tgz holds SCALE/STUDY.json, as
`limi study run --keep` writes them. `--done DIR` names results from before: where they are today's
cells, those are not run again; unpack a call's results there and call once more for the rest.
`--again PATTERN` runs cells although they are done, because what computes them has changed, and
`--skip PATTERN` leaves cells out.

A bare machine may lack packages: pure ones are taken from .data/site, tables from .data/frames
where there is no pyarrow (`--pack` fills both, and the cache of networks, from here).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import shutil
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).parents[1]
DATA = ROOT / ".data"
sys.path.insert(0, str(ROOT))
sys.path.append(str(DATA / "site"))  # last: what the machine has itself is preferred
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
if (DATA / "benchmark").is_dir():
    os.environ.setdefault("LIMI_DATA", str(DATA))
    os.environ.setdefault("LIMI_CACHE", str(DATA / "cache"))

from limi import data, studies  # noqa: E402
from limi.studies import _results  # noqa: E402
from limi.studies._cells import Cell  # noqa: E402
from limi.studies._run import _run_cell  # noqa: E402
from limi.studies._workshop import Need, Workshop, needs_of  # noqa: E402

PURE = ("narwhals", "rich", "typer", "jinja2", "markupsafe", "pygments", "markdown_it", "mdurl")
TABLES = ("census", "credit", "bank")
GPU_FITS = 6  # generators trained on the device at the same time

# The cells in the order of their worth: study, scale, and patterns of BENCHMARK/VARIANT/SEED. What
# pages show is here, but for twins and row-by-row programs, which are timed, and images.
PLAN: list[tuple[str, str, tuple[str, ...]]] = [
    # The paper's generator, which is trained fastest where there is a GPU.
    ("rf", "paper", ("*.ctgan/*",)),
    ("repair-dnn", "small", ("*.ctgan/*",)),
    ("retraining", "small", ("*/ctgan/*",)),
    ("repair-rf", "small", ("*.ctgan/*",)),
    ("several-protected", "paper", ("*.ctgan/*",)),
    ("combination", "paper", ("*.ctgan/*",)),
    ("svm", "paper", ("*.ctgan/*",)),
    ("combination", "small", ("*.ctgan/*",)),
    ("fitness", "paper", ("*.ctgan/*",)),
    ("step", "paper", ("*.ctgan/*",)),
    ("random-boundary", "paper", ("*.ctgan/*",)),
    ("dnn", "paper", ("*.ctgan/*",)),
    ("boundary", "small", ("*.ctgan/*",)),
    ("densities", "paper", ("*",)),
    ("densities", "small", ("*.ctgan/*",)),
    ("svm", "small", ("*.ctgan/*",)),
    # Models trained again, which take most of the time.
    ("repair-dnn", "paper", ("*/control/*", "*.ctgan/*", "*/limi/*", "*")),
    ("repair-rf", "paper", ("*/control/*", "*.ctgan/*", "*/limi/*", "*")),
    ("repair-dnn", "small", ("*",)),
    ("repairs-dnn", "small", ("*/paper/*", "*/findings/*", "*/average/*", "*/drop/*", "*")),
    ("retraining", "small", ("*/paper/*", "*/control/*", "*")),
    ("repair-rf", "small", ("*",)),
    ("repairs-rf", "small", ("*",)),
    # The rest, with `trees`.
    ("combination", "paper", ("*",)),
    ("combination", "small", ("*",)),
    ("fitness", "paper", ("*",)),
    ("step", "paper", ("*",)),
    ("random-boundary", "paper", ("*",)),
    ("rf", "paper", ("*",)),
    ("dnn", "paper", ("*",)),
    ("generators", "small", ("*",)),
    ("queries", "small", ("*",)),
    ("several-protected", "paper", ("*",)),
    ("boundary", "small", ("*",)),
    ("densities", "small", ("*",)),
    ("svm", "small", ("*",)),
    ("svm", "paper", ("*",)),
]


def without_pyarrow() -> None:
    """Read the shipped tables from text where nothing reads Parquet."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        import pandas as pd

        def shipped(name: str, part: str) -> Any:
            suffix = "-test" if part == "test" else ""
            return pd.read_csv(DATA / "frames" / f"{name}{suffix}.csv")

        data._shipped = shipped  # type: ignore[assignment]


without_pyarrow()


def pack() -> None:
    """What a bare machine needs, beside the repository."""
    import importlib.util

    from limi.models import benchmark

    for name in PURE:
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations:
            source = Path(next(iter(spec.submodule_search_locations)))
            ignore = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(source, DATA / "site" / name, dirs_exist_ok=True, ignore=ignore)
    (DATA / "frames").mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        data.load(name).frame.to_csv(DATA / "frames" / f"{name}.csv", index=False)
    data.load("census", part="test").frame.to_csv(DATA / "frames" / "census-test.csv", index=False)
    (DATA / "benchmark").mkdir(exist_ok=True)
    for path in Path(os.environ["LIMI_DATA"], "benchmark").iterdir():
        if "meps" in path.name or path.suffix in (".md", ".json"):
            shutil.copy(path, DATA / "benchmark" / path.name)
    kept = DATA / "cache" / "models"
    kept.mkdir(parents=True, exist_ok=True)
    for kind in ("dnn", "svm"):  # forests are large, and soon grown
        for path in benchmark.cache_folder().glob(f"*-{kind}-0.*"):
            shutil.copy(path, kept / path.name)


def list_cells(tiny: bool) -> list[Cell]:
    """The cells of the plan, each once, in its order; benchmarks in turn, seeds last."""
    found: dict[tuple[str, str, str], Cell] = {}
    for name, scale, patterns in PLAN:
        cells = studies.expand(studies.load(name), scale)
        for pattern in patterns:
            for cell in sorted(cells, key=lambda cell: cell.seed):
                if fnmatchcase(cell.name, pattern):
                    found.setdefault((scale, name, cell.name), cell)
    cells = list(found.values())
    return [_shrink(cell) for cell in _some(cells)] if tiny else cells


def _some(cells: list[Cell]) -> Iterator[Cell]:
    """One cell of each variant of each study, on the smallest table where it is tested."""
    seen = set()
    for cell in sorted(cells, key=lambda cell: cell.table != "credit"):
        if (cell.study, cell.scale, cell.variant) not in seen:
            seen.add((cell.study, cell.scale, cell.variant))
            yield cell


def _shrink(cell: Cell) -> Cell:
    """A cell that takes a second and means nothing."""
    settings = dict(cell.settings)
    tiny = {"n_latents": 2_000, "exploit_steps": 3, "generations": 3, "n_seeds": 20, "limit": 500}
    for key in settings:
        last = key.rpartition(".")[2]
        settings[key] = tiny.get(last, settings[key])
    few = {"epochs": 1, "min_steps": 5} if cell.generator in ("ctgan", "tvae") else {}
    few = {"steps": 20} if cell.generator == "transport" else few
    budget = dict(cell.budget) | {"max_rows": 1_500}
    extra = dict(cell.extra) | {"rate_rows": 300}
    extra |= {key: least for key, least in (("length", 0.01), ("epochs", 1)) if key in extra}
    return dataclasses.replace(
        cell, settings=settings, generator_settings=few, budget=budget, extra=extra
    )


def work(line: Connection, out: str, device: str) -> None:
    """One process: a job at a time, and what came of it."""
    shop = Workshop(Path(out, "made"), device)
    while True:
        job = line.recv()
        if job is None:
            return
        start = time.perf_counter()
        try:
            if isinstance(job, Need):
                shop.make(job)
                line.send(("done", None))
            else:
                line.send(("done", _run_cell(shop, Path(out), job)))
        except Exception as error:  # the next job may do better
            line.send(("failed", f"{type(error).__name__}: {error}"))
        print(f"{time.perf_counter() - start:7.1f} s {_title(job)}", flush=True)


def _title(job: Need | Cell) -> str:
    return job.name if isinstance(job, Need) else f"{job.study} {job.scale} {job.name}"


def _matches(cell: Cell, patterns: list[str]) -> bool:
    return any(fnmatchcase(_title(cell), pattern) for pattern in patterns)


class Queue:
    """What is to be done, and what may begin."""

    def __init__(self, cells: list[Cell], device: str) -> None:
        self.cells, self.device = cells, device
        self.needs: dict[str, Need] = {}
        self._first: dict[str, list[str]] = {}  # what a need or cell waits for
        for cell in cells:
            models, facts = needs_of([cell])
            for need in (*models, *facts):
                self.needs.setdefault(self.key(need), need)
                before = [self.key(one) for one in models if one.what == "model"]
                self._first.setdefault(self.key(need), before if need.what == "facts" else [])
            self._first[_title(cell)] = [self.key(need) for need in (*models, *facts)]
        self._ready: set[str] = set()
        self._begun: set[str] = set()
        self._fitting = 0

    def key(self, need: Need) -> str:
        """Which thing it is: settings count as well as names."""
        given = need.cell.generator_settings if need.what == "generator" else {}
        return f"{need.name} {json.dumps(dict(given), sort_keys=True)}"

    def take(self) -> tuple[str, Need | Cell] | None:
        """The first cell that waits for nothing, or what an earlier one waits for."""
        for cell in self.cells:
            title = _title(cell)
            if title in self._begun:
                continue
            missing = [key for key in self._first[title] if key not in self._ready]
            if not missing:
                self._begun.add(title)
                return title, cell
            for key in missing:
                if self._may_begin(key):
                    return self._begin(key)
        return None

    def _may_begin(self, key: str) -> bool:
        waits = key in self._begun or any(k not in self._ready for k in self._first[key])
        return not waits and not (self._is_long(key) and self._fitting >= GPU_FITS)

    def _begin(self, key: str) -> tuple[str, Need]:
        self._begun.add(key)
        self._fitting += self._is_long(key)
        return key, self.needs[key]

    def _is_long(self, key: str) -> bool:
        need = self.needs[key]
        return need.what == "generator" and need.cell.generator != "trees"

    def finish(self, key: str) -> None:
        """A job is done; what needs a thing that failed fails by itself."""
        if key in self.needs:
            self._ready.add(key)
            self._fitting -= self._is_long(key)

    def take_fit(self) -> tuple[str, Need] | None:
        """A long fit, if there is room for one more: those come first, so that none comes last."""
        able = (key for key in self.needs if "ctgan" in key and self._may_begin(key))
        found = next(able, None)
        return None if found is None else self._begin(found)


def write(outcomes: dict[tuple[str, str], dict[str, Any]], out: Path, kept: Path) -> None:
    """All results so far in one archive, renamed into place."""
    for (scale, name), cells in outcomes.items():
        _results.keep(_results.Results(name, scale, cells, _results.machine()), kept)
    kept.mkdir(parents=True, exist_ok=True)
    draft = out / "results.partial"
    with tarfile.open(draft, "w:gz") as archive:
        archive.add(kept, arcname=".")
    draft.rename(out / "results.tgz")


def read_done(folder: Path | None) -> set[tuple[str, str, str, str]]:
    """Cells that have a result already, by their digests too: those of changed cells differ."""
    return {
        (path.parent.name, path.stem, line["cell"], line["digest"])
        for path in (folder.glob("*/*.json") if folder else ())
        for line in json.loads(path.read_text())["cells"]
        if line["status"] == "done"
    }


def merge(new: Path, kept: Path) -> None:
    """Results of a call replace the kept ones, in the order of their studies.

    A good cell is replaced by a good one alone, and a good one with today's settings by none with
    others. What made the cells of earlier calls and machines stays named beside what made these.
    """
    for path in sorted(new.glob("*/*.json")):
        study, scale = studies.load(path.stem), path.parent.name
        before, fresh = (_results.read(study, scale, folder) for folder in (kept, new))
        today = {cell.name: cell.digest() for cell in studies.expand(study, scale)}
        why = {
            name: _tell_refusal(one, before.outcomes.get(name), today.get(name))
            for name, one in fresh.outcomes.items()
        }
        taken = {name: one for name, one in fresh.outcomes.items() if not why[name]}
        if taken:
            known = {**before.outcomes, **taken}
            outcomes = {name: known[name] for name in [*today, *before.outcomes] if name in known}
            made = [fresh.made, before.made] if before.outcomes else [fresh.made]
            if not any(one.status == _results.DONE for one in taken.values()):
                made.reverse()  # whoever made no cell is not named first
            joined = _results.join_makers(*made, of=outcomes.values())
            _results.keep(_results.Results(study.name, scale, outcomes, joined), kept)
        refused = Counter(filter(None, why.values()))
        told = [f"{n} {reason}" for reason, n in refused.items()]
        print("; ".join([f"{scale}/{study.name}: {len(taken)} new of {len(why)}", *told]))


def _tell_refusal(one: _results.Outcome, old: _results.Outcome | None, today: str | None) -> str:
    """Why a cell may not replace the kept one, or stand where there is none; "" if it may."""
    if today is None:
        return "not planned"
    if one.status == _results.FAILED:
        return "failed"
    if old is None:
        return "" if one.digest == today else "with other settings"
    is_done, was_done = one.status == _results.DONE, old.status == _results.DONE
    if was_done and not is_done:
        return "not done, where a kept one is"
    if (is_done and not was_done) or one.digest == today or old.digest != today:
        return ""
    return "with other settings"


def main() -> None:
    """Run the queue until it is empty or the time is over."""
    given = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    given.add_argument("--out", type=Path)
    given.add_argument("--place", type=Path, default=Path("/tmp/limi-queue"))
    given.add_argument("--seconds", type=float, default=500.0)
    given.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given.add_argument("--device", default="cpu")
    given.add_argument("--done", type=Path)
    given.add_argument("--only", default="*", help="cells 'STUDY SCALE BENCHMARK/VARIANT/SEED'")
    given.add_argument("--again", action="append", default=[], help="cells to run though done")
    given.add_argument("--skip", action="append", default=[], help="cells to leave out")
    given.add_argument("--tiny", action="store_true")
    given.add_argument("--pack", action="store_true")
    given.add_argument("--merge", type=Path, help="results of a call, to enter into --done")
    given.add_argument("--list", action="store_true")
    options = given.parse_args()
    if options.pack:
        return pack()
    if options.merge:
        return merge(options.merge, options.done)
    done = read_done(options.done)
    cells = [
        cell
        for cell in list_cells(options.tiny)
        if (
            (cell.scale, cell.study, cell.name, cell.digest()) not in done
            or _matches(cell, options.again)
        )
        and _matches(cell, [options.only])
        and not _matches(cell, options.skip)
    ]
    if options.list:
        return print("\n".join(map(_title, cells)), f"\n{len(cells)} cells")
    return run(cells, options)


def run(cells: list[Cell], options: argparse.Namespace) -> None:
    """Hand out jobs, the long fits first, and keep what comes back."""
    start, written = time.perf_counter(), 0.0
    options.out.mkdir(parents=True, exist_ok=True)
    queue = Queue(cells, options.device)
    context = multiprocessing.get_context("spawn")
    lines: dict[Connection, tuple[str, Need | Cell] | None] = {}
    hands = []
    for _ in range(options.workers):
        mine, theirs = context.Pipe()
        hand = context.Process(target=work, args=(theirs, str(options.place), options.device))
        hand.start()
        hands.append(hand)
        lines[mine] = None
    outcomes: dict[tuple[str, str], dict[str, Any]] = {}
    n_done = n_failed = 0
    while True:
        late = time.perf_counter() - start > options.seconds
        for line, held in lines.items():
            if held is None and not late:
                taken = queue.take_fit() or queue.take()
                lines[line] = taken
                if taken is not None:
                    line.send(taken[1])
        busy = [line for line, job in lines.items() if job]
        if late or not busy:
            break
        for ready in wait(busy, timeout=5):
            line = cast("Connection", ready)
            status, result = line.recv()
            done = lines[line]
            assert done is not None
            (key, job), lines[line] = done, None
            queue.finish(key)
            n_failed += status != "done"
            if status != "done":
                print(f"FAILED {_title(job)}: {result}", flush=True)
            elif isinstance(job, Cell):
                outcomes.setdefault((job.scale, job.study), {})[job.name] = result
                n_done += 1
        if time.perf_counter() - written > 30:
            write(outcomes, options.out, options.place / "kept")
            written = time.perf_counter()
    for hand in hands:
        hand.terminate()
    write(outcomes, options.out, options.place / "kept")
    left = len(cells) - n_done
    took = time.perf_counter() - start
    print(
        f"{n_done} cells done, {n_failed} jobs failed, {left} left, {took:.0f} seconds", flush=True
    )


if __name__ == "__main__":
    main()

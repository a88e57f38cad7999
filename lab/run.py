"""Running studies: what is not done is run, each cell as a job of a worker, and kept as it ends."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from lab import results as _results
from lab.cells import Cell, expand
from lab.files import Study, load
from lab.kinds import KINDS
from lab.pool import Failure, Pool
from lab.results import ABSENT, DONE, FAILED, UNABLE, Outcome, write_cell
from lab.workshop import Need, Workshop, needs_of
from limi import data
from limi.errors import InvalidInput, LimiError
from limi.system import writing
from limi.workers import AUTO, count_workers, reach_cluster

__all__ = ["Ran", "run"]

_MOST_SEEDS = 1_000
_STATUS = {"MissingCapability": UNABLE, "MissingDependency": ABSENT}
_Key = tuple[str, str]
"""A study, and a cell of it."""


@dataclass(frozen=True)
class Ran:
    """What a run of studies came to."""

    cells: int
    run: int  # in this call
    counts: Mapping[str, int] = field(default_factory=dict)  # by status
    problems: tuple[tuple[str, str], ...] = ()  # cell and sentence
    seconds: float = 0.0


def run(
    studies: Sequence[Study],
    *,
    scale: str,
    out: Path,
    seeds: int | None = None,
    workers: int | str | None = None,
    cluster: str | None = None,
    kept: Path | None = None,
    fresh: bool = False,
    only: str | None = None,
    device: str = "cpu",
    on_progress: Callable[[str], None] = lambda words: None,
) -> Ran:
    """Run the cells of studies that have no result yet, or one of other settings or revisions.

    Results lie below `out`; with `kept`, each study's results are also written there as one file,
    and a cell that is done there is not run again. `fresh` runs every cell again, `only` those
    whose name (BENCHMARK/VARIANT/SEED) matches, such as "census-*/limi/*". `device` is where
    generators
    that can are trained, and where LIMI searches if its target can be there too. Each cell is a job
    of one of the `workers`, by default one for each core; with a `cluster` these are Ray's, and
    `out` is a folder that all its nodes share.
    """
    start = time.perf_counter()
    if seeds is not None and not 1 <= seeds <= _MOST_SEEDS:
        raise InvalidInput(
            f"seeds is {seeds}; a study needs at least one, and {_MOST_SEEDS:,} at most"
        )
    number = count_workers(AUTO if workers is None else workers)
    reach_cluster(cluster)
    out = writing.absolute(out)
    kept = None if kept is None else writing.absolute(kept)
    # Cells belong to the study that plans them, which another study may show.
    plan = {study.planner.name: expand(study, scale, seeds) for study in studies}
    cells = {(c.study, c.name): c for some in plan.values() for c in some}
    wanted = [key for key in cells if only is None or fnmatchcase(key[1], only)]
    if not wanted:
        example = next(iter(cells))[1]
        raise InvalidInput(
            f"no cell is called {only!r}; cells are BENCHMARK/VARIANT/SEED, such as {example!r}, "
            "and * stands for anything"
        )
    writing.make_folder(out, option="--out")
    folders = [out]
    if kept is not None:
        writing.make_folder(kept, option="--keep")
        folders.append(kept)
    # One whose cells another study shows is not among those that were asked for.
    known = {name: load(name) for name in plan} | {s.name: s for s in studies if s.name in plan}
    found = _find(known, plan, scale, folders)
    done = {key for key in found if _is_done(cells[key], found[key])}
    absent = _absent_tables(list(cells.values()))
    for key in wanted:
        if cells[key].table in absent and key not in done:
            found[key] = _note(out, cells[key], ABSENT, absent[cells[key].table])
    pending = [
        cells[key]
        for key in wanted
        if cells[key].table not in absent and (fresh or key not in done)
    ]
    shop = Workshop(out / "made", device)
    for cell, outcome in _run_cells(pending, shop, number, cluster, on_progress):
        found[cell.study, cell.name] = outcome
    if kept is not None:
        for name, some in plan.items():
            is_new = not (kept / scale / f"{name}.json").exists()
            if is_new or any(cell.study == name for cell in pending):
                _results.keep(_results.collect(known[name], scale, some, *folders), kept)
    counts = Counter(found[key].status if key in found else "missing" for key in cells)
    problems = [(" ".join(key), found[key].why) for key in cells if key in found and found[key].why]
    seconds = round(time.perf_counter() - start, 1)
    return Ran(len(cells), len(pending), dict(counts), tuple(problems), seconds)


def _find(
    studies: Mapping[str, Study],
    plan: Mapping[str, Sequence[Cell]],
    scale: str,
    folders: Sequence[Path],
) -> dict[_Key, Outcome]:
    """What is known of the cells of the plan."""
    found: dict[_Key, Outcome] = {}
    for name, cells in plan.items():
        known = _results.read(studies[name], scale, *folders).outcomes
        found |= {(name, cell.name): known[cell.name] for cell in cells if cell.name in known}
    return found


def _is_done(cell: Cell, outcome: Outcome) -> bool:
    return outcome.status in (DONE, UNABLE) and outcome.digest == cell.digest()


def _run_cells(
    cells: Sequence[Cell],
    shop: Workshop,
    workers: int,
    cluster: str | None,
    on_progress: Callable[[str], None],
) -> list[tuple[Cell, Outcome]]:
    """Make what the cells need, stage by stage, then run them; each is kept as it finishes."""
    if not cells:
        return []
    out = shop.folder.parent
    stages = [[need for need in stage if not shop.has(need)] for stage in needs_of(cells)]
    total, ended = sum(map(len, stages)) + len(cells), []
    numbers = count(1)

    def tell(name: str, why: str) -> None:
        on_progress(f"{next(numbers)} of {total}: {name}" + (f": {why}" if why else ""))

    with Pool(partial(_work, shop, out), workers, cluster) as pool:
        for stage in stages:
            for need, result in pool.each(stage):
                is_made = not isinstance(result, Failure) and need.what != "model"
                if is_made and cluster is not None and not shop.has(need):
                    raise InvalidInput(
                        f"a worker of the cluster has written into {str(out)!r}, but nothing is "
                        "there on this machine; --out must be a folder that all nodes share"
                    )
                tell(need.name, result.why if isinstance(result, Failure) else "")
        for cell, result in pool.each(cells):
            if isinstance(result, Failure):
                status = _STATUS.get(result.kind, FAILED)
                result = _note(out, cell, status, result.why)
            ended.append((cell, result))
            tell(f"{cell.study} {cell.name}", result.why)
    return ended


def _note(out: Path, cell: Cell, status: str, why: str) -> Outcome:
    """Keep why a cell has no numbers."""
    outcome = Outcome(
        cell=cell.name, digest=cell.digest(), status=status, revision=cell.revision, why=why
    )
    write_cell(out, cell, outcome)
    return outcome


def _absent_tables(cells: Sequence[Cell]) -> dict[str, str]:
    """Why a table is not available, for those that cannot."""
    absent = {}
    for table, cell in {cell.table: cell for cell in cells}.items():
        require = vars(KINDS.get(cell.kind)).get("require_table")
        try:
            data.load(table) if require is None else require(cell)
        except LimiError as error:
            absent[table] = str(error)
    return absent


def _work(shop: Workshop, out: Path, job: Need | Cell) -> Outcome | None:
    if isinstance(job, Need):
        shop.make(job)
        return None
    return _run_cell(shop, out, job)


def measure_cell(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """The measures of a cell, by its kind."""
    measures: dict[str, Any] = KINDS.get(cell.kind).measure(cell, shop)
    return measures


def _run_cell(shop: Workshop, out: Path, cell: Cell) -> Outcome:
    start = time.perf_counter()
    measures = measure_cell(cell, shop)
    outcome = Outcome(
        cell=cell.name,
        digest=cell.digest(),
        status=DONE,
        revision=cell.revision,
        took=round(time.perf_counter() - start, 2),
        given=_take_given(cell, shop),
        measures=measures,
    )
    write_cell(out, cell, outcome)
    return outcome


def _take_given(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """What a reader needs to know of a cell, and where it was run."""
    on_gpu = bool(cell.extra.get("gpu")) or shop.on_device(cell) is not None
    return cell.given | {"device": "cuda" if on_gpu else "cpu", "machine": _results.processor()}

"""Running studies: cells that are not done yet, side by side, each kept as it finishes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lab import results as _results
from lab.cells import Cell, expand
from lab.files import Study, load
from lab.measure import measure_cell
from lab.pool import Failure, Pool
from lab.results import ABSENT, DONE, FAILED, UNABLE, Outcome, write_cell
from lab.targets.definitions import read_target
from lab.targets.making import require_table
from lab.twins import DRAWN
from lab.workshop import Need, Workshop, needs_of
from limi import data
from limi.errors import InvalidInput, LimiError
from limi.system import writing
from limi.workers import AUTO, count_workers, reach_cluster

__all__ = ["Ran", "StudyProgress", "run"]

_MOST_SEEDS = 1_000
_STATUS = {"MissingCapability": UNABLE, "MissingDependency": ABSENT}


@dataclass(frozen=True)
class StudyProgress:
    """How far a run of studies is."""

    done: int
    total: int
    words: str  # what was just finished
    left: float | None  # seconds, from the measured costs of like cells
    failed: int = 0


OnProgress = Callable[[StudyProgress], None]


@dataclass(frozen=True)
class Ran:
    """What a run of studies came to."""

    cells: int
    run: int  # in this call
    counts: dict[str, int] = field(default_factory=dict)  # by status
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
    on_progress: OnProgress = lambda progress: None,
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
    number = _check_numbers(seeds, workers)
    reach_cluster(cluster)
    out = writing.absolute(out)
    kept = None if kept is None else writing.absolute(kept)
    plan = _expand_all(studies, scale, seeds)
    _check_pattern([cell for cells in plan.values() for cell in cells], only)
    _make_folders(out, kept)
    known = {study.name: study for study in studies}
    book = _Book(out, kept, plan, scale, fresh, known)
    for cell in _matching(book.absent(), only):
        book.note(cell, ABSENT, book.why_absent[cell.table])
    pending = _matching(book.pending(), only)
    _run_cells(pending, book, Workshop(out / "made", device), number, cluster, on_progress)
    if kept is not None:
        book.keep(kept, {cell.study for cell in pending})
    return book.summary(len(pending), time.perf_counter() - start)


def _check_numbers(seeds: int | None, workers: int | str | None) -> int:
    """The number of workers, if both numbers make sense."""
    if seeds is not None and not 1 <= seeds <= _MOST_SEEDS:
        raise InvalidInput(
            f"seeds is {seeds}; a study needs at least one, and {_MOST_SEEDS:,} at most"
        )
    return count_workers(AUTO if workers is None else workers)


def _expand_all(studies: Sequence[Study], scale: str, seeds: int | None) -> dict[str, list[Cell]]:
    """Cells by the study they belong to, which may be one whose cells another study shows."""
    plan = {study.name: expand(study, scale, seeds) for study in studies if not study.uses}
    for study in studies:
        if study.uses and study.uses not in plan:
            plan[study.uses] = expand(study, scale, seeds)
    return plan


def _check_pattern(cells: Sequence[Cell], only: str | None) -> None:
    if not _matching(cells, only):
        raise InvalidInput(
            f"no cell is called {only!r}; cells are BENCHMARK/VARIANT/SEED, such as "
            f"{cells[0].name!r}, and * stands for anything"
        )


def _matching(cells: Sequence[Cell], pattern: str | None) -> list[Cell]:
    return [cell for cell in cells if pattern is None or fnmatchcase(cell.name, pattern)]


def _make_folders(out: Path, kept: Path | None) -> None:
    """A folder that cannot be written is said at once, not after the first cell or the last."""
    writing.make_folder(out, option="--out")
    if kept is not None:
        writing.make_folder(kept, option="--keep")


def _run_cells(
    cells: Sequence[Cell],
    book: _Book,
    shop: Workshop,
    workers: int,
    cluster: str | None,
    on_progress: OnProgress,
) -> None:
    """Make what the cells need, stage by stage, then run them; each is kept as it finishes."""
    stages = [[need for need in stage if not shop.has(need)] for stage in needs_of(cells)]
    teller = _Teller(book, cells, sum(map(len, stages)), workers, on_progress)
    if not cells:
        return
    with Pool(partial(_work, shop, shop.folder.parent), workers, cluster) as pool:
        for stage in stages:
            for need, result in pool.each(stage):
                is_made = not isinstance(result, Failure) and need.what != "model"
                if is_made and cluster is not None and not shop.has(need):
                    raise _not_shared(shop.folder.parent)
                teller.tell(need.name, result.why if isinstance(result, Failure) else "")
        for cell, result in pool.each(cells):
            outcome = book.take(cell, result)
            teller.cross_off(cell)
            teller.tell(f"{cell.study} {cell.name}", outcome.why)


def _not_shared(folder: Path) -> InvalidInput:
    return InvalidInput(
        f"a worker of the cluster has written into {str(folder)!r}, but nothing is there on this "
        "machine; --out must be a folder that all nodes share"
    )


class _Teller:
    """Tells how far a run is, and how long it may still take."""

    def __init__(
        self,
        book: _Book,
        cells: Sequence[Cell],
        n_needs: int,
        workers: int,
        on_progress: OnProgress,
    ) -> None:
        self._book, self._workers, self._on_progress = book, workers, on_progress
        self._waiting = {(cell.study, cell.name): cell for cell in cells}
        self._total, self._done = len(cells) + n_needs, 0

    def cross_off(self, cell: Cell) -> None:
        """A cell is no longer waited for."""
        del self._waiting[(cell.study, cell.name)]

    def tell(self, name: str, why: str) -> None:
        """One more is finished; `why` says what went wrong."""
        self._done += 1
        words = f"{name}: {why}" if why else name
        left = self._book.left(list(self._waiting.values()), self._workers)
        self._on_progress(StudyProgress(self._done, self._total, words, left, self._book.n_failed))


class _Book:
    """Which cells are done, and what cells cost."""

    def __init__(
        self,
        out: Path,
        kept: Path | None,
        plan: dict[str, list[Cell]],
        scale: str,
        fresh: bool,
        studies: Mapping[str, Study] = MappingProxyType({}),
    ) -> None:
        self._out, self._plan, self._scale = out, plan, scale
        # One whose cells another study shows is not among those that were asked for.
        self._studies = {name: studies[name] if name in studies else load(name) for name in plan}
        self._folders = [out] if kept is None else [out, kept]
        self._known: dict[tuple[str, str], Outcome] = {}
        self._digests: dict[tuple[str, str], str] = {}
        self._costs: dict[tuple[str, str], list[float]] = {}
        self._fresh = fresh
        self._now: dict[tuple[str, str], Outcome] = {}
        for name, cells in plan.items():
            found = _results.read(self._studies[name], scale, *self._folders).outcomes
            for cell in cells:
                self._digests[(name, cell.name)] = cell.digest()
                if cell.name in found:
                    self._known[(name, cell.name)] = found[cell.name]
        for (name, _), outcome in self._known.items():
            self._spend(name, outcome)
        self.why_absent = _absent_tables([c for cells in plan.values() for c in cells])

    def absent(self) -> list[Cell]:
        """Cells whose table is not there; a result from where it was stays."""
        return [c for c in self.all() if c.table in self.why_absent and not self._is_done(c)]

    def pending(self) -> list[Cell]:
        """Cells to run."""
        return [
            c
            for c in self.all()
            if c.table not in self.why_absent and (self._fresh or not self._is_done(c))
        ]

    def note(self, cell: Cell, status: str, why: str) -> Outcome:
        """Keep why a cell has no numbers."""
        outcome = Outcome(
            cell=cell.name,
            digest=cell.digest(),
            status=status,
            revision=cell.revision,
            why=why,
        )
        write_cell(self._out, cell, outcome)
        self._add(cell, outcome)
        return outcome

    def take(self, cell: Cell, result: Outcome | Failure) -> Outcome:
        """Take in what came of a cell."""
        if isinstance(result, Failure):
            status = _STATUS.get(result.kind, FAILED)
            return self.note(cell, status, result.why)
        self._add(cell, result)
        return result

    def _add(self, cell: Cell, outcome: Outcome) -> None:
        self._now[(cell.study, cell.name)] = outcome
        if outcome.status == DONE:
            self._spend(cell.study, outcome)

    def left(self, cells: Sequence[Cell], workers: int) -> float | None:
        """Seconds that these cells will take, by the mean cost of like ones."""
        known = [cost for costs in self._costs.values() for cost in costs]
        if not known:
            return None
        usual = sum(known) / len(known)
        total = 0.0
        for cell in cells:
            like = self._costs.get((cell.study, cell.variant)) or self._costs.get((cell.study, ""))
            total += sum(like) / len(like) if like else usual
        return total / max(1, workers)

    @property
    def n_failed(self) -> int:
        """Cells that failed in this run."""
        return sum(outcome.status == FAILED for outcome in self._now.values())

    def keep(self, folder: Path, changed: set[str]) -> None:
        """Write each study's results as one file, unless it is there and nothing has changed."""
        for name, cells in self._plan.items():
            if name in changed or not (folder / self._scale / f"{name}.json").exists():
                found = _results.collect(self._studies[name], self._scale, cells, *self._folders)
                _results.keep(found, folder)

    def summary(self, n_run: int, seconds: float) -> Ran:
        """Counts over all cells of the plan, done before or now."""
        final = [
            (cell, self._now.get(key) or self._known.get(key))
            for cell in self.all()
            for key in [(cell.study, cell.name)]
        ]
        counts: dict[str, int] = {}
        problems = []
        for cell, outcome in final:
            status = outcome.status if outcome else "missing"
            counts[status] = counts.get(status, 0) + 1
            if outcome and outcome.why:
                problems.append((f"{cell.study} {cell.name}", outcome.why))
        return Ran(len(final), n_run, counts, tuple(problems), round(seconds, 1))

    def all(self) -> list[Cell]:
        """Every cell of the plan."""
        return [cell for cells in self._plan.values() for cell in cells]

    def _is_done(self, cell: Cell) -> bool:
        key = (cell.study, cell.name)
        known = self._known.get(key)
        settled = known is not None and known.status in (DONE, UNABLE)
        return settled and known is not None and known.digest == self._digests[key]

    def _spend(self, study: str, outcome: Outcome) -> None:
        for key in ((study, outcome.variant), (study, "")):
            self._costs.setdefault(key, []).append(outcome.took)


def _absent_tables(cells: Sequence[Cell]) -> dict[str, str]:
    """Why a table is not available, for those that cannot."""
    absent = {}
    faces = {cell.table for cell in cells if cell.kind == "images"}
    defined = {cell.table: cell for cell in cells if cell.kind == "bench"}
    for table in dict.fromkeys(cell.table for cell in cells if cell.table not in DRAWN):
        try:
            if table in faces:
                _look_for_faces(table)
            elif table in defined:
                require_table(read_target(defined[table].extra["definition"]))
            else:
                data.load(table)
        except LimiError as error:
            absent[table] = str(error)
    return absent


def _look_for_faces(table: str) -> None:
    from lab.images import DRAWN, find_faces  # late, because it brings scikit-learn

    if table not in DRAWN:
        find_faces()


def _work(shop: Workshop, out: Path, job: Need | Cell) -> Outcome | None:
    if isinstance(job, Need):
        shop.make(job)
        return None
    return _run_cell(shop, out, job)


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

"""Several methods on one problem, under equal budgets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from limi.audits.audit import audit
from limi.audits.generator_source import anchored
from limi.audits.hiring import Each, share_out, want_workers
from limi.audits.plan import MOST_TO_JUDGE
from limi.audits.problem import Problem, prepare
from limi.audits.result import draw_representative
from limi.audits.sending import settle_remote
from limi.audits.sum_up import MOST_COMPARED
from limi.audits.summary import Summary
from limi.defaults import DEFAULT_GENERATOR
from limi.errors import BadModel, InvalidInput, LimiError, MissingCapability, spell
from limi.gpu.place import settle_device
from limi.metrics._enough import FEWEST_TO_JUDGE
from limi.metrics.diversity import distinct_cells, pairwise_distance
from limi.metrics.effectiveness import findings_per_second
from limi.metrics.naturalness import naturalness_at
from limi.models._base import Reopens
from limi.models.target import Target
from limi.remote.options import Remote
from limi.search.budget import Budget, check_seed
from limi.search.findings import Found
from limi.search.spread import Opened
from limi.streams import Stream
from limi.system.arguments import checked
from limi.table.frames import Frame
from limi.table.schema import Schema
from limi.types import Index, Rows, Scores
from limi.workers import Failed

__all__ = ["ComparedRun", "compare"]


@dataclass(frozen=True)
class ComparedRun:
    """What one method reached."""

    method: str
    findings: int
    rows_checked: int
    queries: int
    seconds: float
    findings_per_second: float
    findings_per_thousand_queries: float
    naturalness: float | None  # ATN of the findings, at the same number of rows for all methods
    representative: float | None  # ATN of the representative ones, at that number too
    naturalness_rows: int | None  # that number
    diversity: float | None  # mean distance of two findings
    cells: int
    stop: str
    problem: str = ""  # why it could not run
    curves: tuple[tuple[tuple[int, int], ...], ...] = ()
    # ^ of each seed: queries, and findings after them

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@checked
def compare(
    model: Any,
    frame: Frame,
    methods: Sequence[str],
    *,
    generator: Any = DEFAULT_GENERATOR,
    seed: int = 0,
    seeds: int = 1,
    device: str = "auto",
    remote: Remote | None = None,
    settings: Mapping[str, Mapping[str, Any] | Sequence[str]] | None = None,
    workers: int | str | None = None,
    cluster: str | None = None,
    on_run: Callable[[float, str], None] = lambda done, name: None,
    **given: Any,
) -> list[ComparedRun]:
    """One line per method, all with the same table, model, generator, budget and seed.

    `settings` are those of each method by its name. The model is opened once, and the generator
    fitted once. A method that cannot run on this target says why in its line. With several `seeds`
    each method runs as often; numbers are those of the first, and curves show them all.

    With `workers`, or a `cluster`, each run of a method is a job of one worker; a single run is
    shared among all of them. `on_run` receives how many of the runs are done, and the method of the
    next, or with workers of the last.
    """
    from limi import generators

    check_seed(seed)
    if seeds < 1:
        raise InvalidInput(f"seeds is {seeds}; it must be 1 or more")
    # The runs themselves have a core each, but for a single one, of which workers share questions.
    many = len(methods) * seeds > 1
    has_workers = many and want_workers(model, workers, cluster, device, Budget())
    found = anchored(generator)
    names = (
        *("protected", "target", "favorable", "output", "decision", "order", "schema"),
        *("constraints", "drop", "only", "trust_pickle", "trust", "table_name"),
    )
    remote = settle_remote(model, remote, max_queries=given.get("max_queries"))
    chosen = {name: given[name] for name in names if name in given}
    problem = prepare(model, frame, remote=remote, **chosen)
    if problem.blind:
        raise BadModel(
            f"the model does not take {spell(problem.unseen)}, so no method can find a flip; to "
            "see what it does with everything that goes along with it in the table, run limi test "
            "--twin"
        )
    place, _ = settle_device("cpu" if has_workers else device, problem.target, found)
    if isinstance(generator, str) and generator in generators.names():
        rng = Stream.GENERATOR.rng(seed)
        found = generators.fit(generator, problem.rows, problem.schema, rng, device=place)
    told = {"generator": found, "device": place, "rate_rows": 0, **given}
    if not many:
        told |= {"workers": workers, "cluster": cluster}
    work = _Comparing(problem.target, problem.opened, frame, settings or {}, told)
    jobs = [(name, seed + more) for name in methods for more in range(seeds)]
    with ExitStack() as ending:
        each: Each = partial(_do_here, work)
        if has_workers:
            shared = share_out(work, problem.target, problem.rows, workers, cluster)
            each = ending.enter_context(shared)
        done = _run_all(each, jobs, on_run, is_shared=has_workers)
    lines: dict[str, ComparedRun] = {}
    results: dict[str, list[_Ran]] = {}
    for (name, _), result in zip(jobs, done, strict=True):
        if isinstance(result, MissingCapability):
            lines[name] = _absent(name, result)
        else:
            results.setdefault(name, []).append(result)
    likeness = _likeness(problem, {name: ran[0].found for name, ran in results.items()}, seed)
    schema = problem.schema
    lines |= {name: _line(name, ran, likeness[name], schema) for name, ran in results.items()}
    return [lines[name] for name in methods]


@dataclass(frozen=True)
class _Ran:
    """What is compared of a run."""

    summary: Summary
    found: Found


@dataclass(frozen=True, eq=False)
class _Comparing:
    """The work: a method is run with a seed."""

    target: Target | None  # None on the way to a process that opens the file
    opened: Opened | None  # of a file
    frame: Frame
    settings: Mapping[str, Mapping[str, Any] | Sequence[str]]
    given: Mapping[str, Any]  # what all runs have alike

    @property
    def forks(self) -> bool:
        """All but what makes frames does, or is opened again."""
        assert self.target is not None
        return self.target.codec.forks

    @property
    def luggage(self) -> _Comparing:
        """The name of the model's file, where there is one."""
        return self if self.opened is None else replace(self, target=None)

    def arrive(self) -> _Comparing:
        """The same in this process: opened again where its library does not outlive a fork."""
        if self.target is None:
            assert self.opened is not None
            return replace(self, target=self.opened.arrive().target)
        model = self.target.model
        if not isinstance(model, Reopens):
            return self
        return replace(self, target=replace(self.target, model=model.reopened()))

    def __call__(self, job: tuple[str, int] | Rows) -> _Ran | Scores:
        assert self.target is not None
        if isinstance(job, np.ndarray):  # for a trial
            return self.target.score(job)
        name, seed = job
        settings = self.settings.get(name, ())
        result = audit(
            self.target.model, self.frame, method=name, settings=settings, seed=seed, **self.given
        )
        return _Ran(result.summary, result.found)


def _do_here(work: _Comparing, jobs: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """The results of jobs, one after another; where a method cannot run, the error."""
    for place, job in enumerate(jobs):
        try:
            yield place, work(job)
        except MissingCapability as error:
            yield place, Failed(error)


def _run_all(
    each: Each,
    jobs: Sequence[tuple[str, int]],
    on_run: Callable[[float, str], None],
    *,
    is_shared: bool,
) -> list[_Ran | MissingCapability]:
    """What came of each run; what the first of them was ended by is raised."""
    done: dict[int, Any] = {}
    on_run(0.0, jobs[0][0])
    for place, result in each(jobs):
        done[place] = result
        shown = place if is_shared else min(place + 1, len(jobs) - 1)
        on_run(len(done) / len(jobs), jobs[shown][0])
    in_order = []
    for place in range(len(jobs)):
        result = done[place]
        if isinstance(result, Failed):
            if not isinstance(result.error, MissingCapability):
                raise result.explain("ran a method", "a machine with more memory")
            result = result.error
        in_order.append(result)
    return in_order


def _likeness(
    problem: Problem, found: Mapping[str, Found], seed: int
) -> dict[str, tuple[float | None, float | None, int | None]]:
    """ATN of each method's findings and of its representative ones, and of how many rows.

    All at one number of rows, that of the smallest set, because ATN falls with it; methods that
    found too few to be judged stay out.
    """
    judged = {n: f for n, f in found.items() if len(f) >= FEWEST_TO_JUDGE}
    drawn = {n: f.rows[_draw_enough(problem, f, seed)] for n, f in judged.items()}
    n = min([MOST_COMPARED, *map(len, drawn.values())])
    rng = Stream.LIKENESS.rng(seed)
    real = problem.rows[rng.permutation(len(problem.rows))[:MOST_TO_JUDGE]]
    answer: dict[str, tuple[float | None, float | None, int | None]] = {}
    for name, mine in found.items():
        if name not in judged:
            answer[name] = (None, None, None)
            continue
        values = (
            round(naturalness_at(n, real, rows, problem.schema, rng).value, 4)
            for rows in (mine.rows, drawn[name])
        )
        answer[name] = (*values, n)  # type: ignore[assignment]
    return answer


def _draw_enough(problem: Problem, found: Found, seed: int) -> Index:
    """Representative findings, at least as many as can be judged."""
    chosen = draw_representative(problem, found, None, seed)
    if len(chosen) >= FEWEST_TO_JUDGE:
        return chosen
    return draw_representative(problem, found, FEWEST_TO_JUDGE, seed)


def _line(
    name: str,
    results: list[_Ran],
    likeness: tuple[float | None, float | None, int | None],
    schema: Schema,
) -> ComparedRun:
    result = results[0]
    summary = result.summary
    distance = pairwise_distance(result.found.rows, schema, np.random.default_rng(0))
    return ComparedRun(
        method=name,
        findings=summary.findings,
        rows_checked=summary.rows_checked,
        queries=summary.queries,
        seconds=summary.seconds,
        findings_per_second=round(findings_per_second(summary.findings, summary.seconds), 1),
        findings_per_thousand_queries=round(summary.per_thousand_queries, 2),
        naturalness=likeness[0],
        representative=likeness[1],
        naturalness_rows=likeness[2],
        diversity=None if math.isnan(distance) else round(distance, 4),
        cells=distinct_cells(result.found.rows, schema),
        stop=summary.stop,
        curves=tuple(map(_curve, results)),
    )


def _curve(result: _Ran) -> tuple[tuple[int, int], ...]:
    """Queries and findings along a search, up to its end."""
    summary = result.summary
    points = [(int(q), int(n)) for q, n in summary.pictures.get("curve", [])]
    return (*points, (summary.queries, summary.findings))


def _absent(name: str, error: LimiError) -> ComparedRun:
    return ComparedRun(
        name, 0, 0, 0, 0.0, 0.0, 0.0, None, None, None, None, 0, "not run", str(error)
    )

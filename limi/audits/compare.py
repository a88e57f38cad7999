"""Several methods on one problem, under equal budgets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from limi.audits.audit import audit
from limi.audits.generator_source import anchored
from limi.audits.plan import MOST_TO_JUDGE
from limi.audits.problem import Problem, prepare
from limi.audits.result import Result, draw_representative
from limi.audits.sending import settle_remote
from limi.audits.sum_up import MOST_COMPARED
from limi.defaults import DEFAULT_GENERATOR
from limi.errors import BadModel, InvalidInput, LimiError, MissingCapability, spell
from limi.gpu.place import settle_device
from limi.metrics._enough import FEWEST_TO_JUDGE
from limi.metrics.diversity import distinct_cells, pairwise_distance
from limi.metrics.effectiveness import findings_per_second
from limi.metrics.naturalness import naturalness_at
from limi.remote.options import Remote
from limi.search.budget import check_seed
from limi.search.findings import Found
from limi.streams import Stream
from limi.table.frames import Frame
from limi.types import Index

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
    on_method: Callable[[str], None] = lambda name: None,
    **given: Any,
) -> list[ComparedRun]:
    """One line per method, all with the same table, model, generator, budget and seed.

    `settings` are those of each method by its name. The model is opened once, and the generator
    fitted once. A method that cannot run on this target says why in its line. With several `seeds`
    each method runs as often; numbers are those of the first, and curves show them all.
    """
    from limi import generators

    check_seed(seed)
    if seeds < 1:
        raise InvalidInput(f"seeds is {seeds}; it must be 1 or more")
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
    place, _ = settle_device(device, problem.target, found)
    if isinstance(generator, str) and generator in generators.names():
        rng = Stream.GENERATOR.rng(seed)
        found = generators.fit(generator, problem.rows, problem.schema, rng, device=place)
    lines: dict[str, ComparedRun] = {}
    results: dict[str, list[Result]] = {}
    for name in methods:
        on_method(name)
        try:
            results[name] = [
                audit(
                    problem.target.model,
                    frame,
                    method=name,
                    settings=(settings or {}).get(name, ()),
                    generator=found,
                    seed=seed + more,
                    rate_rows=0,
                    device=place,
                    **given,
                )
                for more in range(seeds)
            ]
        except MissingCapability as error:
            lines[name] = _absent(name, error)
    likeness = _likeness(problem, {name: ran[0].found for name, ran in results.items()}, seed)
    lines |= {name: _line(name, ran, likeness[name]) for name, ran in results.items()}
    return [lines[name] for name in methods]


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
    name: str, results: list[Result], likeness: tuple[float | None, float | None, int | None]
) -> ComparedRun:
    result = results[0]
    summary, schema = result.summary, result.problem.schema
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


def _curve(result: Result) -> tuple[tuple[int, int], ...]:
    """Queries and findings along a search, up to its end."""
    summary = result.summary
    points = [(int(q), int(n)) for q, n in summary.pictures.get("curve", [])]
    return (*points, (summary.queries, summary.findings))


def _absent(name: str, error: LimiError) -> ComparedRun:
    return ComparedRun(
        name, 0, 0, 0, 0.0, 0.0, 0.0, None, None, None, None, 0, "not run", str(error)
    )

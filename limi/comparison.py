"""Several methods on one problem, under equal budgets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from limi.api import audit
from limi.defaults import DEFAULT_GENERATOR
from limi.device import settled
from limi.errors import LimiError, MissingCapability
from limi.frames import Frame
from limi.metrics.diversity import distinct_cells, pairwise_distance
from limi.problems import prepare
from limi.results import Result

__all__ = ["Line", "compare"]


@dataclass(frozen=True)
class Line:
    """What one method reached."""

    method: str
    findings: int
    rows_checked: int
    queries: int
    seconds: float
    findings_per_second: float
    findings_per_thousand_queries: float
    naturalness: float | None  # ATN of the findings
    representative: float | None  # ATN of the representative ones
    diversity: float | None  # mean distance of two findings
    cells: int
    stop: str
    problem: str = ""  # why it could not run

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
    device: str = "auto",
    on_method: Callable[[str], None] = lambda name: None,
    **given: Any,
) -> list[Line]:
    """One line a method, all with the same table, model, generator, budget and seed.

    The generator is fitted once. A method that cannot run on this target says why in its line.
    """
    from limi import generators

    names = ("protected", "target", "favorable", "schema", "trust_pickle", "trust", "table_name")
    problem = prepare(model, frame, **{name: given[name] for name in names if name in given})
    place, _ = settled(device, problem.target, generator)
    if isinstance(generator, str) and generator in generators.names():
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
        fit = generators.get(generator).fit
        generator = fit(problem.rows, problem.schema, rng, device=place)
    lines = []
    for name in methods:
        on_method(name)
        try:
            result = audit(
                model,
                frame,
                method=name,
                generator=generator,
                seed=seed,
                rate_rows=0,
                device=place,
                **given,
            )
        except MissingCapability as error:
            lines.append(_absent(name, error))
        else:
            lines.append(_line(name, result))
    return lines


def _line(name: str, result: Result) -> Line:
    summary, schema = result.summary, result.problem.schema
    distance = pairwise_distance(result.found.rows, schema, np.random.default_rng(0))
    return Line(
        method=name,
        findings=summary.findings,
        rows_checked=summary.rows_checked,
        queries=summary.queries,
        seconds=summary.seconds,
        findings_per_second=round(summary.findings / max(summary.seconds, 1e-3), 1),
        findings_per_thousand_queries=round(summary.per_thousand_queries, 2),
        naturalness=summary.naturalness.get("findings"),
        representative=summary.naturalness.get("representative"),
        diversity=None if math.isnan(distance) else round(distance, 4),
        cells=distinct_cells(result.found.rows, schema),
        stop=summary.stop,
    )


def _absent(name: str, error: LimiError) -> Line:
    return Line(name, 0, 0, 0, 0.0, 0.0, 0.0, None, None, None, 0, "not run", str(error))

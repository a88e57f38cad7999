"""A small problem with known flips, for the suites and for whoever has none of their own.

Six columns of whole numbers; the model is a logistic function of a weighted sum, and two of the
columns are protected. No row lies near the edge of a decision, so no processor decides otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limi.decisions import favors
from limi.metrics import Decided, Effort, Evidence
from limi.metrics.group import Groups, tally
from limi.metrics.naturalness import Likeness
from limi.metrics.rates import measure
from limi.metrics.row_naturalness import judge_by_distance
from limi.search.budget import Budget
from limi.search.engine import run
from limi.search.session import Session
from limi.search.task import Task
from limi.table.rows import snap, uniform
from limi.table.schema import Column, Schema
from limi.types import Labels, Latents, Rows, Scores

__all__ = ["SCHEMA", "make_evidence", "make_groups", "make_task", "score"]

_RANGES = ((0, 40), (0, 40), (-5, 5), (0, 9), (1, 5), (0, 1))
_WEIGHTS = np.array([0.15, -0.2, 0.3, 0.1, 0.5, 1.0])
_BIAS = 0.175  # sums are multiples of 0.05, so that none comes nearer to 0 than 0.025

SCHEMA = Schema(
    tuple(
        Column(name=f"x{place}", kind="numerical", low=low, high=high, step=1)
        for place, (low, high) in enumerate(_RANGES)
    )
).protect(["x4", "x5"])


def score(rows: Rows) -> Scores:
    """The model's scores."""
    scores: Scores = 1 / (1 + np.exp(-(rows @ _WEIGHTS + _BIAS)))
    return scores


@dataclass(frozen=True)
class _Rounding:
    """A generator whose latents are rows before rounding: one standard normal number per column."""

    schema: Schema
    kind: ClassVar[str] = "rounding"

    @property
    def latent_dim(self) -> int:
        return len(self.schema)

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        return rng.normal(size=(n, self.latent_dim))

    def decode(self, latents: Latents) -> Rows:
        width, middle = self.schema.high - self.schema.low, (self.schema.high + self.schema.low) / 2
        return snap(self.schema, middle + 0.3 * width * latents)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return {}, {}


def make_task(**more: Any) -> Task:
    """A task with a table of 400 rows and a generator; without gradients.

    Further keywords are those of `Task`: a method that needs gradients brings them as
    `gradients=...`.
    """
    given: dict[str, Any] = {"generator": _Rounding(SCHEMA)}
    return Task(SCHEMA, score, uniform(SCHEMA, 400, np.random.default_rng(0)), **(given | more))


def make_evidence(*, findings: bool = True, seed: int = 0) -> Evidence:
    """What a metric may look at, of a run that found something, or nothing."""
    from limi.methods.real import Real

    task = make_task()
    found = run(Real(), task, Budget(), seed).findings.all()
    judge = judge_by_distance(task.rows, SCHEMA, np.random.default_rng(seed))
    found = replace(
        found,
        naturalness=judge.p_values(found.rows),
        partner_naturalness=judge.p_values(found.partner),
    )[: None if findings else 0]
    measured = measure(Session(task), ["real", "uniform", "natural"], seed, rows=300)
    score_of = measured.checked["real"].score
    places = measured.places["real"]
    return Evidence(
        schema=SCHEMA,
        table=task.rows,
        found=found,
        rates=measured.rates,
        by_column=measured.alone,
        checked=measured.checked,
        decided=Decided.of("real", task.rows, score_of, _labels(task.rows), places),
        likeness={"findings": Likeness(0.9, 0.01, 50, 10)} if findings else {},
        judged_by=judge.words,
        effort=Effort(2.0, 1.0, measured.queries),
        seed=seed,
    )


def make_groups() -> Groups:
    """Two groups of the problem's people by a protected column."""
    rows = make_task().rows
    favorable, privileged = favors(score(rows)), rows[:, 5] == 1
    mine, others = (tally(favorable, _labels(rows), side) for side in (privileged, ~privileged))
    return Groups(mine, others, names=("x5 1", "x5 other than 1"))


def _labels(rows: Rows) -> Labels:
    """True labels that the model mostly meets."""
    noise = np.random.default_rng(1).normal(0, 2, len(rows))
    labels: Labels = (rows[:, :4] @ _WEIGHTS[:4] + noise > -2).astype(np.int8)
    return labels

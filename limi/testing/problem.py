"""A small problem with known flips, for the suites and for whoever has none of their own.

Six columns of whole numbers; the model is a logistic function of a weighted sum, and two of the
columns are protected. No row lies near the edge of a decision, so no processor decides otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limi.search.task import Task
from limi.table.rows import snap, uniform
from limi.table.schema import Column, Schema
from limi.types import Latents, Rows, Scores

__all__ = ["SCHEMA", "make_task", "score"]

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

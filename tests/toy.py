"""Small problems whose flips can be counted by hand (a linear rule on integer columns)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limi.decisions import EDGE
from limi.search.task import Task
from limi.table.rows import snap, uniform
from limi.table.schema import Column, Schema


def are_clear(scores):
    """Can no last digit bring a score to another side?"""
    lines = np.array([0.5 - EDGE, 0.5, 0.5 + EDGE])
    return bool((np.abs(np.asarray(scores)[..., None] - lines) > 1e-9).all())


def clear(scores):
    """The same scores, held to be clear: with rows on the edge a toy would test the processor,
    where sums in another order end on another side."""
    assert are_clear(scores), "a score lies within 1e-9 of the edge; move the toy's bias"
    return scores


@dataclass(frozen=True)
class Linear:
    """Favorable where weights . row + bias > 0; the score is a logistic function of it."""

    weights: tuple[float, ...]
    bias: float

    def unchecked(self, rows):
        return 1 / (1 + np.exp(-(rows @ np.array(self.weights) + self.bias)))

    def score(self, rows):
        return clear(self.unchecked(rows))

    def __call__(self, rows):
        return self.score(rows)


def integers(name, low, high, **more):
    return Column(name=name, kind="numerical", low=low, high=high, step=1, **more)


def schema_of(*ranges, protected):
    columns = [integers(f"x{i}", low, high) for i, (low, high) in enumerate(ranges)]
    return Schema(tuple(columns)).protect(protected)


def grid(schema):
    """Every row of a small domain, the last column moving first."""
    axes = [np.arange(c.low, c.high + 1, dtype=float) for c in schema.columns]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


# The dossier's 25-point problem: x0, x1 in 0..4, one protected bit; exactly 9 points flip.
SCHEMA = schema_of((0, 4), (0, 4), (0, 1), protected=["x2"])
MODEL = Linear((1.0, -1.0, 2.0), -1.5)
FLIPPING = {(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (4, 3), (4, 4)}

MIXED = Schema(
    (
        Column(name="age", kind="numerical", low=18, high=90, step=1),
        Column(name="sex", kind="categorical", levels=("F", "M")),
        Column(name="job", kind="categorical", levels=("a", "b", "c"), missing=True),
        Column(name="rank", kind="ordered", levels=("low", "mid", "high")),
        Column(name="vet", kind="boolean", levels=(False, True)),
        Column(name="debt", kind="numerical", low=-5.0, high=5.0, missing=True),
        Column(name="price", kind="numerical", low=0.0, high=2.0, step=0.1),
    )
)


@dataclass(frozen=True)
class Rounding:
    """A generator whose latents are rows before rounding: one standard normal a column."""

    schema: Schema
    spread: float = 0.3  # of the range
    kind = "rounding"

    @property
    def latent_dim(self):
        return len(self.schema)

    def sample_latents(self, n, rng):
        return rng.normal(size=(n, self.latent_dim))

    def decode(self, latents):
        width = self.schema.high - self.schema.low
        middle = (self.schema.high + self.schema.low) / 2
        return snap(self.schema, middle + self.spread * width * latents)


def task(schema=SCHEMA, model=MODEL, rows=None, **more):
    return Task(schema, model.score, grid(schema) if rows is None else rows, **more)


class Clock:
    """Time that passes while somebody works."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


# A larger one, for budgets that end somewhere inside it.
WIDE = schema_of((0, 99), (0, 99), (0, 9), (1, 5), protected=["x3"])
WIDE_MODEL = Linear((0.03, -0.05, 0.1, 0.4), 0.195)


def wide_task(**more):
    return task(WIDE, WIDE_MODEL, uniform(WIDE, 2_000, np.random.default_rng(3)), **more)

"""Two phases without a hierarchy: explore for seeds that flip, then exploit around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Protocol

import numpy as np

from limi.check import Checked
from limi.rows import KeySet, distinct
from limi.schema import Schema
from limi.task import Task

__all__ = ["Exploiter", "Explorer", "SeedPool", "two_phase"]


class Explorer(Protocol):
    """A method that can look for seeds all over the domain."""

    needs: ClassVar[frozenset[str]]

    def explore(self, task: Task, rng: np.random.Generator) -> Iterator[Checked]:
        """Checked rows; those that flip become seeds."""
        ...


class Exploiter(Protocol):
    """A method that can search around seeds."""

    needs: ClassVar[frozenset[str]]

    def exploit(self, task: Task, seeds: Checked, rng: np.random.Generator) -> Iterator[Checked]:
        """Checked rows near flipping ones; the seeds bring their partners along."""
        ...


class SeedPool:
    """The first distinct flipping rows of a stream, up to a number."""

    def __init__(self, schema: Schema, n_seeds: int) -> None:
        self._schema, self._n_seeds = schema, n_seeds
        self._known = KeySet()
        self._parts: list[Checked] = []

    @property
    def full(self) -> bool:
        """Are there enough?"""
        return len(self._known) >= self._n_seeds

    def add(self, checked: Checked) -> None:
        """Take the new flipping rows of a batch."""
        flipping = checked[checked.flips]
        known = distinct(self._schema, flipping.rows)
        fresh = known.first[~self._known.contains(known.keys[known.first])]
        fresh = fresh[: self._n_seeds - len(self._known)]
        self._known.add(known.keys[fresh])
        self._parts.append(flipping[fresh])

    def seeds(self) -> Checked:
        """The seeds so far, oldest first."""
        return Checked.join(self._parts)


def two_phase(
    task: Task,
    explorer: Explorer,
    exploiter: Exploiter,
    rng: np.random.Generator,
    *,
    n_seeds: int,
) -> Iterator[Checked]:
    """Explore until n_seeds distinct flipping rows are pooled, then exploit around them."""
    explore_rng, exploit_rng = rng.spawn(2)
    pool = SeedPool(task.schema, n_seeds)
    for checked in explorer.explore(task, explore_rng):
        pool.add(checked)
        yield checked
        if pool.full:
            break
    seeds = pool.seeds() if pool._parts else None
    if seeds is not None and len(seeds):
        yield from exploiter.exploit(task, seeds, exploit_rng)

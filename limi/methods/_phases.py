"""Two phases without a hierarchy: explore for seeds that flip, then exploit around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from limi.check import Checked
from limi.errors import InvalidInput
from limi.methods._base import Method
from limi.rows import KeySet, distinct
from limi.schema import Schema
from limi.task import Task

__all__ = ["Exploiter", "Explorer", "Pair", "SeedPool", "two_phase"]


@runtime_checkable
class Explorer(Protocol):
    """A method that can look for seeds all over the domain."""

    @property
    def needs(self) -> frozenset[str]:
        """Capabilities of the task that it cannot do without."""
        ...

    def explore(self, task: Task, rng: np.random.Generator) -> Iterator[Checked]:
        """Checked rows; those that flip become seeds."""
        ...


@runtime_checkable
class Exploiter(Protocol):
    """A method that can search around seeds."""

    @property
    def needs(self) -> frozenset[str]:
        """Capabilities of the task that it cannot do without."""
        ...

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
        if len(fresh):
            self._parts.append(flipping[fresh])

    def seeds(self) -> Checked:
        """The seeds so far, oldest first."""
        if not self._parts:
            return Checked.nothing(len(self._schema))
        return Checked.join(self._parts)


def two_phase(
    task: Task,
    explorer: Explorer | Method,
    exploiter: Exploiter,
    rng: np.random.Generator,
    *,
    n_seeds: int,
    explore_rows: int | None = None,
) -> Iterator[Checked]:
    """Explore until n_seeds distinct flipping rows are pooled, then exploit around them.

    A method of one phase explores by its whole search. `explore_rows` ends an exploration that
    finds too little after so many rows.
    """
    explore_rng, exploit_rng = rng.spawn(2)
    pool = SeedPool(task.schema, n_seeds)
    explore = explorer.explore if isinstance(explorer, Explorer) else explorer.search
    n_rows = 0
    for checked in explore(task, explore_rng):
        pool.add(checked)
        n_rows += len(checked)
        yield checked
        if pool.full or (explore_rows is not None and n_rows >= explore_rows):
            break
    seeds = pool.seeds()
    if len(seeds):
        yield from exploiter.exploit(task, seeds, exploit_rng)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One method's seeds and another's search around them: `limi+adf`.

    The defaults are those of LIMI's study of itself as the prober of other methods.
    """

    name: str
    explorer: Explorer | Method
    exploiter: Exploiter
    n_seeds: int = 1000
    explore_rows: int | None = 40_000  # explored at most, in whole batches

    population: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if self.n_seeds < 1 or (self.explore_rows is not None and self.explore_rows < 1):
            raise InvalidInput("n_seeds and explore_rows must be at least 1")

    @property
    def needs(self) -> frozenset[str]:
        """What either part needs."""
        return self.explorer.needs | self.exploiter.needs

    def search(self, task: Task, rng: np.random.Generator) -> Iterator[Checked]:
        """The seeds of one, then the rows that the other finds around them."""
        return two_phase(
            task,
            self.explorer,
            self.exploiter,
            rng,
            n_seeds=self.n_seeds,
            explore_rows=self.explore_rows,
        )

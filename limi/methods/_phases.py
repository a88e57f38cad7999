"""Two phases without a hierarchy: explore for seeds that flip, then exploit around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from limi.errors import InvalidInput
from limi.search.check import Checked
from limi.search.method import Exploiter, Explorer, Method, explore, revision
from limi.search.session import Session
from limi.table.rows import KeySet, distinct
from limi.table.schema import Schema

__all__ = ["Pair", "SeedPool", "two_phase"]


class SeedPool:
    """The first distinct flipping rows of a stream, up to a number."""

    def __init__(self, schema: Schema, n_seeds: int) -> None:
        self._schema, self._n_seeds = schema, n_seeds
        self._known = KeySet()
        self._parts: list[Checked] = []

    @property
    def lacking(self) -> int:
        """How many are wanted yet."""
        return self._n_seeds - len(self._known)

    def add(self, checked: Checked) -> int:
        """Take the new flipping rows of a batch; how many of its rows it took to fill the pool."""
        places = np.flatnonzero(checked.flips)
        flipping = checked[places]
        known = distinct(self._schema, flipping.rows)
        fresh = known.first[~self._known.contains(known.keys[known.first])]
        fresh = fresh[: self.lacking]
        self._known.add(known.keys[fresh])
        if len(fresh):
            self._parts.append(flipping[fresh])
        return len(checked) if self.lacking else int(places[fresh[-1]]) + 1

    def seeds(self) -> Checked:
        """The seeds so far, oldest first."""
        if not self._parts:
            return Checked.nothing(len(self._schema))
        return Checked.join(self._parts)


def two_phase(
    session: Session,
    explorer: Explorer | Method,
    exploiter: Exploiter,
    rng: np.random.Generator,
    *,
    n_seeds: int,
) -> Iterator[Checked]:
    """Explore until n_seeds distinct flipping rows are pooled, then exploit around them.

    A method of one phase explores by its whole search.
    """
    explore_rng, exploit_rng = rng.spawn(2)
    pool = SeedPool(session.schema, n_seeds)
    for checked in explore(explorer, session, explore_rng):
        pool.add(checked)
        yield checked
        if not pool.lacking:
            break
    seeds = pool.seeds()
    if len(seeds):
        yield from exploiter.exploit(session, seeds, exploit_rng)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One method's seeds and another's search around them: `limi+adf`.

    The defaults are those of LIMI's study of itself as the prober of other methods.
    """

    name: str
    explorer: Explorer | Method
    exploiter: Exploiter
    n_seeds: int = 1000
    explore_rows: int | None = 40_000  # explored at most

    population: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if self.n_seeds < 1 or (self.explore_rows is not None and self.explore_rows < 1):
            raise InvalidInput("n_seeds and explore_rows must be at least 1")

    @property
    def needs(self) -> frozenset[str]:
        """What either part needs."""
        return self.explorer.needs | self.exploiter.needs

    @property
    def revision(self) -> int:
        """It rises with either part's."""
        return revision(self.explorer) + revision(self.exploiter) - 1

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """The seeds of one, then the rows that the other finds around them.

        Exploration ends with the row that brings the last seed, so that what is found before the
        second phase are the seeds.
        """
        explore_rng, exploit_rng = rng.spawn(2)
        pool = SeedPool(session.schema, self.n_seeds)
        for checked in self._within(session, explore(self.explorer, session, explore_rng), pool):
            end = pool.add(checked)
            session.rows_left += len(checked) - end  # they were asked in vain
            yield checked if end == len(checked) else checked[:end]
            if not pool.lacking:
                break
        seeds = pool.seeds()
        if len(seeds):
            yield from self.exploiter.exploit(session, seeds, exploit_rng)

    def _within(
        self, session: Session, batches: Iterator[Checked], pool: SeedPool
    ) -> Iterator[Checked]:
        """Batches of an explorer that sees only the rows and findings that it should bring."""
        left = np.inf if self.explore_rows is None else self.explore_rows
        while left >= 1:
            rows, findings = session.rows_left, session.findings_left
            here = session.rows_left = min(rows, left)
            session.findings_left = min(findings, pool.lacking)
            checked = next(batches, None)
            spent = here - session.rows_left if np.isfinite(here) else 0
            session.rows_left, session.findings_left = rows - spent, findings
            left -= spent
            if checked is None:
                return
            yield checked

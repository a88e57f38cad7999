"""What ADF and NeuronFair share: rows climb until they flip, then walks begin at those that did."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

import numpy as np

from limi.decisions import differ
from limi.errors import InvalidInput
from limi.methods._phases import two_phase
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.schema import Schema
from limi.types import Mask, Rows

__all__ = ["Climbing"]

_CENSUS = (  # smallest and largest code of each column of census, as the papers declare them
    *((1, 9), (0, 7), (0, 39), (0, 15), (0, 6), (0, 13), (0, 5)),
    *((0, 4), (0, 1), (0, 99), (0, 39), (0, 99), (0, 39)),
)


class Climbing(ABC):
    """Both phases, of which a method says how rows climb and how walks go on."""

    needs: ClassVar[frozenset[str]]
    population: ClassVar[str | None]

    n_seeds: int
    protected_range: Literal["schema", "census"]

    @abstractmethod
    def _climb(
        self, session: Session, rng: np.random.Generator, done: Callable[[Checked], Mask]
    ) -> Iterator[Checked]:
        """Rows of the table on their way, each until it is done."""

    @abstractmethod
    def exploit(
        self, session: Session, seeds: Checked, rng: np.random.Generator
    ) -> Iterator[Checked]:
        """Rows around the seeds."""

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Both phases."""
        if self.protected_range == "census":
            return _as_released(self, session, rng)
        return two_phase(session, self, self, rng, n_seeds=self.n_seeds)

    def explore(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Rows of the table on their way to where they flip."""
        return self._climb(session, rng, lambda checked: checked.flips)


def _as_released(method: Climbing, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
    """Both phases of a search whose exploration tries the protected values of census for any table.

    The released ADF and NeuronFair take the bounds of their first data set for every one. A row
    that an impossible value flips counts as a seed there, so walks begin at it here too; it is not
    a finding.
    """
    ranges = _census_ranges(session.schema)
    seeds: list[Checked] = []

    def done(checked: Checked) -> Mask:
        stop = checked.flips.copy()
        asked = np.repeat(checked.rows[~stop], len(ranges), axis=0)
        asked[:, session.schema.protected_index] = np.tile(ranges, (int((~stop).sum()), 1))
        answers = session.ask(asked)
        answers = np.concatenate([answers, np.full(len(asked) - len(answers), 0.5)])
        answers = answers.reshape(-1, len(ranges))
        mine = session.decision.as_score(checked.score[~stop, None])
        stop[~stop] = differ(answers, mine).any(axis=1)
        if stop.any():
            seeds.append(checked[stop])
        return stop

    explore_rng, exploit_rng = rng.spawn(2)
    yield from method._climb(session, explore_rng, done)
    if seeds:
        yield from method.exploit(session, Checked.join(seeds), exploit_rng)


def _census_ranges(schema: Schema) -> Rows:
    """(K, 1): what census holds at the place of the one protected column."""
    (*_, place), n = schema.protected_index, len(schema.protected)
    column = schema.columns[place]
    numbers = column.level_numbers
    plain = column.kind == "numerical" or (
        numbers is not None and np.array_equal(numbers, np.arange(len(numbers)))
    )
    if n != 1 or place >= len(_CENSUS) or not plain or schema.rules:
        raise InvalidInput(
            "protected_range='census' repeats the paper's released program, which takes one "
            "numerical protected column among the first 13, and no rules; use 'schema'"
        )
    low, high = _CENSUS[place]
    return np.arange(low, high + 1.0)[:, None]

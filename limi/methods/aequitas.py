"""AEQUITAS: random sampling, then walks with a learned taste (Udeshi et al., ASE 2018).

Uniform rows that flip are the seeds. A walk from each seed moves one cell at a time; which column
and in which direction is drawn from probabilities that all walks share and that grow where a move
led to a flip.

Faithfulness
- Paper: random, semi-directed (directions adapt) and fully directed (columns adapt too) search;
  the walk is basin hopping on a piecewise constant objective, that is a Metropolis walk at
  temperature 1. Here too, without the d + 1 evaluations per step that the optimizer spends.
- Paper: one walk after another. Here all walks take each step together and vote on the shared
  probabilities; above 32 walks a vote weighs 32 / n, so that one step moves them no further than
  32 steps of a single walk. `walks=1` gives the published order and weights.
- Released code moves protected columns too. Here they stay, because every value is tried anyway.
- Released baseline of the ADF repository returns the truth value of a protected value as the
  objective: the walk prefers rows whose first flipping value (or own, if none flips) is not 0.
  Here it prefers rows that flip.
- Released scikit-learn script rewards moves to rows that do not flip. Here those to rows that do.
- The copy in the ExpGA repository starts from rows of the table instead of uniform ones, and walks
  10,000 steps. Here from uniform rows, as published; `exploit_steps` sets the others.
- A step is one code of a level or of a grid, whatever the kind of the column, as published; in a
  real-valued column it is a hundredth of the range. A missing value counts as one step above the
  highest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.methods._phases import two_phase
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.rows import uniform
from limi.table.schema import Schema
from limi.table.steps import Ladder
from limi.types import Index, Mask, Rows

__all__ = ["Aequitas"]

_ROUND = 4096  # rows explored at once
_FULL_VOTES = 32  # walks in lock-step whose votes count in full


@dataclass(frozen=True, kw_only=True)
class Aequitas:
    """Sample uniformly, then walk from the rows that flip."""

    n_samples: int = 1000  # global iterations
    n_seeds: int = 1000  # flipping rows to walk from, at most
    exploit_steps: int = 1000  # local iterations per seed
    variant: Literal["random", "semi-directed", "fully-directed"] = "fully-directed"  # what adapts
    step: float = 1.0  # perturbation unit, in steps of the column
    direction_change: float = 0.001  # how much a flip changes the chance of a direction
    column_change: float = 0.001  # how much a flip changes the chance of a column
    temperature: float = 1.0  # higher accepts more moves that do not flip
    walks: int = 1024  # walks side by side; 1 is the published order

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {"best": {}}

    def __post_init__(self) -> None:
        if min(self.n_samples, self.n_seeds, self.walks) < 1 or self.exploit_steps < 0:
            raise InvalidInput(
                "n_samples, n_seeds and walks must be at least 1, and exploit_steps at least 0"
            )
        if not (self.temperature > 0 and self.step > 0):
            raise InvalidInput(
                f"temperature is {self.temperature} and step is {self.step}; both must be above 0"
            )

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Random rows, then walks."""
        return two_phase(session, self, self, rng, n_seeds=self.n_seeds)

    def explore(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Uniform rows of the domain."""
        for start in range(0, self.n_samples, _ROUND):
            n = min(_ROUND, self.n_samples - start)
            yield session.check(uniform(session.schema, n, rng), origin="explore")

    def exploit(
        self, session: Session, seeds: Checked, rng: np.random.Generator
    ) -> Iterator[Checked]:
        """Walks from every seed, with tastes that they share."""
        ladder = Ladder.of(session.schema)
        taste = Taste.of(session.schema)
        for start in range(0, len(seeds), self.walks):
            here = seeds[start : start + self.walks]
            energy = _energy(here)
            for _ in range(self.exploit_steps):
                draws = rng.random((len(here), 4))
                columns, signs = taste.draw(ladder, here.rows, draws)
                rows = ladder.step_cells(here.rows, columns, self.step * signs)
                checked = session.check(rows, origin="exploit")
                yield checked
                if len(checked) < len(rows):
                    return
                taste = self.learn(taste, columns, signs, checked.flips)
                there = _energy(checked)
                accepted = self._accept(energy, there, draws[:, 3])
                here = checked.where(accepted, here)
                energy = np.where(accepted, there, energy)

    def learn(self, taste: Taste, columns: Index, signs: NDArray[np.float64], flips: Mask) -> Taste:
        """The taste after a step of every walk."""
        weight = min(1.0, _FULL_VOTES / len(flips))
        if self.variant != "random":
            votes = np.where(flips, -signs, signs) * weight * self.direction_change
            taste = taste.turned(columns, votes)
        if self.variant == "fully-directed":
            votes = np.where(flips, weight, -weight) * self.column_change
            taste = taste.preferring(columns, votes)
        return taste

    def _accept(
        self,
        here: NDArray[np.float64],
        there: NDArray[np.float64],
        draws: NDArray[np.float64],
    ) -> Mask:
        accepted: Mask = draws < np.exp(-np.maximum(there - here, 0.0) / self.temperature)
        return accepted


def _energy(checked: Checked) -> NDArray[np.float64]:
    return np.where(checked.flips, 0.0, 1.0)


@dataclass(frozen=True)
class Taste:
    """Which column a walk moves, and how likely down."""

    column: NDArray[np.float64]  # q: sums to 1
    down: NDArray[np.float64]  # pi: the probability of a step down in each column

    @staticmethod
    def of(schema: Schema) -> Taste:
        """No preference yet."""
        movable = schema.free_mask.astype(float)
        return Taste(movable / max(movable.sum(), 1.0), np.full(len(schema), 0.5))

    def draw(
        self, ladder: Ladder, rows: Rows, draws: NDArray[np.float64]
    ) -> tuple[Index, NDArray[np.float64]]:
        """A column and a direction for each row; at a bound both directions are equally likely."""
        edges = np.cumsum(self.column)
        columns = np.searchsorted(edges, draws[:, 0] * edges[-1], side="right")
        columns = np.minimum(columns, np.flatnonzero(self.column)[-1])
        line = np.arange(len(rows))
        here = ladder.climb(rows)[line, columns]
        at_bound = (here <= 0) | (here >= ladder.last[columns])
        down = np.where(at_bound, draws[:, 2] < 0.5, draws[:, 1] < self.down[columns])
        return columns, np.where(down, -1.0, 1.0)

    def turned(self, columns: Index, votes: NDArray[np.float64]) -> Taste:
        """More of the directions that the votes speak for; a positive vote is for down."""
        swing = np.bincount(columns, votes, minlength=len(self.down))
        return replace(self, down=np.clip(self.down + swing, 0.0, 1.0))

    def preferring(self, columns: Index, votes: NDArray[np.float64]) -> Taste:
        """More of the columns that the votes speak for."""
        swing = np.bincount(columns, votes, minlength=len(self.column))
        column = np.maximum(self.column + swing, 0.0)
        total = column.sum()
        # All columns can only fall to zero together where a change is larger than published.
        return replace(self, column=column / total) if total > 0 else self

"""GRFT: a genetic search for seeds, then a light random one around them (Quan et al., ICSE 2025).

Rows of the table breed by how far their score moves with the protected value, and those of their
children that flip are the seeds. Around every seed a walk then changes one cell at a time at
random, without asking for a slope. Its authors show that a better first phase is worth more than
a better second one, above all on models that were repaired.

Faithfulness
- From the paper's description alone: its program has no licence and was not looked at. The paper
  compares on repaired and quantized networks; `limi` runs it on any model it can ask.
- Paper: fitness is how far the outputs of the protected variants lie apart. Here too, in the score
  of the decision, rounded; where the target answers labels only, rows that flip are fit.
- Paper: the genetic algorithm guides the search for global seeds. Size of the population, share
  that survives, rates of crossover and mutation: its short description does not give them, so they
  are ours, and settings. The survivors are the fittest distinct rows, and are not asked again.
- Paper: the local phase is an iterative random search that treats all seeds in one batch. Here: a
  step up or down in one free column, drawn at random; a walk goes on from a row that flips and
  steps back from one that does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Rule, round_scores
from limi.errors import InvalidInput
from limi.methods import _genetic
from limi.methods._phases import two_phase
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.rows import distinct, snap
from limi.table.schema import Schema
from limi.table.steps import Ladder, movable
from limi.types import Index, Rows

__all__ = ["Grft"]


@dataclass(frozen=True, kw_only=True)
class Grft:
    """Breed rows that the protected value moves, then walk at random from those that flip."""

    size: int = 1000  # rows of a generation
    generations: int = 100  # generations of the genetic search
    survivors: float = 0.5  # share of a generation that stays as it is
    crossover_rate: float = 0.9  # chance that two parents exchange cells
    mutation_rate: float = 0.05  # chance that a row is changed
    n_seeds: int = 1000  # flipping rows to walk from, at most
    exploit_steps: int = 1000  # moves around each seed
    longest: int = 1  # steps of a column that one move takes at most

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {"best": {}}

    def __post_init__(self) -> None:
        if min(self.size, self.n_seeds, self.longest) < 1:
            raise InvalidInput("size, n_seeds and longest must be at least 1")
        if min(self.generations, self.exploit_steps) < 0:
            raise InvalidInput("generations and exploit_steps must be at least 0")
        for name in ("survivors", "crossover_rate", "mutation_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must lie in [0, 1]")

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Generations, then walks."""
        return two_phase(session, self, self, rng, n_seeds=self.n_seeds)

    def explore(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Rows of the table, and generations that descend from them."""
        schema = session.schema
        order = rng.permutation(len(session.rows))[: self.size]
        rows = snap(schema, session.rows[order])
        alive = session.check(rows, origin="explore")
        yield alive
        for _ in range(self.generations):
            if not len(alive):
                return
            fitness = _measure_fitness(alive, session.decision)
            chosen = _genetic.select(fitness / _genetic.n_copies(schema, alive.rows), rng)
            children = self._breed(schema, alive.rows[chosen], rng)
            best = _find_fittest(schema, alive, fitness)[: round(self.survivors * len(alive))]
            children = children[: max(len(alive) - len(best), 1)]
            checked = session.check(children, origin="explore")
            yield checked
            alive = Checked.join([alive[best], checked])

    def exploit(
        self, session: Session, seeds: Checked, rng: np.random.Generator
    ) -> Iterator[Checked]:
        """Random walks from all seeds together, which never leave the rows that flip."""
        columns = np.flatnonzero(movable(session.schema))
        if not len(columns):
            return
        ladder = Ladder.of(session.schema)
        here = seeds
        for _ in range(self.exploit_steps):
            draws = rng.random((len(here), 3))
            steps = 1.0 + np.floor(draws[:, 1] * self.longest)
            steps = np.where(np.floor(2 * draws[:, 2]), steps, -steps)
            column = columns[np.floor(draws[:, 0] * len(columns)).astype(np.intp)]
            rows = ladder.step_cells(here.rows, column, steps)
            checked = session.check(rows, origin="exploit")
            yield checked
            if len(checked) < len(rows):
                return
            here = checked.where(checked.flips, here)

    def _breed(self, schema: Schema, parents: Rows, rng: np.random.Generator) -> Rows:
        children = _genetic.exchange_fragments(parents, schema.free_index, self.crossover_rate, rng)
        return snap(schema, _genetic.mutate(schema, children, self.mutation_rate, rng))


def _measure_fitness(checked: Checked, decision: Rule) -> NDArray[np.float64]:
    """How far the protected value moves the score of each row.

    Rounded, so that the last digits, which move with the batch, choose no parents.
    """
    score, partner_score = (
        decision.as_score(answers) for answers in (checked.score, checked.partner_score)
    )
    if decision.kind == "class" or np.isin(score, (0.0, 1.0)).all():
        return np.where(checked.flips, 3.0, 1.0)
    return np.asarray(round_scores(np.abs(score - partner_score)))


def _find_fittest(schema: Schema, checked: Checked, fitness: NDArray[np.float64]) -> Index:
    """Places of the distinct rows, fittest first; of equal ones the earlier."""
    first = np.sort(distinct(schema, checked.rows).first)
    fittest: Index = first[np.argsort(-fitness[first], kind="stable")]
    return fittest

"""ExpGA: seeds by explanation, then a genetic algorithm (Fan et al., ICSE 2022).

Rows for which a local linear explanation ranks a protected column high are the first population.
Selection, crossover and mutation then breed rows whose score depends on the protected columns.

Faithfulness
- Paper: seeds are rows of the table whose protected column ranks under a threshold, which is
  chosen for each table so that about a fifth of the rows qualify. Here it is the smallest with
  which at least a fifth do, for any table; `threshold` sets it.
- Released code has the thresholds 7 for Adult, 14 for German Credit and 10 for Bank (the paper 9).
- Released code draws the rows to explain uniformly from the domain, with the protected value 0
  whether the domain has it or not, and stops at 100 seeds. Here: rows of the table.
- Paper and code explain with LIME, all columns as numbers. Here: the same sampling law, kernel and
  ridge regression, but one scored pool for all rows, and its rows are moved into the domain before
  the model sees them. With several protected columns the best ranked one counts.
- Paper: fitness is the difference between the scores of the protected variants. Released code:
  3 where the label flips, 1 where not, or where it has recorded the row before. Here: the paper's,
  and 3 or 1 where the target answers labels only.
- Paper and code: a population may fill with copies of one row, and then finds little that is new.
  Here copies share the fitness of their row; `copies="count"` for theirs (`preset=paper`).
- Paper: two parents exchange a fragment. Released code copies one way and mistakes the length of
  the fragment for its end, so that most are empty. Here: the paper's.
- Paper: mutation leaves protected columns alone. Released code does not, and never draws the
  highest value. Here: the paper's.
- Released code counts unverified seeds and both protected twins. Here every finding was checked
  and is distinct by its non-protected columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from limi.decisions import AS_DECIDED, Rule, round_scores
from limi.errors import InvalidInput
from limi.methods import _genetic, _surrogate
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.rows import snap
from limi.table.steps import Ladder
from limi.types import Index, Rows

__all__ = ["ExpGA"]


@dataclass(frozen=True, kw_only=True)
class ExpGA:
    """Breed rows from those whose explanation names a protected column."""

    n_rows: int = 1000  # rows explained
    threshold: int | None = None  # epsilon: ranks below it qualify; None: from `share`
    share: float = 0.2  # least share of the explained rows that qualify
    n_seeds: int = 1000  # rows of the first population, at most
    n_samples: int = 5000  # rows that the explainer draws
    generations: int = 1000  # generations of the genetic search
    crossover_rate: float = 0.9  # chance that two parents exchange cells
    mutation_rate: float = 0.05  # chance that a row is changed
    copies: Literal["share", "count"] = "share"  # does each copy of a row have its whole fitness?

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "paper": {"copies": "count"},
    }

    def __post_init__(self) -> None:
        if min(self.n_rows, self.n_seeds, self.n_samples) < 1 or self.generations < 0:
            raise InvalidInput(
                "n_rows, n_seeds and n_samples must be at least 1, and generations at least 0"
            )
        for name in ("share", "crossover_rate", "mutation_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must lie in [0, 1]")

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Seeds, whether they flip or not, and their descendants."""
        explore_rng, exploit_rng = rng.spawn(2)
        seeds = []
        for checked in self.explore(session, explore_rng):
            if len(checked):
                seeds.append(checked)
            yield checked
        if seeds:
            yield from self.exploit(session, Checked.join(seeds), exploit_rng)

    def explore(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """The rows whose decision leans on a protected column, by explanation."""
        candidates = self._candidates(session, rng)
        candidates = candidates[: _surrogate.n_affordable(session, len(candidates))]
        ladder = Ladder.of(session.schema)
        n_pool = max(self.n_samples - 1, 1)  # the row itself is the first sample
        table = _surrogate.Moments.of(ladder, session.rows)
        pool = _surrogate.gaussian(ladder, table, n_pool, rng)
        pool = pool[: _surrogate.n_affordable(session, n_pool)]
        yield Checked.nothing(len(session.schema))
        answers = session.ask(pool)
        explainer = _surrogate.Linear.of(ladder, table, pool[: len(answers)], answers)
        answers = session.ask(candidates)
        candidates = candidates[: len(answers)]
        influence = explainer.coefficients(candidates, answers)
        ranks = protected_ranks(influence, session.schema.protected_index)
        seeds = candidates[ranks < self._threshold(ranks)][: self.n_seeds]
        yield session.check(seeds, origin="explore")

    def exploit(
        self, session: Session, seeds: Checked, rng: np.random.Generator
    ) -> Iterator[Checked]:
        """Generations that descend from the seeds."""
        parents = seeds
        for _ in range(self.generations):
            fitness = self.fitness_of(parents, session.decision)
            if self.copies == "share":
                fitness = fitness / _genetic.n_copies(session.schema, parents.rows)
            chosen = _genetic.select(fitness, rng)
            children = self._breed(session, parents.rows[chosen], rng)
            parents = session.check(children, origin="exploit")
            yield parents
            if len(parents) < len(children):
                return

    def fitness_of(self, checked: Checked, decision: Rule = AS_DECIDED) -> NDArray[np.float64]:
        """How much the protected columns matter to each row."""
        score, partner_score = (
            decision.as_score(answers) for answers in (checked.score, checked.partner_score)
        )
        labels_only = np.isin(score, (0.0, 1.0)).all() or decision.kind == "class"
        if labels_only:
            return np.where(checked.flips, 3.0, 1.0)
        # Rounded, so that the last digits, which move with the batch, choose no parents.
        return np.asarray(round_scores(np.abs(score - partner_score)))

    def _breed(self, session: Session, parents: Rows, rng: np.random.Generator) -> Rows:
        schema = session.schema
        children = _genetic.exchange_fragments(parents, schema.free_index, self.crossover_rate, rng)
        return snap(schema, _genetic.mutate(schema, children, self.mutation_rate, rng))

    def _candidates(self, session: Session, rng: np.random.Generator) -> Rows:
        order = rng.permutation(len(session.rows))[: self.n_rows]
        return snap(session.schema, session.rows[order])

    def _threshold(self, ranks: Index) -> int:
        if self.threshold is not None:
            return self.threshold
        if not len(ranks):
            return 0
        # At least one row must qualify, or there would be nothing to breed from.
        place = max(int(np.ceil(self.share * len(ranks))), 1) - 1
        return int(np.sort(ranks)[place]) + 1


def protected_ranks(influence: NDArray[np.float64], protected: Index) -> Index:
    """(n,): the rank from 0 of the most influential protected column; ties favor the others."""
    size = np.abs(influence)
    best = size[:, protected].max(axis=1)
    others = np.delete(size, protected, axis=1)
    ranks: Index = (others >= best[:, None]).sum(axis=1)
    return ranks

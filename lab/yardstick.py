"""What the paper measures a model by before and after it is trained again, on the same rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limi.audits.problem import Problem
from limi.decisions import favors
from limi.generators import Generator
from limi.metrics._populations import check_population, choose_places, draw_people
from limi.metrics.group import differences, tally
from limi.metrics.individual import flip_rate
from limi.metrics.rates import measurable_rows
from limi.models.target import Target
from limi.repairs import RepairGroups
from limi.types import Index, Rows

__all__ = ["Yardstick"]

_MOST_QUERIES = 400_000  # for one rate; many protected combinations make a row dear


@dataclass(frozen=True)
class Yardstick:
    """The rows that every model of a cell is measured on."""

    problem: Problem
    groups: RepairGroups
    real: Rows
    uniform: Rows
    natural: Rows

    @staticmethod
    def make(
        problem: Problem,
        chosen: RepairGroups,
        generator: Generator,
        n: int,
        rng: np.random.Generator,
    ) -> Yardstick:
        """Rows of the table, of its domain, and of a generator that imitates it; n of each."""
        schema = problem.schema
        n = max(1, min(n, measurable_rows(schema, 1, _MOST_QUERIES)))
        real = problem.rows[choose_places(len(problem.rows), n, rng)]
        natural, drawn = (
            draw_people(p, n, rng, schema, generator)[0] for p in ("natural", "uniform")
        )
        return Yardstick(problem, chosen, real, drawn, natural)

    def measure(self, target: Target, trained: Index) -> dict[str, float | None]:
        """A model's figures by the paper's names; accuracy and gaps on the rows trained on."""
        assert self.problem.labels is not None
        rows, labels = self.problem.rows[trained], self.problem.labels[trained]
        decided = favors(target.score(rows))
        inside, outside = self.groups.split(self.problem.schema, rows)
        gaps = differences(tally(decided, labels, inside), tally(decided, labels, outside))
        return {
            "accuracy": flip_rate(decided == (labels == 1)).estimate,
            "if_r": self._rate(target, self.uniform),
            "if_o": self._rate(target, self.real),
            "if_n": self._rate(target, self.natural),
            "spd": gaps["parity_gap"].value,
            "aod": gaps["average_odds_error"].value,
        }

    def _rate(self, target: Target, rows: Rows) -> float | None:
        if not len(rows):  # hardly any of them keep the rules of the table
            return None
        schema, rule = self.problem.schema, self.problem.target.rule
        return check_population(target.score, schema, rows, rule)[1].estimate

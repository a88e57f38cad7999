"""What is true of a target whatever the method: accuracy, the rate of natural people, and where
among them decisions flip.

The population is cut into leaves by a tree over the non-protected columns, grown on natural people
whom no search meets: by their flips where enough of them flip, else by how far their score moves.
Findings are then held to the leaves in which people flip.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.targets.making import draw_people, natural_people
from limi.audits.problem import Problem
from limi.decisions import favors
from limi.metrics.individual import rate_of
from limi.search.check import check_rows
from limi.system import writing
from limi.types import Index, Mask, Rows

__all__ = ["Reference"]

_MOST_PEOPLE, _QUESTIONS, _CELLS = 50_000, 300_000, 2_000_000
_LEAVES, _LEAST = 64, 50
_ENOUGH_TO_GROW = 200  # flips; fewer say too little of where
_ENOUGH_TO_HOLD = 20  # flips that findings can be held to


@dataclass(frozen=True, eq=False)
class Reference:
    """Natural people of a target, how far their scores move, and who flips."""

    people: Rows  # their non-protected columns
    free: Index
    gap: NDArray[np.float64]
    flips: Mask
    facts: dict[str, float | None]

    @staticmethod
    def measure(problem: Problem) -> Reference:
        """Asked of the target."""
        schema, target = problem.schema, problem.target
        n = min(_MOST_PEOPLE, _QUESTIONS // len(schema.combinations), _CELLS // len(schema))
        rows = draw_people(natural_people(problem.rows, schema), n, 0)
        checked = check_rows(target.score, schema, rows, decision=target.rule)
        rate = rate_of(int(checked.flips.sum()), int(checked.is_paired.sum()))
        facts: dict[str, float | None] = {
            "columns": len(schema),
            "combinations": len(schema.combinations),
            "rate": round(rate.estimate, 6),
            "rate_low": round(rate.low, 6),
            "rate_high": round(rate.high, 6),
            "accuracy": None,
        }
        if problem.labels is not None:
            known = problem.labels >= 0
            right = favors(target.score(problem.rows[known])) == (problem.labels[known] == 1)
            facts["accuracy"] = round(float(right.mean()), 4)
        free = schema.free_index
        gap = np.abs(checked.score - checked.partner_score)
        return Reference(rows[:, free], free, gap, checked.flips, facts)

    def keep(self, path: Path) -> None:
        """As arrays without code."""
        content = io.BytesIO()
        names = np.array(list(self.facts))
        values = np.array([np.nan if v is None else v for v in self.facts.values()])
        np.savez_compressed(
            content,
            people=self.people,
            free=self.free,
            gap=self.gap,
            flips=self.flips,
            names=names,
            values=values,
        )
        writing.make_folder(path.parent)
        writing.write(path, content.getvalue())

    @staticmethod
    def read(path: Path) -> Reference:
        """What `keep` wrote."""
        with np.load(path, allow_pickle=False) as file:
            values = [None if np.isnan(v) else float(v) for v in file["values"]]
            facts = dict(zip(map(str, file["names"]), values, strict=True))
            return Reference(file["people"], file["free"], file["gap"], file["flips"], facts)

    @cached_property
    def _tree(self) -> Any:
        from sklearn.tree import DecisionTreeRegressor

        enough = self.flips.sum() >= _ENOUGH_TO_GROW
        grown_by = self.flips.astype(np.float64) if enough else self.gap
        tree = DecisionTreeRegressor(
            max_leaf_nodes=_LEAVES, min_samples_leaf=_LEAST, random_state=0
        )
        return tree.fit(self.people, grown_by)

    @cached_property
    def _flip_shares(self) -> NDArray[np.float64] | None:
        """Of the people who flip, how many lie in each leaf; None where too few flip."""
        if self.flips.sum() < _ENOUGH_TO_HOLD:
            return None
        return self._shares(self.people[self.flips])

    def _shares(self, people: Rows) -> NDArray[np.float64]:
        counts = np.bincount(self._tree.apply(people), minlength=self._tree.tree_.node_count)
        return np.asarray(counts / max(1, counts.sum()))

    def hold(self, rows: Rows) -> dict[str, float | None]:
        """How findings lie among the leaves.

        `leaves`: how many hold a finding. `coverage`: the share of flipping people who live in
        these. `agreement`: 1 where findings are spread over leaves as flipping people are, 0 where
        they share no leaf (one minus the total variation distance).
        """
        if not len(rows):
            return {"leaves": 0, "coverage": 0.0, "agreement": None}
        shares, true = self._shares(rows[:, self.free]), self._flip_shares
        leaves = int((shares > 0).sum())
        if true is None:
            return {"leaves": leaves, "coverage": None, "agreement": None}
        return {
            "leaves": leaves,
            "coverage": round(float(true[shares > 0].sum()), 4),
            "agreement": round(float(np.minimum(shares, true).sum()), 4),
        }

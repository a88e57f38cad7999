"""Cells of the open benchmark: a method on a target, with every budget of queries in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lab.cells import Cell
from lab.kinds._search import search_cell
from lab.targets import making
from lab.targets.definitions import read_target
from lab.workshop import Workshop
from limi.metrics.diversity import pairwise_distance
from limi.metrics.row_naturalness import Judge, judge_by_distance
from limi.search.check import Checked, query_cost
from limi.search.findings import Found
from limi.search.method import Method, is_exhaustive
from limi.search.session import Session
from limi.table.partners import distinct_questions
from limi.table.rows import KeySet, distinct

__all__ = ["BUDGETS", "MARKS", "measure", "require_table"]

BUDGETS = (100, 1_000, 10_000, 100_000)
MARKS = (1, 10)
"""Findings whose queries are counted."""

_JUDGED = 2_000  # findings of which the plausible ones are counted
_LOOKED_AT = 1_000  # the smallest budget whose findings are looked at one by one
_ODD = 0.05


def require_table(cell: Cell) -> None:
    """An error where the table of the target is not available."""
    making.require_table(read_target(cell.extra["definition"]))


def measure(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """What each budget finds; of larger ones also how natural and how different findings are."""
    reference = shop.reference(cell)
    n_combinations = reference.facts["combinations"] or 1
    tree: dict[str, Any] = dict(reference.facts)
    for budget in cell.extra["budgets"]:
        if budget < n_combinations:  # it does not pay for one row
            continue
        noting: list[_Noting] = []

        def note(method: Method, noting: list[_Noting] = noting) -> Method:
            noting.append(_Noting(method))
            return noting[0]

        of_budget = replace(cell, budget={"max_queries": budget})
        search = search_cell(of_budget, shop, around=note)
        found, ran = search.found, search.run
        tree |= {
            f"found_{budget}": len(found),
            f"queries_{budget}": ran.queries,
            f"seconds_{budget}": round(ran.seconds, 3),
        }
        if len(found) < len(ran.findings):
            tree[f"unconfirmed_{budget}"] = len(ran.findings) - len(found)
        if budget >= _LOOKED_AT:
            for mark in MARKS:
                tree[f"to_{mark}_{budget}"] = noting[0].reached.get(mark)
            tree |= _look_at(cell, shop, found, budget)
    return tree


def _look_at(cell: Cell, shop: Workshop, found: Found, budget: int) -> dict[str, Any]:
    rng = np.random.default_rng([cell.seed, 7])
    tree: dict[str, Any] = {"plausible": None, "distance": None}
    if len(found):
        judge = _judge(shop, cell)
        chosen = rng.permutation(len(found))[:_JUDGED]
        both = np.minimum(judge.p_values(found.rows[chosen]), judge.p_values(found.partner[chosen]))
        tree["plausible"] = round(float((both >= _ODD).mean()), 4)
    if len(found) > 1:
        distance = pairwise_distance(found.rows, shop.problem(cell).schema, rng)
        tree["distance"] = round(distance, 4)
    tree |= shop.reference(cell).hold(found.rows)
    return {f"{name}_{budget}": value for name, value in tree.items()}


def _judge(shop: Workshop, cell: Cell) -> Judge:
    return _judge_of(shop, cell.benchmark, _Hidden(cell))


@dataclass(frozen=True)
class _Hidden:
    """A cell that a cache does not tell apart."""

    cell: Cell = field(compare=False)


@lru_cache(maxsize=2)
def _judge_of(shop: Workshop, benchmark: str, hidden: _Hidden) -> Judge:
    """By the distance to real rows, for every method alike."""
    problem = shop.problem(hidden.cell)
    return judge_by_distance(problem.rows, problem.schema, np.random.default_rng(7))


@dataclass(frozen=True)
class _Noting:
    """A method as it is, beside which somebody notes with how many queries it found what.

    Rows of a batch are told apart by their order: its queries are spread over the rows by what each
    costs where all protected values are asked, and evenly scaled where fewer were.
    """

    method: Method
    reached: dict[int, int] = field(default_factory=dict)
    population: ClassVar[str | None] = None

    @property
    def needs(self) -> frozenset[str]:
        """The method's."""
        return self.method.needs

    @property
    def exhaustive(self) -> bool:
        """The method's."""
        return is_exhaustive(self.method)

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """The method's, batch by batch."""
        known, found, before = KeySet(), 0, session.watch.questions
        for checked in self.method.search(session, rng):
            asked = session.watch.questions
            if found < max(MARKS) and checked.flips.any():
                places = np.flatnonzero(checked.flips)
                apart = distinct(session.schema, checked.rows[places])
                new = ~known.contains(apart.keys[apart.first])
                known.add(apart.keys[apart.first[new]])
                first = np.sort(places[apart.first[new]])
                cost = np.cumsum(_cost(session, checked))
                self._note(found, before + cost[first] / cost[-1] * (asked - before))
                found += len(first)
            before = asked
            yield checked

    def _note(self, found: int, queries: Any) -> None:
        for mark in MARKS:
            if found < mark <= found + len(queries):
                self.reached[mark] = int(np.ceil(queries[mark - found - 1]))


def _cost(session: Session, checked: Checked) -> NDArray[np.float64]:
    """What each row of a batch costs; a key that was asked in the same batch costs nothing."""
    schema, rows = session.schema, checked.rows
    cost = query_cost(schema, rows, distinct_questions(schema, rows)).astype(np.float64)
    return np.where(checked.is_asked, cost, 0.0)

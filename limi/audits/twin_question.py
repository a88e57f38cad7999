"""The twin question as part of an audit: what is refused, what it may cost, and who is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from limi import twins
from limi.audits.problem import Problem
from limi.defaults import DEFAULT_GENERATOR
from limi.search.budget import Budget
from limi.search.session import Session
from limi.search.steadiness import Steadiness
from limi.search.task import Task
from limi.system.watch import Watch
from limi.table.schema import Schema
from limi.twins import Effort, Twins

__all__ = ["TWIN_SHARE", "TwinQuestion", "take_keep"]

TWIN_SHARE = 3  # where there is a search as well, one third of a budget goes to twins


@dataclass(frozen=True)
class TwinQuestion:
    """What to ask twins about."""

    keep: tuple[str, ...] = ()
    generator: str = DEFAULT_GENERATOR

    def check(self, problem: Problem) -> None:
        """Refuse what cannot be asked, before the model is."""
        twins.check_keep(problem.schema, self.keep)
        twins.require_generator(self.generator)
        twins.find_groups(problem.schema, problem.rows)

    def questions(self, problem: Problem, max_queries: int | None) -> int:
        """Questions that it takes, about."""
        n_groups = len(twins.find_groups(problem.schema, problem.rows))
        wanted = Effort().questions(twins.directions(n_groups))
        allowed = _allowed(problem, max_queries)
        return wanted if allowed is None else min(wanted, allowed)

    def ask(
        self,
        problem: Problem,
        task: Task,
        seed: int,
        *,
        watch: Watch,
        max_queries: int | None,
        told: Steadiness,
    ) -> Twins:
        """The answer, within a part of the budget; all of it where nothing else is asked."""
        name, people, _ = problem.people
        budget = Budget(max_queries=_allowed(problem, max_queries))
        share = 1 if problem.blind else TWIN_SHARE
        end = watch.seconds + (watch.until - watch.seconds) / share if watch.limited else np.inf
        with watch.ending(end):
            return twins.measure(
                Session(task, budget, watch=watch),
                people,
                seed,
                keep=self.keep,
                unseen=problem.unseen,
                population=name,
                generator=self.generator,
                told=told,
                on_step=watch.step,
            )


def _allowed(problem: Problem, max_queries: int | None) -> int | None:
    if max_queries is None:
        return None
    return max(1, max_queries // (1 if problem.blind else TWIN_SHARE))


def take_keep(given: Sequence[str] | str, schema: Schema) -> tuple[str, ...]:
    """Names of columns, each alone or several with commas between."""
    wanted = [given] if isinstance(given, str) else list(given)
    return tuple(
        name
        for text in wanted
        for name in ([text] if text in schema.names else [n.strip() for n in text.split(",")])
        if name
    )

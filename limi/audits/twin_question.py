"""The twin question as part of an audit: what is refused, what it may cost, and who is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from limi import twins
from limi.audits.problem import Problem
from limi.defaults import DEFAULT_GENERATOR
from limi.search.budget import Budget, queries_for
from limi.search.session import Session
from limi.search.steadiness import Steadiness
from limi.search.task import Task
from limi.system.watch import Watch
from limi.table.schema import Schema
from limi.twins import Effort, Twins

__all__ = ["RATE_SHARE", "TWIN_SHARE", "TwinQuestion", "take_keep"]

RATE_SHARE = 5  # a budget spends at most one fifth on measuring rates, unless rows were asked for
TWIN_SHARE = (
    3  # of what is left; where there is a search as well, one third of a budget goes to twins
)


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
        rates: int = 0,
    ) -> Twins:
        """The answer, within a part of the budget; all of it where nothing else is asked."""
        name, people, _ = problem.people
        allowed = _allowed(problem, max_queries)
        budget = Budget(max_queries=allowed)
        end = (
            watch.seconds + (watch.until - watch.seconds) / _share(problem)
            if watch.limited
            else np.inf
        )
        with watch.ending(end):
            answers = twins.measure(
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
        return answers if allowed is None else self._tell_budget(problem, answers, allowed, rates)

    def _tell_budget(self, problem: Problem, answers: Twins, allowed: int, rates: int) -> Twins:
        """The answers with a sentence on a budget that was too small for all of them, beside
        rates that took so many questions."""
        n_ways = twins.directions(len(twins.find_groups(problem.schema, problem.rows)))
        wanted = Effort().questions(n_ways)
        if allowed >= wanted:
            return answers

        def budget(questions: int) -> str:
            needed = questions * _share(problem)
            whole = max(queries_for(needed, 1 - 1 / RATE_SHARE), queries_for(needed + rates, 1))
            return f"--max-queries {whole:,}"

        least = twins.least_questions(n_ways)
        if answers.reason and allowed >= least:
            return answers  # it was not the budget of queries
        if answers.reason:
            return replace(
                answers,
                reason=(
                    f"{answers.reason}; they take at least {least:,}, for which {budget(least)} is "
                    f"enough, or {budget(wanted)} for everything that they can show"
                ),
            )
        note = (
            f"twins had {allowed:,} questions, and everything that they can show takes up to "
            f"{wanted:,}; {budget(wanted)} is enough"
        )
        return replace(answers, notes=(*answers.notes, note))


def _share(problem: Problem) -> int:
    """The part of a budget that goes to twins, as one of so many."""
    return 1 if problem.blind else TWIN_SHARE


def _allowed(problem: Problem, max_queries: int | None) -> int | None:
    return None if max_queries is None else max(1, max_queries // _share(problem))


def take_keep(given: Sequence[str] | str, schema: Schema) -> tuple[str, ...]:
    """Names of columns, each alone or several with commas between."""
    wanted = [given] if isinstance(given, str) else list(given)
    return tuple(
        name
        for text in wanted
        for name in ([text] if text in schema.names else [n.strip() for n in text.split(",")])
        if name
    )

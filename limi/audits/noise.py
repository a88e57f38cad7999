"""Runs over a model that answers by chance: the noise floor, and findings with both chances.

A pair that was decided differently once may be noise. So its two sides are asked again and again
(`limi.search.chances`), and what the same row does when it is merely asked again stands beside
every rate.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limi.audits.plan import Plan
from limi.metrics.individual import Rate, rate_of
from limi.metrics.rates import Measured
from limi.metrics.sequential import anytime_interval
from limi.search.chances import ERROR, MOST_TIMES, ask_chances
from limi.search.findings import Found
from limi.system.watch import OutOfTime
from limi.types import Rows, Scores

if TYPE_CHECKING:
    from limi.audits.conduct import Searched

__all__ = ["Floor", "Tested", "measure_floor", "tell_floor", "test_pairs"]

_ROUNDS = 16  # that a pair is asked about, as far as a budget of queries is shared


@dataclass(frozen=True)
class Floor:
    """How often a decision changes when the same row is merely asked again."""

    population: str
    times: int  # that each row was asked again: as often as it has partners
    rate: Rate  # rows with another decision at any of these times
    queries: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "population": self.population,
            "times": self.times,
            **dataclasses.asdict(self.rate),
        }


@dataclass(frozen=True)
class Tested:
    """Pairs that were decided differently in the search, and what asking them again has shown."""

    found: Found  # those whose chances differ, with their chances
    pairs: int
    unasked: int  # for lack of time or queries
    queries: int

    @property
    def note(self) -> str:
        """What the report should say of them."""
        words = (
            f"the model's answers are partly random: of {self.pairs:,} pairs that were decided "
            f"differently in the search, both sides were asked up to {MOST_TIMES} times, and "
            f"{len(self.found):,} of them were shown to have different chances; on average at most "
            f"{100 * ERROR:.0f} % of those are false"
        )
        if self.unasked:
            words += (
                f"; {self.unasked:,} pairs were not asked about, because queries or time ran out"
            )
        return words

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "error": ERROR,
            "most_times": MOST_TIMES,
            "pairs": self.pairs,
            "shown": len(self.found),
            "unasked": self.unasked,
            "queries": self.queries,
        }


def measure_floor(
    plan: Plan, score: Callable[[Rows], Scores], measured: Measured, allowed: int | None
) -> Floor | None:
    """The noise floor of people: they are asked again under their own values, as often as a row
    has partners, because a rate counts who is decided differently under any of them."""
    name = plan.problem.people[0]
    checked = measured.checked.get(name)
    times = len(plan.problem.schema.combinations) - 1
    if checked is None or not len(checked):
        return None
    n = len(checked) if allowed is None else min(len(checked), allowed // times)
    if not n:
        return None
    ask, rule = plan.watch.counted(score), plan.problem.target.rule
    moved = np.zeros(n, dtype=bool)
    with plan.problem.target.anew(1):
        try:
            for _ in range(times):
                moved |= rule.differ(checked.score[:n], ask(checked.rows[:n]))
        except OutOfTime:
            return None
    return Floor(name, times, rate_of(int(moved.sum()), n), n * times)


def tell_floor(floor: Floor | None, rates: Mapping[str, Rate]) -> list[str]:
    """The noise floor beside the rate of the same people, in words."""
    if floor is None or floor.population not in rates:
        return []
    rate, noise = rates[floor.population], floor.rate
    often = "once more" if floor.times == 1 else f"{floor.times} times more"
    return [
        f"of {floor.population} rows {100 * rate.estimate:.1f} % were decided differently under "
        f"another protected value, and {100 * noise.estimate:.1f} % ({100 * noise.low:.1f} to "
        f"{100 * noise.high:.1f} %) when they were asked {often} under their own: that is the "
        "noise floor, which is part of every rate of this run"
    ]


def test_pairs(plan: Plan, searched: Searched) -> Tested:
    """Findings whose two sides have different chances; of as many pairs as are paid for."""
    watch, found = plan.watch, searched.run.findings.all()
    left = plan.queries_left
    n = int(min(len(found), left // (2 * _ROUNDS)))
    some = found[:n]
    score = watch.counted(watch.timed(plan.problem.target.score))
    with plan.problem.target.anew(1):  # the first answer of each is why it is here
        told = ask_chances(
            score,
            some.rows,
            some.partner,
            some.score,
            some.partner_score,
            decision=plan.problem.target.rule,
            max_queries=left,
        )
    sides = [
        np.stack([hits / np.maximum(told.times, 1), *anytime_interval(hits, told.times)])
        for hits in (told.hits, told.partner_hits)
    ]
    chances = np.concatenate([told.times[None], *sides]).T
    kept = dataclasses.replace(some, chances=chances)[told.shown]
    return Tested(kept, len(found), len(found) - int((told.times > 0).sum()), told.queries)

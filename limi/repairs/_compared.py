"""What repairs are compared by: the same rows and people for every model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from limi.audits.problem import Problem
from limi.decisions import favors
from limi.errors import InvalidInput
from limi.generators import Generator
from limi.metrics._populations import check_population, choose_places, draw_people
from limi.metrics.group import differences, tally
from limi.metrics.individual import Rate, rate_of
from limi.models.target import Target
from limi.repairs._figures import Figures, RepairFigure, RepairGroups
from limi.repairs._terms import Terms
from limi.table.schema import Schema
from limi.twins import Groups, find_groups, learn
from limi.types import Mask, Rows, Scores, Truth

__all__ = [
    "COMPARED",
    "Comparison",
    "Moved",
    "add_moved",
    "count_moved",
    "describe",
    "expected_calibration_error",
    "rank_auc",
]

COMPARED = (
    "accuracy",
    "auc",
    "calibration",
    "favorable",
    "real",
    "natural",
    "real_alone",
    "natural_alone",
    "twins",
    "twins_kept",
    "spd",
    "opportunity",
)

_BINS = 10
_WIDE = 1.96
_MOST_QUESTIONS = 10_000
_FEWEST_ROWS = 200
_TWINS = 800
_CARRIED = 200  # of them, asked which column carries what they differ in


@dataclass(frozen=True)
class Moved:
    """Of a group's people, who is decided differently than before."""

    group: str
    people: int
    gained: int  # a favorable decision
    lost: int

    def __add__(self, other: Moved) -> Moved:
        return Moved(
            self.group,
            self.people + other.people,
            self.gained + other.gained,
            self.lost + other.lost,
        )


@dataclass(frozen=True)
class Comparison:
    """The people that every model is asked about."""

    problem: Problem
    privileged: RepairGroups
    groups: Groups | None  # None where they are too small to tell
    real: Rows
    natural: Rows
    twins: tuple[Rows, Rows] | None  # people, and their twins of another group
    no_twins: str = ""
    kept: str = ""  # the column that explains most of what twins differ in; empty where none does
    twins_kept: tuple[Rows, Rows] | None = None  # the same where it may differ between groups
    questions: int = _MOST_QUESTIONS  # to the model inside, for one rate

    @staticmethod
    def make(
        problem: Problem,
        privileged: RepairGroups,
        generator: Generator,
        n: int,
        rng: np.random.Generator,
    ) -> Comparison:
        """Rows of the table, natural people, and twins of some of the table's."""
        schema = problem.schema
        real = problem.rows[choose_places(len(problem.rows), n, rng)]
        natural, _ = draw_people("natural", n, rng, schema, generator)
        try:
            groups = find_groups(schema, problem.rows)
        except InvalidInput as error:
            return Comparison(problem, privileged, None, real, natural, None, str(error))
        twins = _make_twins(problem, groups, real, rng)
        kept = _find_carrier(problem, *twins)
        again = _make_twins(problem, groups, real, rng, keep=[kept]) if kept else None
        return Comparison(
            problem, privileged, groups, real, natural, twins, kept=kept, twins_kept=again
        )

    @cached_property
    def terms(self) -> Terms:
        """What is right, and who gains."""
        return Terms.of(self.problem)

    @property
    def schema(self) -> Schema:
        """Of the problem."""
        return self.problem.schema

    @property
    def has_rules(self) -> bool:
        """May a partner be another row because of the rules, so that there are two questions?"""
        return self.schema.enforcer.binds_partners

    def figures(
        self, target: Target, rows: Rows, truth: Truth, asked: int, scores: Scores
    ) -> Figures:
        """A model's figures, on rows with known labels and scores, and on the people above.

        `asked` is how many questions an answer takes: fewer people are asked where it is many.
        """
        if self.terms.is_sided:
            found = self._favorable_figures(rows, scores, truth)
        else:
            found = self.terms.figures(self.schema, rows, scores, truth)
        found["twins"] = self._differ_from_twins(target, self.twins, asked)
        found["twins_kept"] = self._differ_from_twins(target, self.twins_kept, asked)
        for name in ("real", "natural"):
            people: Rows = getattr(self, name)
            found[name] = self._flips(target, self.schema, people, asked)
            found[f"{name}_alone"] = (
                self._flips(target, self.schema.unruled, people, asked)
                if self.has_rules
                else RepairFigure(
                    None, reason="nothing goes along with it, so it is the same question"
                )
            )
        return {name: found[name] for name in COMPARED} if self.terms.is_sided else found

    def _favorable_figures(self, rows: Rows, scores: Scores, truth: Truth) -> Figures:
        decided = favors(scores)
        inside, outside = self.privileged.split(self.schema, rows)
        gaps = differences(
            tally(decided, truth, inside),
            tally(decided, truth, outside),
            names=(f"the group {self.privileged.words}", "the group of all others"),
        )
        spd, opportunity = gaps["parity_gap"], gaps["equal_opportunity_difference"]
        return {
            "accuracy": _share(decided == (truth == 1)),
            "auc": rank_auc(scores, truth),
            "calibration": RepairFigure(expected_calibration_error(scores, truth)),
            "favorable": _share(decided),
            "spd": RepairFigure(spd.value, spd.low, spd.high, reason=spd.reason),
            "opportunity": RepairFigure(
                None if opportunity.value is None else abs(opportunity.value),
                reason=opportunity.reason,
            ),
        }

    def _flips(self, target: Target, schema: Schema, people: Rows, asked: int) -> RepairFigure:
        if not len(people):
            return RepairFigure(None, reason="hardly any of them keep the rules of the table")
        some = people[: self._affordable(asked)]
        return _figure(check_population(target.score, schema, some, self.terms.rule)[1])

    def _affordable(self, asked: int) -> int:
        """How many people are asked about, where an answer takes so many questions."""
        return max(_FEWEST_ROWS, self.questions // (len(self.schema.combinations) * asked))

    def _differ_from_twins(
        self, target: Target, pairs: tuple[Rows, Rows] | None, asked: int
    ) -> RepairFigure:
        if pairs is None:
            return RepairFigure(None, reason=self.no_twins or "no single column explains any of it")
        people, twins = (side[: self._affordable(asked)] for side in pairs)
        return _share(self.terms.rule.differ(target.score(people), target.score(twins)))

    def moved(self, rows: Rows, before: Scores, after: Scores) -> list[Moved]:
        """Who gains and who loses by other answers, by group (`Terms.compare`)."""
        return count_moved(
            self.terms, self.schema, self.groups, self.privileged, rows, before, after
        )


def count_moved(
    terms: Terms,
    schema: Schema,
    groups: Groups | None,
    privileged: RepairGroups,
    rows: Rows,
    before: Scores,
    after: Scores,
) -> list[Moved]:
    """Who gains and who loses by other answers; without groups the privileged against others."""
    gained, lost = terms.compare(before, after)
    if groups is None:
        inside, outside = privileged.split(schema, rows)
        parts = {privileged.words or "everybody": inside, "all others": outside}
        parts = {name: mine for name, mine in parts.items() if mine.any()}
    else:
        own = groups.of(rows)
        parts = {name: own == number for number, name in enumerate(groups.names)}
    return [
        Moved(name, int(mine.sum()), int((mine & gained).sum()), int((mine & lost).sum()))
        for name, mine in parts.items()
    ]


def _find_carrier(problem: Problem, people: Rows, twins: Rows) -> str:
    """The column through which most people are decided differently: their own cell, put back into
    the twin, undoes most changes of the model as it is; empty where none undoes any."""
    schema, target = problem.schema, problem.target
    people, twins = people[:_CARRIED], twins[:_CARRIED]
    moving = set(schema.moving_index.tolist())
    free = [place for place in range(len(target.shown.schema)) if place not in moving]
    if not len(people) or not free:
        return ""
    mixed = np.repeat(twins[None], len(free), axis=0)
    for number, place in enumerate(free):
        mixed[number, :, place] = people[:, place]
    own = target.score(people)
    changed = target.rule.differ(own, target.score(twins)).sum()
    asked = target.score(mixed.reshape(-1, twins.shape[1])).reshape(len(free), -1)
    left = target.rule.differ(own[None], asked).sum(axis=1)
    best = int(np.argmin(left))
    return schema.names[free[best]] if left[best] < changed else ""


def _make_twins(
    problem: Problem,
    groups: Groups,
    people: Rows,
    rng: np.random.Generator,
    keep: Sequence[str] = (),
) -> tuple[Rows, Rows]:
    """Some people and a twin of each in another group, drawn at random."""
    maker = learn(problem.rows, problem.schema, rng, groups=groups, keep=keep)
    own = groups.of(people)
    some = people[own >= 0][:_TWINS]
    own = groups.of(some)
    goals = (own + rng.integers(1, len(groups), size=len(some))) % len(groups)
    twins = maker.make(some, goals, rng)
    found = maker.found(twins, goals)
    return some[found], twins[found]


def rank_auc(scores: Scores, truth: Truth) -> RepairFigure:
    """The area under the ROC curve, with Hanley and McNeil's interval."""
    from scipy.stats import rankdata

    wanted = truth == 1
    n_wanted, n_other = int(wanted.sum()), int((~wanted).sum())
    if not n_wanted or not n_other:
        return RepairFigure(None, reason="the rows hold only one label")
    ranks = rankdata(scores)[wanted].sum()
    area = float((ranks - n_wanted * (n_wanted + 1) / 2) / (n_wanted * n_other))
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (n_wanted - 1) * (one - area**2) + (n_other - 1) * (two - area**2)
    half = _WIDE * math.sqrt(max(0.0, spread) / (n_wanted * n_other))
    return RepairFigure(area, max(0.0, area - half), min(1.0, area + half))


def expected_calibration_error(scores: Scores, truth: Truth, bins: int = _BINS) -> float:
    """How far scores and shares lie apart, over bins of equally many people.

    >>> expected_calibration_error(np.array([0.5, 0.5]), np.array([0, 1]), bins=1)
    0.0
    """
    order = np.argsort(scores, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    gaps = [len(part) * abs(scores[part].mean() - (truth[part] == 1).mean()) for part in parts]
    return float(np.sum(gaps) / len(scores))


def _share(hits: Mask) -> RepairFigure:
    return _figure(rate_of(int(hits.sum()), len(hits)))


def _figure(rate: Rate) -> RepairFigure:
    if not rate.n:
        return RepairFigure(None, reason="no one could be asked about")
    return RepairFigure(rate.estimate, rate.low, rate.high)


def add_moved(each: Sequence[Sequence[Moved]]) -> tuple[Moved, ...]:
    """The counts of several trials together."""
    total: dict[str, Moved] = {}
    for moved in each:
        for one in moved:
            total[one.group] = total[one.group] + one if one.group in total else one
    return tuple(total.values())


def describe(moved: Sequence[Moved]) -> list[dict[str, Any]]:
    """For JSON."""
    return [vars(one) for one in moved]

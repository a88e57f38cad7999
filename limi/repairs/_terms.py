"""What a repair is measured by, for decisions of every kind: which answers are right, what is lost,
whose answer changed, and how groups fare.

Accuracy is the measure of favorable decisions and of classes. A number is right by degrees: its
error counts as a part of the error that always saying the median would make, so that one point of
what may be lost is a hundredth of that, and can be said in the target's own unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.audits.problem import Problem
from limi.decisions import AS_DECIDED, Classes, Rule, favors
from limi.metrics.individual import rate_of
from limi.metrics.outcomes import measure_gaps
from limi.repairs._figures import Figures, RepairFigure
from limi.table.schema import Schema
from limi.types import Index, Mask, Rows, Scores, Truth

__all__ = ["Terms"]

_WIDE = 1.96


@dataclass(frozen=True)
class Terms:
    """In what terms models are compared."""

    rule: Rule = AS_DECIDED
    scale: float = 1.0  # of numbers: the mean error of always saying the median

    @staticmethod
    def of(problem: Problem) -> Terms:
        """Those of a problem whose target column is known."""
        rule, truth = problem.target.rule, problem.truth
        if rule.kind != "number" or truth is None:
            return Terms(rule)
        known = truth[~np.isnan(truth)]
        return Terms(rule, float(np.abs(known - np.median(known)).mean()) or 1.0)

    @property
    def is_sided(self) -> bool:
        """Are decisions favorable or not?"""
        return self.rule.kind == "favorable"

    def find_known(self, truth: Truth) -> Index:
        """Rows whose truth is known."""
        return np.flatnonzero(truth >= 0 if self.is_sided else ~np.isnan(truth))

    def credit(self, answers: Scores, truth: Truth) -> NDArray[np.float64]:
        """What each answer earns: 1 where it is right and 0 where it is wrong; a number 1 less its
        error, which counts 1 where it is as large as that of the median is on average."""
        if self.is_sided:
            return np.asarray(favors(answers) == (truth == 1), dtype=np.float64)
        if isinstance(self.rule, Classes):
            return np.asarray(self.rule.place(answers) == truth, dtype=np.float64)
        return 1.0 - np.abs(answers - truth) / self.scale

    def compare(self, before: Scores, after: Scores) -> tuple[Mask, Mask]:
        """Whose decision became favorable and whose is no longer; of other kinds, who gets a better
        class or a higher number and who gets less. Classes without an order only change."""
        if self.is_sided:
            had, has = favors(before), favors(after)
            return has & ~had, had & ~has
        moved = np.asarray(self.rule.stands(after, before))
        if isinstance(self.rule, Classes) and not self.rule.ordered:
            return moved != 0, np.zeros(len(moved), dtype=bool)
        return moved > 0, moved < 0

    def figures(self, schema: Schema, rows: Rows, answers: Scores, truth: Truth) -> Figures:
        """How right classes or numbers are, and how groups fare, by the names of Fairlearn."""
        gaps = measure_gaps(schema, self.rule, rows, answers, np.asarray(truth, dtype=np.float64))
        found: Figures = {}
        if self.rule.kind == "number":
            found["mean_absolute_error"] = _mean(np.abs(answers - truth))
        else:
            right = rate_of(int(self.credit(answers, truth).sum()), len(truth))
            found["accuracy"] = RepairFigure(right.estimate, right.low, right.high)
        unit = "number" if self.rule.kind == "number" else ""
        for name, gap in gaps.items():
            found[name] = RepairFigure(gap, unit=unit)
        return found

    # -- words --------------------------------------------------------------------------

    def tell_more(self, value: float) -> str:
        """By how much more is lost than by another."""
        if self.rule.kind == "number":
            return f"errs by {value * self.scale:.4g} more than"
        return f"loses {100 * value:.2f} points more accuracy than"

    def tell_excess(self, value: float, on: str, most: float) -> str:
        """A loss on some rows that is more than is allowed."""
        if self.rule.kind == "number":
            return (
                f"the mean error on {on} rows rises by {value * self.scale:.4g}, more than the "
                f"{most * self.scale:.4g} allowed ({100 * most:g} % of the error of always saying "
                "the median)"
            )
        return (
            f"accuracy on {on} rows falls by {100 * value:.2f} points, more than the "
            f"{100 * most:.2f} allowed"
        )

    def tell_too_much(self, value: float, most: float) -> str:
        """The same in short."""
        if self.rule.kind == "number":
            return (
                f"errs by {value * self.scale:.4g} more, where {most * self.scale:.4g} is allowed"
            )
        return f"loses {100 * value:.2f} points of accuracy, more than the {100 * most:.2f} allowed"

    def tell_at_most(self, high: float, most: float) -> str:
        """Of a loss that is allowed, what it may be for all that is known."""
        if self.rule.kind == "number":
            return (
                f"it may err by up to {high * self.scale:.4g} more, where {most * self.scale:.4g} "
                "is allowed"
            )
        return (
            f"it may lose up to {100 * high:.2f} points of accuracy, where {100 * most:.2f} are "
            "allowed"
        )

    @property
    def measure(self) -> str:
        """What is lost, in a word."""
        return "error" if self.rule.kind == "number" else "accuracy"


def _mean(values: NDArray[np.float64]) -> RepairFigure:
    """A mean in the unit of the target, with its 95 % interval."""
    if not len(values):
        return RepairFigure(None, reason="no rows were held out")
    mean = float(values.mean())
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    half = _WIDE * spread / math.sqrt(len(values))
    return RepairFigure(mean, max(0.0, mean - half), mean + half, unit="number")

"""How often decisions flip in a region that somebody builds: a rate that narrows while one looks.

Natural people are drawn again for every look, those outside the region are passed over, and the
others are put to the model under every protected value. The interval holds at any time, so one may
stop whenever one likes. Who looks at many regions sees something striking by chance; so the k-th
look of a session is held to the error LEVEL / (k (k + 1)), and all looks together, however many
they become, to LEVEL. What the people would get as each group
is a second family of intervals, which share the same errors among themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Rule, favors
from limi.explore.asking import Asker, Spent
from limi.explore.jobs import Cancelled, Job
from limi.metrics._rate import Rate
from limi.metrics.regions import LEVEL, Region
from limi.metrics.sequential import anytime_mean, anytime_rate
from limi.search.check import Checked, check_rows
from limi.table.schema import Schema
from limi.types import Rows

__all__ = ["Look", "Share", "confidence_of_look", "error_of_look", "look_at"]

_AT_ONCE = 256  # people of one step, at first
_MOST_AT_ONCE = 8_192
_FRUITLESS = 400_000  # natural people drawn without one in the region, after which none is expected
_NARROW = 0.01  # of an interval: nobody asks for more


@dataclass(frozen=True)
class Share:
    """The people of a region as if all had one protected value."""

    label: str
    value: float  # a share, or the mean of numbers
    low: float  # the ends hold at any time too; infinite where numbers are too few to tell
    high: float

    @property
    def is_known(self) -> bool:
        """Were there enough people for an interval?"""
        return math.isfinite(self.low)


@dataclass(frozen=True)
class Look:
    """What is known of a region by now."""

    region: Region
    number: int  # which look of the session it is
    confidence: float
    rate: Rate
    drawn: int  # natural people that were drawn
    alone: int  # people of the region without a partner that could exist
    average: Rate | None
    shares: tuple[Share, ...]
    share_confidence: float  # of each share
    verdict: str  # "more often", "less often", "known", "" while it is open, or "rare"
    queries: int

    @property
    def share(self) -> float:
        """How many of the natural people lie in the region."""
        return (self.rate.n + self.alone) / self.drawn if self.drawn else 0.0


def error_of_look(number: int) -> float:
    """The error that the k-th look of a session may have.

    >>> error_of_look(1), round(sum(map(error_of_look, range(1, 10_000))), 4)
    (0.025, 0.05)
    """
    return LEVEL / (number * (number + 1))


def confidence_of_look(number: int) -> float:
    """How sure the rate of the k-th look is.

    >>> confidence_of_look(1)
    0.975
    """
    return 1 - error_of_look(number)


def look_at(
    region: Region,
    number: int,
    schema: Schema,
    draw: Callable[[int], Rows],
    asker: Asker,
    *,
    average: Rate | None = None,
    job: Job | None = None,
    most: int = 200_000,
) -> Look:
    """Draw people of a region and ask about them, until it is decided, stopped, or enough.

    `draw` gives so many further natural people. What is known is told to the job after each step.
    """
    counts = _Counts(schema, asker.rule, error_of_look(number))
    drawn, fruitless, step = 0, 0, _AT_ONCE
    confidence = confidence_of_look(number)
    look = None
    while counts.n < most:
        if job is not None and job.is_stopped:
            break
        people = draw(_wanted(step, counts.n + counts.alone, drawn))
        inside = people[region.mask(people)][: most - counts.n]
        fruitless = 0 if len(inside) else fruitless + len(people)
        if len(inside):
            try:
                checked = _check(asker, schema, inside, job)
            except Cancelled:  # what is known by then stands
                break
            except Spent:
                if look is None:
                    raise
                break
            counts.add(checked)
        drawn += len(people)
        rate = anytime_rate(counts.hits, counts.n, confidence)
        verdict = "rare" if fruitless > _FRUITLESS else _judge(rate, average)
        look = Look(
            region,
            number,
            confidence,
            rate,
            drawn,
            counts.alone,
            average,
            tuple(counts.shares()),
            counts.confidence,
            verdict,
            counts.queries,
        )
        if job is not None:
            job.tell(look)
        if verdict:
            break
        step = min(2 * step, _MOST_AT_ONCE)
    if look is not None:
        return look
    nobody = anytime_rate(0, 0)
    return Look(region, number, confidence, nobody, 0, 0, average, (), counts.confidence, "", 0)


def _wanted(step: int, inside: int, drawn: int) -> int:
    """How many people to draw so that about so many lie in the region."""
    share = (inside + 1) / (drawn + 1)
    return int(np.clip(step / share, step, 40_000))


def _check(asker: Asker, schema: Schema, rows: Rows, job: Job | None) -> Checked:
    return check_rows(
        lambda asked: asker.score(asked, job),
        schema,
        rows,
        keep_scores=True,
        decision=asker.rule,
    )


def _judge(rate: Rate, average: Rate | None) -> str:
    """What the interval says of the region beside the average of all people."""
    if average is not None and rate.n:
        if rate.low > average.high:
            return "more often"
        if rate.high < average.low:
            return "less often"
    return "known" if rate.n and rate.high - rate.low < _NARROW else ""


class _Counts:
    """Flips, and decisions under every combination."""

    def __init__(self, schema: Schema, rule: Rule, error: float) -> None:
        self._schema, self._rule = schema, rule
        self.hits = self.n = self.alone = self.queries = 0
        k = len(schema.combinations)
        self.confidence = 1 - error / k  # of each combination, so that all together keep the error
        self._sum, self._squares, self._known = np.zeros(k), np.zeros(k), np.zeros(k, dtype=int)

    def add(self, checked: Checked) -> None:
        """More people."""
        paired = checked.is_paired
        self.hits += int(checked.flips[paired].sum())
        self.n += int(paired.sum())
        self.alone += int((~paired).sum())
        self.queries += checked.queries
        scores = checked.scores[paired]
        figures = self._figures(scores)
        known = ~np.isnan(scores)
        self._known += known.sum(axis=0)
        self._sum += np.where(known, figures, 0.0).sum(axis=0)
        self._squares += np.where(known, figures**2, 0.0).sum(axis=0)

    def _figures(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """What is averaged: favorable or not, the wanted classes or not, or the number itself."""
        if self._rule.kind == "number":
            return scores
        return np.asarray(favors(self._rule.as_score(scores)), dtype=np.float64)

    def shares(self) -> Iterator[Share]:
        """By combination of protected values, with an interval."""
        schema = self._schema
        for k, cells in enumerate(schema.combinations):
            n = int(self._known[k])
            if n < 2:
                continue
            label = ", ".join(
                f"{name} {schema[name].show(float(cell))}"
                for name, cell in zip(schema.protected, cells, strict=True)
            )
            mean = self._sum[k] / n
            if self._rule.kind == "number":
                variance = max(self._squares[k] / n - mean**2, 0.0) * n / (n - 1)
                low, high = map(float, anytime_mean(mean, variance, n, self.confidence))
            else:
                rate = anytime_rate(round(self._sum[k]), n, self.confidence)
                low, high = rate.low, rate.high
            yield Share(label, mean, low, high)

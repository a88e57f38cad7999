"""Does a repair hold for people that nobody repaired it with?

Findings that a model was trained on prove nothing. So the original and the repaired model are
searched again, with a method, a generator and a seed that the run did not use, and asked about the
same fresh people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi import generators, methods
from limi.audits.problem import Problem
from limi.defaults import DEFAULT_GENERATOR
from limi.generators import Generator
from limi.metrics.individual import rate_of
from limi.metrics.what_if import mcnemar
from limi.models.target import Target
from limi.repairs._figures import Figures
from limi.repairs._terms import Terms
from limi.search.budget import Budget
from limi.search.engine import run
from limi.search.task import Task
from limi.streams import Stream
from limi.types import Index, Mask

__all__ = [
    "FRESH_SEED",
    "REMOVED",
    "Check",
    "Fresh",
    "Loss",
    "Verdict",
    "compare_searches",
    "fit_again",
    "fresh_generator",
    "fresh_method",
    "judge",
    "kind_of",
    "search_one",
    "words_of_search",
]

FRESH_SEED = 1_000_003  # added to the run's, so that no fresh search repeats it
_ANEW = 7  # behind the stream of generators: what a run itself never fits with

_WIDE = 1.96  # standard errors to either side, for 95 %
_LEVEL = 0.05  # an error rate under which a difference counts as one
REMOVED = 0.001  # flips are called removed where the interval of fresh people lies below this share
_METHODS = ("guided", "limi", "aequitas")
AS_USUAL = Terms()

Credit: TypeAlias = Mask | NDArray[np.float64]


@dataclass(frozen=True)
class Check:
    """Flips among the same number of rows, before and after."""

    name: str
    words: str
    rows: int
    before: int
    after: int
    rows_after: int = 0  # where a search ended sooner
    gone: int | None = None  # of the same rows, those that flipped before and do no longer
    new: int = 0  # and those that flip since

    @property
    def shares(self) -> tuple[float, float]:
        """Flips a row, before and after."""
        return self.before / max(1, self.rows), self.after / max(1, self.rows_after or self.rows)

    @property
    def reduction(self) -> float | None:
        """By what share of them flips became rarer; None where there were none."""
        before, after = self.shares
        return None if not before else 1 - after / before

    @cached_property
    def p_value(self) -> float:
        """Of equal shares, two-sided: the sign test (McNemar's, exact) where both models were asked
        the same rows, else Fisher's exact test.

        Rows of a search depend on each other, so there it is a rough measure.
        """
        if self.gone is not None:
            return float(mcnemar(self.gone, self.new))
        from scipy.stats import fisher_exact  # late, because it takes a second

        rows_after = self.rows_after or self.rows
        table = [
            [self.before, max(0, self.rows - self.before)],
            [self.after, max(0, rows_after - self.after)],
        ]
        return float(fisher_exact(table)[1])

    @property
    def better(self) -> bool:
        """Rarer afterwards, beyond chance."""
        return self.shares[1] < self.shares[0] and self.p_value < _LEVEL

    @property
    def worse(self) -> bool:
        """More common afterwards, beyond chance."""
        return self.shares[1] > self.shares[0] and self.p_value < _LEVEL

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        reduction = self.reduction
        return {
            "name": self.name,
            "words": self.words,
            "rows": self.rows,
            "rows_after": self.rows_after or self.rows,
            "before": self.before,
            "after": self.after,
            "reduction": None if reduction is None else round(reduction, 4),
            "p_value": float(f"{self.p_value:.3g}"),
            "test": "Fisher" if self.gone is None else "sign",
        }


@dataclass(frozen=True)
class Loss:
    """Accuracy lost, row by row, with its 95 % interval."""

    value: float
    low: float
    high: float
    on: str  # held-out or training rows

    @staticmethod
    def of(before: Credit, after: Credit, on: str, places: Index | None = None) -> Loss:
        """From which decisions were right before and which are after, on the same rows, or how
        right they are (`limi.repairs._terms.Terms.credit`).

        `places` says which row of the table each is: one that several seeds held out counts as one
        row of several answers, not as several rows.
        """
        lost = before.astype(np.float64) - after
        mean = float(lost.mean())
        rows = np.arange(len(lost)) if places is None else places
        error = math.sqrt((np.bincount(rows, lost - mean) ** 2).sum()) / len(lost)
        return Loss(mean, mean - _WIDE * error, mean + _WIDE * error, on)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        return {name: round(number, 6) for name, number in numbers.items()} | {"on": self.on}


@dataclass(frozen=True)
class Verdict:
    """What became of the flips, with the reason.

    `word` is `removed`, `reduced`, `unchanged`, `worse`, `too costly` or `inconclusive`.
    """

    word: str
    reason: str
    reduction: float | None = None  # by what share flips became rarer, where they were reduced
    flips: str = ""  # the word for the flips alone, whatever the accuracy; the same where empty

    @property
    def helps(self) -> bool:
        """Are flips rarer, at whatever cost?"""
        return (self.flips or self.word) in ("removed", "reduced")

    @property
    def removes(self) -> bool:
        """Are there none left, at whatever cost?"""
        return (self.flips or self.word) == "removed"

    def __str__(self) -> str:
        by = "" if self.reduction is None else f" by {_reduce(self.reduction)}"
        return f"{self.word}{by}: {self.reason}"


def _reduce(share: float) -> str:
    return f"{math.floor(100 * share)} %"  # what is nearly gone is not gone


@dataclass(frozen=True)
class Fresh:
    """With which means, different from the run's, both models are checked."""

    method: str
    generator: str
    seed: int
    other_generator: bool  # surely another than the run's

    @staticmethod
    def beside(method: str, generator: str | None, seed: int, *, light: bool = False) -> Fresh:
        """Means that a run did not use, as far as what is installed allows; with `light` the
        generator is the usual one, fitted again."""
        used = kind_of(generator)
        chosen = DEFAULT_GENERATOR if light else fresh_generator(used)
        return Fresh(fresh_method(method), chosen, seed + FRESH_SEED, used != "" and chosen != used)


def fresh_method(used: str) -> str:
    """A search method that the run did not use."""
    return next(name for name in _METHODS if name not in used.split("+"))


def fresh_generator(used: str | None) -> str:
    """A generator that the run did not use, as far as what is installed allows."""
    others = [name for name in quick_generators() if name != used]
    return others[0] if others else DEFAULT_GENERATOR


def quick_generators() -> list[str]:
    """Generators that can be fitted here in seconds; the usual one last, for most runs use it."""
    able = []
    for name in generators.names():
        offers = generators.offers(name)
        if offers.quick and (offers.library is None or find_spec(offers.library)):
            able.append(name)
    return sorted(able, key=lambda name: name == DEFAULT_GENERATOR)


def kind_of(generator: str | None) -> str | None:
    """The kind of a run's generator, which is its name or the file it was saved in; empty where
    that file is gone."""
    if generator is None or generator in generators.names():
        return generator
    if Path(generator).is_file():
        return generators.load(generator).kind
    return ""


def fit_again(name: str, problem: Problem, seed: int) -> Generator:
    """The generator of a name, from a stream that no run uses."""
    rng = Stream.GENERATOR.rng(seed, _ANEW)
    return generators.fit(name, problem.rows, problem.schema, rng)


def search_one(
    problem: Problem,
    target: Target,
    *,
    method: str,
    generator: Generator,
    rows: int,
    seed: int,
    settings: Mapping[str, Any] | None = None,
) -> tuple[int, int]:
    """Findings of a fresh search of one model, and rows that it checked."""
    rule = problem.target.rule
    task = Task(problem.schema, target.score, problem.rows, generator=generator, decision=rule)
    ran = run(methods.parse(method, settings or {}), task, Budget(max_rows=rows), seed)
    return len(ran.findings), ran.findings.rows_checked


def words_of_search(method: str, generator: Generator, seed: int) -> str:
    """What a fresh search did, for people."""
    return f"findings by {method} with {generator.kind}, seed {seed}"


def compare_searches(before: tuple[int, int], after: tuple[int, int], words: str) -> Check:
    """Two searches, each its findings and its rows."""
    return Check("search", words, before[1], before[0], after[0], rows_after=after[1])


def judge(
    checks: list[Check],
    loss: Loss,
    before: Figures,
    after: Figures,
    *,
    max_accuracy_loss: float,
    terms: Terms = AS_USUAL,
) -> Verdict:
    """The verdict on a repair from fresh checks and figures over seeds.

    Fresh people, whom both models were asked for, say by how much flips became rarer; every other
    check and the seeds have to agree.
    """
    flips = _flips(checks, before, after)
    if loss.value <= max_accuracy_loss or flips.word in ("worse", "unchanged"):
        return flips
    told = terms.tell_excess(loss.value, loss.on, max_accuracy_loss)
    if loss.low > max_accuracy_loss:
        return Verdict("too costly", f"{told} (flips {flips})", flips=flips.word)
    why = f"{told}, though with so few rows that may be chance"
    return Verdict("inconclusive", why, flips=flips.word)


def _flips(checks: list[Check], before: Figures, after: Figures) -> Verdict:
    worse = [check for check in checks if check.worse]
    better = [check for check in checks if check.better]
    if worse:
        return Verdict("worse", _tell(worse[0]))
    if not any(check.before for check in checks):
        return Verdict("inconclusive", "the fresh checks found no flips before, so none can vanish")
    if not better:
        return Verdict("unchanged", f"flips are not rarer: {'; '.join(map(_tell, checks))}")
    if len(better) < len(checks):
        rest = [check for check in checks if not check.better]
        return Verdict("inconclusive", f"not every fresh check shows fewer flips: {_tell(rest[0])}")
    rarer = [
        name
        for name in ("real", "natural")
        if (before[name].value or 0.0) > (after[name].value or 0.0)
    ]
    if len(rarer) < 2:
        return Verdict(
            "inconclusive",
            "the kept model flips less in fresh checks, but models trained in the same way do not "
            "on average over the seeds",
        )
    people = next((check for check in checks if check.gone is not None), checks[-1])
    most = rate_of(people.after, people.rows_after or people.rows).high
    told = "; ".join(map(_tell, checks))
    if most < REMOVED:
        return Verdict(
            "removed",
            f"at most {100 * most:.2g} % of {people.words} flip (95 % interval; "
            f"under {100 * REMOVED:g} % counts as removed); {told}",
        )
    return Verdict("reduced", told, people.reduction)


def _tell(check: Check) -> str:
    before, after = check.shares
    return f"{check.words}: {100 * before:.2f} % before, {100 * after:.2f} % after"

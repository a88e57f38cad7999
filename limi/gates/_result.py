"""What a gate answers: for each rule and for all of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from limi.audits.summary import Example
from limi.decisions import Kind
from limi.gates._measures import Estimate, RegionRate
from limi.gates._rules import Rule

__all__ = ["FORMAT", "Answer", "ColumnRate", "Gate", "Judged", "judge"]

FORMAT = 1


class Answer(StrEnum):
    """What is known of a rule, or of a gate."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Judged:
    """A rule and what became of it."""

    rule: Rule
    answer: Answer
    estimate: Estimate
    queries: int  # of the model, until it was decided; rules share the rows of a population
    regions: tuple[RegionRate, ...] = ()  # of a rule on the worst of them

    @property
    def broken_in(self) -> tuple[RegionRate, ...]:
        """The regions in which the rule is broken beyond doubt."""
        return tuple(region for region in self.regions if region.low > self.rule.limit)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        rule, known = self.rule, self.estimate
        return {
            "name": rule.name,
            "rule": rule.text,
            "measure": rule.measure,
            "population": rule.population,
            "column": rule.column,
            "against_baseline": rule.against_baseline,
            "limit": rule.limit,
            "answer": str(self.answer),
            "value": known.value,
            "low": known.low,
            "high": known.high,
            "rows": known.n,
            "hits": known.hits,
            "queries": self.queries,
            "note": known.note,
            "regions": [region._asdict() for region in self.regions],
        }


@dataclass(frozen=True)
class ColumnRate:
    """How many rows flip if one protected column changes and all else is as it is."""

    column: str
    population: str
    flips: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The answer of a gate and what it rests on."""

    answer: Answer
    rules: tuple[Judged, ...]
    stop: str  # "decided", or what ran out: "queries", "seconds", "rows", "baseline"
    error: float  # chance that any answer is wrong, at most
    queries: int
    max_queries: int | None
    seed: int
    table: str
    model: str
    protected: dict[str, list[str]]
    generator: str | None
    baseline: str | None
    columns: tuple[ColumnRate, ...]
    examples: tuple[Example, ...]
    notes: tuple[str, ...]
    hashes: dict[str, str | None]
    versions: dict[str, str]
    command: str = ""
    decision: str = "favorable"  # what counted as one
    kind: Kind = "favorable"
    classes: tuple[str, ...] = ()  # where decisions are classes
    hidden: tuple[str, ...] = ()  # columns whose cells are shown nowhere

    @property
    def broken(self) -> tuple[Judged, ...]:
        """The rules that are broken."""
        return tuple(judged for judged in self.rules if judged.answer == Answer.FAIL)

    @property
    def passed(self) -> bool:
        """Are all rules kept?"""
        return self.answer == Answer.PASS

    @property
    def failed(self) -> bool:
        """Is a rule broken?"""
        return self.answer == Answer.FAIL

    @property
    def inconclusive(self) -> bool:
        """Was the budget spent before the rules were decided?"""
        return self.answer == Answer.INCONCLUSIVE

    def __bool__(self) -> bool:
        return self.passed

    def as_dict(self) -> dict[str, Any]:
        """For JSON; what is not known is null."""
        plain = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("rules", "columns", "examples")
        }
        return {
            "format": FORMAT,
            **plain,
            "answer": str(self.answer),
            "rules": [judged.as_dict() for judged in self.rules],
            "columns": [dataclasses.asdict(column) for column in self.columns],
            "examples": [dataclasses.asdict(example) for example in self.examples],
        }


def judge(rule: Rule, known: Estimate) -> Answer:
    """Pass or fail where the limits lie wholly on one side of the rule's, else inconclusive."""
    if rule.at_least:
        if known.low >= rule.limit:
            return Answer.PASS
        return Answer.FAIL if known.high < rule.limit else Answer.INCONCLUSIVE
    if known.high <= rule.limit:
        return Answer.PASS
    return Answer.FAIL if known.low > rule.limit else Answer.INCONCLUSIVE

"""One audit with all its settings: what it is made of, what it may ask and what that will cost."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from limi import methods, metrics
from limi.audits.early_check import EarlyCheck
from limi.audits.estimate import Estimate
from limi.audits.generator_source import GeneratorSource
from limi.audits.labels import in_words
from limi.audits.problem import Problem, protected_values
from limi.audits.run_folder import FORMAT, digest, versions
from limi.audits.sending import exchange_of
from limi.audits.twin_question import RATE_SHARE, TwinQuestion
from limi.decisions import Classes
from limi.metrics.rates import measurable_rows
from limi.models import gradients
from limi.models.target import CONTRACT_ROWS, Target
from limi.search import steadiness
from limi.search.budget import Budget, first_look
from limi.search.engine import check
from limi.search.method import most_rows
from limi.search.spread import Spread
from limi.search.steadiness import Steadiness
from limi.search.task import Task
from limi.system.watch import Watch
from limi.types import Rows, Scores

__all__ = ["CONTRACT_SHARE", "MOST_TO_JUDGE", "RATE_SHARE", "Plan"]

CONTRACT_SHARE = 20  # of the seconds: a first look at the model takes a twentieth at most
MOST_TO_JUDGE = 20_000  # rows of the table that findings are held against
_EXPECTED_FLIPS = 20  # rows checked for each finding, as far as an estimate goes
_LATE = "no time was left for these metrics: "


@dataclass(frozen=True)
class Plan:
    """One audit with all its settings."""

    problem: Problem
    asked: Target  # the target on the device of the search; findings are checked again as given
    method: methods.Method
    budget: Budget
    seed: int
    rate_rows: int
    max_batch: int
    command: str
    source: GeneratorSource
    watch: Watch
    on_plan: Callable[[Estimate], None]
    origin: str | None = None  # the way from the run folder to where relative paths start
    twin: TwinQuestion | None = None  # None where nobody asks about twins
    noisy: bool = False  # does the user say that the model answers by chance?
    label_names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # ^ what labels mean, for reports
    rates_first: bool = False  # were rows of rates asked for? Then the search gets what they leave
    volume: int | None = None  # people per year whom the model decides for
    spread: Spread | None = None  # over workers, where there are some
    early: EarlyCheck | None = None  # where the search leaves the processor to the second check

    def call(self, label: Any) -> str:
        """A label as people say it, or several that are joined by words."""
        text = str(label)
        if text in self.label_names or not self.problem.wanted:
            return self.label_names.get(text, text)
        parts = [self.label_names.get(str(one), str(one)) for one in self.problem.wanted]
        return str(in_words(parts)) if text == str(in_words(self.problem.wanted)) else text

    @property
    def queries(self) -> int:
        """Rows that the model was given so far; of a model behind an address, the different ones,
        because none is sent twice."""
        exchange = exchange_of(self.problem.target)
        return self.watch.questions if exchange is None else exchange.asked

    @property
    def queries_left(self) -> float:
        """Rows that the model may be given yet."""
        most = self.budget.max_queries
        return np.inf if most is None else max(0, most - self.queries)

    def is_noisy(self, told: Steadiness) -> bool:
        """Does the model answer by chance: as the user says, or as one behind an address shows?"""
        exchange = exchange_of(self.problem.target)
        if self.noisy or exchange is None:
            return self.noisy
        seen = told.again > 0 and told.decisions_moved > 0
        return seen or bool(getattr(exchange.shape, "by_chance", False))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The method's parameters."""
        return dataclasses.asdict(self.method)  # type: ignore[call-overload, no-any-return]

    def own_population(self, steady: bool) -> str | None:
        """The population that the search itself samples, where it takes its rate from the search.

        Not where a number of findings may end the search, for who stops at flips counts too many of
        them; nor where flips are not confirmed, or the search checks fewer rows than a rate should
        have; nor where the table has rules, for then two questions are asked of the same people.
        """
        name, budget = self.method.population, self.budget
        wanted, checks = self.rate_rows, np.inf if budget.max_rows is None else budget.max_rows
        if name == "real":
            wanted = min(wanted, len(self.problem.rows))
        if not steady or budget.max_findings is not None or checks < wanted:
            return None
        if self.problem.schema.rules and self.rate_rows:
            return None
        return name

    @cached_property
    def method_name(self) -> str:
        """The name that `limi list methods` shows."""
        return methods.name_of(self.method)

    @property
    def _favorable(self) -> Any:
        """The label, or where there are several a list of them."""
        wanted = self.problem.wanted
        return list(wanted) if len(wanted) > 1 else self.problem.favorable

    @property
    def _classes(self) -> dict[str, Any]:
        """The labels of classes, and whether they are in an order."""
        rule = self.problem.target.rule
        if not isinstance(rule, Classes):
            return {}
        return {"order" if rule.ordered else "classes": list(rule.labels)}

    @property
    def _is_limited(self) -> bool:
        """Is there a budget that rates take a part of?"""
        return self.budget.max_queries is not None or self.budget.max_seconds is not None

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What the run is made of; equal `config_sha256` means equal findings."""
        held, beside = self.problem.held_out, self.problem.beside
        config = {
            "method": self.method_name,
            "settings": self.settings,
            "budget": dataclasses.asdict(self.budget),
            "seed": self.seed,
            "rate_rows": self.rate_rows,
            "generator": self.source.name,
            "generator_sha256": self.source.digest,
            "device": self.source.device,
            "protected": protected_values(self.problem.schema),
            "target": self.problem.label_column,
            "favorable": self._favorable,
            "output": self.problem.output,
            "decision": str(self.problem.target.rule),
            **self._classes,
            "table": self.problem.table_name,
            "held_out": None if held is None else held.name,
            "held_out_sha256": None if held is None else held.sha256,
            "model": self.problem.model_name,
            "twin": None if self.twin is None else dataclasses.asdict(self.twin),
            "protected_from": None if beside is None else beside.name,
            "key": None if beside is None else beside.key,
            **({"rates_first": True} if self.rates_first and self._is_limited else {}),
            **({"noisy": True} if self.noisy else {}),
            **({"hidden": list(self.problem.hidden)} if self.problem.hidden else {}),
            **({"dropped": list(self.problem.dropped)} if self.problem.dropped else {}),
            **({} if self.problem.whole is None else {"fit_rows": len(self.problem.rows)}),
            **self.problem.hashes(),
        }
        text = json.dumps(config, sort_keys=True, default=str)
        return {
            "format": FORMAT,
            "config_sha256": digest(text.encode()),
            **config,
            "labels_sha256": self.problem.labels_sha256,
            "max_batch": self.max_batch,
            "versions": versions(),
            "command": self.command,
            "origin": self.origin,
        }

    def check(self) -> None:
        """Refuse what cannot be run, before the model is asked and anything is written."""
        self.source.check(self.problem)
        metrics.declared()  # a package whose metrics cannot be loaded should not cost a search
        if self.twin is not None:
            self.twin.check(self.problem)
        if self.problem.blind:  # there is nothing to search for
            return
        have = self.task(self.asked.score).capabilities
        if self.source.name is not None:
            have |= {"generator"}
        check(self.method, have, len(self.problem.schema.combinations), self.budget)

    def task(self, score: Callable[[Rows], Scores]) -> Task:
        """What may be asked before there is a generator."""
        return Task(
            self.problem.schema,
            score,
            self.problem.rows,
            max_batch=self.max_batch,
            gradients=gradients.of(self.asked),
            decision=self.asked.rule,
        )

    @property
    def max_seconds(self) -> float:
        """The budget of seconds, infinite where there is none."""
        return np.inf if self.budget.max_seconds is None else self.budget.max_seconds

    def per_finding(self, told: Steadiness) -> int:
        """Questions that the second check of a finding takes."""
        if self.is_noisy(told):
            return 0  # pairs are tested instead
        if exchange_of(self.problem.target) is not None:
            return told.per_flip  # the answers of the search are known
        both = 4 if self.problem.target.decides else 2
        return both + told.per_flip

    def estimate(self, told: Steadiness) -> Estimate:
        """Questions of each phase, before any of them begins."""
        if self.problem.blind:
            return self._estimate_blind()
        schema, budget = self.problem.schema, self.budget
        per_row = len(schema.combinations)
        most = np.inf if budget.max_rows is None else budget.max_rows
        most = min(most, most_rows(self.method, len(self.problem.rows)))
        populations = 2 + (self.source.name is not None)
        populations -= self.own_population(told.steady) == "uniform"
        n = min(self.rate_rows, measurable_rows(schema, populations, self.rate_queries, told))
        rates = populations * n * per_row * (2 if schema.rules else 1)
        search = most * per_row
        asked = {} if self.twin is None else {"twins": self._twin_questions}
        if budget.max_queries is not None:
            others = self.queries + rates + sum(asked.values())
            search = min(search, max(0, budget.max_queries - others))
        if not np.isfinite(search):
            search = 0
        findings = search / per_row / _EXPECTED_FLIPS
        if budget.max_findings is not None:
            findings = min(findings, budget.max_findings)
        questions = {
            "contract": self.watch.questions,
            "rates": rates,
            **asked,
            "search": int(search),
            "second_check": int(findings * self.per_finding(told)),
        }
        if budget.max_queries is not None:
            # The search leaves what the second check will take.
            over = max(0, sum(questions.values()) - budget.max_queries)
            questions["search"] = max(0, questions["search"] - over)
        fitted = self.source.to_fit and (self.rate_rows or "generator" in self.method.needs)
        return Estimate(
            questions,
            self.watch.best_per_row,
            budget.max_seconds,
            self.source.name if fitted else None,
        )

    def estimate_unasked(self) -> Estimate:
        """What a run would ask, at most, where nothing is known of the model yet."""
        estimate = self.estimate(Steadiness(0, 0))
        exchange = exchange_of(self.problem.target)
        looks = 4 * steadiness.SAMPLED + CONTRACT_ROWS
        questions = estimate.questions | {"contract": looks}
        if exchange is not None:
            questions["second_check"] = 0  # what was answered once is known
        if self.budget.max_queries is not None and "search" in questions:
            rows = first_look(self.budget.max_queries, steadiness.SAMPLED)
            questions["contract"] = CONTRACT_ROWS + 4 * rows
            others = sum(n for name, n in questions.items() if name != "search")
            room = max(0, self.budget.max_queries - others)
            questions["search"] = min(questions["search"], room)
        price = None if exchange is None else exchange.remote.price
        return dataclasses.replace(estimate, questions=questions, price=price)

    def _estimate_blind(self) -> Estimate:
        """People once each, and twins: a model that sees no protected value has nothing else."""
        people = min(self.rate_rows, len(self.problem.people[1]))
        questions = {
            "contract": self.watch.questions,
            "rates": people if self.rate_queries is None else min(people, self.rate_queries),
            "twins": self._twin_questions,
        }
        return Estimate(questions, self.watch.best_per_row, self.budget.max_seconds)

    @property
    def _twin_questions(self) -> int:
        if self.twin is None:
            return 0
        return self.twin.questions(self.problem, self.budget.max_queries)

    @property
    def rate_queries(self) -> int | None:
        """What rates may ask together; None for no limit but their own."""
        most = self.paid_rate_queries
        if self.watch.limited:
            seconds = (self.max_seconds - self.watch.seconds) * self.rate_share
            with self.watch.ending(self.watch.seconds + seconds):
                most = min(most, self.watch.affordable)
        return int(most) if np.isfinite(most) else None

    @property
    def rate_share(self) -> float:
        """The part of a budget that rates may have."""
        return 1 - 1 / RATE_SHARE if self.rates_first else 1 / RATE_SHARE

    @property
    def paid_rate_queries(self) -> float:
        """What rates may ask together, as far as a budget of queries goes."""
        most = self.budget.max_queries
        if most is None:
            return np.inf
        share = int(most * self.rate_share)
        return max(0, share - self.queries) if self.rates_first else share

    def in_time(self, cut: dict[str, str], what: str) -> bool:
        """Is there time for one more metric? Where not, it is said which are missing."""
        if self.watch.seconds < self.max_seconds:
            return True
        missing = cut.get("metrics", "").removeprefix(_LATE)
        cut["metrics"] = _LATE + ", ".join(filter(None, [missing, what]))
        return False

"""What a repair starts from: table, model, findings, groups, and the rows to measure on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from limi import data
from limi.audits.problem import HeldOut, Problem, prepare, with_held_out
from limi.audits.result import Result
from limi.errors import BadTable, InvalidInput
from limi.metrics.collect import counts_by_column
from limi.metrics.privileged import Privileged, parse
from limi.models.target import Target
from limi.repairs import _ensemble
from limi.repairs._figures import RepairGroups, groups
from limi.repairs._mixing import MixedTable, mix_rows
from limi.repairs._recipes import Training
from limi.repairs._refit import Refit
from limi.repairs._settings import Settings
from limi.repairs._terms import Terms
from limi.search.findings import Found
from limi.streams import Stream
from limi.table.frames import Frame
from limi.types import Index, Rows, Truth

__all__ = [
    "OnStep",
    "Steps",
    "Work",
    "compare_groups",
    "describe_run",
    "known_labels",
    "label_test",
]

OnStep = Callable[[float, str], None]


def compare_groups(
    result: Result, settings: Settings, privileged: Privileged
) -> tuple[RepairGroups, Mapping[str, float]]:
    """The groups to compare, and the privileged values where findings are labelled by them."""
    problem = result.problem
    if problem.target.rule.kind == "favorable":
        compared = groups(problem, privileged, counts_by_column(result.summary.all_metrics))
    else:  # nobody is privileged unless it is stated: groups are compared with each other
        compared = RepairGroups(
            parse(problem.schema, privileged) if privileged else {}, "as stated"
        )
    if settings.mixing.label != "privileged":
        return compared, {}
    if not privileged:
        column = problem.schema[problem.schema.protected[0]]
        raise InvalidInput(
            "the label 'privileged' needs the privileged values; name them, for example "
            f"--privileged {column.name}={column.show(problem.schema.protected_codes[0][0])}"
        )
    # Looked up now, so that an hour's work does not end in a refusal.
    return compared, compared.codes(problem.schema)


def describe_run(result: Result) -> dict[str, Any]:
    """What the findings come from, for JSON."""
    problem, run = result.problem, result.summary
    return {
        "table": problem.table_name,
        "model": problem.model_name,
        "protected": dict(run.protected),
        "target": problem.label_column,
        "favorable": problem.favorable,
        "favorable_name": run.favorable,
        "decision": run.decision,
        "kind": run.kind,
        "ordered": run.ordered,
        "method": run.method,
        "generator": run.generator,
        "seed": run.seed,
        "findings": len(result.found),
        **problem.hashes(),
    }


def _tell_nobody(done: float, words: str) -> None:
    """Of work in another process, whose steps its parent tells."""


@dataclass
class Steps:
    """Tells how far the work is."""

    total: int
    on_step: OnStep = _tell_nobody
    done: int = 0

    def note(self, words: str, cost: int) -> None:
        """Say what is done, which took so many of the usual steps."""
        self.done += cost
        self.on_step(min(1.0, self.done / self.total), words)

    def next(self, words: str, cost: int = 1) -> None:
        """Say what comes next, and how many of the usual steps it takes."""
        self.on_step(min(1.0, self.done / self.total), words)
        self.done += cost


@dataclass(frozen=True)
class Work:
    """One repair: what it starts from, and how it is done."""

    problem: Problem
    found: Found
    settings: Settings
    refit: Refit
    groups: RepairGroups
    codes: Mapping[str, float]  # the privileged values, where findings are labelled by them
    test: tuple[Rows, Truth] | None
    steps: Steps = field(repr=False)
    strength: float | None = None  # of the penalty on pairs, where it is known already

    @cached_property
    def terms(self) -> Terms:
        """What is right, and what is lost."""
        return Terms.of(self.problem)

    @property
    def labels(self) -> Truth:
        """The table's labels; of other kinds its classes or numbers, as answers of the rule."""
        truth = self.problem.labels if self.terms.is_sided else self.problem.truth
        assert truth is not None
        return truth

    @property
    def known(self) -> Index:
        """Rows whose label is known."""
        return self.terms.find_known(self.labels)

    @property
    def seed(self) -> int:
        """Where all randomness of the repair comes from."""
        return self.settings.seed

    def training(self, index: Index) -> Training:
        """Some of the table's rows, to train on."""
        return Training(self.problem.schema, self.problem.rows[index], self.labels[index])

    def mix(self, voter: Target, training: Training, place: int) -> MixedTable:
        """Training rows with findings that a model labels."""
        return mix_rows(
            self.settings.mixing,
            training,
            self.found,
            voter.score,
            ensemble=lambda: self._ensemble(training),
            privileged=self.codes,
            rng=Stream.REPAIR_MIX.rng(self.seed, place),
            decision=self.terms.rule,
        )

    def _ensemble(self, training: Training) -> _ensemble.Ensemble:
        return _ensemble.fit(
            training.rows, training.labels, training.schema, blind_to=_blind_to(self.problem)
        )

    def split(self, place: int) -> tuple[Index, Index]:
        """Rows to train on and rows held out, all classes in the table's proportion."""
        if self.test is not None or not self.settings.held_out:
            return self.known, np.empty(0, dtype=np.intp)
        rng = Stream.REPAIR_HELD_OUT.rng(self.seed, place)
        held = []
        for part in self._strata():
            mine = rng.permutation(part)
            held.append(mine[: round(self.settings.held_out * len(mine))])
        out = np.sort(np.concatenate(held))
        return np.setdiff1d(self.known, out), out

    def _strata(self) -> list[Index]:
        """Rows by label; numbers are not told apart."""
        if self.terms.rule.kind == "number":
            return [self.known]
        return [
            np.flatnonzero(self.labels == label) for label in np.unique(self.labels[self.known])
        ]


def label_test(problem: Problem, frame: Frame) -> tuple[Rows, Truth]:
    """Rows and labels of a test frame; rows without a label are left out."""
    rule = problem.target.rule
    if rule.kind == "favorable":
        given = prepare(
            problem.target.model,
            frame,
            protected=(),
            target=problem.label_column,
            favorable=problem.favorable,
            schema=problem.schema,
        )
        assert given.labels is not None
        known = given.labels >= 0
        return given.rows[known], given.labels[known]
    held = with_held_out(problem, frame, "the test table").held_out
    assert held is not None
    labelled = known_labels(problem, held)
    if labelled is None:
        raise BadTable(f"the test table has no target column {problem.label_column!r}")
    return labelled


def known_labels(problem: Problem, held: HeldOut) -> tuple[Rows, Truth] | None:
    """Held-out rows whose label is known, with their labels; None where there are none."""
    truth = held.labels if problem.target.rule.kind == "favorable" else held.truth
    if truth is None:
        return None
    known = Terms(problem.target.rule).find_known(truth)
    return (held.rows[known], truth[known]) if len(known) else None


def _blind_to(problem: Problem) -> set[str]:
    """The run's protected columns, and the others that a known table names."""
    known = data.load(problem.table_name).protected if problem.table_name in data.names() else ()
    return {*problem.schema.protected, *known}

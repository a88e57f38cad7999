"""Repaired targets: a model of the papers or an everyday one, repaired in a way of `limi repair`.

Averaging, and dropping the column where no rule lets others go along with it, leave no flip by
construction: there is nothing to find on such targets, so they are not targets here.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Literal

from lab import models as benchmark
from lab.targets import estimator
from lab.targets.making import Making
from limi import generators, methods
from limi.audits.problem import Problem
from limi.errors import InvalidInput
from limi.models import gradients
from limi.repairs import Settings as RepairSettings
from limi.repairs import Steps, Work, choose_preset, groups, make_repair, refit_of
from limi.search.budget import Budget
from limi.search.engine import run
from limi.search.findings import Findings, Found
from limi.search.task import Task
from limi.streams import Stream
from limi.system import writing

__all__ = ["Settings", "make"]

_FOUND_ROWS = 50_000  # that the search for findings to train with checks
_SEED = 77  # of that search, and of its generator


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A model, and how it is repaired."""

    kind: str = "dnn"  # of the papers, or of the recipe `estimator`
    how: Literal["copies", "pairs", "findings"] = "copies"
    preset: str = "best"  # of repairs with findings; `paper` augments as LIMI's authors do
    finder: str = "limi"  # the method whose findings are trained with
    seed: int = 0


def make(making: Making) -> Any:
    """The repaired model; one of the papers' kinds is kept, as training takes minutes."""
    told: Settings = making.settings
    papers = told.kind in ("dnn", "rf", "svm")
    path = making.kept(".npz")
    if papers and path.exists():
        return benchmark.read(path)
    native = _repair(making, told)
    if not papers:
        return native
    content = io.BytesIO()
    benchmark.save(native, content)
    writing.make_folder(path.parent)
    writing.write(path, content.getvalue())
    return native


def _repair(making: Making, told: Settings) -> Any:
    if told.kind in ("dnn", "rf", "svm"):
        plain: Any = benchmark.train(making.table.name, told.kind, seed=told.seed)  # type: ignore[arg-type]
    else:
        frame = making.table.frame
        labels = frame[making.table.target]
        plain = estimator.fit(told.kind, frame[making.schema.names], labels, told.seed)
    problem = making.problem(plain)
    learns = told.how == "findings"
    found = _search(problem, told.finder) if learns else Findings(problem.schema).all()
    if learns and not len(found):
        raise InvalidInput(f"{told.finder} found nothing to repair {making.spec.name!r} with")
    compared = groups(problem, "lowest")
    settings = RepairSettings(
        told.preset,
        choose_preset(told.preset, recipe=None, label=None, fraction=None),
        seeds=1,
        seed=told.seed,
        held_out=0.2,
        max_accuracy_loss=0.01,
    )
    work = Work(
        problem,
        found,
        settings,
        refit_of(problem),
        compared,
        compared.codes(problem.schema),
        test=None,
        steps=Steps(1, lambda done, words: None),
    )
    return make_repair(work, told.how).native


def _search(problem: Problem, finder: str) -> Found:
    rng = Stream.GENERATOR.rng(_SEED)
    task = Task(
        problem.schema,
        problem.target.score,
        problem.rows,
        generator=generators.get("trees").fit(problem.rows, problem.schema, rng),
        gradients=gradients.of(problem.target),
        decision=problem.target.rule,
    )
    ran = run(methods.parse(finder), task, Budget(max_rows=_FOUND_ROWS), _SEED)
    return ran.findings.all()

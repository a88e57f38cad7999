"""How the same kind of model is trained again on other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from limi import models
from limi.audits.problem import Problem
from limi.errors import BadModel, InvalidInput
from limi.models._classifier import SklearnModel
from limi.models._function import FunctionModel
from limi.models._trees import forget_caches
from limi.models.benchmark import BenchmarkModel
from limi.models.benchmark import fit as fit_benchmark
from limi.models.target import Target, bind
from limi.system.foreign import at_work, reason
from limi.types import Labels, Rows, Value

__all__ = ["Fit", "Fitted", "Refit", "refit_of"]

Fit = Callable[[Any, Any], Any]
"""Of a frame and its labels, as the table spells them: a fitted model."""


@dataclass(frozen=True)
class Fitted:
    """A model that was trained again."""

    target: Target
    native: Any  # the estimator, benchmark model, or whatever else the fit gave


class Refit(Protocol):
    """Trains a model of one kind from scratch."""

    @property
    def words(self) -> str:
        """What is done, for people."""
        ...

    def __call__(self, rows: Rows, labels: Labels, seed: int) -> Fitted:
        """A model fitted on these rows; the seed counts where the kind takes one."""
        ...


def refit_of(problem: Problem, fit: Fit | None = None) -> Refit:
    """How to train this problem's model again; InvalidInput where nobody can tell."""
    if fit is not None:
        if not callable(fit):
            raise InvalidInput(
                f"fit is {fit!r}; it must be a function of a frame and labels that returns a "
                "fitted model"
            )
        return _ByFunction(problem, fit)
    model = problem.target.model
    if isinstance(model, BenchmarkModel):
        return _ByRecipe(problem, model)
    if isinstance(model, SklearnModel):
        _cloned(model.estimator)  # now, so that an hour's work does not end in a refusal
        return _ByClone(problem, model)
    raise InvalidInput(
        f"limi cannot train {problem.model_name} again by itself; give a function of a frame and "
        "its labels that returns a fitted model, as --fit FILE.py:NAME (fit=... in Python)"
    )


@dataclass(frozen=True)
class _ByRecipe:
    """A benchmark model, from a fresh initialisation."""

    problem: Problem
    model: BenchmarkModel

    @property
    def words(self) -> str:
        return f"the benchmark's {self.model.info.kind} recipe from a fresh initialisation"

    def __call__(self, rows: Rows, labels: Labels, seed: int) -> Fitted:
        codec = self.problem.target.codec
        # Class 1 of a benchmark model need not be the favorable label of this run.
        classes = labels if self.model.favorable_column == 1 else 1 - labels
        made = fit_benchmark(
            self.model.info.kind,
            codec.matrix(rows),
            classes.astype(np.int8),
            columns=codec.schema.names,
            seed=seed,
            grown_from=min(len(rows), len(self.problem.rows)),
        )
        made = BenchmarkModel(
            made.scorer, made.columns, made.info, self.model.favorable_column, made.notes
        )
        return Fitted(Target(made, codec), made)


@dataclass(frozen=True)
class _ByClone:
    """A scikit-learn estimator or pipeline, cloned with its settings and fitted anew."""

    problem: Problem
    model: SklearnModel

    @property
    def words(self) -> str:
        return f"a clone of {type(self.model.estimator).__name__} with the same settings"

    def __call__(self, rows: Rows, labels: Labels, seed: int) -> Fitted:
        classes = self.model.estimator.classes_
        favorable = classes[self.model.favorable_column]
        other = classes[1 - self.model.favorable_column]
        truth = np.where(labels == 1, favorable, other).astype(np.asarray(classes).dtype)
        inputs = self.problem.target.present(rows)
        if self.model.prepare is not None:
            inputs = self.model.prepare(inputs)
        estimator = _cloned(self.model.estimator)
        _guarded(lambda: estimator.fit(inputs, truth), rows)
        return _bound(self.problem, estimator, rows)


@dataclass(frozen=True)
class _ByFunction:
    """The user's own function of a frame and labels."""

    problem: Problem
    fit: Fit

    @property
    def words(self) -> str:
        return f"the function {getattr(self.fit, '__name__', type(self.fit).__name__)}"

    def __call__(self, rows: Rows, labels: Labels, seed: int) -> Fitted:
        frame = self.problem.target.codec.decode(rows)
        spelled = np.array([self.problem.unfavorable, self.problem.favorable])
        made = _guarded(lambda: self.fit(frame, spelled[labels]), rows)
        if made is None:
            raise BadModel("the fit function returned nothing; it must return the fitted model")
        return _bound(self.problem, made, rows)


def _cloned(estimator: Any) -> Any:
    from sklearn.base import clone

    try:
        return forget_caches(clone(estimator))
    except (TypeError, RuntimeError, ValueError) as error:
        raise InvalidInput(
            f"{type(estimator).__name__} cannot be cloned ({reason(error)}); give a function of a "
            "frame and its labels that returns a fitted model, as --fit FILE.py:NAME (fit=... in "
            "Python)"
        ) from None


def _guarded(fit: Callable[[], Any], rows: Rows) -> Any:
    from threadpoolctl import threadpool_limits

    def told(error: BaseException) -> BadModel:
        return BadModel(
            f"training the model again on {len(rows):,} rows raised {reason(error)}; nothing was "
            "written, and the original model is as it was"
        )

    try:
        # OpenMP teams that wait for one another on a busy machine are slower than one thread.
        with at_work(told), threadpool_limits(limits=1):
            return fit()
    except MemoryError as error:  # of more rows than before
        raise told(error) from error


def _bound(problem: Problem, made: Any, rows: Rows) -> Fitted:
    labels: list[Value] = [v for v in (problem.unfavorable, problem.favorable) if v is not None]
    model = models.wrap(made, favorable=problem.favorable, labels=labels)
    if isinstance(model, FunctionModel):  # its answers are what the tested function's are
        model = models.wrap(made, favorable=problem.favorable, labels=labels, output=problem.output)
    return Fitted(bind(model, problem.target.codec).settled(rows), made)

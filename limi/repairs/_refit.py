"""How the same kind of model is trained again on other rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from limi import models
from limi.audits.problem import Problem
from limi.decisions import Classes
from limi.errors import BadModel, InvalidInput
from limi.models._base import LearnsPairs, LearnsWeights, Refits
from limi.models._function import FunctionModel
from limi.models.target import Target, bind
from limi.system.foreign import at_work, reason
from limi.types import Rows, Truth, Value

__all__ = ["Fit", "Fitted", "Refit", "refit_of", "spell_labels"]

Fit = Callable[..., Any]
"""Of a frame and its labels, as the table spells them: a fitted model. One that also takes
`partners`, a frame with a partner for each row, and `strength` can be trained with a penalty on how
far the scores of the two lie apart."""


@dataclass(frozen=True)
class Fitted:
    """A model that was trained again."""

    target: Target
    native: Any  # the estimator, or whatever else the fit gave


class Refit(Protocol):
    """Trains a model of one kind from scratch."""

    @property
    def words(self) -> str:
        """What is done, for people."""
        ...

    @property
    def by_function(self) -> bool:
        """Does a function of the user's train?"""
        ...

    @property
    def learns_pairs(self) -> bool:
        """Can it be trained with a penalty on pairs of scores?"""
        ...

    def __call__(
        self,
        rows: Rows,
        labels: Truth,
        seed: int,
        *,
        weights: NDArray[np.float64] | None = None,
        pairs: tuple[Rows, float] | None = None,
    ) -> Fitted:
        """A model fitted on these rows; the seed counts where the kind takes one, and so do the
        weights of rows. Only what `learns_pairs` is given pairs."""
        ...


def refit_of(problem: Problem, fit: Fit | None = None) -> Refit:
    """How to train this problem's model again; InvalidInput where nobody can tell."""
    if fit is not None:
        if not callable(fit):
            raise InvalidInput(
                f"fit is {fit!r}; it must be a function that takes a frame and labels and returns "
                "a fitted model"
            )
        return _ByFunction(problem, fit)
    model = problem.target.model
    if isinstance(model, Refits):
        # Described now, so that an hour's work does not end in a refusal.
        return _ByModel(problem, model, model.describe_refit())
    raise InvalidInput(
        f"limi cannot retrain {problem.model_name} by itself; give a function that takes a frame "
        "and its labels and returns a fitted model, as --fit FILE.py:NAME (fit=... in Python)"
    )


@dataclass(frozen=True)
class _ByModel:
    """As the model's own kind is trained."""

    problem: Problem
    model: Refits
    words: str
    by_function: bool = False

    @property
    def learns_pairs(self) -> bool:
        return isinstance(self.model, LearnsPairs) and self.model.learns_pairs

    def __call__(
        self,
        rows: Rows,
        labels: Truth,
        seed: int,
        *,
        weights: NDArray[np.float64] | None = None,
        pairs: tuple[Rows, float] | None = None,
    ) -> Fitted:
        present, model = self.problem.target.present, self.model
        told: dict[str, Any] = {}
        if weights is not None and isinstance(model, LearnsWeights) and model.learns_weights:
            told["weights"] = weights
        if pairs is not None:
            told["pairs"] = (present(pairs[0]), pairs[1])
        with _guard(rows):
            n_table = len(self.problem.rows)
            made = model.refit(present(rows), labels, seed, n_table=n_table, **told)
        return _bound(self.problem, made, rows)


@dataclass(frozen=True)
class _ByFunction:
    """The user's own function of a frame and labels."""

    problem: Problem
    fit: Fit
    by_function: bool = True

    @property
    def words(self) -> str:
        return f"the function {getattr(self.fit, '__name__', type(self.fit).__name__)}"

    @property
    def learns_pairs(self) -> bool:
        try:
            return {"partners", "strength"} <= {*inspect.signature(self.fit).parameters}
        except (TypeError, ValueError):  # of built-in functions nothing is known
            return False

    def __call__(
        self,
        rows: Rows,
        labels: Truth,
        seed: int,
        *,
        weights: NDArray[np.float64] | None = None,
        pairs: tuple[Rows, float] | None = None,
    ) -> Fitted:
        from threadpoolctl import threadpool_limits

        shown = self.problem.target.shown
        frame = shown.decode(rows[:, : len(shown.schema)])
        told = {}
        if pairs is not None:
            partners = shown.decode(pairs[0][:, : len(shown.schema)])
            told = {"partners": partners, "strength": pairs[1]}
        # OpenMP teams that wait for one another on a busy machine are slower than one thread.
        with _guard(rows), threadpool_limits(limits=1):
            made = self.fit(frame, spell_labels(self.problem, labels), **told)
        if made is None:
            raise BadModel("the fit function returned nothing; it must return the fitted model")
        return _bound(self.problem, made, rows)


@contextmanager
def _guard(rows: Rows) -> Iterator[None]:
    def told(error: BaseException) -> BadModel:
        return BadModel(
            f"training the model again on {len(rows):,} rows raised {reason(error)}; nothing was "
            "written, and the original model is as it was"
        )

    try:
        with at_work(told):
            yield
    except MemoryError as error:  # of more rows than before
        raise told(error) from error


def spell_labels(problem: Problem, labels: Truth) -> NDArray[Any]:
    """Labels as the table spells them; numbers are themselves."""
    rule = problem.target.rule
    if isinstance(rule, Classes):
        return np.array(rule.labels)[labels.astype(np.intp)]
    if rule.kind == "number":
        return labels
    return np.array([problem.unfavorable, problem.favorable])[labels]


def _bound(problem: Problem, made: Any, rows: Rows) -> Fitted:
    labels: list[Value] = [v for v in (problem.unfavorable, problem.favorable) if v is not None]
    rule = problem.target.rule
    sided = rule.kind == "favorable"
    wrap = partial(
        models.wrap,
        made,
        favorable=problem.favorable if sided else None,
        labels=labels if sided else list(problem.known),
        rule=rule,
    )
    model = wrap()
    if isinstance(model, FunctionModel):  # its answers are what the tested function's are
        model = wrap(output=problem.output)
    target = problem.target
    bound = bind(model, target.codec, aside=target.unseen, rule=rule)
    return Fitted(bound.settled(rows), made)

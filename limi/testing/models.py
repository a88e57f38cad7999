"""What every model owes the search; for the tests of anyone who writes one.

Each check takes a `Target` (see `limi.models.target.bind`) and some rows of its table, and fails
with an AssertionError that says what was broken. `CHECKS` holds them all; `check` runs them one by
one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np

from limi.decisions import contradicts
from limi.models._base import Model, Takes, notes_of
from limi.models.target import Target
from limi.types import Rows

__all__ = ["CHECKS", "check", "check_model"]


def check(target: Target, rows: Rows) -> None:
    """Run every check on a target and rows of its table."""
    check_model(target.model)
    for one in CHECKS:
        one(target, rows)


def check_model(model: Model) -> None:
    """It has the members of a model, and they hold what they may."""
    assert isinstance(model, Model), f"{type(model).__name__} lacks a member of limi.models.Model"
    assert model.takes in get_args(Takes), f"takes is {model.takes!r}"
    columns = model.columns
    if columns is not None:
        assert all(isinstance(name, str) for name in columns), "column names are text"
        assert len(set(columns)) == len(columns), "columns differ"
        assert model.n_columns in (None, len(columns)), "n_columns counts the columns"
    assert all(isinstance(note, str) for note in notes_of(model)), "notes are sentences"


def scores_are_scores(target: Target, rows: Rows) -> None:
    """One float64 in [0, 1] a row."""
    scores = target.score(rows)
    assert scores.shape == (len(rows),), f"{scores.shape} for {len(rows)} rows"
    assert scores.dtype == np.float64, scores.dtype
    assert ((scores >= 0) & (scores <= 1)).all(), "scores lie in [0, 1]"


def no_rows_no_scores(target: Target, rows: Rows) -> None:
    """An empty batch has an empty answer."""
    assert target.score(rows[:0]).shape == (0,)


def rows_stay_as_they_are(target: Target, rows: Rows) -> None:
    """Scoring writes nothing into the rows it is given."""
    given = rows.copy()
    target.score(given)
    assert np.array_equal(given, rows, equal_nan=True), "the model changed its input"


def answers_repeat(target: Target, rows: Rows) -> None:
    """The same rows get the same scores, in the same order or another."""
    first = target.score(rows)
    assert np.array_equal(first, target.score(rows)), "two calls differ"
    backwards = target.score(rows[::-1].copy())[::-1]
    assert np.allclose(first, backwards, rtol=1e-5, atol=1e-6), "order matters"


def batches_do_not_matter(target: Target, rows: Rows) -> None:
    """A row alone scores what it scores among others."""
    rows = rows[:5]
    alone = np.concatenate([target.score(rows[i : i + 1]) for i in range(len(rows))])
    together = target.score(rows)
    assert np.allclose(alone, together, rtol=1e-5, atol=1e-6), f"{alone} alone, {together} together"


def sides_are_decisions(target: Target, rows: Rows) -> None:
    """A score lies above 0.5 exactly where the model's own decision is favorable."""
    decided = target.decide(rows)
    if decided is not None:
        assert not contradicts(target.score(rows), decided).any(), "scores contradict decisions"


def contract_holds(target: Target, rows: Rows) -> None:
    """The check before a search passes, and counts what it asked."""
    asked = target.contract(rows)
    assert asked >= len(rows[:16]), f"only {asked} rows were asked"


CHECKS: tuple[Callable[[Target, Rows], None], ...] = (
    scores_are_scores,
    no_rows_no_scores,
    rows_stay_as_they_are,
    answers_repeat,
    batches_do_not_matter,
    sides_are_decisions,
    contract_holds,
)

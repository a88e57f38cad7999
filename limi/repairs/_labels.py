"""Which label a finding gets before a model is trained on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, get_args

import numpy as np

from limi.decisions import AS_DECIDED, Classes, Rule, favors
from limi.repairs._ensemble import Ensemble
from limi.search.check import check_rows
from limi.table.schema import Schema
from limi.types import Labels, Mask, Rows, Scores, Truth

__all__ = ["POLICIES", "Policy", "decide", "settle", "vote"]

Policy = Literal["vote", "ensemble", "privileged"]
"""`vote`: what the model decides under most protected values; `ensemble`: what models decide that
see no protected column; `privileged`: what the model decides for the privileged values."""

POLICIES: tuple[str, ...] = get_args(Policy)


def decide(
    policy: Policy,
    score: Callable[[Rows], Scores],
    schema: Schema,
    rows: Rows,
    *,
    ensemble: Callable[[], Ensemble],
    privileged: Mapping[str, float],
    decision: Rule = AS_DECIDED,
) -> Truth:
    """A label for each row."""
    if policy == "ensemble":
        return ensemble().decide(rows)
    if policy == "vote":
        if decision.kind != "favorable":
            return settle(score, schema, rows, decision)
        return vote(score, schema, rows)
    asked = rows.copy()
    for name, code in privileged.items():
        asked[:, schema.position(name)] = code
    answers = score(asked)
    if isinstance(decision, Classes):
        return np.asarray(decision.place(answers))
    return answers if decision.kind == "number" else favors(answers).astype(np.int8)


def vote(score: Callable[[Rows], Scores], schema: Schema, rows: Rows) -> Labels:
    """What most protected values bring a row; where they are even, the side of the mean score.

    With two protected values every finding is even, so there the mean score decides.
    """
    if not len(rows):
        return np.zeros(0, dtype=np.int8)
    scores = check_rows(score, schema, rows, keep_scores=True).scores
    share = favors(scores).mean(axis=1)
    favorable: Mask = np.where(share == 0.5, favors(scores.mean(axis=1)), share > 0.5)
    return favorable.astype(np.int8)


def settle(score: Callable[[Rows], Scores], schema: Schema, rows: Rows, decision: Rule) -> Scores:
    """What protected values bring a row together: the mean of numbers; of classes the one that
    most values bring, and of several the one that is furthest ahead."""
    if not len(rows):
        return np.zeros(0)
    answers = check_rows(score, schema, rows, keep_scores=True, decision=decision).scores
    if not isinstance(decision, Classes):
        return np.asarray(np.nanmean(answers, axis=1))
    places = decision.place(answers)
    votes = np.stack(
        [
            np.nansum(np.where(places == place, 1 + (answers - places), 0.0), axis=1)
            for place in range(len(decision.labels))  # a lead is less than a vote
        ]
    )
    return np.asarray(votes.argmax(axis=0), dtype=np.float64)

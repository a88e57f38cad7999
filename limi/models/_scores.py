"""Scores from margins, probabilities and logits.

A margin of nearly 0, or two probabilities that are nearly equal, leave the score on the edge
(`limi.decisions`), for rounding has decided there. Where the model has decided by more than that,
its score is clear of the edge on the side that the model takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from limi.decisions import DECIDED_AGAINST, DECIDED_FOR, contradicts, favors, opposes
from limi.errors import BadModel, InvalidInput
from limi.types import Mask, Scores

__all__ = ["Output", "Outputs", "from_margin", "from_pairs", "probabilities", "sided", "whole"]

Output = Literal["logits", "probability"]
"""What a network's last layer gives."""


def whole(raw: Any) -> NDArray[Any]:
    """A model's answers as an array; BadModel where some are masked, which it would forget."""
    hidden = int(np.ma.getmaskarray(raw).sum()) if isinstance(raw, np.ma.MaskedArray) else 0
    if hidden:
        raise BadModel(
            f"the model returned a masked array in which {hidden} of {raw.size} answers are "
            "hidden; it must answer for every row"
        )
    return np.asarray(raw)


def sided(scores: Scores, favorable: Mask) -> Scores:
    """Scores, moved across the edge where the model decides otherwise than they say."""
    decided = np.where(favorable, DECIDED_FOR, DECIDED_AGAINST)
    moved: Scores = np.where(contradicts(scores, favorable), decided, scores)
    return moved


def from_margin(margin: Any, favorable_column: int) -> Scores:
    """Scores of signed distances; above 0 the second class is chosen."""
    from scipy.special import expit

    margin = whole(margin).astype(np.float64)
    scores: Scores = expit(margin if favorable_column == 1 else -margin)
    return scores


def from_pairs(pairs: Any, favorable_column: int, *, votes: bool = False) -> Scores:
    """Scores of two probabilities a row, of which the larger one decides.

    Where they are shares of `votes`, they are equal because the votes were even, and not by
    rounding: the model then takes the first class.
    """
    pairs = whole(pairs).astype(np.float64)
    mine, other = pairs[:, favorable_column], pairs[:, 1 - favorable_column]
    # Two probabilities need not sum to exactly 1, so comparing one of them with 0.5 can contradict
    # the model, which compares the two.
    compared = 0.5 + (mine - other) / 2
    agree = (favors(mine) == favors(compared)) & (opposes(mine) == opposes(compared))
    scores: Scores = np.where(agree, mine, compared)
    if votes:
        first = DECIDED_FOR if favorable_column == 0 else DECIDED_AGAINST
        scores = np.where(mine == other, first, scores)
    return scores


def probabilities(array: Any) -> Scores:
    """The array as scores; BadModel where one is not a number in [0, 1]."""
    scores: Scores = np.asarray(array, dtype=np.float64)
    check_finite(scores)
    if scores.size and (scores.min() < 0 or scores.max() > 1):
        raise BadModel(
            f"the model returned scores from {scores.min():g} to {scores.max():g}; they must lie "
            "in [0, 1], where 0.5 decides (apply a sigmoid to logits)"
        )
    return scores


def check_finite(scores: NDArray[Any]) -> None:
    """BadModel where a score is NaN or infinite."""
    bad = int(scores.size - np.isfinite(scores).sum())
    if bad:
        raise BadModel(
            f"the model returned {bad} scores that are NaN or infinite among "
            f"{scores.size}; scores must be finite"
        )


@dataclass(frozen=True)
class Outputs:
    """Reads what a network's last layer gives: one number a row, or one for each of two classes.

    Of two numbers the larger decides, be they logits or probabilities. One number alone is a
    probability or a logit, and only `kind` or numbers outside [0, 1] can tell which.
    """

    favorable_column: int  # of the classes 0 and 1
    kind: Output | None = None

    def read(self, raw: Any, n: int) -> Scores:
        """Scores of n rows."""
        array = whole(raw)
        if array.ndim == 0 or len(array) != n:
            given = "one value" if array.ndim == 0 else f"{len(array)} outputs"
            raise BadModel(f"the model returned {given} for {n} rows; it must return one a row")
        return self._two(array) if _width(array) == 2 else self._one(array.reshape(-1))

    def settle(self, raw: Any) -> Outputs:
        """The same with its kind settled by the outputs of real rows."""
        array = np.asarray(raw, dtype=np.float64)
        if _width(array) == 2 or self.kind:
            return self
        check_finite(array)
        if array.size and (array.min() < 0 or array.max() > 1):
            return replace(self, kind="logits")
        raise InvalidInput(
            "the model's outputs all lie in [0, 1], so they may be probabilities or logits; say "
            'which: set model.output = "probability" or "logits", or add ?output=probability or '
            "?output=logits to the file name"
        )

    def _one(self, array: NDArray[Any]) -> Scores:
        check_finite(array)
        kind = self.kind or self.settle(array).kind
        if kind == "logits":
            return from_margin(array, self.favorable_column)
        second = probabilities(array)
        return second if self.favorable_column == 1 else 1 - second

    def _two(self, array: NDArray[Any]) -> Scores:
        check_finite(array)
        pairs = array.astype(np.float64)
        # Row by row, so that a row's score does not depend on the rows beside it.
        sums = np.isclose(pairs.sum(axis=1), 1, rtol=0, atol=1e-5) & (pairs >= 0).all(axis=1)
        if self.kind == "probability" or (self.kind is None and sums.all()):
            return from_pairs(pairs, self.favorable_column)
        as_logits = from_margin(pairs[:, 1] - pairs[:, 0], self.favorable_column)
        if self.kind == "logits":
            return as_logits
        return np.where(sums, from_pairs(pairs, self.favorable_column), as_logits)


def _width(array: NDArray[Any]) -> int:
    """How many outputs a row has, one or two; BadModel where it has others."""
    width = 1 if array.ndim == 1 else array.shape[1] if array.ndim == 2 else 0
    if width in (1, 2):
        return width
    wide = f"{width} outputs a row" if width else f"outputs of shape {array.shape}"
    raise BadModel(
        f"the model returned {wide}; limi tests decisions between two classes, so it needs "
        "one or two outputs a row"
    )

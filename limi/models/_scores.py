"""Scores from margins, probabilities and logits.

A margin of nearly 0, or two probabilities that are nearly equal, leave the score on the edge
(`limi.decisions`), for rounding has decided there. Where the model has decided by more than that,
its score is clear of the edge on the side that the model takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.decisions import (
    DECIDED_AGAINST,
    DECIDED_FOR,
    DECIDED_LEAD,
    Classes,
    contradicts,
    favors,
    opposes,
)
from limi.errors import BadModel, InvalidInput, spell
from limi.system.arrays import find_highest, is_tensor, look_up, put, take, where
from limi.types import Mask, Scores

__all__ = [
    "Favored",
    "Output",
    "Outputs",
    "Places",
    "from_labels",
    "from_margin",
    "from_pairs",
    "lie_in_range",
    "probabilities",
    "require_one_each",
    "say_width",
    "take_side",
    "whole",
]

ROUNDING = 1e-6  # by which a sum of float32 probabilities may pass 0 or 1

Output = Literal["logits", "probability", "number"]
"""What a network's last layer gives; a number is the answer itself."""


@dataclass(frozen=True)
class Places:
    """Where a rule has the classes of a model, in the model's order: none is favorable, and an
    answer is the class itself (`limi.decisions.Classes`)."""

    rule: Classes
    of: tuple[int, ...]


Favored: TypeAlias = int | tuple[int, ...] | Places
"""Which class is favorable, of two; of more than two, which classes are; or that none is."""


def whole(raw: Any) -> NDArray[Any]:
    """A model's answers as an array; BadModel where some are masked, which it would forget."""
    hidden = int(np.ma.getmaskarray(raw).sum()) if isinstance(raw, np.ma.MaskedArray) else 0
    if hidden:
        raise BadModel(
            f"the model returned a masked array in which {hidden} of {raw.size} answers are "
            "hidden; it must answer for every row"
        )
    return np.asarray(raw)


def require_one_each(answers: NDArray[Any], n: int, noun: str) -> None:
    """BadModel unless there is an answer for each of n rows."""
    if answers.ndim and len(answers) == n:
        return
    single = "None" if not answers.ndim and answers.item() is None else "one value"
    given = f"{len(answers)} {noun}" if answers.ndim else single
    raise BadModel(f"the model returned {given} for {n} rows; it must return one per row")


def from_labels(labels: NDArray[Any], classes: Any, favored: Favored) -> Scores:
    """Answers of a model that says labels alone, each of them one of its classes."""
    classes = np.asarray(classes)
    if not isinstance(favored, Places):
        decided: Scores = np.isin(labels, classes[np.atleast_1d(favored)]).astype(np.float64)
        return decided
    same = labels[:, None] == classes[None, :]
    strange = ~same.any(axis=1)
    if strange.any():
        raise BadModel(
            f"the model predicts {labels[strange].tolist()[0]!r}, which is not one of its classes "
            f"({spell(map(repr, classes.tolist()))})"
        )
    places: Scores = np.asarray(favored.of, dtype=np.float64)[same.argmax(axis=1)]
    return places + DECIDED_LEAD


def take_side(scores: Scores, favorable: Mask) -> Scores:
    """Scores, moved across the edge where the model decides differently from what they say."""
    decided = np.where(favorable, DECIDED_FOR, DECIDED_AGAINST)
    moved: Scores = np.where(contradicts(scores, favorable), decided, scores)
    return moved


def from_margin(margin: Any, favorable_column: Favored) -> Scores:
    """Scores of signed distances; above 0 the second class is chosen.

    Of more than two classes each has one, and the highest decides.
    """
    margin = whole(margin).astype(np.float64)
    if isinstance(favorable_column, Places):
        answers: Scores = _of_classes(margin, favorable_column, "logits")
        return answers
    scores: Scores = _of_margin(_as_one(margin, favorable_column), _place(favorable_column))
    return scores


def from_pairs(pairs: Any, favorable_column: Favored, *, votes: bool = False) -> Scores:
    """Scores of probabilities, two per row or one for each class, of which the largest decides.

    Where they are shares of `votes`, they are equal because the votes were even, and not by
    rounding: the model then takes the first class.
    """
    pairs = whole(pairs).astype(np.float64)
    scores: Scores
    if isinstance(favorable_column, Places):
        scores = _of_classes(pairs, favorable_column, "probability", votes=votes)
        return scores
    if isinstance(favorable_column, tuple):
        mine, other = _best(pairs, favorable_column)
        scores = _share(mine, other)
        if votes:
            leads = np.isin(pairs.argmax(axis=1), favorable_column)
            decided = np.where(leads, DECIDED_FOR, DECIDED_AGAINST)
            scores = np.where(mine == other, decided, scores)
        return scores
    scores = _of_pairs(pairs, favorable_column)
    if votes:
        first = DECIDED_FOR if favorable_column == 0 else DECIDED_AGAINST
        scores = np.where(pairs[:, 0] == pairs[:, 1], first, scores)
    return scores


def probabilities(array: Any) -> Scores:
    """The array as scores; BadModel where one is not a number in [0, 1]."""
    scores: Scores = np.asarray(array, dtype=np.float64)
    check_finite(scores)
    if not lie_in_range(scores):
        raise BadModel(
            f"the model returned scores from {scores.min():g} to {scores.max():g}; they must lie "
            "in [0, 1], with 0.5 as the threshold (apply a sigmoid to logits)"
        )
    return np.clip(scores, 0.0, 1.0)


def lie_in_range(scores: NDArray[Any]) -> bool:
    """Whether all scores lie in [0, 1], but for rounding."""
    return not scores.size or bool(scores.min() >= -ROUNDING and scores.max() <= 1 + ROUNDING)


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
    """Reads what a network's last layer gives: one number per row, or one for each class.

    What is read are the answers of a rule (`limi.decisions`): mostly scores of what is favorable.

    Of several numbers the largest decides, be they logits or probabilities. One number alone is a
    probability or a logit, and only `kind` or numbers outside [0, 1] can tell which.
    """

    favorable_column: Favored
    kind: Output | None = None
    classes: int = 2  # more than two where several of them may be favorable

    def read(self, raw: Any, n: int) -> Scores:
        """Scores of n rows; BadModel where the outputs are not such."""
        array = whole(raw)
        require_one_each(array, n, "outputs")
        alone = _width(array, self.classes) == 1
        check_finite(array)
        known = self if self.kind or not alone else self.settle(array)
        array = array.astype(np.float64)
        if alone and known.kind == "probability":
            probabilities(array)
        scores: Scores = known.scores(array)
        return scores

    def scores(self, raw: Any) -> Any:
        """(n,) scores of an array or tensor of doubles; the same arithmetic for both.

        One output alone counts as a logit where no kind is known.
        """
        if self.kind == "number":
            return raw.reshape(-1)
        if isinstance(self.favorable_column, Places):
            return _of_classes(raw, self.favorable_column, self.kind)
        if isinstance(self.favorable_column, tuple):
            mine, other = _best(raw, self.favorable_column)
            logits = _of_margin(mine - other, 1)
            if self.kind == "logits":
                return logits
            shares = _share(mine, other)
            return shares if self.kind else where(_are_shares(raw), shares, logits)
        if raw.ndim == 2 and raw.shape[1] == 2:
            pairs = _of_pairs(raw, self.favorable_column)
            if self.kind == "probability":
                return pairs
            logits = _of_margin(raw[:, 1] - raw[:, 0], self.favorable_column)
            return logits if self.kind else where(_are_shares(raw), pairs, logits)
        raw = raw.reshape(-1)
        if self.kind != "probability":
            return _of_margin(raw, self.favorable_column)
        return raw if self.favorable_column == 1 else 1 - raw

    def margins(self, raw: Any) -> Any:
        """(n,) log-odds of the favorable class of a tensor, with a derivative everywhere.

        The log-odds of `scores`, but not by way of them: a score is 1.0 long before its margin is
        flat.
        """
        raw = raw.double()
        if self.kind == "number":
            return raw.reshape(-1)
        assert not isinstance(self.favorable_column, Places)  # gradients have two sides
        if raw.ndim == 2 and raw.shape[1] > 1:
            if isinstance(self.favorable_column, tuple):
                mine, other = _best(raw, self.favorable_column)
            else:
                mine, other = raw[:, self.favorable_column], raw[:, 1 - self.favorable_column]
            logs = _log(mine) - _log(other)
            if self.kind is None:
                return where(_are_shares(raw), logs, mine - other)
            return logs if self.kind == "probability" else mine - other
        raw = raw.reshape(-1)
        if self.kind == "probability":
            raw = _log(raw) - _log(1 - raw)
        return raw if self.favorable_column == 1 else -raw

    def settle(self, raw: Any) -> Outputs:
        """The same with its kind settled by the outputs of real rows."""
        array = np.asarray(raw, dtype=np.float64)
        if _width(array, self.classes) > 1 or self.kind:
            return self
        check_finite(array)
        if array.size and (array.min() < 0 or array.max() > 1):
            return replace(self, kind="logits")
        raise InvalidInput(
            "the model's outputs all lie in [0, 1], so they may be probabilities or logits; say "
            'which: set model.output = "probability" or "logits", or add ?output=probability or '
            "?output=logits to the file name"
        )


def _width(array: NDArray[Any], classes: int) -> int:
    """How many outputs a row has: one or two, or one for each class; BadModel where others."""
    width = 1 if array.ndim == 1 else array.shape[1] if array.ndim == 2 else 0
    if width in ((1, 2) if classes == 2 else (classes,)):  # of numbers there is one
        return width
    wide = f"{width} outputs per row" if width else f"outputs of shape {array.shape}"
    raise BadModel(f"the model returned {wide}; {say_width(classes)}")


def say_width(classes: int) -> str:
    """How many outputs are needed, in words."""
    if classes == 1:
        return "a number needs one output a row"
    if classes == 2:
        return "a decision between two classes needs one or two outputs per row"
    return f"the target column has {classes} labels, so one output for each of them is needed"


# -- arrays of numpy and tensors of torch alike -----------------------------------------


def _of_classes(raw: Any, places: Places, kind: Output | None, *, votes: bool = False) -> Any:
    """(n,) answers of a rule of classes: the place of the highest, and how far it is ahead.

    Where they are shares of `votes`, even ones were decided for the first class.
    """
    if raw.ndim == 1 or raw.shape[1] == 1:  # of the second of two classes
        raw = raw.reshape(-1, 1)
        zero = 0 * raw
        raw = _beside(1 - raw if kind == "probability" else zero, raw)
    best = raw.argmax(1)
    mine = take(raw, best)
    others = raw + 0.0
    put(others, best, -np.inf)
    rival = find_highest(others)
    if kind == "logits":
        lead = _of_margin(mine - rival, 1) - 0.5
    elif kind == "probability":
        lead = _share(mine, rival) - 0.5
    else:
        lead = where(_are_shares(raw), _share(mine, rival), _of_margin(mine - rival, 1)) - 0.5
    if votes:
        lead = where(mine == rival, DECIDED_LEAD, lead)
    table = np.asarray(places.of, dtype=np.float64)
    return places.rule.carry(look_up(table, best + 0.0 * mine), lead)


def _beside(first: Any, second: Any) -> Any:
    if is_tensor(first):
        import torch

        return torch.cat([first, second], 1)
    return np.concatenate([first, second], axis=1)


def _best(raw: Any, favorable: tuple[int, ...]) -> tuple[Any, Any]:
    """(n,) each: the highest of the favorable classes, and of the others."""
    others = [place for place in range(raw.shape[1]) if place not in favorable]
    return find_highest(raw[:, list(favorable)]), find_highest(raw[:, others])


def _share(mine: Any, other: Any) -> Any:
    """What a favorable class has of what it and its strongest rival have together.

    Above 0.5 where a favorable class is the most probable of all; it has the odds of the two, as
    the score of two classes has.
    """
    both = mine + other
    neither = both == 0
    return where(neither, 0.5, mine / where(neither, 1.0, both))


def _as_one(margin: Any, favorable: int | tuple[int, ...]) -> Any:
    """One margin a row: of many classes, how far a favorable one is ahead of the others."""
    if not isinstance(favorable, tuple):
        return margin
    mine, other = _best(margin, favorable)
    return mine - other


def _place(favorable: int | tuple[int, ...]) -> int:
    return 1 if isinstance(favorable, tuple) else favorable


def _of_margin(margin: Any, favorable_column: int) -> Any:
    signed = margin if favorable_column == 1 else -margin
    if is_tensor(signed):
        return signed.sigmoid()
    from scipy.special import expit

    return expit(signed)


def _of_pairs(pairs: Any, favorable_column: int) -> Any:
    mine, other = pairs[:, favorable_column], pairs[:, 1 - favorable_column]
    # Two probabilities need not sum to exactly 1, so comparing one of them with 0.5 can contradict
    # the model, which compares the two.
    compared = 0.5 + (mine - other) / 2
    agree = (favors(mine) == favors(compared)) & (opposes(mine) == opposes(compared))
    return where(agree, mine, compared)


def _are_shares(pairs: Any) -> Any:
    """Which rows are two probabilities: neither is negative, and they add up to 1.

    Row by row, so that a row's score does not depend on the rows beside it.
    """
    return (abs(pairs.sum(1) - 1) <= 1e-5) & (pairs >= 0).all(1)


def _log(tensor: Any) -> Any:
    """Logarithms that stay finite at 0."""
    import torch

    return tensor.clamp_min(torch.finfo(torch.float32).tiny).log()

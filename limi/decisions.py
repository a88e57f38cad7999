"""Which way a score decides, and how near the edge it decides nothing.

A decision is favorable where the score lies above 0.5. The last digits of a score are not the
model's but the machine's: sums come out in another order on another processor, in another batch,
on more threads. Where they alone decide, the same row flips here and not there. So a score within
`EDGE` of 0.5 is *on the edge*: it takes part in no flip, and to a search it counts as unfavorable,
whatever its last digit. Everything that asks which way a score decides asks here.

`EDGE` is what single precision leaves open. A sum of numbers of about 1 is then known to some
1e-7, and a score to a part of that: between processors the scores of a network with 256 units a
layer moved by 5e-7, those of double precision by 1e-13. Above it lies what a model may mean: the
votes of a hundred thousand trees differ by 1e-5. (A network that adds up large numbers, as one on
unscaled columns does, may move by more; its findings then hold where they were found.)

A model that settles ties by a rule of its own, as a forest does whose trees are even, has decided:
its scores are moved off the edge before they come here (`limi.models._scores`).

Where the user says a threshold, `score > 0.3`, scores are moved so that it comes to lie at 0.5
(`Favorable.move`): one edge and one middle serve every threshold.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from limi.errors import InvalidInput
from limi.system.arrays import where

__all__ = [
    "AS_DECIDED",
    "DECIDED_AGAINST",
    "DECIDED_FOR",
    "EDGE",
    "Favorable",
    "contradicts",
    "differ",
    "favors",
    "move_threshold",
    "opposes",
    "parse_rule",
    "round_scores",
    "sides",
]

_DIGITS = 6
EDGE = 10.0**-_DIGITS
"""How near 0.5 a score is on the edge."""

DECIDED_FOR, DECIDED_AGAINST = 0.5 + 2 * EDGE, 0.5 - 2 * EDGE
"""Scores that say no more than which way a model has decided."""

# All of these take arrays of numpy and tensors of torch alike. A NaN decides nothing.


def favors(scores: Any) -> Any:
    """Where the decision is favorable, clear of the edge.

    >>> import numpy as np
    >>> favors(np.array([0.4, 0.5, 0.5 + 1e-12, 0.6])).tolist()
    [False, False, False, True]
    """
    return scores > 0.5 + EDGE


def opposes(scores: Any) -> Any:
    """Where the decision is unfavorable, clear of the edge."""
    return scores < 0.5 - EDGE


def differ(scores: Any, others: Any) -> Any:
    """Where two decisions differ and both are clear of the edge: a flip.

    >>> import numpy as np
    >>> differ(np.array([0.4, 0.5 - 1e-12, 0.4]), np.array([0.6, 0.6, 0.5 + 1e-12])).tolist()
    [True, False, False]
    """
    return (favors(scores) & opposes(others)) | (opposes(scores) & favors(others))


def contradicts(scores: Any, favorable: Any) -> Any:
    """Where scores clearly say another decision than this mask."""
    return (opposes(scores) & favorable) | (favors(scores) & ~favorable)


def sides(scores: Any) -> Any:
    """Which way scores decide: 1 favorable, -1 unfavorable, 0 on the edge.

    >>> import numpy as np
    >>> sides(np.array([0.4, 0.5 + 1e-12, 0.6])).tolist()
    [-1, 0, 1]
    """
    return favors(scores).astype("int8") - opposes(scores).astype("int8")


def round_scores(scores: Any) -> Any:
    """Scores, or differences of them, without the digits that may not steer a search."""
    return scores.round(decimals=_DIGITS)


# -- rules ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Favorable:
    """A decision is favorable or not: as the model itself says, or by a threshold of its score."""

    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None and not EDGE < self.threshold < 1 - EDGE:
            raise InvalidInput(
                f"the threshold is {self.threshold:g}; scores lie between 0 and 1, and so must "
                "what they are compared with, as in 'score > 0.3'"
            )

    def __str__(self) -> str:
        return "favorable" if self.threshold is None else f"score > {self.threshold!r}"

    def move(self, scores: Any) -> Any:
        """Scores, moved so that above 0.5 they are favorable by this rule."""
        return scores if self.threshold is None else move_threshold(scores, self.threshold)

    @property
    def log_odds(self) -> float:
        """Of the threshold: what a margin is compared with."""
        if self.threshold is None:
            return 0.0
        return math.log(self.threshold) - math.log1p(-self.threshold)


AS_DECIDED = Favorable()
"""The model itself decides."""


def move_threshold(scores: Any, threshold: float) -> Any:
    """Scores in [0, 1], moved in their order so that a threshold comes to lie at 0.5.

    Either side of it is stretched evenly. What lies within `EDGE` of the threshold is on the edge,
    and nothing else is, however much a side was stretched.

    >>> import numpy as np
    >>> move_threshold(np.array([0.0, 0.15, 0.3 + 1e-12, 0.65, 1.0]), 0.3).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if threshold == 0.5:
        return scores
    below = scores / (2 * threshold)
    above = 0.5 + (scores - threshold) / (2 * (1 - threshold))
    below = where(below < DECIDED_AGAINST, below, DECIDED_AGAINST)
    above = where(above > DECIDED_FOR, above, DECIDED_FOR)
    on_edge = 0 * scores + 0.5  # NaN stays NaN
    moved = where(scores < threshold - EDGE, below, on_edge)
    return where(scores > threshold + EDGE, above, moved)


_SCORE_ABOVE = re.compile(r"score\s*>\s*(\S+)")
_RULES = "'favorable' (as the model decides), or a threshold such as 'score > 0.3'"


def parse_rule(text: str | None) -> Favorable:
    """The rule that a text spells; InvalidInput where it spells none.

    >>> parse_rule("score > 0.3")
    Favorable(threshold=0.3)
    """
    words = "favorable" if text is None else " ".join(text.split())
    if words == "favorable":
        return AS_DECIDED
    found = _SCORE_ABOVE.fullmatch(words)
    if found is None:
        raise InvalidInput(f"decision is {text!r}; it can be {_RULES}")
    try:
        threshold = float(found[1])
    except ValueError:
        raise InvalidInput(
            f"decision is {text!r}, and {found[1]!r} is not a number; it can be {_RULES}"
        ) from None
    return Favorable(threshold)

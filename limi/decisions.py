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
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "DECIDED_AGAINST",
    "DECIDED_FOR",
    "EDGE",
    "contradicts",
    "differ",
    "favors",
    "opposes",
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

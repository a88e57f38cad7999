"""Which counterpart of a row is shown beside it; one rule for arrays and tensors."""

from __future__ import annotations

from typing import Any, Literal

from limi.decisions import AS_DECIDED, EDGE, Rule
from limi.system.arrays import find_first, put, take, where

__all__ = ["Partner", "choose_partner"]

Partner = Literal["widest", "first"]
"""Which counterpart is shown: of those that flip (or of all, where none does) the one whose score
is furthest away, or the first in the order of combinations."""

_FLIPS = 2.0  # above every gap, so that whatever flips comes before whatever does not


def choose_partner(
    scores: Any,
    mine: Any,
    *,
    own: Any = None,
    candidates: Any = None,
    rule: Partner = "widest",
    decision: Rule = AS_DECIDED,
) -> tuple[Any, Any, Any]:
    """Of (n, G) scores and the rows' own (n,): the partner chosen (n,), which flip, and ranks.

    A row is not a partner of itself, even where every other score is the same as its own: `own`
    says where it stands. `candidates` is a mask of those that were asked, where not all were. A
    rank is the gap as the decision ranks it, and 2 more for what flips. Ranks as near the highest
    as a score may be to the edge count as equal to it, and the first of them is chosen: scores that
    a network drives towards 0 and 1 differ in digits that move with the batch and the processor.
    """
    mine = mine[:, None]
    flips = decision.differ(scores, mine)
    ranks = decision.rank(scores, mine)
    if candidates is not None:
        ranks = where(candidates, ranks, -1.0)
    if own is not None:
        put(ranks, own, -1.0)
    ranks = where(flips, ranks + _FLIPS if rule == "widest" else 1.0 + _FLIPS, ranks)
    highest = ranks.argmax(1)
    rank = take(ranks, highest)
    first = find_first(ranks >= rank[:, None] - EDGE)
    return where(rank == rank, first, highest), flips, ranks  # a NaN is chosen, so that it is seen

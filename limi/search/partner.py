"""Which counterpart of a row is shown beside it; one rule for arrays and tensors."""

from __future__ import annotations

from typing import Any, Literal

from limi.decisions import differ, rounded
from limi.system.arrays import put, where

__all__ = ["Partner", "choose_partner", "gap_of"]

Partner = Literal["widest", "first"]
"""Which counterpart is shown: of those that flip (or of all, where none does) the one whose score
is furthest away, or the first in the order of combinations."""

_FLIPS = 2.0  # above every gap, so that whatever flips comes before whatever does not


def gap_of(score: Any, other: Any) -> Any:
    """How far scores lie apart, without the last digits: they move with the batch, and choose
    nobody."""
    return rounded(abs(score - other))


def choose_partner(
    scores: Any,
    mine: Any,
    *,
    own: Any = None,
    candidates: Any = None,
    rule: Partner = "widest",
) -> tuple[Any, Any, Any]:
    """Of (n, G) scores and the rows' own (n,): the partner chosen (n,), which flip, and ranks.

    A row is no partner of itself, even where every other score is the same as its own: `own` says
    where it stands. `candidates` is a mask of those that were asked, where not all were. Of equal
    ranks the first is chosen; a rank is the gap, and 2 more for what flips.
    """
    mine = mine[:, None]
    flips = differ(scores, mine)
    ranks = gap_of(scores, mine)
    if candidates is not None:
        ranks = where(candidates, ranks, -1.0)
    if own is not None:
        put(ranks, own, -1.0)
    ranks = where(flips, ranks + _FLIPS if rule == "widest" else 1.0 + _FLIPS, ranks)
    return ranks.argmax(1), flips, ranks

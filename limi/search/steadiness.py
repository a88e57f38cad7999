"""Whether a model answers the same for the same row each time, and flips that hold either way.

An answer may depend on chance (dropout left on, a randomised threshold), on the order of the rows,
or on the other rows of a batch (columns standardised within it). Such a model is tested all the
same: the report says how much its answers move, and a flip counts only where it is seen every time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limi.decisions import AS_DECIDED, Rule
from limi.search.check import MAX_BATCH, Checked
from limi.types import Mask, Rows, Scores

__all__ = ["SAMPLED", "TIMES", "Steadiness", "always_flip", "confirm", "sample"]

SAMPLED = 512
"""Rows that are asked four times before a run."""

TIMES = 10
"""How often both sides of a flip are asked of an unsteady model. A row whose two sides are decided
by the same coin passes with a chance of at most 2 / 4^10, two in a million, whatever the coin."""

_GROUP = 64  # rows of the small batches that a sample is asked in; of a small sample a quarter
_GROUPS = (8192, 1024, 256, 64)  # rows of a batch, in turn, while flips are confirmed
_COMPANY = 3  # rows of the table beside each row in question, where the batch has a say


@dataclass(frozen=True)
class Steadiness:
    """How many of some rows got another answer when they were asked again.

    Asked four times: as they stand, once more, in another order, and in small batches. The counts
    of rows with another score are against the first time.
    """

    rows: int
    questions: int
    again: int = 0
    reordered: int = 0
    regrouped: int = 0
    scores_moved: int = 0  # rows with another score at any time
    decisions_moved: int = 0  # rows with another decision at any time

    @property
    def steady(self) -> bool:
        """Did every answer stay?"""
        return not self.scores_moved

    @property
    def in_company(self) -> bool:
        """Do answers depend on the other rows of a batch, and on nothing else?"""
        return self.regrouped > 0 == self.again + self.reordered

    @property
    def per_flip(self) -> int:
        """Questions that confirming one flip may take."""
        return 0 if self.steady else 2 * TIMES * (1 + _COMPANY * self.in_company)

    def as_dict(self) -> dict[str, Any]:
        """For a report."""
        return {
            "rows": self.rows,
            "questions": self.questions,
            "scores_moved": self.scores_moved,
            "moved_by": {
                "asking again": self.again,
                "another order": self.reordered,
                "other batches": self.regrouped,
            },
            "decisions_moved": self.decisions_moved,
            "times": 1 if self.steady else TIMES,
        }


def sample(
    score: Callable[[Rows], Scores],
    rows: Rows,
    rng: np.random.Generator,
    *,
    n: int = SAMPLED,
    max_batch: int = MAX_BATCH,
    decision: Rule = AS_DECIDED,
) -> Steadiness:
    """Ask for n of the rows four times: twice as they stand, in another order, in small batches."""
    if not len(rows) or n < 1:
        return Steadiness(0, 0)
    chosen = rows[np.sort(rng.permutation(len(rows))[:n])]
    first, again = (_ask(score, chosen, max_batch) for _ in range(2))
    group = max(1, min(_GROUP, len(chosen) // 4, max_batch))
    others = {
        "again": again,
        "reordered": _shuffle(score, chosen, max_batch, rng),
        "regrouped": _shuffle(score, chosen, group, rng),
    }
    moved = {name: decision.moved(first, other) for name, other in others.items()}
    decided = [moved[name] & decision.differ(first, others[name]) for name in others]
    return Steadiness(
        rows=len(chosen),
        questions=4 * len(chosen),
        **{name: int(mask.sum()) for name, mask in moved.items()},
        scores_moved=int(np.any(list(moved.values()), axis=0).sum()),
        decisions_moved=int(np.any(decided, axis=0).sum()),
    )


def always_flip(
    score: Callable[[Rows], Scores],
    rows: Rows,
    partner: Rows,
    rng: np.random.Generator,
    *,
    company: Rows | None = None,
    max_batch: int = MAX_BATCH,
    decision: Rule = AS_DECIDED,
) -> tuple[Mask, int]:
    """Which pairs are decided differently every one of ten times, and the questions it took.

    Both rows of a pair must keep their decision. Each time they stand in another order and in
    batches of another size, among three times as many rows of `company` where it is given: a model
    that ranks or standardises is to see people like those of the table. A pair that fails is not
    asked again.
    """
    kept = np.ones(len(rows), dtype=bool)
    first = np.empty((2, len(rows)))
    questions = 0
    for time in range(TIMES):
        places = np.flatnonzero(kept)
        if not len(places):
            break
        pairs = np.concatenate([rows[places], partner[places]])
        size = min(_GROUPS[time % len(_GROUPS)], max_batch)
        answers = _shuffle(score, pairs, size, rng, company)
        questions += len(pairs) * (1 if company is None else 1 + _COMPANY)
        mine, other = np.split(answers, 2)
        if not time:
            first[:] = mine, other
        begun = first[:, places]
        changed = decision.differ(mine, begun[0]) | decision.differ(other, begun[1])
        kept[places] = decision.differ(mine, other) & ~changed
    return kept, questions


def confirm(
    checked: Checked,
    score: Callable[[Rows], Scores],
    rng: np.random.Generator,
    *,
    company: Rows | None = None,
    max_batch: int = MAX_BATCH,
    decision: Rule = AS_DECIDED,
) -> Checked:
    """Verdicts of which only those flips are left that are seen every time."""
    places = np.flatnonzero(checked.flips)
    rows, partner = checked.rows[places], checked.partner[places]
    kept, questions = always_flip(
        score, rows, partner, rng, company=company, max_batch=max_batch, decision=decision
    )
    flips = np.zeros(len(checked), dtype=bool)
    flips[places[kept]] = True
    return replace(checked, flips=flips, queries=checked.queries + questions)


def _ask(score: Callable[[Rows], Scores], rows: Rows, size: int) -> Scores:
    starts = range(0, len(rows), size)
    return np.concatenate([np.empty(0), *(score(rows[i : i + size]) for i in starts)])


def _shuffle(
    score: Callable[[Rows], Scores],
    rows: Rows,
    size: int,
    rng: np.random.Generator,
    company: Rows | None = None,
) -> Scores:
    """Scores of rows that are asked in another order, `size` at a time with their company."""
    scores = np.empty(len(rows))
    order = rng.permutation(len(rows))
    step = size if company is None else max(1, size // (1 + _COMPANY))
    for start in range(0, len(rows), step):
        part = order[start : start + step]
        asked = rows[part]
        if company is not None:
            beside = company[rng.integers(len(company), size=_COMPANY * len(part))]
            asked = np.concatenate([asked, beside])
        scores[part] = score(asked)[: len(part)]
    return scores

"""Each group by itself: how many, how often decided favorably, how often wrongly, with intervals.

Groups are the values of a protected column, bands of a number with many values, and with several
protected columns their intersections. A group of fewer rows than a rate needs is counted, and
nothing else is said of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from limi.metrics._base import Decided
from limi.metrics._enough import FEWEST_TOLD
from limi.metrics._groups import Cut, cross, cut
from limi.metrics._rate import Rate, rate_of
from limi.metrics.group import Tally, tally
from limi.table.schema import Schema

__all__ = ["FOUR_FIFTHS", "GroupLine", "group_lines"]

FOUR_FIFTHS = 0.8
"""Selected less than this share of what the most selected group is: the four-fifths rule of the
guidelines on employee selection of the United States."""

_MOST_GROUPS = 60  # of one table, the largest of them
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class GroupLine:
    """One group; a rate is None where there are no labels, or too few rows."""

    columns: tuple[str, ...]
    group: str  # "Female"; of an intersection "sex Female, race Black"
    n: int
    selection: Rate | None = None
    what_if: Rate | None = None  # of all people, decided as if they were of this group
    accuracy: Rate | None = None
    false_favorable: Rate | None = None  # of those whose true label is not favorable
    false_unfavorable: Rate | None = None  # of those whose true label is
    impact_ratio: Rate | None = None  # selection against that of the most selected group
    reference: bool = False  # is it that group?

    @property
    def is_enough(self) -> bool:
        """Are there enough rows to say more than how many?"""
        return self.selection is not None

    @property
    def below_four_fifths(self) -> bool | None:
        """Is it selected less than four fifths as often, beyond its interval? None: not known."""
        ratio = self.impact_ratio
        if ratio is None or (ratio.low < FOUR_FIFTHS <= ratio.high):
            return None
        return ratio.high < FOUR_FIFTHS


def group_lines(
    schema: Schema,
    decided: Decided,
    what_if: Mapping[tuple[tuple[str, ...], str], Rate] | None = None,
) -> tuple[GroupLine, ...]:
    """A line per group of each protected column, then of their intersections.

    `what_if` holds the rate of all people as if they were of a group, by columns and group.
    """
    cuts = [
        cut(schema.columns[position], decided.rows[:, position])
        for position in schema.protected_index
    ]
    lines: list[GroupLine] = []
    for name, one in zip(schema.protected, cuts, strict=True):
        lines += _lines((name,), one, decided, what_if or {})
    if len(cuts) > 1:
        together = cross(schema.protected, cuts)
        lines += _lines(tuple(schema.protected), together, decided, what_if or {})
    return tuple(lines)


def _lines(
    columns: tuple[str, ...],
    parted: Cut,
    decided: Decided,
    what_if: Mapping[tuple[tuple[str, ...], str], Rate],
) -> list[GroupLine]:
    sizes = parted.sizes
    shown = np.sort(np.argsort(-sizes, kind="stable")[:_MOST_GROUPS])
    tallies = {
        int(place): tally(decided.favorable, decided.labels, parted.mask(place))
        for place in shown
        if sizes[place]
    }
    told = {place: one for place, one in tallies.items() if one.rows >= FEWEST_TOLD}
    best = max(told, key=lambda place: told[place].favorable / told[place].rows, default=None)
    return [
        _line(
            columns,
            parted.words[place],
            one,
            None if best is None else told[best],
            what_if.get((columns, parted.words[place])),
            has_labels=decided.labels is not None,
            reference=place == best,
            n_groups=len(told),
        )
        for place, one in tallies.items()
    ]


def _line(
    columns: tuple[str, ...],
    group: str,
    one: Tally,
    best: Tally | None,
    what_if: Rate | None,
    *,
    has_labels: bool,
    reference: bool,
    n_groups: int,
) -> GroupLine:
    if one.rows < FEWEST_TOLD or best is None:
        return GroupLine(columns, group, one.rows, what_if=what_if)
    right = one.true_favorable + one.negatives - one.false_favorable
    return GroupLine(
        columns,
        group,
        one.rows,
        rate_of(one.favorable, one.rows),
        what_if,
        _enough(right, one.positives + one.negatives) if has_labels else None,
        _enough(one.false_favorable, one.negatives) if has_labels else None,
        _enough(one.positives - one.true_favorable, one.positives) if has_labels else None,
        _ratio(one, best, reference=reference, n_groups=n_groups),
        reference,
    )


def _enough(hits: int, n: int) -> Rate | None:
    return rate_of(hits, n) if n >= FEWEST_TOLD else None


def _ratio(one: Tally, best: Tally, *, reference: bool, n_groups: int) -> Rate | None:
    """How often a group is selected against the most selected one, with Katz's log interval.

    The reference is the one of all others that the rates chose, so the interval holds for each of
    them at once (Bonferroni).
    """
    from scipy.special import ndtri  # late: it takes 0.15 s

    if not best.favorable:
        return None
    if reference:
        return Rate(1.0, 1.0, 1.0, one.rows)
    share, top = one.favorable / one.rows, best.favorable / best.rows
    if not one.favorable:
        # Half a person more in both groups, because a logarithm of 0 has no width.
        share, top = 0.5 / (one.rows + 0.5), (best.favorable + 0.5) / (best.rows + 0.5)
    hits = max(one.favorable, 0.5)
    width = math.sqrt(max((1 - share) / hits, 0.0) + max((1 - top) / best.favorable, 0.0)) * float(
        ndtri(1 - (1 - _CONFIDENCE) / 2 / max(n_groups - 1, 1))
    )
    estimate = (one.favorable / one.rows) / (best.favorable / best.rows)
    middle = share / top
    low = 0.0 if not one.favorable else middle * math.exp(-width)
    return Rate(estimate, low, middle * math.exp(width), one.rows)

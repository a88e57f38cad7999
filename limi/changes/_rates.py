"""The same people before and after: which of them flip, and where that changed.

Both models are asked the same rows, so only those count that flip under one of them. McNemar's
exact test asks whether a fair coin could have chosen which model those flip under; the interval of
the difference is Tango's score interval, which keeps near its confidence where few rows changed (on
150 pairs of rates and numbers of rows 96 % on average and 93 % at worst, where the textbook's falls
to nothing). Better or worse is said where both agree. All comparisons of a diff hold together:
p-values are Holm's, and intervals have their part of the error each.

Regions are learned on one half of the rows from those whose verdict changed, and tested on the
other half.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limi.metrics._holm import holm
from limi.metrics._rate import Rate, rate_of
from limi.metrics.regions import LEAST_FLIPS, Region, learn_regions
from limi.metrics.what_if import mcnemar, paired_interval
from limi.table.schema import Schema
from limi.types import Mask, Rows

__all__ = ["LEVEL", "Change", "ChangedRegion", "Regions", "changed_regions", "compare"]

LEVEL = 0.05  # chance that anything is called better or worse and is not
_MOST_REGIONS = 4  # of each direction


@dataclass(frozen=True)
class Change:
    """How often decisions flip before and after, on the same rows."""

    before: Rate
    after: Rate
    gone: int  # rows that flipped and do no longer
    new: int  # rows that flip and did not
    low: float  # of the difference of the two rates, after minus before
    high: float
    p_value: float  # McNemar's, exact and two-sided
    corrected: float  # Holm's, over all comparisons that are shown together

    @property
    def n(self) -> int:
        """Rows that both models were asked."""
        return self.before.n

    @property
    def difference(self) -> float:
        """The rate after minus the rate before."""
        return (self.new - self.gone) / self.n if self.n else float("nan")

    @property
    def word(self) -> str:
        """`better`, `worse`, or `no difference shown`."""
        if self.corrected > LEVEL or self.low <= 0 <= self.high:
            return "no difference shown"
        return "better" if self.new < self.gone else "worse"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rows": self.n,
            "before": _plain(self.before),
            "after": _plain(self.after),
            "no_longer_flip": self.gone,
            "newly_flip": self.new,
            "difference": self.difference,
            "low": self.low,
            "high": self.high,
            "p_value": self.p_value,
            "corrected_p_value": self.corrected,
            "verdict": self.word,
        }


def _plain(rate: Rate) -> dict[str, float]:
    return {"value": rate.estimate, "low": rate.low, "high": rate.high}


@dataclass(frozen=True)
class ChangedRegion:
    """A region in which the rate changed, on rows that it was not learned from."""

    region: Region
    share: float  # of the people who lie in it
    change: Change

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"region": str(self.region), "share": self.share, **self.change.as_dict()}


@dataclass(frozen=True)
class Regions:
    """Where the rate changed, the largest difference first, and how that came about."""

    changed: tuple[ChangedRegion, ...] = ()
    learned: int = 0  # rows
    tried: int = 0  # regions
    reason: str = ""  # why there are none
    population: str = ""

    def without(self, hidden: Collection[str]) -> Regions:
        """The same without regions that hidden columns describe."""
        shown = tuple(
            one
            for one in self.changed
            if not any(part.column.name in hidden for part in one.region.conditions)
        )
        lost = len(self.changed) - len(shown)
        reason = "what was found mentions columns that are hidden" if lost and not shown else ""
        return replace(self, changed=shown, reason=reason or self.reason)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "population": self.population,
            "rows_learned_from": self.learned,
            "tried": self.tried,
            "reason": self.reason,
            "regions": [one.as_dict() for one in self.changed],
        }


def compare(pairs: Sequence[tuple[Mask, Mask]], level: float = LEVEL) -> list[Change]:
    """Verdicts before and after, of one or several sets of rows; all answers hold together."""
    counts = [
        (len(had), int(had.sum()), int(has.sum()), int((had & ~has).sum()), int((has & ~had).sum()))
        for had, has in pairs
    ]
    rows, _, _, gone, new = np.array(counts, dtype=np.int64).reshape(-1, 5).T
    p_values = mcnemar(gone, new)
    low, high = paired_interval(new, gone, np.maximum(rows, 1), 1 - level / max(1, len(counts)))
    # Of no rows nothing is known.
    low, high = np.where(rows > 0, low, -1.0), np.where(rows > 0, high, 1.0)
    told = zip(counts, low, high, p_values, holm(p_values), strict=True)
    return [
        Change(
            rate_of(before, n),
            rate_of(after, n),
            gone,
            new,
            *(float(number) for number in (low, high, p_value, corrected)),
        )
        for (n, before, after, gone, new), low, high, p_value, corrected in told
    ]


def changed_regions(
    schema: Schema, rows: Rows, before: Mask, after: Mask, rng: np.random.Generator
) -> Regions:
    """Regions of people in which decisions flip less often, or more often, than before."""
    gone, new = before & ~after, after & ~before
    enough = [mask for mask in (gone, new) if int(mask.sum()) >= LEAST_FLIPS]
    if not enough:
        return Regions(
            reason=(
                f"{int(gone.sum()):,} of {len(rows):,} rows no longer flip and {int(new.sum()):,} "
                f"newly do; at least {LEAST_FLIPS} of each are needed to learn regions from one "
                "half of them and test them on the other"
            )
        )
    order = rng.permutation(len(rows))
    learning, testing = np.split(order, [len(order) // 2])
    regions: list[Region] = []
    for mask in enough:
        found = learn_regions(schema, rows[learning], mask[learning], most=_MOST_REGIONS)
        regions += [region for region in found if region not in regions]
    held = [region.mask(rows[testing]) for region in regions]
    changes = compare([(before[testing][mask], after[testing][mask]) for mask in held])
    shown = [
        ChangedRegion(region, float(mask.mean()), change)
        for region, mask, change in zip(regions, held, changes, strict=True)
        if change.word != "no difference shown"
    ]
    shown.sort(key=lambda one: -abs(one.change.difference))
    reason = "" if shown else _reason(len(regions))
    return Regions(tuple(shown), len(learning), len(regions), reason)


def _reason(tried: int) -> str:
    if not tried:
        return "the rows that changed do not cluster anywhere"
    return (
        f"none of the {tried} regions that stood out in one half of the rows was confirmed in the "
        "other"
    )

"""How differently two groups are decided: selection, and errors by true class.

Signed differences carry the names and the sign of AIF360: what the others get minus what the
privileged group gets, so that below 0 the others lose. The LIMI paper's SPD and AOD are absolute;
its AOD is AIF360's `average_odds_error`, not the `average_odds_difference`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.metrics._base import GROUP, Figure, Part, Tree, metric
from limi.metrics._enough import FEWEST_TOLD
from limi.metrics._rate import Rate, rate_of
from limi.types import Labels, Mask

__all__ = [
    "Difference",
    "Groups",
    "Tally",
    "average_odds_difference",
    "average_odds_error",
    "differences",
    "equal_opportunity_difference",
    "parity_gap",
    "selection_rate",
    "statistical_parity_difference",
    "tally",
]


@dataclass(frozen=True)
class Tally:
    """What a group's decisions come to, in counts."""

    rows: int
    favorable: int  # decided favorably
    positives: int = 0  # rows whose true label is favorable
    true_favorable: int = 0  # of those, decided favorably
    negatives: int = 0
    false_favorable: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(self.counts, other.counts, strict=True)))

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts in order."""
        return (
            *(self.rows, self.favorable, self.positives),
            *(self.true_favorable, self.negatives, self.false_favorable),
        )

    @staticmethod
    def total(parts: Iterable[Tally]) -> Tally:
        """Several groups as one."""
        return sum(parts, Tally(0, 0))


@dataclass(frozen=True)
class Difference:
    """A difference of two groups with its 95 % interval, or the reason why there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


def selection_rate(decisions: Mask, group: Mask | None = None) -> float:
    """Share of favorable decisions, of all rows or of a group.

    favorable / rows, from 0 to 1; neither end is better, differences between groups are what
    counts. InvalidInput for a group without rows.

    >>> selection_rate(np.array([True, False, True, True]))
    0.75
    """
    decided = decisions if group is None else decisions[group]
    if not len(decided):
        raise InvalidInput("a group has no rows, so it has no selection rate; choose another group")
    return float(np.mean(decided))


def statistical_parity_difference(decisions: Mask, privileged: Mask) -> float:
    """Selection rate of the others minus that of the privileged group (AIF360's sign).

    P(favorable | others) - P(favorable | privileged), from -1 to 1; 0 is best, below 0 the others
    are selected less often.

    >>> statistical_parity_difference(np.array([1, 0, 1, 1]) > 0, np.array([0, 0, 1, 1]) > 0)
    -0.5
    """
    return _define(_both(decisions, None, privileged)["statistical_parity_difference"])


def parity_gap(decisions: Mask, privileged: Mask) -> float:
    """Absolute difference of two groups' selection rates (the paper's SPD).

    |P(favorable | others) - P(favorable | privileged)|, from 0 to 1; lower is better. With two
    groups it is Fairlearn's `demographic_parity_difference`.
    """
    return abs(statistical_parity_difference(decisions, privileged))


def equal_opportunity_difference(decisions: Mask, labels: Labels, privileged: Mask) -> float:
    """True positive rate of the others minus that of the privileged group (AIF360's sign).

    P(favorable | label favorable, others) - P(favorable | label favorable, privileged), from -1
    to 1; 0 is best. InvalidInput, and no number, for a group without rows of that class.
    """
    return _define(_both(decisions, labels, privileged)["equal_opportunity_difference"])


def average_odds_difference(decisions: Mask, labels: Labels, privileged: Mask) -> float:
    """Mean of the differences in false and in true positive rate (AIF360's sign).

    ((FPR_others - FPR_privileged) + (TPR_others - TPR_privileged)) / 2, from -1 to 1; 0 is best,
    but gaps of opposite sign cancel: see `average_odds_error`. InvalidInput for a group without
    rows of one true class.
    """
    return _define(_both(decisions, labels, privileged)["average_odds_difference"])


def average_odds_error(decisions: Mask, labels: Labels, privileged: Mask) -> float:
    """Mean of the absolute gaps in false and in true positive rate (the paper's AOD).

    (|FPR_others - FPR_privileged| + |TPR_others - TPR_privileged|) / 2, from 0 to 1; lower is
    better. InvalidInput for a group without rows of one true class.

    >>> decided, labels = np.array([0, 1, 1, 1]) > 0, np.array([0, 1, 0, 1])
    >>> average_odds_error(decided, labels, np.array([True, True, False, False]))
    0.5
    """
    return _define(_both(decisions, labels, privileged)["average_odds_error"])


def tally(decisions: Mask, labels: Labels | None = None, group: Mask | None = None) -> Tally:
    """Counts of a group; rows with an unknown label (-1) count for selection alone."""
    mask = np.ones(len(decisions), dtype=bool) if group is None else group
    if not (len(mask) == len(decisions) == (len(decisions) if labels is None else len(labels))):
        raise InvalidInput(
            f"there are {len(decisions)} decisions, {len(mask)} group cells and "
            f"{'no' if labels is None else len(labels)} labels; give one of each for every row"
        )
    decided = np.asarray(decisions, dtype=bool)
    counts = [mask.sum(), (mask & decided).sum()]
    for actual in (1, 0) if labels is not None else ():
        among = mask & (labels == actual)
        counts += [among.sum(), (among & decided).sum()]
    return Tally(*(int(count) for count in counts))


def differences(
    privileged: Tally,
    others: Tally,
    *,
    names: tuple[str, str] = ("the privileged group", "the other group"),
    confidence: float = 0.95,
) -> dict[str, Difference]:
    """Every difference of two groups by its name, from their counts.

    Intervals are of the square-and-add kind (Newcombe's for a difference of two shares, Zou and
    Donner's for a mean of two) over Wilson's intervals of the shares. The absolute ones take
    the ends of the signed ones; `average_odds_error` those of its two gaps at half the error each.
    """
    pair = (others, privileged)
    selected = _Shares([(t.favorable, t.rows) for t in pair])
    opportunity = _Shares([(t.true_favorable, t.positives) for t in pair])
    alarm = _Shares([(t.false_favorable, t.negatives) for t in pair])
    lacking = _lacking(pair, (names[1], names[0]), ("rows",))
    no_class = lacking or _lacking(pair, (names[1], names[0]), ("positives", "negatives"))
    no_chance = lacking or _lacking(pair, (names[1], names[0]), ("positives",))
    both = opportunity.joined(alarm)
    halves = np.array([0.5, -0.5, 0.5, -0.5])
    each = (1 + confidence) / 2
    return {
        "statistical_parity_difference": selected.difference(confidence, lacking),
        "parity_gap": _absolute([selected.difference(confidence, lacking)]),
        "equal_opportunity_difference": opportunity.difference(confidence, no_chance),
        "average_odds_difference": both.linear(halves, confidence, no_class),
        "average_odds_error": _absolute(
            [opportunity.difference(each, no_class), alarm.difference(each, no_class)]
        ),
    }


class _Shares:
    """Independent shares, others before privileged."""

    def __init__(self, counts: list[tuple[int, int]]) -> None:
        self.hits, self.n = np.array(counts, dtype=np.float64).T

    def joined(self, other: _Shares) -> _Shares:
        hits, n = np.append(self.hits, other.hits), np.append(self.n, other.n)
        return _Shares(list(zip(hits.tolist(), n.tolist(), strict=True)))

    def difference(self, confidence: float, reason: str) -> Difference:
        return self.linear(np.array([1.0, -1.0]), confidence, reason)

    def linear(self, weights: NDArray[np.float64], confidence: float, reason: str) -> Difference:
        """Sum of weighted shares with its interval."""
        if reason:
            return Difference(None, reason=reason)
        share = self.hits / self.n
        low, high = _wilson(self.hits, self.n, confidence)
        # A negative weight turns an interval round.
        down = np.where(weights > 0, share - low, high - share)
        up = np.where(weights > 0, high - share, share - low)
        value = float(weights @ share)
        return Difference(
            round(value, 12),
            max(-1.0, value - math.sqrt(((weights * down) ** 2).sum())),
            min(1.0, value + math.sqrt(((weights * up) ** 2).sum())),
        )


def _wilson(
    hits: NDArray[np.float64], n: NDArray[np.float64], confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from scipy.special import ndtri  # late: it takes 0.15 s

    z = float(ndtri((1 + confidence) / 2))
    middle = (hits + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(hits * (n - hits) / n + z**2 / 4)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def _absolute(gaps: list[Difference]) -> Difference:
    """Mean absolute value of signed differences, with the ends that they allow."""
    values, lows, highs = [], [], []
    for gap in gaps:
        if gap.value is None or gap.low is None or gap.high is None:
            return gap
        values.append(abs(gap.value))
        lows.append(max(0.0, gap.low, -gap.high))
        highs.append(max(abs(gap.low), abs(gap.high)))
    value, low, high = (round(float(np.mean(part)), 12) for part in (values, lows, highs))
    return Difference(value, low, high)


_CLASSES = {
    "rows": "no rows",
    "positives": "no row whose true label is favorable",
    "negatives": "no row whose true label is unfavorable",
}


def _lacking(pair: tuple[Tally, Tally], names: tuple[str, str], needed: tuple[str, ...]) -> str:
    """Which group lacks what; empty where nothing is lacking."""
    gaps = [
        f"{name} has {_CLASSES[what]}"
        for name, group in zip(names, pair, strict=True)
        for what in needed
        if not getattr(group, what)
    ]
    return "; ".join(gaps)


def _both(decisions: Mask, labels: Labels | None, privileged: Mask) -> Mapping[str, Difference]:
    mask = np.asarray(privileged, dtype=bool)
    return differences(tally(decisions, labels, mask), tally(decisions, labels, ~mask))


def _define(difference: Difference) -> float:
    if difference.value is None:
        raise InvalidInput(
            f"{difference.reason}, so this difference is undefined; choose other groups or add rows"
        )
    return difference.value


# -- measured in every run, for every protected column ----------------------------------


@dataclass(frozen=True)
class Groups:
    """Two groups of people by a protected column: the privileged one and all others."""

    privileged: Tally
    others: Tally
    names: tuple[str, str]  # of the privileged group, and of the others, for sentences
    confidence: float = 0.95  # of each interval; higher where the rates chose the group

    @cached_property
    def differences(self) -> Mapping[str, Difference]:
        """Every difference of the two by its name."""
        return differences(
            self.privileged, self.others, names=self.names, confidence=self.confidence
        )

    def figure(self, name: str) -> Figure:
        """One of the differences."""
        for who, side in zip(self.names, (self.privileged, self.others), strict=True):
            if side.rows < FEWEST_TOLD:
                few = f"{who} has {side.rows} rows; a group needs {FEWEST_TOLD}"
                return Figure(None, reason=few)
        found = self.differences[name]
        return Figure(found.value, found.low, found.high, reason=found.reason)


def _selection_parts(entry: Tree, column: Tree) -> Iterator[Part]:
    aid = "share of favorable decisions among these rows; differences are what counts"
    group = f"{column['column']} {column['privileged']}"
    for side, who in (("privileged", group), ("others", "the others")):
        yield Part(f"selection rate of {who}", aid, entry[side])


@metric(
    GROUP,
    name="selection_rate",
    formula="favorable decisions / rows, of each group",
    range="0 to 100 %",
    better="neither",
    unit="percent",
    main=False,
    parts=_selection_parts,
)
def _measure_selection(groups: Groups) -> Mapping[str, Rate]:
    """Share of favorable decisions, of each group."""
    sides = {"privileged": groups.privileged, "others": groups.others}
    return {
        name: rate_of(side.favorable, side.rows, groups.confidence) for name, side in sides.items()
    }


@metric(
    GROUP,
    name="parity_gap",
    title="statistical parity gap",
    formula="|P(favorable given others) - P(favorable given privileged)|",
    range="0 to 1",
    better="lower",
    short="SPD",
)
def _measure_parity_gap(groups: Groups) -> Figure:
    """By how much the two groups' shares of favorable decisions differ."""
    return groups.figure("parity_gap")


@metric(
    GROUP,
    name="average_odds_error",
    title="average odds gap",
    formula="(|gap in true positive rate| + |gap in false positive rate|) / 2",
    range="0 to 1",
    better="lower",
    short="AOD",
    needs_labels=True,
)
def _measure_odds_error(groups: Groups) -> Figure:
    """Gap in favorable decisions among people of the same true label, averaged over both labels."""
    return groups.figure("average_odds_error")


@metric(
    GROUP,
    name="equal_opportunity_difference",
    formula="true positive rate, others minus privileged",
    range="-1 to 1",
    better="zero",
    main=False,
    needs_labels=True,
)
def _measure_opportunity(groups: Groups) -> Figure:
    """Among people whose true label is favorable, others minus privileged: below 0 the others get
    less."""
    return groups.figure("equal_opportunity_difference")


@metric(
    GROUP,
    name="statistical_parity_difference",
    formula="others minus privileged, signed as in AIF360",
    range="-1 to 1",
    better="zero",
    main=False,
)
def _measure_parity(groups: Groups) -> Figure:
    """SPD with its sign, others minus privileged."""
    return groups.figure("statistical_parity_difference")


@metric(
    GROUP,
    name="average_odds_difference",
    formula="mean of both signed gaps, which may cancel",
    range="-1 to 1",
    better="zero",
    main=False,
    needs_labels=True,
)
def _measure_odds(groups: Groups) -> Figure:
    """AOD with its sign; gaps of opposite sign cancel."""
    return groups.figure("average_odds_difference")

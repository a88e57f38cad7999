"""How bad findings are, and how many people that would be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Rule, restore_threshold
from limi.errors import InvalidInput
from limi.metrics._base import SEVERITY, Evidence, Figure, Part, Tree, metric
from limi.metrics._populations import name_population
from limi.metrics._rate import Rate, clopper_pearson
from limi.search.findings import Found
from limi.system.words import count
from limi.types import Scores

__all__ = [
    "Affected",
    "expected_affected",
    "margin",
    "priority",
    "require_volume",
    "score_gap",
    "severity_of",
]

_MOST_PEOPLE = 10**12
_ERROR = 0.05


@dataclass(frozen=True)
class Affected:
    """People of a stated volume whose decision would flip."""

    estimate: float
    low: int
    high: int
    volume: int


def score_gap(score: Scores, partner_score: Scores) -> Scores:
    """Distance of the two scores of each pair.

    What the partner's protected value is worth beside the person's own; other values may be worth
    more or less. |score - partner's score|, from 0 to 1; lower is better.
    """
    return np.abs(np.asarray(score) - np.asarray(partner_score))


def margin(score: Scores, partner_score: Scores, threshold: float = 0.5) -> Scores:
    """How far the less certain of the two decisions is from turning round.

    The distance of the nearer score from the threshold; a small one says that a slight change of
    the model would fix the pair, a large one that both decisions are firm.
    """
    distances = np.abs(np.stack([score, partner_score]) - threshold)
    return np.asarray(distances.min(axis=0))


def require_volume(volume: int) -> None:
    """InvalidInput where a volume is not a number of people."""
    if not 1 <= volume <= _MOST_PEOPLE:
        raise InvalidInput(
            f"volume is {volume}; give the number of people decided about, from 1 to "
            f"{_MOST_PEOPLE:,}"
        )


def expected_affected(rate: Rate, volume: int) -> Affected:
    """How many of `volume` people like those of the rate's population would flip.

    rate x volume; lower is better. The 95 % interval holds the chance of the rate's sample and that
    of the volume itself, half of the error each: of 20 people at a rate of 10 % it may well be 5.
    It says nothing about people unlike the population.
    """
    from scipy.stats import binom  # late, because it takes a second

    low, high = clopper_pearson(round(rate.estimate * rate.n), rate.n, 1 - _ERROR / 2)
    return Affected(
        rate.estimate * volume,
        int(binom.ppf(_ERROR / 4, volume, low)),
        int(binom.ppf(1 - _ERROR / 4, volume, high)),
        volume,
    )


def severity_of(rule: Rule, found: Found) -> NDArray[np.float64]:
    """How severe each finding is, in the rule's own unit: how far the two answers are apart, and
    of bands how many of them all protected variants span."""
    if len(found.span):
        return found.span
    return np.asarray(rule.gap(found.score, found.partner_score), dtype=np.float64)


def priority(severity: Scores, naturalness: NDArray[np.float64]) -> NDArray[np.float64]:
    """Severity times naturalness: what to look at first, from 0 to 1.

    Where naturalness is unknown (NaN), severity alone counts.
    """
    return severity * np.where(np.isnan(naturalness), 1.0, naturalness)


# -- measured in every run --------------------------------------------------------------


@metric(
    SEVERITY,
    name="score_gap",
    formula="|score - partner's score|, mean over the findings (their column `severity`)",
    range="0 to 1",
    better="lower",
    beside="largest {largest}",
)
def _measure_score_gap(evidence: Evidence) -> Figure | None:
    """Distance of the two scores of a pair, mean over the findings: what the partner's protected
    value is worth beside the person's own."""
    found = evidence.found
    if not len(found) or evidence.decision.kind != "favorable":
        return None
    return _spread(score_gap(*_own_scores(evidence)))


def _own_scores(evidence: Evidence) -> tuple[Scores, Scores]:
    """The model's own scores of both rows, also where they were moved for a threshold."""
    found, threshold = evidence.found, evidence.threshold
    if threshold is None:
        return found.score, found.partner_score
    own, other = (restore_threshold(s, threshold) for s in (found.score, found.partner_score))
    return own, other


@metric(
    SEVERITY,
    name="margin",
    formula="distance from the threshold (mostly 0.5) of the less certain of the two scores, mean "
    "over the findings",
    range="0 to 0.5",
    better="lower",
    beside="largest {largest}",
    main=False,
)
def _measure_margin(evidence: Evidence) -> Figure | None:
    """How far the less certain of the two decisions lies from turning round, mean over the
    findings."""
    found = evidence.found
    if not len(found) or evidence.decision.kind != "favorable":
        return None
    return _spread(margin(*_own_scores(evidence), evidence.threshold or 0.5))


@metric(
    SEVERITY,
    name="answer_gap",
    formula="distance of the two answers, mean over the findings: the difference of numbers, or "
    "places between ordered classes; if decisions are bands, how many bands the protected variants "
    "span (their column `severity`)",
    range="from 0",
    better="lower",
    beside="largest {largest}",
)
def _measure_answer_gap(evidence: Evidence) -> Figure | None:
    """How far apart the two answers of a pair are, mean over the findings: in the unit of numbers
    or in places of ordered classes; of bands, how many all protected variants span."""
    found = evidence.found
    rule = evidence.decision
    plain = rule.kind == "class" and not rule.ordered
    if not len(found) or rule.kind == "favorable" or plain:
        return None
    return _spread(severity_of(rule, found))


def _spread(values: Scores) -> Figure:
    return Figure(
        float(values.mean()),
        beside={"median": float(np.median(values)), "largest": float(values.max())},
    )


def _affected_parts(entry: Tree, family: Tree) -> Iterator[Part]:
    for population in [name for name in entry if name != "volume"]:
        yield Part(
            f"people affected, by {name_population(population)}",
            f"of {count(entry['volume'])} people like these, how many would flip",
            entry[population],
        )


@metric(
    SEVERITY,
    name="affected",
    title="people affected",
    formula="rate x volume; the 95 % interval allows for the sample behind the rate and for the "
    "chance in the volume itself",
    range="",
    better="lower",
    unit="count",
    parts=_affected_parts,
)
def _measure_affected(evidence: Evidence) -> None:
    """People of a stated volume whose decision would flip (`limi metrics RUN --volume N`)."""
    # A run knows no volume; `limi.metrics.collect.answer_request` answers who states one later.

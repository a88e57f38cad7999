"""What trials show: rates beside the placebo's, the signed effect, and doses that would be seen.

Two things vary, and an interval that forgets one of them is too short. Cases vary: those of one
latent are one draw. And directions vary: the way across the protected plane is one direction, and
random directions of the same length already flip decisions at rates that differ. So the rate of the
twins is held to the spread of the placebo's directions, as one more of them would be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from limi.decisions import favors
from limi.images._base import logits, probability
from limi.images.trials import Trials
from limi.types import Index, Mask, Scores

__all__ = ["DOSES", "Dose", "Effect", "Excess", "dose", "measure_doses", "see_effect", "see_excess"]

DOSES = (0.25, 0.5, 1.0, 2.0, 4.0)
_CONFIDENCE = 0.95
_FEWEST = 2  # of anything that has a spread


@dataclass(frozen=True)
class Excess:
    """Flips of twins beyond those of placebos from the same starts, as shares of `n` cases.

    What the judge sees of the truth changing is taken off both before decisions are compared.
    """

    n: int  # twins whose groups are seen by scorer and judge
    rate: float  # of them: decision flips, truth kept
    floor: float  # the same of their placebos
    excess: float
    low: float
    high: float
    directions: float  # spread of the placebo's rate between directions

    @property
    def seen(self) -> bool:
        """Is it more than random directions give?"""
        return self.low > 0


@dataclass(frozen=True)
class Effect:
    """The mean change of the target's logit from the second group to the first."""

    n: int  # valid twins
    effect: float
    low: float
    high: float
    direction: float  # share of twins whose own effect has the sign of the mean
    from_first: float  # of those that started in the first group
    from_second: float
    floor: float  # what 95 of 100 random directions of the same length stay within

    @property
    def seen(self) -> bool:
        """Does it stand out from random directions?"""
        return min(abs(self.low), abs(self.high)) > self.floor and self.low * self.high > 0


@dataclass(frozen=True)
class Dose:
    """A bias of known size that was added to the target, and what this run makes of it."""

    dose: float
    effect: Effect
    excess: Excess
    added: float  # logits that it adds to the effect
    effect_seen: bool
    excess_seen: bool


def see_excess(trials: Trials) -> Excess:
    """Flips of twins beyond the placebo's."""
    some = trials[trials.confirmed & ~np.isnan(trials.placebo)]
    n = len(some)
    mine = (some.flips_beyond & some.keeps_truth).astype(np.float64)
    other = (some.flips_placebo_beyond & some.keeps_truth_placebo).astype(np.float64)
    if n < _FEWEST:
        nan = math.nan
        return Excess(n, _mean(mine), _mean(other), nan, -math.inf, math.inf, nan)
    gap = mine - other
    between = _between_directions(some)
    n_directions = len(np.unique(some.direction))
    # Two pairs more, of which one twin flips and one placebo: none seen is not none there.
    unseen = 2 / (n + 2) ** 2
    wide = _clustered_variance(gap, some.case) + between * (1 + 1 / n_directions) + unseen
    half = _quantile(n_directions) * math.sqrt(wide)
    excess = float(gap.mean())
    low, high = max(-1.0, excess - half), min(1.0, excess + half)
    return Excess(n, _mean(mine), _mean(other), excess, low, high, math.sqrt(between))


def see_effect(trials: Trials) -> Effect:
    """The signed effect of valid twins; its floor is that of the placebo's directions."""
    some = trials[trials.valid]
    n, values = len(some), some.effect
    if n < _FEWEST:
        nan = math.nan
        return Effect(n, _mean(values), -math.inf, math.inf, nan, nan, nan, nan)
    effect = float(values.mean())
    half = _quantile(len(np.unique(some.case))) * math.sqrt(_clustered_variance(values, some.case))
    second = favors(some.protected)
    return Effect(
        n,
        effect,
        effect - half,
        effect + half,
        float((np.sign(values) == np.sign(effect)).mean()),
        _mean(values[~second]),
        _mean(values[second]),
        _floor(some),
    )


def dose(trials: Trials, size: float) -> Trials:
    """What the trials would show if the target were biased so much against the second group.

    The bias is size * tanh(logit / 2) of the protected score: nothing has to be asked again.
    """

    def biased(scores: Scores, protected: Scores) -> Scores:
        return probability(logits(scores) - size * np.tanh(logits(protected) / 2))

    return replace(
        trials,
        score=biased(trials.score, trials.protected),
        twin=biased(trials.twin, trials.protected_twin),
        placebo=biased(trials.placebo, trials.protected_placebo),
    )


def measure_doses(trials: Trials, sizes: Sequence[float] = DOSES) -> tuple[Dose, ...]:
    """Planted biases, from small to large; the target's own effect is taken off before judging."""
    own = see_effect(trials).effect
    found = []
    for size in sizes:
        planted = dose(trials, size)
        effect, excess = see_effect(planted), see_excess(planted)
        added = effect.effect - own
        half = effect.high - effect.effect
        is_seen = added - half > effect.floor
        found.append(Dose(size, effect, excess, added, bool(is_seen), excess.seen))
    return tuple(found)


def _clustered_variance(values: Scores, cluster: Index) -> float:
    """Of the mean, where values of one cluster are one draw."""
    _, place = np.unique(cluster, return_inverse=True)
    sums = np.bincount(place, weights=values - values.mean())
    n = len(sums)
    if n < _FEWEST:
        return math.inf
    return float((sums**2).sum() / len(values) ** 2 * n / (n - 1))


def _by_direction(values: Scores, direction: Index) -> Scores:
    """The mean of each direction that has two values or more."""
    _, place = np.unique(direction, return_inverse=True)
    n = np.bincount(place)
    mean = np.bincount(place, weights=values) / n
    means: Scores = mean[n >= _FEWEST]
    return means


def _between_directions(trials: Trials) -> float:
    """Variance of the rate at which placebos flip from one direction to another.

    Few cases have one direction, and their rate is mostly chance. How far a direction moves scores
    is known much better, so each is given the rate that its mean move would have on all cases.
    """
    moves = _by_direction(trials.effect_placebo, trials.direction)
    if len(moves) < _FEWEST:
        return 0.0
    here = logits(trials.score)[:, None]
    rates = ((here > 0) != (here + moves > 0)).mean(axis=0)
    return float(rates.var(ddof=1))


def _floor(trials: Trials) -> float:
    """How far a direction of the placebo moves the score, as 95 of 100 stay within.

    Which way a direction points is chance, so the mean over directions is zero. What the few cases
    of a direction add by chance stays in, so that a small run has a high floor and not none.
    """
    asked = ~np.isnan(trials.placebo)
    mean = _by_direction(trials.effect_placebo[asked], trials.direction[asked])
    if len(mean) < _FEWEST:
        return math.nan
    return _quantile(len(mean)) * math.sqrt(float((mean**2).mean()))


def _quantile(n: int) -> float:
    return float(stdtrit(max(1, n - 1), (1 + _CONFIDENCE) / 2))


def _mean(values: Scores | Mask) -> float:
    return float(values.mean()) if len(values) else math.nan

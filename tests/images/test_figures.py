"""Effect, excess and doses: against a plain version, and on trials whose truth is known."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from limi.images._base import probability
from limi.images.figures import dose, measure_doses, see_effect, see_excess
from limi.images.trials import Trials
from tests.naive import images as naive


def make(n=1500, bias=0.0, seed=0, directions=30, smile=0.0):
    """Trials of a target that sees a smile, plus a bias against the second group."""
    rng = np.random.default_rng(seed)
    second = rng.random(n) < 0.5
    group = np.where(second, 1, -1) * (1 + rng.random(n))
    direction = np.arange(n) % directions
    pull = rng.normal(0, 0.3, directions)[direction]
    logit = rng.normal(0, 2, n)
    truth = logit + rng.normal(0, 0.3, n)

    def seen(protected, moved):
        return probability(logit + moved - bias * np.tanh(protected / 2))

    shift = smile * np.where(second, 1, -1)
    return Trials(
        case=np.arange(n),
        score=seen(group, 0),
        twin=seen(-group, shift + rng.normal(0, 0.05, n)),
        placebo=seen(group, pull + rng.normal(0, 0.05, n)),
        protected=probability(group),
        protected_twin=probability(-group),
        protected_placebo=probability(group),
        truth=probability(truth),
        truth_twin=probability(truth + shift + rng.normal(0, 0.05, n)),
        truth_placebo=probability(truth + rng.normal(0, 0.05, n)),
        judged=probability(group + rng.normal(0, 1, n)),
        judged_twin=probability(-group + rng.normal(0, 1, n)),
        distance=np.full(n, 10.0),
        distance_placebo=np.full(n, 10.0),
        direction=direction,
        valid=rng.random(n) < 0.8,
    )


def lines(trials):
    return [
        {one.name: getattr(trials, one.name)[i] for one in fields(trials)}
        for i in range(len(trials))
    ]


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_effect_and_excess_are_those_of_the_plain_version(bias):
    trials = make(400, bias, smile=0.2)
    plain = lines(trials)
    assert see_effect(trials).effect == pytest.approx(naive.effect(plain))
    excess = see_excess(trials)
    assert (excess.rate, excess.floor) == pytest.approx(naive.excess(plain))
    assert excess.n == sum(map(naive.confirmed, plain))


def test_a_fair_target_is_not_accused_and_a_biased_one_is():
    for seed in range(5):
        fair, biased = make(seed=seed), make(bias=1.5, seed=seed)
        assert abs(see_effect(fair).effect) < 0.05
        assert not see_effect(fair).seen
        low, high = see_excess(fair).low, see_excess(fair).high
        assert low < 0 < high
        assert see_effect(biased).seen
        assert see_effect(biased).effect == pytest.approx(3 * np.tanh(0.75), abs=0.3)
        assert see_effect(biased).direction > 0.95
        assert see_excess(biased).seen


def test_a_truth_that_changes_with_the_group_is_no_bias():
    moved = make(smile=1.0)
    assert moved.flips.mean() > 0.1  # decisions do flip
    assert abs(see_effect(moved).effect) < 0.05
    assert not see_excess(moved).seen


def test_a_dose_is_what_a_biased_target_would_have_shown():
    fair, biased = make(), make(bias=2.0)
    planted = dose(fair, 2.0)
    for name in ("score", "twin", "placebo"):
        assert np.allclose(getattr(planted, name), getattr(biased, name), atol=1e-4)


def test_doses_tell_the_smallest_that_would_be_seen():
    doses = measure_doses(make())
    seen = [one.effect_seen for one in doses]
    assert seen == sorted(seen)
    assert seen[-1]
    assert not seen[0]
    assert all(np.diff([one.added for one in doses]) > 0)


def test_the_floor_is_the_spread_of_the_directions():
    assert see_effect(make(3000, directions=300)).floor == pytest.approx(1.96 * 0.3, rel=0.15)


def test_cases_of_one_latent_are_one_draw():
    once = make(600)
    thrice = Trials.join([once, once, once])
    alone, together = see_effect(once), see_effect(thrice)
    assert together.effect == pytest.approx(alone.effect)
    assert together.high - together.low == pytest.approx(alone.high - alone.low, rel=0.02)


def test_nothing_to_measure_is_unknown():
    none = make(50)
    none = replace(none, valid=np.zeros(50, dtype=bool))
    assert math.isnan(see_excess(none).excess)
    assert not see_excess(none).seen
    assert not see_effect(none).seen
    unmoved = replace(make(60), placebo=np.full(60, np.nan))
    assert math.isnan(see_effect(unmoved).floor)
    assert not see_effect(unmoved).seen


def test_a_small_run_has_a_high_floor_and_a_wide_interval_and_accuses_nobody():
    """A floor less its own noise was 0 where noise was large, and no flip at all was certainty."""
    for seed in range(20):
        few = make(60, seed=seed, directions=20)
        assert see_effect(few).floor > 0.3
        assert not see_effect(few).seen
    still = make(12)
    still = replace(still, twin=still.score, placebo=still.score, truth_twin=still.truth)
    still = replace(still, truth_placebo=still.truth, valid=np.ones(12, dtype=bool))
    still = replace(still, judged=still.protected, judged_twin=still.protected_twin)
    none = see_excess(still)
    assert (none.rate, none.floor, none.excess) == (0, 0, 0)
    assert none.low < -0.1
    assert none.high > 0.1
    assert -1 <= see_excess(make(14)).low <= see_excess(make(14)).high <= 1

"""Severity and effectiveness against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from limi.errors import InvalidInput
from limi.metrics.individual import rate_of
from limi.metrics.severity import (
    expected_affected,
    margin,
    priority,
    require_volume,
    score_gap,
)


def test_gap_and_margin():
    mine, other = np.array([0.9, 0.4]), np.array([0.3, 0.55])
    np.testing.assert_allclose(score_gap(mine, other), [0.6, 0.15])
    np.testing.assert_allclose(margin(mine, other), [0.2, 0.05])
    # Whichever of the two is less certain, and on whichever side of 0.5 it lies.
    mine, other = np.array([0.6, 0.4, 0.0, 1.0, 0.5]), np.array([0.1, 0.9, 1.0, 0.0, 0.7])
    np.testing.assert_allclose(margin(mine, other), [0.1, 0.1, 0.5, 0.5, 0.0])
    np.testing.assert_allclose(margin(other, mine), [0.1, 0.1, 0.5, 0.5, 0.0])


def test_people_affected_are_the_rate_times_the_volume():
    people = expected_affected(rate_of(27, 1000), 20_000)
    assert people.estimate == pytest.approx(540)
    assert people.low < 540 < people.high
    assert people.high > rate_of(27, 1000).high * 20_000  # the volume varies by itself as well


@pytest.mark.parametrize("volume", [0, -5, 10**12 + 1])
def test_a_volume_is_a_number_of_people(volume):
    with pytest.raises(InvalidInput, match=f"volume is {volume};"):
        require_volume(volume)


@pytest.mark.parametrize("volume", [0, 1, 10**12])
def test_nobody_is_a_part_of_a_volume_and_so_are_very_many(volume):
    people = expected_affected(rate_of(1, 10), volume)
    assert 0 <= people.low <= people.estimate <= people.high <= volume == people.volume
    assert people.estimate == pytest.approx(0.1 * volume)


@pytest.mark.parametrize(("hits", "n", "volume"), [(27, 1000, 20_000), (3, 40, 500), (30, 60, 90)])
def test_half_of_the_error_is_the_rate_s_and_half_the_volume_s(hits, n, volume):
    people = expected_affected(rate_of(hits, n), volume)
    rate = rate_of(hits, n, 0.975)
    # Either end: the first count whose probability of not being passed reaches the quantile.
    for count, quantile, share in (
        (people.low, 0.0125, rate.low),
        (people.high, 0.9875, rate.high),
    ):
        assert binom.cdf(count - 1, volume, share) < quantile <= binom.cdf(count, volume, share)


@pytest.mark.parametrize(("n", "volume"), [(1000, 20), (1000, 100_000), (50, 1000)])
def test_the_interval_of_people_holds_the_number_of_95_in_100_volumes(n, volume):
    rng = np.random.default_rng(7)
    share = 0.1
    hits, people = rng.binomial(n, share, 400), rng.binomial(volume, share, 400)
    told = [expected_affected(rate_of(int(h), n), volume) for h in hits]
    held = np.mean([t.low <= p <= t.high for t, p in zip(told, people, strict=True)])
    assert held >= 0.95
    if volume < n:  # there the rate's own interval is too narrow
        rates = [rate_of(int(h), n) for h in hits]
        ends = [(r.low * volume, r.high * volume) for r in rates]
        assert (
            np.mean([low <= p <= high for (low, high), p in zip(ends, people, strict=True)]) < 0.9
        )


def test_nobody_of_many_may_still_be_some():
    none = expected_affected(rate_of(0, 1000), 10_000)
    assert (none.low, none.estimate) == (0, 0)
    assert 36 < none.high < 80
    assert expected_affected(rate_of(5, 5), 10).high == 10


def test_unknown_naturalness_leaves_severity():
    weights = priority(np.array([0.5, 0.5, 0.2]), np.array([0.1, np.nan, 1.0]))
    np.testing.assert_allclose(weights, [0.05, 0.5, 0.2])

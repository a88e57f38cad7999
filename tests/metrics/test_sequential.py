"""Intervals under repeated looks: whoever stops when they like is still right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from limi.errors import InvalidInput
from limi.metrics.individual import clopper_pearson
from limi.metrics.sequential import (
    FEWEST_FOR_MEAN,
    anytime_interval,
    anytime_mean,
    anytime_rate,
    log_capital,
)
from tests.naive import intervals


def capital_by_betting(flips, share):
    """The gambler's purse row by row: stake (hits + 1/2) / (rows + 1) on a flip."""
    purse, hits = 1.0, 0
    for rows, flip in enumerate(flips):
        belief = (hits + 0.5) / (rows + 1)
        purse *= belief / share if flip else (1 - belief) / (1 - share)
        hits += flip
    return purse


@settings(max_examples=60, deadline=None)
@given(flips=st.lists(st.booleans(), max_size=40), share=st.floats(0.01, 0.99))
def test_the_closed_form_is_what_the_gambler_has(flips, share):
    expected = capital_by_betting(flips, share)
    assert np.exp(log_capital(sum(flips), len(flips), share)) == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(0, 3000), part=st.floats(0, 1), confidence=st.sampled_from([0.8, 0.95, 0.99]))
def test_the_ends_are_where_the_capital_reaches_its_bound(n, part, confidence):
    hits = round(part * n)
    low, high = (float(end) for end in anytime_interval(hits, n, confidence))
    assert 0 <= low <= (hits / n if n else 0.5) <= high <= 1
    bound = np.log(1 / (1 - confidence))
    for end in (low, high):
        if 0 < end < 1:
            assert log_capital(hits, n, end) == pytest.approx(bound, abs=1e-6)
    inside = np.linspace(low, high, 9)[1:-1]
    assert (log_capital(hits, n, inside) < bound).all()


def test_it_is_wider_than_the_interval_of_one_look_and_not_by_much():
    for hits, n in ((0, 100), (30, 100), (500, 10_000)):
        low, high = anytime_interval(hits, n)
        one_low, one_high = clopper_pearson(hits, n)
        assert low <= one_low < one_high <= high
        assert high - low < 2.5 * (one_high - one_low)


@pytest.mark.parametrize("share", [0.002, 0.03, 0.3])
def test_1000_audits_hold_the_truth_at_every_look(share):
    rng = np.random.default_rng(0)
    n = np.arange(1, 2001)
    hits = np.cumsum(rng.random((1000, len(n))) < share, axis=1)
    missed = log_capital(hits, n, share) >= np.log(20)
    assert missed.any(axis=1).mean() <= 0.06  # 0.05 by theory, two standard errors beyond
    # The same through the intervals, at many looks.
    looks = np.unique(np.geomspace(1, len(n), 60).astype(int)) - 1
    low, high = anytime_interval(hits[:, looks], n[looks])
    outside = (low > share) | (high < share)
    np.testing.assert_array_equal(outside, missed[:, looks])


def test_an_interval_of_one_look_does_not_survive_many():
    rng = np.random.default_rng(0)
    looks = np.unique(np.geomspace(10, 2000, 60).astype(int))
    hits = np.cumsum(rng.random((1000, 2000)) < 0.3, axis=1)[:, looks - 1]
    high = beta.ppf(0.975, hits + 1, looks - hits)
    low = np.where(hits > 0, beta.ppf(0.025, np.maximum(hits, 1), looks - hits + 1), 0.0)
    assert ((low > 0.3) | (high < 0.3)).any(axis=1).mean() > 0.1


def test_nothing_seen_says_nothing():
    assert tuple(map(float, anytime_interval(0, 0))) == (0.0, 1.0)


@pytest.mark.parametrize("confidence", [1.0, 0.0, -0.5, 95])
def test_a_confidence_outside_its_range_is_refused(confidence):
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        anytime_interval(1, 2, confidence)


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (30, 100), (0, 40), (40, 40)])
def test_a_rate_brings_the_interval_that_holds_whenever_one_stops(hits, n):
    rate = anytime_rate(hits, n)
    low, high = anytime_interval(hits, n, 0.95)
    assert (rate.estimate, rate.low, rate.high, rate.n) == (hits / n, low, high, n)
    assert rate.anytime
    wider = anytime_rate(hits, n, 0.99)
    assert wider.low <= rate.low <= rate.high <= wider.high
    assert wider != rate


def test_a_rate_of_no_rows_is_not_a_number():
    rate = anytime_rate(0, 0)
    assert np.isnan(rate.estimate)
    assert (rate.low, rate.high, rate.n, rate.anytime) == (0.0, 1.0, 0, True)


def test_where_all_rows_or_none_hit_the_far_end_is_open():
    assert float(anytime_interval(0, 50)[0]) == 0.0
    assert float(anytime_interval(50, 50)[1]) == 1.0
    # By symmetry of hits and misses.
    for hits, n in ((0, 50), (1, 7), (20, 90)):
        low, high = anytime_interval(hits, n)
        np.testing.assert_allclose(anytime_interval(n - hits, n), (1 - high, 1 - low), atol=1e-12)


@pytest.mark.parametrize(("n", "confidence"), [(100, 0.95), (400, 0.99), (1_500, 0.9)])
def test_the_interval_of_a_mean_is_that_of_the_mixture_added_up(n, confidence):
    numbers = np.random.default_rng(n).exponential(30.0, size=n) - 7
    low, high = anytime_mean(numbers.mean(), numbers.var(ddof=1), n, confidence)
    assert (low, high) == pytest.approx(intervals.anytime_mean(numbers.tolist(), confidence))


def test_a_mean_is_held_at_all_times_at_once_where_a_usual_interval_is_not():
    rng = np.random.default_rng(3)
    n = np.arange(1, 3_001)
    for numbers, truth in (
        (rng.normal(5.0, 2.0, size=(400, 3_000)), 5.0),
        (rng.exponential(2.0, size=(400, 3_000)), 2.0),
    ):
        mean = numbers.cumsum(axis=1) / n
        variance = ((numbers**2).cumsum(axis=1) / n - mean**2) * n / np.maximum(n - 1, 1)
        low, high = anytime_mean(mean, variance, n, 0.9)
        ever = ((low > truth) | (high < truth)).any(axis=1)
        assert ever.mean() < 0.1 + 3 * (0.1 * 0.9 / 400) ** 0.5
        usual = 1.645 * np.sqrt(variance / n)
        assert (np.abs(mean - truth) > usual)[:, 99:].any(axis=1).mean() > 0.4


def test_nothing_is_said_of_the_mean_of_few():
    low, high = anytime_mean(3.0, 1.0, np.array([1, FEWEST_FOR_MEAN - 1, FEWEST_FOR_MEAN]))
    assert np.isneginf(low[:2]).all()
    assert np.isposinf(high[:2]).all()
    assert np.isfinite([low[2], high[2]]).all()
    with pytest.raises(InvalidInput, match="confidence is 1"):
        anytime_mean(3.0, 1.0, 200, 1.0)

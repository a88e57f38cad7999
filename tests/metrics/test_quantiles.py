"""Quantiles beyond a sample: known tails, a plain twin, and what is left out."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limi.metrics._quantiles import Quantile, Tail, estimate_tail
from limi.system.shown import to_json
from tests.naive import tails as naive

# name: the values that uniform numbers stand for, which are also the true quantiles; the shape
TAILS = {
    "exponential": (lambda u: -np.log1p(-u), 0.0),
    "uniform": (lambda u: u, -1.0),
    "ends softly": (lambda u: 1 - (1 - u) ** (1 / 3), -1 / 3),
    "Pareto": (lambda u: (1 - u) ** (-1 / 3) - 1, 1 / 3),
    "heavy Pareto": (lambda u: (1 - u) ** (-1 / 1.5) - 1, 2 / 3),
}


@pytest.mark.parametrize("name", TAILS)
def test_known_tails_are_estimated_and_lie_in_the_interval(name):
    quantile, shape = TAILS[name]
    # The ranks of a perfect sample: nothing here depends on chance.
    values = quantile((np.arange(10_000) + 0.5) / 10_000)
    told = estimate_tail(values)
    assert (told.exceedances, told.reason) == (1000, "")
    assert told.threshold == pytest.approx(quantile(0.9), rel=1e-3)
    assert told.shape == pytest.approx(shape, abs=0.03)
    for level in told.levels:
        assert level.value == pytest.approx(quantile(level.share), rel=0.05)
        assert level.low < quantile(level.share) < level.high
    assert [level.share for level in told.levels] == [0.999, 0.9999]


@pytest.mark.parametrize("name", TAILS)
def test_intervals_hold_the_truth_as_often_as_they_say(name):
    quantile, _ = TAILS[name]
    rng = np.random.default_rng(sum(name.encode()))
    told = [estimate_tail(quantile(rng.random(1000))) for _ in range(60)]
    estimated = [tail.levels for tail in told if tail.levels]
    assert len(estimated) > 54  # one of twenty samples may look odd at each of three thresholds
    for place, share in enumerate((0.999, 0.9999)):
        held = [levels[place].low <= quantile(share) <= levels[place].high for levels in estimated]
        assert np.mean(held) > 0.9


@pytest.mark.parametrize("name", ["exponential", "ends softly", "Pareto"])
def test_the_best_curve_and_its_region_are_those_of_trying_all(name):
    quantile, _ = TAILS[name]
    values = quantile(np.random.default_rng(3).random(600))
    told = estimate_tail(values)
    assert told.exceedances == 60
    excesses = (np.sort(values)[-60:] - told.threshold).tolist()
    mean = float(np.mean(excesses))
    shapes = np.linspace(-1, 2, 151).tolist()
    scales = (mean * np.geomspace(0.3, 3, 90)).tolist()
    value, low, high = naive.best(excesses, 0.1 / 0.001, shapes, scales)
    level = told.levels[0]
    found = [level.value, level.low, level.high]
    # The grid of the twin is coarse: its region lies within ours, and nearly fills it.
    assert np.array(found) - told.threshold == pytest.approx([value, low, high], rel=0.06)
    assert level.low - told.threshold <= low * (1 + 1e-3)
    assert level.high - told.threshold >= high * (1 - 1e-3)


@given(st.floats(1e-3, 1e6), st.integers(0, 2**20))
@settings(max_examples=15, deadline=None)
def test_another_unit_is_another_unit_of_the_levels(unit, seed):
    values = np.random.default_rng(seed).exponential(size=700)
    one, other = estimate_tail(values), estimate_tail(unit * values)
    assert len(one.levels) == len(other.levels)
    for mine, theirs in zip(one.levels, other.levels, strict=True):
        wanted = unit * np.array([mine.value, mine.low, mine.high])
        assert [theirs.value, theirs.low, theirs.high] == pytest.approx(wanted.tolist(), rel=1e-6)


def test_a_lower_threshold_that_does_not_fit_gives_way_to_a_higher_one():
    # One of twenty people has an exponential tail; the others are spread evenly below it.
    even, tail = (np.arange(9500) + 0.5) / 9500, -np.log1p(-(np.arange(500) + 0.5) / 500)
    told = estimate_tail(np.concatenate([even, 1 + 5 * tail]))
    assert told.exceedances == 500
    assert told.levels[0].low < 1 + 5 * np.log(50) < told.levels[0].high


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (np.arange(499.0), "at least 500 people are needed, and there are 499"),
        (np.empty(0), "at least 500 people are needed, and there are 0"),
        (np.repeat([0.0, 7.0], [960, 40]), "40 of 1,000 people lie beyond the difference that"),
        (np.zeros(1000), "0 of 1,000 people lie beyond"),
        (np.repeat([0.0, 1.0, 2.0, 5.0], 250), "0 of 1,000 people lie beyond"),
        (np.repeat(np.arange(20.0), 500), "do not follow a smooth curve"),
    ],
)
def test_what_cannot_be_told_is_said(values, says):
    told = estimate_tail(values)
    assert not told.levels
    assert told.reason.startswith(says) or says in told.reason


def test_a_tail_reads_back_from_json():
    for values in (np.random.default_rng(0).exponential(size=900), np.zeros(5)):
        told = estimate_tail(values)
        again = Tail.from_dict(json.loads(to_json(asdict(told))))
        assert repr(again) == repr(told)
    assert repr(Quantile.from_dict({"share": 0.5, "value": 1.0, "low": None, "high": 2.0})) == (
        "Quantile(share=0.5, value=1.0, low=nan, high=2.0)"
    )

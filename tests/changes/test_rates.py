"""Paired differences: exact tests, intervals that hold, and regions that changed."""

import numpy as np
import pytest
from scipy.stats import binomtest

from limi.changes import changed_regions, compare
from limi.changes._rates import LEVEL
from limi.metrics.what_if import paired_interval
from limi.table.schema import Column, Schema
from tests.naive import changes as naive
from tests.naive.what_if import holm

SCHEMA = Schema(
    (
        Column(name="age", kind="numerical", low=0, high=99, step=1),
        Column(name="sex", kind="categorical", levels=("f", "m")),
    )
).protect(["sex"])


def masks(seed, n=300, p=0.1, changed=0.05):
    rng = np.random.default_rng(seed)
    before = rng.random(n) < p
    return before, before ^ (rng.random(n) < changed)


@pytest.mark.parametrize("seed", range(5))
def test_counts_and_tests_are_those_of_asking_person_by_person(seed):
    sets = [masks(seed), masks(seed + 50, n=40, p=0.5), masks(seed + 90, changed=0)]
    told = compare(sets)
    plain = [naive.compare(*pair) for pair in sets]
    for change, (n, before, after, gone, new, p_value) in zip(told, plain, strict=True):
        assert (change.n, change.gone, change.new) == (n, gone, new)
        assert change.before.estimate * n == pytest.approx(before)
        assert change.after.estimate * n == pytest.approx(after)
        assert change.difference == pytest.approx((after - before) / n)
        assert change.p_value == pytest.approx(p_value)
        if gone + new:
            assert change.p_value == pytest.approx(binomtest(new, gone + new).pvalue)
        assert change.low <= change.difference <= change.high
    corrected = holm([p_value for *_, p_value in plain])
    assert [change.corrected for change in told] == pytest.approx(corrected)


def test_intervals_hold_true_differences_on_average_as_often_as_they_say_and_nearly_everywhere():
    # Tango's interval follows the counts, which are whole: its confidence moves about the nominal
    # one, above it where hardly anything changes and a point below at worst.
    rng = np.random.default_rng(0)
    held = []
    for n in (100, 1_000, 10_000):
        for gone in (0.0, 0.003, 0.03):
            for new in (0.0, 0.002, 0.05):
                counts = rng.multinomial(n, [gone, new, 1 - gone - new], size=10_000)[:, :2]
                seen, times = np.unique(counts, axis=0, return_counts=True)
                low, high = paired_interval(seen[:, 1], seen[:, 0], n)
                held.append(times[(low <= new - gone) & (new - gone <= high)].sum() / 10_000)
    assert np.mean(held) > 0.95
    assert min(held) > 0.93


def test_a_change_has_the_interval_of_its_counts():
    (change,) = compare([masks(0)])
    ends = paired_interval(change.new, change.gone, change.n)
    assert (change.low, change.high) == tuple(map(float, ends))


def test_equal_models_are_called_better_or_worse_as_rarely_as_promised():
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(200):
        sets = []
        for _ in range(2):
            changed = rng.random(500) < 0.06
            before = rng.random(500) < 0.5
            sets.append((before & changed, ~before & changed))
        wrong += any(change.word != "no difference shown" for change in compare(sets))
    assert wrong / 200 <= LEVEL


def test_nothing_is_better_without_rows_and_equal_verdicts_show_no_difference():
    none = np.zeros(0, dtype=bool)
    (change,) = compare([(none, none)])
    assert (change.low, change.high, change.word) == (-1.0, 1.0, "no difference shown")
    assert np.isnan(change.difference)
    (same,) = compare([(np.ones(9, dtype=bool),) * 2])
    assert same.p_value == 1.0


def test_a_region_that_got_better_and_one_that_got_worse_are_both_found():
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(100, size=4_000), rng.integers(2, size=4_000)], axis=1)
    rows = rows.astype(float)
    before, after = rows[:, 0] < 20, rows[:, 0] >= 90
    found = changed_regions(SCHEMA, rows, before, after, rng)
    words = {str(one.region): one for one in found.changed}
    assert words["age at most 19"].change.word == "better"
    assert words["age at least 90"].change.word == "worse"
    assert words["age at most 19"].change.after.estimate == 0.0
    assert words["age at most 19"].share == pytest.approx(0.2, abs=0.03)
    assert found.learned == 2_000
    assert found.reason == ""


def test_changes_without_a_place_are_given_none():
    shown = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rows = np.stack([rng.integers(100, size=1_000), rng.integers(2, size=1_000)], axis=1)
        changed = rng.random(1_000) < 0.1
        before = changed & (rng.random(1_000) < 0.5)
        found = changed_regions(SCHEMA, rows.astype(float), before, changed & ~before, rng)
        assert found.changed or found.reason
        shown += bool(found.changed)
    assert shown <= 4  # 5 % of thirty, and what chance adds


def test_too_few_changes_are_told_as_such():
    rows = np.zeros((100, 2))
    before = np.arange(100) < 5
    found = changed_regions(SCHEMA, rows, before, ~before & False, np.random.default_rng(0))
    assert found.changed == ()
    assert found.reason.startswith("5 of 100 rows no longer flip and 0 newly do; at least 30")

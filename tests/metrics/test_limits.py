"""Limits that hold at every look: against plain sums, and against what chance does to them."""

import math

import numpy as np
import pytest

from limi.metrics.limits import (
    change_limits,
    difference_limits,
    log_capital,
    percentile_limits,
    share_limits,
)

TILTS = [2.0**k for k in range(-4, 4)]


def plain_capital(hits, n, share, sign):
    """Eight gamblers, row by row, each with an eighth of the money."""
    total = 0.0
    for tilt in TILTS:
        capital = 1 / 8
        fair = 1 - share + share * math.exp(sign * tilt)
        for row in range(n):
            capital *= math.exp(sign * tilt * (row < hits)) / fair
        total += capital
    return math.log(total)


@pytest.mark.parametrize(("hits", "n", "share"), [(0, 40, 0.1), (3, 20, 0.01), (7, 9, 0.5)])
def test_the_capital_is_that_of_gamblers_who_bet_on_each_row(hits, n, share):
    for above in (True, False):
        expected = plain_capital(hits, n, share, 1 if above else -1)
        assert log_capital(hits, n, share, above=above) == pytest.approx(expected)


def test_a_bet_is_fair_whatever_the_rows_are():
    """The mean of the capital over all outcomes is 1 at the share that is bet against, and less on
    the side where the bet is wrong."""
    n, p = 12, 0.2
    chance = np.array([math.comb(n, h) * p**h * (1 - p) ** (n - h) for h in range(n + 1)])
    for above in (True, False):
        fair = np.exp(log_capital(np.arange(n + 1), n, p, above=above))
        assert chance @ fair == pytest.approx(1.0)
        beside = np.exp(log_capital(np.arange(n + 1), n, p + (0.1 if above else -0.1), above=above))
        assert chance @ beside < 1.0


def test_limits_enclose_what_was_seen_and_close_in_on_it():
    wide, narrow = share_limits(3, 100, 0.05), share_limits(300, 10_000, 0.05)
    assert 0 < wide[0] < narrow[0] < 0.03 < narrow[1] < wide[1] < 1
    assert share_limits(0, 0, 0.05) == (0.0, 1.0)
    assert share_limits(0, 50, 0.05)[0] == 0.0
    assert share_limits(50, 50, 0.05)[1] == 1.0
    stricter = share_limits(3, 100, 0.001)
    assert stricter[0] < wide[0]
    assert stricter[1] > wide[1]


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_a_limit_is_rarely_wrong_at_any_look(share):
    rng, games, n = np.random.default_rng(1), 400, 1_000
    hits = np.cumsum(rng.random((games, n)) < share, axis=1)
    rows = np.arange(1, n + 1)
    for above in (True, False):
        rich = (log_capital(hits, rows, share, above=above) >= math.log(20)).any(axis=1)
        # 5 % is promised; of 400 games, 29 or fewer come in all but one of a thousand tests.
        assert rich.sum() <= 29


def test_a_difference_is_refused_where_every_pair_of_shares_is():
    first, second, error = (30, 60), (5, 50), 0.05
    low, high = difference_limits(first, second, error)
    assert low < 0.4 < high
    assert difference_limits(second, first, error) == pytest.approx((-high, -low))
    seconds = np.linspace(0, 1, 2_001)
    for difference, refused in ((low - 1e-4, True), (low + 1e-4, False)):
        others = seconds[(seconds + difference >= 0) & (seconds + difference <= 1)]
        capital = log_capital(*first, others + difference, above=True)
        capital += log_capital(*second, others, above=False)
        assert (capital.min() >= -math.log(error)) == refused


def test_nothing_is_known_of_a_difference_while_a_group_is_empty():
    assert difference_limits((0, 0), (3, 10), 0.05) == (-1.0, 1.0)


def test_rows_that_do_not_change_say_that_nothing_did():
    low, high = change_limits(0, 2_000, 0, 0.05)
    assert -0.003 < low < 0 < high < 0.003
    assert change_limits(0, 0, 0, 0.05) == (-1.0, 1.0)
    worse = change_limits(60, 940, 0, 0.05)
    assert worse[0] > 0.02
    mirrored = change_limits(0, 940, 60, 0.05)
    assert mirrored == pytest.approx((-worse[1], -worse[0]))


def test_a_change_is_rarely_missed_at_any_look():
    rng, wrong = np.random.default_rng(2), 0
    for _ in range(50):
        drawn = rng.choice([1, 0, -1], size=1_500, p=[0.03, 0.96, 0.01])
        for n in (100, 500, 1_500):
            counts = [int((drawn[:n] == change).sum()) for change in (1, 0, -1)]
            low, high = change_limits(*counts, 0.05)
            if not low <= 0.02 <= high:
                wrong += 1
                break
    # Both ends may err: 10 % is promised, and 13 of 50 come in one of a thousand tests.
    assert wrong <= 12


def test_a_percentile_lies_between_values_that_were_seen():
    values = np.random.default_rng(3).random(5_000)
    low, high = percentile_limits(values, 0.1, 0.05)
    assert {low, high} <= set(values)
    assert low < 0.9 < high
    assert high - low < 0.06
    # What the upper limit says, a bet on the share above it says too, and not above the next one.
    n_above = int((values > high).sum())
    enough = math.log(20)
    assert log_capital(n_above, 5_000, 0.1, above=False) >= enough
    assert log_capital(n_above + 1, 5_000, 0.1, above=False) < enough
    n_from = int((values >= low).sum())
    assert log_capital(n_from, 5_000, 0.1, above=True) >= enough
    assert log_capital(n_from - 1, 5_000, 0.1, above=True) < enough


def test_a_percentile_of_few_values_has_no_limits():
    assert percentile_limits(np.array([0.2, 0.4]), 0.5, 0.05) == (0.0, 1.0)
    assert percentile_limits(np.zeros(1_000), 0.01, 0.05) == (0.0, 0.0)

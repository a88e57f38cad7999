"""The weighted rate: it holds whatever the search prefers, and is narrow where it guesses well."""

import numpy as np
import pytest

from limi.errors import InvalidInput
from limi.metrics._rate import clopper_pearson
from limi.metrics.weighted import log_capitals, weighted_interval, weighted_rate
from limi.search.draws import Draws


def search(rng, rate, *, rounds, size, times, floor_share, skill, preferred):
    """A search that learns on the way: an unguided round, then rounds of `size * times` natural
    rows of which it asks about `size`; how much it prefers the rows that look like flips hangs on
    all that it has found. Of the flips a share of `skill` looks so, and as many other rows."""
    first = int((rng.random(size) < rate).sum())
    told = [Draws(size, size, 1.0, np.ones(first))]
    for _ in range(rounds):
        n = size * times
        flips = rng.random(n) < rate
        looks = np.where(flips, rng.random(n) < skill, rng.random(n) < rate)
        floor = floor_share / times
        found = sum(len(part.weights) for part in told)
        chance = floor + (1 - floor) * np.where(looks, preferred(found), 0.0)
        asked = rng.random(n) < chance
        weights = 1 / chance[asked & flips]
        told.append(Draws(n, int(asked.sum()), 1 / floor, weights))
    return told


def estimate(told):
    return sum(part.weights.sum() for part in told) / sum(part.n for part in told)


def keen(found):
    return min(1.0, 0.3 + 0.1 * (found % 7))


def spiteful(found):
    """Looks away as soon as it has found an odd number."""
    return 0.0 if found % 2 else 1.0


@pytest.mark.parametrize(
    ("rate", "skill", "preferred"),
    [(0.05, 0.8, keen), (0.05, 0.0, keen), (0.3, 0.5, spiteful), (0.005, 0.95, keen)],
)
def test_it_holds_at_every_round_whatever_the_search_prefers(rate, skill, preferred):
    """A rate is in the interval of a round unless a bet against it has won by then."""
    rng = np.random.default_rng(7)
    settings = {"rounds": 4, "size": 150, "times": 8, "floor_share": 0.3, "skill": skill}
    missed = 0
    for _ in range(40):
        told = search(rng, rate, preferred=preferred, **settings)
        won = max(max(log_capitals(told[: n + 1], rate)) for n in range(len(told)))
        missed += won >= np.log(2 / 0.2)
    assert missed <= 12  # 8 are promised at most in the mean; more than 12 happen in 4 of 100


def test_the_ends_are_where_the_bets_are_won():
    rng = np.random.default_rng(5)
    settings = {"rounds": 3, "size": 150, "times": 8, "floor_share": 0.3, "skill": 0.7}
    told = search(rng, 0.05, preferred=keen, **settings)
    low, high = weighted_interval(told)
    enough = np.log(2 / 0.05)
    assert 0 < low < 0.05 < high < 1
    for end, inner in ((low, low * 1.01), (high, high * 0.99)):
        assert max(log_capitals(told, end)) >= enough - 1e-6
        assert max(log_capitals(told, inner)) < enough


def test_the_estimate_is_right_in_the_mean():
    rng = np.random.default_rng(1)
    settings = {"rounds": 2, "size": 200, "times": 8, "floor_share": 0.3, "skill": 0.6}
    estimates = [
        weighted_rate(search(rng, 0.1, preferred=spiteful, **settings)).estimate for _ in range(60)
    ]
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - 0.1) < 4 * error


def test_of_plain_rows_it_is_somewhat_wider_than_clopper_pearson():
    for hits, n in [(0, 1_000), (20, 1_000), (500, 1_000), (1_000, 1_000)]:
        low, high = weighted_interval([Draws(n, n, 1.0, np.ones(hits))])
        exact_low, exact_high = clopper_pearson(hits, n)
        assert low <= exact_low <= exact_high <= high
        if hits < n:  # bets are made for small shares
            assert high - low < 2.2 * (exact_high - exact_low)


def test_where_guesses_are_good_it_is_narrower_than_plain_rows_could_be():
    rng = np.random.default_rng(3)
    told = search(
        rng, 0.004, rounds=10, size=5_000, times=20, floor_share=0.5, skill=0.98, preferred=keen
    )
    rate = weighted_rate(told)
    low, high = clopper_pearson(round(0.004 * rate.n), rate.n)
    assert rate.low <= 0.004 <= rate.high
    assert rate.estimate == pytest.approx(estimate(told))
    assert rate.high - rate.low < 0.9 * (high - low)
    assert rate.effective > 3 * rate.n
    assert rate.draws == 5_000 + 10 * 100_000
    assert rate.anytime


def test_where_nothing_flips_the_floor_alone_says_how_much():
    told = [Draws(100_000, 2_000, 100.0, np.zeros(0))]
    rate = weighted_rate(told)
    assert (rate.estimate, rate.low) == (0.0, 0.0)
    assert rate.high > 3.0 / (100_000 / 100)  # that many rows of a sort never preferred were asked
    assert rate.high < 8.0 / (100_000 / 100)
    assert np.isnan(rate.effective)


def test_order_of_rounds_and_rows_does_not_matter():
    rng = np.random.default_rng(0)
    told = search(
        rng, 0.05, rounds=3, size=100, times=5, floor_share=0.5, skill=0.5, preferred=keen
    )
    turned = [Draws(p.n, p.asked, p.bound, p.weights[::-1]) for p in told[::-1]]
    np.testing.assert_allclose(weighted_interval(told), weighted_interval(turned))


def test_nothing_drawn_says_nothing():
    rate = weighted_rate([])
    assert np.isnan(rate.estimate)
    assert (rate.low, rate.high, rate.n) == (0.0, 1.0, 0)
    assert weighted_interval([Draws(0, 0, 1.0, np.zeros(0))]) == (0.0, 1.0)
    with pytest.raises(InvalidInput, match="confidence"):
        weighted_interval([], 1.0)

"""Pairs of a model that answers by chance are told apart from noise, at a stated error."""

import numpy as np
import pytest
from scipy.integrate import quad

from limi.decisions import Bands, Classes, Difference
from limi.search.chances import ERROR, MOST_TIMES, ask_chances, log_evidence, select
from limi.system.watch import OutOfTime


def pairs(n):
    rows = np.arange(n, dtype=float)[:, None]
    return rows, rows + 0.5


def coins(mine, other, rng):
    """A model by which each pair's sides have these chances."""

    def score(rows):
        place = np.floor(rows[:, 0]).astype(int)
        chance = np.where(rows[:, 0] % 1 == 0, mine[place], other[place])
        return (rng.random(len(rows)) < chance).astype(float)

    return score


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (0, 3), (7, 2), (20, 20)])
def test_evidence_is_the_integral_over_all_coins_that_favor_one_side(wins, losses):
    plain = quad(lambda c: 2 * (2 * c) ** wins * (2 * (1 - c)) ** losses, 0.5, 1)[0]
    told = log_evidence(np.array([wins]), np.array([losses]))
    assert np.exp(told) == pytest.approx(plain, rel=1e-9)


def test_evidence_against_a_fair_coin_has_a_mean_of_one_at_every_time():
    from scipy.stats import binom

    for n in (1, 5, 30):
        wins = np.arange(n + 1)
        mean = (binom.pmf(wins, n, 0.5) * np.exp(log_evidence(wins, n - wins))).sum()
        assert mean == pytest.approx(1)


def test_the_pairs_that_count_are_the_most_that_can():
    def plainly(evidence):
        n = len(evidence)
        for k in range(n, 0, -1):
            kept = evidence >= np.log(n / (ERROR * k))
            if kept.sum() >= k:
                return kept
        return np.zeros(n, dtype=bool)

    rng = np.random.default_rng(0)
    for _ in range(50):
        evidence = rng.normal(2, 3, rng.integers(1, 12))
        assert np.array_equal(select(evidence), plainly(evidence))
    assert not len(select(np.empty(0)))


def test_without_a_difference_hardly_a_run_has_a_finding():
    rng = np.random.default_rng(1)
    rows, partner = pairs(40)
    runs = 60
    false = 0
    for _ in range(runs):
        chance = rng.random(40)
        favored = (rng.random(40) < 0.5).astype(float)
        model = coins(chance, chance, rng)
        told = ask_chances(model, rows, partner, favored, 1 - favored, most=32)
        false += told.shown.any()
    # 5 % of 60 runs are 3; more than 8 has a chance of less than 1 in 300.
    assert false <= 8


def test_a_clear_difference_is_shown_by_few_questions():
    rng = np.random.default_rng(2)
    rows, partner = pairs(50)
    ones = np.ones(50)
    told = ask_chances(coins(0.9 * ones, 0.1 * ones, rng), rows, partner, ones, 0 * ones)
    assert told.shown.all()
    assert told.queries < 50 * 2 * 16
    assert np.all(told.hits > told.partner_hits)
    sure = ask_chances(coins(ones, 0 * ones, rng), rows, partner, ones, 0 * ones)
    assert sure.shown.all()
    assert sure.times.max() == 7


def test_a_difference_in_the_other_direction_is_not_shown():
    rng = np.random.default_rng(3)
    rows, partner = pairs(20)
    ones = np.ones(20)
    told = ask_chances(coins(0.1 * ones, 0.9 * ones, rng), rows, partner, ones, 0 * ones)
    assert not told.shown.any()
    assert told.times.max() < MOST_TIMES  # given up


def test_few_queries_are_spent_on_the_most_promising_pairs_and_never_exceeded():
    rng = np.random.default_rng(4)
    rows, partner = pairs(60)
    mine = np.where(np.arange(60) < 10, 1.0, 0.5)
    other = np.where(np.arange(60) < 10, 0.0, 0.5)
    asked = []

    def score(given):
        asked.append(len(given))
        return coins(mine, other, rng)(given)

    told = ask_chances(score, rows, partner, np.ones(60), np.zeros(60), max_queries=900)
    assert sum(asked) == told.queries <= 900
    assert told.shown[:10].all()
    assert told.times[:10].mean() > told.times[10:].mean()


def numbers(mine, other, noise, rng):
    """A model by which each pair's sides have these numbers, plus noise."""

    def score(rows):
        place = np.floor(rows[:, 0]).astype(int)
        middle = np.where(rows[:, 0] % 1 == 0, mine[place], other[place])
        return middle + noise * rng.uniform(-1, 1, len(rows))

    return score


RULES = [
    (Difference(10.0), (100.0, 140.0), 3.0),
    (Difference(0.1, relative=True), (100.0, 140.0), 3.0),
    (Bands((50.0, 120.0)), (100.0, 140.0), 3.0),
    (Classes(("low", "middle", "high")), (1.25, 2.25), 0.2),
    (Classes(("low", "middle", "high"), ordered=True), (2.25, 0.25), 0.2),
]


@pytest.mark.parametrize(("rule", "sides", "noise"), RULES)
def test_every_rule_shows_a_difference_and_takes_noise_for_none(rule, sides, noise):
    rng = np.random.default_rng(5)
    rows, partner = pairs(40)
    mine, other = (np.full(40, side) for side in sides)
    alike = np.arange(40) >= 20

    def score(given):
        # Pairs that are alike are decided by a coin on both sides.
        place = np.floor(given[:, 0]).astype(int)
        coin = np.where(rng.random(len(given)) < 0.5, *sides)
        sure = numbers(mine, other, noise, rng)(given)
        return np.where(alike[place], coin, sure)

    assert rule.differ(mine, other).all()
    told = ask_chances(score, rows, partner, mine, other, decision=rule)
    assert told.shown[:20].all()
    assert told.shown[20:].sum() <= 3


@pytest.mark.parametrize("ordered", [False, True])
def test_a_class_between_two_others_is_not_taken_for_their_mixture(ordered):
    rng = np.random.default_rng(6)
    rows, partner = pairs(10)
    rule = Classes(("low", "middle", "high"), ordered=ordered)

    def score(given):
        ends = np.where(rng.random(len(given)) < 0.5, 0.3, 2.3)
        return np.where(given[:, 0] % 1 == 0, 1.3, ends)

    told = ask_chances(score, rows, partner, np.full(10, 1.3), np.full(10, 0.3), decision=rule)
    assert told.shown.all()


def test_what_was_shown_before_the_time_was_up_is_kept():
    def score(given):
        if score.left == 0:
            raise OutOfTime
        score.left -= 1
        return np.concatenate([np.ones(len(given) // 2), np.zeros(len(given) // 2)])

    score.left = 3
    told = ask_chances(score, *pairs(2), np.ones(2), np.zeros(2))
    assert told.times.tolist() == [3, 3]
    assert not told.shown.any()

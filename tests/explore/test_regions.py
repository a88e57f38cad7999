"""Looks at regions: their intervals hold the truth, and all of them together."""

import numpy as np
import pytest

from limi.decisions import parse_rule
from limi.explore import asking
from limi.explore.asking import Asker, Meter, Spent
from limi.explore.regions import error_of_look, look_at
from limi.metrics._rate import Rate
from limi.metrics.regions import Condition, Region
from limi.search.check import check_rows
from tests.explore.test_near import EVERYBODY, MODEL, SCHEMA, Bound
from tests.naive import intervals

REGION = Region((Condition(SCHEMA.columns[0], 0, low=2),))
TRUTH = float(check_rows(MODEL, SCHEMA, EVERYBODY[REGION.mask(EVERYBODY)]).flips.mean())
AVERAGE = Rate(0.01, 0.005, 0.02, 1000)


def drawing(seed):
    rng = np.random.default_rng(seed)
    return lambda n: EVERYBODY[rng.integers(len(EVERYBODY), size=n)]


def look(seed, number=1, **options):
    asker = Asker(Bound(), Meter())
    return look_at(REGION, number, SCHEMA, drawing(seed), asker, **options)


def test_all_looks_together_keep_to_one_error():
    assert sum(error_of_look(k) for k in range(1, 100_000)) < 0.05


def test_intervals_hold_the_truth_as_often_as_they_say():
    held = [
        told.rate.low <= TRUTH <= told.rate.high
        for told in (look(seed, most=400) for seed in range(60))
    ]
    assert sum(held) >= 57  # at 97.5 % three misses of sixty are rare


def test_a_look_ends_when_it_is_decided():
    told = look(1, average=AVERAGE)
    assert told.verdict == "more often"
    assert told.rate.low > AVERAGE.high
    assert told.rate.n < 2_000
    other = look(1, average=Rate(0.95, 0.94, 0.96, 1000))
    assert other.verdict == "less often"


def test_later_looks_are_held_to_more():
    first, tenth = look(3, most=500), look(3, 10, most=500)
    assert tenth.confidence > first.confidence
    assert tenth.rate.n == first.rate.n
    assert tenth.rate.low < first.rate.low < TRUTH < first.rate.high < tenth.rate.high


def test_what_if_shares_are_those_of_the_people_drawn():
    told = look(7, most=3_000)
    inside = EVERYBODY[REGION.mask(EVERYBODY)]
    for share, value in zip(told.shares, (0.0, 1.0), strict=True):
        people = inside.copy()
        people[:, 3] = value
        assert share.value == pytest.approx((MODEL(people) > 0.5).mean(), abs=0.05)
        assert share.low <= share.value <= share.high


def test_a_region_of_nobody_is_told():
    nobody = Region((Condition(SCHEMA.columns[0], 0, low=9),))
    told = look_at(nobody, 1, SCHEMA, drawing(0), Asker(Bound(), Meter()))
    assert told.verdict == "rare"
    assert told.rate.n == 0


def test_a_look_that_spends_the_budget_keeps_what_it_knows(monkeypatch):
    monkeypatch.setattr(asking, "_LOOKED_UP", 0)  # so that every row is asked anew
    meter = Meter(2_000)
    told = look_at(REGION, 1, SCHEMA, drawing(2), Asker(Bound(), meter))
    assert told.verdict == ""
    assert 0 < told.queries <= meter.asked <= 2_000
    assert told.rate.low <= TRUTH <= told.rate.high
    with pytest.raises(Spent, match="10 of the session's 10 are left"):
        look_at(REGION, 1, SCHEMA, drawing(2), Asker(Bound(), Meter(10)))


def test_answers_that_are_forgotten_meanwhile_are_still_told(monkeypatch):
    monkeypatch.setattr(asking, "_MOST_REMEMBERED", 4)
    asker = Asker(Bound(), Meter())
    for start in (0, 0, 3):  # what was known first is forgotten first
        some = EVERYBODY[start : start + 9]
        np.testing.assert_array_equal(asker.score(some), MODEL(some))
    np.testing.assert_array_equal(asker.score(EVERYBODY[8:20]), MODEL(EVERYBODY[8:20]))


def test_groups_share_the_error_of_their_look():
    first, tenth = look(3, most=500), look(3, 10, most=500)
    n = len(SCHEMA.combinations)
    assert first.share_confidence == 1 - error_of_look(1) / n
    assert tenth.share_confidence == 1 - error_of_look(10) / n
    for one, other in zip(first.shares, tenth.shares, strict=True):
        assert other.low < one.low <= one.value <= one.high < other.high
        hits = round(one.value * first.rate.n)
        assert (one.low, one.high) == pytest.approx(
            intervals.anytime_share(hits, first.rate.n, first.share_confidence)
        )


class _Number:
    """A model of numbers: its answers are the rows' own, far from normal."""

    def __init__(self):
        self.rule = parse_rule("difference > 1")

    def score(self, rows, job=None):
        return 1_000 + 40 * rows[:, 0] ** 2 * (1 + rows[:, 3])


def test_means_of_numbers_are_told_at_any_time_and_not_from_few():
    told = look_at(REGION, 2, SCHEMA, drawing(4), _Asks(), most=600)
    inside = EVERYBODY[REGION.mask(EVERYBODY)]
    for share, value in zip(told.shares, (0.0, 1.0), strict=True):
        people = inside.copy()
        people[:, 3] = value
        answers = _Number().score(people)
        assert share.low < answers.mean() < share.high
        assert share.is_known
        half = (share.high - share.low) / 2
        assert half > 1.5 * 1.96 * answers.std() / told.rate.n**0.5  # more than one look allows
    few = look_at(REGION, 1, SCHEMA, drawing(4), _Asks(), most=60)
    assert few.shares
    assert not any(share.is_known for share in few.shares)


class _Asks(Asker):
    def __init__(self):
        super().__init__(_Number(), Meter())

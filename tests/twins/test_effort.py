"""How a budget is shared among the parts of the twin question."""

import pytest

from limi.twins.effort import Effort, directions


def test_enough_queries_change_nothing():
    usual = Effort()
    assert usual.within(usual.questions(2), 2) is usual
    assert usual.within(float("inf"), 2) is usual


@pytest.mark.parametrize("queries", [0, 100, 700, 2_000, 5_000, 20_000, 60_000])
@pytest.mark.parametrize("n_directions", [2, 6, 10])
def test_a_smaller_effort_is_paid_for(queries, n_directions):
    less = Effort().within(queries, n_directions)
    assert less.questions(n_directions) <= queries
    for name in ("people", "again", "kept", "carried", "drawn"):
        assert 0 <= getattr(less, name) <= getattr(Effort(), name)
        assert getattr(less, name) == 0 or getattr(less, name) >= 20


def test_rates_come_first_then_carriers():
    assert Effort().within(20_000, 6).carried >= 20
    few = Effort().within(700, 2)
    assert few.people >= 50
    assert few.drawn == 0


def test_a_part_that_was_not_wanted_is_not_added():
    assert Effort(carried=0).within(20_000, 2).carried == 0


def test_each_group_goes_to_the_best_off_and_back():
    assert directions(2) == 2
    assert directions(5) == 8
    assert directions(40) == 10

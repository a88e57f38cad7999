"""The nearest person, beside a search of everybody; and every single change, beside trying all."""

import itertools

import numpy as np
import pytest

from limi.explore.asking import Asker, Meter
from limi.explore.near import Neighbourhood
from limi.search.check import check_rows
from limi.table.rows import distinct
from tests.toy import Linear, grid, schema_of

SCHEMA = schema_of((0, 4), (0, 4), (0, 4), (0, 1), protected=["x3"])
MODEL = Linear((1.3, -0.7, 0.4, 1.9), -2.97)
SCALE = np.array([1.0, 2.0, 0.5, 1.0])
EVERYBODY = grid(SCHEMA)
VERDICTS = check_rows(MODEL, SCHEMA, EVERYBODY)


class Bound:
    """A target of a toy."""

    rule = __import__("limi.decisions", fromlist=["AS_DECIDED"]).AS_DECIDED
    score = staticmethod(MODEL)


def asker():
    return Asker(Bound(), Meter())


def around(row):
    return Neighbourhood(SCHEMA, np.array(row, dtype=float), SCALE)


@pytest.mark.parametrize("goal", ["flip", "steady"])
@pytest.mark.parametrize("row", list(itertools.product((0, 2, 4), (0, 3), (0, 4), (0, 1)))[::2])
def test_nobody_is_nearer_with_up_to_two_changes(row, goal):
    near = around(row).find_nearest(goal, asker(), 10_000)
    mine = VERDICTS.flips[(row == EVERYBODY).all(axis=1)][0]
    if mine == (goal == "flip"):
        assert near.itself
        return
    sought = VERDICTS.flips if goal == "flip" else ~VERDICTS.flips
    changes = (EVERYBODY[:, :3] != np.array(row)[:3]).sum(axis=1)
    close = sought & (changes <= 2) & (EVERYBODY[:, 3] == row[3])
    if near.found is None:
        assert not close.any()
        return
    assert sought[(near.found.row == EVERYBODY).all(axis=1)].all()
    if close.any():
        assert near.found.distance <= around(row).distance(EVERYBODY)[close].min() + 1e-9


def test_two_small_changes_are_nearer_than_a_large_one_and_numbers_are_halved():
    schema = schema_of((0, 100_000), (0, 100_000), (0, 1), protected=["x2"])

    class Sum:
        """Steady beyond the sum, which few of the values that are tried at first come close to."""

        rule = Bound.rule

        @staticmethod
        def score(rows):
            steady = (rows[:, 0] >= 40_000) | (rows[:, 0] + 4 * rows[:, 1] >= 50_000)
            return np.where(steady, 0.9, 0.1 + 0.8 * rows[:, 2])

    near = Neighbourhood(schema, np.array([10_000.0, 0, 0]), np.array([1e4, 1e4, 1.0]))
    found = near.find_nearest("steady", Asker(Sum(), Meter()), 4_000).found
    assert found.distance == pytest.approx(1.0, abs=0.01)  # 10,000 of the second number


def test_a_budget_is_kept_and_said(monkeypatch):
    row = EVERYBODY[np.flatnonzero(~VERDICTS.flips)[0]]
    one = asker()
    near = around(row).find_nearest("flip", one, 6)
    assert near.queries <= 6
    assert one.meter.asked <= 6
    assert near.spent or near.found is not None


@pytest.mark.parametrize("row", [(0, 0, 0, 0), (4, 0, 4, 1), (2, 2, 2, 0), (3, 1, 0, 1)])
def test_the_walk_lists_the_smallest_change_of_every_column(row):
    row = np.array(row, dtype=float)
    own = MODEL(row[None])[0] > 0.5
    for turn in around(row).walk(asker()):
        values = np.arange(2.0) if turn.column == "x3" else np.arange(5.0)
        turning = []
        for value in values:
            other = row.copy()
            other[turn.position] = value
            if (MODEL(other[None])[0] > 0.5) != own:
                turning.append(abs(value - row[turn.position]))
        if turn.to is None:
            assert turning == []
        else:
            assert abs(float(turn.to) - row[turn.position]) == min(turning)


def test_numbers_of_many_values_are_halved_down_to_the_boundary():
    from limi.table.schema import Column, Schema

    schema = Schema(
        (
            Column(name="income", kind="numerical", low=0, high=100_000, step=1),
            Column(name="share", kind="numerical", low=0.0, high=1.0),
            Column(name="sex", kind="categorical", levels=("F", "M")),
        )
    ).protect(["sex"])

    class Steps:
        rule = Bound.rule

        @staticmethod
        def score(rows):
            return np.where((rows[:, 0] >= 31_417) | (rows[:, 1] > 0.7071), 0.9, 0.1)

    near = Neighbourhood(schema, np.array([1000.0, 0.25, 0.0]), np.array([9e3, 0.3, 1.0]))
    turns = {turn.column: turn for turn in near.walk(Asker(Steps(), Meter()))}
    assert turns["income"].to == "31417"
    assert float(turns["share"].to) == pytest.approx(0.7071, abs=1e-4)
    assert turns["sex"].to is None


def test_neighbours_are_distinct_and_in_the_order_of_distance():
    rows = around((2, 2, 2, 1)).step(np.array([[2.0, 2, 2, 1]]))
    assert len(rows) == 12
    assert len(distinct(SCHEMA, rows).first) == 12
    assert (np.diff(around((2, 2, 2, 1)).distance(rows)) >= 0).all()


def test_a_walk_ends_at_nobody_who_breaks_a_rule():
    schema = schema_of((0, 400), (0, 1), protected=["x1"])

    class Late:
        rule = Bound.rule

        @staticmethod
        def score(rows):
            return np.where(rows[:, 0] >= 111, 0.9, 0.1)

    class Tens(Neighbourhood):
        def _could_be(self, rows):
            return rows[:, 0] % 10 == 0

    near = Tens(schema, np.array([0.0, 0.0]), np.ones(2))
    turns = {turn.column: turn for turn in near.walk(Asker(Late(), Meter()))}
    assert turns["x0"].row is not None
    assert turns["x0"].row[0] % 10 == 0
    assert turns["x0"].row[0] >= 111

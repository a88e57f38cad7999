"""Steps of columns: one size for all methods, moves within the domain, positions and back."""

import numpy as np

from limi.table import steps
from limi.table.rows import snap, uniform
from limi.table.schema import Column, Schema
from limi.table.steps import Ladder
from tests.toy import MIXED


def test_steps_are_those_of_each_column():
    schema = Schema(
        (
            Column(name="big", kind="numerical", low=0, high=1000, step=100),
            Column(name="fine", kind="numerical", low=0, high=1, step=0.1),
            Column(name="real", kind="numerical", low=-1, high=1),
            Column(name="city", kind="categorical", levels=("a", "b", "c")),
            Column(name="fixed", kind="numerical", low=3, high=3, step=1),
        )
    )
    schema = Schema((*schema.columns, Column(name="sex", kind="boolean", levels=(False, True))))
    schema = schema.protect(["sex"])
    rows = np.array([[500.0, 0.3, 0.1234, 1.0, 3.0, 0.0]])
    up = steps.move(schema, rows, np.array([[1.0, 1, 1, 1, 1, 0]]))
    np.testing.assert_array_equal(up, [[600, 0.4, -1 + 57 * 0.02, 2, 3, 0]])
    down = steps.move(schema, rows, np.array([[-2.0, -1, -1, -2, 0, 0]]))
    np.testing.assert_array_equal(down, [[300, 0.2, -1 + 56 * 0.02, 0, 3, 0]])
    # There and back again meets the same numbers, whatever was added up on the way.
    here = up
    for turn in (1, 1, -1, 1, -1, -1):
        here = steps.move(schema, here, turn * np.array([[0.0, 0, 1, 0, 0, 0]]))
    np.testing.assert_array_equal(here, up)
    ends = steps.move(schema, rows, np.array([[99.0, 99, 99, 99, 99, 0]]))
    np.testing.assert_array_equal(ends, [[1000, 1, 1, 2, 3, 0]])
    assert list(steps.movable(schema)) == [True, True, True, True, False, False]


def test_ladders_keep_cells_where_they_are():
    rows = uniform(MIXED, 300, np.random.default_rng(0))
    rows[::7, 5] = np.nan
    ladder = Ladder.of(MIXED)
    back = ladder.descend(ladder.climb(rows))
    np.testing.assert_allclose(back, rows, atol=1e-12)
    np.testing.assert_array_equal(np.isnan(back), np.isnan(rows))
    assert ladder.last.tolist() == [72, 1, 3, 2, 1, 101, 20]


def test_a_missing_cell_is_a_step_above_the_highest():
    rows = np.array([[20.0, 0, 2, 0, 0, 5.0, 0.3]])
    ladder = Ladder.of(MIXED)
    for column, up in ((2, np.nan), (5, np.nan), (3, 1.0), (6, 0.4)):
        stepped = ladder.step_cells(rows, np.array([column]), np.array([1.0]))
        np.testing.assert_array_equal(stepped[0, column], up)
        back = ladder.step_cells(stepped, np.array([column]), np.array([-1.0]))
        np.testing.assert_array_equal(back, rows)
    np.testing.assert_array_equal(snap(MIXED, stepped), stepped)


def test_both_ways_to_count_agree_on_the_size_of_a_step():
    rows = uniform(MIXED, 200, np.random.default_rng(1))
    ladder = Ladder.of(MIXED)
    room = ladder.climb(rows) <= ladder.top - 1  # above, the ladder has missing and a move ends
    for column in range(len(MIXED)):
        moves = np.zeros_like(rows)
        moves[:, column] = 1.0
        moved = steps.move(MIXED, rows, moves)
        climbed = ladder.step_cells(rows, np.full(len(rows), column), np.ones(len(rows)))
        here = room[:, column]
        if MIXED.step[column]:
            np.testing.assert_array_equal(moved[here], climbed[here])
        gap = np.abs(moved - climbed)[here, column]
        assert gap.max() <= steps.step_sizes(MIXED)[column]


def test_a_move_leaves_missing_cells_missing():
    rows = np.array([[20.0, 0, np.nan, 0, 0, np.nan, 0.3]])
    for moves in (np.ones((1, 7)), -np.ones((1, 7))):
        there = steps.move(MIXED, rows, moves)
        np.testing.assert_array_equal(np.isnan(there), np.isnan(rows))

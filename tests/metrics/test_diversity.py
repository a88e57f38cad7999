import numpy as np
import pytest

from limi.metrics.diversity import distinct_cells, pairwise_distance
from limi.table.schema import Column, Schema
from tests.toy import integers

SCHEMA = Schema(
    (
        integers("n", 0, 10),
        Column(name="c", kind="categorical", levels=("a", "b", "c"), missing=True),
        integers("p", 0, 1),
    )
).protect(["p"])


def test_distance_of_two_rows_is_gower_s():
    rows = np.array([[0.0, 0.0, 0.0], [5.0, 2.0, 1.0]])
    distance = pairwise_distance(rows, SCHEMA, np.random.default_rng(0))
    assert distance == pytest.approx((0.5 + 1.0) / 2)


def test_missing_cells_differ_from_known_ones_only():
    gap = np.array([[3.0, np.nan, 0.0], [3.0, np.nan, 0.0]])
    assert pairwise_distance(gap, SCHEMA, np.random.default_rng(0)) == 0
    gap[1, 1] = 2.0
    assert pairwise_distance(gap, SCHEMA, np.random.default_rng(0)) == pytest.approx(0.5)


def test_one_row_has_no_distance():
    assert np.isnan(pairwise_distance(np.zeros((1, 3)), SCHEMA, np.random.default_rng(0)))


def test_cells_are_counted_on_a_coarse_grid():
    rows = np.array([[0, 0, 0], [1, 0, 1], [2, 0, 0], [3, 0, 0], [10, 1, 0], [10, np.nan, 0.0]])
    assert distinct_cells(rows, SCHEMA) == 4


def test_four_values_are_four_cells():
    flag = Column(name="flag", kind="categorical", levels=("a", "b"))
    schema = Schema((integers("grade", 1, 4), flag)).protect(["flag"])
    rows = np.array([[1.0, 0], [2, 0], [3, 0], [4, 0], [4, 1], [np.nan, 0]])
    assert distinct_cells(rows, schema) == 5  # four grades and the missing one
    assert distinct_cells(rows[:0], schema) == 0


def test_cells_of_many_columns_are_those_of_sets_of_tuples():
    schema = Schema(tuple(integers(f"n{i}", 0, 9) for i in range(40))).protect(["n0"])
    rows = np.random.default_rng(0).integers(0, 10, (300, 40)).astype(float)
    rows[150:] = rows[:150]
    rows[150:, 0] = 3.0
    cells = {tuple(min(int(value / 9 * 4), 3) for value in row[1:]) for row in rows}
    assert distinct_cells(rows, schema) == len(cells)

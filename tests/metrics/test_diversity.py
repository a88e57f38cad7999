import numpy as np
import pytest

from limi.metrics.diversity import distinct_cells, pairwise_distance, share_one_apart
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


def test_every_two_rows_are_a_pair_and_nobody_is_one_alone():
    rows = np.array([[0.0, 0, 0], [5.0, 0, 0], [10.0, 0, 0]])
    # Two pairs are half the range apart and one the whole; the other column is the same.
    distance = pairwise_distance(rows, SCHEMA, np.random.default_rng(0))
    assert distance == pytest.approx(2 / 3 / 2, abs=0.005)
    few = pairwise_distance(rows, SCHEMA, np.random.default_rng(0), n_pairs=1)
    assert few in (0.25, 0.5)


def test_missing_numbers_and_narrow_ranges():
    schema = Schema(
        (
            Column(name="share", kind="numerical", low=0.25, high=0.75, missing=True),
            integers("n", 0, 10, missing=True),
        )
    )
    rng = np.random.default_rng(0)
    near = np.array([[0.25, 3.0], [0.5, 3.0]])
    assert pairwise_distance(near, schema, rng) == pytest.approx(0.5 / 2)
    one_gap = np.array([[0.25, np.nan], [0.25, 3.0]])
    assert pairwise_distance(one_gap, schema, rng) == pytest.approx(1 / 2)
    both_gaps = np.array([[np.nan, np.nan], [np.nan, 3.0]])
    assert pairwise_distance(both_gaps, schema, rng) == pytest.approx(1 / 2)


def test_ordered_levels_are_apart_by_their_places_and_a_constant_by_nothing():
    schema = Schema(
        (
            Column(name="rank", kind="ordered", levels=("low", "mid", "high", "top")),
            Column(name="one", kind="numerical", low=3, high=3, step=1),
            Column(name="year", kind="numerical", low=2000, high=2010, step=1),
        )
    )
    rows = np.array([[0.0, 3.0, 2001.0], [2.0, 3.0, 2005.0]])
    distance = pairwise_distance(rows, schema, np.random.default_rng(0))
    assert distance == pytest.approx((2 / 3 + 0 + 0.4) / 3)


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


def test_bins_are_of_equal_width_and_the_largest_value_is_in_the_last():
    schema = Schema((integers("n", 10, 20), integers("p", 0, 1))).protect(["p"])
    rows = np.column_stack([np.arange(10.0, 21.0), np.zeros(11)])
    for bins in (1, 2, 3, 4, 5, 10):
        edges = [10 + 10 * k / bins for k in range(bins)]
        cells = {sum(value >= edge for edge in edges) for value in range(10, 21)}
        assert distinct_cells(rows, schema, bins=bins) == len(cells) == bins
    # Which values share a bin, not only how many there are: 10, 11, 12 | 13, 14 | 15 ...
    for few, cells in (([10, 12], 1), ([12, 13], 2), ([14, 15], 2), ([17, 18], 2), ([18, 20], 1)):
        assert distinct_cells(rows[np.isin(rows[:, 0], few)], schema) == cells


def test_a_column_of_one_value_is_one_cell():
    schema = Schema((integers("n", 7, 7), integers("m", 0, 1), integers("p", 0, 1))).protect(["p"])
    rows = np.array([[7.0, 0, 0], [7.0, 1, 0], [7.0, 1, 1]])
    assert distinct_cells(rows, schema) == 2
    assert distinct_cells(rows[:1], schema) == 1


def test_cells_of_many_columns_are_those_of_sets_of_tuples():
    schema = Schema(tuple(integers(f"n{i}", 0, 9) for i in range(40))).protect(["n0"])
    rows = np.random.default_rng(0).integers(0, 10, (300, 40)).astype(float)
    rows[150:] = rows[:150]
    rows[150:, 0] = 3.0
    cells = {tuple(min(int(value / 9 * 4), 3) for value in row[1:]) for row in rows}
    assert distinct_cells(rows, schema) == len(cells)


def plain_share_one_apart(rows, schema):
    """Pair by pair and cell by cell."""

    def n_apart(a, b):
        free = [(a[i], b[i]) for i in schema.free_index]
        return sum(not (x == y or (x != x and y != y)) for x, y in free)

    beside = [any(n_apart(row, other) == 1 for other in rows) for row in rows]
    return sum(beside) / len(beside)


@pytest.mark.parametrize("seed", range(5))
def test_rows_one_column_apart_are_those_that_pairs_tell(seed):
    rng = np.random.default_rng(seed)
    columns = [integers(name, 0, 5, missing=name == "b") for name in "abcd"]
    schema = Schema((*columns, integers("p", 0, 1))).protect(["p"])
    rows = rng.integers(0, 6, (60, 5)).astype(float)
    rows[:, 4] %= 2
    rows[rng.random(60) < 0.2, 1] = np.nan
    found = share_one_apart(rows, schema)
    assert found == pytest.approx(plain_share_one_apart(rows, schema))
    assert 0 < found < 1


def test_equal_rows_and_protected_cells_are_not_one_column_apart():
    rows = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    assert share_one_apart(rows, SCHEMA) == 0
    assert share_one_apart(np.vstack([rows, [[2.0, 0.0, 0.0]]]), SCHEMA) == 1
    assert np.isnan(share_one_apart(rows[:0], SCHEMA))

"""P-values of single rows: uniform for real rows, small for rows that no table holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from limi import data
from limi.errors import InvalidInput
from limi.generators import trees
from limi.metrics.row_naturalness import (
    conformal_p_values,
    judge_by_distance,
    nearest_neighbour_distance,
)
from limi.table.frames import Codec
from limi.table.rows import uniform
from limi.table.schema import Column, Schema


@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(st.integers(0, 5), max_size=10),
    calibration=st.lists(st.integers(0, 5), min_size=1, max_size=10),
)
def test_p_values_are_ranks(scores, calibration):
    expected = [
        (1 + sum(c <= score for c in calibration)) / (1 + len(calibration)) for score in scores
    ]
    ours = conformal_p_values(np.array(scores, dtype=float), np.array(calibration, dtype=float))
    np.testing.assert_allclose(ours, expected)


@pytest.fixture(scope="module")
def census():
    known = data.load("census")
    rows = Codec.learn(known.frame, known.schema).encode(known.frame)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    return known.schema, rows[:-2000], rows[-2000:]


def test_held_out_real_rows_are_uniform_and_random_rows_odd(census):
    schema, real, held_out = census
    judge = judge_by_distance(real, schema, np.random.default_rng(1))
    p = judge.p_values(held_out)
    assert ((p > 0) & (p <= 1)).all()
    assert kstest(p, "uniform").pvalue > 0.01
    assert 0.035 < (p < 0.05).mean() < 0.065  # what the report promises of the table's own rows
    odd = judge.p_values(uniform(schema, 5000, np.random.default_rng(2)))
    assert (odd < 0.05).mean() >= 0.95


def test_rows_of_a_generator_are_not_called_more_natural_than_real_ones(census):
    schema, real, held_out = census
    rng = np.random.default_rng(4)
    made = trees.fit(real, schema, rng)
    generated = made.decode(made.sample_latents(2000, rng))
    judge = judge_by_distance(real, schema, rng)
    means = [judge.p_values(rows).mean() for rows in (generated, held_out)]
    assert means[0] < means[1] + 0.05


def test_missing_cells_and_rare_levels_are_odd_where_the_table_has_few():
    schema = Schema(
        (
            Column(name="x", kind="numerical", low=0, high=9, step=0.0, missing=True),
            Column(name="y", kind="categorical", levels=("a", "b", "c")),
        )
    )
    rng = np.random.default_rng(0)
    real = np.column_stack([rng.uniform(0, 9, 2000), rng.integers(0, 2, 2000)])
    real[:3, 0] = np.nan  # five that are alike would be near one another
    judge = judge_by_distance(real, schema, rng)
    usual, missing, rare = judge.p_values(np.array([[4.0, 1], [np.nan, 0], [4.0, 2]]))
    assert usual > 0.05
    assert missing < 0.05
    assert rare < 0.05
    assert len(judge.p_values(np.empty((0, 2)))) == 0


def test_the_same_seed_gives_the_same_p_values(census):
    schema, real, held_out = census
    p = [
        judge_by_distance(real[:4000], schema, np.random.default_rng(seed)).p_values(held_out[:50])
        for seed in (1, 1, 2)
    ]
    assert (p[0] == p[1]).all()
    assert (p[0] != p[2]).any()


def test_too_few_rows_are_refused():
    schema = Schema((Column(name="x", kind="numerical", low=0, high=9, step=1),))
    with pytest.raises(InvalidInput, match="39 rows"):
        judge_by_distance(np.zeros((39, 1)), schema, np.random.default_rng(0))


def test_one_half_of_the_table_is_held_out():
    """The row that is farther off than all held-out rows has the lowest rank among them."""
    schema = Schema((Column(name="x", kind="numerical", low=0, high=900, step=0.0),))
    for n in (40, 41, 100):
        real = np.random.default_rng(n).uniform(0, 9, (n, 1))
        judge = judge_by_distance(real, schema, np.random.default_rng(0))
        p = judge.p_values(np.array([[900.0]]))
        assert p.tolist() == [1 / (1 + n - n // 2)]


def test_five_neighbours_speak_for_a_row():
    """A row beside four odd ones is odd; beside five it is not."""
    schema = Schema((Column(name="x", kind="numerical", low=0, high=900, step=0.0),))
    rng = np.random.default_rng(0)
    for n_odd, is_odd in ((4, True), (5, False)):
        real = np.concatenate([rng.uniform(0, 9, (40, 1)), np.full((n_odd, 1), 500.0)])
        order = np.arange(len(real))

        class Kept:
            """The odd rows come into the half that the others are measured by."""

            def permutation(self, n, order=order):
                return order[::-1]

        judge = judge_by_distance(real, schema, Kept())
        assert (judge.p_values(np.array([[500.0]]))[0] < 0.05) == is_odd


def test_the_distance_to_the_nearest_real_row():
    schema = Schema(
        (
            Column(name="x", kind="numerical", low=0, high=9, step=0.0),
            Column(name="y", kind="categorical", levels=("a", "b")),
        )
    )
    real = np.array([[0.0, 0], [2, 0], [4, 1], [6, 1]])
    spread = real[:, 0].std()
    rows = np.array([[0.0, 0], [3, 0], [2, 1]])
    expected = [0, 1 / spread, min(2 / spread, np.sqrt(2))]
    ours = nearest_neighbour_distance(real, rows, schema, np.random.default_rng(0))
    assert ours == pytest.approx(np.mean(expected), rel=1e-5)
    with pytest.raises(InvalidInput, match="both sides"):
        nearest_neighbour_distance(real, rows[:0], schema, np.random.default_rng(0))

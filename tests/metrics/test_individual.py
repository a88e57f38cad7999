"""Rates, consistency and generalised entropy against their definitions and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from limi.errors import InvalidInput
from limi.metrics.individual import (
    causal_discrimination,
    clopper_pearson,
    consistency,
    flip_rate,
    generalized_entropy_error,
    group_discrimination,
    rate_of,
)
from limi.search.check import check_rows
from limi.table.schema import Column, Schema
from tests.naive import groups as naive


@pytest.mark.parametrize(("share", "n"), [(0.001, 10_000), (0.0271, 10_000), (0.3, 500), (0.5, 40)])
def test_1000_audits_of_a_known_rate_hold_it(share, n):
    hits = np.random.default_rng(0).binomial(n, share, 1000)
    ends = np.array([clopper_pearson(int(h), n) for h in hits])
    assert ((ends[:, 0] <= share) & (share <= ends[:, 1])).mean() >= 0.94
    # Not by simulation alone: the probability of all counts whose interval holds the rate.
    counts = np.arange(n + 1)
    likely = counts[binom.pmf(counts, n, share) > 1e-12]
    held = [low <= share <= high for low, high in (clopper_pearson(int(h), n) for h in likely)]
    assert binom.pmf(likely, n, share)[held].sum() >= 0.95


def test_1000_audits_of_a_model_with_a_known_rate_hold_it():
    # sex matters to the one in ten with x = 9, and to nobody else.
    schema = Schema(
        (
            Column(name="x", kind="numerical", low=0, high=9, step=1),
            Column(name="sex", kind="categorical", levels=("f", "m")),
        )
    ).protect(["sex"])

    def score(rows):
        return np.where(rows[:, 0] == 9, rows[:, 1], 0.0)

    rng = np.random.default_rng(0)
    held = 0
    for _ in range(1000):
        rows = np.column_stack([rng.integers(0, 10, 300), rng.integers(0, 2, 300)]).astype(float)
        rate = flip_rate(check_rows(score, schema, rows).flips)
        held += rate.low <= 0.1 <= rate.high
    assert held >= 940


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 200), part=st.floats(0, 1), confidence=st.sampled_from([0.9, 0.95, 0.99]))
def test_clopper_pearson_is_scipy_s_exact_interval(n, part, confidence):
    hits = round(part * n)
    expected = binomtest(hits, n).proportion_ci(confidence, method="exact")
    np.testing.assert_allclose(clopper_pearson(hits, n, confidence), tuple(expected), atol=1e-9)


def test_the_causal_score_is_the_flip_rate_at_another_confidence():
    flips = np.arange(100) < 7
    causal = causal_discrimination(flips)
    assert causal.estimate == flip_rate(flips).estimate == 0.07
    assert causal == rate_of(7, 100, 0.99)
    assert causal.low < flip_rate(flips).low


def test_the_group_score_is_the_widest_gap_of_shares():
    assert group_discrimination(np.array([30, 50, 45]), 100) == 0.2
    assert group_discrimination(np.array([7, 7]), 7) == 0
    assert group_discrimination(np.array([0, 3]), 4) == 0.75
    assert group_discrimination(np.array([0, 1]), 1) == 1
    assert group_discrimination(np.zeros(2, dtype=np.int64), 0) == 0


NUMBERS = Schema(
    (
        Column(name="a", kind="numerical", low=-9, high=9, step=0.0),
        Column(name="b", kind="numerical", low=-9, high=9, step=0.0),
        Column(name="sex", kind="categorical", levels=("f", "m")),
    )
).protect(["sex"])


def test_consistency_is_aif360_s_over_the_columns_that_are_not_protected():
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(300, 2)), rng.integers(0, 2, 300)])
    decisions = rows[:, 0] + rows[:, 2] > 0.5
    features = rows[:, :2] / rows[:, :2].std(axis=0)
    for k in (1, 5, 20):
        tree = NearestNeighbors(n_neighbors=k, algorithm="ball_tree").fit(features)
        near = tree.kneighbors(features, return_distance=False)
        expected = 1 - np.abs(decisions - decisions[near].mean(axis=1)).mean()
        assert consistency(decisions, rows, NUMBERS, n_neighbours=k) == pytest.approx(expected)


def test_consistency_sees_people_who_differ_in_a_protected_value_only():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(100, 2))
    rows = np.concatenate([np.column_stack([half, np.full(100, sex)]) for sex in (0.0, 1.0)])
    alike = consistency(np.ones(200, dtype=bool), rows, NUMBERS, n_neighbours=2)
    split = consistency(rows[:, 2] == 1, rows, NUMBERS, n_neighbours=2)
    assert alike == 1
    assert split == pytest.approx(0.5)


def test_consistency_needs_rows():
    with pytest.raises(InvalidInput, match="at least 5 rows"):
        consistency(np.ones(4, dtype=bool), np.zeros((4, 3)), NUMBERS)
    with pytest.raises(InvalidInput, match="7 rows and 6 decisions"):
        consistency(np.ones(6, dtype=bool), np.zeros((7, 3)), NUMBERS)
    assert consistency(np.ones(5, dtype=bool), np.zeros((5, 3)), NUMBERS) == 1


def test_consistency_looks_at_five_neighbours():
    # Two far clouds of five: with five neighbours nobody sees the other cloud.
    rows = np.zeros((10, 3))
    rows[5:, 0] = 9.0
    assert consistency(rows[:, 0] > 0, rows, NUMBERS) == 1
    # One of each five is decided differently: 4 rows are off by 1/5, one by 4/5.
    odd = np.arange(10) % 5 == 0
    assert consistency(odd, rows, NUMBERS) == pytest.approx(1 - (4 * 0.2 + 0.8) / 5)


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.tuples(st.booleans(), st.integers(0, 1)), min_size=1, max_size=30),
    alpha=st.sampled_from([2.0, 1.0, 0.0, 0.5, 3.0]),
)
def test_generalised_entropy_agrees_with_its_formula(rows, alpha):
    decisions, labels = (np.array(column) for column in zip(*rows, strict=True))
    expected = naive.generalized_entropy(decisions.tolist(), labels.tolist(), alpha)
    ours = generalized_entropy_error(decisions, labels, alpha)
    assert ours == pytest.approx(expected, abs=1e-9)


def test_generalised_entropy_is_half_the_squared_variation_unless_told_otherwise():
    decisions, labels = np.array([True, False, True, False]), np.array([1, 1, 0, 0])
    benefits = np.array([1.0, 0.0, 2.0, 1.0])
    expected = benefits.var() / benefits.mean() ** 2 / 2
    assert generalized_entropy_error(decisions, labels) == pytest.approx(expected)


def test_generalised_entropy_leaves_unknown_labels_out():
    decisions, labels = np.array([True, False, True]), np.array([1, 1, -1])
    assert generalized_entropy_error(decisions, labels) == generalized_entropy_error(
        decisions[:2], labels[:2]
    )
    with pytest.raises(InvalidInput, match="no row has a label"):
        generalized_entropy_error(decisions, np.full(3, -1))

"""Shares of carriers, held against all orders one by one."""

import itertools

import numpy as np
import pytest

from limi.table.schema import Column, Schema
from limi.twins.carriers import PERMUTATIONS, find_carriers, share_out
from tests.naive import shapley


def decide(rows):
    rows = np.atleast_2d(rows)
    return ((rows[:, 1] + rows[:, 2] > 1) & (rows[:, 3] > 0)) | (rows[:, 4] > 2)


def score(rows):
    return np.where(decide(rows), 0.9, 0.1)


GROUPS = [(1,), (2, 3), (4,)]


def test_shares_are_those_of_all_orders():
    rng = np.random.default_rng(0)
    rows = np.zeros((4000, 5))
    twins = rng.integers(0, 4, rows.shape).astype(float)
    changed = decide(twins)
    rows, twins = rows[changed][:600], twins[changed][:600]
    found = share_out(score, rows, twins, GROUPS, rng)
    plain = np.array(
        [
            shapley.shares(lambda row: decide(np.array(row))[0], row, twin, GROUPS)
            for row, twin in zip(rows, twins, strict=True)
        ]
    )
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    # Three carriers have six orders; sixteen drawn ones come near their mean, all together nearer.
    assert np.abs(found.mean(axis=0) - plain.mean(axis=0)).max() < 0.02
    only = (plain == 1).any(axis=1)
    np.testing.assert_allclose(found[only], plain[only])


def test_lost_decisions_have_shares_as_gained_ones():
    rng = np.random.default_rng(1)
    rows = np.full((50, 5), 3.0)
    twins = np.zeros((50, 5))
    shares = share_out(score, rows, twins, GROUPS, rng, favorably=False)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (shares[:, 2] > 0).all()


def test_a_mixture_is_asked_once_and_the_ends_are_not_asked():
    asked = []

    def ask(rows):
        asked.append(rows)
        return score(rows)

    rows, twins = np.zeros((1, 5)), np.full((1, 5), 3.0)
    share_out(ask, rows, twins, GROUPS, np.random.default_rng(2))
    (mixtures,) = asked
    assert len(np.unique(mixtures, axis=0)) == len(mixtures) <= 2 ** len(GROUPS) - 2
    assert len(mixtures) < 2 * PERMUTATIONS * len(GROUPS)


def test_columns_that_tell_of_each_other_are_one_carrier():
    rng = np.random.default_rng(3)
    names = ("sex", "years", "degree", "city", "hours")
    schema = Schema(
        tuple(Column(name=name, kind="numerical", low=0, high=99, step=1) for name in names)
    ).protect(["sex=0,1"])
    years = rng.integers(0, 20, 2000)
    columns = (
        rng.integers(0, 2, 2000),
        years,
        years // 5,
        rng.integers(0, 8, 2000),
        rng.integers(0, 60, 2000),
    )
    rows = np.stack(columns, axis=1).astype(float)
    assert find_carriers(schema, rows, range(5)) == [(0,), (1, 2), (3,), (4,)]
    assert find_carriers(schema, rows, [3]) == [(3,)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_in_which_carriers_are_named_does_not_matter(order):
    rows, twins = np.zeros((400, 5)), np.full((400, 5), 1.0)
    rng = np.random.default_rng(4)
    shares = share_out(score, rows, twins, [GROUPS[k] for k in order], rng).mean(axis=0)
    expected = shapley.shares(lambda row: decide(np.array(row))[0], rows[0], twins[0], GROUPS)
    np.testing.assert_allclose(shares, np.array(expected)[list(order)], atol=0.05)

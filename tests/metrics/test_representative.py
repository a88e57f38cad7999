"""Findings that look like the population: odds, and draws that follow them."""

import numpy as np
import pytest

from limi.metrics.representative import effective_number, population_odds, representative
from limi.table.schema import Column, Schema
from tests.toy import integers

SCHEMA = Schema((integers("a", 0, 20), integers("b", 0, 5)))


def rows(rng, n, chance):
    """Rows whose first column is binomial with this chance."""
    return np.stack([rng.binomial(20, chance, n), rng.integers(0, 6, n)], axis=1).astype(float)


def test_the_draw_moves_towards_the_population():
    rng = np.random.default_rng(0)
    real, found = rows(rng, 4_000, 0.4), rows(rng, 20_000, 0.5)
    chosen = representative(real, found, SCHEMA, 2_000, rng)
    assert len(chosen) == len(set(chosen)) == 2_000
    before, after = found[:, 0].mean(), found[chosen, 0].mean()
    assert abs(after - 8.0) < 0.3 < abs(before - 8.0)


def test_odds_are_the_density_ratio():
    rng = np.random.default_rng(1)
    real, found = rows(rng, 30_000, 0.4), rows(rng, 30_000, 0.5)
    odds = population_odds(real, found, SCHEMA, rng)
    x = found[:, 0]
    exact = x * np.log(0.4 / 0.5) + (20 - x) * np.log(0.6 / 0.5)
    common = (x >= 6) & (x <= 13)
    assert np.abs(odds - exact)[common].mean() < 0.15


def test_odds_of_numbers_of_many_values_are_the_density_ratio_too():
    rng = np.random.default_rng(6)
    schema = Schema((Column(name="x", kind="numerical", low=-9.0, high=9.0, missing=True),))
    real, found = rng.normal(0.0, 1.0, (6_000, 1)), rng.normal(0.5, 1.0, (6_000, 1))
    real[:600] = np.nan
    found[:600] = np.nan
    odds = population_odds(real, found, schema, rng)
    x = found[:, 0]
    assert np.abs(odds - (0.125 - 0.5 * x))[np.abs(x - 0.25) < 1.5].mean() < 0.2
    assert np.abs(odds[:600]).mean() < 0.15  # missing as often on both sides


def test_few_findings_and_fewer_than_asked_for():
    rng = np.random.default_rng(2)
    real = rows(rng, 100, 0.4)
    assert representative(real, rows(rng, 3, 0.5), SCHEMA, 10, rng).tolist() == [0, 1, 2]
    assert len(representative(real, rows(rng, 0, 0.5), SCHEMA, 10, rng)) == 0


def test_same_rng_same_draw():
    real, found = rows(np.random.default_rng(3), 500, 0.4), rows(np.random.default_rng(4), 900, 0.5)
    draws = [representative(real, found, SCHEMA, 100, np.random.default_rng(5)) for _ in "ab"]
    np.testing.assert_array_equal(*draws)


def at(n, value):
    return np.column_stack([np.full(n, float(value)), np.zeros(n)])


@pytest.mark.parametrize("n_real", [2, 3])
@pytest.mark.parametrize("n_found", [4, 5])
def test_two_real_rows_and_four_findings_are_enough(n_real, n_found):
    odds = population_odds(at(n_real, 0), at(n_found, 20), SCHEMA, np.random.default_rng(0))
    assert len(odds) == n_found
    assert (odds < -3).all()  # no real row is there


@pytest.mark.parametrize(("n_real", "n_found"), [(1, 50), (0, 50), (50, 3), (50, 0)])
def test_of_fewer_nothing_is_known(n_real, n_found):
    odds = population_odds(at(n_real, 0), at(n_found, 20), SCHEMA, np.random.default_rng(0))
    assert odds.tolist() == [0.0] * n_found


def test_no_finding_is_judged_by_a_classifier_that_was_trained_on_it():
    """Among findings of the population's own kind one's own place says nothing against it."""
    schema = Schema(tuple(Column(name=f"x{i}", kind="numerical", low=-9, high=9) for i in range(5)))
    rng = np.random.default_rng(0)
    real, found = rng.normal(size=(150, 5)), rng.normal(size=(150, 5))
    assert population_odds(real, found, schema, rng).mean() > 0


def test_columns_of_every_kind_and_of_many_values_are_taken():
    many = tuple(f"level {i}" for i in range(300))
    schema = Schema(
        (
            Column(name="real", kind="numerical", low=-1, high=1),
            Column(name="rank", kind="ordered", levels=many),
            Column(name="town", kind="categorical", levels=many),
            Column(name="kind", kind="categorical", levels=("a", "b", "c"), missing=True),
        )
    )
    rng = np.random.default_rng(0)

    def draw(n, kinds):
        columns = [rng.uniform(-1, 1, n), *rng.integers(0, 300, (2, n)), rng.choice(kinds, n)]
        return np.column_stack(columns).astype(float)

    real, found = draw(800, [0, 2]), draw(800, [0, 1, np.nan])
    odds = population_odds(real, found, schema, rng)
    shared = found[:, 3] == 0
    assert odds[shared].min() > odds[~shared].max()


def test_ordered_levels_are_graded():
    """A level that nobody else has lies between its neighbours."""
    schema = Schema(
        (Column(name="rank", kind="ordered", levels=tuple("abcdefghij")), integers("b", 0, 5))
    )
    rng = np.random.default_rng(0)
    real, found = at(100, 0), at(300, 0)
    real[:, 0], found[:, 0] = rng.integers(6, 10, 100), rng.integers(0, 4, 300)
    found[7, 0] = 5
    odds = population_odds(real, found, schema, rng)
    assert odds[7] > 1
    assert (np.delete(odds, 7) < -1).all()


def test_the_draw_follows_the_odds():
    """Three of four findings lie where half of the population does."""
    rng = np.random.default_rng(0)
    real = np.concatenate([at(2_000, 3), at(2_000, 15)])
    found = np.concatenate([at(3_000, 3), at(1_000, 15)])
    chosen = representative(real, found, SCHEMA, 400, rng)
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert (found[chosen, 0] == 15).mean() == pytest.approx(0.5, abs=0.08)
    assert representative(real, found, SCHEMA, 4_000, rng).tolist() == list(range(4_000))


def test_columns_come_nearer_to_the_table_than_odds_alone_bring_them():
    """Odds learned from few rows leave something over, which raking takes away."""
    schema = Schema(tuple(integers(f"x{j}", 0, 5) for j in range(8)))
    rng = np.random.default_rng(3)
    real = rng.binomial(5, 0.4, (400, 8)).astype(float)
    found = rng.binomial(5, 0.55, (4_000, 8)).astype(float)
    odds = population_odds(real, found, schema, np.random.default_rng(0))
    plain = np.argsort(-(odds + rng.gumbel(size=len(odds))))[:800]
    raked = representative(real, found, schema, 800, np.random.default_rng(0))

    def away(chosen):
        return np.abs(found[chosen].mean(axis=0) - real.mean(axis=0)).mean()

    assert away(raked) < 0.9 * away(plain) < 0.9 * away(slice(None))


def test_without_a_number_as_many_are_drawn_as_weights_are_worth():
    rng = np.random.default_rng(0)
    real = at(4_000, 3)
    many = np.concatenate([at(7_000, 15), at(1_000, 3)])
    assert len(representative(real, many, SCHEMA, None, rng)) == pytest.approx(1_000, abs=100)
    few = np.concatenate([at(7_900, 15), at(100, 3)])
    assert len(representative(real, few, SCHEMA, None, rng)) == 500
    alike = at(8_000, 3)
    assert len(representative(real, alike, SCHEMA, None, rng)) == 2_000
    assert len(representative(real[:700], alike, SCHEMA, None, rng)) == 700
    assert len(representative(real, at(80, 3), SCHEMA, None, rng)) == 20


def test_the_effective_number_is_that_of_findings_with_equal_weight():
    assert effective_number(np.zeros(40)) == 40
    assert effective_number(np.log([3.0, 1.0])) == pytest.approx(1.6)
    assert effective_number(np.zeros(0)) == 0


@pytest.mark.parametrize("n", [0, -1])
def test_none_are_drawn_where_none_are_wanted(n):
    rng = np.random.default_rng(0)
    assert not len(representative(rows(rng, 90, 0.4), rows(rng, 90, 0.5), SCHEMA, n, rng))
    assert not len(representative(np.empty((0, 2)), rows(rng, 90, 0.5), SCHEMA, None, rng))


def test_a_column_without_a_value_is_not_learned_from():
    rng = np.random.default_rng(0)
    schema = Schema(
        (
            integers("a", 0, 20),
            Column(name="b", kind="numerical", low=0, high=9, step=1, missing=True),
        )
    )
    real, found = rows(rng, 90, 0.4), rows(rng, 90, 0.5)
    real[:, 1] = found[:, 1] = np.nan
    assert len(representative(real, found, schema, 20, rng)) == 20

import numpy as np

from limi.metrics.representative import population_odds, representative
from limi.table.schema import Schema
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


def test_few_findings_and_fewer_than_asked_for():
    rng = np.random.default_rng(2)
    real = rows(rng, 100, 0.4)
    assert representative(real, rows(rng, 3, 0.5), SCHEMA, 10, rng).tolist() == [0, 1, 2]
    assert len(representative(real, rows(rng, 0, 0.5), SCHEMA, 10, rng)) == 0


def test_same_rng_same_draw():
    real, found = rows(np.random.default_rng(3), 500, 0.4), rows(np.random.default_rng(4), 900, 0.5)
    draws = [representative(real, found, SCHEMA, 100, np.random.default_rng(5)) for _ in "ab"]
    np.testing.assert_array_equal(*draws)

"""Generators of tables with rules: derived columns computed, broken rows drawn again."""

import numpy as np
import pytest

from limi import generators
from limi.errors import InvalidInput
from limi.generators._base import Encoder, WithDensity, WithTensors
from limi.table.rows import uniform
from limi.table.schema import Schema
from tests.search.test_rules import ruled
from tests.table.ruled import COLUMNS
from tests.toy import Rounding

SCHEMA = ruled(["sex"])


def table(n=600, seed=0):
    rows = SCHEMA.enforcer.complete(uniform(SCHEMA, 6 * n, np.random.default_rng(seed)))
    return rows[~SCHEMA.enforcer.breaks(rows)][:n]


@pytest.fixture(scope="module")
def trees():
    return generators.fit("trees", table(), SCHEMA, np.random.default_rng(1))


def test_derived_columns_are_computed_and_not_learned(trees):
    assert trees.latent_dim == len(COLUMNS) - 2
    assert trees.schema == SCHEMA
    assert trees.kind == "trees"
    rows = trees.decode(trees.sample_latents(500, np.random.default_rng(2)))
    assert rows.shape == (500, len(COLUMNS))
    assert not SCHEMA.enforcer.disagrees(rows).any()


def test_latents_and_densities_are_those_of_the_learned_columns(trees):
    assert isinstance(trees, Encoder)
    assert isinstance(trees, WithDensity)
    assert not isinstance(trees, WithTensors)
    rows = table(50, seed=5)
    np.testing.assert_array_equal(trees.decode(trees.encode(rows, np.random.default_rng(0))), rows)
    assert np.isfinite(trees.log_prob(rows)).all()
    rows[:, 5] = 14  # no school has this grade
    assert (trees.log_prob(rows) == -np.inf).all()


def test_a_generator_comes_back_from_its_file_with_its_rules(trees, tmp_path):
    generators.save(trees, tmp_path / "made.limi")
    again = generators.load(tmp_path / "made.limi")
    assert again.schema == SCHEMA
    latents = trees.sample_latents(100, np.random.default_rng(3))
    np.testing.assert_array_equal(again.decode(latents), trees.decode(latents))


def test_rows_that_break_a_rule_are_drawn_again(trees):
    rows, kept = generators.draw(trees, 2000, np.random.default_rng(4))
    assert len(rows) == 2000
    assert not SCHEMA.enforcer.breaks(rows).any()
    assert 0.3 < kept < 1
    fewer, _ = generators.draw(trees, 700, np.random.default_rng(4))
    np.testing.assert_array_equal(fewer, rows[:700])


def test_without_constraints_a_draw_is_a_plain_sample():
    plain = SCHEMA.unruled
    made = generators.fit("trees", table(), plain, np.random.default_rng(1))
    rows, kept = generators.draw(made, 50, np.random.default_rng(4))
    expected = made.decode(made.sample_latents(50, np.random.default_rng(4)))
    np.testing.assert_array_equal(rows, expected)
    assert kept == 1
    assert made.latent_dim == len(COLUMNS)


def test_a_generator_of_all_columns_is_completed():
    plain = Rounding(Schema(COLUMNS))
    made = generators.obey(plain, SCHEMA)
    rows = made.decode(made.sample_latents(100, np.random.default_rng(0)))
    assert not SCHEMA.enforcer.disagrees(rows).any()
    assert generators.obey(made, SCHEMA) is made
    assert generators.obey(plain, SCHEMA.unruled) is plain


def test_a_generator_that_keeps_no_rule_is_refused(monkeypatch):
    schema = ruled(["sex"], (("never", "age > 60"),))
    made = generators.obey(Rounding(Schema(COLUMNS)), schema)
    with pytest.raises(InvalidInput, match="of 204,800 rows that the generator rounding made, 0"):
        generators.draw(made, 10, np.random.default_rng(0))

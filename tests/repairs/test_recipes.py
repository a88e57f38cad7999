"""Recipes: which rows they add, how many, and that findings are drawn fairly."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from limi.repairs import _recipes
from tests.repairs.small import SCHEMA, findings


@given(seed=st.integers(0, 2**20), recipe=st.sampled_from(sorted(_recipes.RECIPES)))
@settings(max_examples=40, deadline=None)
def test_recipes_add_rows_that_differ_in_protected_columns_alone(seed, recipe):
    rng = np.random.default_rng(seed)
    rows = rng.integers(SCHEMA.low, SCHEMA.high + 1, (30, 4)).astype(float)
    training = _recipes.Training(SCHEMA, rows, rng.integers(0, 2, 30).astype(np.int8))
    chosen = _recipes.Chosen(findings(SCHEMA, 12, rng), rng.integers(0, 2, 12).astype(np.int8))
    mixed, labels = _recipes.mix(recipe, training, chosen, rng)
    assert np.array_equal(mixed[:30], rows)
    assert np.array_equal(labels[:30], training.labels)
    free = SCHEMA.free_index
    known = {
        (tuple(row), label)
        for source, given in ((rows, training.labels), (chosen.found.rows, chosen.labels))
        for row, label in zip(source[:, free], given, strict=True)
    }
    assert all(
        (tuple(row), label) in known
        for row, label in zip(mixed[30:][:, free], labels[30:], strict=True)
    )
    assert (SCHEMA.combination_of(mixed) >= 0).all()


def test_sizes_of_the_recipes():
    rng = np.random.default_rng(0)
    rows = rng.integers(SCHEMA.low, SCHEMA.high + 1, (30, 4)).astype(float)
    training = _recipes.Training(SCHEMA, rows, np.zeros(30, dtype=np.int8))
    chosen = _recipes.Chosen(findings(SCHEMA, 12, rng), np.ones(12, dtype=np.int8))
    added = {
        name: len(_recipes.mix(name, training, chosen, np.random.default_rng(0))[0]) - 30
        for name in _recipes.RECIPES
    }
    assert added == {"alone": 12, "both": 24, "both+table": 114}


def test_copies_of_a_row_are_distinct_and_not_its_own():
    rng = np.random.default_rng(1)
    rows = np.repeat(np.array([[1.0, 2.0, 3.0, 1.0]]), 50, axis=0)
    training = _recipes.Training(SCHEMA, rows, np.ones(50, dtype=np.int8))
    added = _recipes.copy_under_others(training, rng)
    mixed = np.concatenate([rows, *(moved for moved, _ in added)])
    for place in range(50):
        mine = SCHEMA.combination_of(mixed[place::50])
        assert len(set(mine.tolist())) == 4  # its own and three others


def test_findings_are_drawn_once_where_there_are_enough():
    found = findings(SCHEMA, 20, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    assert sorted(_recipes.choose(found, 20, rng, replace=False)) == list(range(20))
    assert len(set(_recipes.choose(found, 20, rng, replace=True).tolist())) < 20
    assert len(_recipes.choose(found, 50, rng, replace=False)) == 50

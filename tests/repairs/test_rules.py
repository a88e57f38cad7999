"""Repairs of tables with rules: what is trained on could exist."""

import numpy as np

from limi.repairs._figures import hide_protected
from limi.repairs._recipes import Training, copy_under_others
from limi.table.rows import uniform
from tests.naive.rules import partner
from tests.search.test_rules import ruled

SCHEMA = ruled(["sex"])


def people(n=200):
    rows = SCHEMA.enforcer.complete(uniform(SCHEMA, 6 * n, np.random.default_rng(0)))
    return rows[~SCHEMA.enforcer.breaks(rows)][:n]


def test_copies_under_other_values_keep_the_rules_and_their_labels():
    rows = people()
    labels = (rows[:, 2] > 40).astype(np.int8)
    others = copy_under_others(Training(SCHEMA, rows, labels), np.random.default_rng(1))
    assert len(others) == 2
    for moved, told in others:
        assert 0 < len(moved) == len(told) < len(rows)  # some could not exist
        assert not SCHEMA.enforcer.breaks(moved).any()
        # Age is not protected, so that a label still goes with its row.
        np.testing.assert_array_equal(told, moved[:, 2] > 40)


def test_a_model_without_the_protected_column_is_not_told_it_by_what_goes_along():
    rows = people(50)
    cells = SCHEMA.combinations[0]
    hidden = hide_protected(SCHEMA, rows, cells)
    for row, told in zip(rows, hidden, strict=True):
        np.testing.assert_array_equal(told, partner(SCHEMA, row, cells))

"""CausalFT: which columns are tied, walks along them, and agreement with one row at a time."""

import numpy as np
import pytest

from limi.errors import InvalidInput
from limi.methods import parse
from limi.methods.causal import Causal, measure_ties
from limi.search.budget import Budget
from limi.search.engine import run
from limi.table.rows import uniform
from tests.naive import causal as naive
from tests.naive.check import key
from tests.toy import FLIPPING, Linear, schema_of, task

WIDE = schema_of((0, 9), (-3, 6), (0, 4), (0, 1), (1, 3), protected=["x3", "x4"])
WIDE_MODEL = Linear((0.5, -0.6, 0.3, 0.8, 0.4), -1.15)
FREE, PROTECTED = np.array([0, 1, 2]), np.array([3, 4])


def found_keys(ran):
    return [key(ran.findings.schema, row) for row in ran.findings.all().rows]


def draw_tied(n, rng):
    """Columns of which the second is what the fourth, a skewed cause, acts through."""
    cause = rng.exponential(size=n)
    rows = rng.normal(size=(n, 5))
    rows[:, 3] = cause
    rows[:, 1] = 0.9 * cause + 0.4 * rng.normal(size=n)
    scores = 1 / (1 + np.exp(-(rows[:, 1] + 0.5 * rows[:, 0])))
    return rows, scores


def test_the_column_between_protected_value_and_score_is_tied_most():
    rows, scores = draw_tied(2000, np.random.default_rng(1))
    ties = measure_ties(rows, scores, PROTECTED, FREE)
    assert ties[0].argmax() == 1
    assert ties[0, 1] > 10 * max(ties[0, 0], ties[0, 2])
    assert ties[1].max() < 0.1 * ties[0, 1]


def test_ties_are_those_of_residuals():
    rows, scores = draw_tied(400, np.random.default_rng(2))
    fast = measure_ties(rows, scores, PROTECTED, FREE)
    assert fast == pytest.approx(naive.ties(rows, scores, PROTECTED, FREE), abs=0.01)


def test_missing_and_constant_cells_have_ties():
    rows, scores = draw_tied(100, np.random.default_rng(3))
    rows[::3, 0], rows[:, 2] = np.nan, 1.0
    ties = measure_ties(rows, scores, PROTECTED, FREE)
    assert np.isfinite(ties).all()
    assert ties[0, 2] == 0


def test_the_whole_set_of_flips_is_reached():
    ran = run(Causal(exploit_steps=60), task(), Budget(), 3)
    assert {k[:2] for k in found_keys(ran)} == FLIPPING


@pytest.mark.kernels
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_findings_are_those_of_one_row_at_a_time(share):
    method = Causal(n_samples=30, n_seeds=12, exploit_steps=9, causal_share=share, columns=1)
    table = uniform(WIDE, 60, np.random.default_rng(4))
    scores = WIDE_MODEL.score(table)
    ties = measure_ties(table, np.round(scores, 6), WIDE.protected_index, WIDE.free_index)
    tied = np.unique(WIDE.free_index[ties.argmax(axis=1)])
    for seed in range(3):
        ran = run(method, task(WIDE, WIDE_MODEL, table), Budget(), seed)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        expected = naive.findings(method, WIDE_MODEL.score, WIDE, table, tied, rng)
        assert found_keys(ran) == expected


def test_a_small_budget_is_spent_on_rows_and_not_on_ties():
    ran = run(Causal(), task(), Budget(max_queries=60), 1)
    assert ran.queries <= 60
    assert len(ran.findings)


def test_it_follows_other_methods():
    ran = run(parse("grft+causal", {"causal.exploit_steps": 30}), task(), Budget(), 1)
    assert {k[:2] for k in found_keys(ran)} == FLIPPING


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"columns": 0}, "columns"),
        ({"exploit_steps": -1}, "exploit_steps is -1"),
        ({"causal_share": 1.5}, "causal_share is 1.5"),
    ],
)
def test_settings_that_cannot_be_are_told(settings, words):
    with pytest.raises(InvalidInput, match=words):
        Causal(**settings)

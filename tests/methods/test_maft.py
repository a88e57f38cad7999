"""MAFT: its estimate against the true gradient and the twin's, its queries, and trees."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from limi.errors import InvalidInput
from limi.methods import _gradient
from limi.methods.eidig import EIDIG
from limi.methods.maft import MAFT
from limi.search.budget import Budget, Stop
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.session import Session
from limi.search.task import Task
from limi.table.rows import uniform
from limi.table.schema import Column, Schema
from tests.naive import maft as naive
from tests.naive.check import key
from tests.networks import linear, white
from tests.toy import FLIPPING, MODEL, SCHEMA, Linear, schema_of, task

WIDE = schema_of((0, 9), (-4, 4), (0, 6), (1, 5), (0, 1), protected=["x3", "x4"])
RULE = Linear((0.5, -0.4, 0.3, 0.3, 0.8), -2.05)
REAL = ((0.0, 9.0), (-4.0, 4.0))


def rows_of(n, seed=0):
    return uniform(WIDE, n, np.random.default_rng(seed))


@pytest.mark.parametrize("h", [1, 2])
def test_the_estimate_is_the_twin_s(h):
    rows = rows_of(60)
    slope = _gradient.Estimated(Session(task(WIDE, RULE, rows)), h).output_gradient(rows)
    np.testing.assert_allclose(slope, naive.slope_of(RULE.score, WIDE, h)(rows), rtol=1e-9)
    assert (slope[:, WIDE.protected_index] == 0).all()


@pytest.mark.parametrize("h", [1, 3, 10])
def test_its_sign_is_the_gradient_s_on_a_logistic_model(h):
    rows = rows_of(80)
    slope = _gradient.Estimated(Session(task(WIDE, RULE, rows)), h).output_gradient(rows)
    expected = np.sign(RULE.weights) * WIDE.free_mask
    np.testing.assert_array_equal(np.sign(slope), np.tile(expected, (80, 1)))


def test_it_approaches_the_gradient_of_real_columns():
    """A step h of a real column is a hundredth of its range; the error falls as h does."""
    reals = [
        Column(name=f"r{i}", kind="numerical", low=low, high=high)
        for i, (low, high) in enumerate(REAL)
    ]
    schema = Schema((*reals, Column(name="sex", kind="categorical", levels=(0, 1))))
    schema = schema.protect(["sex"])
    here = white(schema, linear([0.5, -0.4, 0.8], -1.0), [[0, 0, 0]])
    rows = uniform(schema, 40, np.random.default_rng(0))
    truth = here.gradients.output_gradient(rows) * schema.free_mask
    errors = [
        np.abs(_gradient.Estimated(Session(here), h).output_gradient(rows) - truth).max()
        for h in (10.0, 1.0, 0.1)
    ]
    assert errors[1] < errors[0] / 5
    assert errors[2] < errors[1] / 5
    assert errors[2] < 1e-3


def test_a_gradient_costs_a_query_a_free_column_and_one_for_the_row():
    here = Session(task(WIDE, RULE, rows_of(5)))
    _gradient.Estimated(here).output_gradient(here.rows)
    assert here.watch.questions == 5 * (3 + 1)


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(4))
def test_it_explores_as_the_twin_does(seed):
    here = task(WIDE, RULE, rows_of(4, seed))
    batches = list(MAFT().explore(Session(here), np.random.default_rng(0)))
    slope = naive.slope_of(RULE.score, WIDE)
    walks = [naive.eidig.explore(RULE.score, slope, WIDE, row, 10, 0.5) for row in batches[0].rows]
    for step, checked in enumerate(batches):
        expected = [walked[step] for walked, _ in walks if step < len(walked)]
        np.testing.assert_array_equal(checked.rows, expected)


def test_many_walks_find_as_many_as_the_twin_s():
    rows, counts, twin = rows_of(12), [], []
    for seed in range(15):
        ran = run(MAFT(exploit_steps=12), task(WIDE, RULE, rows), Budget(), seed)
        counts.append(len(ran.findings))
    for seed in range(5):
        rng = np.random.default_rng(seed)
        twin.append(len(naive.search(RULE.score, WIDE, rows, rng, exploit_steps=12)))
    spread = np.hypot(np.std(counts) / 15**0.5, np.std(twin) / 5**0.5)
    assert np.mean(counts) > 20
    assert abs(np.mean(counts) - np.mean(twin)) < 4 * spread


def test_it_is_eidig_with_estimates():
    rows = rows_of(20)
    found = [
        run(method, task(WIDE, RULE, rows), Budget(), 5).findings.all().rows
        for method in (MAFT(exploit_steps=20), EIDIG(exploit_steps=20, gradient="estimated"))
    ]
    np.testing.assert_array_equal(*found)


def test_it_runs_on_a_forest():
    rng = np.random.default_rng(0)
    rows = rows_of(800)
    labels = RULE.score(rows) + rng.normal(0, 0.1, 800) > 0.5
    forest = RandomForestClassifier(20, random_state=0).fit(rows, labels)

    def score(given):
        return forest.predict_proba(given)[:, 1]

    found = run(MAFT(n_seeds=60, exploit_steps=10), Task(WIDE, score, rows), Budget(), 0)
    assert len(found.findings) > 20
    assert check_rows(score, WIDE, found.findings.all().rows).flips.all()


def test_all_nine_points_are_found():
    here = task(SCHEMA, MODEL, np.array([[2.0, 2.0, 0.0], [0.0, 4.0, 1.0]]))
    ran = run(MAFT(exploit_steps=3000), here, Budget(max_findings=9), 1)
    assert {key(SCHEMA, row) for row in ran.findings.all().rows} == FLIPPING


def test_a_query_budget_ends_inside_an_estimate():
    for limit in (60, 137, 400):
        ran = run(
            MAFT(exploit_steps=20), task(WIDE, RULE, rows_of(6)), Budget(max_queries=limit), 0
        )
        assert ran.queries <= limit
        assert ran.stop == Stop.QUERIES


def test_settings():
    with pytest.raises(InvalidInput, match="perturbation is 0"):
        MAFT(perturbation=0.0)

"""ExpGA: the explainer, the genetic operators, and agreement with one row at a time."""

from dataclasses import replace

import numpy as np
import pytest

from limi.errors import InvalidInput
from limi.methods import _genetic
from limi.methods._surrogate import Linear as Explainer
from limi.methods._surrogate import Moments, gaussian
from limi.methods.expga import ExpGA, protected_ranks
from limi.search.budget import Budget
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.session import Session
from limi.table.rows import snap, uniform
from limi.table.steps import Ladder
from tests.naive import expga as naive
from tests.naive.check import key
from tests.toy import FLIPPING, MIXED, MODEL, SCHEMA, Linear, schema_of, task

WIDE = schema_of((0, 9), (-3, 6), (0, 4), (0, 1), (1, 3), protected=["x3", "x4"])
WIDE_MODEL = Linear((0.5, -0.6, 0.3, 0.8, 0.4), -1.15)
PROTECTED_MIXED = MIXED.protect(["sex", "vet"])


def mixed_score(rows):
    model = Linear((0.02, 0.8, 0.4, 0.3, 0.6, 0.2, 0.5), -2.205)
    return model.score(np.nan_to_num(rows, nan=-1.0))


def mixed_table(n):
    rows = uniform(PROTECTED_MIXED, n, np.random.default_rng(1))
    rows[::9, 5] = np.nan
    return rows


def found_keys(ran):
    return [key(ran.findings.schema, row) for row in ran.findings.all().rows]


def test_the_whole_set_of_flips_is_reached():
    ran = run(ExpGA(generations=60), task(), Budget(), 3)
    assert {k[:2] for k in found_keys(ran)} == FLIPPING


def test_batched_explanations_are_those_of_one_row_at_a_time():
    rng = np.random.default_rng(0)
    table = mixed_table(300)
    ladder = Ladder.of(PROTECTED_MIXED)
    pool = gaussian(ladder, Moments.of(ladder, table), 200, rng)
    answers = mixed_score(pool)
    explainer = Explainer.of(ladder, Moments.of(ladder, table), pool, answers)
    rows = table[:8]
    batched = explainer.coefficients(rows, mixed_score(rows))

    standard = (ladder.climb(rows) - explainer.mean) / explainer.scale
    for i, point in enumerate(standard):
        literal = naive.explain(explainer.pool.tolist(), answers, point, mixed_score(rows)[i])
        np.testing.assert_allclose(batched[i], literal, atol=1e-8)


def test_explanations_do_not_depend_on_the_batch():
    rng = np.random.default_rng(0)
    ladder = Ladder.of(WIDE)
    table = uniform(WIDE, 700, rng)
    pool = gaussian(ladder, Moments.of(ladder, table), 50, rng)
    explainer = Explainer.of(ladder, Moments.of(ladder, table), pool, WIDE_MODEL.score(pool))
    scores = WIDE_MODEL.score(table)
    together = explainer.coefficients(table, scores)
    alone = explainer.coefficients(table[600:601], scores[600:601])
    assert together.shape == (700, 5)
    np.testing.assert_allclose(together[600:601], alone, atol=1e-12)


def test_influence_is_weight_times_spread():
    schema = schema_of((0, 100), (0, 100), (0, 100), (0, 100), protected=["x2"])
    rng = np.random.default_rng(0)
    spread = np.array([20.0, 5.0, 10.0, 1.0])
    table = snap(schema, 50 + rng.standard_normal((2000, 4)) * spread)
    weights = (0.002, 0.05, -0.012, 0.001)  # times the spread: 0.04, 0.25, 0.12, 0.001
    model = Linear(weights, -50 * sum(weights) - 0.0005)
    ladder = Ladder.of(schema)
    pool = gaussian(ladder, Moments.of(ladder, table), 4999, rng)
    explainer = Explainer.of(ladder, Moments.of(ladder, table), pool, model.score(pool))
    influence = explainer.coefficients(table[:50], model.score(table[:50]))
    order = np.argsort(-np.abs(influence), axis=1)
    assert (order == [1, 2, 0, 3]).all()
    assert (protected_ranks(influence, schema.protected_index) == 1).all()
    assert (protected_ranks(influence, np.array([0, 3])) == 2).all()


def test_the_pool_follows_the_table_and_stays_in_the_domain():
    table = mixed_table(4000)
    ladder = Ladder.of(PROTECTED_MIXED)
    pool = gaussian(ladder, Moments.of(ladder, table), 4000, np.random.default_rng(0))
    np.testing.assert_array_equal(snap(PROTECTED_MIXED, pool), pool)
    assert not np.isnan(pool[:, ~PROTECTED_MIXED.may_miss]).any()
    assert abs(pool[:, 0].mean() - table[:, 0].mean()) < 1.5


@pytest.mark.parametrize(("share", "expected"), [(0.2, 2), (0.21, 3), (0.5, 3), (1.0, 5)])
def test_the_threshold_lets_at_least_a_share_qualify(share, expected):
    ranks = np.array([1, 1, 2, 2, 2, 4, 4, 4, 4, 4])
    assert ExpGA(share=share)._threshold(ranks) == expected


def test_some_row_always_qualifies():
    assert ExpGA(share=0.0)._threshold(np.array([3, 3, 3])) == 4
    assert ExpGA(threshold=7)._threshold(np.array([3, 3, 3])) == 7


def test_selection_is_proportional_to_fitness():
    rng = np.random.default_rng(0)
    chosen = np.concatenate([_genetic.select(np.array([3.0, 1, 1, 1]), rng) for _ in range(5000)])
    assert abs((chosen == 0).mean() - 0.5) < 4 * np.sqrt(0.25 / len(chosen))
    assert set(_genetic.select(np.array([0.0, 1.0, 0.0]), rng)) == {1}
    even = np.concatenate([_genetic.select(np.zeros(4), rng) for _ in range(500)])
    assert set(even) == {0, 1, 2, 3}


@pytest.mark.parametrize("n", [40, 41])
def test_crossover_exchanges_genes_of_two_parents(n):
    rng = np.random.default_rng(0)
    rows = np.arange(n * 6, dtype=float).reshape(n, 6)
    columns = np.array([0, 1, 3, 5])
    children = _genetic.exchange_fragments(rows, columns, 1.0, rng)
    np.testing.assert_array_equal(np.sort(children, axis=0), np.sort(rows, axis=0))
    np.testing.assert_array_equal(children[:, [2, 4]], rows[:, [2, 4]])
    # Each child has the genes of itself and of just one other, in one unbroken run.
    from_other = children != rows
    parents = np.where(from_other, children // 6, -1).max(axis=1)
    assert ((children // 6 == np.arange(n)[:, None]) | (children // 6 == parents[:, None])).all()
    assert (np.abs(np.diff(from_other[:, columns].astype(int), axis=1)).sum(axis=1) <= 2).all()
    assert from_other.any(axis=1).sum() == n // 2 * 2
    assert np.array_equal(_genetic.exchange_fragments(rows, columns, 0.0, rng), rows)


def test_every_column_takes_part_in_the_exchange():
    rows = np.arange(4000 * 5, dtype=float).reshape(4000, 5)
    children = _genetic.exchange_fragments(rows, np.arange(5), 0.9, np.random.default_rng(0))
    shares = (children != rows).mean(axis=0)
    assert (shares > 0.15).all()
    assert abs((children != rows).any(axis=1).mean() - 0.9) < 0.03


def test_mutation_draws_from_the_whole_domain():
    rows = np.tile([2.0, 2.0, 1.0], (40_000, 1))
    mutated = _genetic.mutate(SCHEMA, rows, 0.05, np.random.default_rng(0))
    assert set(mutated[:, 0]) == {0.0, 1.0, 2.0, 3.0, 4.0}
    assert (mutated[:, 2] == 1.0).all()
    # A fifth of the draws give the old value back.
    rate = (mutated[:, :2] != rows[:, :2]).mean() / 0.8
    assert abs(rate - 0.05) < 4 * np.sqrt(0.05 / 80_000)


def test_fitness_is_the_difference_of_scores():
    rows = np.array([[2.0, 2.0, 0.0], [4.0, 0.0, 0.0]])
    checked = check_rows(MODEL.score, SCHEMA, rows)
    gap = MODEL.score(checked.partner) - MODEL.score(rows)
    np.testing.assert_allclose(ExpGA().fitness_of(checked), np.abs(gap), atol=1e-6)


def test_copies_are_counted_by_their_key():
    rows = np.array([[1.0, 1, 0], [2.0, 1, 0], [1.0, 1, 1], [1.0, 1, 0]])
    assert _genetic.n_copies(SCHEMA, rows).tolist() == [3, 1, 3, 3]
    assert len(_genetic.n_copies(SCHEMA, rows[:0])) == 0


@pytest.mark.kernels
def test_it_is_the_naive_loop():
    table = uniform(WIDE, 60, np.random.default_rng(2))
    for seed, more in ((0, {}), (2, {"copies": "count"})):
        method = ExpGA(n_rows=40, n_samples=60, generations=25, **more)
        ran = run(method, task(WIDE, WIDE_MODEL, table), Budget(), seed)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        expected = naive.findings(method, WIDE_MODEL.score, WIDE, table, rng)
        assert found_keys(ran) == expected
        assert len(expected) > 5


@pytest.mark.kernels
def test_it_is_the_naive_loop_with_mixed_columns():
    table = mixed_table(60)
    problem = task(PROTECTED_MIXED, WIDE_MODEL, table)
    problem = replace(problem, score=mixed_score)
    method = ExpGA(n_rows=40, n_samples=60, generations=6)
    ran = run(method, problem, Budget(), 5)
    rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(0,)))
    expected = naive.findings(method, mixed_score, PROTECTED_MIXED, table, rng)
    assert found_keys(ran) == expected
    assert len(expected) > 10


def test_targets_that_answer_labels_only():
    labels = task()
    labels = replace(labels, score=lambda rows: (MODEL.score(rows) > 0.5).astype(float))
    ran = run(ExpGA(generations=60), labels, Budget(), 3)
    assert {k[:2] for k in found_keys(ran)} == FLIPPING


def test_the_explainer_leaves_half_of_a_small_budget_to_the_search():
    asked = task(WIDE, WIDE_MODEL, uniform(WIDE, 400, np.random.default_rng(0)))
    ran = run(ExpGA(), asked, Budget(max_queries=2000), 0)
    assert ran.findings.rows_checked >= 2000 / 6 / 4
    assert ran.queries <= 2000


def test_seeds_of_another_method_can_be_bred():
    seeds = check_rows(WIDE_MODEL.score, WIDE, uniform(WIDE, 50, np.random.default_rng(0)))
    method = ExpGA(generations=3)
    batches = list(method.exploit(Session(task(WIDE, WIDE_MODEL)), seeds, np.random.default_rng(0)))
    assert [len(batch) for batch in batches] == [50, 50, 50]
    assert {batch.origin for batch in batches} == {"exploit"}


def test_settings_without_sense_are_refused():
    for settings in ({"n_rows": 0}, {"share": 1.5}, {"mutation_rate": -0.1}, {"generations": -1}):
        with pytest.raises(InvalidInput):
            ExpGA(**settings)


def test_nothing_is_found_where_nothing_flips():
    fair = Linear((1.0, -1.0, 0.0), -1.5)
    assert not len(run(ExpGA(generations=10), task(model=fair), Budget(), 0).findings)

"""VBT-X: leaves as boxes, pairs that share a person, and agreement with pair by pair."""

from dataclasses import replace

import numpy as np
import pytest

from limi.errors import InvalidInput
from limi.methods import _leaves
from limi.methods._leaves import Boxes, Pairs, feasible_pairs
from limi.methods._surrogate import Tree
from limi.methods.vbtx import VBTX, _Surrogate
from limi.search.budget import Budget, Stop
from limi.search.engine import run
from limi.search.session import Session
from limi.table.rows import snap, uniform
from limi.table.steps import Ladder
from tests.naive import vbtx as naive
from tests.naive.check import key
from tests.toy import FLIPPING, MIXED, MODEL, SCHEMA, Linear, grid, schema_of, task

WIDE = schema_of((0, 9), (-3, 6), (0, 4), (0, 1), (1, 3), protected=["x3", "x4"])
WIDE_MODEL = Linear((0.5, -0.6, 0.3, 1.8, 0.9), -2.13)
PROTECTED_MIXED = MIXED.protect(["sex", "vet"])


def mixed_score(rows):
    model = Linear((0.02, 0.8, 0.4, 0.3, 0.6, 0.2, 0.5), -2.205)
    return model.score(np.nan_to_num(rows, nan=-1.0))


def score_of(schema):
    return WIDE_MODEL.score if schema is WIDE else mixed_score


def wide_task(**more):
    return task(WIDE, WIDE_MODEL, np.zeros((1, 5)), **more)


def found_keys(ran):
    return [key(ran.findings.schema, row) for row in ran.findings.all().rows]


def surrogate_of(problem, rows):
    return _Surrogate(problem, rows, problem.score(rows) > 0.5)


def boxes_of(schema, rows, score):
    ladder = Ladder.of(schema)
    tree = Tree.grow(
        ladder.climb(rows), score(rows) > 0.5, criterion="entropy", rng=np.random.default_rng(0)
    )
    return ladder, tree, Boxes.of(ladder, tree)


@pytest.mark.parametrize("schema", [WIDE, PROTECTED_MIXED], ids=["integers", "mixed"])
def test_every_row_lies_in_the_box_of_its_leaf_alone(schema):
    rows = uniform(schema, 400, np.random.default_rng(0))
    ladder, tree, boxes = boxes_of(schema, rows, score_of(schema))
    leaves = np.flatnonzero(tree.column < 0)
    positions = ladder.climb(rows)[:, None, :]
    inside = ((boxes.low[leaves] <= positions) & (positions <= boxes.high[leaves])).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    favorable = tree.favorable[leaves[inside.argmax(axis=1)]]
    np.testing.assert_array_equal(favorable, score_of(schema)(rows) > 0.5)


def test_the_pairs_of_an_exact_tree_cover_just_the_rows_that_flip():
    ladder = Ladder.of(SCHEMA)
    surrogate = surrogate_of(task(), grid(SCHEMA))
    pairs = surrogate.pairs(np.random.default_rng(0))
    covered = set()
    for low, high in zip(pairs.low(), pairs.high(), strict=True):
        first, second = (range(int(low[j]), int(high[j]) + 1) for j in (0, 1))
        covered |= {(a, b) for a in first for b in second}
    assert covered == FLIPPING
    assert ladder.last.tolist() == [4, 4, 1]


@pytest.mark.parametrize("schema", [WIDE, PROTECTED_MIXED], ids=["integers", "mixed"])
def test_the_search_for_pairs_is_the_comparison_of_all_leaves(schema):
    from sklearn.tree import DecisionTreeClassifier

    rows = uniform(schema, 250, np.random.default_rng(3))
    ladder, tree, boxes = boxes_of(schema, rows, score_of(schema))
    everyone = np.ones(len(tree.column), dtype=bool)
    pairs = feasible_pairs(ladder, tree, everyone, boxes, np.random.default_rng(0))
    state = int(np.random.default_rng(0).integers(2**31))
    learner = DecisionTreeClassifier(criterion="entropy", random_state=state)
    learner.fit(ladder.climb(rows), score_of(schema)(rows) > 0.5)
    expected = naive.pairs_of(schema, learner)
    assert len(pairs) == len(expected) > 10
    free = schema.free_index
    for (a, b), low, high in zip(expected, pairs.low(), pairs.high(), strict=True):
        np.testing.assert_allclose(low[free], [max(a[j][0], b[j][0]) for j in free])
        np.testing.assert_allclose(high[free], [min(a[j][1], b[j][1]) for j in free])


def test_too_many_pairs_are_thinned_out(monkeypatch):
    rows = uniform(WIDE, 600, np.random.default_rng(3))
    ladder, tree, boxes = boxes_of(WIDE, rows, WIDE_MODEL.score)
    everyone = np.ones(len(tree.column), dtype=bool)
    all_pairs = feasible_pairs(ladder, tree, everyone, boxes, np.random.default_rng(0))
    monkeypatch.setattr(_leaves, "MOST_PAIRS", 10)
    some = feasible_pairs(ladder, tree, everyone, boxes, np.random.default_rng(0))
    both = {(a, b) for a, b in zip(all_pairs.unfavorable, all_pairs.favorable, strict=True)}
    part = {(a, b) for a, b in zip(some.unfavorable, some.favorable, strict=True)}
    assert 0 < len(part) < len(both)
    assert part <= both


def test_an_exact_tree_gives_true_pairs_and_learns_nothing():
    rng = np.random.default_rng(0)
    problem = task()
    surrogate = surrogate_of(problem, grid(SCHEMA))
    rows, expected = VBTX(solutions=60)._draw(
        Session(problem), surrogate, surrogate.pairs(rng), rng
    )
    assert 0 < len(rows) <= 2 * len(FLIPPING)
    np.testing.assert_array_equal(MODEL.score(rows) > 0.5, expected)
    assert not surrogate.learn(rows, MODEL.score(rows) > 0.5, expected)
    assert Session(problem).check(rows).flips.all()


@pytest.mark.parametrize("schema", [WIDE, PROTECTED_MIXED], ids=["integers", "mixed"])
def test_pairs_differ_in_protected_columns_alone_and_stay_in_the_domain(schema):
    rng = np.random.default_rng(0)
    problem = task(schema, WIDE_MODEL, np.zeros((1, len(schema))))
    problem = replace(problem, score=score_of(schema))
    surrogate = surrogate_of(problem, uniform(schema, 300, rng))
    rows, _ = VBTX(solutions=400)._draw(Session(problem), surrogate, surrogate.pairs(rng), rng)
    one, other = rows[0::2], rows[1::2]
    assert len(one) > 50
    np.testing.assert_array_equal(one[:, schema.free_index], other[:, schema.free_index])
    assert (one[:, schema.protected_index] != other[:, schema.protected_index]).any(axis=1).all()
    assert (schema.combination_of(rows) >= 0).all()
    np.testing.assert_array_equal(snap(schema, rows), rows)


def test_pairs_fall_into_the_leaves_they_were_drawn_from():
    rng = np.random.default_rng(0)
    problem = wide_task()
    sample = uniform(WIDE, 300, rng)
    surrogate = surrogate_of(problem, sample)
    pairs = surrogate.pairs(np.random.default_rng(5))
    ladder = Ladder.of(WIDE)
    tree = Tree.grow(
        ladder.climb(sample),
        WIDE_MODEL.score(sample) > 0.5,
        criterion="entropy",
        rng=np.random.default_rng(5),
    )
    rows, expected = VBTX(solutions=200)._draw(Session(problem), surrogate, pairs, rng)
    node = np.zeros(len(rows), dtype=int)
    positions = ladder.climb(rows)
    while (tree.column[node] >= 0).any():
        below = positions[np.arange(len(rows)), tree.column[node]] <= tree.threshold[node]
        following = np.where(below, tree.left[node], tree.right[node])
        node = np.where(tree.column[node] < 0, node, following)
    np.testing.assert_array_equal(tree.favorable[node], expected)


def test_the_whole_set_of_flips_is_reached():
    ran = run(VBTX(n_samples=30), task(), Budget(), 0)
    assert {k[:2] for k in found_keys(ran)} == FLIPPING
    assert ran.stop is Stop.EXHAUSTED


@pytest.mark.kernels
def test_pair_by_pair_is_the_naive_loop():
    for seed, more in ((0, {}), (1, {"solutions": 7})):
        method = VBTX(n_samples=60, **more)
        ran = run(method, wide_task(), Budget(max_rows=500), seed)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        expected = naive.findings(method, WIDE_MODEL.score, WIDE, None, rng, max_tests=250)
        assert found_keys(ran) == expected
        assert len(expected) > 20


@pytest.mark.kernels
def test_pair_by_pair_is_the_naive_loop_with_mixed_columns():
    problem = task(PROTECTED_MIXED, WIDE_MODEL, np.zeros((1, 7)))
    problem = replace(problem, score=mixed_score)
    method = VBTX(n_samples=60)
    ran = run(method, problem, Budget(max_rows=300), 2)
    rng = np.random.default_rng(np.random.SeedSequence(2, spawn_key=(0,)))
    expected = naive.findings(method, mixed_score, PROTECTED_MIXED, None, rng, max_tests=150)
    rounded = [
        [tuple(c if c == "missing" else round(c, 6) for c in k) for k in keys]
        for keys in (found_keys(ran), expected)
    ]
    assert rounded[0] == rounded[1]
    assert len(expected) > 20


def test_a_constant_model_ends_without_a_finding():
    constant = task(model=Linear((0.0, 0.0, 0.0), -1.0))
    ran = run(VBTX(n_samples=20, restarts=3), constant, Budget(), 0)
    assert not len(ran.findings)
    assert ran.queries == 3 * 20


def test_larger_shared_boxes_can_be_preferred():
    ladder = Ladder.of(SCHEMA)
    boxes = Boxes(
        np.array([[0.0, 0, 0], [0.0, 0, 1], [2.0, 2, 0], [2.0, 2, 1]]),
        np.array([[4.0, 4, 0], [4.0, 4, 1], [2.0, 2, 0], [2.0, 3, 1]]),
    )
    pairs = Pairs(boxes, np.array([0, 2]), np.array([1, 3]))
    np.testing.assert_allclose(pairs.sizes(ladder), [1.0, 1 / 25])
    ran = run(VBTX(cells="volume", n_samples=100), wide_task(), Budget(max_rows=400), 0)
    assert len(ran.findings) > 20


def test_targets_that_answer_labels_only():
    labels = task()
    labels = replace(labels, score=lambda rows: (MODEL.score(rows) > 0.5).astype(float))
    by_label = run(VBTX(n_samples=30), labels, Budget(max_rows=60), 0)
    assert found_keys(by_label) == found_keys(
        run(VBTX(n_samples=30), task(), Budget(max_rows=60), 0)
    )


def test_the_surrogate_leaves_half_of_a_small_budget_to_the_search():
    ran = run(VBTX(), wide_task(), Budget(max_queries=600), 0)
    assert ran.findings.rows_checked >= 50  # at least one row for every six queries
    assert ran.queries <= 600


def test_settings_without_sense_are_refused():
    for settings in (
        {"n_samples": 0},
        {"solutions": -1},
        {"solutions": 0},
        {"patience": 0},
        {"restarts": 0},
    ):
        with pytest.raises(InvalidInput):
            VBTX(**settings)

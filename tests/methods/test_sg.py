"""SG: paths and regions of a surrogate tree, the queue, and agreement with one row at a time."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from limi.errors import InvalidInput
from limi.methods import _regions
from limi.methods._surrogate import Paths, Tree, marginal
from limi.methods.sg import SG, _Queue
from limi.search.budget import Budget
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.session import Session
from limi.table.rows import snap, uniform
from limi.table.steps import Ladder
from tests.naive import sg as naive
from tests.naive.check import key
from tests.toy import FLIPPING, MIXED, SCHEMA, Linear, schema_of, task

WIDE = schema_of((0, 9), (-3, 6), (0, 4), (0, 1), (1, 3), protected=["x3", "x4"])
WIDE_MODEL = Linear((0.5, -0.6, 0.3, 0.8, 0.4), -1.13)
PROTECTED_MIXED = MIXED.protect(["sex", "vet"])


def mixed_score(rows):
    model = Linear((0.02, 0.8, 0.4, 0.3, 0.6, 0.2, 0.5), -2.205)
    return model.score(np.nan_to_num(rows, nan=-1.0))


def mixed_table(n):
    rows = uniform(PROTECTED_MIXED, n, np.random.default_rng(1))
    rows[::9, 5] = np.nan
    return rows


def mixed_task(n=200):
    problem = task(PROTECTED_MIXED, WIDE_MODEL, mixed_table(n))
    return replace(problem, score=mixed_score)


def found_keys(ran):
    return [key(ran.findings.schema, row) for row in ran.findings.all().rows]


def grown(schema, score, n=300, seed=0):
    """A ladder, a tree of random rows, other rows and their paths."""
    rng = np.random.default_rng(seed)
    ladder = Ladder.of(schema)
    sample, rows = uniform(schema, n, rng), uniform(schema, 60, rng)
    tree = Tree.grow(ladder.climb(sample), score(sample) > 0.5, criterion="gini", rng=rng)
    return ladder, tree, rows, tree.paths(ladder.climb(rows))


def path(*tests):
    """The path of one row from (column, below, threshold, confidence)."""
    return Paths(*(np.array([[test[i] for test in tests]]) for i in (0, 2, 1, 3)))


def test_a_threshold_becomes_the_root_of_the_tree():
    schema = schema_of((0, 9), (0, 9), (0, 1), protected=["x2"])
    ladder = Ladder.of(schema)
    rows = uniform(schema, 300, np.random.default_rng(0))
    tree = Tree.grow(
        ladder.climb(rows), rows[:, 0] > 3, criterion="gini", rng=np.random.default_rng(0)
    )
    assert (tree.column[0], tree.threshold[0]) == (0, 3.5)
    row = np.array([[1.0, 5.0, 0.0]])
    paths = tree.paths(row)
    assert paths.column.tolist() == [[0]]
    assert paths.below.all()
    assert paths.confidence[0, 0] == pytest.approx((rows[:, 0] <= 3).mean())
    region = _regions.toggles(ladder, paths)
    assert (region.low[0, 0], region.high[0, 0]) == (4.0, 9.0)
    assert region.confidence[0] == pytest.approx((rows[:, 0] > 3).mean())
    solved = _regions.solve(ladder, row, region, "nearest", np.random.default_rng(0))
    assert solved.tolist() == [[4.0, 5.0, 0.0]]


def test_intervals_of_tests_are_intersected():
    ladder = Ladder.of(schema_of((0, 9), (-9, 9), (0, 1), protected=["x2"]))
    tests = path((0, True, 5.5, 0.5), (0, False, 2.5, 0.5), (1, True, 20.5, 0.9))
    toggled = _regions.toggles(ladder, tests)
    # x0 <= 5.5 negated with x0 > 2.5; then x0 > 2.5 negated with x0 <= 5.5; x1 cannot be above 20.
    assert toggled.low[:, 0].tolist() == [6.0, 0.0, 0.0]
    assert toggled.high[:, 0].tolist() == [9.0, 2.0, 9.0]
    assert toggled.place.tolist() == [0, 1, 2]
    prefixed = _regions.prefixes(ladder, tests, 0.3)
    assert (prefixed.low[2, 0], prefixed.high[2, 0]) == (3.0, 5.0)
    impossible = _regions.toggles(ladder, path((0, True, 2.5, 0.5), (0, True, 2.5, 0.5)))
    assert not len(impossible.feasible())


def test_thresholds_of_negative_columns_are_floored():
    schema = schema_of((-9, 9), (0, 1), protected=["x1"])
    ladder = Ladder.of(schema)
    below = _regions.toggles(ladder, path((0, False, 5.5, 0.5)))  # x0 > -3.5, five steps above -9
    rows = np.array([[2.0, 0.0]])
    solved = _regions.solve(ladder, rows, below, "nearest", np.random.default_rng(0))
    assert solved.tolist() == [[-4.0, 0.0]]


@pytest.mark.parametrize("values", ["nearest", "zero", "uniform"])
@pytest.mark.parametrize("schema", [WIDE, PROTECTED_MIXED], ids=["integers", "mixed"])
def test_solutions_pass_the_tests_they_were_made_for(schema, values):
    score = WIDE_MODEL.score if schema is WIDE else mixed_score
    ladder, _, rows, paths = grown(schema, score)
    rng = np.random.default_rng(1)
    toggles, prefixes = _regions.toggles(ladder, paths), _regions.prefixes(ladder, paths, 0.3)
    for make, whole_path in ((toggles, True), (prefixes, False)):
        regions = make.feasible()
        solved = _regions.solve(ladder, rows, regions, values, rng)
        assert len(solved) > 100
        own = rows[regions.row]
        changed = ~((own == solved) | (np.isnan(own) & np.isnan(solved)))
        assert not changed[:, schema.protected_index].any()
        assert (changed <= regions.open).all()
        if whole_path:
            assert (changed.sum(axis=1) == 1).all()
        np.testing.assert_array_equal(snap(schema, solved), solved)
        there = ladder.climb(solved)
        for k in range(0, len(regions), 7):
            row, negated = regions.row[k], regions.place[k]
            for place, column in enumerate(paths.column[row]):
                if column not in np.flatnonzero(regions.open[k]):
                    continue
                if place > negated and not whole_path:
                    continue
                below = paths.below[row, place] != (place == negated)
                assert (there[k, column] <= paths.threshold[row, place]) == below


def test_values_are_chosen_by_the_rule():
    schema = schema_of((-20, 20), (0, 1), protected=["x1"])
    ladder = Ladder.of(schema)
    rows = np.array([[-10.0, 0.0]] * 400)
    paths = path((0, True, 14.5, 0.5))  # x0 <= -6
    paths = Paths(*(np.repeat(part, 400, axis=0) for part in dataclasses.astuple(paths)))
    regions = _regions.toggles(ladder, paths)
    rng = np.random.default_rng(0)
    assert set(_regions.solve(ladder, rows, regions, "nearest", rng)[:, 0]) == {-5.0}
    assert set(_regions.solve(ladder, rows, regions, "zero", rng)[:, 0]) == {0.0}
    spread = set(_regions.solve(ladder, rows, regions, "uniform", rng)[:, 0])
    assert spread == set(range(-5, 21))


def test_an_unsure_test_ends_the_global_search():
    ladder = Ladder.of(SCHEMA)
    sure = path((0, True, 1.5, 0.9), (1, True, 2.5, 0.30), (0, True, 0.5, 0.8))
    unsure = path((0, True, 1.5, 0.9), (1, True, 2.5, 0.29), (0, True, 0.5, 0.8))
    assert _regions.prefixes(ladder, sure, 0.3).place.tolist() == [0, 1, 2]
    assert _regions.prefixes(ladder, unsure, 0.3).place.tolist() == [0]


def test_protected_tests_are_neither_negated_nor_kept():
    ladder = Ladder.of(SCHEMA)
    tests = path((0, True, 1.5, 0.9), (2, True, 0.5, 0.1), (1, False, 2.5, 0.6))
    prefixed = _regions.prefixes(ladder, tests, 0.3)
    assert prefixed.place.tolist() == [0, 2]
    assert not prefixed.open[:, 2].any()
    np.testing.assert_allclose(prefixed.confidence, [0.1, (0.9 + 0.4) / 2])
    toggled = _regions.toggles(ladder, tests)
    assert toggled.place.tolist() == [0, 2]
    np.testing.assert_allclose(toggled.confidence, [(0.1 + 0.1 + 0.6) / 3, (0.9 + 0.1 + 0.4) / 3])


@pytest.mark.kernels
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"local_values": "zero", "global_values": "zero"},
        {"threshold": 0.6, "n_seeds": 5},
    ],
    ids=["best", "zeros", "few seeds"],
)
def test_one_row_at_a_time_is_the_naive_loop(settings):
    table = uniform(WIDE, 60, np.random.default_rng(2))
    method = SG(**{"block": 1, "limit": 120, "n_samples": 80, "n_seeds": 12} | settings)
    for seed in range(2):
        ran = run(method, task(WIDE, WIDE_MODEL, table), Budget(), seed)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        expected = naive.findings(method, WIDE_MODEL.score, WIDE, table, rng)
        assert found_keys(ran) == expected
        assert len(expected) > 20


@pytest.mark.kernels
def test_one_row_at_a_time_is_the_naive_loop_with_mixed_columns():
    problem = mixed_task(60)
    method = SG(block=1, limit=100, n_samples=80, n_seeds=12)
    ran = run(method, problem, Budget(), 4)
    rng = np.random.default_rng(np.random.SeedSequence(4, spawn_key=(0,)))
    expected = naive.findings(method, mixed_score, PROTECTED_MIXED, problem.rows, rng)
    rounded = [
        [tuple(c if c == "missing" else round(c, 6) for c in k) for k in keys]
        for keys in (found_keys(ran), expected)
    ]
    assert rounded[0] == rounded[1]
    assert len(expected) > 20


def test_blocks_find_as_much_as_single_rows():
    schema = schema_of((0, 30), (0, 30), (0, 30), (0, 1), protected=["x3"])
    model = Linear((0.4, -0.5, 0.2, 1.0), -0.55)
    table = uniform(schema, 100, np.random.default_rng(0))
    means = {}
    for block in (1, 16):
        method = SG(block=block, limit=150, n_samples=100, n_seeds=40)
        found = [
            len(run(method, task(schema, model, table), Budget(), seed).findings)
            for seed in range(4)
        ]
        means[block] = np.mean(found)
    assert 0.75 < means[16] / means[1] < 1.33


def test_the_queue_gives_the_lowest_rank_first_and_the_older_of_equals():
    queue = _Queue(SCHEMA)
    rows = np.array([[4.0, 0, 0], [3.0, 0, 0], [2.0, 0, 0], [1.0, 0, 0]])
    queue.push(rows, np.array([5.0, 9.0, 1.2, 5.0]))
    queue.push(np.array([[2.0, 0, 1], [0.0, 0, 0]]), np.array([0.0, 1.2]))  # the first is known
    popped, close = queue.pop(3)
    assert (popped[:, 0].tolist(), close) == ([2.0, 0.0], True)
    popped, close = queue.pop(3)
    assert (popped[:, 0].tolist(), close) == ([4.0], False)
    queue.trim(1)
    assert queue.pop(5)[0][:, 0].tolist() == [1.0]


def test_a_block_holds_rows_of_one_kind_and_few_that_are_not_close():
    queue = _Queue(WIDE)
    rows = snap(WIDE, uniform(WIDE, 3000, np.random.default_rng(0)))
    rank = np.repeat([1.5, 5.0, 9.5], 1000)
    queue.push(rows, rank)
    n_rows, kinds = len(queue), []
    while len(queue):
        before = queue._rank.copy()
        popped, close = queue.pop(64)
        gone = len(before) - len(queue)
        kinds.append(float(np.sort(before)[0]))
        assert gone == len(popped) <= (64 if close else 8)
        assert close == (kinds[-1] <= 2)
        assert (np.sort(before)[:gone] == kinds[-1]).all()
        n_rows -= gone
    assert n_rows == 0
    assert kinds == sorted(kinds)
    assert set(kinds) == {1.5, 5.0, 9.5}


def test_close_rows_come_before_seeds_and_seeds_before_far_rows():
    ladder, tree, rows, _ = grown(WIDE, WIDE_MODEL.score)
    block = check_rows(WIDE_MODEL.score, WIDE, rows)
    rng = np.random.default_rng(0)
    _, rank = SG().following(ladder, tree, block, rng)
    assert ((rank <= 2.0) | (rank >= 9.0)).all()
    assert (rank <= 2.0).any()
    assert (rank >= 9.0).any()
    _, rank = SG().following(ladder, tree, block[~block.flips], rng)
    assert (rank >= 9.0).all()


def test_a_flipping_seed_is_found_on_the_linear_problem():
    for row in sorted(FLIPPING):
        table = np.array([[*row, 0.0], [4.0, 0.0, 1.0], [0.0, 4.0, 0.0]])
        ran = run(SG(n_samples=50), task(rows=table), Budget(), 0)
        assert row in {k[:2] for k in found_keys(ran)}
        assert len(ran.findings) > 1


def test_marginals_are_those_of_the_table():
    table = np.column_stack([np.arange(1000) < 300, np.arange(1000) < 300]).astype(float)
    drawn = marginal(table, 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), 0.3, atol=0.015)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.03


def test_targets_that_answer_labels_only():
    labels = task(WIDE, WIDE_MODEL, uniform(WIDE, 60, np.random.default_rng(2)))
    by_score = run(SG(limit=300, n_samples=100), labels, Budget(), 0)
    labels = task(WIDE, WIDE_MODEL, uniform(WIDE, 60, np.random.default_rng(2)))
    labels = replace(labels, score=lambda rows: (WIDE_MODEL.score(rows) > 0.5).astype(float))
    by_label = run(SG(limit=300, n_samples=100), labels, Budget(), 0)
    assert found_keys(by_label) == found_keys(by_score)


def test_the_surrogate_leaves_half_of_a_small_budget_to_the_search():
    asked = task(WIDE, WIDE_MODEL, uniform(WIDE, 400, np.random.default_rng(0)))
    ran = run(SG(), asked, Budget(max_queries=1200), 0)
    assert ran.findings.rows_checked >= 100  # six queries a row at most, and 600 for the tree
    assert ran.queries <= 1200


def test_seeds_of_another_method_can_be_followed():
    seeds = check_rows(WIDE_MODEL.score, WIDE, uniform(WIDE, 150, np.random.default_rng(0)))
    method = SG(n_samples=100, limit=300)
    asked = task(WIDE, WIDE_MODEL, seeds.rows)
    batches = list(method.exploit(Session(asked), seeds[seeds.flips], np.random.default_rng(0)))
    assert 100 < sum(map(len, batches)) <= 300
    assert {batch.origin for batch in batches} == {"explore", "exploit"}


def test_settings_without_sense_are_refused():
    for settings in (
        *({"n_seeds": 0}, {"block": 0}, {"limit": 0}, {"n_samples": 0}),
        *({"block_share": 0.0}, {"block_share": 1.5}),
    ):
        with pytest.raises(InvalidInput):
            SG(**settings)


@pytest.mark.parametrize(
    ("budget", "largest"),
    [
        ({}, 37),
        ({"max_rows": 80}, 10),
        ({"max_queries": 6 * 80}, 10),
        ({"max_rows": 4}, 1),
    ],
)
def test_no_block_is_larger_than_an_eighth_of_what_the_budget_pays_for(budget, largest):
    table = uniform(WIDE, 200, np.random.default_rng(0))
    session = Session(task(WIDE, WIDE_MODEL, table), Budget(**budget))
    method = SG(limit=300, n_samples=100)
    sizes = [len(batch) for batch in method.search(session, np.random.default_rng(0))]
    assert max(sizes) <= largest
    assert method._block(Session(session.task, Budget(**budget))) == largest


def test_large_budgets_have_whole_blocks_and_one_row_is_one_row():
    session = Session(task(WIDE, WIDE_MODEL, uniform(WIDE, 9, np.random.default_rng(0))))
    assert SG()._block(session) == SG().block
    assert SG(block=1)._block(session) == 1


def test_nothing_is_found_where_nothing_flips():
    fair = Linear((1.0, -1.0, 0.0), -1.5)
    assert not len(run(SG(limit=100), task(model=fair), Budget(), 0).findings)
    constant = Linear((0.0, 0.0, 0.0), -1.0)
    assert not len(run(SG(limit=100), task(model=constant), Budget(), 0).findings)

"""ADF: its worked paths, its twin, and what it shares with the other gradient methods."""

from dataclasses import dataclass

import numpy as np
import pytest

from limi import methods
from limi.errors import InvalidInput, MissingCapability
from limi.methods import _gradient
from limi.methods.adf import ADF, agreement
from limi.search.budget import Budget, Stop
from limi.search.check import Checked
from limi.search.engine import run
from limi.search.session import Session
from limi.search.task import Task
from limi.table.rows import snap, uniform
from limi.table.schema import Column, Schema
from limi.testing.methods import every_finding_flips, nothing_leaves_the_domain
from tests.naive import adf as naive
from tests.naive.check import key
from tests.networks import balanced, linear, white
from tests.toy import FLIPPING, MIXED, MODEL, SCHEMA, Linear, schema_of, task

TEN = schema_of((0, 10), (0, 10), (0, 1), protected=["x2"])
WIDE = schema_of((0, 9), (-4, 4), (0, 6), (1, 5), (0, 1), protected=["x3", "x4"])


def path(method, here):
    """The one row of each step of an exploration from one seed."""
    return [
        tuple(checked.rows[0, :2])
        for checked in method.explore(Session(here), np.random.default_rng(0))
    ]


def climbing(bias):
    return white(TEN, linear([1.0, 1.0, 0.5], bias), [[2, 2, 0]])


def wide_task(seed=0, n=4, **more):
    rng = np.random.default_rng(seed)
    return white(WIDE, balanced(rng, WIDE, 8, 6), uniform(WIDE, n, rng), **more)


# -- exploring ---------------------------------------------------------------------------


@pytest.mark.parametrize("fallback", ["none", "corrected"])
@pytest.mark.parametrize("gradient", ["exact", "estimated"])
def test_the_worked_path_to_a_flip(fallback, gradient):
    here = climbing(-10.25)
    walked = path(ADF(fallback=fallback, gradient=gradient), here)
    assert walked == [(2, 2), (3, 3), (4, 4), (5, 5)]
    assert Session(here).check(np.array([[5.0, 5.0, 0.0]])).flips.all()


def test_the_worked_path_that_swings_for_ever_ends_without_a_finding():
    walked = path(ADF(fallback="none"), climbing(-9.25))
    assert walked == [(2, 2), (3, 3), (4, 4), *[(5, 5), (4, 4)] * 4]
    assert len(walked) == 11  # ten moves
    found = run(ADF(exploit_steps=5), climbing(-9.25), Budget(), 0)
    assert len(found.findings) == 0
    assert found.stop == Stop.EXHAUSTED


def test_moves_climb_against_the_decision_on_a_linear_model():
    weights = np.array([1.0, -2.0, 0.5])
    here = white(TEN, linear(weights, 1.0), [[3, 3, 0]])
    slope = here.gradients.loss_gradient
    rows = uniform(TEN, 50, np.random.default_rng(1))
    twins = rows.copy()
    twins[:, 2] = 1 - twins[:, 2]
    moves = agreement(TEN, slope(rows), slope(twins), "none", np.random.default_rng(0))
    side, twin_side = (np.where(here.score(x) > 0.5, 1, -1) for x in (rows, twins))
    expected = -np.sign(weights)[None, :] * side[:, None] * (side == twin_side)[:, None]
    expected[:, 2] = 0
    np.testing.assert_array_equal(moves, expected)


def test_fallbacks():
    rng = np.random.default_rng(0)
    zero, up, down = [0.0, 0.0, 0.0], [1.0, -2.0, 3.0], [-1.0, 2.0, 3.0]
    own, other = np.array([zero, up, up, zero]), np.array([up, zero, down, zero])

    def moves(fallback):
        return agreement(TEN, own, other, fallback, rng)

    np.testing.assert_array_equal(moves("none"), np.zeros((4, 3)))
    corrected = moves("corrected")
    np.testing.assert_array_equal(corrected[:2], [[1, -1, 0], [1, -1, 0]])
    assert (np.abs(corrected[2:]).sum(axis=1) == 1).all()  # one column at random
    assert (corrected[:, 2] == 0).all()


def test_the_fallback_is_that_of_the_twin():
    rng = np.random.default_rng(5)
    own, other = rng.integers(-1, 2, (2, 400, 5)).astype(float)
    own[rng.random(400) < 0.2] = 0
    other[rng.random(400) < 0.2] = 0
    moves = agreement(WIDE, own, other, "corrected", rng)
    for row, mine, theirs in zip(moves, own, other, strict=True):
        options = [naive.direction(WIDE, mine, theirs, "corrected", j) for j in WIDE.free_index]
        if not all(map(any, options)):
            # Where both gradients are flat in the column drawn, a coin decides.
            for j in WIDE.free_index:
                options += [[turn * (k == j) for k in range(5)] for turn in (-1, 1)]
        assert list(row) in [list(map(float, option)) for option in options]
        assert any(row)


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(8))
def test_exploring_in_lock_step_is_the_loop_row_by_row(seed):
    here = wide_task(seed)
    batches = list(ADF(fallback="none").explore(Session(here), np.random.default_rng(0)))
    slope = here.gradients.loss_gradient
    walks = [naive.explore(here.score, slope, WIDE, row, 10) for row in here.rows]
    for step, checked in enumerate(batches):
        expected = [walked[step] for walked, _ in walks if step < len(walked)]
        np.testing.assert_array_equal(checked.rows, expected)
    ends = sorted(key(WIDE, walked[-1]) for walked, flips in walks if flips)
    found = sorted(key(WIDE, row) for batch in batches for row in batch.rows[batch.flips])
    assert found == ends


# -- exploiting --------------------------------------------------------------------------


def seeds_of(here, n=1):
    """The first n flipping rows among many."""
    checked = Session(here).check(uniform(here.schema, 2000, np.random.default_rng(0)))
    return checked[checked.flips][:n]


@pytest.mark.kernels
@pytest.mark.parametrize("restart", ["metropolis", "reset_to_seed", "never", "stay"])
@pytest.mark.parametrize("seed", range(4))
def test_a_walk_is_the_twin_s(seed, restart):
    here = wide_task(seed + 20)
    seeds = seeds_of(here)
    method = ADF(exploit_steps=30, restart=restart)
    walked = list(method.exploit(Session(here), seeds, np.random.default_rng(seed)))
    expected = naive.exploit(
        here.score,
        here.gradients.loss_gradient,
        WIDE,
        seeds.rows[0],
        30,
        restart,
        np.random.default_rng(seed),
    )
    for checked, (row, flips) in zip(walked, expected, strict=True):
        np.testing.assert_array_equal(checked.rows[0], row)
        assert bool(checked.flips[0]) == flips
    assert len(walked) == 30
    assert {checked.origin for checked in walked} == {"exploit"}


@dataclass(frozen=True)
class Logistic(Linear):
    """A linear rule that knows its gradients, without torch: twins ask for a row at a time."""

    layers = ()

    def loss_gradient(self, rows):
        score = self.score(rows)
        return ((score - (score > 0.5))[:, None]) * np.array(self.weights)

    def output_gradient(self, rows):
        score = self.score(rows)
        return (score * (1 - score))[:, None] * np.array(self.weights)


def test_many_walks_find_as_many_as_the_twin_s():
    model = Logistic((0.5, -0.4, 0.3, 0.3, 0.8), -2.05)
    rows = uniform(WIDE, 12, np.random.default_rng(0))
    counts, twin = [], []
    for seed in range(30):
        here = task(WIDE, model, rows, gradients=model)
        counts.append(len(run(ADF(exploit_steps=25), here, Budget(), seed).findings))
    for seed in range(8):
        rng = np.random.default_rng(seed)
        twin.append(len(naive.search(model.score, model.loss_gradient, WIDE, rows, rng, 10, 25)))
    spread = np.hypot(np.std(counts) / 30**0.5, np.std(twin) / 8**0.5)
    assert np.mean(counts) > 20
    assert abs(np.mean(counts) - np.mean(twin)) < 4 * spread


def test_chances_are_inverse_to_the_gradient():
    schema = schema_of((0, 9), (0, 9), (0, 9), (0, 1), protected=["x3"])
    here = white(schema, linear([1.0, -2.0, 4.0, 1.0], -0.5), [[2, 2, 0, 0]])
    pull = here.gradients.loss_gradient(here.rows)
    how = _gradient.Wandering(steps=1)
    weights = _gradient._Momentum((pull, pull), how).weights(schema)[0]
    np.testing.assert_allclose(weights / weights.sum(), [4 / 7, 2 / 7, 1 / 7, 0], rtol=1e-4)
    flat = np.zeros((1, 4))
    weights = _gradient._Momentum((flat, flat), how).weights(schema)[0]
    np.testing.assert_allclose(weights / weights.sum(), [1 / 3, 1 / 3, 1 / 3, 0])


def test_columns_are_drawn_by_their_weights_and_ways_by_a_coin():
    rows = np.tile([5.0, 0.0, 3.0, 2.0, 0.0], (60_000, 1))
    weights = np.tile([1.0, 2.0, 1.0, 0.0, 0.0], (60_000, 1))
    there = _gradient._nudge(WIDE, rows, weights, None, 1, np.random.default_rng(0))
    moves = there - rows
    assert (np.abs(moves).sum(axis=1) == 1).all()
    shares = (moves != 0).mean(axis=0)
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.25, 0, 0], atol=4 * 0.0021)
    assert abs((moves.sum(axis=1) > 0).mean() - 0.5) < 4 * 0.0021


@pytest.mark.parametrize(("restart", "share"), [("metropolis", np.exp(-1)), ("stay", 0.0)])
def test_walks_leave_a_flip_by_a_chance_of_one_in_e(restart, share):
    n = 100_000
    flips, fails = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    some, rows = np.zeros(n), np.zeros((n, 3))
    here, there = (
        Checked(rows + place, some, rows, some, mask) for place, mask in ((0, flips), (1, fails))
    )
    rng = np.random.default_rng(0)
    after, back = _gradient._settle(restart, here, there, here, rng)
    assert abs(after.rows[:, 0].mean() - share) < 4 * 0.0016
    assert not back.any()
    after, _ = _gradient._settle(restart, there, here, there, rng)
    assert (after.rows == 0).all()  # a flip is always taken
    after, _ = _gradient._settle(restart, there, there, here, rng)
    assert (after.rows == 1).all()  # and so is one failure after another


@pytest.mark.parametrize("restart", ["metropolis", "reset_to_seed", "never", "stay"])
@pytest.mark.parametrize("gradient", ["exact", "estimated"])
def test_all_nine_points_are_found(restart, gradient):
    here = white(SCHEMA, linear(MODEL.weights, MODEL.bias), [[2, 2, 0], [0, 4, 1]])
    method = ADF(restart=restart, gradient=gradient, exploit_steps=3000)
    ran = run(method, here, Budget(max_findings=9), 1)
    assert {tuple(row[:2]) for row in ran.findings.all().rows} == FLIPPING


def test_a_model_that_ignores_the_protected_column_gives_nothing():
    here = white(
        SCHEMA, linear([1.0, -1.0, 0.0], -0.5), uniform(SCHEMA, 20, np.random.default_rng(0))
    )
    ran = run(ADF(exploit_steps=20), here, Budget(), 1)
    assert len(ran.findings) == 0
    assert ran.findings.rows_checked > 20


# -- any schema, any target --------------------------------------------------------------


def mixed_score(rows):
    """A rule with missing cells, text levels and real numbers; steep in none of them."""
    age, sex, job, rank, vet, debt, price = np.nan_to_num(rows, nan=1.5).T
    margin = 0.03 * (age - 50) + 0.8 * sex - 0.3 * job + 0.2 * rank + 0.1 * vet
    return 1 / (1 + np.exp(-(margin + 0.1 * debt - 0.4 * price)))


def mixed_rows(n=120):
    rng = np.random.default_rng(0)
    rows = uniform(MIXED.protect(["sex"]), n, rng)
    rows[rng.random(n) < 0.2, 5] = np.nan
    return rows


GRADIENT_METHODS = {
    "adf": {"exploit_steps": 12, "restart": "stay"},
    "eidig": {"exploit_steps": 12},
    "maft": {"exploit_steps": 12},
}


@pytest.mark.parametrize("name", GRADIENT_METHODS)
@pytest.mark.parametrize("labels_only", [False, True])
def test_mixed_tables_with_missing_and_real_cells(name, labels_only):
    schema = MIXED.protect(["sex", "vet"])

    def score(rows):
        return (mixed_score(rows) > 0.5).astype(float) if labels_only else mixed_score(rows)

    def make_task(**more):
        return Task(schema, score, mixed_rows(), **more)

    for check in (every_finding_flips, nothing_leaves_the_domain):
        check(lambda: methods.parse(name, GRADIENT_METHODS[name]), make_task)


def test_missing_cells_stay_missing_and_protected_columns_do_not_move():
    schema = MIXED.protect(["sex"])
    here = Task(schema, mixed_score, mixed_rows())
    method = ADF(exploit_steps=15, gradient="estimated")
    seeds = Session(here).check(mixed_rows())
    seeds = seeds[seeds.flips]
    for checked in method.exploit(Session(here), seeds, np.random.default_rng(0)):
        np.testing.assert_array_equal(np.isnan(checked.rows), np.isnan(seeds.rows))
        np.testing.assert_array_equal(checked.rows[:, 1], seeds.rows[:, 1])


def test_a_row_of_missing_cells_alone_stays_as_it_is():
    schema = Schema(
        (
            Column(name="x", kind="numerical", low=0, high=5, step=1, missing=True),
            Column(name="sex", kind="categorical", levels=(0, 1)),
        )
    ).protect(["sex"])
    here = Task(schema, lambda rows: rows[:, 1] * 0.5 + 0.25, np.array([[np.nan, 0.0]]))
    ran = run(ADF(exploit_steps=5), here, Budget(), 0)
    assert len(ran.findings) == 1
    assert ran.findings.rows_checked == 6


def test_gradients_count_by_what_one_step_changes():
    """The same model with a column in cents or in euros has the same chances."""
    weights = []
    for scale in (1, 100):
        columns = (
            Column(name="money", kind="numerical", low=0, high=50 * scale, step=scale),
            Column(name="x", kind="numerical", low=0, high=9, step=1),
            Column(name="sex", kind="categorical", levels=(0, 1)),
        )
        schema = Schema(columns).protect(["sex"])
        here = white(schema, linear([0.2 / scale, 0.5, 1.0], -3.0), [[4 * scale, 2, 0]])
        for slopes in (here.gradients, _gradient.Estimated(Session(here))):
            pull = slopes.loss_gradient(here.rows)
            found = _gradient._Momentum((pull, pull), _gradient.Wandering(steps=1)).weights(schema)
            weights.append(found[0] / found[0].sum())
    np.testing.assert_allclose(weights[0], weights[2], rtol=1e-9)
    np.testing.assert_allclose(weights[1], weights[3], rtol=1e-9)


# -- estimated gradients -----------------------------------------------------------------


def test_estimates_are_exact_on_a_linear_score():
    weights = np.array([0.01, -0.02, 0.005, 0.03, 0.04])

    def score(rows):
        return 0.3 + rows @ weights

    here = Task(WIDE, score, uniform(WIDE, 30, np.random.default_rng(0)))
    for size in (1, 2, 5):
        slope = _gradient.Estimated(Session(here), size).output_gradient(here.rows)
        expected = np.where(WIDE.free_mask, weights, 0.0)
        np.testing.assert_allclose(slope, np.tile(expected, (30, 1)), atol=1e-12)


def test_estimates_ask_for_neighbours_inside_the_domain_only():
    asked = []

    def score(rows):
        asked.append(rows.copy())
        return np.full(len(rows), 0.25)

    rows = np.array([[9.0, 4.0, 0.0, 5.0, 1.0], [3.0, -4.0, 6.0, 1.0, 0.0]])
    here = Task(WIDE, score, rows)
    _gradient.Estimated(Session(here)).loss_gradient(rows)
    first = [[9, 4, 0], [8, 4, 0], [9, 3, 0], [9, 4, 1]]
    second = [[3, -4, 6], [4, -4, 6], [3, -3, 6], [3, -4, 5]]
    np.testing.assert_array_equal(np.concatenate(asked)[:, :3], [*first, *second])
    asked.clear()
    _gradient.Estimated(Session(here), 100.0).output_gradient(rows)
    np.testing.assert_array_equal(snap(WIDE, np.concatenate(asked)), np.concatenate(asked))
    assert np.concatenate(asked)[1, 0] == 0  # the other end, where the range is narrower


def test_estimates_see_the_jump_of_a_tree():
    here = Task(WIDE, lambda rows: np.where(rows[:, 0] > 4.5, 0.9, 0.2), WIDE.low[None])
    slope = _gradient.Estimated(Session(here)).output_gradient(
        np.array([[4.0, 0, 0, 1, 0], [6, 0, 0, 1, 0]])
    )
    np.testing.assert_allclose(slope[:, 0], [0.7, 0.0])
    loss = _gradient.Estimated(Session(here)).loss_gradient(np.array([[4.0, 0, 0, 1, 0]]))
    assert loss[0, 0] == pytest.approx(np.log(0.8) - np.log(0.1))


def test_estimates_do_not_depend_on_the_batch_and_end_with_the_budget():
    rows = uniform(WIDE, 30, np.random.default_rng(0))
    model = Linear((0.1, 0.2, -0.1, 0.3, 0.5), -1.05)
    whole = _gradient.Estimated(Session(Task(WIDE, model.score, rows))).loss_gradient(rows)
    parts = _gradient.Estimated(Session(Task(WIDE, model.score, rows, max_batch=7))).loss_gradient(
        rows
    )
    np.testing.assert_allclose(parts, whole, rtol=1e-10)
    poor = Session(Task(WIDE, model.score, rows), Budget(max_queries=4 * 10 + 3))
    cut = _gradient.Estimated(poor).loss_gradient(rows)
    np.testing.assert_allclose(cut[:10], whole[:10], rtol=1e-10)
    assert not cut[10:].any()
    assert poor.queries_left == 0


def test_queries_of_estimates_count():
    here = task(WIDE, Linear((0.1, 0.2, -0.1, 0.3, 0.5), -1.05), WIDE.low[None] + 1)
    ran = run(ADF(gradient="estimated", explore_steps=1), here, Budget(max_rows=2), 0)
    # Two checks of ten combinations, and one gradient each of the row and of its partner.
    assert ran.queries == 2 * 10 + 2 * (3 + 1)


# -- settings ----------------------------------------------------------------------------


def test_exact_gradients_are_refused_before_the_first_row():
    here = task()
    with pytest.raises(MissingCapability, match="torch"):
        run(ADF(gradient="exact"), here, Budget(), 0)
    ran = run(ADF(exploit_steps=1), here, Budget(), 0)
    (note,) = ran.session.notes
    assert "estimated" in note
    white_box = climbing(-10.25)
    assert run(ADF(exploit_steps=1), white_box, Budget(), 0).session.notes == []


@pytest.mark.parametrize(
    "bad",
    [
        {"n_seeds": 0},
        {"clusters": 0},
        {"explore_step": 0},
        {"exploit_step": -1},
        {"explore_steps": -1},
        {"exploit_steps": -1},
    ],
)
def test_impossible_settings(bad):
    with pytest.raises(InvalidInput, match=f"{next(iter(bad))} is .*at least"):
        ADF(**bad)


def test_presets_and_texts():
    assert methods.parse("adf", ["preset=paper"]) == ADF(restart="never", fallback="none")
    assert methods.parse("adf", ["restart=never", "exploit_steps=3"]) == ADF(
        restart="never", exploit_steps=3
    )
    with pytest.raises(InvalidInput, match="metropolis"):
        methods.parse("adf", ["restart=sometimes"])

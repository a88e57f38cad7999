"""AEQUITAS: its probabilities, its walk, and agreement with one walk at a time."""

from dataclasses import replace

import numpy as np
import pytest

from limi.errors import InvalidInput
from limi.methods.aequitas import Aequitas, Taste, _energy
from limi.search.budget import Budget
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.session import Session
from limi.table.rows import uniform
from limi.table.steps import Ladder
from tests.naive import aequitas as naive
from tests.naive.check import key
from tests.toy import FLIPPING, MIXED, MODEL, SCHEMA, Linear, schema_of, task

PROTECTED_MIXED = MIXED.protect(["sex", "vet"])
MIXED_MODEL = Linear((0.02, 0.8, 0.4, 0.3, 0.6, 0.2, 0.5), -2.205)


def mixed_score(rows):
    return MIXED_MODEL.score(np.nan_to_num(rows, nan=-1.0))


def found_keys(ran):
    rows = ran.findings.all().rows
    return [key(ran.findings.schema, row) for row in rows]


def test_the_whole_set_of_flips_is_reached():
    ran = run(Aequitas(n_samples=5, exploit_steps=400), task(), Budget(), 3)
    assert {k[:2] for k in found_keys(ran)} == FLIPPING


@pytest.mark.kernels
@pytest.mark.parametrize("variant", ["random", "semi-directed", "fully-directed"])
def test_one_walk_at_a_time_is_the_naive_loop(variant):
    schema = schema_of((0, 9), (-3, 6), (0, 4), (0, 1), (1, 3), protected=["x3", "x4"])
    model = Linear((0.5, -0.6, 0.3, 0.8, 0.4), -1.15)
    method = Aequitas(n_samples=30, exploit_steps=80, walks=1, variant=variant)
    for seed in range(2):
        ran = run(
            method,
            task(schema, model, uniform(schema, 5, np.random.default_rng(0))),
            Budget(),
            seed,
        )
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        assert found_keys(ran) == naive.findings(method, model.score, schema, None, rng)
        assert len(ran.findings) > 30


@pytest.mark.kernels
def test_one_walk_at_a_time_is_the_naive_loop_with_mixed_columns():
    method = Aequitas(n_samples=40, exploit_steps=40, walks=1)
    rows = uniform(PROTECTED_MIXED, 5, np.random.default_rng(0))
    for seed in range(2):
        problem = task(PROTECTED_MIXED, MIXED_MODEL, rows)
        problem = replace(problem, score=mixed_score)
        ran = run(method, problem, Budget(), seed)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        expected = naive.findings(method, mixed_score, PROTECTED_MIXED, None, rng)
        # The two add up steps of 0.1 in their own order, which shows in the last digits.
        ours, theirs = rounded(found_keys(ran)), rounded(expected)
        assert ours == theirs
        assert len(ours) > 150


def rounded(keys):
    return list(dict.fromkeys(tuple(c if c == "missing" else round(c, 6) for c in k) for k in keys))


def test_lock_step_finds_as_much_as_one_walk_at_a_time():
    schema = schema_of((0, 30), (0, 30), (0, 30), (0, 1), protected=["x3"])
    model = Linear((0.4, -0.5, 0.2, 1.0), -0.55)
    counts = {}
    for walks in (1, 1024):
        method = Aequitas(n_samples=100, exploit_steps=60, walks=walks)
        counts[walks] = [
            len(run(method, task(schema, model, np.zeros((1, 4))), Budget(), seed).findings)
            for seed in range(12)
        ]
    means = {walks: np.mean(found) for walks, found in counts.items()}
    errors = {walks: np.std(found) / np.sqrt(12) for walks, found in counts.items()}
    assert abs(means[1] - means[1024]) < 4 * np.hypot(errors[1], errors[1024])


def test_one_vote_moves_the_probabilities_by_a_thousandth():
    taste = Taste(np.array([0.3, 0.5, 0.2, 0.0]), np.array([0.5, 0.5, 0.9995, 0.5]))
    method = Aequitas()
    one = np.array([1])
    down, up = np.array([-1.0]), np.array([1.0])
    flip, none = np.array([True]), np.array([False])

    hit = method.learn(taste, one, down, flip)
    assert hit.down[1] == pytest.approx(0.501)
    np.testing.assert_allclose(hit.column, np.array([0.3, 0.501, 0.2, 0.0]) / 1.001)

    miss = method.learn(taste, one, down, none)
    assert miss.down[1] == pytest.approx(0.499)
    np.testing.assert_allclose(miss.column, np.array([0.3, 0.499, 0.2, 0.0]) / 0.999)

    assert method.learn(taste, one, up, none).down[1] == pytest.approx(0.501)
    assert method.learn(taste, one, up, flip).down[1] == pytest.approx(0.499)
    assert method.learn(taste, np.array([2]), down, flip).down[2] == 1.0
    assert method.learn(taste, np.array([3]), down, none).column[3] == 0.0


def test_the_variants_learn_what_they_should():
    taste = Taste(np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    step = (np.array([0]), np.array([-1.0]), np.array([True]))
    assert Aequitas(variant="random").learn(taste, *step) == taste
    semi = Aequitas(variant="semi-directed").learn(taste, *step)
    assert semi.down[0] > 0.5
    np.testing.assert_array_equal(semi.column, taste.column)


def test_probabilities_stay_probabilities():
    rng = np.random.default_rng(5)
    taste = Taste.of(SCHEMA)
    method = Aequitas(direction_change=0.05, column_change=0.05)
    for _ in range(300):
        n = int(rng.integers(1, 200))
        columns, signs = taste.draw(Ladder.of(SCHEMA), uniform(SCHEMA, n, rng), rng.random((n, 4)))
        taste = method.learn(taste, columns, signs, rng.random(n) < 0.3)
        assert taste.column.sum() == pytest.approx(1.0)
        assert (taste.column >= 0).all()
        assert ((taste.down >= 0) & (taste.down <= 1)).all()
    assert taste.column[2] == 0.0


def test_at_a_bound_both_directions_are_equally_likely():
    n = 20_000
    rng = np.random.default_rng(0)
    sure = Taste(np.array([1.0, 0.0, 0.0]), np.ones(3))
    for bound, share in ((0.0, 0.5), (4.0, 0.5), (2.0, 1.0)):
        rows = np.tile([bound, 2.0, 0.0], (n, 1))
        _, signs = sure.draw(Ladder.of(SCHEMA), rows, rng.random((n, 4)))
        assert abs((signs < 0).mean() - share) <= 4 * np.sqrt(0.25 / n)


def test_columns_that_keep_the_flip_become_more_likely():
    schema = schema_of((0, 100), (0, 100), (0, 100), (0, 1), protected=["x3"])
    only_the_first = Linear((1.0, 0.0, 0.0, 2.0), -51.5)  # flips at 50 and 51
    seed = check_rows(only_the_first.score, schema, np.array([[50.0, 50.0, 50.0, 0.0]]))
    assert seed.flips.all()
    tastes = []

    class Watching(Aequitas):
        def learn(self, *given):
            tastes.append(super().learn(*given))
            return tastes[-1]

    # So cold that the walk never leaves the rows that flip.
    method = Watching(exploit_steps=2000, temperature=0.01)
    asked = task(schema, only_the_first, seed.rows)
    for _ in method.exploit(Session(asked), seed, np.random.default_rng(1)):
        pass
    assert tastes[-1].column[0] < 0.25 < 1 / 3 < tastes[-1].column[1:3].min()


def test_protected_columns_do_not_move():
    schema = schema_of((0, 9), (0, 9), (1, 9), protected=["x2"])
    model = Linear((0.4, -0.5, 0.3), -1.05)
    seeds = check_rows(model.score, schema, uniform(schema, 200, np.random.default_rng(0)))
    seeds = seeds[seeds.flips]
    method, rng = Aequitas(exploit_steps=30), np.random.default_rng(0)
    walked = list(method.exploit(Session(task(schema, model, seeds.rows)), seeds, rng))
    assert (walked[-1].rows[:, 2] == seeds.rows[:, 2]).all()
    assert (walked[-1].rows[:, :2] != seeds.rows[:, :2]).any()


def test_a_walk_off_the_flips_is_accepted_once_in_e_times():
    schema = schema_of((0, 10), (0, 1), protected=["x1"])
    here = check_rows(Linear((1.0, 2.0), -6.5).score, schema, np.tile([[5.0, 0.0]], (20_000, 1)))
    there = check_rows(Linear((1.0, 2.0), -6.5).score, schema, np.tile([[7.0, 0.0]], (20_000, 1)))
    assert here.flips.all()
    assert not there.flips.any()
    draws = np.random.default_rng(0).random(20_000)
    method = Aequitas()
    low, high = _energy(here), _energy(there)
    share = method._accept(low, high, draws).mean()
    assert abs(share - np.exp(-1)) < 4 * np.sqrt(0.25 / 20_000)
    assert method._accept(high, low, draws).all()


def test_targets_that_answer_labels_only():
    labels = task()
    labels = replace(labels, score=lambda rows: (MODEL.score(rows) > 0.5).astype(float))
    by_label = run(Aequitas(n_samples=20, exploit_steps=50), labels, Budget(), 0)
    by_score = run(Aequitas(n_samples=20, exploit_steps=50), task(), Budget(), 0)
    assert found_keys(by_label) == found_keys(by_score)


def test_settings_without_sense_are_refused():
    for settings in ({"n_samples": 0}, {"walks": 0}, {"temperature": 0.0}, {"step": -1.0}):
        with pytest.raises(InvalidInput):
            Aequitas(**settings)


def test_nothing_is_found_where_nothing_flips():
    fair = Linear((1.0, -1.0, 0.0), -1.5)
    assert not len(run(Aequitas(exploit_steps=10), task(model=fair), Budget(), 0).findings)

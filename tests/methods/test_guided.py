"""The guided search: more findings a query than plain natural rows, and all of a small domain."""

from dataclasses import replace

import numpy as np
import pytest

from limi.decisions import AS_DECIDED
from limi.errors import InvalidInput
from limi.methods import parse
from limi.methods._guessing import Learners, Memory, Scale, _telling
from limi.methods.guided import _POWERS, Guided, _Parents, _Pool, _power
from limi.methods.natural import Natural
from limi.search.budget import Budget, Stop
from limi.search.check import check_rows
from limi.search.engine import run
from limi.table.rows import uniform
from limi.table.rules import Role, Rules
from limi.table.schema import Column, Schema
from tests.toy import FLIPPING, MODEL, SCHEMA, Linear, Rounding, integers, schema_of, task

WIDE = schema_of((0, 60), (0, 60), (0, 30), (0, 1), protected=["x3"])
WIDE_MODEL = Linear((0.125, -0.0625, 0.0625, 1.0), -1.53125)


AGES = schema_of((0, 60), (0, 60), (0, 30), (1, 9), protected=["x3"])
AGE_MODEL = Linear((0.125, -0.0625, 0.0625, 0.125), -1.53125)

GAPPY = Column(name="gap", kind="numerical", low=0, high=9, step=1, missing=True)

ROUGH = schema_of(*[(0, 9)] * 12, (0, 1), protected=["x12"])


def rough_model():
    """Flips in patches that the values of two columns make, which few examples do not teach."""
    patches = np.random.default_rng(5).random((10, 10)) < 0.2

    class Rough:
        def score(self, rows):
            at = rows.astype(int)
            inside = patches[at[:, 0], at[:, 1]] & patches[at[:, 2], at[:, 3]]
            return np.where(inside & (at[:, 12] == 1), 0.9, 0.1)

    return Rough()


def searched(method, schema=WIDE, model=WIDE_MODEL, score=None, **budget):
    seen = uniform(schema, 100, np.random.default_rng(0))
    here = task(schema, model, seen, generator=Rounding(schema))
    here = replace(here, score=score or here.score)
    return run(method, here, Budget(**budget), 0)


def test_it_finds_more_per_query_than_plain_natural_rows():
    guided = searched(Guided(), max_queries=4_000)
    plain = searched(Natural(), max_queries=4_000)
    assert guided.queries <= 4_000
    assert len(guided.findings) > 2 * len(plain.findings)


def test_labels_are_enough():
    def label(rows):
        return (WIDE_MODEL.score(rows) > 0.5).astype(float)

    guided = searched(Guided(), score=label, max_queries=4_000)
    plain = searched(Natural(), score=label, max_queries=4_000)
    assert len(guided.findings) > 2 * len(plain.findings)


def test_a_small_domain_is_searched_whole():
    ran = searched(Guided(), SCHEMA, MODEL)
    assert ran.stop == Stop.EXHAUSTED
    assert {tuple(row[:2].astype(int)) for row in ran.findings.all().rows} == FLIPPING


def test_a_model_that_ignores_the_protected_column_gives_nothing():
    ran = searched(Guided(), model=Linear((0.1, -0.1, 0.1, 0.0), -0.05), max_queries=2_000)
    assert len(ran.findings) == 0
    assert ran.queries > 1_900


def test_both_origins_are_named_and_exploration_is_kept():
    found = searched(Guided(explore_share=0.5), max_queries=3_000).findings.all()
    assert set(found.origin) == {"natural", "guided"}


def test_many_combinations_are_cut_to_the_telling_ones():
    schema = schema_of((0, 5), (1, 7), protected=["x1"])
    sides = np.array([0.5, 0.9, 0.1, 0.5, 0.2, 0.5, 0.8])
    assert _telling(schema, sides).ravel().tolist() == [2, 3, 5, 7]
    assert len(_telling(WIDE, np.zeros(2))) == 2


@pytest.mark.parametrize("flips", [True, False])
def test_guesses_are_those_of_a_walk_down_each_tree(flips):
    model = AGE_MODEL if flips else Linear((0.125, -0.0625, 0.0625, 0.0), -1.53125)
    rows = uniform(AGES, 400, np.random.default_rng(0))
    memory = Memory(AGES, 1_000, AS_DECIDED)
    memory.add(check_rows(model.score, AGES, rows, keep_scores=True))
    asked = uniform(AGES, 900, np.random.default_rng(1))
    learners = Learners.fit(AGES, memory, 6, 40, np.random.default_rng(2))
    assert (learners.flips is not None) == flips
    guesses = learners.guess(asked)
    assert np.allclose(guesses, replace(learners, trees=None).guess(asked), rtol=0, atol=1e-5)
    assert learners.guess(asked[:0]).shape == (0, 2)
    huge = Learners.fit(AGES, memory, 2, 2_000, np.random.default_rng(2))  # more than masks hold
    assert huge.trees is None
    assert huge.guess(asked).shape == (900, 2)


def test_what_goes_along_with_a_protected_value_goes_along_in_guesses():
    role = Role(protected="sex", column="kin", things=(((0, 1), (1, 2)),))
    columns = (integers("a", 0, 60), integers("kin", 0, 2), integers("sex", 0, 1))
    schema = Schema(columns, rules=Rules(roles=(role,))).protect(["sex"])

    def score(rows):
        return np.where(rows[:, 1] == 2, 0.9, 0.1)

    rows = uniform(schema, 900, np.random.default_rng(0))
    memory = Memory(schema, 1_000, AS_DECIDED)
    memory.add(check_rows(score, schema, rows, keep_scores=True))
    learners = Learners.fit(schema, memory, 6, 40, np.random.default_rng(2))
    expected = learners.guess(rows)[:, 0] > 0
    assert np.array_equal(expected, check_rows(score, schema, rows).flips)


def test_a_column_that_was_missing_in_every_row_asked_is_not_learned_from():
    schema = Schema((integers("a", 0, 60), GAPPY, integers("sex", 0, 1))).protect(["sex"])
    rows = uniform(schema, 200, np.random.default_rng(0))
    rows[:, 1] = np.nan
    memory = Memory(schema, 1_000, AS_DECIDED)
    memory.add(check_rows(lambda r: r[:, 0] / 60, schema, rows, keep_scores=True))
    learners = Learners.fit(schema, memory, 3, 8, np.random.default_rng(2))
    whole = uniform(schema, 50, np.random.default_rng(1))
    assert np.isfinite(learners.guess(whole)).all()


def test_it_learns_from_every_value_asked():
    guided = searched(Guided(), AGES, AGE_MODEL, max_queries=6_000)
    plain = searched(Natural(), AGES, AGE_MODEL, max_queries=6_000)
    assert len(guided.findings) > 1.7 * len(plain.findings)


def test_without_keenness_rows_come_as_they_are_drawn():
    plain = searched(Natural(), max_queries=4_000)
    blunt = searched(Guided(keenness=0.0, neighbours=0.0), max_queries=4_000)
    assert 0.6 < len(blunt.findings) / len(plain.findings) < 1.4
    assert len(searched(Guided(), max_queries=4_000).findings) > 2 * len(blunt.findings)


def test_the_power_is_the_smallest_that_promises_enough():
    rng = np.random.default_rng(0)
    chance, noise = rng.random(5_000), rng.gumbel(size=5_000)

    def promised(power):
        return chance[np.argsort(-(power * np.log(chance) + noise))[:500]].mean()

    surest = np.sort(chance)[-500:].mean()
    assert _power(np.log(chance), noise, 500, 0.0) == 0.0
    for keenness in (0.6, 0.85, 0.99):
        power = _power(np.log(chance), noise, 500, keenness)
        weaker = _POWERS[_POWERS.index(power) - 1]
        assert promised(power) >= keenness * surest > promised(weaker)
    assert promised(_power(np.log(chance), noise, 500, 1.0)) > 0.999 * surest
    assert _power(np.log(chance), noise, 5_000, 1.0) == 0.0  # all are taken in any case


@pytest.mark.parametrize(("width", "n_new"), [(1, 1), (13, 1), (40, 1), (128, 4)])
def test_neighbours_share_all_but_a_few_numbers_with_a_finding(width, n_new):
    rng = np.random.default_rng(0)
    found = rng.normal(size=(20, width))
    parents = _Parents(15)
    unborn, none = parents.breed(found, np.ones(20, dtype=bool), rng)
    assert unborn is found
    assert not none.any()
    odd = np.arange(20) % 2 == 1
    parents.add(_Pool(found, found, odd))  # neighbours have no neighbours
    parents.add(_Pool(found, found, ~odd))
    drawn = rng.normal(size=(300, width))
    which = rng.random(300) < 0.5
    latents, bred = parents.breed(drawn, which, rng)
    assert np.array_equal(bred, which)
    assert np.array_equal(latents[~bred], drawn[~bred])
    same = latents[bred][:, None] == found
    assert (same.sum(axis=2).max(axis=1) >= width - n_new).all()  # a number may be drawn twice
    if width > 1:  # the oldest five of the even ones are forgotten
        assert set(same.sum(axis=2).argmax(axis=1)) == {*range(1, 20, 2), *range(10, 20, 2)}
    fresh = (latents[bred] == drawn[bred]).sum(axis=1)
    assert fresh.min() >= 1
    assert fresh.max() == n_new


@pytest.mark.parametrize("max_queries", [901, 2_500])
def test_parents_are_findings_that_are_no_neighbours(monkeypatch, max_queries):
    given = []
    monkeypatch.setattr(_Parents, "add", lambda _, findings: given.append(findings))
    ran = searched(Guided(), max_queries=max_queries)  # without parents all rows are fresh
    kept = np.concatenate([findings.rows for findings in given])
    found = ran.findings.all().rows[:, :3]  # those of the last round have no children
    assert len(found) > len(kept) > 10
    assert {tuple(row) for row in kept[:, :3]} <= {tuple(row) for row in found}
    for findings in given:
        assert np.array_equal(Rounding(WIDE).decode(findings.latents), findings.rows)


def test_neighbours_find_more():
    with_them = searched(Guided(), ROUGH, rough_model(), max_queries=3_000)
    without = searched(Guided(neighbours=0.0), ROUGH, rough_model(), max_queries=3_000)
    assert len(with_them.findings) > 1.1 * len(without.findings)


def test_the_last_digits_of_a_score_change_nothing():
    """Scores of a network differ in the last digits with the batch they are asked in."""

    def searched_in(max_batch):
        here = task(AGES, AGE_MODEL, generator=Rounding(AGES), max_batch=max_batch)
        exact = here.score
        here = replace(here, score=lambda rows: exact(rows) + 1e-8 * (len(rows) % 7 - 3))
        return run(Guided(), here, Budget(max_queries=5_000), 0).findings.all()

    whole, parts = searched_in(100_000), searched_in(37)
    assert len(whole) > 200
    np.testing.assert_array_equal(whole.rows, parts.rows)
    np.testing.assert_array_equal(whole.partner, parts.partner)


def test_where_neither_learner_helps_a_neighbour_is_not_all_that_counts():
    rng = np.random.default_rng(0)
    bred = rng.random(2_000) < 0.5
    flips = rng.random(2_000) < np.where(bred, 0.6, 0.2)
    wrong = np.where(flips, -1.0, 1.0)[:, None] + rng.normal(0, 1, (2_000, 2))
    scale = Scale()
    scale.learn(np.column_stack([wrong, bred]), flips)
    sure, unsure = scale.log_odds(np.array([[4.0, 8.0, 0.0], [-4.0, -8.0, 0.0]]))
    assert sure > unsure + 1


def test_a_neighbour_may_count_less():
    rng = np.random.default_rng(0)
    bred = rng.random(2_000) < 0.5
    flips = rng.random(2_000) < np.where(bred, 0.2, 0.6)
    right = np.where(flips, 1.0, -1.0)[:, None] + rng.normal(0, 1, (2_000, 2))
    scale = Scale()
    scale.learn(np.column_stack([right, bred]), flips)
    neighbour, fresh = scale.log_odds(np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    assert neighbour < fresh - 0.5


def test_the_learner_that_was_right_gets_the_weight():
    rng = np.random.default_rng(0)
    flips = rng.random(2_000) < 0.3
    telling = np.where(flips, 1.0, -1.0) + rng.normal(0, 1, 2_000)
    guesses = np.column_stack([rng.normal(0, 1, 2_000), telling, np.zeros(2_000)])
    scale = Scale()
    assert np.array_equal(scale.log_odds(np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 1.0]])), [2.0, 1.7])
    scale.learn(guesses, flips)
    chance = 1 / (1 + np.exp(-scale.log_odds(guesses)))
    assert abs(chance.mean() - flips.mean()) < 0.01  # it is a probability, not only an order
    noise, signal = scale.log_odds(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    assert signal - noise > 1.0
    scale.learn(-guesses, flips)  # what seems to tell against a flip counts for nothing
    scale.learn(-guesses, flips)
    assert np.array_equal(scale.log_odds(np.array([[0.0, 2.0, 0.0]])), [1.0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"pool": 0},
        {"explore_share": 2.0},
        {"growth": 0.5},
        {"keenness": -1.0},
        {"neighbours": np.nan},
        {"neighbours": 1.0},
    ],
)
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(InvalidInput):
        Guided(**wrong)


def test_the_natural_preset_gives_up_findings():
    blunter = parse("guided", ["preset=natural"])
    assert blunter == Guided(keenness=0.6, neighbours=0.3)
    keen, blunt = (searched(method, max_queries=4_000) for method in (Guided(), blunter))
    plain = searched(Natural(), max_queries=4_000)
    assert len(keen.findings) > len(blunt.findings) > 1.3 * len(plain.findings)

"""Twins are people of the other group, and their true ones where those are known."""

import dataclasses

import numpy as np
import pytest

from lab.mechanism import draw_known
from limi.errors import InvalidInput
from limi.table.rules import Derived, Role, Rules
from limi.table.schema import Column, Schema
from limi.twins.maker import learn


@pytest.fixture(scope="module")
def known():
    return draw_known(3000, np.random.default_rng(0))


@pytest.fixture(scope="module")
def maker(known):
    return learn(known.rows, known.schema, np.random.default_rng(1))


def other(maker, rows):
    return 1 - maker.groups.of(rows)


def test_twins_hold_the_other_group_s_values_and_cells_that_the_schema_allows(known, maker):
    twins = maker.make(known.rows, other(maker, known.rows), np.random.default_rng(2))
    assert (twins[:, 0] == 1 - known.rows[:, 0]).all()
    assert (twins >= known.schema.low).all()
    assert (twins <= known.schema.high).all()


def test_twins_of_a_group_are_spread_like_the_other_group(known, maker):
    women = known.rows[known.rows[:, 0] == 0]
    men = known.rows[known.rows[:, 0] == 1]
    twins = maker.make(women, np.ones(len(women), dtype=int), np.random.default_rng(2))
    hours = known.schema.position("hours")
    before = abs(women[:, hours].mean() - men[:, hours].mean())
    assert abs(twins[:, hours].mean() - men[:, hours].mean()) < 0.15 * before
    assert 0.9 < twins[:, hours].std() / men[:, hours].std() < 1.1


def test_most_verdicts_are_those_of_the_true_twin(known, maker):
    twins = maker.make(known.rows, other(maker, known.rows), np.random.default_rng(3))
    decided, true = (known.score(rows) > 0.5 for rows in (twins, known.twins))
    assert abs(decided.mean() - true.mean()) < 0.02
    assert (decided == true).mean() > 0.9


def test_the_goal_s_own_group_gives_people_back(known, maker):
    same = maker.make(known.rows, maker.groups.of(known.rows), np.random.default_rng(4))
    np.testing.assert_allclose(same, known.rows, rtol=1e-6, atol=1e-6)


def test_batches_do_not_change_a_draw(known, maker):
    rows, goals = known.rows[:700], other(maker, known.rows[:700])
    whole = maker.make(rows, goals, np.random.default_rng(5))
    again = maker.make(rows, goals, np.random.default_rng(5))
    assert (whole == again).all()


def test_kept_columns_stay_as_they_are(known):
    keep = ("hours", "household")
    maker = learn(known.rows, known.schema, np.random.default_rng(1), keep=keep)
    twins = maker.make(known.rows, other(maker, known.rows), np.random.default_rng(2))
    for name in keep:
        position = known.schema.position(name)
        assert (twins[:, position] == known.rows[:, position]).all()
    savings = known.schema.position("savings")
    assert (twins[:, savings] != known.rows[:, savings]).mean() > 0.5
    assert maker.generator.order[:3] == ("sex", *keep)


def test_a_column_whose_tree_knows_no_group_is_bent_until_the_groups_agree(known):
    """Of so few people a tree keeps one leaf for all: their ranks are bent instead."""
    rng = np.random.default_rng(6)
    maker = learn(known.rows[rng.permutation(len(known.rows))[:200]], known.schema, rng)
    savings = known.schema.position("savings")
    assert savings in maker.bends
    women, men = (np.log(known.rows[known.rows[:, 0] == sex, savings]) for sex in (0, 1))
    people = known.rows[known.rows[:, 0] == 0]
    twins = np.log(maker.make(people, np.ones(len(people), dtype=int), rng)[:, savings])
    assert 0.5 < (twins.mean() - women.mean()) / (men.mean() - women.mean()) < 1.6


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        (("sex",), "'sex' is protected and cannot be kept"),
        (("hour",), "'hour'.*'hours'"),
        (("hours", "hours"), "include one twice"),
    ],
)
def test_what_cannot_be_kept_is_said_in_one_sentence(known, keep, said):
    with pytest.raises(InvalidInput, match=said):
        learn(known.rows, known.schema, np.random.default_rng(0), keep=keep)


def test_a_generator_without_encoder_or_order_is_refused(known):
    with pytest.raises(InvalidInput, match=r"'ctgan' cannot make twins.*trees"):
        learn(known.rows, known.schema, np.random.default_rng(0), generator="ctgan")


def ruled(known, **rules):
    return dataclasses.replace(known.schema, rules=Rules(**rules))


def test_twins_keep_the_constraints_that_their_rows_keep(known):
    schema = ruled(known, constraints=(("time", "hours + 2 * schooling <= 60"),))
    rows = known.rows.copy()
    hours, schooling = (schema.position(name) for name in ("hours", "schooling"))
    rows[:, hours] = np.minimum(rows[:, hours], 60 - 2 * rows[:, schooling])
    rows[:5, hours] = 70  # a few people break it themselves

    def broken(people):
        return np.flatnonzero(people[:, hours] + 2 * people[:, schooling] > 60)

    maker = learn(rows, schema, np.random.default_rng(1))
    goals = other(maker, rows)
    unruled = dataclasses.replace(maker, schema=known.schema)
    unbound = unruled.make(rows, goals, np.random.default_rng(2))
    assert set(broken(unbound)) - set(range(5))
    twins = maker.make(rows, goals, np.random.default_rng(2))
    assert set(broken(twins)) <= set(range(5))
    assert maker.found(twins, goals).mean() > 0.9


def test_where_no_draw_keeps_the_constraints_there_is_no_twin(known):
    schema = ruled(known, constraints=(("never", 'sex == "Male" implies age >= 100'),))
    maker = learn(known.rows, schema, np.random.default_rng(1))
    women = known.rows[known.rows[:, 0] == 0][:50]
    goals = np.ones(50, dtype=int)
    twins = maker.make(women, goals, np.random.default_rng(2))
    assert not maker.found(twins, goals).any()
    assert (twins == women).all()


def test_derived_columns_follow_and_keeping_one_keeps_what_it_is_derived_from(known):
    part = Column(name="part", kind="categorical", levels=("less", "full"))
    schema = Schema((*known.schema.columns, part)).protect(["sex"])
    derived = Derived(column="part", sources=("hours",), steps=(35,), values=("less", "full"))
    schema = dataclasses.replace(schema, rules=Rules(derived=(derived,)))
    hours = schema.position("hours")
    rows = np.column_stack([known.rows, known.rows[:, hours] >= 35])
    maker = learn(rows, schema, np.random.default_rng(1))
    twins = maker.make(rows, other(maker, rows), np.random.default_rng(2))
    assert (twins[:, -1] == (twins[:, hours] >= 35)).all()
    assert (twins[:, -1] != rows[:, -1]).any()
    kept = learn(rows, schema, np.random.default_rng(1), keep=("part",))
    assert kept.keep == ("part", "hours")


def test_a_kept_column_with_a_role_keeps_the_thing_that_it_says(known):
    """Who lives alone is called single as a woman and bachelor as a man."""
    column = Column(name="called", kind="categorical", levels=("single", "bachelor", "other"))
    schema = Schema((*known.schema.columns, column)).protect(["sex"])
    role = Role(
        protected="sex", column="called", things=((("Female", "single"), ("Male", "bachelor")),)
    )
    schema = dataclasses.replace(schema, rules=Rules(roles=(role,)))
    alone = known.rows[:, schema.position("household")] == 0
    called = np.where(alone, known.rows[:, 0], 2)
    rows = np.column_stack([known.rows, called])
    maker = learn(rows, schema, np.random.default_rng(1), keep=("called",))
    twins = maker.make(rows, other(maker, rows), np.random.default_rng(2))
    assert (twins[:, -1] == np.where(alone, 1 - known.rows[:, 0], 2)).all()

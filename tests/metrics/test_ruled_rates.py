"""Rates of a table with rules: two questions of the same people."""

import numpy as np
import pytest

from limi.metrics._populations import draw_uniform
from limi.metrics.rates import measurable_rows, measure
from limi.search.session import Session
from limi.search.task import Task
from limi.table.rows import uniform
from limi.table.rules import Rules
from limi.table.schema import Column, Schema
from tests.naive.check import verdict as plain_verdict
from tests.naive.rules import verdict
from tests.search.test_rules import CONSTRAINTS, keeps, model, ruled

# Of women who are doctors no partner could exist.
SCHEMA = ruled(["sex"], (*CONSTRAINTS, ("doctors", 'title == "Dr" implies sex == "Female"')))
KEEPS = [*keeps(), lambda row: row[6] != 2 or row[0] == 0]
SCORE = model(SCHEMA, 11)


def people(n=150, seed=3):
    return SCHEMA.enforcer.complete(uniform(SCHEMA, n, np.random.default_rng(seed)))


@pytest.fixture(scope="module")
def measured():
    return measure(Session(Task(SCHEMA, SCORE, people())), ["real", "uniform"], 0, rows=150)


def test_rates_are_those_of_the_definition_with_and_without_what_goes_along(measured):
    told = [verdict(SCORE, SCHEMA, row, KEEPS) for row in people()]
    paired = [flips for flips, _, partner in told if partner is not None]
    assert measured.rates["real"].n == len(paired) < 150
    assert measured.rates["real"].estimate == pytest.approx(np.mean(paired))
    plain = [plain_verdict(SCORE, SCHEMA, row, "first")[0] for row in people()]
    under = measured.under_rules
    assert under.only_protected.rates["real"].n == 150
    assert under.only_protected.rates["real"].estimate == pytest.approx(np.mean(plain))
    assert under.only_protected.rates["real"] != measured.rates["real"]


def test_how_people_stand_to_the_rules_is_counted(measured):
    under = measured.under_rules
    assert under.breaking["real"] == SCHEMA.enforcer.breaks(people()).sum() > 0
    assert under.alone["real"] == 150 - measured.rates["real"].n
    assert under.breaking["uniform"] == 0
    rows = measured.checked["uniform"].rows
    assert not SCHEMA.enforcer.breaks(rows).any()
    assert not SCHEMA.enforcer.disagrees(rows).any()
    assert 0.1 < under.kept["uniform"] < 0.9
    np.testing.assert_array_equal(rows, under.only_protected.checked["uniform"].rows)


def test_both_questions_are_paid_for(measured):
    parts = measured.checked | {}
    plain = measured.under_rules.only_protected.checked
    asked = sum(checked.queries for checked in [*parts.values(), *plain.values()])
    assert measured.queries == asked
    assert measurable_rows(SCHEMA, 1) == measurable_rows(SCHEMA.unruled, 1) // 2


def test_uniform_rows_that_hardly_ever_keep_the_rules_have_no_rate():
    schema = ruled(["sex"], (("rare", 'age == 20 and title == "Dr" and school == "none"'),))
    rows, kept = draw_uniform(schema, 100, np.random.default_rng(0))
    assert len(rows) > 0  # about one in eighty
    strict = ruled(
        ["sex"],
        (("rare", 'age == 20 and title == "Dr" and school == "none" and tie == "Child"'),),
    )
    rows, kept = draw_uniform(strict, 100, np.random.default_rng(0))
    assert not len(rows)
    assert 0 < kept < 0.01
    found = measure(Session(Task(strict, SCORE, people())), ["uniform"], 0, rows=50)
    assert "uniform" not in found.rates
    assert found.under_rules.unmeasured["uniform"].startswith(
        "fewer than 1 % of them keep the rules"
    )


def test_first_uniform_rows_are_the_same_however_many_are_wanted():
    more, _ = draw_uniform(SCHEMA, 900, np.random.default_rng(7))
    few, _ = draw_uniform(SCHEMA, 90, np.random.default_rng(7))
    np.testing.assert_array_equal(more[:90], few)


def test_without_rules_nothing_is_asked_twice():
    plain = SCHEMA.unruled
    found = measure(Session(Task(plain, SCORE, people())), ["real"], 0, rows=150)
    assert found.under_rules is None
    assert found.queries == found.checked["real"].queries


# -- what binds no partner, and columns alone -------------------------------------------------

HUSBANDS = ("husbands", 'tie == "Husband" implies sex == "Male"')


def sex_and_job(*constraints):
    columns = (
        Column(name="sex", kind="categorical", levels=("Female", "Male")),
        Column(name="age", kind="numerical", low=20, high=60, step=20),
        Column(name="tie", kind="categorical", levels=("None", "Husband")),
        Column(name="hours", kind="numerical", low=0, high=9, step=1),
    )
    return Schema(columns, rules=Rules(constraints)).protect(["sex", "age"])


def test_rules_that_bind_no_partner_make_no_second_question():
    schema = sex_and_job(("hours", "hours <= 8"))
    rows = uniform(schema, 60, np.random.default_rng(0))
    asked = measure(Session(Task(schema, lambda r: (r[:, 3] > 4) * 1.0, rows)), ["real"], 0)
    assert asked.under_rules.only_protected.rates == {}
    assert (
        asked.queries
        == measure(
            Session(Task(schema.unruled, lambda r: (r[:, 3] > 4) * 1.0, rows)), ["real"], 0
        ).queries
    )


def test_a_column_alone_is_measured_on_people_who_have_a_partner_by_it():
    schema = sex_and_job(HUSBANDS)
    rows = uniform(schema, 90, np.random.default_rng(1))
    rows = rows[~schema.enforcer.breaks(rows)]
    asked = measure(
        Session(Task(schema, lambda r: (r[:, 0] + r[:, 3] > 5) * 1.0, rows)), ["real"], 0
    )
    husbands = rows[:, 2] == 1
    assert 0 < husbands.sum() < len(rows)
    assert asked.alone["sex"]["real"].n == (~husbands).sum()
    assert asked.alone["sex"]["real"].estimate == pytest.approx((rows[~husbands, 3] == 5).mean())
    assert asked.alone["age"]["real"].n == len(rows)

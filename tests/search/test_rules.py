"""The oracle under rules: held to the definition row by row, on every path."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limi.search.budget import Budget
from limi.search.check import ALONE, REFUSED, check_rows, query_cost
from limi.search.engine import run
from limi.search.findings import Findings
from limi.search.frugal_check import FlipStatistics, check_frugally
from limi.search.session import Session
from limi.search.task import Task
from limi.table.partners import distinct_questions
from limi.table.rows import keys, uniform
from limi.table.rules import Rules
from limi.table.schema import Schema
from tests.naive.rules import complete, verdict
from tests.table.ruled import COLUMNS, RULES
from tests.toy import Linear

CONSTRAINTS = (
    ("wife", 'tie == "Wife" implies sex == "Female"'),
    ("husband", 'tie == "Husband" implies sex == "Male"'),
    ("other", 'sex == "Other" implies age >= 30'),
    ("young", 'title == "Dr" implies ages != "young"'),
    ("school", 'school == "college" implies age > 20'),
)


def keeps():
    """The same by hand, those over the same columns as one; columns: sex, tie, age, ages, school,
    grade, title."""
    return [
        lambda row: (row[1] != 0 or row[0] == 0) and (row[1] != 2 or row[0] == 1),
        lambda row: row[0] != 2 or row[2] >= 30,
        lambda row: row[6] != 2 or row[3] != 0,
        lambda row: row[4] != 2 or row[2] > 20,
    ]


def ruled(protected, constraints=CONSTRAINTS, **more):
    rules = dataclasses.replace(RULES, constraints=constraints, **more)
    return Schema(COLUMNS, rules=rules).protect(protected)


SCHEMAS = [
    ruled(["sex=Female,Male"]),
    ruled(["sex"]),
    ruled(["age"]),
    ruled(["age=20,30,60", "sex=Male,Other"]),
    ruled(["sex"], roles=()),
]


def model(schema, seed):
    rng = np.random.default_rng(seed)
    scale = np.maximum(schema.high - schema.low, 1)
    weights = rng.normal(0, 2.0, len(schema)) / scale
    bias = -(weights @ ((schema.low + schema.high) / 2)) + 0.0123456789
    plain = Linear(tuple(weights), float(bias))
    return lambda rows: plain.unchecked(np.nan_to_num(rows, nan=1.7))


def rows_of(schema, n, seed):
    rows = uniform(schema, n, np.random.default_rng(seed))
    return schema.enforcer.complete(rows)


def expect(schema, score, rows, rule="widest"):
    return [verdict(score, schema, row, keeps(), rule) for row in rows]


@settings(deadline=None, max_examples=8)
@given(
    which=st.integers(0, len(SCHEMAS) - 1), seed=st.integers(0, 10_000), batch=st.integers(1, 99)
)
def test_verdicts_are_those_of_the_definition(which, seed, batch):
    schema, rows = SCHEMAS[which], rows_of(SCHEMAS[which], 25, seed)
    score = model(schema, seed)
    for rule in ("widest", "first"):
        checked = check_rows(score, schema, rows, max_batch=batch, partner=rule)
        for place, (flips, own, partner) in enumerate(expect(schema, score, rows, rule)):
            assert checked.flips[place] == flips
            assert checked.score[place] == pytest.approx(own, abs=1e-12)
            assert checked.is_paired[place] == (partner is not None)
            partner = rows[place] if partner is None else partner
            np.testing.assert_array_equal(checked.partner[place], partner)
            assert checked.partner_score[place] == pytest.approx(score(partner[None])[0], abs=1e-12)
    cost = query_cost(schema, rows, distinct_questions(schema, rows))
    assert cost.sum() == checked.queries


@settings(deadline=None, max_examples=8)
@given(
    which=st.integers(0, len(SCHEMAS) - 1), seed=st.integers(0, 10_000), batch=st.integers(1, 99)
)
def test_asking_frugally_finds_the_same_flips_and_partners_that_could_exist(which, seed, batch):
    schema, rows = SCHEMAS[which], rows_of(SCHEMAS[which], 25, seed)
    score = model(schema, seed)
    known = distinct_questions(schema, rows)
    frugal = check_frugally(
        score,
        schema,
        rows,
        known=known,
        statistics=FlipStatistics(len(schema.combinations)),
        max_batch=batch,
    )
    whole = check_rows(score, schema, rows, known=known)
    np.testing.assert_array_equal(frugal.flips, whole.flips)
    np.testing.assert_array_equal(frugal.is_paired, whole.is_paired)
    np.testing.assert_allclose(frugal.score, whole.score, atol=1e-12)
    assert frugal.queries <= whole.queries
    for row, partner in zip(rows, frugal.partner, strict=True):
        assert not any(keep(row) and not keep(partner) for keep in keeps())
        np.testing.assert_array_equal(partner, complete(schema, partner))
    np.testing.assert_allclose(frugal.partner_score, score(frugal.partner), atol=1e-12)


@settings(deadline=None, max_examples=8)
@given(which=st.integers(0, len(SCHEMAS) - 1), seed=st.integers(0, 10_000))
def test_a_flip_of_rows_that_keep_the_rules_is_a_property_of_the_key(which, seed):
    schema, rows = SCHEMAS[which], rows_of(SCHEMAS[which], 60, seed)
    # A row may hold a value that is none of those tried, which is its own affair.
    rows = rows[~schema.enforcer.breaks(rows) & (schema.combination_of(rows) >= 0)]
    partners = schema.enforcer.expand(rows, schema.combinations).reshape(-1, len(schema))
    partners = partners[~schema.enforcer.breaks(partners)]
    score = model(schema, seed)
    flips = {}
    checked = check_rows(score, schema, np.concatenate([rows, partners]))
    for key, flip in zip(map(tuple, keys(schema, checked.rows)), checked.flips, strict=True):
        assert flips.setdefault(key, flip) == flip


def test_rows_that_break_different_rules_are_asked_apart():
    schema = ruled(["sex"])
    wife = [0.0, 0.0, 40.0, 1.0, 1.0, 9.0, 0.0]
    male_wife = [1.0, 0.0, 40.0, 1.0, 1.0, 9.0, 0.0]
    rows = np.array([wife, male_wife, [1.0, 2.0, 40.0, 1.0, 1.0, 9.0, 1.0]])
    known = distinct_questions(schema, rows)
    # The second breaks a rule; the first and the third are partners.
    assert known.of.tolist() == [0, 1, 0]
    checked = check_rows(model(schema, 3), schema, rows)
    assert checked.partner[0].tolist() in ([1.0, 2.0, *wife[2:6], 1.0], [2.0, *wife[1:]])
    assert checked.closed > 0


def test_people_whom_the_rules_did_not_think_of_keep_their_partners():
    schema = ruled(["sex=Female,Male"])
    female_husband = [0.0, 2.0, 40.0, 1.0, 1.0, 9.0, 0.0]
    checked = check_rows(model(schema, 3), schema, np.array([female_husband]))
    assert checked.is_paired.all()
    assert checked.partner[0].tolist() == [1.0, 0.0, 40.0, 1.0, 1.0, 9.0, 1.0]  # a male wife


class Proposes:
    """A method that proposes rows as they are given."""

    needs = frozenset()
    population = None

    def __init__(self, *batches):
        self.batches = batches

    def search(self, session, rng):
        for rows in self.batches:
            yield session.check(rows, origin="proposed")


@pytest.mark.parametrize("frugal", [False, True])
def test_rows_that_break_a_rule_cost_nothing_and_come_back_as_steady(frugal):
    schema = ruled(["sex"])
    rows = uniform(schema, 400, np.random.default_rng(1))  # derived cells are any
    score = model(schema, 5)
    asked = []

    def seen(rows):
        asked.append(rows)
        return score(rows)

    task = Task(schema, seen, rows)
    session = Session(task, frugal=frugal)
    session.keep_scores = True
    checked = session.check(rows)
    whole = schema.enforcer.complete(rows)
    broken = schema.enforcer.breaks(whole)
    assert 0.2 < broken.mean() < 0.9
    assert (session.proposed, session.refused) == (400, broken.sum())
    np.testing.assert_array_equal(checked.rows, whole)
    np.testing.assert_array_equal(checked.standing == REFUSED, broken)
    assert not checked.flips[broken].any()
    assert (checked.score[broken] == 0).all()
    np.testing.assert_array_equal(checked.is_asked, ~broken)
    np.testing.assert_array_equal(checked.partner[broken], whole[broken])
    assert np.isnan(checked.scores[broken]).all()
    alone = check_rows(score, schema, whole[~broken])
    np.testing.assert_array_equal(checked.flips[~broken], alone.flips)
    everything = np.concatenate(asked)
    assert len(everything) == checked.queries
    assert not schema.enforcer.breaks(everything).any()
    assert not schema.enforcer.disagrees(everything).any()
    ledger = Findings(schema)
    ledger.add(checked)
    assert ledger.rows_checked == (~broken).sum()
    assert ledger.alone == (checked.standing == ALONE).sum()


def test_a_budget_ends_at_the_same_row_with_refused_ones_between():
    schema = ruled(["sex"])
    rows = rows_of(schema, 300, 2)
    kept = np.flatnonzero(~schema.enforcer.breaks(rows))
    session = Session(Task(schema, model(schema, 5), rows), Budget(max_rows=50))
    checked = session.check(rows)
    assert len(checked) == kept[50]
    assert session.rows_left == 0
    costly = Session(Task(schema, model(schema, 5), rows), Budget(max_queries=60))
    some = costly.check(rows)
    assert some.queries <= 60
    assert 60 - some.queries < len(schema.combinations)


def test_a_method_that_proposes_hardly_anything_possible_is_ended():
    schema = ruled(["sex"])
    broken = rows_of(schema, 2000, 2)
    broken = broken[schema.enforcer.breaks(broken)][:500]
    method = Proposes(*[broken] * 1000)
    ran = run(method, Task(schema, model(schema, 5), broken), Budget(), 0)
    assert ran.findings.rows_checked == 0
    assert ran.stop == "rules"
    assert ran.session.proposed == 100_500
    assert ran.session.notes == [
        "the search ended early: of 100,500 rows that it proposed 0 keep the rules of the table"
    ]


def test_rows_of_the_table_are_asked_even_if_they_break_a_rule():
    schema = ruled(["sex"])
    rows = rows_of(schema, 100, 4)
    session = Session(Task(schema, model(schema, 5), rows))
    checked = session.check(rows, are_real=True)
    assert not (checked.standing == REFUSED).any()
    assert session.refused == 0


def test_without_rules_a_schema_is_asked_as_ever():
    schema = Schema(COLUMNS, rules=Rules()).protect(["sex"])
    rows = uniform(schema, 50, np.random.default_rng(0))
    checked = check_rows(model(schema, 1), schema, rows)
    assert not len(checked.standing)
    assert checked.closed == 0
    np.testing.assert_array_equal(checked.partner[:, 1:], rows[:, 1:])

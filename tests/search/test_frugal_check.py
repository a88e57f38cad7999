"""The frugal oracle: the same verdicts as the full one, for fewer queries."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limi.methods.natural import Natural
from limi.methods.real import Real
from limi.search.budget import Budget
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.frugal_check import FlipStatistics, check_frugally
from limi.search.tried import most_queries
from limi.system.watch import OutOfTime
from limi.table.rows import distinct, uniform
from tests.naive import frugal_check as naive
from tests.naive.check import key
from tests.toy import MIXED, Linear, Rounding, schema_of, task

AGES = schema_of((0, 60), (0, 60), (1, 9), protected=["x2"])
AGE_MODEL = Linear((0.125, -0.0625, 0.25), -2.03125)


def frugally(score, schema, rows, max_batch=1000):
    known = distinct(schema, rows)
    statistics = FlipStatistics(len(schema.combinations))
    return check_frugally(
        score, schema, rows, known=known, statistics=statistics, max_batch=max_batch
    )


@pytest.mark.kernels
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(0, 60),
    protected=st.sampled_from(
        [["sex"], ["sex", "rank"], ["age=20-60:10"], ["job=a,c", "vet"], ["age=20-60:10", "sex"]]
    ),
)
def test_verdicts_are_those_of_the_full_oracle(seed, n, protected):
    rng = np.random.default_rng(seed)
    schema = MIXED.protect(protected)
    weights = rng.normal(size=7) / np.array([40, 1, 1, 1, 1, 3, 1])

    def score(rows):
        # Row by row, so that a score is the same number in any batch.
        margins = [float(np.nan_to_num(row, nan=-1.0) @ weights) for row in rows]
        return 1 / (1 + np.exp(-np.array(margins, dtype=float)))

    rows = uniform(schema, n, rng)
    rows = np.concatenate([rows, rows[: n // 3]])
    full, frugal = check_rows(score, schema, rows), frugally(score, schema, rows)
    np.testing.assert_array_equal(frugal.flips, full.flips)
    np.testing.assert_array_equal(frugal.score, full.score)
    assert frugal.queries <= full.queries
    np.testing.assert_array_equal(score(frugal.partner), frugal.partner_score)
    sides = (frugal.score > 0.5) != (frugal.partner_score > 0.5)
    np.testing.assert_array_equal(sides, frugal.flips)
    steady = ~full.flips
    np.testing.assert_array_equal(frugal.partner[steady], full.partner[steady])
    free = schema.free_index
    np.testing.assert_array_equal(frugal.partner[:, free], rows[:, free])
    own = rows[:, schema.protected_index]
    assert (frugal.partner[:, schema.protected_index] != own).any(axis=1).all()


def test_a_flip_costs_two_queries_once_its_side_is_known():
    follows = Linear((0.0, 0.0, 1.0), -5.5)
    rows = uniform(AGES, 400, np.random.default_rng(0))
    known = distinct(AGES, rows)
    rows = rows[known.first]
    statistics = FlipStatistics(9)
    for part, most in ((rows[:100], 3), (rows[100:], 2)):
        here = distinct(AGES, part)
        checked = check_frugally(
            follows, AGES, part, known=here, statistics=statistics, max_batch=1000
        )
        assert checked.flips.all()
        assert checked.queries <= most * len(part)


def test_the_order_is_learned_for_either_decision():
    statistics = FlipStatistics(5)
    assert statistics.order().tolist() == [[0, 4, 1, 3, 2]] * 2
    every = np.arange(5)
    for flipping in (2, 3):
        statistics.learn(flipping - 2, np.repeat(every, 100), np.repeat(every == flipping, 100))
    assert statistics.order()[:, 0].tolist() == [2, 3]


def test_what_was_not_asked_yet_is_tried_early():
    statistics = FlipStatistics(5)
    statistics.learn(1, np.repeat([0, 4], 10), np.repeat([False, True], 10))
    assert statistics.order()[1].tolist() == [4, 1, 3, 2, 0]


def test_rows_of_one_key_with_values_of_their_own_are_told_apart():
    """Also where a value is none of the combinations: an age outside those compared."""
    schema = MIXED.protect(["age=20-60:10"])
    rows = np.repeat(uniform(schema, 50, np.random.default_rng(1)), 4, axis=0)
    rows[:, 0] = np.tile([20.0, 33.0, 60.0, 25.0], 50)

    def score(asked):
        return (asked[:, 0] > 40).astype(float) * 0.8 + 0.1

    full, frugal = check_rows(score, schema, rows), frugally(score, schema, rows)
    np.testing.assert_array_equal(frugal.flips, full.flips)
    np.testing.assert_array_equal(frugal.score, full.score)
    assert frugal.queries < full.queries


@pytest.mark.parametrize("max_queries", [500, 5_000])
def test_a_query_budget_is_kept_whatever_the_batch(max_queries):
    found = []
    for max_batch in (50, 10_000):
        here = task(AGES, AGE_MODEL, uniform(AGES, 3_000, np.random.default_rng(0)))
        here = replace(here, max_batch=max_batch)
        ran = run(Real(), here, Budget(max_queries=max_queries), 3)
        assert ran.session.frugal
        assert max_queries - 9 <= ran.queries <= max_queries
        found.append(ran.findings.all())
    np.testing.assert_array_equal(found[0].rows, found[1].rows)
    np.testing.assert_array_equal(found[0].partner, found[1].partner)


@pytest.mark.parametrize("max_queries", [130, 1_000, 2_600, 100_000])
@pytest.mark.parametrize("protected", ["x2", "x2=2-8:3"])
def test_it_asks_what_the_plain_loop_asks(max_queries, protected):
    """Rows of one key under several own values, some of them none of those compared."""
    schema = schema_of((0, 60), (0, 60), (1, 9), protected=[protected])
    rng = np.random.default_rng(max_queries)
    rows = uniform(schema, 150, rng)
    rows = np.concatenate([rows, rows[::2], rows[::3]])[rng.permutation(275)]
    rows[:, 2] = rng.integers(1, 10, len(rows))
    seen = []

    def score(asked):
        seen.extend(asked)
        return AGE_MODEL(asked)

    known = distinct(schema, rows)
    statistics = FlipStatistics(len(schema.combinations))
    checked = check_frugally(
        score,
        schema,
        rows,
        known=known,
        statistics=statistics,
        max_batch=50,
        max_queries=max_queries,
    )
    width = int(np.clip(max_queries / (8 * len(schema.combinations)), 64, 4096))
    questions, n = naive.asked(AGE_MODEL, schema, rows, max_queries, width)
    assert sorted((key(schema, row), (row[2],)) for row in seen) == sorted(questions)
    assert len(checked) == n
    assert checked.queries == len(questions) <= max_queries
    np.testing.assert_array_equal(checked.flips, check_rows(AGE_MODEL, schema, rows[:n]).flips)


@pytest.mark.parametrize("method", [Real(), Natural()])
def test_a_budget_of_queries_is_asked_in_large_batches(method):
    """Small calls only where the rows of a check run out, and where the budget does."""
    schema = schema_of((0, 60), (0, 60), (1, 60), protected=["x2"])
    calls = []

    def score(rows):
        calls.append(len(rows))
        return Linear((0.125, -0.0625, 0.03125), -3.046875)(rows)

    rows = uniform(schema, 3_000, np.random.default_rng(0))
    here = task(schema, AGE_MODEL, rows, generator=Rounding(schema))
    here = replace(here, score=score)
    ran = run(method, here, Budget(max_queries=20_000), 3)
    assert sum(calls) == ran.queries > 19_900
    assert sum(n for n in calls if n >= 64) > 0.8 * ran.queries
    assert len(calls) < 20_000 / 50


def test_it_finds_more_with_the_same_queries():
    rows = uniform(AGES, 3_000, np.random.default_rng(0))
    ran = run(Real(), task(AGES, AGE_MODEL, rows), Budget(max_queries=9_000), 3)
    full = run(Real(), task(AGES, AGE_MODEL, rows), Budget(max_rows=1_000), 3)
    assert full.queries <= 9_000
    assert len(ran.findings) > 1.1 * len(full.findings)


def test_mixtures_are_paid_for_before_a_row_is_begun():
    """Rows of ages between those tried, of which few flip, so that most are asked for all."""
    schema = MIXED.protect(["age=20-60:10", "sex"])
    rows = uniform(schema, 2_000, np.random.default_rng(0))
    assert (schema.combination_of(rows) < 0).mean() > 0.8

    def score(asked):
        return ((asked[:, 0] == 33) & (asked[:, 1] == 0)).astype(float)

    full = check_rows(score, schema, rows)
    assert full.flips.any()
    for max_queries in (300, 5_000):
        asked = []

        def counted(batch, asked=asked):
            asked.append(len(batch))
            return score(batch)

        here = task(schema, rows=rows)
        here = replace(here, score=counted)
        ran = run(Real(), here, Budget(max_queries=max_queries), 3)
        assert sum(asked) == ran.queries
        assert max_queries - most_queries(schema) <= ran.queries <= max_queries
    asked = []
    frugal = frugally(counted, schema, rows)
    np.testing.assert_array_equal(frugal.flips, full.flips)
    np.testing.assert_array_equal(score(frugal.partner), frugal.partner_score)


STRAYS = schema_of((0, 60), (0, 9), (0, 9), protected=["x1=2,5,8", "x2=0,4"])


def strays(n, seed=0):
    """Rows that stray in one protected column, in the other, in both and in none."""
    rows = uniform(STRAYS, n, np.random.default_rng(seed))
    assert len({tuple(row) for row in np.isin(rows[:, 1:], [0, 2, 4, 5, 8])}) == 4
    return rows


def gentle(rows):
    """Favors everyone, some more than others."""
    return 0.6 + 0.004 * rows[:, 1] + 0.02 * (rows[:, 2] - 4) ** 2 / 100 + 0.001 * rows[:, 0]


def settled(rows):
    """Favors everyone alike."""
    return np.full(len(rows), 0.9)


@pytest.mark.parametrize("score", [gentle, settled])
def test_where_nobody_flips_everything_is_as_in_the_full_oracle(score):
    """Also who stands as the partner: the widest gap, of equals the first, and never oneself."""
    rows = strays(200)
    full, frugal = check_rows(score, STRAYS, rows), frugally(score, STRAYS, rows)
    assert not full.flips.any()
    np.testing.assert_array_equal(frugal.flips, full.flips)
    np.testing.assert_array_equal(frugal.partner, full.partner)
    np.testing.assert_array_equal(frugal.partner_score, full.partner_score)
    assert (frugal.partner[:, 1:] != rows[:, 1:]).any(axis=1).all()
    assert frugal.queries == full.queries


def test_a_row_on_the_edge_has_a_partner_that_was_asked():
    """Its key is settled by another row, before all values were asked."""
    rows = np.array([[7.0, 7.0, 1.0], [7.0, 7.0, 4.0]])

    def score(asked):
        return np.select([asked[:, 2] < 4, asked[:, 2] == 4], [0.9, 0.5], 0.1)

    checked = frugally(score, AGES, rows)
    assert checked.flips.tolist() == [True, False]
    assert checked.queries == 3
    assert checked.partner[:, 2].tolist() == [9.0, 1.0]
    assert checked.partner_score.tolist() == [0.1, 0.9]


def test_of_several_values_that_flip_a_row_the_one_with_the_widest_gap_is_its_partner():
    """The first row of the key asks for the youngest, the others' own values are asked as well."""
    rows = np.array([[3.0, 3.0, 1.0], [3.0, 3.0, 5.0], [3.0, 3.0, 9.0], [3.0, 3.0, 7.0]])

    def score(asked):
        return np.select([asked[:, 2] == a for a in (1, 5, 7, 9)], [0.9, 0.3, 0.1, 0.2], 0.8)

    checked = frugally(score, AGES, rows)
    assert checked.flips.all()
    assert checked.partner[:, 2].tolist() == [7.0, 1.0, 1.0, 1.0]
    np.testing.assert_allclose(checked.partner_score, [0.1, 0.9, 0.9, 0.9])
    assert checked.queries == 4


def test_rows_are_asked_under_their_own_values_whoever_else_is_settled_at_once():
    """Many keys that are settled in one step, with own values of all kinds."""
    schema = schema_of((0, 62), (0, 9), protected=["x1"])
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(63.0), 3)[:, None] * [1.0, 0.0]
    rows[:, 1] = np.where(np.arange(189) % 3 == 0, 0, rng.integers(0, 10, 189))
    asked = []

    def score(batch):
        asked.extend(map(tuple, batch.tolist()))
        return np.where(batch[:, 1] > 4, 0.9, 0.1) - 0.001 * batch[:, 1]

    checked = frugally(score, schema, rows)
    np.testing.assert_array_equal(checked.score, score(rows))
    assert checked.flips.all()
    # Each person under each own value once, and under the one that showed the flip.
    told = asked[: checked.queries]
    assert (
        len(told)
        == len(set(told))
        == len({(x, v) for x in range(63) for v in (0, 9)} | set(map(tuple, rows.tolist())))
    )


@pytest.mark.parametrize("keep", [True, False])
def test_scores_are_brought_along_where_they_are_wished_for(keep):
    rows = uniform(AGES, 50, np.random.default_rng(0))
    known, statistics = distinct(AGES, rows), FlipStatistics(9)
    checked = check_frugally(
        AGE_MODEL, AGES, rows, known=known, statistics=statistics, max_batch=100, keep_scores=keep
    )
    assert len(checked.scores) == (50 if keep else 0)
    if keep:
        full = check_rows(AGE_MODEL, AGES, rows, keep_scores=True).scores
        was_asked = ~np.isnan(checked.scores)
        np.testing.assert_array_equal(checked.scores[was_asked], full[was_asked])
        assert was_asked.sum(axis=1).min() >= 2
        np.testing.assert_array_equal(frugally(AGE_MODEL, AGES, rows).scores, checked.scores)


def by_age(rows):
    return np.where(rows[:, 0] + rows[:, 1] > 25, 0.9, 0.1) + 0.001 * rows[:, 2]


def by_mixture(rows):
    """Against people of an age that is none of those tried, under one of the tried values."""
    return np.where((rows[:, 1] == 3) & (rows[:, 2] == 4), 0.1, 0.9)


@pytest.mark.parametrize("model", [by_age, by_mixture])
def test_where_time_runs_out_the_rows_before_the_first_open_one_come_back(model):
    rows = strays(60)
    rows[5::6, 1] = 3.0
    rows = np.concatenate([rows, rows[::2]])
    full = check_rows(model, STRAYS, rows)
    assert full.flips.any()
    lengths = set()
    for calls in range(40):
        asked = []

        def score(batch, asked=asked, calls=calls):
            if len(asked) == calls:
                raise OutOfTime
            asked.append(len(batch))
            return model(batch)

        checked = frugally(score, STRAYS, rows, max_batch=40)
        n = len(checked)
        np.testing.assert_array_equal(checked.rows, rows[:n])
        np.testing.assert_array_equal(checked.flips, full.flips[:n])
        np.testing.assert_array_equal(checked.score, full.score[:n])
        assert checked.queries <= sum(asked)
        assert n or calls < 20
        lengths.add(n)
    assert min(lengths) == 0
    assert max(lengths) == len(rows) == 90
    assert len(lengths) > 2


def test_the_first_value_that_flips_a_row_is_its_partner_where_the_first_is_wanted():
    """Values are then asked in their order, so that the first that flips is the first of all."""
    rows = uniform(AGES, 200, np.random.default_rng(2))
    _, place = np.unique(rows[:, AGES.free_index], axis=0, return_index=True)
    here = replace(task(AGES, AGE_MODEL, rows[np.sort(place)]), partner="first")
    ran = run(Real(), here, Budget(max_queries=50_000), 0)
    assert ran.session.frugal
    found = ran.findings.all()
    full = check_rows(AGE_MODEL, AGES, found.rows, partner="first")
    np.testing.assert_array_equal(found.partner, full.partner)
    widest = check_rows(AGE_MODEL, AGES, found.rows)
    assert (widest.partner != full.partner).any()

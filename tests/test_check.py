"""check_rows against the definition, written as the plainest loop there is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from limi.check import Checked, cause_names, check_rows, query_cost
from limi.rows import distinct, uniform
from limi.schema import Schema
from tests.naive import check as naive
from tests.toy import FLIPPING, MIXED, MODEL, SCHEMA, Linear, grid, integers, schema_of


def random_model(kind, schema, rng):
    rows = np.nan_to_num(uniform(schema, 300, rng), nan=-1.0)
    labels = (rows @ rng.normal(size=rows.shape[1]) > 0).astype(int)
    labels[:2] = [0, 1]
    fitted = kind.fit(rows, labels)
    return lambda asked: fitted.predict_proba(np.nan_to_num(asked, nan=-1.0))[:, 1]


def by_definition(score, schema, rows, rule):
    verdicts = [naive.verdict(score, schema, row, rule) for row in rows]
    return [v[0] for v in verdicts], [v[1] for v in verdicts], [list(v[2]) for v in verdicts]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(0, 25),
    max_batch=st.integers(1, 60),
    rule=st.sampled_from(["widest", "first"]),
    kind=st.sampled_from(["tree", "forest"]),
    protected=st.sampled_from([["sex"], ["sex", "rank"], ["age=20-60:20"], ["job=a,c", "vet"]]),
)
def test_batched_check_agrees_with_the_definition(seed, n, max_batch, rule, kind, protected):
    rng = np.random.default_rng(seed)
    schema = MIXED.protect(protected)
    estimator = (
        DecisionTreeClassifier(max_depth=6, random_state=0)
        if kind == "tree"
        else RandomForestClassifier(5, random_state=0)
    )
    score = random_model(estimator, schema, rng)
    rows = uniform(schema, n, rng)
    rows = np.concatenate([rows, rows[: n // 2]])
    rows[n:, schema.protected_index] = schema.combinations[-1]

    checked = check_rows(score, schema, rows, partner=rule, max_batch=max_batch)

    flips, own, partner = by_definition(score, schema, rows, rule)
    assert checked.flips.tolist() == flips
    np.testing.assert_allclose(checked.score, own)
    assert checked.partner[:, schema.protected_index].tolist() == partner
    np.testing.assert_array_equal(checked.partner[:, schema.free_index], rows[:, schema.free_index])
    np.testing.assert_allclose(checked.partner_score, [score(p[None])[0] for p in checked.partner])


def test_a_neural_network_gives_the_same_verdicts_in_any_batch():
    rng = np.random.default_rng(5)
    schema = schema_of((0, 9), (0, 9), (-3, 3), (0, 1), (1, 4), protected=["x3", "x4"])
    network = MLPClassifier((8, 8), max_iter=30, random_state=0)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        score = random_model(network, schema, rng)
    rows = uniform(schema, 200, rng)
    flips = by_definition(score, schema, rows, "first")[0]
    assert 0 < sum(flips) < 200
    for max_batch in (1, 8, 33, 10_000):
        assert check_rows(score, schema, rows, max_batch=max_batch).flips.tolist() == flips


def test_the_nine_points_of_the_linear_rule():
    checked = check_rows(MODEL, SCHEMA, grid(SCHEMA))
    assert {tuple(row[:2].astype(int)) for row in checked.rows[checked.flips]} == FLIPPING
    assert checked.flips.sum() == 18
    assert checked.queries == 25 * 2


@pytest.mark.parametrize(
    ("ranges", "protected", "weights", "bias", "count"),
    [
        (((0, 4), (0, 4), (1, 4)), ["x2"], (1, -1, 2), -6, 19),
        (((0, 4), (0, 4), (0, 1), (0, 1)), ["x2", "x3"], (1, -1, 2, -1), -1, 12),
        (((0, 4), (0, 4), (0, 1)), ["x2"], (1, -1, 0), -1, 0),
    ],
)
def test_counts_that_follow_from_the_linear_rule(ranges, protected, weights, bias, count):
    schema = schema_of(*ranges, protected=protected)
    checked = check_rows(Linear(weights, bias), schema, grid(schema))
    flipping = checked.rows[checked.flips]
    assert len(distinct(schema, flipping).first) == count


def test_the_order_of_protected_values_changes_no_verdict():
    rows = grid(SCHEMA)
    turned = Schema(SCHEMA.columns).protect(["x2=1,0"])
    np.testing.assert_array_equal(
        check_rows(MODEL, SCHEMA, rows).flips, check_rows(MODEL, turned, rows).flips
    )


def test_each_distinct_key_is_asked_once_and_queries_are_counted():
    asked = []

    def score(rows):
        asked.append(rows)
        return MODEL(rows)

    rows = np.repeat(grid(SCHEMA), 3, axis=0)
    checked = check_rows(score, SCHEMA, rows, max_batch=10)
    everything = np.concatenate(asked)
    assert len(everything) == checked.queries == 50
    assert len(np.unique(everything, axis=0)) == 50
    assert max(len(batch) for batch in asked) <= 10
    assert query_cost(SCHEMA, rows, distinct(SCHEMA, rows)).sum() == 50


def test_a_value_outside_the_combinations_is_asked_for_itself():
    columns = (integers("x", 0, 3), integers("age", 0, 99))
    schema = Schema(columns).protect(["age=20-60:20"])
    model = Linear((0.0, -1.0), 50.0)  # favorable under 50
    checked = check_rows(model, schema, np.array([[1.0, 75.0], [1.0, 30.0], [2.0, 40.0]]))
    assert checked.flips.tolist() == [True, True, True]
    np.testing.assert_allclose(checked.score > 0.5, [False, True, True])
    assert checked.queries == 2 * 3 + 2


def test_favorable_counts_every_combination_over_all_rows():
    rows = grid(SCHEMA)
    checked = check_rows(MODEL, SCHEMA, rows, max_batch=7)
    expected = []
    for bit in (0, 1):
        twins = rows.copy()
        twins[:, 2] = bit
        expected.append(int((MODEL(twins) > 0.5).sum()))
    assert checked.favorable.tolist() == expected


def test_no_rows_no_questions():
    checked = check_rows(MODEL, SCHEMA, np.empty((0, 3)))
    assert len(checked) == 0
    assert checked.queries == 0


def test_causes_name_the_smallest_sets_of_columns_that_flip():
    schema = schema_of((0, 9), (0, 1), (0, 1), protected=["x1", "x2"])
    # Favorable where x0 + 2 x1 + 3 x2 > 5: what flips a row depends on x0.
    model = Linear((1.0, 2.0, 3.0), -5.0)
    names = cause_names(schema)
    assert names == ["x1", "x2", "x1+x2"]
    rows = grid(schema)
    checked = check_rows(model, schema, rows, max_batch=7)
    for row, causes, flips in zip(rows, checked.causes, checked.flips, strict=True):
        decided = model(row[None])[0] > 0.5
        changed = {}
        for name, places in (("x1", [1]), ("x2", [2]), ("x1+x2", [1, 2])):
            twin = row.copy()
            twin[places] = 1 - twin[places]
            changed[name] = (model(twin[None])[0] > 0.5) != decided
        if changed["x1"] or changed["x2"]:
            changed["x1+x2"] = False
        expected = {name for name, flip in changed.items() if flip}
        assert {n for bit, n in enumerate(names) if causes >> bit & 1} == expected
        assert bool(expected) == flips
    assert len(check_rows(MODEL, SCHEMA, grid(SCHEMA)).causes) == 0


def test_batches_join_whatever_is_empty():
    here = check_rows(MODEL, SCHEMA, grid(SCHEMA), keep_scores=True)
    joined = Checked.join([Checked.nothing(3), here[:20], here[20:], Checked.nothing(3)])
    np.testing.assert_array_equal(joined.rows, here.rows)
    np.testing.assert_array_equal(joined.scores, here.scores)
    assert len(Checked.join([Checked.nothing(3), Checked.nothing(3)])) == 0

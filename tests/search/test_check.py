"""check_rows against the definition, written as the plainest loop there is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from limi.decisions import sides
from limi.search.check import Checked, cause_names, cause_sets, check_rows, query_cost
from limi.search.tried import most_queries
from limi.table.rows import distinct, uniform
from limi.table.schema import Schema
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


@pytest.mark.kernels
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(0, 20),
    max_batch=st.integers(1, 60),
    rule=st.sampled_from(["widest", "first"]),
    kind=st.sampled_from(["tree", "forest"]),
    protected=st.sampled_from(
        [["sex"], ["sex", "rank"], ["age=20-60:20"], ["job=a,c", "vet"], ["age=20-60:20", "sex"]]
    ),
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
    cells = checked.partner[:, schema.protected_index]
    np.testing.assert_array_equal(cells, np.reshape(partner, cells.shape))
    np.testing.assert_array_equal(checked.partner[:, schema.free_index], rows[:, schema.free_index])
    np.testing.assert_allclose(checked.partner_score, [score(p[None])[0] for p in checked.partner])
    if cause_names(schema):
        assert named(schema, checked.causes) == [
            naive.causes(score, schema, row) if flip else []
            for row, flip in zip(rows, flips, strict=True)
        ]


def named(schema, causes):
    """Causes as sets of columns."""
    sets = [columns for columns, _ in cause_sets(schema)]
    return [[s for bit, s in enumerate(sets) if mask >> bit & 1] for mask in causes]


@pytest.mark.kernels
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


@pytest.mark.kernels
def test_the_nine_points_of_the_linear_rule():
    checked = check_rows(MODEL, SCHEMA, grid(SCHEMA))
    assert {tuple(row[:2].astype(int)) for row in checked.rows[checked.flips]} == FLIPPING
    assert checked.flips.sum() == 18
    assert checked.queries == 25 * 2


@pytest.mark.parametrize(
    ("ranges", "protected", "weights", "bias", "count"),
    [
        (((0, 4), (0, 4), (1, 4)), ["x2"], (1, -1, 2), -6.5, 19),
        (((0, 4), (0, 4), (0, 1), (0, 1)), ["x2", "x3"], (1, -1, 2, -1), -1.5, 12),
        (((0, 4), (0, 4), (0, 1)), ["x2"], (1, -1, 0), -1.5, 0),
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
    model = Linear((0.0, -1.0), 49.5)  # favorable under 50
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
    model = Linear((1.0, 2.0, 3.0), -5.5)
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


THREE = MIXED.protect(["age=20-60:10", "sex", "job=a,c"])


def deep(seed, schema):
    tree = DecisionTreeClassifier(max_depth=9, random_state=0)
    random_model(tree, schema, np.random.default_rng(seed))

    def score(asked):  # what predict_proba says, without its checks: it is asked row by row
        cells = np.nan_to_num(asked, nan=-1.0).astype(np.float32)
        return tree.tree_.predict(cells)[:, 1].astype(float)

    rows = uniform(schema, 50, np.random.default_rng(0))
    known = np.nan_to_num(rows, nan=-1.0)
    np.testing.assert_array_equal(score(rows), tree.predict_proba(known)[:, 1])
    return score


def test_causes_are_right_where_own_values_are_not_among_those_tried():
    """Most of these rows hold an age between the steps, and some a job that is not tried."""
    score = deep(3, THREE)
    rows = uniform(THREE, 120, np.random.default_rng(1))
    checked = check_rows(score, THREE, rows, max_batch=100)
    flips, _, partner = by_definition(score, THREE, rows, "widest")
    assert checked.flips.tolist() == flips
    np.testing.assert_array_equal(checked.partner[:, THREE.protected_index], partner)
    expected = [
        naive.causes(score, THREE, row) if flip else []
        for row, flip in zip(rows, flips, strict=True)
    ]
    assert named(THREE, checked.causes) == expected
    stray = THREE.combination_of(rows) < 0
    alone = [any(len(s) == 1 for s in sets) for sets in expected]
    assert np.mean(np.array(alone)[stray & checked.flips]) > 0.5


def test_a_value_between_those_tried_is_left_as_it_is_while_others_change():
    """Only a woman of 37 is refused: no combination of the tried ages would show it."""
    columns = (integers("x", 0, 3), integers("age", 0, 99), integers("sex", 0, 1))
    schema = Schema(columns).protect(["age=20-60:20", "sex"])

    def score(rows):
        return 1.0 - ((rows[:, 1] == 37) & (rows[:, 2] == 0))

    rows = np.array([[0.0, 37.0, 1.0], [1.0, 41.0, 1.0], [2.0, 37.0, 0.0]])
    checked = check_rows(score, schema, rows)
    assert checked.flips.tolist() == [True, False, True]
    assert named(schema, checked.causes) == [[(1,)], [], [(0,), (1,)]]
    assert checked.partner[0].tolist() == [0.0, 37.0, 0.0]
    # Six combinations of a key; of each row the two sexes at its own age.
    assert checked.queries == 3 * 6 + 3 * 2
    assert query_cost(schema, rows, distinct(schema, rows)).tolist() == [8, 8, 8]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(0, 40), max_batch=st.integers(1, 200))
def test_queries_are_those_that_were_told_before(seed, n, max_batch):
    asked = []

    def score(rows):
        asked.append(len(rows))
        return (rows[:, 0] > 40).astype(float)

    rows = uniform(THREE, n, np.random.default_rng(seed))
    rows = np.concatenate([rows, rows[: n // 2]])
    checked = check_rows(score, THREE, rows, max_batch=max_batch)
    cost = query_cost(THREE, rows, distinct(THREE, rows))
    assert checked.queries == sum(asked) == cost.sum()
    assert cost.max(initial=0) <= most_queries(THREE)
    # What is tried of one row is asked at once, however small a batch was asked for.
    assert max(asked, default=0) <= max(max_batch, most_queries(THREE))


def test_each_column_alone_is_asked_with_all_else_as_it_is():
    score = deep(3, THREE)
    rows = uniform(THREE, 200, np.random.default_rng(2))
    checked = check_rows(score, THREE, rows, max_batch=64, as_if=True, keep_scores=True)
    *alone, together = checked.as_if
    np.testing.assert_array_equal(together, sides(checked.scores))
    assert len(alone) == 3
    for column, told in enumerate(alone):
        expected = [naive.as_if(score, THREE, row, column) for row in rows]
        np.testing.assert_array_equal(told, expected)
        assert (told != sides(checked.score)[:, None]).any()
    plain = check_rows(score, THREE, rows)
    assert plain.as_if == ()
    assert plain.queries == checked.queries


def test_bits_tell_the_decision_of_flipping_rows_under_every_combination():
    score = deep(3, THREE)
    rows = uniform(THREE, 100, np.random.default_rng(3))
    checked = check_rows(score, THREE, rows, keep_scores=True)
    told = np.unpackbits(checked.bits, axis=1, count=len(THREE.combinations)).astype(bool)
    flips = checked.flips
    assert 0 < flips.sum() < len(rows)
    np.testing.assert_array_equal(told[flips], checked.scores[flips] > 0.5)
    assert not told[~flips].any()


@pytest.mark.parametrize("values", [2, 8, 9, 10, 16, 17])
def test_bits_have_room_for_every_combination(values):
    schema = schema_of((0, 3), (0, values - 1), protected=["x1"])
    checked = check_rows(Linear((0.0, 1.0), 1.5 - values), schema, np.array([[1.0, 0.0]]))
    told = np.unpackbits(checked.bits, axis=1, count=values)
    assert told.tolist() == [[0] * (values - 1) + [1]]  # the last alone is favored


def graded(rows):
    """Of five values the first two are favored, the third is refused, the last refused firmly."""
    return np.array([0.9, 0.8, 0.4, 0.6, 0.1])[rows[:, 1].astype(int)]


def test_the_partner_is_the_first_that_flips_or_the_widest():
    schema = schema_of((0, 3), (0, 4), protected=["x1"])
    rows = np.column_stack([np.zeros(5), np.arange(5.0)])
    first = check_rows(graded, schema, rows, partner="first")
    widest = check_rows(graded, schema, rows)
    assert first.partner[:, 1].tolist() == [2, 2, 0, 2, 0]
    assert widest.partner[:, 1].tolist() == [4, 4, 0, 4, 0]
    assert widest.partner[:, 1].tolist() == (
        check_rows(graded, schema, rows, partner="widest").partner[:, 1].tolist()
    )
    # Where nobody flips, either rule takes the widest gap, and of equals the first.
    for rule in ("first", "widest"):
        firm = check_rows(lambda asked: 0.6 + graded(asked) / 5, schema, rows, partner=rule)
        assert not firm.flips.any()
        assert firm.partner[:, 1].tolist() == [4, 4, 0, 4, 0]
        alike = check_rows(lambda asked: np.full(len(asked), 0.7), schema, rows, partner=rule)
        assert alike.partner[:, 1].tolist() == [1, 0, 0, 0, 0]


def test_a_flip_goes_before_a_wider_gap_without_one():
    schema = schema_of((0, 3), (0, 2), protected=["x1"])

    def score(rows):
        return np.array([0.45, 0.0, 0.51])[rows[:, 1].astype(int)]

    checked = check_rows(score, schema, np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]))
    assert checked.flips.all()
    assert checked.partner[:, 1].tolist() == [2, 2, 1]


@pytest.mark.parametrize("stray", [0, 1, 2])
def test_one_row_that_strays_among_others_that_do_not(stray):
    schema = Schema((integers("x", 0, 3), integers("age", 0, 99))).protect(["age=20-60:20"])
    model = Linear((0.0, -1.0), 49.5)  # favorable under 50
    rows = np.array([[0.0, 20.0], [1.0, 40.0], [2.0, 60.0]])
    rows[stray, 1] = 33.0
    checked = check_rows(model, schema, rows)
    np.testing.assert_array_equal(checked.score, model(rows))
    assert checked.flips.all()
    assert checked.queries == 10


def test_what_is_not_wished_for_is_not_kept():
    rows = grid(SCHEMA)
    plain = check_rows(MODEL, SCHEMA, rows)
    assert (len(plain.scores), plain.as_if) == (0, ())
    told = check_rows(MODEL, SCHEMA, rows, keep_scores=True, as_if=True)
    assert told.scores.shape == (50, 2)
    assert len(told.as_if) == 1  # with one column, under its values is under all combinations
    np.testing.assert_array_equal(told.as_if[0], sides(told.scores))


def test_some_rows_keep_what_was_told_of_them():
    rows = uniform(THREE, 60, np.random.default_rng(3))
    whole = check_rows(deep(3, THREE), THREE, rows, keep_scores=True, as_if=True).named("here")
    for index in (whole.flips, np.array([5, 3]), slice(7, 20)):
        some = whole[index]
        for name in ("rows", "score", "partner", "partner_score", "flips", "causes", "scores"):
            np.testing.assert_array_equal(getattr(some, name), getattr(whole, name)[index])
        np.testing.assert_array_equal(some.bits, whole.bits[index])
        for mine, all_of_it in zip(some.as_if, whole.as_if, strict=True):
            np.testing.assert_array_equal(mine, all_of_it[index])
        assert some.origin == "here"
        assert some.queries == 0
    bare = Checked(whole.rows, whole.score, whole.partner, whole.partner_score, whole.flips)
    few = bare[whole.flips]
    assert len(few) == whole.flips.sum()
    assert (len(few.causes), len(few.scores), len(few.bits), few.as_if) == (0, 0, 0, ())


def test_verdicts_of_two_checks_are_mixed_row_by_row():
    here = check_rows(MODEL, SCHEMA, grid(SCHEMA))
    there = here[np.arange(50)[::-1]]
    mask = np.arange(50) % 3 == 0
    mixed = here.named("mix").where(mask, there)
    for name in ("rows", "score", "partner", "partner_score", "flips"):
        expected = [getattr(here if inside else there, name)[k] for k, inside in enumerate(mask)]
        np.testing.assert_array_equal(getattr(mixed, name), expected)
    assert mixed.origin == "mix"


def test_nothing_is_no_rows():
    nothing = Checked.nothing(3)
    assert nothing.rows.shape == nothing.partner.shape == (0, 3)
    assert len(nothing.score) == len(nothing.partner_score) == len(nothing.flips) == 0
    assert nothing.queries == 0


def test_columns_are_told_apart_for_two_or_three_of_them():
    four = schema_of(*[(0, 1)] * 5, protected=["x1", "x2", "x3", "x4"])
    assert cause_names(four) == cause_names(SCHEMA) == []
    three = schema_of(*[(0, 1)] * 4, protected=["x1", "x2", "x3"])
    single, pairs = ["x1", "x2", "x3"], ["x1+x2", "x1+x3", "x2+x3"]
    assert cause_names(three) == [*single, *pairs, "x1+x2+x3"]
    parts = dict(cause_sets(three))
    # The bits of the parts of each set.
    assert parts[0,] == 0
    assert parts[0, 1] == 0b11
    assert parts[1, 2] == 0b110
    assert parts[0, 1, 2] == 0b111111


def test_batches_join_whatever_is_empty():
    here = check_rows(MODEL, SCHEMA, grid(SCHEMA), keep_scores=True)
    joined = Checked.join([Checked.nothing(3), here[:20], here[20:], Checked.nothing(3)])
    np.testing.assert_array_equal(joined.rows, here.rows)
    np.testing.assert_array_equal(joined.scores, here.scores)
    assert len(Checked.join([Checked.nothing(3), Checked.nothing(3)])) == 0


def test_constant_columns_alone_make_one_key():
    schema = Schema((integers("c", 3, 3), integers("p", 0, 1))).protect(["p"])
    rows = uniform(schema, 10, np.random.default_rng(0))
    assert len(distinct(schema, rows).first) == 1
    assert check_rows(Linear((0.0, 1.0), -0.5), schema, rows).flips.all()

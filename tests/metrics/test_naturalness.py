"""Naturalness against its definitions, against SDMetrics, and on cases worked by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limi.errors import InvalidInput
from limi.metrics import naturalness
from limi.metrics.naturalness import (
    average_tabular_naturalness,
    copy_shares,
    detection_score,
    naturalness_at,
    naturalness_of_sets,
    two_sample_auc,
)
from limi.table.schema import Column, Schema
from tests.metrics import make_golden
from tests.naive import naturalness as naive

DEFINITIONS = ["paper", "sdmetrics-0.7", "sdmetrics"]


def number(name, low=0.0, high=9.0, step=1.0, missing=True):
    return Column(name=name, kind="numerical", low=low, high=high, step=step, missing=missing)


def levels(name, n=3, missing=True):
    words = tuple(f"level {i}" for i in range(n))
    return Column(name=name, kind="categorical", levels=words, missing=missing)


MIXED = Schema((number("a"), levels("b"), number("c", step=0.0), levels("d", 5)))
GOLDEN_SCHEMA = Schema(
    tuple(
        number(name, -1e6, 1e6, 0.0)
        if kind == "numerical"
        else levels(name, make_golden.N_LEVELS[name])
        for name, kind in make_golden.KINDS.items()
    )
)


def draw(rng, n, gaps):
    rows = np.column_stack(
        [
            rng.integers(0, 10, n),
            rng.integers(0, 3, n),
            rng.normal(4, 1, n).clip(0, 9),
            rng.integers(0, rng.integers(1, 6), n),
        ]
    ).astype(float)
    rows[rng.random(rows.shape) < gaps] = np.nan
    return rows


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    m=st.integers(1, 30),
    gaps=st.sampled_from([0.0, 0.2, 0.9]),
    definition=st.sampled_from(DEFINITIONS),
)
def test_agrees_with_the_definition(seed, n, m, gaps, definition):
    rng = np.random.default_rng(seed)
    real, generated = draw(rng, n, gaps), draw(rng, m, gaps)

    result = average_tabular_naturalness(real, generated, MIXED, definition=definition)

    kinds = [column.kind for column in MIXED.columns]
    columns, pairs, total = naive.atn(real.tolist(), generated.tolist(), kinds, definition)
    np.testing.assert_allclose(list(result.columns.values()), columns, atol=1e-9)
    np.testing.assert_allclose(list(result.pairs.values()), list(pairs.values()), atol=1e-9)
    np.testing.assert_allclose(result.score, total, atol=1e-9)


def golden():
    stored = json.loads(make_golden.PLACE.read_text(encoding="utf-8"))
    return {
        **stored,
        "real": np.array(stored["real"], dtype=float),
        "generated": np.array(stored["generated"], dtype=float),
    }


def compare_with_report(real, generated, report):
    ours = average_tabular_naturalness(real, generated, GOLDEN_SCHEMA, definition="sdmetrics")
    expected = [np.array(report[part], dtype=float) for part in ("columns", "pairs")]
    np.testing.assert_allclose(list(ours.columns.values()), expected[0], atol=1e-9)
    np.testing.assert_allclose(list(ours.pairs.values()), expected[1], atol=1e-9)
    assert ours.score == pytest.approx(report["score"], abs=1e-9)


def compare_with_metrics(real, generated, metrics):
    ours = average_tabular_naturalness(real, generated, GOLDEN_SCHEMA, definition="sdmetrics-0.7")
    columns, pairs = (np.array(metrics[part], dtype=float) for part in ("columns", "pairs"))
    np.testing.assert_allclose(list(ours.columns.values()), columns, atol=1e-9)
    np.testing.assert_allclose(list(ours.pairs.values()), pairs, atol=1e-9)
    kinds = list(make_golden.KINDS.values())
    is_number = np.array([kind == "numerical" for kind in kinds])
    both = np.array([a and b for i, a in enumerate(is_number) for b in is_number[i + 1 :]])
    halves = [
        np.mean([np.nanmean(columns[is_number]), np.nanmean(columns[~is_number])]),
        np.mean([np.nanmean(pairs[both]), np.nanmean(pairs[~both])]),
    ]
    assert ours.score == pytest.approx(np.mean(halves), abs=1e-9)


def test_equals_what_sdmetrics_said():
    kept = golden()
    compare_with_report(kept["real"], kept["generated"], kept["report"])
    compare_with_metrics(kept["real"], kept["generated"], kept["metrics"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [2, 3])
def test_equals_sdmetrics_where_it_is_installed(seed):
    pytest.importorskip("sdmetrics", reason="sdmetrics is the other opinion")
    real, generated = make_golden.tables(400, 300, seed)
    compare_with_report(real, generated, make_golden.by_report(real, generated))
    compare_with_metrics(real, generated, make_golden.by_metric(real, generated))


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_a_table_is_as_natural_as_itself_in_any_order(definition):
    rng = np.random.default_rng(0)
    real = draw(rng, 200, 0.1)

    result = average_tabular_naturalness(real, rng.permutation(real), MIXED, definition=definition)

    assert result.score == pytest.approx(1)
    assert min(result.columns.values()) == pytest.approx(1)
    assert min(result.pairs.values()) == pytest.approx(1)


def test_sets_of_one_table_are_as_natural_at_equal_size_whatever_their_own():
    rng = np.random.default_rng(0)
    real = np.column_stack([rng.integers(0, 10, 4000), rng.integers(0, 3, 4000)] * 2).astype(float)
    few, many = real[:80], real[80:3000]
    alone = average_tabular_naturalness(real, few, MIXED).score
    assert average_tabular_naturalness(real, many, MIXED).score > alone + 0.02
    drawn = naturalness_at(80, real, many, MIXED, rng, draws=30)
    assert (drawn.n, drawn.draws) == (80, 30)
    assert abs(drawn.value - alone) < 4 * drawn.spread
    whole = naturalness_at(80, real, few, MIXED, rng)
    assert (whole.value, whole.spread, whole.draws) == (alone, None, 1)
    with pytest.raises(InvalidInput, match="n is 81"):
        naturalness_at(81, real, few, MIXED, rng)


def test_sets_side_by_side_are_judged_as_each_alone():
    rng = np.random.default_rng(0)
    sets = {name: draw(rng, n, 0.2) for name, n in (("a", 90), ("b", 60), ("c", 75))}
    real = draw(rng, 120, 0.2)
    together = naturalness_of_sets(60, real, sets, MIXED, np.random.default_rng(1), draws=3)
    stream = np.random.default_rng(1)
    for name, rows in sets.items():
        alone = naturalness_at(60, real, rows, MIXED, stream, draws=3)
        assert together[name].value == pytest.approx(alone.value)
        assert (together[name].n, together[name].draws) == (alone.n, alone.draws)


def test_draws_are_without_replacement_and_of_the_rows_given():
    rng = np.random.default_rng(0)
    real = draw(rng, 50, 0.0)
    # All but one of the rows: each draw is the table without one row.
    drawn = naturalness_at(49, real, real, MIXED, np.random.default_rng(1), draws=200)
    each = [
        average_tabular_naturalness(real, np.delete(real, k, axis=0), MIXED).score
        for k in range(50)
    ]
    assert min(each) < drawn.value < max(each)
    assert drawn.value == pytest.approx(np.mean(each), abs=4 * np.std(each) / np.sqrt(200))
    assert drawn.spread == pytest.approx(np.std(each), rel=0.25)
    assert (drawn.n, drawn.draws) == (49, 200)
    two = naturalness_at(10, real, real, MIXED, np.random.default_rng(1), draws=2)
    order = np.random.default_rng(1)
    parts = [real[order.permutation(50)[:10]] for _ in range(2)]
    scores = [average_tabular_naturalness(real, part, MIXED).score for part in parts]
    assert two.value == pytest.approx(np.mean(scores))
    assert two.spread == pytest.approx(abs(scores[0] - scores[1]) / np.sqrt(2))
    assert naturalness_at(10, real, real, MIXED, rng).draws == 10
    assert naturalness_at(1, real, real, MIXED, rng, draws=3).n == 1
    with pytest.raises(InvalidInput, match="n is 0"):
        naturalness_at(0, real, real, MIXED, rng)


def test_correlations_are_over_the_rows_that_have_both_cells():
    two = Schema((number("x"), number("y")))
    gap = np.nan
    real = np.array([[1.0, 2], [2, 4], [3, 6], [9, gap], [gap, 0]])  # r = 1 where both are known
    opposite = np.array([[1.0, 6], [2, 4], [3, 2], [gap, 9]])  # r = -1
    half = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])  # r = 0
    for generated, expected in ((opposite, 0.0), (half, 0.5), (real, 1.0)):
        result = average_tabular_naturalness(real, generated, two)
        assert result.pairs["x", "y"] == pytest.approx(expected, abs=1e-9)
    # No r of a constant, nor of rows that never have both; then the pair is left out.
    for generated in (np.array([[1.0, 5], [2, 5], [3, 5]]), np.array([[1.0, gap], [gap, 2]])):
        result = average_tabular_naturalness(real, generated, two)
        assert np.isnan(result.pairs["x", "y"])
        assert result.score == result.column_score
    # Large numbers far from zero are no constant.
    far = real + 1e6
    assert average_tabular_naturalness(far, far, two).pairs["x", "y"] == pytest.approx(1)


def test_hand_worked_columns_and_pairs():
    one = Schema((levels("x", 2), levels("y", 2)))
    same = np.array([[0.0, 0], [0, 0], [1, 1], [1, 1]])
    independent = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    result = average_tabular_naturalness(same, independent, one)
    assert result.columns == {"x": 1.0, "y": 1.0}
    assert result.pairs == {("x", "y"): 0.5}

    skewed = np.array([[0.0, 0], [1, 0], [1, 0], [1, 0]])
    assert average_tabular_naturalness(independent, skewed, one).columns["x"] == 0.75

    two = Schema((number("x"), number("y")))
    up = np.column_stack([np.arange(5.0), np.arange(5.0)])
    down = np.column_stack([np.arange(5.0), np.arange(5.0)[::-1]])
    result = average_tabular_naturalness(up, down, two)
    assert result.pairs[("x", "y")] == pytest.approx(0.0, abs=1e-12)


def test_definitions_weigh_kinds_differently():
    # One number that agrees and three categories that do not: 1 of 4, or the mean of 1 and 0.
    schema = Schema((number("x"), levels("a", 2), levels("b", 2), levels("c", 2)))
    real = np.tile([1.0, 0, 0, 0], (10, 1))
    real[:, 0] = np.arange(10)
    generated = real.copy()
    generated[:, 1:] = 1
    scores = {
        definition: average_tabular_naturalness(
            real, generated, schema, definition=definition
        ).column_score
        for definition in ("paper", "sdmetrics-0.7")
    }
    assert scores["paper"] == 0.25
    assert scores["sdmetrics-0.7"] == pytest.approx(0.5, abs=1e-6)


def test_missing_cells_count_in_the_paper_definition_only():
    schema = Schema((number("x"),))
    real = np.arange(8.0)[:, None]
    generated = np.concatenate([real, np.full((8, 1), np.nan)])
    assert average_tabular_naturalness(real, generated, schema).score == 0.5
    as_run = average_tabular_naturalness(real, generated, schema, definition="sdmetrics")
    assert as_run.score == 1.0


def test_thousands_of_levels_in_two_columns():
    schema = Schema((levels("x", 5000, False), levels("y", 5000, False)))
    rng = np.random.default_rng(0)
    real = rng.integers(0, 5000, (300, 2)).astype(float)
    result = average_tabular_naturalness(real, np.concatenate([real, real]), schema)
    assert result.pairs[("x", "y")] == pytest.approx(1)
    other = average_tabular_naturalness(real[:150], real[150:], schema)
    assert other.pairs[("x", "y")] < 0.1


def test_all_missing_columns_and_single_columns_have_a_score():
    schema = Schema((number("x"), levels("y")))
    empty = np.full((4, 2), np.nan)
    assert average_tabular_naturalness(empty, empty, schema).score == 1.0
    assert np.isnan(
        average_tabular_naturalness(empty, empty, schema, definition="sdmetrics").column_score
    )
    one = Schema((number("x"),))
    assert average_tabular_naturalness(np.zeros((3, 1)), np.zeros((2, 1)), one).score == 1.0


@pytest.mark.parametrize(
    ("real", "words"),
    [
        (np.zeros((0, 1)), "at least one row"),
        (np.zeros((3, 2)), "1 columns"),
        (np.full((3, 1), np.inf), "infinite"),
    ],
)
def test_refuses_rows_it_cannot_compare(real, words):
    with pytest.raises(InvalidInput, match=words):
        average_tabular_naturalness(real, np.zeros((3, 1)), Schema((number("x"),)))


def test_refuses_unknown_names():
    schema, rows = Schema((number("x"),)), np.zeros((5, 1))
    with pytest.raises(InvalidInput, match=r"sdmetrics-0\.7"):
        average_tabular_naturalness(rows, rows, schema, definition="atn")
    with pytest.raises(InvalidInput, match="logistic"):
        two_sample_auc(rows, rows, schema, np.random.default_rng(0), classifier="forest")
    with pytest.raises(InvalidInput, match="3 folds"):
        two_sample_auc(rows[:2], rows, schema, np.random.default_rng(0))


def test_copy_shares_count_whole_rows_with_protected_columns():
    schema = Schema((number("x"), levels("sex", 2))).protect(["sex"])
    training = np.array([[1.0, 0], [2, 1], [2, 1], [np.nan, 0]])
    generated = np.array([[1.0, 0], [1, 1], [np.nan, 0], [3, 0]])
    held_out = np.array([[2.0, 1], [5, 0], [6, 0], [7, 1]])

    shares = copy_shares(training, held_out, generated, schema)

    assert (shares.generated, shares.held_out) == (0.5, 0.25)
    assert shares.excess == 0.25


def test_detection_is_the_area_above_a_half_turned_round():
    told = [detection_score(auc) for auc in (0.0, 0.4, 0.5, 0.6, 0.75, 1.0)]
    assert told == pytest.approx([1.0, 1.0, 1.0, 0.8, 0.5, 0.0])


@pytest.mark.parametrize("classifier", ["logistic", "svc"])
def test_rows_that_differ_in_one_thing_are_told_apart_at_once(classifier):
    """A number that lies elsewhere, a level, a missing cell: each alone gives it away."""
    rng = np.random.default_rng(0)

    def auc(generated, **more):
        seed = np.random.default_rng(1)
        return two_sample_auc(real, generated, MIXED, seed, classifier=classifier, **more)

    real = draw(rng, 120, 0.0)
    real[:, 1], real[:, 3] = rng.integers(0, 2, (2, 120))
    for column, value in ((0, 40.0), (2, -30.0), (1, 2.0), (3, 4.0), (0, np.nan), (1, np.nan)):
        generated = rng.permutation(real)
        generated[:, column] = value
        assert auc(generated) > 0.97
        assert auc(generated[:60], folds=2) > 0.97
    # Of more rows equal numbers are drawn.
    assert auc(np.tile(real, (9, 1)), max_rows=40) < 0.75
    assert auc(generated[:3]) >= 0.0


def test_columns_of_more_levels_than_trees_take_are_told_apart_too():
    """256 levels are one too many to be split as sets, and so are the values of a number."""
    schema = Schema((levels("town", 256, False), number("x", -9, 9, 0.0), levels("kind", 3)))
    rng = np.random.default_rng(0)

    def draw(kinds):
        columns = [np.arange(600) % 256, rng.normal(size=600), rng.choice(kinds, 600)]
        return np.column_stack(columns).astype(float)

    real = draw([0, 1])
    assert two_sample_auc(real, draw([2, 1, np.nan]), schema, rng, folds=2) > 0.75
    assert two_sample_auc(real, draw([0, 1]), schema, rng, folds=2) < 0.65


def test_a_set_is_told_with_its_size_and_draws():
    told = naturalness._draw
    assert told({"value": 0.9}) == ", as a set"
    assert told({"n": 80, "draws": 1}) == ", as a set of 80 rows"
    assert told({"n": 80, "draws": 2}) == ", as a set of 80 rows, mean of 2 draws"


def test_three_rows_are_enough_for_three_folds_and_two_are_not():
    schema, rows = Schema((number("x"),)), np.arange(6.0)[:, None]
    rng = np.random.default_rng(0)
    assert 0 <= two_sample_auc(rows[:3], rows[3:], schema, rng, classifier="logistic") <= 1
    for real, generated, more in ((2, 6, {}), (6, 2, {}), (6, 6, {"max_rows": 2})):
        with pytest.raises(InvalidInput, match="3 folds needs at least 3 rows"):
            two_sample_auc(
                rows[:real], rows[:generated], schema, rng, classifier="logistic", **more
            )


@pytest.mark.parametrize("classifier", ["boosted", "logistic", "svc"])
def test_two_sample_auc_is_half_for_one_table_and_near_one_for_two(classifier):
    rng = np.random.default_rng(0)
    real, more, other = draw(rng, 600, 0.1), draw(rng, 600, 0.1), draw(rng, 600, 0.1)
    real[:, 3], more[:, 3] = rng.integers(0, 3, (2, 600))
    other[:, 3] = rng.integers(2, 5, 600)

    def auc(generated, seed=1):
        return two_sample_auc(
            real, generated, MIXED, np.random.default_rng(seed), classifier=classifier
        )

    assert abs(auc(more) - 0.5) < 0.06
    assert auc(other) > 0.85
    assert auc(more) == auc(more)
    assert auc(more) != auc(more, seed=2)


def test_boosted_trees_see_what_a_linear_rule_cannot():
    rng = np.random.default_rng(0)
    schema = Schema((number("x", missing=False), number("y", missing=False)))
    x, y = rng.integers(0, 10, (2, 2000)).astype(float)
    real = np.column_stack([x, x])
    generated = np.column_stack([x, y])
    boosted = two_sample_auc(real, generated, schema, np.random.default_rng(0))
    linear = two_sample_auc(
        real, generated, schema, np.random.default_rng(0), classifier="logistic"
    )
    assert boosted > 0.9
    assert linear < 0.6


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_what_is_worked_out_once_for_all_draws_gives_the_same_as_each_draw_alone(gaps):
    rng = np.random.default_rng(3)
    real, many = draw(rng, 300, gaps), draw(rng, 120, gaps)
    told = naturalness_at(40, real, many, MIXED, np.random.default_rng(5), draws=4)
    order = np.random.default_rng(5)
    parts = [many[order.permutation(120)[:40]] for _ in range(4)]
    each = [average_tabular_naturalness(real, part, MIXED).score for part in parts]
    assert told.value == pytest.approx(np.mean(each), abs=1e-9)
    assert told.spread == pytest.approx(np.std(each, ddof=1), abs=1e-9)


@pytest.mark.parametrize("columns", [66, 91])
def test_a_wide_table_is_judged_by_some_of_its_pairs(columns):
    rng = np.random.default_rng(0)
    kinds = [number(f"c{k}", step=0.0) if k % 2 else levels(f"c{k}") for k in range(columns)]
    schema = Schema(tuple(kinds))
    common = rng.normal(size=(400, 1))
    rows = common + rng.normal(size=(400, columns))
    rows[:, ::2] = np.clip(np.round(rows[:, ::2]), 0, 2)
    rows = np.clip(rows, 0, 9)
    real, made = rows[:300], rows[300:]
    some = naturalness_at(len(made), real, made, schema, rng)
    whole = average_tabular_naturalness(real, made, schema)
    assert some.value == pytest.approx(whole.score, abs=0.01)
    assert sum(1 for _ in naturalness._mixed_pairs(schema, naturalness._offsets(columns))) <= (
        16 * columns
    )


@pytest.mark.parametrize("columns", [65, 128, 500, 3000])
def test_the_wider_a_table_the_fewer_pairs_of_each_column(columns):
    n_pairs = len(naturalness._offsets(columns)) * columns
    assert n_pairs <= max(2048, 2 * columns)

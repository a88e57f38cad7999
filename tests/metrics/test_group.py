"""Group metrics against their formulas, Fairlearn, and cases worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limi.errors import InvalidInput
from limi.metrics import group
from tests.naive import groups as naive

NAMES = [
    "statistical_parity_difference",
    "parity_gap",
    "equal_opportunity_difference",
    "average_odds_difference",
    "average_odds_error",
]


def call(name, decisions, labels, privileged):
    function = getattr(group, name)
    if "parity" in name:
        return function(decisions, privileged)
    return function(decisions, labels, privileged)


ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 1), st.booleans()), min_size=1, max_size=40)


@settings(max_examples=150, deadline=None)
@given(rows=ROWS, name=st.sampled_from(NAMES))
def test_agrees_with_the_formula_or_says_that_it_is_undefined(rows, name):
    decisions, labels, privileged = (np.array(column) for column in zip(*rows, strict=True))
    expected = naive.differences(decisions.tolist(), labels.tolist(), privileged.tolist())[name]
    if math.isnan(expected):
        with pytest.raises(InvalidInput, match="has no row"):
            call(name, decisions, labels, privileged)
    else:
        assert call(name, decisions, labels, privileged) == pytest.approx(expected, abs=1e-9)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    privileged = rng.random(4000) < 0.6
    labels = (rng.random(4000) < np.where(privileged, 0.4, 0.2)).astype(np.int8)
    decisions = rng.random(4000) < 0.15 + 0.5 * labels + 0.1 * privileged
    return decisions, labels, privileged


def test_equals_fairlearn_where_both_define_it(people):
    fairlearn = pytest.importorskip("fairlearn.metrics", reason="fairlearn is the other opinion")
    decisions, labels, privileged = people
    given = {"y_true": labels, "y_pred": decisions.astype(int), "sensitive_features": privileged}
    assert group.parity_gap(decisions, privileged) == pytest.approx(
        fairlearn.demographic_parity_difference(**given)
    )
    by_group = fairlearn.MetricFrame(
        metrics={
            "selection": fairlearn.selection_rate,
            "true": fairlearn.true_positive_rate,
            "false": fairlearn.false_positive_rate,
        },
        **given,
    ).by_group
    true, false = (by_group.loc[False, n] - by_group.loc[True, n] for n in ("true", "false"))
    assert group.equal_opportunity_difference(*people) == pytest.approx(true)
    assert abs(group.equal_opportunity_difference(*people)) == pytest.approx(
        fairlearn.equal_opportunity_difference(**given)
    )
    assert group.average_odds_error(*people) == pytest.approx(
        fairlearn.equalized_odds_difference(**given, agg="mean")
    )
    assert group.average_odds_difference(*people) == pytest.approx((true + false) / 2)
    for side in (True, False):
        assert group.selection_rate(decisions, privileged == side) == pytest.approx(
            by_group.loc[side, "selection"]
        )


def test_the_sign_says_who_gets_less():
    decisions = np.array([True, True, True, False])
    privileged = np.array([True, True, False, False])
    assert group.statistical_parity_difference(decisions, privileged) == -0.5
    assert group.statistical_parity_difference(decisions, ~privileged) == 0.5
    assert group.parity_gap(decisions, privileged) == 0.5


def test_perfect_decisions_have_no_odds_gap_but_the_gap_of_the_base_rates(people):
    _, labels, privileged = people
    perfect = labels == 1
    assert group.average_odds_error(perfect, labels, privileged) == 0
    base = labels[privileged].mean() - labels[~privileged].mean()
    assert group.parity_gap(perfect, privileged) == pytest.approx(base)


def test_gaps_of_opposite_sign_cancel_in_the_difference_and_not_in_the_error():
    labels = np.array([1, 1, 0, 0, 1, 1, 0, 0])
    decisions = np.array([1, 1, 0, 0, 1, 0, 1, 0], dtype=bool)
    privileged = np.arange(8) < 4
    assert group.average_odds_difference(decisions, labels, privileged) == 0
    assert group.average_odds_error(decisions, labels, privileged) == 0.5


def test_a_group_without_a_class_is_named_and_gets_no_number():
    labels = np.array([1, 0, 0, 0])
    decisions = np.array([1, 0, 1, 0], dtype=bool)
    women = np.array([False, False, True, True])
    found = group.differences(
        group.tally(decisions, labels, ~women),
        group.tally(decisions, labels, women),
        names=("sex Male", "sex Female"),
    )
    assert found["statistical_parity_difference"].value == 0
    for name in NAMES[2:]:
        assert found[name].value is None
        assert found[name].reason == "sex Female has no row whose true label is favorable"
    nobody = group.differences(group.Tally(0, 0), group.Tally(3, 1), names=("men", "women"))
    assert nobody["parity_gap"].reason == "men has no rows"
    # One true class is enough for the chance of those who deserve it.
    labels = np.array([1, 1, 1, 0])
    found = group.differences(
        group.tally(decisions, labels, ~women),
        group.tally(decisions, labels, women),
        names=("sex Male", "sex Female"),
    )
    assert found["equal_opportunity_difference"].value == 0.5
    assert found["average_odds_difference"].reason == (
        "sex Male has no row whose true label is unfavorable"
    )
    labels = np.array([1, 0, 0, 0])
    with pytest.raises(InvalidInput, match="undefined; choose other groups"):
        group.average_odds_error(decisions, labels, ~women)
    with pytest.raises(InvalidInput, match="has no rows"):
        group.parity_gap(decisions, np.zeros(4, dtype=bool))
    with pytest.raises(InvalidInput, match="no selection rate"):
        group.selection_rate(decisions, np.zeros(4, dtype=bool))


def test_unknown_labels_count_for_selection_alone():
    decisions, labels = np.array([True, True, False]), np.array([1, -1, 0])
    assert group.tally(decisions, labels) == group.Tally(3, 2, 1, 1, 1, 0)
    assert group.tally(decisions) == group.Tally(3, 2)
    assert group.tally(decisions, labels, np.array([1, 0, 1]) > 0) == group.Tally(2, 1, 1, 1, 1, 0)
    assert group.Tally.total([group.Tally(3, 2), group.Tally(1, 1)]) == group.Tally(4, 3)


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(InvalidInput, match="3 decisions, 2 group cells and no labels"):
        group.tally(np.ones(3, dtype=bool), None, np.ones(2, dtype=bool))
    with pytest.raises(InvalidInput, match="3 decisions, 3 group cells and 4 labels"):
        group.tally(np.ones(3, dtype=bool), np.ones(4), np.ones(3, dtype=bool))
    with pytest.raises(InvalidInput, match="and 2 labels"):
        group.tally(np.ones(3, dtype=bool), np.ones(2))


def test_the_interval_of_a_difference_is_newcombe_s():
    # Newcombe (1998), table II, cases (a) and (e), method 10.
    for (a, m, b, n), (low, high) in (
        ((56, 70, 48, 80), (0.0524, 0.3339)),
        ((0, 10, 0, 20), (-0.1611, 0.2775)),
    ):
        found = group.differences(group.Tally(n, b), group.Tally(m, a))
        parity = found["statistical_parity_difference"]
        assert parity.low == pytest.approx(low, abs=1e-4)
        assert parity.high == pytest.approx(high, abs=1e-4)


TALLIES = [
    ((120, 60, 50, 40, 70, 20), (80, 25, 30, 18, 50, 7)),
    ((12, 12, 5, 5, 7, 7), (9, 0, 4, 0, 5, 0)),  # as far apart as can be
    ((9, 0, 4, 0, 5, 0), (12, 12, 5, 5, 7, 7)),
    ((400, 200, 200, 150, 200, 50), (300, 150, 150, 60, 150, 90)),  # gaps of opposite sign
    ((2, 1, 1, 1, 1, 0), (2, 2, 1, 1, 1, 1)),
]


@pytest.mark.parametrize("confidence", [0.95, 0.8])
@pytest.mark.parametrize(("privileged", "others"), TALLIES)
def test_every_interval_is_that_of_its_formula(privileged, others, confidence):
    ours = group.differences(group.Tally(*privileged), group.Tally(*others), confidence=confidence)
    expected = naive.intervals(privileged, others, confidence)
    assert list(ours) == list(expected) == NAMES
    for name, difference in ours.items():
        found = (difference.value, difference.low, difference.high)
        assert found == pytest.approx(expected[name], abs=1e-9), name


def test_intervals_are_of_95_percent_unless_told_otherwise():
    pair = (group.Tally(*TALLIES[0][0]), group.Tally(*TALLIES[0][1]))
    assert group.differences(*pair) == group.differences(*pair, confidence=0.95)


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(1)
    truth = {"privileged": (0.6, 0.2), "others": (0.45, 0.15)}  # shares of favorable, by label
    held = dict.fromkeys(NAMES[2:], 0)
    for _ in range(300):
        tallies = {
            side: group.Tally(
                400,
                0,
                150,
                int(rng.binomial(150, chances[0])),
                250,
                int(rng.binomial(250, chances[1])),
            )
            for side, chances in truth.items()
        }
        found = group.differences(**tallies)
        expected = dict(zip(NAMES[2:], (-0.15, -0.1, 0.1), strict=True))
        for name in held:
            held[name] += found[name].low <= expected[name] <= found[name].high
    assert all(hits >= 0.93 * 300 for hits in held.values()), held


def test_absolute_ends_follow_the_signed_ones():
    found = group.differences(group.Tally(100, 50), group.Tally(100, 52))
    signed, absolute = found["statistical_parity_difference"], found["parity_gap"]
    assert signed.low < 0 < signed.high
    assert absolute.low == 0
    assert absolute.high == pytest.approx(max(-signed.low, signed.high))

"""Labels of findings against their definitions."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from limi.repairs import _labels
from tests.naive import repair as naive
from tests.repairs.small import SCHEMA
from tests.toy import Linear, are_clear, grid, schema_of

weights = st.tuples(*(st.floats(-3, 3, allow_nan=False) for _ in range(4)))


@given(weights=weights, bias=st.floats(-5, 5), seed=st.integers(0, 2**20))
@settings(max_examples=30, deadline=None)
def test_vote_agrees_with_the_definition(weights, bias, seed):
    model = Linear(weights, bias)
    assume(are_clear(model.unchecked(grid(SCHEMA))))
    rng = np.random.default_rng(seed)
    rows = grid(SCHEMA)[rng.choice(200, 25, replace=False)]
    expected = [naive.vote(model.score, SCHEMA, row) for row in rows]
    assert _labels.vote(model.score, SCHEMA, rows).tolist() == expected


def test_vote_of_two_values_takes_the_side_of_the_mean_score():
    schema = schema_of((0, 9), (0, 1), protected=["x1"])
    scores = {0.0: 0.1, 1.0: 0.8}  # one decision each way; together they lie below one half
    rows = np.array([[3.0, 0.0], [4.0, 1.0]])
    low = _labels.vote(lambda r: np.array([scores[v] for v in r[:, 1]]), schema, rows)
    assert low.tolist() == [0, 0]
    high = _labels.vote(lambda r: np.array([scores[v] + 0.19 for v in r[:, 1]]), schema, rows)
    assert high.tolist() == [1, 1]
    assert len(_labels.vote(None, schema, rows[:0])) == 0


def test_privileged_values_and_an_ensemble_label_by_their_definition():
    schema = schema_of((0, 9), (0, 1), protected=["x1"])
    rows = np.array([[float(i), 0.0] for i in range(10)])
    score = Linear((0.0, 2.0), -1.0).score  # x1 alone decides

    class Blind:
        def decide(self, rows):
            return (rows[:, 0] > 4).astype(np.int8)

    given = {"ensemble": Blind, "privileged": {"x1": 1.0}}
    assert _labels.decide("privileged", score, schema, rows, **given).tolist() == [1] * 10
    blindly = _labels.decide("ensemble", score, schema, rows, **given)
    assert blindly.tolist() == [0] * 5 + [1] * 5
    # Scores of both sides mirror each other, so the mean is one half and the vote unfavorable.
    assert _labels.decide("vote", score, schema, rows, **given).tolist() == [0] * 10

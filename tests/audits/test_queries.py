"""A budget of queries is hard: it holds all that a model is asked, and the report says how much."""

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import limi
from limi.errors import InvalidInput

COLUMNS = ["age", "hours", "sex", "group"]


@cache
def people(n=600):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 70, n),
            "hours": rng.integers(10, 60, n),
            "sex": rng.integers(0, 2, n),
            "group": rng.integers(0, 4, n),
        }
    )
    margin = frame["age"] - 40 + frame["hours"] - 35 + 9 * frame["sex"] + 4 * frame["group"] - 10
    frame["ok"] = (margin + rng.normal(0, 8, n) > 0).astype(int)
    return frame


class Counter:
    """Counts the rows that a model is given."""

    def __init__(self):
        self.rows = 0

    def count(self, estimator):
        """An estimator that counts them, whichever of its methods is called."""
        kind = type(estimator)
        names = ("predict", "predict_proba", "decision_function")
        made = {name: self._counted(getattr(kind, name)) for name in names if hasattr(kind, name)}
        estimator.__class__ = type(kind.__name__, (kind,), made)
        return estimator

    def _counted(self, method):
        def counted(estimator, rows, *more, **named):
            before = self.rows
            answers = method(estimator, rows, *more, **named)
            self.rows = before + len(rows)  # once, even if one method calls another
            return answers

        return counted


def function(counter):
    def model(frame):
        counter.rows += len(frame)
        margin = frame["age"] - 40 + frame["hours"] - 35 + 9 * frame["sex"] + 4 * frame["group"]
        return 1 / (1 + np.exp(-(margin.to_numpy(dtype=float) - 10) / 8))

    return model


def price(counter):
    def model(frame):
        counter.rows += len(frame)
        return (200.0 + frame["age"] + 30 * frame["sex"] + 5 * frame["group"]).to_numpy()

    return model


def random(counter):
    rng = np.random.default_rng(0)

    def model(frame):
        counter.rows += len(frame)
        chance = 0.5 + 0.4 * np.tanh((frame["age"] - 44 + 20 * (frame["sex"] - 0.5)) / 10)
        return (rng.random(len(frame)) < chance).astype(float)

    return model


def classifier(kind, **settings):
    def make(counter):
        frame = people()
        return counter.count(kind(**settings).fit(frame[COLUMNS], frame["ok"]))

    return make


MODELS = {
    "function": (function, {"favorable": 1}),
    "estimator": (classifier(LogisticRegression, max_iter=1000), {"favorable": 1}),
    "svm": (classifier(LinearSVC), {"favorable": 1}),
    "numbers": (price, {"decision": "difference > 20", "target": None}),
    "bands": (price, {"decision": "bands = 250, 280", "target": None}),
    "threshold": (function, {"favorable": 1, "decision": "score > 0.3"}),
    "random": (random, {"favorable": 1, "noisy": True}),
    "unsteady": (random, {"favorable": 1}),
}


ONE, TWO = ("sex",), ("sex", "group")


@pytest.mark.parametrize(("most", "protected"), [(40, ONE), (150, TWO), (1_000, ONE), (6_000, TWO)])
@pytest.mark.parametrize("kind", MODELS)
def test_no_run_asks_for_more_than_its_budget_and_says_how_much(kind, most, protected):
    make, given = MODELS[kind]
    given = {"target": "ok", "max_rows": None, "seed": 1} | given
    frame = people()
    if given["target"] is None:
        frame = frame.drop(columns="ok")
    counter = Counter()
    result = limi.audit(make(counter), frame, protected=list(protected), max_queries=most, **given)
    assert counter.rows <= most
    assert result.summary.queries == counter.rows
    phases = result.summary.phases
    assert sum(phase["questions"] for phase in phases.values()) == counter.rows
    if most > 1_000 and kind != "unsteady":
        assert counter.rows > 0.9 * most
        assert len(result.found) > 20


@pytest.mark.parametrize(
    "method", ["limi", "themis", "natural", "real", "guided", "sg", "aequitas"]
)
def test_every_method_leaves_what_the_second_check_needs(method):
    counter = Counter()
    result = limi.audit(
        function(counter),
        people(),
        protected=["sex"],
        target="ok",
        favorable=1,
        method=method,
        max_rows=None,
        max_queries=4_000,
    )
    assert result.summary.queries == counter.rows <= 4_000
    assert "second_check" not in result.summary.cut
    assert len(result.found)


@pytest.mark.parametrize("most", [250, 1_000, 6_000])
@pytest.mark.parametrize("kind", ["function", "estimator", "svm", "threshold", "unsteady"])
def test_a_gate_asks_for_no_more_than_its_budget_and_says_how_much(kind, most):
    make, given = MODELS[kind]
    counter = Counter()
    rules = ["natural_rate <= 0.001 %", "real_rate <= 0.001 %"]
    given = {"target": "ok", "protected": ["sex"], "max_queries": most} | given
    result = limi.gate(make(counter), people(), rules, **given)
    assert result.queries == counter.rows <= most


def test_all_rows_are_counted_without_a_budget_too():
    for kind in ("function", "estimator", "threshold"):
        make, given = MODELS[kind]
        counter = Counter()
        result = limi.audit(
            make(counter), people(), protected=["sex"], target="ok", max_rows=2_000, **given
        )
        assert result.summary.queries == counter.rows


def test_a_budget_too_small_to_look_at_the_model_is_refused():
    counter = Counter()
    with pytest.raises(InvalidInput, match="at least 40 rows"):
        limi.audit(
            function(counter), people(), protected="sex", target="ok", favorable=1, max_queries=39
        )
    assert not counter.rows


def test_a_pipeline_is_counted_like_its_estimator():
    frame = people()
    made = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame[COLUMNS], frame["ok"])
    counter = Counter()
    given = {"protected": ["sex"], "target": "ok", "favorable": 1, "max_queries": 2_000}
    result = limi.audit(counter.count(made), frame, **given)
    assert result.summary.queries == counter.rows <= 2_000


def measured(most, **given):
    counter = Counter()
    given = {"protected": ["sex"], "target": "ok", "favorable": 1, "method": "guided"} | given
    result = limi.audit(function(counter), people(), max_queries=most, **given)
    assert counter.rows == result.summary.queries <= most
    return result.summary


def test_rates_get_a_fifth_of_the_queries_or_what_was_asked_for():
    usual = measured(3_000)
    assert usual.rates["real"].n <= 3_000 // 5 // 2
    assert "name --rate-rows" in usual.cut["rates"]
    asked = measured(3_000, rate_rows=220)
    assert {rate.n for rate in asked.rates.values()} == {220}
    assert "rates" not in asked.cut
    assert asked.rows_checked > 100
    short = measured(1_000, rate_rows=220)
    assert 70 < short.rates["real"].n < 220
    assert "of which 3,300 are enough" in short.cut["rates"]
    assert measured(3_800, rate_rows=220).rates["real"].n == 220


def test_rates_of_a_quick_model_take_more_than_one_call_of_seconds():
    result = limi.audit(
        function(Counter()),
        people(),
        protected=["sex"],
        target="ok",
        favorable=1,
        generator=None,
        method="themis",
        max_rows=20_000,
        max_seconds=4,
        clock=ticking(),
    )
    assert result.rates["real"].n == 600
    assert result.rates["uniform"].n > 5_000


def ticking(step=1e-4):
    """A clock by which every look at it takes a moment, and a model no time beside that."""
    times = itertools.count()
    return lambda: step * next(times)

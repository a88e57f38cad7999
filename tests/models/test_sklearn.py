"""scikit-learn estimators: what they are given, and whose word decides."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from limi import models
from limi.decisions import Classes, favors, opposes
from limi.errors import BadModel, InvalidInput
from limi.models._scores import Places, from_labels
from tests.models.kinds import pipeline
from tests.models.people import bound, numbers, people, scored, spelled, truth


@pytest.mark.parametrize("favorable", [0, 1])
def test_ties_fall_where_predict_puts_them(favorable):
    frame = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    stump = DecisionTreeClassifier(max_depth=1).fit(frame[["a"]], [0, 1, 0, 1])
    tied = RandomForestClassifier(2, max_depth=1, random_state=0).fit(frame, [0, 1, 1, 0])
    for model in (stump, tied):
        scores = scored(model, frame, favorable=favorable)
        given = frame[list(model.feature_names_in_)]
        decided = model.predict(given) == favorable
        assert favors(scores).tolist() == decided.tolist()
        assert opposes(scores).tolist() == (~decided).tolist()


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(),
        RandomForestClassifier(10, bootstrap=False, random_state=0),
        ExtraTreesClassifier(4, bootstrap=False, random_state=0),
        BaggingClassifier(DecisionTreeClassifier(), 4, bootstrap=False, random_state=0),
        KNeighborsClassifier(4),
        make_pipeline(StandardScaler(), KNeighborsClassifier(2)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_even_votes_are_the_first_class(model):
    frame = pd.DataFrame({"a": [0, 0, 1, 1] * 5, "b": 0})
    model.fit(frame, [0, 1, 1, 0] * 5)
    even = (model.predict_proba(frame) == 0.5).all(axis=1)
    assert even.any()
    for favorable, side in ((0, favors), (1, opposes)):
        assert side(scored(model, frame, favorable=favorable))[even].all()


def test_probabilities_that_are_no_votes_may_be_equal_by_rounding():
    frame = pd.DataFrame({"a": [0, 1], "b": [0, 1]})
    model = DummyClassifier(strategy="prior").fit(frame, [0, 1])
    for favorable in (0, 1):
        scores = scored(model, frame, favorable=favorable)
        assert not (favors(scores) | opposes(scores)).any()


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        RidgeClassifier(),
        BaggingClassifier(LogisticRegression(), 3, random_state=0),
        VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())]),
        VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], voting="soft"),
        make_pipeline(StandardScaler(), SVC()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_decisions_are_those_of_predict(model):
    model.fit(numbers(), spelled())
    favors = scored(model, numbers(), favorable="good") > 0.5
    assert np.array_equal(favors, model.predict(numbers()) == "good")


class Contradicting(ClassifierMixin, BaseEstimator):
    """Probabilities fitted apart from the margin that decides, as an SVM's are."""

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0] - 45.0

    def predict_proba(self, X):
        second = 1 / (1 + np.exp(-(np.asarray(X)[:, 0] - 60.0)))
        return np.stack([1 - second, second], axis=1)

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def test_probabilities_that_contradict_predict_give_way_to_the_margin():
    model = Contradicting().fit(numbers().to_numpy(), spelled())
    target = bound(model, numbers(), favorable="good")
    assert target.model.reads == "margin"
    assert target.notes == ()
    rows = target.codec.encode(numbers())
    assert np.array_equal(target.score(rows) > 0.5, numbers().age > 45)


def test_an_svm_is_read_by_its_margin_from_the_start():
    class SVC(Contradicting):
        pass

    model = make_pipeline(FunctionTransformer(), SVC()).fit(numbers().to_numpy(), spelled())
    assert models.wrap(model, favorable="good").reads == "margin"


class Strict(Contradicting):
    """Decides by a threshold of its own."""

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.9).astype(int)]


def test_a_threshold_of_its_own_is_found_and_noted():
    model = Strict().fit(numbers().to_numpy(), spelled())
    before = bound(model, numbers()[:5], favorable="good")
    target = bound(model, numbers(), favorable="good")
    rows = target.codec.encode(numbers())
    assert target.model.reads == "label"
    assert "its decisions were used, and scores are 0 or 1" in target.notes[0]
    assert np.array_equal(target.score(rows) > 0.5, model.predict(numbers()) == "good")
    assert len(before.settled(rows).settled(rows).notes) == 1


def test_settling_again_changes_nothing():
    target = bound(pipeline(), people(), favorable="good")
    assert target.settled(target.codec.encode(people())) == target


class LabelsOnly(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(X["age"] > 45).astype(int)]


class Bare:
    """Neither classes_ nor parameters: predict is all it has."""

    def predict(self, frame):
        return np.where(frame["age"] > 45, "good", "bad")


@pytest.mark.parametrize("model", [LabelsOnly().fit(people(), spelled()), Bare()])
def test_predict_alone_is_enough(model):
    scores = scored(model, people(), favorable="good", labels=("bad", "good"))
    assert np.array_equal(scores, (people().age > 45).astype(float))


def test_arrow_tables_are_read_as_pandas_reads_them():
    frame = people()[["age", "sex", "grade"]]
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough"), GaussianNB()
    ).fit(frame, spelled())
    table = pa.Table.from_pandas(frame)
    expected = model.predict_proba(frame)[:, 1]
    np.testing.assert_allclose(scored(model, table, favorable="good"), expected, atol=1e-12)


def test_more_columns_than_the_model_wants_and_another_order_do_no_harm():
    frame = people()
    mixed = frame.assign(noise=1)[["noise", *reversed(list(frame.columns))]]
    assert np.array_equal(
        scored(pipeline(), mixed, favorable="good"), scored(pipeline(), frame, favorable="good")
    )


@pytest.mark.parametrize(
    ("model", "error", "says"),
    [
        (LogisticRegression(), BadModel, "LogisticRegression is not a fitted classifier"),
        (make_pipeline(StandardScaler(), GaussianNB()), BadModel, "Pipeline is not a fitted"),
        (
            LinearRegression().fit(numbers(), truth()),
            BadModel,
            "LinearRegression is a regressor and returns numbers",
        ),
        (LogisticRegression, InvalidInput, "the class LogisticRegression is not a model"),
        (42, InvalidInput, "int is not a model that limi recognises"),
        (
            DecisionTreeClassifier().fit(numbers(), people().grade + 4),
            InvalidInput,
            "favorable label 1 is not one of the model's classes",
        ),
        (DummyClassifier().fit(numbers(), np.ones(400)), BadModel, "one class only (1.0)"),
        (
            MultiOutputClassifier(GaussianNB()).fit(numbers(), np.stack([truth()] * 2, axis=1)),
            BadModel,
            "several outputs",
        ),
    ],
)
def test_what_cannot_be_tested_is_said(model, error, says):
    with pytest.raises(error) as caught:
        models.wrap(model, favorable=1)
    assert says in str(caught.value)


def test_a_table_without_the_models_columns_is_refused():
    with pytest.raises(BadModel, match="needs the columns hours, grade, which the table lacks"):
        bound(pipeline(), people().drop(columns=["hours", "grade"]), favorable="good")


def test_an_array_model_wants_its_number_of_columns():
    model = GaussianNB().fit(numbers().to_numpy(), truth())
    with pytest.raises(BadModel, match="needs 3 columns, but the table has 2"):
        bound(model, numbers()[["age", "grade"]])


def test_boosting_does_not_count_votes():
    """Its steps may add up to 0 by rounding, and scikit-learn then takes the second class."""
    frame = pd.DataFrame({"a": [0, 0, 1, 1] * 5, "b": 0})
    model = GradientBoostingClassifier(n_estimators=2).fit(frame, [0, 1, 1, 0] * 5)
    even = np.isclose(model.predict_proba(frame), 0.5, rtol=0, atol=1e-9).all(axis=1)
    assert even.any()
    for favorable in (0, 1):
        scores = scored(model, frame, favorable=favorable)
        assert not (favors(scores) | opposes(scores))[even].any()


def test_a_label_that_is_no_class_of_the_model_is_refused():
    rule = Classes(("a", "b"))
    labels = np.array(["a", "c"])
    with pytest.raises(BadModel, match="predicts 'c', which is not one of its classes"):
        from_labels(labels, np.array(["a", "b"]), Places(rule, (0, 1)))

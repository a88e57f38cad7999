"""Averaged models: the same answer whatever the protected value, alone or with what goes along."""

import io
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import skops.io as sio
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

import limi
from limi import models
from limi.errors import InvalidInput
from limi.models._averaged import Swaps
from limi.repairs import average, parse_weights
from limi.repairs._average import average_target, tell_threshold
from limi.repairs._onnx import export
from limi.repairs._partner_table import make_table
from limi.repairs._share import keep_share
from limi.search.check import check_rows
from limi.table.rules import Derived, Role, Rules
from limi.table.schema import Column, Schema
from tests.naive.average import average as naive_average

pytestmark = pytest.mark.usefixtures("untried")

TITLES = ("Dr", "Mr", "Mrs", "Mx")
SCHEMA = Schema(
    (
        Column(name="sex", kind="categorical", levels=("F", "M", "X")),
        Column(name="title", kind="categorical", levels=TITLES),
        Column(name="age", kind="numerical", low=18, high=70, step=1),
        Column(name="ages", kind="categorical", levels=("young", "old")),
        Column(name="income", kind="numerical", low=0, high=100, step=1),
        Column(name="sits", kind="categorical", levels=("front", "back")),
    ),
    rules=Rules(
        constraints=(
            ("mrs", 'title == "Mrs" implies sex == "F"'),
            ("mr", 'title == "Mr" implies sex == "M"'),
            ("front", 'sex == "X" implies sits == "back" or age >= 30'),
        ),
        derived=(Derived(column="ages", sources=("age",), steps=(40,), values=("young", "old")),),
        roles=(
            Role(
                protected="sex",
                column="title",
                things=((("F", "Mrs"), ("M", "Mr"), ("X", "Mx")),),
            ),
        ),
    ),
)


def people(n=300, seed=0):
    """People who keep the rules, with a label that depends on sex."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M", "X"], n, p=[0.5, 0.4, 0.1])
    own = pd.Series(sex).map({"F": "Mrs", "M": "Mr", "X": "Mx"}).to_numpy()
    age = rng.integers(18, 71, n)
    frame = pd.DataFrame(
        {
            "sex": sex,
            "title": np.where(rng.random(n) < 0.7, own, "Dr"),
            "age": age,
            "ages": np.where(age < 40, "young", "old"),
            "income": rng.integers(0, 101, n),
            "sits": np.where((sex == "X") & (age < 30), "back", rng.choice(["front", "back"], n)),
        }
    )
    risk = frame["income"] + 25 * (sex == "M") + 15 * (frame["sits"] == "front") + 0.3 * age
    frame["ok"] = np.where(risk + rng.normal(0, 10, n) > 75, "yes", "no")
    return frame


def pipeline(last=None):
    columns = make_column_transformer(
        (OneHotEncoder(), ["sex", "title", "ages", "sits"]), remainder="passthrough"
    )
    return make_pipeline(columns, last or RandomForestClassifier(5, max_depth=5, random_state=0))


@pytest.fixture(scope="module")
def frame():
    return people()


@pytest.fixture(scope="module")
def fitted(frame):
    return pipeline().fit(frame.drop(columns="ok"), frame["ok"])


def prepared(model, frame, protected, schema=SCHEMA):
    from limi.audits.problem import prepare

    return prepare(model, frame, protected=protected, target="ok", favorable="yes", schema=schema)


def averaged(model, frame, protected="sex", schema=SCHEMA, **told):
    return average(
        model,
        frame,
        protected=protected,
        target="ok",
        favorable="yes",
        schema=schema,
        **told,
    )


def anybody(schema, n=200):
    """Rows of the whole domain, such that break rules among them."""
    rng = np.random.default_rng(1)
    rows = np.stack(
        [
            rng.integers(column.size, size=n) * step
            for column, step in zip(schema.columns, schema.step, strict=True)
        ],
        axis=1,
    )
    return rows + schema.low


@pytest.mark.parametrize("protected", [["sex"], ["age=18-70:13"], ["sex", "age=20-60:20"]])
@pytest.mark.parametrize("rules", [True, False], ids=["rules", "no rules"])
def test_nobody_flips_with_what_goes_along_nor_alone(fitted, frame, protected, rules):
    schema = SCHEMA if rules else SCHEMA.unruled
    before = prepared(fitted, frame, protected, schema)
    after = prepared(averaged(fitted, frame, protected, schema), frame, protected, schema)
    rows = np.concatenate([before.rows, anybody(before.schema)])
    assert check_rows(before.target.score, before.schema, rows).flips.any()
    for asked in (after.schema, after.schema.unruled):
        assert not check_rows(after.target.score, asked, rows).flips.any()


@pytest.mark.parametrize("protected", [["sex"], ["sex", "age=20-60:20"]])
def test_answers_are_those_of_the_definition_row_by_row(fitted, frame, protected):
    problem = prepared(fitted, frame, protected)
    table = make_table(problem.target, problem.rows)
    fair = prepared(averaged(fitted, frame, protected), frame, protected)
    rows = problem.rows[:15]
    weights = [share for _, share in table.shares]
    expected = naive_average(
        problem.target.score, problem.schema, rows, problem.schema.combinations, weights
    )
    assert np.allclose(fair.target.score(rows), expected, atol=1e-12)


def test_a_mean_of_sure_answers_is_no_more_than_sure():
    """The shares of these weights sum to 1.0000000000000002."""
    weights = [0.34, 0.43, 0.97, 0.56, 0.26]
    swaps = Swaps({"a": list(range(5))}, weights)
    rows = pd.DataFrame({"a": np.zeros(3)})
    plain = sum(1.0 * weight for weight in swaps.count(rows, ())[0])
    assert plain > 1
    for sure in (np.ones(3), np.ones((3, 2)), np.full(3, -7.3)):
        found = swaps.average(rows, lambda asked, told=sure: told[np.zeros(len(asked), int)], None)
        assert np.array_equal(found, sure)


def test_partners_asked_together_or_one_by_one_say_the_same(fitted, frame, monkeypatch):
    fair = averaged(fitted, frame, ["sex"])
    asked = frame.drop(columns="ok").head(40)
    together = fair.predict_proba(asked)
    monkeypatch.setattr("limi.models._averaged.AT_ONCE", 90)  # two of three, then the third
    assert np.allclose(together, fair.predict_proba(asked), rtol=1e-12)
    monkeypatch.setattr("limi.models._averaged.AT_ONCE", 1)
    assert np.allclose(together, fair.predict_proba(asked), rtol=1e-12)


EXPECTED = {
    "check_estimators_nan_inf": "a missing protected cell is answered: every value is put there",
    "check_classifiers_train": "its toy labels follow the column that is averaged over",
}


def test_scikit_learn_finds_an_estimator():
    made = limi.AveragedClassifier(LogisticRegression(), values={0: [0.0, 1.0]}, weights=[0.5, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = check_estimator(made, on_fail=None, expected_failed_checks=EXPECTED)
    assert [one["check_name"] for one in told if one["status"] == "failed"] == []


def test_what_an_averaged_model_is_given_is_held_to_what_it_takes(fitted, frame):
    made = averaged(fitted, frame)
    inputs = frame.drop(columns="ok")
    for wrong, words in (
        (inputs.to_numpy(), "takes a frame"),
        (inputs.drop(columns="income"), "lacks the column income"),
        (inputs.to_numpy()[0], "Reshape your data"),
    ):
        with pytest.raises(InvalidInput, match=words):
            made.predict(wrong)
    function = averaged(lambda table: table["income"] / 100, frame, output="score")
    with pytest.raises(InvalidInput, match="lacks the columns age, income"):
        function(inputs.drop(columns=["age", "income"]))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([0.5, 0.3, 0.2], "2 cells of the column 'sex' and 3 weights"),
        ([1.0], "2 cells of the column 'sex' and 1 weights"),
        ([1.5, -0.5], "0 or more"),
        ([0.0, 0.0], "all weights are 0"),
    ],
)
def test_partners_have_a_weight_each(weights, words):
    people = pd.DataFrame({"sex": [0, 1, 0, 1], "income": [1, 2, 3, 4]})
    model = LogisticRegression().fit(people, [0, 1, 0, 1])
    made = limi.AveragedClassifier(model, values={"sex": [0, 1]}, weights=weights)
    with pytest.raises(InvalidInput, match=words):
        made.predict(people)


def test_columns_of_a_frame_may_have_numbers_for_names():
    people = np.random.default_rng(0).random((20, 3))
    model = LogisticRegression().fit(people, people[:, 0] + people[:, 1] > 1)
    made = limi.AveragedClassifier(model, values={0: [0.0, 1.0]}, weights=[0.5, 0.5])
    framed = pd.DataFrame(people)
    assert np.array_equal(made.predict_proba(framed), made.predict_proba(people))


def test_partners_that_count_nothing_do_not_bound_the_mean():
    swaps = Swaps({"a": [0.0, 1.0, 2.0]}, [0.5, 0.0, 0.5])
    rows = pd.DataFrame({"a": np.zeros(2)})
    found = swaps.average(rows, lambda asked: np.asarray(asked["a"]), None)
    assert np.array_equal(found, [1.0, 1.0])


def test_weights_of_the_table_are_shares_of_its_rows(fitted, frame):
    shares = dict(
        make_table(
            prepared(fitted, frame, ["sex"]).target, prepared(fitted, frame, ["sex"]).rows
        ).shares
    )
    for sex, share in frame["sex"].value_counts(normalize=True).items():
        assert shares[f"sex {sex}"] == pytest.approx(share)


def test_levels_that_are_two_things_make_one_class(frame):
    # Under F a B is what a C is under M, and a B under M what an A is under F.
    schema = Schema(
        (
            Column(name="sex", kind="categorical", levels=("F", "M")),
            Column(name="rank", kind="categorical", levels=("A", "B", "C", "D")),
            Column(name="income", kind="numerical", low=0, high=9, step=1),
        ),
        rules=Rules(
            roles=(
                Role(
                    protected="sex",
                    column="rank",
                    things=((("F", "A"), ("M", "B")), (("F", "B"), ("M", "C"))),
                ),
            )
        ),
    )
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], 300),
            "rank": rng.choice(["A", "B", "C", "D"], 300),
            "income": rng.integers(0, 10, 300),
        }
    )
    table["ok"] = np.where(rng.random(300) + (table["rank"] == "C") > 0.7, "yes", "no")
    encoder = make_column_transformer((OrdinalEncoder(), ["sex", "rank"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(10, random_state=0))
    model.fit(table.drop(columns="ok"), table["ok"])
    fair = prepared(averaged(model, table, schema=schema), table, ["sex"], schema)
    for asked in (fair.schema, fair.schema.unruled):
        assert not check_rows(fair.target.score, asked, anybody(asked, 80)).flips.any()


def test_a_number_with_many_values_is_averaged_over_its_quantiles(fitted, frame):
    fair = averaged(fitted, frame, ["age"], points=5)
    assert len(fair.weights) == 5
    assert fair.values["age"] == sorted(fair.values["age"])
    assert sum(fair.weights) == pytest.approx(1)
    assert [rule["column"] for rule in fair.along] == ["ages"]
    ages = dict(zip(fair.values["age"], fair.along[0]["values"], strict=True))
    assert all(told == ["young" if age < 40 else "old"] for age, told in ages.items())


def test_frames_of_all_libraries_and_arrays_give_the_same_answers(fitted, frame):
    fair = averaged(fitted, frame)
    table = frame.drop(columns="ok")
    expected = fair.predict_proba(table)
    assert np.array_equal(fair.predict_proba(pl.from_pandas(table)), expected)
    by_function = averaged(fitted_function(fitted), frame, output="score")
    assert np.allclose(by_function(table), expected[:, 1])
    assert np.allclose(by_function(pa.Table.from_pandas(table)), expected[:, 1])
    numbers = table[["age", "income"]].to_numpy(dtype=float)
    on_array = LogisticRegression(max_iter=500).fit(numbers, frame["ok"])
    two = SCHEMA.unruled.select(["age", "income"])
    small = frame[["age", "income", "ok"]]
    fair = averaged(on_array, small, ["age=20-60:20"], two)
    assert list(fair.values) == [0]
    assert len(np.unique(fair.predict_proba(np.array([[20.0, 50], [60.0, 50]]))[:, 1])) == 1


def fitted_function(model):
    def score(frame):
        given = frame.to_pandas() if isinstance(frame, pa.Table) else frame
        return model.predict_proba(given)[:, 1]

    return score


def test_the_protected_column_need_not_be_there(fitted, frame):
    fair = averaged(fitted, frame, schema=SCHEMA.unruled)
    table = frame.drop(columns="ok")
    without = fair.predict_proba(table.drop(columns="sex"))
    assert np.array_equal(without, fair.predict_proba(table))


def test_categories_keep_their_type(frame):
    seen = []

    class Watching(LogisticRegression):
        def predict_proba(self, X):
            seen.append(X["sex"].dtype)
            return np.full((len(X), 2), 0.5)

    model = Watching()
    model.classes_ = np.array(["no", "yes"])
    model.feature_names_in_ = np.array(["sex", "income"])
    table = frame.astype({"sex": "category"})
    limi.AveragedClassifier(model, {"sex": ["F", "M"]}, [0.5, 0.5]).predict_proba(table)
    assert set(seen) == {table["sex"].dtype}


def test_labels_are_averaged_by_vote_and_margins_by_mean(fitted, frame):
    table = frame.drop(columns="ok")
    fair = limi.AveragedClassifier(fitted, {"sex": ["F", "M", "X"]}, [0.5, 0.4, 0.1], reads="label")
    asked = [fitted.predict(table.assign(sex=sex)) == "yes" for sex in "FMX"]
    votes = np.average(asked, axis=0, weights=[0.5, 0.4, 0.1])
    assert np.allclose(fair.predict_proba(table)[:, 1], votes)
    linear = pipeline(LinearSVC()).fit(table, frame["ok"])
    fair = averaged(linear, frame, schema=SCHEMA.unruled, weights="uniform")
    assert fair.reads == "margin"
    margins = [linear.decision_function(table.assign(sex=sex)) for sex in "FMX"]
    assert np.allclose(fair.decision_function(table), np.mean(margins, axis=0))
    assert not hasattr(fair, "predict_proba")
    assert set(fair.predict(table)) == {"no", "yes"}


def test_log_odds_have_their_own_mean(fitted, frame):
    table = frame.drop(columns="ok")
    fair = averaged(fitted, frame, schema=SCHEMA.unruled, scale="log-odds", weights="uniform")
    shares = np.clip(
        [fitted.predict_proba(table.assign(sex=sex))[:, 1] for sex in "FMX"], 1e-3, 1 - 1e-3
    )
    odds = np.exp(np.mean(np.log(shares / (1 - shares)), axis=0))
    inside = ((shares > 0.01) & (shares < 0.99)).all(axis=0)
    got = fair.predict_proba(table)[:, 1]
    assert np.allclose(got[inside], (odds / (1 + odds))[inside])


def test_a_function_has_the_log_odds_of_the_classifier_that_it_asks(fitted, frame):
    table = frame.drop(columns="ok")
    told = {"schema": SCHEMA.unruled, "scale": "log-odds"}
    by_function = averaged(fitted_function(fitted), frame, output="score", **told)
    assert by_function.reads == "log-odds"
    expected = averaged(fitted, frame, **told).predict_proba(table)[:, 1]
    assert np.allclose(by_function(table), expected)


@pytest.mark.parametrize("wanted", [["high"], ["high", "mid"]])
def test_several_classes_are_averaged_by_their_probabilities(wanted):
    table = graded()
    model = RandomForestClassifier(5, random_state=0).fit(table[["sex", "income"]], table["grade"])
    fair = average(model, table, protected="sex", target="grade", favorable=wanted)
    asked = [model.predict_proba(table[["sex", "income"]].assign(sex=sex)) for sex in (0, 1)]
    expected = np.average(asked, axis=0, weights=fair.weights)
    assert np.allclose(fair.predict_proba(table), expected)


def test_numbers_of_a_regressor_are_averaged_by_their_mean():
    table = graded().drop(columns="grade")
    table["worth"] = 2.0 * table["income"] + 5 * table["sex"]
    model = RandomForestRegressor(5, random_state=0).fit(table[["sex", "income"]], table["worth"])
    fair = average(model, table, protected="sex", target="worth", weights="uniform")
    people = table[["sex", "income"]]
    asked = [model.predict(people.assign(sex=sex)) for sex in (0, 1)]
    assert np.allclose(fair(people), np.mean(asked, axis=0))


def graded():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.integers(2, size=200), "income": rng.integers(20, size=200)})
    worth = table["income"] + 4 * table["sex"]
    return table.assign(grade=np.select([worth < 8, worth < 15], ["low", "mid"], "high"))


def test_it_trains_again_as_any_estimator(frame):
    table = frame.drop(columns="ok")
    fair = averaged(pipeline(LogisticRegression(max_iter=500)).fit(table, frame["ok"]), frame)
    again = clone(fair).fit(table.iloc[::2], frame["ok"].iloc[::2])
    assert not np.allclose(again.predict_proba(table), fair.predict_proba(table))
    swapped = table.assign(sex="F", title="Mrs")
    some = table["title"].isin(["Mr", "Mrs", "Mx"])
    assert np.array_equal(again.predict(swapped[some]), again.predict(table[some]))


# -- thresholds -------------------------------------------------------------------------


def test_a_threshold_of_the_model_is_kept_and_its_probabilities_are_averaged(frame):
    table = frame.drop(columns="ok")
    inner = pipeline(LogisticRegression(max_iter=500))
    model = FixedThresholdClassifier(inner, threshold=0.3, pos_label="yes").fit(table, frame["ok"])
    fair = averaged(model, frame, schema=SCHEMA.unruled)
    assert (fair.reads, fair.threshold) == ("probability", 0.3)
    shares = fair.predict_proba(table)[:, 1]
    assert np.array_equal(fair.predict(table) == "yes", shares >= 0.3)
    target = prepared(fair, frame, ["sex"], SCHEMA.unruled).target
    assert np.array_equal(target.score(target.codec.encode(table)) > 0.5, shares >= 0.3)


@pytest.mark.parametrize("positive", ["yes", "no"])
def test_a_threshold_that_was_moved_decides_in_every_file(frame, positive, tmp_path):
    import onnxruntime

    table = frame.drop(columns="ok")
    inner = pipeline(LogisticRegression(max_iter=500))
    model = FixedThresholdClassifier(inner, threshold=0.4, pos_label=positive)
    problem = prepared(model.fit(table, frame["ok"]), frame, ["sex"], SCHEMA.unruled)
    partners = make_table(problem.target, problem.rows)
    plain = average_target(problem, problem.target, partners)
    scores = plain.target.score(problem.rows)
    moved = average_target(problem, problem.target, partners, threshold=0.6)
    at = tell_threshold(problem.target, 0.6)
    clear = np.abs(scores - 0.6) > 1e-6
    expected = scores[clear] > 0.6
    assert np.array_equal(moved.target.score(problem.rows)[clear] > 0.5, expected)
    shares = moved.native.predict_proba(table)[:, 1]
    assert np.array_equal(shares[clear] > at, expected)
    sio.dump(moved.native, tmp_path / "fair.skops")
    again = prepared(f"skops:{tmp_path / 'fair.skops'}", frame, ["sex"], SCHEMA.unruled)
    assert np.array_equal(again.target.score(problem.rows)[clear] > 0.5, expected)
    on_pipeline = limi.AveragedClassifier(
        **{**moved.native.get_params(deep=False), "estimator": moved.native.estimator.estimator_}
    )
    session = onnxruntime.InferenceSession(export(on_pipeline, table))
    label, _ = session.run(None, feed(session, table))
    assert np.array_equal(label[clear] == "yes", expected)


def test_a_function_moves_its_scores_and_a_margin_its_zero(fitted, frame):
    by_function = prepared(fitted_function(fitted), frame, ["sex"], SCHEMA.unruled)
    linear = pipeline(LinearSVC()).fit(frame.drop(columns="ok"), frame["ok"])
    for problem in (by_function, prepared(linear, frame, ["sex"], SCHEMA.unruled)):
        partners = make_table(problem.target, problem.rows)
        scores = average_target(problem, problem.target, partners).target.score(problem.rows)
        moved = average_target(problem, problem.target, partners, threshold=0.35)
        clear = np.abs(scores - 0.35) > 1e-6
        after = moved.target.score(problem.rows)
        assert np.array_equal(after[clear] > 0.5, scores[clear] > 0.35)


@pytest.mark.parametrize(
    ("scores", "wanted", "threshold"),
    [
        ([0.1, 0.2, 0.4, 0.45], 2, 0.3),
        ([0.1, 0.2, 0.4, 0.45], 0, 0.725),
        ([0.1, 0.2, 0.4, 0.45], 4, 0.05),
        ([0.2, 0.6, 0.6, 0.6], 2, 0.4),  # three are nearer than none
        ([0.3, 0.3, 0.8, 0.8], 3, 0.55),  # two or four: the one nearer to 0.5
    ],
)
def test_the_threshold_that_keeps_a_share_lies_between_two_scores(scores, wanted, threshold):
    assert keep_share(np.array(scores), wanted) == pytest.approx(threshold)


def test_scikit_learn_takes_it_for_fitted_and_nobody_for_nobody(fitted, frame):
    fair = averaged(fitted, frame)
    check_is_fitted(fair)
    assert fair.predict_proba(frame.drop(columns="ok")[:0]).shape == (0, 2)
    assert not hasattr(clone(fair), "estimator_")
    with pytest.raises(NotFittedError):
        check_is_fitted(limi.AveragedClassifier(LogisticRegression(), {"sex": ["F"]}, [1.0]))


# -- files ------------------------------------------------------------------------------


def test_a_skops_file_opens_without_a_word(fitted, frame, tmp_path):
    fair = averaged(fitted, frame)
    sio.dump(fair, tmp_path / "fair.skops")
    model = models.load(f"skops:{tmp_path / 'fair.skops'}", favorable="yes", labels=("no", "yes"))
    table = frame.drop(columns="ok")
    assert np.allclose(model.score(table), fair.predict_proba(table)[:, 1])


@pytest.mark.parametrize("name", ["limi.Budget", "limi.models._averaged.AveragedFunction"])
def test_nothing_else_of_limi_opens(name):
    from limi.models.skops import _is_own

    assert _is_own("limi.AveragedClassifier")
    assert not _is_own(name)


@pytest.mark.parametrize("scale", ["probability", "log-odds"])
@pytest.mark.parametrize("protected", [["sex"], ["sex", "age=20-60:20"]])
def test_onnx_says_the_same(frame, protected, scale, tmp_path):
    import onnxruntime

    table = frame.drop(columns="ok")
    model = pipeline(LogisticRegression(max_iter=500)).fit(table, frame["ok"])
    fair = averaged(model, frame, protected, scale=scale)
    session = onnxruntime.InferenceSession(export(fair, table))
    anyone = prepared(model, frame, protected).target.present(anybody(SCHEMA.protect(protected)))
    for asked in (table, anyone):
        label, shares = session.run(None, feed(session, asked))
        assert np.allclose(shares, fair.predict_proba(asked), atol=1e-5)
        sure = np.abs(shares[:, 1] - 0.5) > 1e-5
        assert np.array_equal(label[sure], fair.predict(asked)[sure])
    (tmp_path / "fair.onnx").write_bytes(export(fair, table))
    place = f"onnx:{tmp_path / 'fair.onnx'}"
    after = prepared(place, frame, protected)
    assert not check_rows(after.target.score, after.schema, anybody(after.schema)).flips.any()


def feed(session, frame):
    return {
        one.name: frame[one.name]
        .to_numpy()
        .astype(object if one.type == "tensor(string)" else np.float32)
        .reshape(-1, 1)
        for one in session.get_inputs()
    }


def test_onnx_of_an_array_model_and_of_votes(frame):
    import onnxruntime

    numbers = frame[["age", "income"]].to_numpy(dtype=float)
    model = LogisticRegression(max_iter=500).fit(numbers, frame["ok"] == "yes")
    fair = limi.AveragedClassifier(model, {0: [20.0, 60.0]}, [0.25, 0.75], reads="label")
    session = onnxruntime.InferenceSession(export(fair, numbers))
    label, shares = session.run(None, {"X": numbers.astype(np.float32)})
    assert np.allclose(shares, fair.predict_proba(numbers))
    assert np.array_equal(label.astype(bool), fair.predict(numbers))


def test_onnx_of_boosted_trees_says_the_same(frame):
    import onnxruntime

    table = frame.drop(columns="ok")
    model = pipeline(HistGradientBoostingClassifier(max_iter=5)).fit(table, frame["ok"])
    fair = averaged(model, frame, schema=SCHEMA.unruled)
    session = onnxruntime.InferenceSession(export(fair, table))
    _, shares = session.run(None, feed(session, table))
    assert np.allclose(shares, fair.predict_proba(table), atol=1e-5)


def test_margins_are_not_written_as_onnx(frame):
    fair = limi.AveragedClassifier(LinearSVC(), {"sex": ["F", "M"]}, [0.5, 0.5], reads="margin")
    with pytest.raises(InvalidInput, match="skops file"):
        export(fair, frame)


# -- bad input --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"weights": {"sex": {"F": 0.5, "M": 0.4}}}, "sum to 0.9"),
        ({"weights": {"sex": {"F": 1.5, "M": -0.5}}}, "between 0 and 1"),
        ({"weights": {"sex": {"F": 0.5, "W": 0.5}}}, "'W' is not a value"),
        ({"weights": {"race": {"F": 1.0}}}, "not a protected column"),
        ({"weights": {}}, "not for 'sex'"),
        ({"weights": {"sex": 1.0}}, "a number for each value"),
        ({"weights": "equal"}, "'table', 'uniform'"),
        ({"scale": "odds"}, "'log-odds'"),
        ({"points": 1}, "at least two"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(fitted, frame, told, words):
    with pytest.raises(InvalidInput, match=words):
        averaged(fitted, frame, **told)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["uniform", "table"], "the share of every value of each column"),
        (["sex=F:0.5,M"], "a colon"),
        (["sex=F:1.0", "sex=M:1.0"], "the share of every value of each column"),
        (["=F:1.0"], "the share of every value of each column"),
        (["sex"], "the share of every value of each column"),
        (["sex=F:0.5,F:0.5"], "names a value twice"),
    ],
)
def test_weights_on_the_command_line_that_make_no_sense(given, words):
    with pytest.raises(InvalidInput, match=words):
        parse_weights(given)


def test_weights_on_the_command_line():
    assert parse_weights([]) == "table"
    assert parse_weights(["uniform"]) == "uniform"
    given = ["sex=F:0.25,M:0.75", "place=a:b:0.5,c:0.5"]
    assert parse_weights(given) == {
        "sex": {"F": 0.25, "M": 0.75},
        "place": {"a:b": 0.5, "c": 0.5},
    }


def test_a_blind_model_has_nothing_to_average(frame):
    schema = SCHEMA.unruled
    blind = LogisticRegression(max_iter=500).fit(frame[["age", "income"]], frame["ok"])
    with pytest.raises(InvalidInput, match="twin"):
        averaged(blind, frame, schema=schema)


def test_values_that_the_model_refuses_are_left_out(frame):
    known = frame[frame["sex"] != "X"].reset_index(drop=True)
    model = pipeline().fit(known.drop(columns="ok"), known["ok"])
    problem = prepared(model, known, ["sex"], SCHEMA.unruled)
    table = make_table(problem.target, problem.rows)
    assert table.values["sex"] == ["F", "M"]
    assert sum(table.weights) == pytest.approx(1)
    assert "sex X was left out" in table.notes[0]


def test_without_a_table_the_weights_name_the_values(fitted, frame):
    fair = average(fitted, protected="sex", weights={"sex": {"F": 0.25, "M": 0.75}})
    table = frame.drop(columns="ok").assign(title="Dr")
    asked = [fitted.predict_proba(table.assign(sex=sex)) for sex in "FM"]
    assert np.allclose(fair.predict_proba(table), 0.25 * asked[0] + 0.75 * asked[1])
    with pytest.raises(InvalidInput, match="table as the second"):
        average(fitted, protected="sex")
    with pytest.raises(InvalidInput, match="nothing to average"):
        average(fitted, protected="race", weights={"race": {"a": 0.5, "b": 0.5}})
    with pytest.raises(InvalidInput, match="columns to average over"):
        average(fitted, protected=[], weights={"sex": {"F": 0.5, "M": 0.5}})


def test_a_rule_over_too_many_values_is_told(frame):
    real = Schema(
        tuple(
            Column(name="income", kind="numerical", low=0, high=100) if c.name == "income" else c
            for c in SCHEMA.columns
        ),
        rules=Rules(constraints=(("rich", 'sex == "X" implies income < 90'),)),
    )
    kept = frame[(frame["sex"] != "X") | (frame["income"] < 90)].reset_index(drop=True)
    model = pipeline().fit(kept.drop(columns="ok"), kept["ok"])
    problem = prepared(model, kept, ["sex"], real)
    table = make_table(problem.target, problem.rows)
    assert "too many values to list" in table.notes[0]
    assert not table.closed


def test_a_saved_model_is_bytes_of_lists(fitted, frame):
    content = sio.dumps(averaged(fitted, frame))
    asked = sio.get_untrusted_types(data=io.BytesIO(content).getvalue())
    assert [name for name in asked if not name.startswith("sklearn.")] == [
        "limi.AveragedClassifier"
    ]

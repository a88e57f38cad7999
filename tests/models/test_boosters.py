"""XGBoost, LightGBM and CatBoost beyond the common table."""

import json

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost

from limi import models
from limi.errors import BadModel
from limi.models._categories import _places
from tests.models.kinds import catboost_model, lightgbm_model, whole, xgboost_model
from tests.models.people import bound, numbers, people, scored, truth, typed

# -- XGBoost ------------------------------------------------------------------------------


def trained(objective, frame=None, **given):
    data = xgboost.DMatrix(numbers() if frame is None else frame, truth(), enable_categorical=True)
    return xgboost.train({"objective": objective, **given}, data, 3)


@pytest.mark.parametrize(
    "objective",
    ["binary:logistic", "binary:logitraw", "binary:hinge", "reg:logistic", "multi:softprob"],
)
@pytest.mark.parametrize("favorable", [0, 1])
def test_boosters_of_two_classes(objective, favorable):
    booster = trained(objective, **({"num_class": 2} if "multi" in objective else {}))
    raw = booster.predict(xgboost.DMatrix(numbers()))
    second = raw.argmax(axis=1) == 1 if raw.ndim == 2 else raw > (0 if "raw" in objective else 0.5)
    favors = scored(booster, numbers(), favorable=favorable) > 0.5
    assert np.array_equal(favors, second if favorable else ~second)


def test_a_linear_booster():
    booster = trained("binary:logistic", booster="gblinear")
    expected = booster.predict(xgboost.DMatrix(numbers()))
    np.testing.assert_allclose(scored(booster, numbers()), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: trained("reg:squarederror"), "objective 'reg:squarederror' over 1 outputs"),
        (
            lambda: trained("multi:softprob", num_class=3),
            "objective 'multi:softprob' over 3 outputs",
        ),
        (xgboost.XGBClassifier, "XGBClassifier is not a fitted classifier"),
        (lambda: xgboost.XGBRegressor(n_estimators=2).fit(numbers(), truth()), "not a regressor"),
        (
            lambda: xgboost.XGBClassifier(n_estimators=2).fit(numbers(), people().grade - 1),
            "4 classes (0, 1, 2, 3)",
        ),
    ],
)
def test_boosters_that_do_not_decide_between_two(build, says):
    with pytest.raises(BadModel) as caught:
        models.wrap(build())
    assert says in str(caught.value)


def test_a_classifiers_file_stops_where_the_classifier_does(tmp_path):
    half = slice(0, 200)
    model = xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=2, learning_rate=1.0)
    model.fit(
        numbers()[half], truth()[half], eval_set=[(numbers()[200:], truth()[200:])], verbose=0
    )
    assert model.best_iteration < model.get_booster().num_boosted_rounds() - 1
    model.save_model(tmp_path / "a.json")
    expected = model.predict_proba(numbers())[:, 1]
    np.testing.assert_allclose(
        scored(f"xgboost:{tmp_path / 'a.json'}", numbers()), expected, atol=1e-6
    )


def test_text_where_numbers_were_trained_on_is_refused():
    model = xgboost.XGBClassifier(n_estimators=2).fit(numbers(), truth())
    frame = numbers().assign(grade=people().grade.map(str))
    for given in (frame, frame.astype({"grade": "category"})):
        with pytest.raises(
            BadModel, match="trained on numbers in grade, where the table holds text"
        ):
            bound(model, given)


def test_a_value_that_the_model_never_saw_is_named():
    frame = people().assign(city=people().city.replace("Ulm", "Jena"))
    with pytest.raises(
        BadModel, match="column 'city' holds 'Jena', which the model was not trained"
    ):
        bound(xgboost_model(), frame)


def test_categories_of_numbers_survive_gaps():
    frame = numbers().assign(grade=people().grade.astype("category"))
    model = xgboost.XGBClassifier(n_estimators=5, enable_categorical=True).fit(frame, truth())
    given = frame.assign(grade=people().grade.astype(float))
    np.testing.assert_allclose(scored(model, given), model.predict_proba(frame)[:, 1], atol=1e-6)


@pytest.mark.parametrize("order", [["Ulm", "Köln", "Bonn"], ["Bonn", "Ulm", "Köln"]])
def test_names_beyond_ascii_keep_their_meaning_in_any_order(order):
    frame = typed()[["age", "city"]]
    model = xgboost.XGBClassifier(n_estimators=8, enable_categorical=True).fit(frame, truth())
    given = frame.assign(city=frame.city.cat.reorder_categories(order))
    np.testing.assert_allclose(scored(model, given), model.predict_proba(frame)[:, 1], atol=1e-6)


def test_cut_names_are_mended_or_refused():
    stored = [b"Bonn", "Köl".encode(), b"nUl"]
    assert _places(["Bonn", "Köln", "Ulm"], stored).tolist() == [0, 1, 2]
    assert _places(["Jena"], stored).tolist() == [-1]
    assert _places(["b"], ["ä".encode(), b"b"]).tolist() == [1]


def test_a_model_without_stored_categories_takes_the_tables_own(tmp_path):
    model = xgboost_model()
    model.save_model(tmp_path / "a.json")
    saved = json.loads((tmp_path / "a.json").read_text())
    empty = {"offsets": [], "values": []}
    cats = saved["learner"]["gradient_booster"]["model"]["cats"]
    cats["enc"] = [empty] * len(cats["enc"])
    (tmp_path / "a.json").write_text(json.dumps(saved))
    place = f"xgboost:{tmp_path / 'a.json'}"
    np.testing.assert_allclose(
        scored(place, typed()), model.predict_proba(typed())[:, 1], atol=1e-6
    )
    with pytest.raises(BadModel, match="where the table holds text"):
        bound(place, people())


# -- LightGBM -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lightgbm.LGBMClassifier, "LGBMClassifier is not a fitted classifier"),
        (
            lambda: lightgbm.LGBMRegressor(n_estimators=2, verbose=-1).fit(numbers(), truth()),
            "regressor",
        ),
        (
            lambda: lightgbm.train(
                {"objective": "regression", "verbose": -1}, lightgbm.Dataset(numbers(), truth()), 2
            ),
            "objective 'regression' over 1 outputs",
        ),
        (
            lambda: (
                lightgbm.LGBMClassifier(n_estimators=2, verbose=-1)
                .fit(numbers(), people().grade)
                .booster_
            ),
            "objective 'multiclass' over 4 outputs",
        ),
    ],
)
def test_lightgbm_models_that_do_not_decide_between_two(build, says):
    with pytest.raises(BadModel) as caught:
        models.wrap(build())
    assert says in str(caught.value)


def test_a_booster_of_two_outputs():
    data = lightgbm.Dataset(numbers(), truth())
    booster = lightgbm.train({"objective": "multiclass", "num_class": 2, "verbose": -1}, data, 3)
    expected = booster.predict(numbers())[:, 1]
    np.testing.assert_allclose(scored(booster, numbers()), expected, atol=1e-9)


def test_names_with_blanks_are_found_again(tmp_path):
    frame = numbers().rename(columns={"age": "age in years"})
    model = lightgbm.LGBMClassifier(n_estimators=4, verbose=-1).fit(frame, truth())
    model.booster_.save_model(tmp_path / "a.txt")
    expected = model.predict_proba(frame)[:, 1]
    for given in (model, f"lightgbm:{tmp_path / 'a.txt'}"):
        np.testing.assert_allclose(scored(given, frame), expected, atol=1e-9)


def test_an_array_classifier_takes_any_names():
    model = lightgbm.LGBMClassifier(n_estimators=4, verbose=-1).fit(numbers().to_numpy(), truth())
    expected = model.predict_proba(numbers().to_numpy())[:, 1]
    np.testing.assert_allclose(scored(model, numbers()), expected, atol=1e-9)


def test_categories_in_another_order_mean_the_same():
    model = lightgbm_model()
    given = typed().assign(job=typed().job.cat.reorder_categories(["nurse", "smith", "clerk"]))
    expected = model.predict_proba(typed())[:, 1]
    np.testing.assert_allclose(scored(model, given), expected, atol=1e-9)
    np.testing.assert_allclose(scored(model.booster_, given), expected, atol=1e-9)


def test_a_category_column_that_no_tree_uses():
    frame = typed()[["age", "sex"]].assign(only=pd.Categorical(["x"] * 400))
    model = lightgbm.LGBMClassifier(n_estimators=4, verbose=-1).fit(frame, truth())
    expected = model.predict_proba(frame)[:, 1]
    text = frame.astype({"sex": str, "only": str})
    np.testing.assert_allclose(scored(model.booster_, text), expected, atol=1e-9)
    with pytest.raises(BadModel, match="2 columns of categories and the table has 1"):
        scored(model.booster_, text.assign(only=1))


def test_text_in_a_lightgbm_column_of_numbers_is_refused():
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(numbers(), truth())
    with pytest.raises(BadModel, match="trained on numbers in grade, where the table holds text"):
        bound(model, numbers().assign(grade=people().grade.map(str)))


# -- CatBoost -----------------------------------------------------------------------------


def test_a_threshold_set_on_the_model_decides(tmp_path):
    model = catboost_model()
    model.set_probability_threshold(0.8)
    model.save_model(str(tmp_path / "a.cbm"))
    target = bound(f"catboost:{tmp_path / 'a.cbm'}", whole(), favorable="good")
    scores = target.score(target.codec.encode(whole()))
    assert np.array_equal(scores > 0.5, model.predict_proba(whole())[:, 1] > 0.8)
    assert "a threshold of its own" in target.notes[0]


def test_missing_categories_are_refused_with_a_way_out():
    with pytest.raises(BadModel, match="no missing cells in categories, but city may have them"):
        bound(catboost_model(), people(), favorable="good")


def test_an_array_model_of_catboost():
    model = catboost.CatBoostClassifier(iterations=3, verbose=0, allow_writing_files=False)
    model.fit(numbers().to_numpy(), truth())
    expected = model.predict_proba(numbers().to_numpy())[:, 1]
    np.testing.assert_allclose(scored(model, numbers()), expected, atol=1e-9)


def test_text_in_a_catboost_column_of_numbers_is_refused():
    model = catboost_model()
    with pytest.raises(BadModel, match="trained on numbers in age, where the table holds text"):
        bound(model, whole().assign(age=whole().age.map(str)), favorable="good")


def test_catboost_models_that_do_not_decide_between_two(tmp_path):
    quiet = {"iterations": 2, "verbose": 0, "allow_writing_files": False}
    with pytest.raises(BadModel, match="CatBoostClassifier is not a fitted classifier"):
        models.wrap(catboost.CatBoostClassifier())
    regressor = catboost.CatBoostRegressor(**quiet).fit(numbers(), truth())
    with pytest.raises(BadModel, match="CatBoostRegressor is not a fitted classifier"):
        models.wrap(regressor)
    regressor.save_model(str(tmp_path / "a.cbm"))
    with pytest.raises(BadModel, match="not a regressor"):
        models.load(f"catboost:{tmp_path / 'a.cbm'}")
    several = catboost.CatBoostClassifier(**quiet).fit(numbers(), people().grade)
    with pytest.raises(BadModel, match="4 classes"):
        models.wrap(several)


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "catboost"])
def test_other_files_are_none(kind, tmp_path):
    (tmp_path / "a").write_text("hello")
    with pytest.raises(BadModel) as caught:
        models.load(f"{kind}:{tmp_path / 'a'}")
    assert "cannot be read as a" in str(caught.value)
    assert "\n" not in str(caught.value)

"""XGBoost, LightGBM and CatBoost beyond the common table."""

import json
import re

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost

from limi import models
from limi.errors import BadModel, GivesNumbers, InvalidInput
from limi.models._categories import _places
from limi.models.xgboost import _check as xgboost_check
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
        (lambda: trained("reg:squarederror"), "objective 'reg:squarederror' and returns numbers"),
        (
            lambda: trained("multi:softprob", num_class=3),
            "objective 'multi:softprob' over 3 outputs",
        ),
        (xgboost.XGBClassifier, "XGBClassifier is not a fitted classifier"),
        (lambda: xgboost.XGBRegressor(n_estimators=2).fit(numbers(), truth()), "is a regressor"),
        (
            lambda: xgboost.XGBClassifier(n_estimators=2).fit(numbers(), people().grade - 1),
            "4 classes (0, 1, 2, 3)",
        ),
    ],
)
def test_boosters_that_do_not_decide_between_two(build, says):
    with pytest.raises((BadModel, InvalidInput)) as caught:
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
        with pytest.raises(BadModel, match="trained on numbers in grade, but the table holds text"):
            bound(model, given)


def test_a_value_that_the_model_never_saw_is_named():
    frame = people().assign(city=people().city.replace("Ulm", "Jena"))
    with pytest.raises(
        BadModel, match="column 'city' holds 'Jena', which the model has never seen"
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
    with pytest.raises(BadModel, match="but the table holds text"):
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
            "objective 'regression' and returns numbers",
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
    with pytest.raises(BadModel, match="2 categorical columns, but the table has 1"):
        scored(model.booster_, text.assign(only=1))


def test_text_in_a_lightgbm_column_of_numbers_is_refused():
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(numbers(), truth())
    with pytest.raises(BadModel, match="trained on numbers in grade, but the table holds text"):
        bound(model, numbers().assign(grade=people().grade.map(str)))


# -- CatBoost -----------------------------------------------------------------------------


def test_a_threshold_set_on_the_model_decides(tmp_path):
    model = catboost_model()
    model.set_probability_threshold(0.8)
    model.save_model(str(tmp_path / "a.cbm"))
    target = bound(f"catboost:{tmp_path / 'a.cbm'}", whole(), favorable="good")
    scores = target.score(target.codec.encode(whole()))
    assert np.array_equal(scores > 0.5, model.predict_proba(whole())[:, 1] > 0.8)
    assert "its own threshold" in target.notes[0]


def test_missing_categories_are_refused_with_a_way_out():
    with pytest.raises(BadModel, match="not accept missing categories, but city may have them"):
        bound(catboost_model(), people(), favorable="good")


def test_an_array_model_of_catboost():
    model = catboost.CatBoostClassifier(iterations=3, verbose=0, allow_writing_files=False)
    model.fit(numbers().to_numpy(), truth())
    expected = model.predict_proba(numbers().to_numpy())[:, 1]
    np.testing.assert_allclose(scored(model, numbers()), expected, atol=1e-9)


def test_text_in_a_catboost_column_of_numbers_is_refused():
    model = catboost_model()
    with pytest.raises(BadModel, match="trained on numbers in age, but the table holds text"):
        bound(model, whole().assign(age=whole().age.map(str)), favorable="good")


def test_catboost_models_that_do_not_decide_between_two(tmp_path):
    quiet = {"iterations": 2, "verbose": 0, "allow_writing_files": False}
    with pytest.raises(BadModel, match="CatBoostClassifier is not a fitted classifier"):
        models.wrap(catboost.CatBoostClassifier())
    regressor = catboost.CatBoostRegressor(**quiet).fit(numbers(), truth())
    with pytest.raises(GivesNumbers, match="CatBoostRegressor is a regressor"):
        models.wrap(regressor)
    regressor.save_model(str(tmp_path / "a.cbm"))
    with pytest.raises(GivesNumbers, match="is a regressor"):
        models.load(f"catboost:{tmp_path / 'a.cbm'}")
    several = catboost.CatBoostClassifier(**quiet).fit(numbers(), people().grade)
    with pytest.raises(InvalidInput, match="4 classes"):
        models.wrap(several)
    scores = models.wrap(several, favorable=(1, 3), labels=(1, 2, 3, 4)).score(numbers())
    assert np.array_equal(scores > 0.5, np.isin(several.predict(numbers())[:, 0], [1, 3]))


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "catboost"])
def test_other_files_are_none(kind, tmp_path):
    (tmp_path / "a").write_text("hello")
    with pytest.raises(BadModel) as caught:
        models.load(f"{kind}:{tmp_path / 'a'}")
    assert "cannot be read as a" in str(caught.value)
    assert "\n" not in str(caught.value)


# -- trees that lead nowhere --------------------------------------------------------------


def saved_trees(path, **given):
    """An XGBoost file, and its content to be edited."""
    trained("binary:logistic", **given).save_model(path)
    return json.loads(path.read_text())


def model_of(content):
    booster = content["learner"]["gradient_booster"]
    return booster.get("gbtree", booster)["model"]


# A number that the library does not look up when it loads, so that nothing crashes here.
@pytest.mark.parametrize("booster", ["gbtree", "dart"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("left_children", 10**6),
        ("right_children", 10**6),
        ("left_children", 0),
        ("right_children", 1),
        ("left_children", -7),
        ("split_indices", 3),
        ("split_indices", 10**6),
    ],
)
def test_xgboost_trees_that_lead_nowhere_are_not_walked(name, value, booster, tmp_path):
    content = saved_trees(tmp_path / "a.json", booster=booster)
    xgboost_check(content["learner"])
    model_of(content)["trees"][-1][name][0] = value
    with pytest.raises(ValueError, match="its trees lead nowhere"):
        xgboost_check(content["learner"])


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model["tree_info"].__setitem__(0, 5),
        lambda model: model["tree_info"].__setitem__(0, -1),
        lambda model: model["tree_info"].pop(),
        lambda model: model["iteration_indptr"].__setitem__(-1, 900),
        lambda model: model["trees"][0]["split_conditions"].pop(),
        lambda model: model["trees"][0]["split_type"].__setitem__(0, 1),
        lambda model: model["trees"][0]["tree_param"].update(size_leaf_vector="9"),
    ],
)
def test_xgboost_trees_that_do_not_fit_each_other_are_not_walked(change, tmp_path):
    content = saved_trees(tmp_path / "a.json")
    change(model_of(content))
    with pytest.raises(ValueError, match="its trees do not fit each other"):
        xgboost_check(content["learner"])


def test_xgboost_categories_lie_in_their_list(tmp_path):
    content = saved_trees(tmp_path / "a.json", frame=typed(), max_cat_to_onehot=1)
    xgboost_check(content["learner"])
    tree = next(t for t in model_of(content)["trees"] if t["categories_nodes"])
    tree["categories_sizes"][0] += 1000
    with pytest.raises(ValueError, match="its trees do not fit each other"):
        xgboost_check(content["learner"])


def test_a_linear_xgboost_model_has_a_weight_for_each_column(tmp_path):
    content = saved_trees(tmp_path / "a.json", booster="gblinear")
    assert models.load(f"xgboost:{tmp_path / 'a.json'}").n_columns == 3
    content["learner"]["gradient_booster"]["model"]["weights"].pop()
    with pytest.raises(ValueError, match="its weights are not one for each column"):
        xgboost_check(content["learner"])


@pytest.mark.parametrize("ending", ["json", "ubj"])
def test_a_file_is_checked_by_what_the_library_has_read(ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    booster = trained("binary:logistic")
    content = json.loads(booster.save_raw("json"))
    content["learner"]["gradient_booster"]["model"]["tree_info"][0] = 1
    edited = xgboost.Booster(model_file=bytearray(json.dumps(content).encode()))
    edited.save_model(path)
    with pytest.raises(BadModel, match="its trees do not fit each other"):
        models.load(f"xgboost:{path}")


def lightgbm_text(path):
    odd_or_old = (numbers().grade % 2 == 1) ^ (numbers().age > 60)  # splits of both kinds
    lightgbm.LGBMClassifier(
        n_estimators=3, num_leaves=6, verbose=-1, min_data_per_group=1, cat_smooth=0.01
    ).fit(numbers(), odd_or_old, categorical_feature=["grade"]).booster_.save_model(path)
    return path.read_text()


def changed(text, name, change):
    """The text with the numbers of the second tree's line changed, and its size as it says."""
    head, first, second, *rest = re.split(r"(?=^Tree=)", text, flags=re.MULTILINE)
    before = re.search(rf"^{name}=(.*)$", second, re.MULTILINE)[1]
    after = " ".join(map(str, change(before.split())))
    edited = second.replace(f"{name}={before}\n", f"{name}={after}\n")
    assert edited != second
    sizes = re.search(r"^tree_sizes=(.*)$", head, re.MULTILINE)[1]
    told = sizes.split()
    told[1] = str(int(told[1]) + len(edited) - len(second))
    head = head.replace(f"tree_sizes={sizes}", f"tree_sizes={' '.join(told)}")
    return "".join([head, first, edited, *rest])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("left_child", lambda numbers: [10**6, *numbers[1:]]),
        ("left_child", lambda numbers: [0, *numbers[1:]]),
        ("right_child", lambda numbers: [-(10**6), *numbers[1:]]),
        ("right_child", lambda numbers: [numbers[0]] * len(numbers)),
        ("left_child", lambda numbers: numbers[:-1]),
        ("left_child", lambda numbers: [*numbers, 1]),
        ("split_feature", lambda numbers: [3, *numbers[1:]]),
        ("split_feature", lambda numbers: [-1, *numbers[1:]]),
        ("threshold", lambda numbers: numbers[:-1]),
        ("leaf_value", lambda numbers: numbers[:-1]),
        ("num_leaves", lambda numbers: [900]),
        ("num_leaves", lambda numbers: [0]),
        ("num_leaves", lambda numbers: ["x"]),
        ("decision_type", lambda numbers: [1] * len(numbers)),
    ],
)
def test_lightgbm_trees_that_lead_nowhere_are_not_walked(name, change, tmp_path):
    path = tmp_path / "a.txt"
    text = lightgbm_text(path)
    models.load(f"lightgbm:{path}")
    path.write_text(changed(text, name, change))
    with pytest.raises(BadModel, match="cannot be read as a LightGBM model"):
        models.load(f"lightgbm:{path}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tree_sizes=", "tree_sizes=9"),
        ("max_feature_idx=2", "max_feature_idx=0"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=9"),
        ("num_class=1", "num_class=0"),
        ("num_leaves=", "num_leaves=2\nnum_leaves="),
        ("cat_boundaries=0", "cat_boundaries=7"),
    ],
)
def test_lightgbm_files_that_contradict_themselves_are_not_read(before, after, tmp_path):
    path = tmp_path / "a.txt"
    text = lightgbm_text(path)
    assert before in text
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(BadModel, match="cannot be read as a LightGBM model"):
        models.load(f"lightgbm:{path}")


def test_lightgbm_files_cut_anywhere_in_their_trees_are_one_sentence(tmp_path):
    path = tmp_path / "a.txt"
    whole = lightgbm_text(path).encode()
    for end in range(0, whole.index(b"end of trees") + len("end of trees"), 13):
        path.write_bytes(whole[:end])
        with pytest.raises(BadModel, match="cannot be read as a LightGBM model"):
            models.load(f"lightgbm:{path}")

"""Readers: the trees of a library say what the library says, on every row."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from limi.audits.problem import prepare
from limi.errors import BadModel
from limi.table.rows import uniform
from limi.trees import _catboost, _xgboost
from limi.trees.ensemble import DOUBLE, SINGLE, Categories, Tree, join_trees
from limi.trees.lattice import build_lattice
from limi.trees.reading import TOLERANCE, read_trees
from tests.trees.cases import CASES, coded, draw_table, split, with_gaps

pytestmark = pytest.mark.usefixtures("untried")

NOTHING_WHOLE = np.zeros(5, dtype=bool)


def problem_of(name, *, favorable=1, gaps=True, seed=0, **told):
    rng = np.random.default_rng(seed)
    frame = draw_table(rng)
    if gaps and "onnx" not in name:
        frame = with_gaps(frame, rng)
    model, frame = CASES[name](frame, seed)
    return prepare(model, frame, protected="sex", target="good", favorable=favorable, **told)


@pytest.mark.parametrize("name", CASES)
def test_trees_say_what_the_model_says(name):
    problem = problem_of(name, favorable=len(name) % 2)
    reading = read_trees(problem.target)
    # Rows of the table, and rows from everywhere in its domain.
    rows = np.concatenate([problem.rows, uniform(problem.schema, 1500, np.random.default_rng(1))])
    assert reading.conform(rows) <= TOLERANCE
    lattice = build_lattice(reading, problem.rows[:1], NOTHING_WHOLE)
    assert np.array_equal(lattice.margins(lattice.atoms(rows)), reading.margins(rows))
    again = lattice.rows(lattice.atoms(rows), problem.rows[np.zeros(len(rows), dtype=int)])
    assert np.array_equal(lattice.atoms(again), lattice.atoms(rows))


@pytest.mark.parametrize("name", ["forest", "xgboost", "onnx boosting"])
def test_a_threshold_of_the_user_moves_the_edge(name):
    problem = problem_of(name, decision="score > 0.3")
    assert read_trees(problem.target).conform(problem.rows) <= TOLERANCE


def test_values_at_a_threshold_go_where_the_library_sends_them():
    """Thresholds of boosters are float32, and values of the table in float64 lie beside them."""
    import xgboost

    rng = np.random.default_rng(3)
    frame = coded(draw_table(rng)).assign(pay=lambda f: (f.pay / 3).astype(np.float64))
    model = xgboost.XGBClassifier(n_estimators=8, max_depth=3).fit(*split(frame))
    problem = prepare(model, frame, protected="sex", target="good", favorable=1)
    reading = read_trees(problem.target)
    lattice = build_lattice(reading, problem.rows[:1], NOTHING_WHOLE)
    place = problem.schema.position("pay")
    turns = lattice.axes[place].last
    assert len(turns) > 3
    for turn in turns:
        row = np.repeat(problem.rows[:1], 2, axis=0)
        row[:, place] = turn, np.nextafter(turn, np.inf)
        features = reading.features(row)[:, place]
        asked = reading.ensemble.threshold[reading.ensemble.feature == place]
        below = features[:, None] < asked
        assert (below[0] & ~below[1]).any()


def test_early_stopping_ends_the_trees():
    import xgboost

    frame = coded(draw_table(np.random.default_rng(4)))
    rows, labels = split(frame)
    model = xgboost.XGBClassifier(n_estimators=40, max_depth=4, early_stopping_rounds=2)
    model.fit(rows[:150], labels[:150], eval_set=[(rows[150:], labels[150:])], verbose=False)
    problem = prepare(model, frame, protected="sex", target="good", favorable=1)
    reading = read_trees(problem.target)
    assert reading.ensemble.n_trees == model.best_iteration + 1 < 40
    assert reading.conform(problem.rows) <= TOLERANCE


def test_json_of_catboost_is_read_without_the_library():
    """Two levels: the first question is the lowest bit of a leaf's number."""
    model = {
        "features_info": {"float_features": [
            {"feature_index": 0, "flat_feature_index": 0, "nan_value_treatment": "AsFalse"},
            {"feature_index": 1, "flat_feature_index": 1, "nan_value_treatment": "AsTrue"},
        ]},
        "oblivious_trees": [{
            "leaf_values": [1.0, 2.0, 4.0, 8.0],
            "splits": [
                {"float_feature_index": 0, "border": 0.5, "split_type": "FloatFeature"},
                {"float_feature_index": 1, "border": 0.5, "split_type": "FloatFeature"},
            ],
        }],
        "scale_and_bias": [2.0, [0.25]],
    }  # fmt: skip
    trees = _catboost.of_json(json.loads(json.dumps(model)), favorable=1).ensemble
    rows = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [np.nan, 0], [0, np.nan]])
    assert trees.margins(rows).tolist() == [2.25, 4.25, 8.25, 16.25, 2.25, 8.25]


def test_sums_of_libraries_stay_within_the_slack():
    """Leaves that cancel in the worst order, added in every precision and order."""
    rng = np.random.default_rng(5)
    for unit, dtype in ((SINGLE, np.float32), (DOUBLE, np.float64)):
        for n in (3, 50, 800):
            leaves = rng.normal(0, 1, n) * 10.0 ** rng.integers(-6, 3, n)
            leaves = np.concatenate([leaves, -leaves * (1 + 1e-7)]).astype(dtype).astype(float)
            trees = [Tree([-1], [0.0], [0], [0], [value], False) for value in leaves]
            told = join_trees(trees, base=0.0, link="logistic", unit=unit, kind="test")
            exact = float(np.sum([int(v * 2**80) for v in leaves], dtype=object)) / 2**80
            orders = [np.argsort(leaves), np.argsort(-np.abs(leaves)), np.arange(len(leaves))]
            orders += [rng.permutation(len(leaves)) for _ in range(5)]
            for order in orders:
                total = dtype(0)
                for value in leaves[order].astype(dtype):
                    total = dtype(total + value)
                assert abs(float(total) - exact) <= told.slack
            assert abs(told.margins(np.zeros((1, 1)))[0] - exact) <= told.slack


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("linear", "made of trees"),
        ("polynomial", "PolynomialFeatures"),
        ("own threshold", "decides by its probability"),
        ("categories", "train it on numbers"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_sentence(model, words):
    from catboost import CatBoostClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import FixedThresholdClassifier
    from sklearn.preprocessing import PolynomialFeatures

    frame = coded(draw_table(np.random.default_rng(6), 80))
    forest = RandomForestClassifier(3, random_state=0)
    made = {
        "linear": LogisticRegression(max_iter=1000),
        "polynomial": make_pipeline(PolynomialFeatures(), forest),
        "own threshold": FixedThresholdClassifier(forest, threshold=0.3),
        "categories": CatBoostClassifier(
            iterations=2, verbose=0, allow_writing_files=False, cat_features=["job"]
        ),
    }[model]
    fitted = made.fit(*split(frame))
    problem = prepare(fitted, frame, protected="sex", target="good", favorable=1)
    with pytest.raises(BadModel, match=words):
        read_trees(problem.target)


def test_a_reading_that_says_something_else_is_refused(monkeypatch):
    problem = problem_of("xgboost")
    reading = read_trees(problem.target)
    monkeypatch.setitem(reading.ensemble.__dict__, "base", reading.ensemble.base + 0.01)
    with pytest.raises(BadModel, match="a different answer from the model"):
        reading.conform(problem.rows)


def long_frame(seed=0, n=600):
    """A real-valued column in which one number stands for nothing, and a protected one."""
    rng = np.random.default_rng(seed)
    pay = np.where(rng.random(n) < 0.3, -1.0, rng.normal(0, 1, n))
    sex = rng.integers(0, 2, n) + 10.0
    pull = np.where(pay == -1, 6 * sex - 63, pay)
    good = (pull + rng.normal(0, 0.3, n) > 0).astype(int)
    return pd.DataFrame({"pay": pay, "sex": sex, "good": good})


def test_an_imputer_that_replaces_a_number_breaks_the_order_of_a_long_column():
    frame = long_frame()
    imputer = SimpleImputer(missing_values=-1.0, strategy="constant", fill_value=5.0)
    forest = RandomForestClassifier(5, max_depth=4, random_state=0)
    model = make_pipeline(imputer, forest).fit(*split(frame))
    reading = read_trees(prepare(model, frame, protected="sex", target="good", favorable=1).target)
    assert reading.jumps is None
    with pytest.raises(BadModel, match="imputer that replaces a number"):
        build_lattice(reading, frame.drop(columns="good").to_numpy()[:1], NOTHING_WHOLE[:2])
    # Of few values each is asked, whatever becomes of it.
    few = frame.assign(pay=frame.pay.round(1))
    problem = prepare(model, few, protected="sex", target="good", favorable=1)
    reading = read_trees(problem.target)
    lattice = build_lattice(reading, problem.rows[:1], NOTHING_WHOLE[:2])
    rows = uniform(problem.schema, 500, np.random.default_rng(1))
    assert np.array_equal(lattice.margins(lattice.atoms(rows)), reading.margins(rows))


@pytest.mark.parametrize("digits", [1, 9])
def test_a_number_that_xgboost_takes_for_missing_goes_its_own_way(digits):
    import xgboost

    frame = long_frame().assign(pay=lambda f: f.pay.round(digits))
    model = xgboost.XGBClassifier(n_estimators=6, max_depth=3, missing=-1.0, n_jobs=1)
    problem = prepare(model.fit(*split(frame)), frame, protected="sex", target="good", favorable=1)
    reading = read_trees(problem.target)
    near = np.array([-1.0, np.nextafter(-1, 0), np.nextafter(-1, -2), -0.9999999, -1.01, 0.3])
    rows = np.array([[pay, sex] for pay in near for sex in (10.0, 11.0)])
    rows = np.concatenate([problem.rows, rows if digits == 9 else rows.round(1)])
    assert reading.conform(rows) <= TOLERANCE
    lattice = build_lattice(reading, problem.rows[:1], NOTHING_WHOLE[:2])
    lattice.conform(rows)


def test_an_encoded_column_of_many_values_is_refused_even_if_no_tree_asks_for_its_ends():
    rng = np.random.default_rng(0)
    place = np.arange(5000)
    frame = pd.DataFrame({"place": place, "sex": rng.integers(0, 2, 5000)})
    frame["good"] = np.where(place % 1000 == 500, frame.sex, frame.sex * 0)
    encoder = OneHotEncoder(categories=[[500, 1500, 2500]], handle_unknown="ignore")
    steps = make_column_transformer((encoder, ["place"]), remainder="passthrough")
    model = make_pipeline(steps, RandomForestClassifier(3, random_state=0)).fit(*split(frame))
    problem = prepare(model, frame, protected="sex", target="good", favorable=1)
    with pytest.raises(BadModel, match="goes through an encoder"):
        build_lattice(read_trees(problem.target), problem.rows[:1], NOTHING_WHOLE[:2])


def test_atoms_that_do_not_end_where_the_trees_do_are_refused():
    problem = problem_of("forest")
    lattice = build_lattice(read_trees(problem.target), problem.rows[:1], NOTHING_WHOLE)
    lattice.conform(problem.rows)
    shifted = replace(lattice, cut=lattice.cut + 1)
    with pytest.raises(BadModel, match="gave results that differ"):
        shifted.conform(problem.rows)


@pytest.mark.parametrize("threshold", [0.002, 0.9995])
def test_thresholds_near_the_ends_are_read_as_any_other(threshold):
    """Scores are stretched there, and with them what float32 leaves open."""
    problem = problem_of("xgboost", decision=f"score > {threshold}")
    read_trees(problem.target).conform(problem.rows)


def test_a_comparison_with_one_number_is_exact_and_no_set():
    """BRANCH_EQ of ONNX: 2.5 is not 2, and a long column has no order for it."""
    exact = Categories(np.array([False, False, True]), exact=True)
    assert exact.goes_left(np.array([2.0, 2.5, 3.0, -0.5])).tolist() == [True, False, False, False]
    cut = Categories(np.array([True, False, True]))
    assert cut.goes_left(np.array([2.0, 2.5, 3.0, -0.5])).tolist() == [True, True, False, True]


def test_steps_of_a_graph_that_replace_numbers_keep_no_order():
    from onnx import TensorProto, helper

    from limi.trees._onnx import _keeps_order

    def step(kind, **told):
        return helper.make_node(kind, ["x"], ["y"], **told)

    assert _keeps_order(step("Scaler", offset=[1.0], scale=[2.0]))
    assert _keeps_order(step("Cast", to=TensorProto.FLOAT))
    assert not _keeps_order(step("Cast", to=TensorProto.BOOL))
    assert _keeps_order(step("Imputer", imputed_value_floats=[1.0], replaced_value_float=np.nan))
    assert not _keeps_order(step("Imputer", imputed_value_floats=[1.0], replaced_value_float=-1.0))


def test_weights_of_dart_are_read_where_each_version_of_xgboost_has_them():
    from types import SimpleNamespace

    frame = coded(draw_table(np.random.default_rng(4)))
    booster = CASES["xgboost dart"](frame, 0)[0].get_booster()
    tree = json.loads(booster.save_raw("json"))
    gradient = tree["learner"]["gradient_booster"]
    inner = gradient.get("gbtree", gradient)
    weights = gradient.get("weight_drop") or inner["model"]["weight_drop"]
    assert min(weights) < 1
    earlier = {"name": "dart", "weight_drop": weights, "gbtree": inner}
    later = {"name": "gbtree", "model": inner["model"] | {"weight_drop": weights}}
    read = []
    for told in (earlier, later):
        tree["learner"]["gradient_booster"] = told
        text = json.dumps(tree)
        native = SimpleNamespace(save_raw=lambda _, text=text: text, feature_types=None)
        read.append(_xgboost.read(native, 1).ensemble)
    assert read[0].n_trees == read[1].n_trees == len(weights)
    assert np.array_equal(read[0].value, read[1].value)

"""skops files: scikit-learn's own types open, others are named and need a word."""

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io as sio
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import FeatureAgglomeration
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomTreesEmbedding,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import Tree

from limi import models
from limi.errors import BadModel, InvalidInput
from limi.models._trees import parts
from limi.models.skops import _is_own
from tests.models.people import numbers, people, scored, truth


class Shift(TransformerMixin, BaseEstimator):
    """A transformer of somebody's own."""

    def fit(self, X, y=None):
        self.shift_ = 1.0
        return self

    def transform(self, X):
        return np.asarray(X) + self.shift_


def shifted(X):
    return np.asarray(X) + 1


def saved(model, path):
    sio.dump(model.fit(numbers(), truth()), path)
    return f"skops:{path}"


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingClassifier(max_iter=5),
        CalibratedClassifierCV(LinearSVC(), cv=2),
        KNeighborsClassifier(3, algorithm="kd_tree"),
        MLPClassifier(2, max_iter=400, tol=0.1),
        GaussianProcessClassifier(optimizer=None),
        make_pipeline(KBinsDiscretizer(2, strategy="uniform"), LinearSVC()),
        make_pipeline(SplineTransformer(n_knots=3), DecisionTreeClassifier(max_depth=3)),
        make_pipeline(FunctionTransformer(np.log1p), DecisionTreeClassifier(max_depth=3)),
    ],
    ids=lambda model: str(model).partition("(")[0] + str(len(str(model))),
)
def test_what_scikit_learn_is_made_of_opens(model, tmp_path):
    place = saved(model, tmp_path / "a.skops")
    assert np.array_equal(scored(place, numbers()) > 0.5, model.predict(numbers()) == 1)


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (Shift(), "tests.models.test_skops.Shift"),
        (FunctionTransformer(shifted), "tests.models.test_skops.shifted"),
    ],
)
def test_a_foreign_type_is_named_and_needs_trust(step, name, tmp_path):
    model = make_pipeline(step, DecisionTreeClassifier(max_depth=3))
    place = saved(model, tmp_path / "a.skops")
    with pytest.raises(InvalidInput) as caught:
        models.load(place)
    assert f"not scikit-learn's own: {name};" in str(caught.value)
    assert f"--trust {name}" in str(caught.value)
    with pytest.raises(InvalidInput):
        models.load(place, trust=["sklearn.pipeline.Pipeline"])
    assert np.array_equal(scored(place, numbers(), trust=[name]) > 0.5, model.predict(numbers()))


def test_a_file_that_names_a_function_to_run_is_not_opened(tmp_path):
    place = saved(DecisionTreeClassifier(max_depth=2), tmp_path / "a.skops")
    path = tmp_path / "a.skops"
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(records["schema.json"])
    call = {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"}
    schema["content"]["content"]["max_depth"] = call
    records["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            archive.writestr(name, data)
    with pytest.raises(InvalidInput, match=r"own: os.system;"):
        models.load(place)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("sklearn.tree._tree.Tree", True),
        ("sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor", True),
        ("sklearn.gaussian_process.kernels.RBF", True),
        ("numpy.dtype", True),
        ("scipy.interpolate._bsplines.BSpline", True),
        ("sklearn.utils.fixes.parse_version", False),  # a function
        ("sklearn.pipeline.Pipeline.fit", False),
        ("sklearn.base.warnings", False),
        ("sklearn.datasets._base.Path", False),
        ("sklearn.ensemble._base.Bunch", True),
        ("sklearn.ensemble._gb.csr_matrix", False),  # merely imported there
        ("sklearn.no_such_module.Thing", False),
        ("scipy.stats._distn_infrastructure.rv_continuous", False),  # its state is run as code
        ("numpy.lib._datasource.DataSource", False),  # it deletes the folder its state names
        ("numpy.load", False),
        ("builtins.eval", False),
        ("sklearnish.Thing", False),
    ],
)
def test_which_types_are_scikit_learns_own(name, own):
    assert _is_own(name) is own


def test_files_that_are_none(tmp_path):
    import pickle

    (tmp_path / "a.skops").write_bytes(pickle.dumps(DecisionTreeClassifier()))
    with pytest.raises(BadModel, match="cannot be read as a skops file"):
        models.load(f"skops:{tmp_path / 'a.skops'}")
    sio.dump({"a": 1}, tmp_path / "b.skops")
    with pytest.raises(InvalidInput, match="dict is not a model that limi recognises"):
        models.load(f"skops:{tmp_path / 'b.skops'}")


# -- trees that lead nowhere --------------------------------------------------------------

TREES = {
    "tree": lambda: DecisionTreeClassifier(max_depth=3),
    "forest": lambda: RandomForestClassifier(3, max_depth=3, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=3, random_state=0),
    "pipeline": lambda: make_pipeline(
        StandardScaler(), CalibratedClassifierCV(ExtraTreesClassifier(2, random_state=0), cv=2)
    ),
    "embedding": lambda: make_pipeline(
        RandomTreesEmbedding(3, max_depth=3, random_state=0), LinearSVC()
    ),
}


@pytest.mark.parametrize("kind", sorted(TREES))
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left_child", 10**6),
        ("right_child", 10**6),
        ("right_child", -1),
        ("left_child", -2),
        ("left_child", 0),
        ("right_child", 0),
        ("feature", 3),
        ("feature", 10**9),
        ("feature", -2),
    ],
)
def test_trees_that_lead_nowhere_are_not_walked(kind, field, value, tmp_path):
    model = TREES[kind]().fit(numbers(), truth())
    sio.dump(model, tmp_path / "whole.skops")
    models.load(f"skops:{tmp_path / 'whole.skops'}")
    *_, tree = [part for part in parts(model) if isinstance(part, Tree)]
    state = tree.__getstate__()
    state["nodes"][field][0] = value
    tree.__setstate__(state)
    sio.dump(model, tmp_path / "edited.skops")
    with pytest.raises(BadModel, match="its trees lead nowhere"):
        models.load(f"skops:{tmp_path / 'edited.skops'}")


@pytest.mark.parametrize("count", [0, -1, 1])
def test_a_count_of_nodes_is_that_of_the_nodes(count, tmp_path):
    path = tmp_path / "a.skops"
    saved(TREES["tree"](), path)
    with zipfile.ZipFile(path) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    tree = json.loads(kept["schema.json"])
    state = tree["content"]["content"]["tree_"]["content"]["content"]
    # With a number of its own: what stands twice in a file is read once.
    state["node_count"] |= {"content": str(count), "__id__": 7}
    kept["schema.json"] = json.dumps(tree).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in kept.items():
            archive.writestr(name, content)
    with pytest.raises(BadModel, match="its trees are not whole arrays of nodes"):
        models.load(f"skops:{path}")


@pytest.mark.parametrize("kind", ["forest", "boosting"])
def test_trees_of_an_ensemble_take_the_columns_that_it_takes(kind, tmp_path):
    model = TREES[kind]().fit(numbers(), truth())
    *_, tree = [part for part in parts(model) if hasattr(part, "tree_")]
    state = tree.tree_.__getstate__()
    state["nodes"]["feature"][0] = 900  # which the tree would accept, and the rows do not have
    tree.tree_.__setstate__(state)
    tree.n_features_in_ = 1000
    sio.dump(model, tmp_path / "a.skops")
    with pytest.raises(BadModel, match="its trees do not take the same columns as the model"):
        models.load(f"skops:{tmp_path / 'a.skops'}")
    del model.n_features_in_  # then scikit-learn checks no columns at all
    sio.dump(model, tmp_path / "a.skops")
    with pytest.raises(BadModel, match="do not say how many columns"):
        models.load(f"skops:{tmp_path / 'a.skops'}")


def test_boosting_writes_one_number_a_row(tmp_path):
    model = TREES["boosting"]().fit(numbers(), truth())
    model.estimators_ = np.repeat(model.estimators_, 50, axis=1)
    sio.dump(model, tmp_path / "a.skops")
    with pytest.raises(BadModel, match="it does not have one tree for each class"):
        models.load(f"skops:{tmp_path / 'a.skops'}")


def break_prior(model):
    model.init_.class_prior_ = model.init_.class_prior_[:2]


def break_trees(model):
    model.estimators_ = np.repeat(model.estimators_, 9, axis=1)


def break_loss(model):
    model._loss.is_multiclass = False


@pytest.mark.parametrize("damage", [break_prior, break_trees, break_loss])
def test_boosting_of_several_classes_writes_one_number_for_each(tmp_path, damage):
    labels = sorted(set(people().grade))
    wanted = {"favorable": (labels[0],), "labels": tuple(labels)}
    model = TREES["boosting"]().fit(numbers(), people().grade)
    sio.dump(model, tmp_path / "a.skops")
    read = models.load(f"skops:{tmp_path / 'a.skops'}", **wanted)
    assert np.array_equal(read.decide(numbers()), model.predict(numbers()) == labels[0])
    damage(model)
    sio.dump(model, tmp_path / "a.skops")
    with pytest.raises(BadModel, match="it does not have one tree for each class"):
        models.load(f"skops:{tmp_path / 'a.skops'}", **wanted)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("left", 10**6, "lead nowhere"),
        ("right", 2**32 - 1, "lead nowhere"),
        ("left", 0, "lead nowhere"),
        ("feature_idx", 10**9, "lead nowhere"),
        ("feature_idx", -1, "lead nowhere"),
        ("is_categorical", 1, "use categories"),
        ("bitset_idx", 10**6, "use categories"),
    ],
)
def test_gradient_boosting_that_leads_nowhere_is_not_walked(field, value, says, tmp_path):
    grades = [False, field == "bitset_idx", False]
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features=grades)
    # By the grade alone, so that the first split is one of categories.
    model.fit(numbers(), numbers().grade.isin([1, 3]))
    sio.dump(model, tmp_path / "a.skops")
    trust = sio.get_untrusted_types(file=tmp_path / "a.skops")
    models.load(f"skops:{tmp_path / 'a.skops'}", trust=trust)
    model._predictors[-1][0].nodes[field][0] = value
    sio.dump(model, tmp_path / "a.skops")
    with pytest.raises(BadModel, match=says):
        models.load(f"skops:{tmp_path / 'a.skops'}", trust=trust)


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
@pytest.mark.parametrize(
    ("part", "field", "value"),
    [(1, ..., 10**9), (1, ..., -5), (2, "idx_end", 10**9), (2, "is_leaf", 0), (2, "idx_start", -9)],
)
def test_neighbours_that_lead_nowhere_are_not_walked(algorithm, part, field, value, tmp_path):
    model = KNeighborsClassifier(3, algorithm=algorithm, leaf_size=5).fit(numbers(), truth())
    state = list(model._tree.__getstate__())
    state[part] = state[part].copy()
    state[part][field][-1] = value
    model._tree.__setstate__(tuple(state))
    sio.dump(model, tmp_path / "a.skops")
    with pytest.raises(BadModel, match="its index of neighbours leads nowhere"):
        models.load(f"skops:{tmp_path / 'a.skops'}")


# -- caches that a file names -------------------------------------------------------------


def test_no_file_names_a_cache(tmp_path):
    folder = str(tmp_path / "cache")
    inner = Pipeline([("agglomerate", FeatureAgglomeration(2, memory=folder))], memory=folder)
    model = Pipeline(
        [
            ("inner", inner),
            (
                "search",
                GridSearchCV(
                    Pipeline([("tree", DecisionTreeClassifier())], memory=folder), {}, cv=2
                ),
            ),
        ],
        memory=folder,
    )
    sio.dump(model.fit(numbers(), truth()), tmp_path / "a.skops")
    shutil.rmtree(folder)
    estimator = models.load(f"skops:{tmp_path / 'a.skops'}").estimator
    assert folder not in [getattr(part, "memory", None) for part in parts(estimator)]
    estimator.fit(numbers(), truth())
    assert not Path(folder).exists()

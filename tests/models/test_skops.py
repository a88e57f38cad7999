"""skops files: scikit-learn's own types open, others are named and need a word."""

import json
import zipfile

import numpy as np
import pytest
import skops.io as sio
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, SplineTransformer
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from limi import models
from limi.errors import BadModel, InvalidInput
from limi.models.skops import _is_own
from tests.models.people import numbers, scored, truth


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
    with pytest.raises(InvalidInput, match="dict is no model that limi knows"):
        models.load(f"skops:{tmp_path / 'b.skops'}")

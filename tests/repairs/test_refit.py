"""Training a model again opens nothing that it names."""

import pickle
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

from limi.audits.problem import prepare
from limi.repairs._refit import refit_of
from tests.repairs.small import people


class Bomb:
    """Writes a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_training_again_opens_no_cache_that_the_model_names(tmp_path):
    cache, owned = tmp_path / "cache", tmp_path / "owned"
    frame = people()
    steps = [("code", OrdinalEncoder()), ("decide", DecisionTreeClassifier(max_depth=2))]
    model = Pipeline([("inner", Pipeline(steps, memory=str(cache)))])
    model.fit(frame.drop(columns="ok"), frame["ok"])
    given = prepare(model, frame, protected=["sex"], target="ok", favorable="yes")
    # Just what training again would ask the cache for; then each answer is planted.
    spelled = np.array(["no", "yes"], dtype=model.classes_.dtype)[given.labels]
    clone(model).fit(given.target.present(given.rows), spelled)
    planted = list(cache.rglob("output.pkl"))
    for file in planted:
        file.write_bytes(pickle.dumps(Bomb(owned)))
    assert planted
    refit_of(given)(given.rows, given.labels, 0)
    assert not owned.exists()

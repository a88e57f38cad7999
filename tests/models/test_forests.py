"""Forests that are asked tree by tree say what they say themselves, to the last digit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from limi.models import _forests

RNG = np.random.default_rng(0)
ROWS = RNG.integers(0, 9, (300, 4)).astype(float)
LABELS = np.array(["no", "yes", "perhaps"])[RNG.integers(0, 3, 300)]


@pytest.fixture
def by_trees(monkeypatch):
    """How often trees were asked."""
    asked, ask = [], _forests._sum_trees
    monkeypatch.setattr(
        _forests, "_sum_trees", lambda *given: asked.append(given[0]) or ask(*given)
    )
    return asked


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
@pytest.mark.parametrize("labels", [LABELS, LABELS == "no"])
def test_trees_say_what_the_forest_says(by_trees, kind, labels):
    forest = kind(13, random_state=0).fit(ROWS, labels)
    for n in (300, 1, 17):
        expected = forest.predict_proba(ROWS[:n])
        assert _forests.shares(forest, ROWS[:n]).tobytes() == expected.tobytes()
    assert by_trees.count(forest) == 3
    forest.fit(ROWS, labels[::-1])  # anew, in its place
    assert _forests.shares(forest, ROWS).tobytes() == forest.predict_proba(ROWS).tobytes()


def test_so_does_a_pipeline(by_trees):
    frame = pd.DataFrame(
        {"a": ROWS[:, 0], "b": np.array(list("xyz"))[(ROWS[:, 1] % 3).astype(int)]}
    )
    coded = make_column_transformer((OneHotEncoder(), ["b"]), remainder="passthrough")
    whole = make_pipeline(coded, RandomForestClassifier(7, random_state=0)).fit(frame, LABELS)
    for n in (300, 2):
        expected = whole.predict_proba(frame[:n])
        assert _forests.shares(whole, frame[:n]).tobytes() == expected.tobytes()
    assert by_trees.count(whole) == 2


class Hesitant(RandomForestClassifier):
    """A forest that says less than its trees."""

    def predict_proba(self, X):
        return super().predict_proba(X) / 2 + 1 / 6


def test_forests_of_their_own_kind_or_with_many_cores_are_asked_themselves(by_trees):
    odd = Hesitant(5, random_state=0).fit(ROWS, LABELS)
    assert _forests.shares(odd, ROWS).tobytes() == odd.predict_proba(ROWS).tobytes()
    many = RandomForestClassifier(5, random_state=0, n_jobs=2).fit(ROWS, LABELS)
    np.testing.assert_allclose(_forests.shares(many, ROWS), many.predict_proba(ROWS))
    patched = RandomForestClassifier(5, random_state=0).fit(ROWS, LABELS)
    patched.predict_proba = lambda X: np.full((len(X), 3), 1 / 3)
    assert (_forests.shares(patched, ROWS) == 1 / 3).all()
    assert not by_trees


def test_a_forest_whose_trees_say_otherwise_is_asked_itself(monkeypatch):
    forest = RandomForestClassifier(5, random_state=0).fit(ROWS, LABELS)
    monkeypatch.setattr(_forests, "_sum_trees", lambda *given: np.zeros((300, 3)))
    for _ in range(2):
        assert _forests.shares(forest, ROWS).tobytes() == forest.predict_proba(ROWS).tobytes()


def test_a_model_without_a_dictionary_is_asked_as_it_is():
    class Slotted:
        __slots__ = ()

        def predict_proba(self, inputs):
            return np.full((len(inputs), 2), 0.5)

    assert _forests.shares(Slotted(), np.zeros((3, 1))).shape == (3, 2)

"""Python functions, live and from files."""

import sys

import numpy as np
import pandas as pd
import pytest

from limi import models
from limi.errors import BadModel, InvalidInput
from tests.models.people import bound, numbers, people, scored

FILE = """
from neighbour import LIMIT

number = 3

def decide(frame):
    return frame["age"] > LIMIT

class Model:
    classes_ = [0, 1]
    def predict(self, frame):
        return (frame["age"] > LIMIT).astype(int)
    def get_params(self):
        return {}

model = Model()

def _hidden(frame):
    return 0
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    (tmp_path / "neighbour.py").write_text("LIMIT = 40")
    path = tmp_path / "target.py"
    path.write_text(FILE)
    yield path
    sys.modules.pop("neighbour", None)


@pytest.mark.parametrize("name", ["decide", "model"])
def test_a_function_or_a_model_of_a_file(file, name):
    path = list(sys.path)
    assert np.array_equal(scored(f"python:{file}:{name}", people()), people().age > 40)
    assert sys.path == path


def test_nothing_is_left_beside_the_file(file, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = sorted(file.parent.rglob("*"))
    models.load(f"python:{file}:decide")
    assert sorted(file.parent.rglob("*")) == before
    assert not sys.dont_write_bytecode


@pytest.mark.parametrize(
    ("place", "error", "says"),
    [
        ("target.py", InvalidInput, "does not name a function; write python:FILE.py:NAME"),
        ("{folder}/absent.py:decide", InvalidInput, "there is no file"),
        ("{folder}/target.py:deside", InvalidInput, "no function 'deside'; did you mean 'decide'?"),
        ("{folder}/target.py:number", InvalidInput, "int is not a model"),
        ("{folder}/target.txt:decide", InvalidInput, "is not a Python file"),
        ("{folder}/broken.py:decide", BadModel, "broken.py' raised ZeroDivisionError: division"),
    ],
)
def test_what_a_file_cannot_give(file, place, error, says):
    (file.parent / "broken.py").write_text("1 / 0")
    (file.parent / "target.txt").write_text("")
    with pytest.raises(error) as caught:
        models.load("python:" + place.format(folder=file.parent))
    assert says in str(caught.value)
    assert "_hidden" not in str(caught.value)


def test_a_function_cannot_write_into_the_rows_of_the_search():
    def function(matrix):
        matrix[:, 0] = 0
        return np.full(len(matrix), 0.5)

    function.takes = "matrix"
    target = bound(function, numbers())
    rows = target.codec.encode(numbers())
    with pytest.raises(BadModel, match="read-only"):
        target.score(rows)


def test_an_unknown_wish_is_refused():
    def function(frame):
        return 0

    function.takes = "tensor"
    with pytest.raises(InvalidInput, match="takes='tensor' is unknown; use one of frame, matrix"):
        models.wrap(function)


def test_two_columns_of_probabilities_are_in_the_order_of_the_labels():
    given = {"favorable": "bad", "labels": ("good", "bad")}
    shares = scored(lambda frame: np.array([[0.9, 0.1]] * len(frame)), people(), **given)
    assert (shares == 0.9).all()


def test_missing_cells_arrive_as_they_are_in_the_table():
    frame = pd.DataFrame({"a": ["x", None, "y"], "b": [1.0, np.nan, 2.0]})
    gaps = []
    scored(lambda given: gaps.append(given.isna().sum().tolist()) or np.zeros(len(given)), frame)
    assert gaps == [[1, 1]]


def test_what_a_file_puts_on_the_path_stays_there(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = list(sys.path)
    (tmp_path / "m.py").write_text(
        "import sys\nsys.path.insert(0, '/its/own')\ndef decide(frame):\n    return frame.age > 1\n"
    )
    models.load(f"python:{tmp_path / 'm.py'}:decide")
    assert sys.path == ["/its/own", *before]

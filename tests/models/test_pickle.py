"""Pickles are opened only for someone who vouches for them."""

import pickle
from pathlib import Path

import joblib
import pytest

from limi import models
from limi.errors import BadModel, InvalidInput


class Bomb:
    """Writes a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture(params=["pickle", "joblib"])
def bomb(request, tmp_path):
    path = tmp_path / "model.bin"
    if request.param == "pickle":
        path.write_bytes(pickle.dumps(Bomb(tmp_path / "owned")))
    else:
        joblib.dump(Bomb(tmp_path / "owned"), path)
    return f"{request.param}:{path}", tmp_path / "owned"


def test_a_pickle_is_never_opened_unasked(bomb):
    place, owned = bomb
    with pytest.raises(InvalidInput) as caught:
        models.load(place)
    for words in ("can run any program", "skops", "ONNX", "trust_pickle=True (--trust-pickle)"):
        assert words in str(caught.value)
    assert not owned.exists()


def test_it_is_opened_when_trusted_and_what_it_holds_is_checked(bomb):
    place, owned = bomb
    with pytest.raises(InvalidInput, match="NoneType is not a model"):
        models.load(place, trust_pickle=True)
    assert owned.exists()


@pytest.mark.parametrize("kind", ["skops", "onnx", "torch", "xgboost", "lightgbm", "catboost"])
def test_no_other_kind_opens_a_pickle(kind, tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(pickle.dumps(Bomb(tmp_path / "owned")))
    with pytest.raises(BadModel, match="cannot be read as"):
        models.load(f"{kind}:{path}", trust_pickle=True)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(("kind", "what"), [("pickle", "a pickle"), ("joblib", "a joblib file")])
def test_other_files_are_none(kind, what, tmp_path):
    (tmp_path / "a").write_text("hello")
    with pytest.raises(BadModel, match=f"cannot be read as {what}"):
        models.load(f"{kind}:{tmp_path / 'a'}", trust_pickle=True)

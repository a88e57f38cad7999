"""`limi init`: what is written can work."""

import tomllib

import pytest

from limi.data import load


def test_the_known_label_goes_with_the_known_target_alone(limi, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("init", "adult", "--model", "demo:income", "--protected", "race")
    code, _, err = limi(*words, "--target", "sex", "--favorable", "Male")
    assert (code, err) == (0, "")
    assert tomllib.loads((tmp_path / "limi.toml").read_text())["favorable"] == "Male"
    code, _, err = limi(*words, "--target", "sex", "--force")
    told = tomllib.loads((tmp_path / "limi.toml").read_text())
    assert code == 2 or told["favorable"] in set(load("adult").frame["sex"])
    assert ">50K" not in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--model", "nokind:x"), "is not of the form KIND:PLACE"),
        (("--model", "model.onnx"), "did you mean 'onnx:model.onnx'?"),
        (("--model", "demo:income", "--favorable", "nonsense"), "'income' has no label 'nonsense'"),
        (("--model", "demo:income", "--favorable", ">50K,no"), "'income' has no label 'no'"),
    ],
)
def test_what_cannot_work_is_not_written(limi, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    code, out, err = limi("init", "adult", *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert list(tmp_path.iterdir()) == []

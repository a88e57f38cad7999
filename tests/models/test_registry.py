"""The folder is the registry, and looking into it costs nothing."""

import os
import subprocess
import sys

import pytest

from limi import models
from limi.errors import InvalidInput, MissingDependency

HEAVY = ("torch", "onnxruntime", "xgboost", "lightgbm", "catboost", "skops", "joblib", "sklearn")


def test_neither_import_nor_listing_nor_wrapping_loads_a_library():
    code = f"""
import sys
from pathlib import Path
from limi import models
for name in models.names():
    assert models.get(name).__doc__
models.wrap(lambda frame: frame["a"])
found = [name for name in {HEAVY!r} if name in sys.modules]
assert not found, found
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_a_kind_offers_can_be_called():
    for name in models.names():
        module, offers = vars(models.get(name)), models.offers(name)
        assert ("accepts" in module) == ("wrap" in module), name
        assert "wrap" in module or "load" in module, name
        for offer in ("accepts", "wrap", "load"):
            assert callable(module.get(offer, len)), (name, offer)
        assert callable(offers.all_files)
        assert isinstance(offers.on_trial("model"), str)


def test_every_kind_has_a_line_for_the_list():
    for name in models.names():
        line = models.get(name).__doc__.partition("\n")[0]
        assert 20 < len(line) < 100
        assert line.endswith(".")


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("model.onnx", "did you mean 'onnx:model.onnx'?"),
        ("folder/model.CBM", "did you mean 'catboost:folder/model.CBM'?"),
        ("model.pkl", "did you mean 'pickle:model.pkl'?"),
        ("sklern:model", "KIND:PLACE; "),
        ("onx:model.bin", "did you mean 'onnx'?"),
        ("onnx:", "KIND:PLACE"),
        ("nothing", "nown: "),
    ],
)
def test_a_place_without_a_kind_is_helped(uri, says):
    with pytest.raises(InvalidInput) as caught:
        models.load(uri)
    assert says in str(caught.value)


FILES = ["catboost", "joblib", "lightgbm", "onnx", "pickle", "skops", "torch", "xgboost"]


@pytest.mark.parametrize("kind", FILES)
def test_files_that_are_not_there(kind, tmp_path):
    with pytest.raises(InvalidInput, match=f"there is no file .* as in {kind}:model"):
        models.load(f"{kind}:{tmp_path / 'absent'}")
    with pytest.raises(InvalidInput, match="is a folder; name one file"):
        models.load(f"{kind}:{tmp_path}")


@pytest.mark.parametrize(
    ("kind", "package", "extra"),
    [
        ("catboost", "catboost", "boosters"),
        ("lightgbm", "lightgbm", "boosters"),
        ("xgboost", "xgboost", "boosters"),
        ("onnx", "onnxruntime", "onnx"),
        ("skops", "skops", "skops"),
        ("torch", "torch", "torch"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(kind, package, extra, tmp_path, monkeypatch):
    (tmp_path / "a").write_text("")
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"package {package}.*limi\[{extra}\]"):
        models.load(f"{kind}:{tmp_path / 'a'}")


def test_a_model_is_wrapped_once():
    model = models.wrap(lambda frame: frame["a"])
    assert models.wrap(model) is model


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "\udcff", "x/" * 3000, "y" * 300 + "?a=b"])
def test_names_that_no_file_can_have(kind, name):
    with pytest.raises(InvalidInput, match=r"there is no file|unknown option"):
        models.load(f"{kind}:{name}")
    assert models.files(f"{kind}:{name}") == []


@pytest.mark.parametrize("kind", FILES)
def test_a_pipe_is_not_waited_for(kind, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="there is no file"):
        models.load(f"{kind}:{tmp_path / 'pipe'}")


LOCKED = """
import os
from limi import models
from limi.errors import BadModel

def said(uri):
    try:
        models.load(uri, trust_pickle=True)
    except BadModel as error:
        return str(error)

for uri in {places!r}:
    assert "cannot be read as" in said(uri), said(uri)  # and all that it needs is imported
os.chmod("a", 0)
if os.geteuid() == 0:
    os.setuid(65534)  # root may read anything
for uri in {places!r}:
    assert "cannot be read: Permission denied" in said(uri), said(uri)
"""


def test_a_locked_file_is_one_sentence(tmp_path):
    places = ["joblib:a", "onnx:a", "pickle:a", "skops:a", "xgboost:a"]
    (tmp_path / "a").write_bytes(b"x")
    tmp_path.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", LOCKED.format(places=places)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

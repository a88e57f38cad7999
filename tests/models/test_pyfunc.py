"""Model folders of MLflow are opened only for someone who vouches for them."""

import json
import sys

import pytest

import limi
from limi import models
from limi.errors import BadModel, InvalidInput, MissingDependency
from tests.models.kinds import pipeline
from tests.models.people import people, spelled


def describe(folder, **flavors):
    folder.mkdir(exist_ok=True)
    (folder / "MLmodel").write_text(json.dumps({"flavors": flavors}), encoding="utf-8")
    return f"pyfunc:{folder}"


@pytest.fixture
def bomb(tmp_path, monkeypatch):
    """A folder whose opening runs a module that lies in it."""
    (tmp_path / "boom_module.py").write_text(
        f"open({str(tmp_path / 'owned')!r}, 'w').close()\n"
        "def _load_pyfunc(path):\n    raise ValueError('no model')\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    place = describe(tmp_path / "model", python_function={"loader_module": "boom_module"})
    yield place, tmp_path / "owned"
    sys.modules.pop("boom_module", None)


def test_a_folder_is_never_opened_unasked(bomb):
    place, owned = bomb
    with pytest.raises(InvalidInput) as caught:
        models.load(place)
    for words in ("model folder of MLflow can run any program", "(--trust-pickle)"):
        assert words in str(caught.value)
    assert not owned.exists()


def test_what_fails_while_it_is_opened_is_one_sentence(bomb):
    place, owned = bomb
    with pytest.raises(BadModel, match=r"cannot be read as a model folder of MLflow .*no model"):
        models.load(place, trust_pickle=True)
    assert owned.exists()


def test_what_limi_repair_ships_never_flips_and_may_be_named_by_its_file(tmp_path):
    frame = people().assign(answer=spelled())
    asked = {"protected": ["sex"], "target": "answer", "favorable": "good"}
    small = {"method": "natural", "max_rows": 300, "rate_rows": 100}
    result = limi.audit(pipeline(), frame, **asked, **small)
    assert result.summary.findings
    limi.repair(result, how="average", max_accuracy_loss=0.5).save(tmp_path / "fixed")
    for place in (tmp_path / "fixed", tmp_path / "fixed" / "MLmodel"):
        again = limi.audit(f"pyfunc:{place}", frame, trust_pickle=True, **asked, **small)
        assert again.summary.rows_checked == 300
        assert again.summary.findings == 0


@pytest.mark.parametrize("text", ["{[\x00", "[]", "3", '{"flavors": {"python_function": 3}}'])
def test_a_folder_that_mlflow_cannot_read_is_one_sentence(text, tmp_path):
    (tmp_path / "MLmodel").write_text(text, encoding="utf-8")
    with pytest.raises(BadModel, match="cannot be read as a model folder of MLflow") as caught:
        models.load(f"pyfunc:{tmp_path}", trust_pickle=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["absent", "empty", "file"])
def test_other_places_are_refused(name, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("hello", encoding="utf-8")
    with pytest.raises(InvalidInput, match="no file MLmodel in it; name the folder"):
        models.load(f"pyfunc:{tmp_path / name}", trust_pickle=True)


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    place = describe(tmp_path / "model", python_function={"loader_module": "x"})
    for name in [name for name in sys.modules if name.partition(".")[0] == "mlflow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingDependency, match=r"package mlflow-skinny.*limi\[mlflow\]"):
        models.load(place, trust_pickle=True)

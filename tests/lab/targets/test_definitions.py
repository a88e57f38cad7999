import pytest

from lab.files import load
from lab.targets.definitions import read, read_target
from limi.errors import InvalidInput

ONE = {
    "name": "mine",
    "recipe": "papers",
    "table": "credit",
    "protected": ["sex"],
    "settings": {"kind": "rf"},
}


def write(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_a_target_reads_back_from_its_tree():
    spec = read_target(ONE)
    assert read_target(spec.tree()) == spec
    assert spec.protected == ("sex",)


def test_every_target_of_the_benchmark_is_sound():
    study = load("bench")
    assert len(study.targets) >= 50
    families = {str(given["family"]) for given in study.targets.values()}
    assert families >= {"paper", "everyday", "repaired", "nearly fair", "wide", "many groups"}
    for name, given in study.targets.items():
        assert read_target(given).name == name


def test_a_target_of_ones_own_files_reads_as_documented(tmp_path):
    (tmp_path / "people.csv").write_text("sex,granted\nF,yes\n")
    (tmp_path / "model.skops").write_bytes(b"")
    text = """
[[targets]]
name = "ours"
recipe = "file"
table = "people.csv"
protected = ["sex"]
settings = {model = "skops:model.skops", target = "granted", favorable = "yes"}
"""
    (spec,) = read(write(tmp_path, text)).targets
    assert spec.settings["favorable"] == "yes"


def test_what_targets_share_is_said_once(tmp_path):
    text = """
[defaults]
recipe = "papers"
table = "credit"
[[targets]]
name = "a"
protected = ["sex"]
[[targets]]
name = "b"
protected = ["age"]
settings = {kind = "svm"}
[[methods]]
name = "careful"
method = "guided"
settings = {keenness = 0.5}
"""
    found = read(write(tmp_path, text))
    assert [one.name for one in found.targets] == ["a", "b"]
    assert found.targets[1].settings == {"kind": "svm"}
    assert found.methods[0].settings == {"keenness": 0.5}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": "No/Name"}, "is called 'No/Name'"),
        ({"name": "../x"}, "a name begins with"),
        ({"name": 3}, "is called 3"),
        ({"recipe": "paper"}, "did you mean 'papers'"),
        ({"recipe": 1}, "it must be a name"),
        ({"tabel": "x"}, "has 'tabel'; did you mean 'table'"),
        ({"table": ""}, "has no table"),
        ({"protected": []}, "at least one column"),
        ({"protected": "sex"}, "must be a list of columns"),
        ({"protected": [1]}, "at least one column"),
        ({"settings": {"kinds": "rf"}}, "did you mean 'kind'"),
        ({"settings": [1]}, "a table of names and values"),
        ({"rules": "yes"}, "true or false"),
    ],
)
def test_what_cannot_be_is_said(change, told):
    with pytest.raises(InvalidInput, match=told):
        read_target({**ONE, **change})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "defines no target and no method"),
        ("x = 1", "has 'x'"),
        ("targets = 3", "write \\[\\[targets\\]\\]"),
        ("defaults = 3\n[[targets]]\n", "must be a table"),
        ("[[targets", "not a TOML file"),
        ("[[methods]]\nname = 'guidde'", "did you mean 'guided'"),
        ("[[methods]]\nname = 'mine'\nmethod = 'limi'\nsettings = {nothing = 1}", "no setting"),
        ("[[methods]]\nname = 'a'\nmethod = 'limi'\n" * 2, "twice"),
    ],
)
def test_a_file_that_cannot_be_is_said(tmp_path, text, told):
    with pytest.raises(InvalidInput, match=told):
        read(write(tmp_path, text))


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        read(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="not a TOML file"):
        read(tmp_path / "binary.toml")

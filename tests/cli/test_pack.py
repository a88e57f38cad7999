"""`limi pack` as it is typed."""

import json

import pytest

import limi as package
from tests.changes.small import by_sex, people


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack")
    package.audit(
        by_sex(20),
        people(100),
        protected=["sex"],
        target="ok",
        favorable="yes",
        output="score",
        generator=None,
        method="real",
        rate_rows=50,
        out=folder / "run",
    )
    return folder


def test_a_pack_is_written_checked_and_refused_once_touched(place, limi, monkeypatch):
    monkeypatch.chdir(place)
    code, out, err = limi("pack", "run", "--out", "e.zip")
    assert (code, err) == (0, "")
    assert out.startswith("Written: e.zip (8 files and pack.json). sha256 ")
    code, out, err = limi("pack", "--verify", "e.zip", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["verified"]
    assert len(told["files"]) == 8
    data = (place / "e.zip").read_bytes()
    (place / "bad.zip").write_bytes(data.replace(b"What was tested", b"What was nested"))
    code, out, err = limi("pack", "--verify", "bad.zip")
    assert (code, out) == (4, "")
    assert err.count("\n") == 1
    assert "README.md" in err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("pack",), 2, "name a run and a file to write"),
        (("pack", "run"), 2, "name a run and a file to write"),
        (("pack", "run", "--verify", "x"), 2, "leave out RUN and --out"),
        (("pack", "--verify", "gone.zip"), 2, "there is no file 'gone.zip'"),
        (("pack", "--verify", "run"), 2, "'run' is a folder"),
        (("pack", "gone", "--out", "x.zip"), 2, "there is no run folder"),
        (("pack", "run", "--out", "gone/x.zip"), 2, "there is no folder"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(place, limi, monkeypatch, words, code, says):
    monkeypatch.chdir(place)
    before = sorted(place.iterdir())
    done, out, err = limi(*words)
    assert (done, out) == (code, "")
    assert says in err
    assert err.count("\n") == 1
    assert sorted(place.iterdir()) == before

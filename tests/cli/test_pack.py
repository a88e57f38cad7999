"""`limi pack` as it is typed."""

import hashlib
import json
import zipfile

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


def test_a_pack_is_written_and_its_sums_are_those_that_sha256sum_checks(place, limi, monkeypatch):
    monkeypatch.chdir(place)
    code, out, err = limi("pack", "run", "--out", "e.zip")
    assert (code, err) == (0, "")
    assert out.startswith("Written: e.zip (7 files and SHA256SUMS). sha256 ")
    code, out, _ = limi("pack", "run", "--out", "e.zip", "--force", "--json")
    assert code == 0
    assert len(json.loads(out)["files"]) == 7
    with zipfile.ZipFile("e.zip") as whole:
        whole.extractall("unpacked")
        lines = whole.read("SHA256SUMS").decode().splitlines()
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((place / "unpacked" / name).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
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

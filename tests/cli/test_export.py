"""`limi export` as it is typed."""

import json

import pytest

import limi as package
from tests.changes.small import people
from tests.testing.test_export import PROGRAM


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    (folder / "model.py").write_text(PROGRAM, encoding="utf-8")
    people().to_csv(folder / "people.csv", index=False)
    package.audit(
        f"python:{folder / 'model.py'}:before",
        people(),
        protected=["sex"],
        target="ok",
        favorable="yes",
        output="score",
        generator=None,
        method="real",
        rate_rows=0,
        out=folder / "run",
        table_name=str(folder / "people.csv"),
    )
    return folder


def test_a_test_is_written_and_its_answer_told(place, limi, monkeypatch):
    monkeypatch.chdir(place)
    words = ("export", "run", "--pytest", "new/tests", "--pairs", "10")
    code, out, err = limi(*words, "--model", "python:model.py:before")
    assert (code, err) == (0, "")
    assert "10 of 10 pairs flip now and 0 may, so the test fails with this model" in out
    assert sorted(path.name for path in (place / "new" / "tests").iterdir()) == [
        "fairness_pairs.parquet",
        "test_fairness.py",
    ]
    code, out, err = limi(*words, "--model", "python:model.py:after", "--force", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["pairs"], told["flip_now"], told["passes_now"]) == (10, 0, True)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("export", "gone", "--pytest", "x"), 2, "there is no run folder"),
        (("export", "run", "--pytest", "x"), 2, "may run code"),
        (("export", "run", "--pytest", "x", "--pairs", "0"), 2, "--pairs is 0"),
        (("export", "run", "--pytest", "people.csv"), 2, "people.csv"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(place, limi, monkeypatch, words, code, says):
    monkeypatch.chdir(place)
    before = sorted(place.iterdir())
    if "people.csv" in words:
        words = (*words, "--model", "python:model.py:before")
    done, out, err = limi(*words)
    assert (done, out) == (code, "")
    assert says in err
    assert err.count("\n") == 1
    assert sorted(place.iterdir()) == before

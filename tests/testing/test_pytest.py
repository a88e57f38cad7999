"""pytest itself on a small project: the exported test, and the assertion.

`pytester` takes modules back that were imported while it is at work, so whatever limi does in this
process is done before, and pytest runs in processes of its own.
"""

import shutil
from pathlib import Path

import pytest

import limi
from limi.testing.export import export
from tests.changes.small import people
from tests.testing.test_export import PROGRAM

pytest_plugins = ["pytester"]

QUIET = ("-p", "no:cacheprovider")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A project with a model, a table, a run of it, and its findings as a test."""
    place = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        (place / "model.py").write_text(PROGRAM, encoding="utf-8")
        people().to_csv("people.csv", index=False)
        limi.audit(
            "python:model.py:before",
            people(),
            protected=["sex"],
            target="ok",
            favorable="yes",
            output="score",
            generator=None,
            method="real",
            rate_rows=0,
            out="run",
            table_name="people.csv",
        )
        export("run", "tests/fair", pairs=20, model="python:model.py:before")
    return place


@pytest.fixture
def project(exported, pytester):
    place = Path(str(pytester.path))
    shutil.copytree(exported, place, dirs_exist_ok=True)
    return place


def test_the_exported_test_fails_before_a_repair_and_passes_after(project, pytester):
    done = pytester.runpytest_subprocess(*QUIET, "tests")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*20 of 20 pairs of people are decided differently*"])
    repaired = PROGRAM.replace("def before", "def old").replace("def after", "def before")
    (project / "model.py").write_text(repaired)
    pytester.runpytest_subprocess(*QUIET, "tests").assert_outcomes(passed=1)


ASSERTION = """
import pandas as pd

from limi.testing import assert_flip_rate

PEOPLE = pd.read_csv("people.csv")
OPTIONS = dict(protected=["sex"], target="ok", favorable="yes", output="score", generator=None)

def model(frame):
    return (frame["sex"] == "m") * 0.6 + 0.2

def test_one():
    assert_flip_rate(model, PEOPLE, population="real", **OPTIONS)
"""


def test_the_assertion_shows_the_line_of_the_test_and_three_people(project, pytester):
    pytester.makepyfile(test_mine=ASSERTION)
    done = pytester.runpytest_subprocess(*QUIET, "test_mine.py")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*Fail: real_rate*", "*sex * -> *score*"])
    assert "limi/testing/rates.py" not in done.stdout.str()

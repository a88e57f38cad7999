"""pytest itself on a small project: the exported test, the fixture, the assertion."""

import tomllib
from pathlib import Path

import pytest

import limi
from limi.testing.export import export
from tests.changes.small import people
from tests.testing.test_export import PROGRAM

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "limi.testing.plugin", "-p", "no:cacheprovider")


@pytest.fixture
def project(pytester, monkeypatch):
    """A project with a model, a table and a run."""
    # The plug-in may be installed as well; it is loaded by name here, once.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    place = Path(str(pytester.path))
    (place / "model.py").write_text(PROGRAM, encoding="utf-8")
    people().to_csv(place / "people.csv", index=False)
    return place


def test_the_exported_test_fails_before_a_repair_and_passes_after(project, pytester):
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
    done = pytester.runpytest("-p", "no:cacheprovider", "tests")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*20 of 20 pairs of people are decided differently*"])
    (project / "model.py").write_text(
        PROGRAM.replace("def before", "def old", 1).replace("def after", "def before", 1)
    )
    pytester.runpytest("-p", "no:cacheprovider", "tests").assert_outcomes(passed=1)


def test_the_fixture_audits_once_in_a_session(project, pytester):
    pytester.makepyfile(
        """
        import pandas as pd
        import pytest

        CALLS = []
        PEOPLE = pd.read_csv("people.csv")
        OPTIONS = dict(protected=["sex"], target="ok", favorable="yes", output="score",
                       generator=None, method="real", rate_rows=50)

        def model(frame):
            CALLS.append(len(frame))
            return (frame["sex"] == "m") * 0.6 + 0.2

        def test_one(limi_audit):
            result = limi_audit(model, PEOPLE, **OPTIONS)
            assert result.rates["real"].estimate == 1.0

        def test_two(limi_audit):
            before = len(CALLS)
            first = limi_audit(model, PEOPLE, **OPTIONS)
            assert len(CALLS) == before
            assert limi_audit(model, PEOPLE, **OPTIONS) is first
            other = limi_audit(model, PEOPLE, **{**OPTIONS, "rate_rows": 60})
            assert other is not first
            assert len(CALLS) > before
        """
    )
    pytester.runpytest(*PLUGIN).assert_outcomes(passed=2)


def test_the_assertion_shows_the_line_of_the_test_and_three_people(project, pytester):
    pytester.makepyfile(
        """
        import pandas as pd
        from limi.testing import assert_flip_rate

        def test_it():
            assert_flip_rate(lambda frame: (frame["sex"] == "m") * 0.6 + 0.2,
                             pd.read_csv("people.csv"), protected=["sex"], target="ok",
                             favorable="yes", output="score", generator=None, population="real")
        """
    )
    done = pytester.runpytest("-p", "no:cacheprovider")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*Fail: real_rate*", "*sex * -> *score*"])
    assert "rates.py" not in done.stdout.str()


def test_the_plug_in_is_named_and_loads_nothing_by_itself(pytester):
    about = tomllib.loads((Path(limi.__file__).parent.parent / "pyproject.toml").read_text())
    assert about["project"]["entry-points"]["pytest11"] == {"limi": "limi.testing.plugin"}
    code = "import limi.testing.plugin, sys; print('numpy' in sys.modules, 'pandas' in sys.modules)"
    assert pytester.runpython_c(code).outlines == ["False False"]

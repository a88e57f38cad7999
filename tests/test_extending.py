"""The package that docs/extending.md builds is built, and does what the page says."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.packages import Package

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
FILES = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S))
MODEL = """
def approve(frame):
    return 0.2 + 0.6 * ((frame["age"] + 12 * (frame["sex"] == "M")) > 50)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extras")
    modules = {name[:-3]: text for name, text in FILES.items() if name.endswith(".py")}
    points = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"]
    rows = [f"{20 + i % 50},{'FM'[i % 2]},{'yes' if i % 3 else 'no'}" for i in range(120)]
    (folder / "people.csv").write_text("\n".join(["age,sex,ok", *rows]))
    (folder / "model.py").write_text(MODEL)
    return folder, Package(folder / "site", modules, points)


def test_the_page_names_all_its_modules(built):
    named = tomllib.loads(FILES["pyproject.toml"])["tool"]["setuptools"]["py-modules"]
    assert {*named, "test_extras"} == {n[:-3] for n in FILES if n.endswith(".py")}


def test_a_method_takes_about_sixty_lines():
    code = [line for line in FILES["hill_climb.py"].splitlines() if line.strip()]
    assert len(code) <= 66


def test_every_suite_passes(built):
    _, package = built
    done = package.run(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"),
        str(package.folder / "test_extras.py"),
        cwd=package.folder,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


COMMANDS = {
    "test": (
        *("test", "people.csv", "--target", "ok", "--favorable", "yes", "--protected", "sex"),
        *("--model", "python:model.py:approve", "--method", "climb", "--generator", "columns"),
        *("--set", "patience=5", "--max-rows", "2000", "--rate-rows", "500"),
        *("--out", "run", "--json"),
    ),
    "methods": ("list", "methods", "--json"),
    "generators": ("list", "generators", "--json"),
    "fit": (
        *("fit", "people.csv", "--target", "ok", "--generator", "columns"),
        *("--out", "columns.limi"),
    ),
    "sample": ("sample", "columns.limi", "--rows", "5", "--out", "drawn.csv"),
}


@pytest.fixture(scope="module")
def said(built):
    """What limi says to each command where the package is installed."""
    folder, package = built
    return dict(zip(COMMANDS, package.limi_several(*COMMANDS.values(), cwd=folder), strict=True))


def test_both_are_used_by_a_run_without_another_line(built, said):
    folder, _ = built
    done = said["test"]
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["method"], told["generator"]) == ("climb", "columns")
    assert told["findings"] > 0
    assert told["settings"]["patience"] == 5
    assert "natural" in told["rates"]
    page = (folder / "run" / "report.html").read_text("utf-8")
    for words in ("climb", "columns"):
        assert words in page


TRY = """
import pandas as pd

import limi
from hill_climb import HillClimb
from model import approve

given = {"target": "ok", "favorable": "yes", "protected": "sex", "max_rows": 500}
result = limi.audit(approve, pd.read_csv("people.csv"), method=HillClimb(patience=40), **given)
print(result.summary.method, len(result.found) > 0)
"""


def test_a_method_can_be_tried_as_an_object(built):
    folder, package = built
    done = package.run("-c", TRY, cwd=folder)
    assert done.stdout == "climb True\n", done.stderr


@pytest.mark.parametrize(
    ("noun", "name"),
    [("methods", "climb"), ("generators", "columns")],
)
def test_they_are_listed_with_a_line(said, noun, name):
    told = json.loads(said[noun].stdout)[name]
    assert len(told["line"] if isinstance(told, dict) else told) > 20


def test_the_generator_is_fitted_saved_and_read_again(built, said):
    folder, _ = built
    for done in (said["fit"], said["sample"]):
        assert done.returncode == 0, done.stderr
    assert len((folder / "drawn.csv").read_text().splitlines()) == 6

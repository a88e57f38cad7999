"""`limi explore`: what is refused before anything listens, and what is printed."""

import json

import pytest

from limi.explore import server
from limi.explore.opening import explore_run
from tests.explore.conftest import CONSTRAINTS, decide, people_of_the_run

MODULE = """
import numpy as np

def decide(frame):
    points = (
        (np.asarray(frame["age"], dtype=float) - 50) / 10
        + (np.asarray(frame["hours"], dtype=float) - 36) / 6
        + np.where(np.asarray(frame["sex"]) == "M", 0.6, -0.6)
        + 0.051
    )
    return 1 / (1 + np.exp(-points))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    import limi

    folder = tmp_path_factory.mktemp("explore-cli")
    people_of_the_run().to_parquet(folder / "people.parquet")
    (folder / "model.py").write_text(MODULE)
    limi.audit(
        decide,
        people_of_the_run(),
        protected=["sex"],
        target="ok",
        favorable=1,
        output="score",
        method="natural",
        max_rows=200,
        rate_rows=100,
        constraints=CONSTRAINTS,
        out=folder / "run",
    )
    return folder


@pytest.fixture
def served(monkeypatch, untried):
    """What would be served, without serving it."""
    seen = []

    def serve(exploration, guard, sock, tell):
        sock.close()
        exploration.jobs.close()
        seen.append((exploration, guard))

    monkeypatch.setattr(server, "serve", serve)
    return seen


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("gone",), "is not a run folder"),
        (("people.parquet",), "name the model: --model KIND:PLACE"),
        (("run", "--protected", "sex"), "is a run, which already knows it"),
        (("run", "--seed", "0"), "--seed is for a table"),
        (("people.parquet", "--table", "people.parquet"), "leave --table out"),
        (("run", "--host", "0.0.0.0"), "--token is needed"),
        (("run", "--token", "short"), "16 printable ASCII"),
        (("run", "--port", "70000"), "port is 70000"),
        (("run", "--timeout", "0"), "timeout is 0"),
        (("run", "--max-queries", "0", "--read-only"), "max-queries is 0"),
        (("run",), "given in memory"),
    ],
)
def test_what_cannot_be_explored_is_one_sentence(limi, place, monkeypatch, words, sentence):
    monkeypatch.chdir(place)
    code, out, err = limi("explore", *words)
    assert code == 2
    assert sentence in " ".join(err.split())
    assert out == ""


def test_a_run_and_a_table_are_served_at_an_address_of_this_machine(
    limi, place, monkeypatch, served
):
    monkeypatch.chdir(place)
    asks = ("--model", "python:model.py:decide", "--json", "--max-queries", "900")
    code, out, _ = limi("explore", "run", "--table", "people.parquet", *asks)
    assert code == 0
    exploration, guard = served.pop()
    told = json.loads(out)
    assert told["address"] == guard.address
    assert told["address"].startswith(f"http://127.0.0.1:{told['port']}/?token=")
    assert exploration.meter.most == 900
    about = ("--protected", "sex", "--target", "ok", "--favorable", "1")
    code, out, _ = limi("explore", "people.parquet", *about, *asks)
    assert code == 0
    exploration, _ = served.pop()
    assert exploration.found is None
    assert len(exploration.rows) == len(people_of_the_run())


def test_bookmarks_are_told_by_the_report(limi, place, monkeypatch):
    monkeypatch.chdir(place)
    x = explore_run("run", model=decide, table="people.parquet")
    x.bookmark(x.who("f0").row, x.who("f0").row, "look at \x1b[31mher")
    x.jobs.close()
    code, out, _ = limi("report", "run", "--html", "page.html")
    assert code == 0
    assert "Bookmarked people" in out
    assert "\x1b" not in out
    assert "Bookmarked people" in (place / "page.html").read_text()
    assert json.loads(limi("report", "run", "--json")[1])["bookmarks"][0]["flips"] is True

"""A small run that all tests of exploring share: a rule by hand, a table of 400 people."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import limi
from limi.explore.guard import Guard
from limi.explore.opening import explore_run
from limi.explore.server import make_app

with warnings.catch_warnings():  # it would like the successor of httpx
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

JOBS = ("clerk", "sales", "craft <b>")


def people(n=400, seed=0):
    """People of four columns; hours and jobs go a little with sex."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(2, size=n)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 81, size=n),
            "hours": np.clip(rng.normal(36 + 4 * sex, 8, size=n).round(), 1, 60).astype(int),
            "job": np.array(JOBS)[np.minimum(rng.integers(3, size=n) + sex, 2)],
            "sex": np.where(sex == 1, "M", "F"),
            "ok": rng.integers(2, size=n),
        }
    )
    frame.loc[:5, ["age", "job"]] = [19, "clerk"]
    return frame


def decide(frame):
    """A score by hand: three points in favor of men."""
    points = (
        (np.asarray(frame["age"], dtype=float) - 50) / 10
        + (np.asarray(frame["hours"], dtype=float) - 36) / 6
        + np.where(np.asarray(frame["sex"]) == "M", 0.6, -0.6)
        + 0.051
    )
    return 1 / (1 + np.exp(-points))


def decide_evenly(frame):
    """The same without regard to sex."""
    return decide(frame.assign(sex="M"))


CONSTRAINTS = {"young clerks": 'age < 20 implies job == "clerk"'}


def people_of_the_run():
    frame = people()
    return frame[(frame.age >= 20) | (frame.job == "clerk")]


def make_run(folder):
    """A finished run of the rule by hand."""
    limi.audit(
        decide,
        people_of_the_run(),
        protected=["sex"],
        target="ok",
        favorable=1,
        output="score",
        method="natural",
        max_rows=600,
        rate_rows=300,
        constraints=CONSTRAINTS,
        out=folder,
    )
    return folder


def open_run(folder, **options):
    return explore_run(folder, **{"model": decide, "table": people_of_the_run(), **options})


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """The folder of a finished run."""
    return make_run(tmp_path_factory.mktemp("explore") / "run")


@pytest.fixture(scope="session")
def table():
    return people_of_the_run()


@pytest.fixture
def opened(run, tmp_path):
    """An exploration of the run, with a record of its own."""
    made = []

    def open_one(**options):
        made.append(open_run(run, **{"record": tmp_path / "explore.jsonl", **options}))
        return made[-1]

    yield open_one
    for one in made:
        one.jobs.close()


class Browser:
    """A client that has opened the page, with the token of its forms."""

    def __init__(self, exploration, **options):
        self.x = exploration
        self.guard = Guard.local(8000)
        self.said = []
        self.app = make_app(exploration, self.guard, self.said.append)
        self.client = TestClient(self.app, base_url="http://127.0.0.1:8000", **options)
        assert self.client.get(self.guard.address).status_code == 200
        page = self.client.get("/record").text
        self.token = re.search(r'data-token="([^"]+)"', page)[1]

    def get(self, path, **options):
        return self.client.get(path, **options)

    def post(self, path, data=None, part=True, **options):
        headers = {"X-Limi": "part"} if part else {}
        data = {"token": self.token, **(data or {})}
        return self.settle(self.client.post(path, data=data, headers=headers, **options))

    def settle(self, answer):
        """The answer once its job has ended."""
        for _ in range(600):
            job = re.search(r'data-job="(\d+)"', answer.text)
            if job is None:
                return answer
            self.x.jobs.get(int(job[1])).wait(0.5)
            answer = self.client.get(f"/job/{job[1]}", headers={"X-Limi": "part"})
        raise AssertionError("the job does not end")


@pytest.fixture
def browser(opened):
    return Browser(opened())

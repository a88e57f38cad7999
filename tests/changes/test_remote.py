"""A newer model behind an address: asked with its headers, about the same people."""

import pytest

import limi
from limi import Remote
from limi.errors import InvalidInput
from tests.changes.small import by_sex, people
from tests.remote.servers import App, serving

COLUMNS = ["age", "job", "sex"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("remote") / "run"
    limi.audit(
        by_sex(20),
        people(200),
        protected=["sex"],
        target="ok",
        favorable="yes",
        output="score",
        generator=None,
        method="real",
        rate_rows=0,
        out=folder,
    )
    return folder


def test_a_replay_and_a_diff_ask_a_server_as_they_ask_a_function(run):
    app = App(by_sex(10), COLUMNS)
    remote = Remote(headers=("X-Team: fairness",))
    with serving(app) as address:
        there = limi.replay(run, f"mlflow:{address}", table=people(200), remote=remote)
        compared = limi.diff(
            run,
            model=f"mlflow:{address}",
            before_model=by_sex(20),
            table=people(200),
            rows=50,
            remote=remote,
        )
    assert there.counts == limi.replay(run, by_sex(10), table=people(200)).counts
    assert compared.populations[0].change.word == "better"
    assert all(headers.get("X-Team") == "fairness" for headers in app.headers)


def test_headers_without_an_address_are_refused(run):
    remote = Remote(headers=("X-Team: fairness",))
    with pytest.raises(InvalidInput, match="for a model behind an address"):
        limi.replay(run, by_sex(10), table=people(200), remote=remote)
    with pytest.raises(InvalidInput, match="for a model behind an address"):
        limi.diff(run, model=by_sex(10), before_model=by_sex(20), table=people(200), remote=remote)

"""A model behind an address: a real server on loopback that answers late, badly or not at all."""

from __future__ import annotations

import re
import threading

import pytest

from limi.audits.problem import prepare
from limi.audits.sending import settle_remote
from limi.explore.opening import explore_problem, wait_at_most
from limi.explore.views import base
from limi.remote.options import Remote
from tests.explore.conftest import Browser
from tests.remote.servers import App, favorable_chance, people, serving


@pytest.fixture(scope="module")
def app():
    return App()


@pytest.fixture(scope="module")
def uri(app):
    with serving(app) as there:
        yield f"instances:{there}/v1/models/credit:predict"


@pytest.fixture(scope="module")
def problem(uri):
    return prepare(
        uri,
        people(),
        protected=["sex"],
        target="ok",
        favorable=1,
        remote=settle_remote(uri, Remote(backoff=0.0)),
    )


@pytest.fixture
def browser(problem, app):
    x = explore_problem(problem)
    yield Browser(x)
    app.before = None
    x.jobs.close()


@pytest.fixture
def held(app, monkeypatch):
    """The server keeps whoever asks waiting, until it is let go."""
    monkeypatch.setattr(base, "PATIENCE", 0.01)
    entered, go = threading.Event(), threading.Event()

    def wait(*request):
        entered.set()
        go.wait(20)
        go.set()  # also where nobody let it go in time

    app.before = wait
    yield entered, go
    app.before = None
    go.set()


def ask(browser, ref):
    data = {"token": browser.token}
    return browser.client.post(f"/person/{ref}/ask", data=data, headers={"X-Limi": "part"})


def score_of(page, label):
    return float(re.search(rf'data-score="{label}">([\d.]+)<', page.text)[1])


def test_a_server_is_asked_once_about_a_person_and_what_it_was_sent_is_counted(browser, app):
    sent = app.asked
    assert browser.x.meter.asked == sent  # what opening the model took
    answer = browser.post("/person/r3/ask")
    person = people().iloc[[3]]
    for sex in "fm":
        expected = favorable_chance(person.assign(sex=sex))[0]
        assert score_of(answer, f"sex {sex}") == pytest.approx(expected, abs=5e-4)
    browser.post("/person/r3/ask")
    assert app.asked <= sent + 2
    assert answer.headers["x-limi-asked"] == f"{sent + 2:,}"


def test_a_server_is_waited_for_in_sight_and_a_question_can_be_cancelled(browser, held):
    entered, go = held
    waiting = ask(browser, "r5")
    assert entered.wait(20)
    assert "Asking the model" in waiting.text
    job = int(re.search(r'data-job="(\d+)"', waiting.text)[1])
    cancelled = browser.client.post(f"/job/{job}/cancel", data={"token": browser.token})
    assert "cancelled after" in cancelled.text
    go.set()
    assert "data-score" in browser.settle(ask(browser, "r6")).text


def test_the_next_question_does_not_wait_for_a_cancelled_one(browser, app, held):
    entered, go = held
    waiting = ask(browser, "r15")
    assert entered.wait(20)
    app.before = None  # the next one is answered; the first hangs until the end of this test
    job = int(re.search(r'data-job="(\d+)"', waiting.text)[1])
    browser.client.post(f"/job/{job}/cancel", data={"token": browser.token})
    assert "data-score" in browser.settle(ask(browser, "r16")).text
    assert not go.is_set()
    again = browser.settle(ask(browser, "r15"))  # what was cancelled can be asked again
    expected = favorable_chance(people().iloc[[15]].assign(sex="f"))[0]
    assert score_of(again, "sex f") == pytest.approx(expected, abs=5e-4)


def test_the_next_question_does_not_wait_for_one_that_was_given_up(browser, app, held):
    entered, go = held
    waiting = ask(browser, "r17")
    assert entered.wait(20)
    app.before = None
    browser.x.jobs.patience = 0.0
    assert "has not answered for 0 seconds" in browser.settle(waiting).text
    browser.x.jobs.patience = 60.0
    assert "data-score" in browser.settle(ask(browser, "r18")).text
    assert not go.is_set()


def test_a_server_that_is_silent_is_given_up_with_a_sentence(browser, held):
    entered, go = held
    waiting = ask(browser, "r7")
    assert entered.wait(20)
    browser.x.jobs.patience = 0.0
    assert "has not answered for 0 seconds" in browser.settle(waiting).text
    browser.x.jobs.patience = 60.0
    go.set()
    assert "data-score" in browser.settle(ask(browser, "r8")).text


def test_a_server_that_fails_is_a_sentence_and_not_the_end(browser, app):
    app.before = lambda *request: (400, "application/json", b'{"error": "out of <i>sorts</i>"}')
    answer = browser.post("/person/r9/ask")
    assert "400" in answer.text
    assert "<i>" not in answer.text
    app.before = None
    assert "data-score" in browser.post("/person/r9/ask").text


def test_no_request_waits_longer_than_the_session_does(uri):
    assert wait_at_most(5, uri, None).timeout == 5
    assert wait_at_most(5, uri, Remote(timeout=2)).timeout == 2
    assert wait_at_most(5, "skops:model.skops", None) is None

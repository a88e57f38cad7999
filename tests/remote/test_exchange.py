"""Answers come back in order whatever happens on the way, or the run stops with a sentence."""

import json
import socket
import threading
from contextlib import contextmanager, suppress
from itertools import count

import numpy as np
import pytest

from limi.errors import BadModel, Unreachable
from limi.models import load
from limi.remote.options import Remote
from limi.remote.pace import Patience
from limi.system.watch import OutOfQueries, OutOfTime
from tests.remote.servers import COLUMNS, ROUTES, App, favorable_chance, people, serving

ROWS = people(200, seed=5)[COLUMNS]


@pytest.fixture
def ask():
    """Opens a model; what it returns asks it for rows."""
    opened = []

    def at(address, **given):
        model = load(f"mlflow:{address}", favorable=1, remote=Remote(backoff=0.001, **given))
        opened.append(model)
        return model, lambda rows: np.asarray(model.exchange(rows))

    yield at
    for model in opened:
        model.exchange.rest()


def some_times(n, status, body=b"", kind="application/json"):
    """The first n requests get this instead of an answer."""
    left = iter(range(n))
    lock = threading.Lock()

    def before(method, path, content):
        with lock:
            return (status, kind, body) if next(left, None) is not None else None

    return before


@pytest.mark.parametrize("concurrency", [1, 7])
def test_answers_keep_the_order_of_the_rows(ask, app, address, concurrency):
    _, asked = ask(address, concurrency=concurrency)
    assert np.array_equal(asked(ROWS), favorable_chance(ROWS))


def test_no_row_is_sent_twice(ask, app, address):
    model, asked = ask(address)
    doubled = ROWS.iloc[[0, 1, 0, 2, 1]]
    assert np.array_equal(asked(doubled), favorable_chance(doubled))
    asked(ROWS[:10])
    assert max(app.rows.values()) == 1
    assert model.exchange.tally.sent == app.asked == 10
    assert model.exchange.tally.known == 5


def test_a_row_that_is_asked_anew_is_sent_again(ask, app, address):
    model, asked = ask(address)
    asked(ROWS[:3])
    for _ in range(2):  # the answers of the second block are those of the first
        with model.anew():
            for _ in range(3):
                asked(ROWS[:3])
    assert set(app.rows.values()) == {3}
    with model.anew(1):
        asked(ROWS[:3].iloc[[0, 1, 2, 0]])
    assert model.exchange.tally.sent == 9


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_may_pass_is_tried_again(ask, app, address, status):
    app.before = some_times(3, status, b"busy")
    model, asked = ask(address, concurrency=1)
    assert np.array_equal(asked(ROWS[:5]), favorable_chance(ROWS[:5]))
    tally = model.exchange.tally
    assert (tally.sent, tally.again, tally.failed) == (5, 15, 3)
    assert tally.failures == {f"status {status}": 3}


def test_the_server_says_how_long_to_wait(ask, app, address, monkeypatch):
    app.before = some_times(1, 429, b"", {"Retry-After": "7"})
    model, asked = ask(address, concurrency=1)
    waited = []
    monkeypatch.setattr(model.exchange._line.stop, "wait", waited.append)
    asked(ROWS[:5])
    assert waited[-1] == pytest.approx(7.0, abs=0.5)


def test_a_server_that_asks_to_wait_is_left_alone_by_all_requests(ask, app, address, monkeypatch):
    app.before = some_times(1, 429, b"", {"Retry-After": "7"})
    model, asked = ask(address, concurrency=4)
    waited = []
    monkeypatch.setattr(model.exchange._line.stop, "wait", waited.append)
    asked(ROWS)
    asked(people(3, seed=7)[COLUMNS])
    assert sum(seconds > 5 for seconds in waited) >= 2


def test_a_server_that_wants_to_be_left_alone_for_an_hour_ends_the_run(ask, app, address):
    app.before = some_times(1, 503, b"", {"Retry-After": "3600"})
    _, asked = ask(address)
    with pytest.raises(Unreachable, match=r"a pause of 3,600 seconds.*resume"):
        asked(ROWS[:5])


def test_the_circuit_opens_after_failures_in_a_row(ask, app, address):
    app.before = some_times(10**6, 500)
    _, asked = ask(address, concurrency=4)
    with pytest.raises(Unreachable, match="is the address right"):
        asked(ROWS)
    assert app.requests <= 24
    app.before = None
    asked(ROWS[:10])
    app.before = some_times(10**6, 500)
    with pytest.raises(Unreachable, match="no longer answers"):
        asked(ROWS)
    assert app.requests <= 24 + 1 + 24 + 4


def test_nothing_that_was_answered_is_lost_when_the_circuit_opens(ask, app, address):
    refuse = set(ROWS["age"][100:140])

    def before(method, path, body):
        ages = {row[0] for row in json.loads(body)["dataframe_split"]["data"]}
        return (500, "text/plain", b"") if ages & refuse and len(ages) > 3 else None

    _, asked = ask(address, concurrency=2)
    asked(ROWS[:50])
    app.before = before
    with pytest.raises(Unreachable):
        asked(ROWS)
    app.before = None
    known = app.asked
    assert np.array_equal(asked(ROWS), favorable_chance(ROWS))
    assert app.asked - known < 200
    assert max(app.rows.values()) == 1


def test_nobody_there_is_unreachable(ask):
    with serving(App()) as gone:
        pass
    _, asked = ask(gone)
    with pytest.raises(Unreachable, match="no connection"):
        asked(ROWS[:5])


@pytest.mark.parametrize(
    ("status", "kind", "body", "words"),
    [
        (400, "application/json", b'{"message": "no column abc"}', "refuses the rows .*no column"),
        (401, "text/plain", b"who are you?", "refuses access .*--header"),
        (404, "text/plain", b"", "does not know POST /invocations"),
        (422, "text/plain", b"bad", "status 422: bad"),
        (200, "text/html", b"<html><title>Log in</title></html>", "web page: Log in"),
        (302, {"Location": "/login"}, b"", "login page"),
        (307, {"Location": "http://other.example/x"}, b"", "redirects to http://other.example;"),
        (307, {"Location": "https://127.0.0.1/x"}, b"", "redirects to https://127.0.0.1;"),
        (307, {"Location": "http://[::1"}, b"", "redirects to something that is not an address"),
        (307, {"Location": "/invocations"}, b"", "in a loop"),
        (200, "application/json", b'{"predictions": [NaN]}', "answers NaN"),
        (200, "application/json", b'{"predictions": [null]}', "leaves answers out"),
    ],
)
def test_what_cannot_pass_stops_at_once(ask, app, address, status, kind, body, words):
    app.before = lambda *request: (status, kind, body)
    _, asked = ask(address)
    with pytest.raises(BadModel, match=words):
        asked(ROWS[:1])
    assert app.requests <= 3


def test_answers_of_different_lengths_are_said_to_be(ask, app, address):
    app.before = lambda *request: (200, "application/json", b'{"predictions": [[0.5, 0.5], [1]]}')
    _, asked = ask(address)
    with pytest.raises(BadModel, match="lists of different lengths"):
        asked(ROWS[:2])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"predictions": [0.5, 0.5]}', "2 answers for 1 rows"),
        (b"gibberish", "no JSON"),
        (b"", "empty body"),
        (b'{"answers": [0.5]}', "no 'predictions'"),
        (b'{"predictions": 0.5}', "no list of answers"),
        (b"[0.5]", "there is a list"),
    ],
)
def test_an_answer_that_can_never_be_read_is_believed_in_the_end(ask, app, address, body, words):
    app.before = lambda *request: (200, "application/json", body)
    _, asked = ask(address, concurrency=1)
    with pytest.raises(BadModel, match=f"{words}.*6 times"):
        asked(ROWS[:1])


def test_a_body_without_end_is_refused(ask, app, address, monkeypatch):
    monkeypatch.setattr("limi.remote.client._MOST_BYTES", 1 << 20)
    app.before = lambda *request: (200, "application/json", b" " * (2 << 20))
    _, asked = ask(address)
    with pytest.raises(BadModel, match="more than 1 MB"):
        asked(ROWS[:1])


def test_requests_shrink_where_the_server_says_they_are_too_large(ask, app, address):
    def before(method, path, body):
        n = len(json.loads(body)["dataframe_split"]["data"])
        return (413, "text/plain", b"") if n > 10 else None

    app.before = before
    model, asked = ask(address, concurrency=2)
    assert np.array_equal(asked(ROWS), favorable_chance(ROWS))
    assert model.exchange.tally.sent == len(ROWS.drop_duplicates())
    app.before = lambda *request: (413, "text/plain", b"")
    with pytest.raises(BadModel, match="single row is too large"):
        asked(people(3, seed=99)[COLUMNS])


def test_requests_grow_within_a_call_while_that_is_faster_for_each_row(
    ask, app, address, monkeypatch
):
    sizes = []
    app.before = lambda method, path, body: sizes.append(body.count(b"],[") + 1)
    model, asked = ask(address, concurrency=1)
    learn = model.exchange._pace.learn
    # A second for every request, whatever its rows.
    monkeypatch.setattr(model.exchange._pace, "learn", lambda n, seconds: learn(n, 1.0))
    asked(people(2000, seed=8)[COLUMNS])
    assert sizes[:5] == [64, 128, 256, 512, 1024]


def test_no_more_rows_are_sent_than_allowed(ask, app, address):
    model, asked = ask(address, max_queries=20, concurrency=1)
    asked(ROWS[:15])
    with pytest.raises(OutOfQueries):
        asked(ROWS[:30])
    assert app.asked <= 20
    assert np.array_equal(asked(ROWS[:15]), favorable_chance(ROWS[:15]))
    model.exchange.allow(5)
    asked(ROWS[100:105])
    assert app.asked <= 25


def test_a_secret_that_a_server_repeats_is_not_shown(ask, app, address, monkeypatch):
    monkeypatch.setenv("LIMI_TEST_TOKEN", "canary-9271")
    app.before = lambda *request: (400, "text/plain", b"bad token canary-9271")
    _, asked = ask(address, headers=("Authorization: Bearer $LIMI_TEST_TOKEN",))
    with pytest.raises(BadModel) as refused:
        asked(ROWS[:1])
    assert "canary" not in str(refused.value)
    assert "bad token $LIMI_TEST_TOKEN" in str(refused.value)
    assert app.headers[-1]["Authorization"] == "Bearer canary-9271"


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (200, "text/plain", b"bad canary-9271"),
        (200, "application/json", b'{"canary-9271": 1}'),
        (200, "application/json", b'{"predictions": [{"canary-9271": 1, "b": 2}]}'),
        (302, {"Location": "/login/canary-9271"}, b""),
        (307, {"Location": "http://canary-9271/"}, b""),
        (500, "text/plain", b"canary-9271"),
    ],
)
def test_a_secret_is_hidden_in_whatever_a_server_says(
    ask, app, address, monkeypatch, status, kind, body
):
    monkeypatch.setenv("LIMI_TEST_TOKEN", "canary-9271")
    app.before = lambda *request: (status, kind, body)
    model, asked = ask(address, headers=("Authorization: Bearer $LIMI_TEST_TOKEN",))
    with pytest.raises(BadModel) as refused:
        asked(ROWS[:1])
    assert "canary" not in str(refused.value)
    assert "canary" not in str(model.exchange.tally.as_dict())


def test_a_secret_given_as_an_answer_is_neither_kept_nor_shown(
    ask, app, address, monkeypatch, tmp_path
):
    monkeypatch.setenv("LIMI_TEST_TOKEN", "canary-9271")
    app.before = lambda *request: (200, "application/json", b'{"predictions": ["canary-9271"]}')
    given = {"headers": ("X-Key: $LIMI_TEST_TOKEN",), "cache": tmp_path / "cache"}
    model, asked = ask(address, **given)
    assert asked(ROWS[:1]).tolist() == ["$LIMI_TEST_TOKEN"]
    model.exchange.rest()
    assert b"canary" not in (tmp_path / "cache").read_bytes()


def test_a_key_in_the_address_is_sent_and_not_kept(app, address, monkeypatch, tmp_path):
    monkeypatch.setenv("LIMI_TEST_TOKEN", "canary-9271")
    paths = []
    app.before = lambda method, path, body: paths.append(path) or ROUTES["/invocations"](app, body)
    remote = Remote(cache=tmp_path / "cache")
    model = load(f"mlflow:{address}/invocations?key=$LIMI_TEST_TOKEN", favorable=1, remote=remote)
    model.exchange(ROWS[:1])
    model.exchange.rest()
    assert paths == ["/invocations?key=canary-9271"]
    assert b"canary" not in (tmp_path / "cache").read_bytes()


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"])
def test_an_answer_that_trickles_ends_in_time(ask, head):
    """A byte now and then keeps within any limit on a single read, in the head and in the body."""
    server = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def trickle():
        while not stop.is_set():
            with suppress(OSError):
                client, _ = server.accept()
                with client:
                    client.recv(65536)
                    client.sendall(head)
                    for byte in b"HTTP/1.1 200 OK\r\nX-A: " + 400 * b"a":
                        client.sendall(bytes([byte]))
                        if stop.wait(0.02):
                            break

    thread = threading.Thread(target=trickle, daemon=True)
    thread.start()
    model, asked = ask(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.1)
    with pytest.raises(Unreachable, match=r"no answer within 0\.1 seconds"):
        asked(ROWS[:1])
    stop.set()
    with suppress(OSError):
        socket.create_connection(server.getsockname(), timeout=1).close()
    thread.join(5)
    server.close()
    assert set(model.exchange.tally.failures) == {"no answer in time"}


@contextmanager
def silent(app, forever=False):
    """Every fifth request is never answered, or all of them."""
    over, lock, n = threading.Event(), threading.Lock(), count(1)

    def before(*request):
        with lock:
            hangs = forever or next(n) % 5 == 0
        if hangs:
            over.wait(30)

    app.before = before
    try:
        yield
    finally:
        over.set()


def test_a_lost_request_costs_what_answers_take_and_not_the_time_out(
    ask, app, address, monkeypatch
):
    monkeypatch.setattr("limi.remote.pace._SHORTEST", 0.3)
    model, asked = ask(address, concurrency=1)
    with silent(app):
        for start in range(0, 60, 6):
            rows = ROWS[start : start + 6]
            assert np.array_equal(asked(rows), favorable_chance(rows))
    tally = model.exchange.tally
    assert tally.failures["no answer in time"] >= 2
    assert tally.sent == len(ROWS[:60].drop_duplicates())


def test_a_server_that_never_answers_is_given_up_after_two_time_outs(ask, app, address):
    _, asked = ask(address, timeout=0.2)
    with silent(app, forever=True), pytest.raises(Unreachable, match=r"within 0\.2 seconds"):
        asked(ROWS)
    assert app.requests <= 8


def test_a_silent_server_is_told_of_while_it_is_waited_for(ask, app, address, caplog, monkeypatch):
    monkeypatch.setattr("limi.remote.exchange._SILENCE", 0.05)
    _, asked = ask(address, timeout=0.3)
    with silent(app, forever=True), pytest.raises(Unreachable):
        asked(ROWS[:1])
    assert f"{address.removeprefix('http://')} has not answered for" in caplog.text


def test_a_request_is_given_up_when_the_time_is_over(ask, app, address):
    """And its thread ends with it, so that no program waits for it when it ends."""
    looks = count()

    def look():
        if next(looks):
            raise OutOfTime

    _, asked = ask(address, look=look)
    before = threading.active_count()
    with silent(app, forever=True), pytest.raises(OutOfTime):
        asked(ROWS[:1])
    ours = [thread for thread in threading.enumerate() if thread.name.startswith("limi-remote")]
    for thread in ours:
        thread.join(10)
    assert not any(thread.is_alive() for thread in ours)
    assert threading.active_count() <= before + 1  # the server's


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_refuses_every_request_is_quoted(ask, app, address, status):
    app.before = lambda *request: (status, "text/plain", b"the quota of today is used up")
    _, asked = ask(address)
    with pytest.raises(Unreachable, match=f"status {status}: the quota of today is used up"):
        asked(ROWS[:1])


def test_patience_grows_with_the_rows_and_with_every_time_out():
    patience = Patience(60)
    assert patience.seconds(64) == 60
    for _ in range(4):
        patience.learn(10, 0.5)
    assert patience.seconds(1) == patience.seconds(10) == 4
    assert patience.seconds(20) == patience.seconds(10, late=1) == 8
    assert patience.seconds(10, late=9) == 60
    for _ in range(32):
        patience.learn(10, 0.001)
    assert patience.seconds(10) == 1


def test_https_spoken_to_a_server_of_http_is_said(ask, app, address):
    _, asked = ask(address.replace("http:", "https:"))
    with pytest.raises(BadModel, match="does not speak https"):
        asked(ROWS[:1])


def test_two_runs_with_one_cache_pay_for_a_row_once(ask, app, address, tmp_path):
    (_, one), (_, two) = (ask(address, cache=tmp_path / "cache", run=run) for run in "ab")
    assert np.array_equal(one(ROWS[:50]), favorable_chance(ROWS[:50]))
    assert np.array_equal(two(ROWS[:60]), favorable_chance(ROWS[:60]))
    assert np.array_equal(one(ROWS[:60]), favorable_chance(ROWS[:60]))
    assert max(app.rows.values()) == 1


def test_proxies_of_the_environment_are_not_used(ask, app, address, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    _, asked = ask(address)
    assert np.array_equal(asked(ROWS[:2]), favorable_chance(ROWS[:2]))


def test_a_certificate_that_nobody_has_signed_stops_the_run(ask, app):
    with serving(app, tls=True) as address:
        _, asked = ask(address)
        with pytest.raises(BadModel, match=r"certificate of 127.0.0.1.* is not valid"):
            asked(ROWS[:1])
    assert app.requests == 0

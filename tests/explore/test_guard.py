"""Who may talk to the page, and what nobody can make it do."""

import re

import pytest

from limi.errors import InvalidInput
from limi.explore.guard import Guard
from limi.explore.query import MOST_BYTES
from limi.explore.server import bind, make_app
from tests.explore.conftest import Browser, TestClient


def test_the_address_opens_once_and_the_cookie_is_kept_from_scripts(opened):
    guard = Guard.local(8000)
    client = TestClient(make_app(opened(), guard), base_url="http://127.0.0.1:8000")
    assert client.get("/findings").status_code == 403
    address = guard.address
    answer = client.get(address)
    assert answer.status_code == 200
    assert re.search("; HttpOnly; Path=/; SameSite=strict", answer.headers["set-cookie"])
    assert guard.token not in (address,)
    assert client.get("/findings").status_code == 200
    other = TestClient(make_app(opened(), guard), base_url="http://127.0.0.1:8000")
    assert other.get(address).status_code == 403
    assert other.get("/findings").status_code == 403


@pytest.mark.parametrize(
    ("guard", "says"),
    [
        (Guard.local(8000), "the terminal now shows a new one"),
        (Guard.local(8000, framed=True), "in the notebook is a new one"),
        (Guard.at("127.0.0.1", 8000, "a secret of many letters"), "the token that limi explore"),
    ],
)
def test_who_is_refused_learns_where_an_address_that_works_is(opened, guard, says):
    client = TestClient(make_app(opened(), guard), base_url="http://127.0.0.1:8000")
    for page in ("/findings", "/?token=guess"):
        answer = client.get(page)
        assert answer.status_code == 403
        assert says in answer.text


def test_a_used_address_is_renewed_where_limi_runs_and_not_on_the_page(browser):
    stranger = TestClient(browser.app, base_url="http://127.0.0.1:8000")
    shown = stranger.get("/?token=guess").text
    assert len(browser.said) == 1
    renewed = re.search(r"token=(\S+)", browser.said[0])[1]
    assert renewed not in shown
    assert stranger.get("/findings").status_code == 403
    assert len(browser.said) == 1  # anybody may knock, and is told once
    assert stranger.get(f"/?token={renewed}").status_code == 200
    assert stranger.get("/findings").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:8000.evil", "[::1]:8001", ""]
)
def test_other_names_are_not_answered(browser, host):
    answer = browser.get("/findings", headers={"Host": host})
    assert answer.status_code == 421
    assert "people" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"])
def test_this_machine_s_names_are(browser, host):
    assert browser.guard.admits_host(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.0.0.1:80"])
def test_browsers_leave_out_the_usual_port(host):
    assert Guard.local(80).admits_host(host)
    assert not Guard.local(80).admits_host("evil.example")
    assert not Guard.local(80).admits_host(f"{host}:8080")


def test_a_network_needs_a_token_and_is_reached_by_numbers():
    with pytest.raises(InvalidInput, match="--token is needed"):
        Guard.at("0.0.0.0", 8000, None)
    with pytest.raises(InvalidInput, match="16 printable"):
        Guard.at("0.0.0.0", 8000, "short")
    guard = Guard.at("0.0.0.0", 8000, "a secret of many letters")
    assert guard.admits_host("192.168.1.7:8000")
    assert not guard.admits_host("evil.example:8000")
    assert guard.open("a secret of many letters")
    assert guard.open("a secret of many letters")  # several people have it
    assert guard.open("another one") is None
    assert not Guard.at("10.0.0.1", 8000, "a secret of many letters").admits_host("10.0.0.2:8000")


@pytest.mark.parametrize(
    ("data", "headers"),
    [
        ({"token": "wrong"}, {}),
        ({}, {}),
        (None, {"Origin": "http://evil.example"}),
        (None, {"Sec-Fetch-Site": "cross-site"}),
    ],
)
def test_what_changes_something_needs_the_page_s_token(browser, data, headers):
    data = {"token": browser.token} if data is None else data
    before = browser.x.meter.asked
    answer = browser.client.post("/person/f0/ask", data=data, headers=headers)
    assert answer.status_code == 403
    assert browser.x.meter.asked == before
    assert browser.x.record.entries == []


def test_a_session_s_token_is_of_that_session_alone(browser, opened):
    other = Browser(opened())
    answer = browser.client.post("/person/f0/ask", data={"token": other.token})
    assert answer.status_code == 403


def test_every_answer_forbids_what_a_page_does_not_need(browser):
    for path in ("/findings", "/nothing", "/static/explore.js", "/person/f0", "/export/csv"):
        headers = browser.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe-inline" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


def test_pages_hold_no_script_and_no_style_of_their_own(browser):
    for path in ("/findings", "/people", "/person/f0", "/where", "/map?people=real", "/record"):
        text = browser.get(path).text
        assert re.findall(r"<script[^>]*>", text) == ['<script src="/static/explore.js" defer>']
        assert "<style" not in text
        assert not re.search(r"\son[a-z]+=|\sstyle=|javascript:", text)
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//', text)


def test_cells_are_shown_as_text(browser):
    for path in ("/findings", "/people", "/person/f0", "/where"):
        text = browser.get(path).text
        assert "craft &lt;b&gt;" in text
        assert "craft <b>" not in text
    answer = browser.post("/person/f0/bookmark", {"note": "<script>alert(1)</script>"})
    assert answer.status_code == 200
    assert "&lt;script&gt;alert(1)" in browser.get("/record").text


def test_requests_are_bounded(browser):
    assert browser.post("/person/f0/ask", {"note": "x" * (MOST_BYTES + 1)}).status_code == 413
    assert browser.get("/findings?c0.low=" + "9" * 20_000).status_code == 414
    assert browser.get("/" + "a" * 300).status_code == 414
    many = "&".join(f"c0={k}" for k in range(600))
    assert browser.get(f"/findings?{many}").status_code == 400
    answer = browser.client.post(
        "/person/f0/ask", content=b"{}", headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "path",
    [
        "/static/..%2f..%2fguard.py",
        "/static/layout.html",
        "/person/..%2f..%2fetc",
        "/export/passwd",
        "/person/f-1",
        "/person/f99999999999",
        "/person/x1",
        "/job/99",
        "/findings/",
    ],
)
def test_no_path_leads_to_a_file(browser, path):
    answer = browser.get(path, follow_redirects=False)
    assert answer.status_code in (400, 404, 307)
    assert "import" not in answer.text
    assert "Traceback" not in answer.text


def test_a_port_that_is_taken_is_one_sentence():
    taken = bind("127.0.0.1", 0)
    with pytest.raises(InvalidInput, match="limi cannot listen on"):
        bind("127.0.0.1", taken.getsockname()[1])
    taken.close()


def test_every_address_of_a_notebook_opens_the_page_once_by_itself():
    guard = Guard.local(8000, framed=True)
    first, second = (guard.add_address().partition("token=")[2] for _ in range(2))
    assert guard.open(first) is not None
    assert guard.open(first) is None
    assert guard.open(guard.token) is not None
    assert guard.open(second) is not None
    assert guard.open("") is None


def test_only_notebooks_may_frame_the_page():
    framed = Guard.local(8000, framed=True).headers["Content-Security-Policy"]
    ancestors = framed.partition("frame-ancestors ")[2].split()
    assert all(
        one.startswith(("http://localhost:", "http://127.0.0.1:", "vscode-")) for one in ancestors
    )

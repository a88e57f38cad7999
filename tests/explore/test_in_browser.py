"""The page in headless Chromium: what an auditor does by mouse and keyboard, and bad luck."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest

from limi import generators
from limi.explore.server import serve_aside
from limi.metrics._rate import clopper_pearson
from tests.explore.conftest import decide
from tests.report.test_in_browser import ARGUMENTS, CHROMIUM, CONTRAST, OUTSIDE, PAPER

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def chromium():
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM}; install it, or name one in LIMI_CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS, headless=True)


@pytest.fixture
def served(opened):
    one = serve_aside(opened())
    yield one
    one.stop()


@pytest.fixture
def page(chromium, served):
    """A tab that has opened the page; nothing may be complained of or asked for elsewhere."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(served.address)
    tab.wait_for_url("**/findings")
    tab.base = re.match(r"http://[^/]+", tab.url)[0]
    yield tab
    context.close()
    assert complaints == []
    assert all(url.startswith(tab.base) for url in asked)


def score_of(page, label):
    return float(page.locator(f'[data-score="{label}"]').inner_text())


def cells_of(page, names):
    cells = {}
    for position, name in enumerate(names):
        field = page.locator(f"#cell-{position}")
        tag = field.evaluate("e => e.tagName")
        cells[name] = (
            [float(field.input_value())]
            if tag == "INPUT"
            else [field.evaluate("e => e.selectedOptions[0].textContent")]
        )
    return pd.DataFrame(cells)


def test_an_auditor_filters_changes_a_cell_and_finds_the_nearest_flip(page, served):
    x = served.exploration
    page.get_by_role("group").filter(has_text="job").locator("summary", has_text="job").click()
    page.locator('input[name="c2"][value="0"]').check()
    page.wait_for_url("**c2=0**")
    clerks = int((x.found.sheet["c2"].take(np.arange(len(x.found))) == 0).sum())
    assert page.locator("h1").inner_text().startswith(f"{clerks} of {len(x.found)} findings")

    page.goto(f"{page.base}/person/r40")
    page.wait_for_selector(".met")
    page.locator("#cell-1").fill("52")
    page.wait_for_selector("text=Changed against the start")
    frame = cells_of(page, x.schema.names)
    assert frame.hours[0] == 52
    for sex in ("F", "M"):
        expected = decide(frame.assign(sex=sex))[0]
        assert score_of(page, f"sex {sex}") == pytest.approx(expected, abs=5e-4)
    assert page.locator(".cell.changed").count() == 1
    page.get_by_role("button", name="Undo changes").click()
    page.wait_for_function("() => !document.querySelector('.cell.changed')")

    page.get_by_role("button", name="Nearest person who flips").click()
    link = page.locator("#more a").first
    link.wait_for()
    link.click()
    page.wait_for_selector(".met")
    frame = cells_of(page, x.schema.names)
    decided = [decide(frame.assign(sex=sex))[0] > 0.5 for sex in ("F", "M")]
    assert decided[0] != decided[1]
    assert page.locator("text=This decision flips").count() == 1


def test_a_region_is_built_by_clicking_and_holds_the_truth(page, served):
    x = served.exploration
    page.goto(f"{page.base}/where")
    page.locator("summary", has_text="age").click()
    page.locator('a.slot[href*="c0.low=40"]').click()
    page.wait_for_url("**c0.low=40**")
    page.get_by_role("button", name="Look at this region").click()
    done = page.locator("#look [data-state=done]")
    done.wait_for(timeout=60_000)
    low, high = (float(done.get_attribute(f"data-{end}")) for end in ("low", "high"))
    words = page.locator("#look h2").first.inner_text()
    first, last = map(int, re.findall(r"\d+", words))
    rows = generators.draw(x.generator(), 40_000, np.random.default_rng(7), x.schema)[0]
    rows = rows[(rows[:, 0] >= first) & (rows[:, 0] <= last)]
    flips = x.check(x.asker, rows).flips
    least, most = clopper_pearson(int(flips.sum()), len(flips), 0.9999)
    assert low <= most
    assert least <= high
    assert "97.5 %" in page.locator("#look").inner_text()


def test_everything_can_be_done_with_the_keyboard(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.goto(f"{page.base}/person/f0")
    page.wait_for_selector(".met")
    before = page.locator(".met").get_attribute("data-answer")
    page.locator("#cell-1").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("9")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "before => document.querySelector('.met') && "
        "document.querySelector('.met').dataset.answer !== before",
        arg=before,
    )
    page.locator("#note").focus()
    page.keyboard.type("kept <by> hand")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#more .good")
    page.get_by_role("link", name=re.compile("Record")).click()
    assert "kept <by> hand" in page.locator("main").inner_text()


def test_a_mark_of_the_map_leads_to_a_person(page):
    page.goto(f"{page.base}/map?x=c0&y=c1&people=real")
    mark = page.locator(".map a").first
    mark.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#card")


def test_views_fit_narrow_screens_and_stand_out_in_both_schemes(page):
    paths = ["/findings", "/people", "/person/f0", "/where?c0.low=40", "/map?x=c0&y=c1&people=real"]
    for path in [*paths, "/record"]:
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto(page.base + path)
        if path.startswith("/person"):
            page.wait_for_selector(".met")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        outside = page.evaluate(OUTSIDE)
        if "findings" not in path and "people" not in path and "record" not in path:
            assert outside == [], path  # wide tables scroll in their own frame
        for scheme, paper in PAPER.items():
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
            text = page.evaluate(CONTRAST)
            assert [t for t in text if t["ratio"] < 4.5] == [], path


def test_two_tabs_share_a_session_and_its_count(page, served):
    other = page.context.new_page()
    other.goto(f"{page.base}/person/f1")
    other.wait_for_selector(".met")
    page.goto(f"{page.base}/person/f0")
    page.wait_for_selector(".met")
    assert page.locator("#asked").inner_text() == f"{served.exploration.meter.asked:,}"
    other.close()


def test_a_server_that_is_stopped_is_said_on_the_page_and_leaves_no_thread(chromium, opened):
    before = set(threading.enumerate())
    served = serve_aside(opened())
    tab = chromium.new_page()
    tab.goto(served.address)
    tab.wait_for_url("**/findings")
    tab.goto(re.match(r"http://[^/]+", tab.url)[0] + "/person/f0")
    tab.wait_for_selector(".met")
    assert not tab.locator("#offline").is_visible()
    served.stop()
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("limi-explore"):
            thread.join(30)
            assert not thread.is_alive(), thread.name
    tab.locator("#cell-1").fill("44")
    tab.wait_for_selector("#offline:visible")
    assert tab.locator(".met").count() == 1  # what was there stays
    tab.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_notebook_of_this_machine_shows_the_page_in_a_cell(chromium, served, host):
    class Notebook(BaseHTTPRequestHandler):
        def do_GET(self):
            body = f"<!doctype html><title>nb</title>{served._repr_html_()}".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body if self.path == "/" else b"")

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Notebook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = chromium.new_context()
    tab = context.new_page()
    tab.goto(f"http://{host}:{server.server_port}/")
    frame = tab.frame_locator("iframe")
    frame.locator("h1", has_text="findings").wait_for()
    frame.get_by_role("link", name="Person").click()
    frame.locator(".met").wait_for()  # a question is a POST, which asks for more than the page
    assert served.exploration.record.entries[-1]["ask"] == "person"
    with context.expect_page() as opened:  # the link beside the frame has an address of its own
        tab.get_by_role("link", name="open it in its own tab").click()
    opened.value.locator("h1", has_text="findings").wait_for()
    context.close()
    server.shutdown()
    server.server_close()

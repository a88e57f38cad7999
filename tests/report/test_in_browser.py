"""The page in headless Chromium: nothing leaves it, nothing runs in it, and it can be read."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from pathlib import Path

import pytest

from limi.metrics._rate import Rate
from limi.metrics.group_lines import GroupLine
from limi.report import html
from tests.report.fixtures import HOSTILE, SUMMARIES

pytestmark = pytest.mark.browser

CHROMIUM = Path(os.environ.get("LIMI_CHROMIUM", "/usr/bin/chromium"))
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = [320, 390, 768, 1024, 1280, 1920]
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 18, 22)"}
NOTEBOOKS = {"light": ("#212121", "#ffffff"), "dark": ("#d4d4d4", "#1e1e1e")}

# Contrast of every piece of text with what lies behind it, see-through layers blended.
CONTRAST = """() => {
  const parse = (c) => {
    const n = c.match(/[\\d.]+/g).map(Number);
    return { rgb: n.slice(0, 3), a: n.length > 3 ? n[3] : 1 };
  };
  const over = (top, a, below) => top.map((x, i) => a * x + (1 - a) * below[i]);
  const light = (rgb) => {
    const [r, g, b] = rgb.map((x) => x / 255).map(
      (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement)
      layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, l) => over(l.rgb, l.a, below), [255, 255, 255]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const words = walker.currentNode.textContent.trim();
    if (!words || ["title", "desc", "STYLE"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const ink = parse(element.tagName === "text" ? style.fill : style.color);
    let opacity = ink.a;
    for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
    const back = behind(element);
    const [a, b] = [light(over(ink.rgb, opacity, back)), light(back)].sort((x, y) => y - x);
    found.push({ words, ratio: (a + 0.05) / (b + 0.05), ink: style.color });
  }
  return found;
}"""

# Elements that stick out of the page to the right, whatever hides them from the scroll bar.
OUTSIDE = """() => [...document.querySelectorAll("body *")]
  .filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
  .map((e) => `${e.tagName}.${e.getAttribute("class")}`)"""


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM.exists():
        pytest.skip(
            f"no Chromium at {CHROMIUM}; install it (on Debian: apt-get install chromium), or name "
            "one in LIMI_CHROMIUM"
        )
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=str(CHROMIUM), args=ARGUMENTS, headless=True
        )
        yield chromium
        chromium.close()


class Opened:
    """A page opened from a file, with all that it asked for and complained about."""

    def __init__(self, browser, path: Path, source: str, **options) -> None:
        path.write_text(source, encoding="utf-8")
        self.address = path.as_uri()
        self.requests: list[str] = []
        self.failures: dict[str, str | None] = {}
        self.complaints: list[str] = []
        self.page = browser.new_page(**options)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "requestfailed", lambda request: self.failures.update({request.url: request.failure})
        )
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()))
        self.page.goto(self.address)

    def unfold(self) -> None:
        for closed in self.page.query_selector_all("details:not([open]) > summary"):
            if closed.is_visible():
                closed.click()

    def close(self) -> None:
        self.page.close()


@pytest.fixture
def opened(browser, tmp_path):
    pages = []

    def open_page(source: str, **options) -> Opened:
        pages.append(Opened(browser, tmp_path / f"report {len(pages)}.html", source, **options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


def size(width: int) -> dict[str, int]:
    return {"width": width, "height": 900}


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_page_asks_for_itself_alone_and_never_scrolls_sideways(opened, name):
    view = opened(html.render(SUMMARIES[name]))
    view.unfold()
    for width in WIDTHS:
        view.page.set_viewport_size(size(width))
        assert view.page.evaluate("document.documentElement.scrollWidth") <= width
        assert view.page.evaluate(OUTSIDE) == []
    assert view.requests == [view.address]
    assert view.complaints == []
    assert view.page.evaluate("document.styleSheets.length") == 1
    assert view.page.evaluate("getComputedStyle(document.body).marginTop") == "0px"


def test_hostile_values_are_shown_as_text(opened):
    view = opened(html.render(SUMMARIES["attacked"]))
    shown = view.page.inner_text("body")
    assert all(value in shown for value in HOSTILE)
    assert view.page.locator("img, iframe, link").count() == 0
    assert view.page.locator("script").count() == 1
    assert view.page.locator("style").count() == 1
    assert view.page.locator("h1").is_visible()


def test_the_policy_stops_what_would_get_past_the_escaping(opened):
    intruder = (
        "<script>document.title = 'taken over'</script>"
        '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" onerror="document.title = 1">'
        '<p style="display: none" id="hidden">words</p>'
        '<img src="http://localhost:9/pixel">'
    )
    view = opened(html.render(SUMMARIES["sex"]).replace("</main>", f"{intruder}</main>"))
    assert view.page.title().startswith("12.3 % of real rows")
    assert view.page.locator("#hidden").is_visible()
    assert view.failures == {"http://localhost:9/pixel": "csp"}
    assert len(view.complaints) >= 3
    assert all("Content Security Policy" in complaint for complaint in view.complaints)


def test_all_findings_are_sorted_filtered_and_paged_by_keyboard(opened):
    numbers = list(range(60))
    findings = {
        "total": 60,
        "cut": "",
        "columns": [
            {"title": "row", "cells": numbers},
            {"title": "city", "levels": ["Rome", "<b>Bonn</b>"], "cells": [k % 2 for k in numbers]},
            {"title": "gap", "cells": [None if k == 5 else k / 7 for k in numbers]},
        ],
    }
    view = opened(html.render(SUMMARIES["sex"], findings), viewport=size(1280))
    box = view.page.locator("#ledger")
    first = box.locator("tbody tr").first
    said = box.locator("[data-said]")
    assert said.inner_text() == "1 to 25 of 60"
    assert box.locator("tbody tr").count() == 25
    head = box.get_by_role("button", name="gap")
    head.focus()
    view.page.keyboard.press("Enter")
    assert first.locator("th").inner_text() == "59"
    assert box.locator("th[aria-sort=descending]").count() == 1
    view.page.keyboard.press("Enter")
    assert first.inner_text().split("\t") == ["5", "<b>Bonn</b>", "missing"]
    box.locator("input").fill("city bonn")
    assert said.inner_text() == "1 to 25 of 30"
    box.get_by_role("button", name="Next").click()
    assert said.inner_text() == "26 to 30 of 30"
    assert box.get_by_role("button", name="Next").is_disabled()
    box.locator("input").fill("nowhere")
    assert said.inner_text() == "none"
    assert view.requests == [view.address]
    assert view.complaints == []


def test_groups_fit_every_width_and_stand_out_in_both_schemes(opened):
    rate, low = Rate(0.4, 0.31, 0.49, 120), Rate(0.12, 0.05, 0.2, 60)
    lines = (
        GroupLine(("sex",), "Male", 120, rate, rate, rate, rate, low, Rate(1, 1, 1, 120), True),
        GroupLine(("sex",), "Female", 60, low, rate, rate, low, low, Rate(0.3, 0.2, 0.5, 60)),
        GroupLine(("sex",), "not told", 4),
        GroupLine(("sex", "race"), "sex Female, race Amer-Indian-Eskimo", 31, low),
    )
    summary = dataclasses.replace(SUMMARIES["sex"], groups=lines, volume=9_000, date="2026-01-31")
    view = opened(html.render(summary))
    words = view.page.inner_text("section[aria-labelledby=groups]")
    assert "below four fifths" in words
    assert words.count("too few to say") == 6
    for width in WIDTHS:
        view.page.set_viewport_size(size(width))
        assert view.page.evaluate("document.documentElement.scrollWidth") <= width
    for scheme in PAPER:
        view.page.emulate_media(color_scheme=scheme)
        assert [t for t in view.page.evaluate(CONTRAST) if t["ratio"] < 4.5] == []
    assert view.complaints == []


def test_a_command_can_be_copied(opened):
    view = opened(html.render(SUMMARIES["sex"]), viewport=size(1280))
    button = view.page.locator("pre[data-copy] .copy").first
    button.click()
    view.page.wait_for_function("document.querySelector('.copy').textContent === 'Copied'")


def test_the_search_for_what_sticks_out_finds_it(opened):
    wide = html.render(SUMMARIES["sex"]).replace("</main>", f"<pre>{'x' * 400}</pre></main>")
    wide = wide.replace("white-space: pre-wrap", "white-space: pre; overflow-wrap: normal")
    view = opened(wide.replace("<meta http-equiv", "<meta name"), viewport=size(390))
    assert view.page.evaluate("document.documentElement.scrollWidth") > 390


@pytest.mark.parametrize("name", ["sex", "many", "pictured", "nothing", "attacked"])
def test_all_text_stands_out_in_both_schemes(opened, name):
    view = opened(html.render(SUMMARIES[name]), viewport=size(1280))
    view.unfold()
    for scheme, paper in PAPER.items():
        view.page.emulate_media(color_scheme=scheme)
        assert view.page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
        text = view.page.evaluate(CONTRAST)
        assert len(text) > 50
        assert [t for t in text if t["ratio"] < 4.5] == []
        body = next(t for t in text if t["words"].startswith("Flips found are facts"))
        assert body["ratio"] > 12


@pytest.mark.parametrize("scheme", NOTEBOOKS)
@pytest.mark.parametrize("name", ["many", "nothing", "attacked"])
def test_a_notebook_s_own_colours_are_enough_for_the_snippet(opened, name, scheme):
    ink, paper = NOTEBOOKS[scheme]
    view = opened(
        f'<!DOCTYPE html><meta charset="utf-8"><body style="color:{ink};background:{paper}">'
        f"{html.snippet(SUMMARIES[name])}",
        viewport=size(640),
    )
    text = view.page.evaluate(CONTRAST)
    assert len(text) > 5
    assert [t for t in text if t["ratio"] < 4.5] == []
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 640
    assert view.complaints == []


def test_marks_lie_on_the_chart_where_the_numbers_say(opened):
    view = opened(html.render(SUMMARIES["sex"]), viewport=size(1280))
    chart = view.page.locator(".interval").first.bounding_box()
    dot = view.page.locator(".interval .dot").first.bounding_box()
    middle = dot["x"] + dot["width"] / 2
    # 12.33 % on an axis from 0 to 30 %.
    assert (middle - chart["x"]) / chart["width"] == pytest.approx(0.1233 / 0.30, abs=0.002)


@pytest.mark.parametrize("width", [320, 1280])
def test_dots_lie_in_the_quarters_where_decisions_differ(opened, width):
    view = opened(html.render(SUMMARIES["pictured"]), viewport=size(width))
    chart = view.page.locator(".square .frame").first.bounding_box()
    assert chart["width"] == pytest.approx(chart["height"], abs=1)
    places = view.page.evaluate(
        """() => [...document.querySelectorAll(".dots circle")].map((circle) => {
          const box = circle.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        })"""
    )
    assert len(places) == 400
    shown = [
        ((x - chart["x"]) / chart["width"], 1 - (y - chart["y"]) / chart["height"])
        for x, y in places
    ]
    for place, pair in zip(shown, SUMMARIES["pictured"].pictures["score_pairs"], strict=True):
        assert place == pytest.approx(pair, abs=0.005)
        assert (place[0] > 0.5) != (place[1] > 0.5)


# The boxes of all texts of each chart, read at once.
TEXTS = """() => [...document.querySelectorAll(".frame")].map((chart) =>
  [...chart.querySelectorAll("text")].map((text) => {
    const box = text.getBoundingClientRect();
    return [box.left, box.right, box.top, box.bottom];
  }))"""


def overlap(a, b, halo=4):
    """Do two boxes of text cover each other, beyond the room that letters leave in them?"""
    return a[0] < b[1] and b[0] < a[1] and a[2] + halo < b[3] and b[2] + halo < a[3]


def test_labels_of_a_chart_never_overlap(opened):
    view = opened(html.render(SUMMARIES["pictured"]))
    for width in WIDTHS:
        view.page.set_viewport_size(size(width))
        for boxes in view.page.evaluate(TEXTS):
            assert len(boxes) >= 2
            for a, b in itertools.combinations(boxes, 2):
                assert not overlap(a, b), (width, a, b)


def test_lines_of_a_chart_can_be_told_from_the_paper(opened):
    view = opened(html.render(SUMMARIES["pictured"]), viewport=size(390))
    strokes = """() => ["real", "findings", "representative"].map(
      (name) => getComputedStyle(document.querySelector(`.trace .${name}`)).stroke)"""
    for scheme, paper in PAPER.items():
        view.page.emulate_media(color_scheme=scheme)
        drawn = view.page.evaluate(strokes)
        assert len(set(drawn)) == 3
        assert all(ratio(colour, paper) >= 3 for colour in drawn)


def ratio(*colours: str) -> float:
    light = []
    for colour in colours:
        levels = [int(x) / 255 for x in re.findall(r"\d+", colour)]
        r, g, b = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in levels)
        light.append(0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05)
    return max(light) / min(light)


def test_findings_unfold_with_the_keyboard(opened):
    view = opened(html.render(SUMMARIES["many"]))
    last = view.page.locator("#finding-10")
    assert not last.is_visible()
    view.page.locator("details.more > summary").focus()
    view.page.keyboard.press("Enter")
    assert last.is_visible()


def test_the_landmarks_of_the_page(opened):
    view = opened(html.render(SUMMARIES["sex"]))
    tree = view.page.locator("body").aria_snapshot()
    for landmark in (
        "- banner:",
        "- main:",
        "- contentinfo:",
        '- region "How often decisions flip"',
    ):
        assert landmark in tree
    assert 'img "Share of rows that flip, real' in tree


def test_paper_is_white_and_shows_what_the_screen_folds_away(opened):
    view = opened(html.render(SUMMARIES["many"]), color_scheme="dark", viewport=size(700))
    view.page.emulate_media(media="print", color_scheme="dark")
    colour = view.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(255, 255, 255)"
    assert view.page.locator("#finding-10").is_visible()
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 700

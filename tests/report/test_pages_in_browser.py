"""Pages of repairs and comparisons in headless Chromium: they hold to what the report's does."""

from __future__ import annotations

import itertools

import pytest

from limi.report import comparison, repairs
from tests.report.test_comparison import line
from tests.report.test_in_browser import (
    CONTRAST,
    OUTSIDE,
    PAPER,
    TEXTS,
    browser,
    opened,
    overlap,
    size,
)
from tests.report.test_repairs import tree as many_ways

__all__ = ["browser", "opened"]

HALO = 8  # pixels of a text's box that are the paper around its letters

pytestmark = pytest.mark.browser


PAGES = {
    "repairs": lambda: repairs.render(many_ways()),
    "none recommended": lambda: repairs.render(many_ways(recommended=None)),
    "one way": lambda: repairs.render(many_ways(tried=many_ways()["tried"][:1])),
    "comparison": lambda: comparison.render(
        "model on table", [line("limi", 40, 50, 60), line("guided", 8, 9, 9)], "limi compare t"
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_every_width_ask_for_nothing_and_can_be_read(opened, name):
    view = opened(PAGES[name]())
    view.unfold()
    for width in (320, 390, 800, 1200):
        view.page.set_viewport_size(size(width))
        assert view.page.evaluate("document.documentElement.scrollWidth") <= width
        inside = """() => [...document.querySelectorAll(".scroll *")].map(
          (e) => `${e.tagName}.${e.getAttribute("class")}`)"""
        assert set(view.page.evaluate(OUTSIDE)) <= set(view.page.evaluate(inside))
    for scheme, paper in PAPER.items():
        view.page.emulate_media(color_scheme=scheme)
        assert view.page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
        text = view.page.evaluate(CONTRAST)
        assert len(text) > 20
        assert [t for t in text if t["ratio"] < 4.5] == []
    assert view.requests == [view.address]
    assert view.complaints == []


def test_labels_of_models_never_overlap(opened):
    view = opened(PAGES["repairs"]())
    for width in (320, 800):
        view.page.set_viewport_size(size(width))
        (boxes,) = view.page.evaluate(TEXTS)
        for a, b in itertools.combinations(boxes, 2):
            assert not overlap(a, b, HALO), (width, a, b)


def test_the_recommendation_stands_first_and_sections_follow_in_the_order_of_the_contents(opened):
    view = opened(PAGES["repairs"](), viewport=size(1200))
    assert view.page.locator("h1").inner_text() == "Take average: the model by average."
    linked = view.page.eval_on_selector_all(
        ".contents a", "links => links.map((a) => a.hash.slice(1))"
    )
    ids = view.page.eval_on_selector_all("h2", "all => all.map((h) => h.id)")
    assert linked == [one for one in ids if one in linked]
    view.page.keyboard.press("Tab")
    assert view.page.evaluate("document.activeElement.className") == "copy"
    view.page.keyboard.press("Tab")
    assert view.page.evaluate("document.activeElement.hash") == "#front"

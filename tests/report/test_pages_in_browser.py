"""Pages of repairs and comparisons in headless Chromium: they hold to what the report's does."""

from __future__ import annotations

import itertools

import pytest

from limi.report import comparison, repair, repairs
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
from tests.report.test_repair import figure
from tests.report.test_repair import tree as one_way

__all__ = ["browser", "opened"]

HALO = 8  # pixels of a text's box that are the paper around its letters

pytestmark = pytest.mark.browser


def many_ways(**changes):
    """Several repairs of a model, whose dots lie close together."""
    names = ("accuracy", "favorable", "natural", "real")

    def side(*values):
        return {
            name: figure(v, max(0, v - 0.01), v + 0.01, seeds=[v, v + 0.004, max(0, v - 0.003)])
            for name, v in zip(names, values, strict=True)
        } | {"twins": figure(None, reason="too few"), "twins_kept": figure(None)}

    def way(how, *values):
        return {
            "how": how,
            "words": f"the model by {how}",
            "verdict": "removed: none of 5,000 fresh people flips",
            "why": "as good as average, but takes longer",
            "figures": side(*values),
            "accuracy_loss": {"value": 0.001},
            "checks": [
                {"words": "fresh people", "rows": 9, "rows_after": 9, "before": 5, "after": 0}
            ],
            "moved": [
                {"group": "sex F", "people": 4000, "gained": 36, "lost": 110},
                {"group": "sex M & others", "people": 9000, "gained": 130, "lost": 20},
            ],
            "share": {"p_value": 0.4, "was_moved": False, "threshold_to_keep_it": None},
            "questions_per_answer": 2,
            "seconds": 0.4,
            "notes": [],
        }

    tried = [
        way("average", 0.871, 0.2, 0.0, 0.0),
        way("drop", 0.8715, 0.2, 0.0, 0.0),
        way("copies", 0.872, 0.2, 0.0002, 0.0),
        way("findings", 0.869, 0.2, 0.0001, 0.0),
    ]
    run = one_way()["run"] | {"kind": "favorable", "ordered": False, "decision": "favorable"}
    return {
        "recommended": "average",
        "close": [],
        "before": side(0.873, 0.21, 0.06, 0.05),
        "tried": tried,
        "skipped": {"pairs": "it needs a network"},
        "fresh": {"method": "guided", "generator": "transport"},
        "groups": {"privileged": "sex=M", "why": "as stated"},
        "settings": {
            "seeds": 3,
            "held_out": 0.2,
            "measured_on": "",
            "trained_again": True,
            "trained_by": "a clone",
            "max_accuracy_loss": 0.01,
            "loss_scale": 1.0,
            "rows": 30_000,
            "kept": "",
            "recipe": "pairs",
            "preset": "best",
            "label": "vote",
            "fraction": 0.05,
        },
        "run": run,
        "model_files": ["model.skops", "score.py"],
        "model_notes": [],
        "versions": {"limi": "1"},
        "date": "2026-01-31",
        "command": "limi repair run --out repaired",
        **changes,
    }


PAGES = {
    "repairs": lambda: repairs.render(many_ways()),
    "none recommended": lambda: repairs.render(many_ways(recommended=None)),
    "one way": lambda: repair.render(one_way()),
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

"""The steps of the lesson on `limi explore`, light and dark, for the documentation.

python tools/explore_pictures.py RUN   # of limi demo; writes docs/pictures/explore-*.png
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Locator, Page, ViewportSize, sync_playwright
from screenshots import keep, launch

from limi.explore.opening import explore_run
from limi.explore.server import serve_aside
from limi.table.schema import Schema

_SIZE: ViewportSize = {"width": 1180, "height": 740}
_PATIENCE = 60_000  # milliseconds: what people look like is learned from 48,842 rows


def main() -> int:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        exploration = explore_run(sys.argv[1], record=Path(place) / "explore.jsonl")
        served = serve_aside(exploration)
        browser = launch(playwright)
        tab = browser.new_page(viewport=_SIZE)
        tab.set_default_timeout(_PATIENCE)
        tab.goto(served.address)
        tab.wait_for_url("**/findings")
        for step in (show_findings, show_person, show_region, show_map):
            step(tab, exploration.schema)
        browser.close()
        served.stop()
    return 0


def show_findings(tab: Page, schema: Schema) -> None:
    """Those in whom women are favored, of people who work full time."""
    open_facet(tab, "Who is favored").locator("label", has_text="Female over").click()
    tab.wait_for_url("**direction=**")
    keep(tab, "explore-findings")


def show_person(tab: Page, schema: Schema) -> None:
    """The first of them, with fewer hours, and how near the other decision is."""
    tab.locator('tbody a[href^="/person/"]').first.click()
    tab.wait_for_selector(".met")
    before = tab.locator(".met").get_attribute("data-answer")
    tab.locator(f"#cell-{schema.position('hours_per_week')}").fill("38")
    tab.wait_for_function(
        "before => document.querySelector('.met')?.dataset.answer !== before", arg=before
    )
    tab.get_by_role("button", name="Nearest who does not").click()
    tab.wait_for_selector("#more .card")
    keep(tab, "explore-person")


def show_region(tab: Page, schema: Schema) -> None:
    """People of one span of ages, until it is clear how often they flip."""
    tab.goto(to(tab, "/where"))
    open_facet(tab, "age").locator("a.slot").nth(3).click()
    tab.wait_for_url("**.low=**")
    tab.get_by_role("button", name="Look at this region").click()
    tab.wait_for_selector("#look [data-state=done]")
    keep(tab, "explore-where")


def show_map(tab: Page, schema: Schema) -> None:
    """People of the table and findings by age and hours."""
    across, up = (schema.position(name) for name in ("age", "hours_per_week"))
    tab.goto(to(tab, f"/map?people=real&x=c{across}&y=c{up}"))
    tab.wait_for_selector(".map svg")
    tab.set_viewport_size({"width": _SIZE["width"], "height": 940})  # all of it
    keep(tab, "explore-map", 96)  # shades of hexagons


def to(tab: Page, path: str) -> str:
    """The address of a view on the server that a tab shows."""
    return re.sub(r"(http://[^/]+).*", rf"\1{path}", tab.url)


def open_facet(tab: Page, title: str) -> Locator:
    """The choices of one column, unfolded."""
    summary = tab.locator("summary", has=tab.get_by_text(title, exact=True))
    facet = tab.locator("details.facet", has=summary)
    facet.evaluate("details => { details.open = true; }")
    return facet


if __name__ == "__main__":
    sys.exit(main())

"""The views of `limi explore` on a run, for the documentation.

python tools/explore_pictures.py RUN   # writes docs/pictures/explore-*.png
"""

from __future__ import annotations

import io
import re
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from limi.explore.opening import explore_run
from limi.explore.server import serve_aside

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
_SIZE = {"width": 1280, "height": 800}
_COLORS = 48  # enough for a page of text, and a small file


def main() -> int:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        exploration = explore_run(sys.argv[1], record=Path(place) / "explore.jsonl")
        served = serve_aside(exploration)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        tab = browser.new_page(viewport=_SIZE)
        tab.goto(served.address)
        tab.wait_for_url("**/findings")
        base = re.match(r"http://[^/]+", tab.url)
        assert base is not None
        _keep(tab, "findings")
        tab.goto(f"{base[0]}/person")
        tab.wait_for_selector(".met")
        tab.get_by_role("button", name="Nearest who does not").click()
        tab.wait_for_selector("#more .card")
        _keep(tab, "person")
        tab.goto(f"{base[0]}/where?c0.low=31&c0.high=40")
        tab.get_by_role("button", name="Look at this region").click()
        tab.wait_for_selector("[data-state=done]", timeout=120_000)
        _keep(tab, "where")
        tab.goto(f"{base[0]}/map?x=c0&y=c11")
        tab.wait_for_selector(".map svg", timeout=120_000)
        _keep(tab, "map")
        browser.close()
        served.stop()
    return 0


def _keep(tab: Page, name: str) -> None:
    picture = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
    picture.quantize(_COLORS).save(FOLDER / f"explore-{name}.png", optimize=True)


if __name__ == "__main__":
    sys.exit(main())

"""The report of a run as a reader first sees it, light and dark, for the documentation.

python tools/screenshots.py RUN   # writes docs/pictures/report-light.png and report-dark.png
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
_SIZE = {"width": 1080, "height": 760}
_COLORS = 48  # enough for a page of text, and a small file


def launch(playwright: Playwright) -> Browser:
    """Chromium, without a window."""
    return playwright.chromium.launch(
        executable_path=shutil.which("chromium"), args=["--no-sandbox"]
    )


def keep(tab: Page, name: str, colors: int = _COLORS) -> None:
    """Write what a tab shows, in both schemes."""
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        picture = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
        picture.quantize(colors).save(FOLDER / f"{name}-{scheme}.png", optimize=True)


def main() -> int:
    """Write both pictures."""
    page = (Path(sys.argv[1]) / "report.html").resolve().as_uri()
    with sync_playwright() as playwright:
        browser = launch(playwright)
        tab = browser.new_page(viewport=_SIZE)
        tab.goto(page)
        keep(tab, "report")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

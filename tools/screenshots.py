"""The report of a run as a reader first sees it, light and dark, for the documentation.

python tools/screenshots.py RUN   # writes docs/pictures/report-light.png and report-dark.png
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
_SIZE = {"width": 1080, "height": 760}
_COLORS = 48  # enough for a page of text, and a small file


def main() -> int:
    """Write both pictures."""
    page = (Path(sys.argv[1]) / "report.html").resolve().as_uri()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for scheme in ("light", "dark"):
            tab = browser.new_page(viewport=_SIZE, color_scheme=scheme)
            tab.goto(page)
            picture = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
            picture.quantize(_COLORS).save(FOLDER / f"report-{scheme}.png", optimize=True)
            tab.close()
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

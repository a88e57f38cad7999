"""The five pages as a reader sees them: three widths, light and dark, and printed.

    python tools/page_pictures.py FOLDER            # makes the runs, then 35 pictures beside them
    python tools/page_pictures.py FOLDER --only test

The runs are real and small: a test, its repair, a comparison, several protected columns, and a
model that flips nobody. A run that is in the folder already is not made again.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

WIDTHS = (1200, 800, 390)
PAPER = 720  # pixels: the text of an A4 page
_ADULT = ("adult", "--model", "{model}", "--target", "income", "--favorable", ">50K")
_COMMANDS = {
    "test": ("test", *_ADULT, "--protected", "sex", "--volume", "10000", "--out", "{folder}/test"),
    "repair": ("repair", "{folder}/test", "--out", "{folder}/repair"),
    "compare": (
        *("compare", *_ADULT, "--protected", "sex", "--methods", "limi,natural,themis"),
        *("--max-queries", "5000", "--seeds", "2", "--html", "{folder}/compare.html"),
    ),
    "several": (
        *("test", *_ADULT, "--protected", "sex", "--protected", "race"),
        *("--max-rows", "5000", "--out", "{folder}/several"),
    ),
    "nothing": (
        *("test", *_ADULT, "--protected", "sex", "--max-rows", "2000"),
        *("--out", "{folder}/nothing"),
    ),
}
_FAIR = """def decide(frame):
    years = frame["education_num"].to_numpy(float)
    return 1 / (1 + 2.0 ** (12.5 - years))
"""


def make(folder: Path, name: str) -> Path:
    """The page of a run, made where it is missing."""
    page = folder / "compare.html" if name == "compare" else folder / name / "report.html"
    if not page.exists():
        (folder / "fair.py").write_text(_FAIR)
        model = f"python:{folder / 'fair.py'}:decide" if name == "nothing" else "demo:income"
        words = [word.format(folder=folder, model=model) for word in _COMMANDS[name]]
        print("limi", *words, flush=True)
        command = [sys.executable, "-m", "limi", *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return page


def take(browser: Browser, page: Path, folder: Path, name: str) -> None:
    """Pictures of a whole page, named by page, width and scheme."""
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            tab = browser.new_page(
                viewport={"width": width, "height": 900},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            tab.goto(page.resolve().as_uri())
            tab.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
            tab.close()
    tab = browser.new_page(viewport={"width": PAPER, "height": 1020})
    tab.goto(page.resolve().as_uri())
    tab.emulate_media(media="print")
    tab.screenshot(path=folder / f"{name}-print.png", full_page=True)
    tab.pdf(path=folder / f"{name}.pdf", format="A4")
    tab.close()


def main() -> int:
    """Make what is missing, then take every picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where runs and pictures go")
    parser.add_argument("--only", choices=list(_COMMANDS), action="append", help="pages to take")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    names = given.only or list(_COMMANDS)
    pages = {name: make(given.folder, name) for name in _COMMANDS if name in names}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name, page in pages.items():
            take(browser, page, given.folder, name)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

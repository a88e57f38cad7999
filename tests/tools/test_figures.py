"""The pictures of the documentation are what their kept numbers draw, small, and complete."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent.parent
MOST_BYTES = 150_000


@pytest.fixture(scope="module")
def figures():
    spec = spec_from_file_location("figures", ROOT / "tools" / "figures.py")
    module = module_from_spec(spec)
    sys.modules["figures"] = module
    spec.loader.exec_module(module)
    return module


def test_pictures_are_current(figures):
    drawn = figures.draw()
    for name, svg in drawn.items():
        kept = (figures.FOLDER / name).read_text(encoding="utf-8")
        assert kept == svg, f"{name} is old; run make docs-figures"
        assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_pictures_are_small_and_each_is_shown_on_a_page(figures):
    pages = "".join(
        page.read_text(encoding="utf-8")
        for page in (ROOT / "docs").rglob("*.md")
        if "_build" not in page.parts
    )
    shown = [one for one in figures.FOLDER.iterdir() if one.suffix in (".svg", ".png")]
    assert len(shown) >= len(figures.draw()) + 2
    for picture in shown:
        assert picture.stat().st_size < MOST_BYTES, picture.name
        assert f"pictures/{picture.name}" in pages, picture.name


def test_every_method_of_the_study_is_drawn(figures):
    methods = figures.read_methods()
    assert {"limi", "guided", "themis", "adf"} <= set(methods)
    assert all(0 < one["natural"] <= 1 and one["found"] > 0 for one in methods.values())

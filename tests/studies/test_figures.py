"""Figures of a study, and those in the documentation."""

import xml.etree.ElementTree as ElementTree

import pytest

from limi import studies
from limi.errors import InvalidInput
from limi.studies._files import load
from limi.studies._results import Results
from tests.studies.small import ROOT, outcome, small_study, tiny


def inside(svg):
    """Every circle lies inside the sheet."""
    root = ElementTree.fromstring(svg)
    width, height = (float(root.get(name)) for name in ("width", "height"))
    circles = root.iter("{http://www.w3.org/2000/svg}circle")
    return all(-5 <= float(c.get("cx")) <= width and float(c.get("cy")) <= height for c in circles)


def test_dots_are_drawn_for_ours_and_the_paper_s():
    svg = studies.figure(small_study(), tiny())
    assert svg == studies.figure(small_study(), tiny())
    assert inside(svg)
    # One in the key, then five variants of ours, and four numbers of the paper.
    assert svg.count('class="ours"') == 1 + 5
    assert svg.count('class="paper"') == 1 + 4
    assert "census-sex" in svg


def test_lines_and_densities_are_drawn():
    steps = {
        f"census-sex/{v.name}/0": outcome(f"census-sex/{v.name}/0", findings=10_000 * (i + 1))
        for i, v in enumerate(load("step").variants)
    }
    svg = studies.figure(load("step"), Results("step", "small", steps))
    assert inside(svg)
    assert svg.count("<polyline") == 3  # with `trees`, with CTGAN, and the paper's
    picture = {"x": [0.0, 1.0, 2.0], "real": [0.1, 0.5, 0.1], "findings": [0.2, 0.3, 0.2]}
    drawn = {
        f"census-sex/{name}/0": outcome(f"census-sex/{name}/0", overlap=0.8, picture=picture)
        for name in ("limi", "expga")
    }
    svg = studies.figure(load("densities"), Results("densities", "small", drawn))
    ElementTree.fromstring(svg)
    assert svg.count("<polygon") == 1
    assert svg.count("<polyline") == 4  # a line and its sample in the key, for each of two


def test_nothing_to_draw_is_said():
    with pytest.raises(InvalidInput, match="no results of dnn at scale small to draw"):
        studies.figure(load("dnn"), Results("dnn", "small", {}))


def test_the_figures_in_the_documentation_are_those_of_the_kept_results():
    place = ROOT / "docs" / "figures"
    drawn = {p.name: p.read_text("utf-8") for p in place.glob("*.svg")}
    ours = {name: text for name, text in drawn.items() if not name.startswith("bench-")}
    assert ours == studies.figures(ROOT / "studies" / "results")

"""Figures of a study, and those in the documentation."""

import dataclasses
import xml.etree.ElementTree as ElementTree

import pytest

from lab import api as studies
from lab.drawing import Log
from lab.figures import curves
from lab.files import load
from lab.results import Results
from limi.errors import InvalidInput
from tests.lab.small import ROOT, outcome, small_study, tiny


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
        f"census-sex/{v.name}/0": outcome(f"census-sex/{v.name}/0", found_latents=10_000 * (i + 1))
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


def curve(factor):
    return {"rows": [100, 1000, 20_000], "queries": [300, 3000, 60_000]} | {
        "findings": [factor * n for n in (10, 100, 2000)]
    }


def drawn_curves(**settings):
    """Curves of four steps, two of them with CTGAN."""
    study = dataclasses.replace(load("step"), figure={"curves": settings or True})
    cells = [
        outcome(f"census-sex/{name}/0", curve=curve(factor))
        for factor, name in enumerate(("step-0", "step-0.1", "step-0.ctgan", "step-0.1.ctgan"), 1)
    ]
    svg = curves(study, Results("step", "small", {o.cell: o for o in cells}))
    return ElementTree.fromstring(svg), svg


def test_curves_are_drawn_of_every_variant():
    _, svg = drawn_curves()
    assert [svg.count(f">λ = {one}</text>") for one in ("0", "0.1", "0, CTGAN")] == [2, 2, 2]


def test_curves_may_be_of_some_variants_and_leave_out_their_begin():
    settings = {"variants": ["step-0.ctgan", "step-0.1.ctgan"], "from": 1000, "says": "with CTGAN"}
    root, svg = drawn_curves(**settings)
    # All of them have it, so that the title alone says so.
    assert [svg.count(f">λ = {one}</text>") for one in ("0", "0.1", "0, CTGAN")] == [2, 2, 0]
    title = root.find("{http://www.w3.org/2000/svg}title").text
    assert "with CTGAN" in title
    assert "from 1,000 rows on" in title
    assert ">100</text>" not in svg.split("against queries")[0]


def test_names_of_curves_lie_inside_the_sheet():
    study = dataclasses.replace(load("combination"), figure={"curves": True})
    names = [f"census-sex/{v.name}/0" for v in study.variants]
    known = {name: outcome(name, curve=curve(1)) for name in names}
    root = ElementTree.fromstring(curves(study, Results("combination", "small", known)))
    sheet, space = float(root.get("width")), "{http://www.w3.org/2000/svg}"
    for panel in root.iter(f"{space}g"):
        across = float(panel.get("transform", "(0 0)").split("(")[1].split()[0])
        for text in panel.iter(f"{space}text"):
            if text.get("class") == "name":
                assert across + float(text.get("x")) + 6.5 * len(text.text) <= sheet


def test_logarithmic_axes_end_where_their_numbers_do():
    wide, close = Log([320, 1_300_000], close=True), Log([2_500, 18_000], close=True)
    assert [label for _, label in wide.marks()] == ["1k", "10k", "100k", "1M"]
    assert [label for _, label in close.marks()] == ["2k", "5k", "10k", "20k"]
    assert (close.at(2_000), close.at(20_000)) == (0.0, 1.0)
    assert [label for _, label in Log([2_500, 18_000]).marks()] == ["1k", "10k", "100k"]


def test_nothing_to_draw_is_said():
    with pytest.raises(InvalidInput, match="no results of dnn at scale small to draw"):
        studies.figure(load("dnn"), Results("dnn", "small", {}))


def test_the_figures_in_the_documentation_are_those_of_the_kept_results():
    place = ROOT / "docs" / "figures"
    drawn = {p.name: p.read_text("utf-8") for p in place.glob("*.svg")}
    ours = {name: text for name, text in drawn.items() if not name.startswith("bench-")}
    assert ours == studies.figures(ROOT / "lab" / "studies" / "results")

"""Figures of a study, and those in the documentation."""

import dataclasses
import re

import pytest

from lab.figures import curves, figure
from lab.files import load
from lab.page import _titles
from lab.results import Results
from tests.lab.small import ROOT, outcome, small_study, tiny

pytest.importorskip("matplotlib", reason="needs limi[plots]")


def words(svg):
    return [re.sub("<[^>]*>", "", one) for one in re.findall(r"<text.*?</text>", svg, re.DOTALL)]


def test_dots_are_drawn_for_ours_and_the_paper_s():
    svg = figure(small_study(), tiny())
    assert svg == figure(small_study(), tiny())
    for name in ("census-sex", "credit-sex", "adf", "limi", "the paper"):
        assert name in words(svg)


def test_lines_and_densities_are_drawn():
    steps = {
        f"census-sex/{v.name}/0": outcome(f"census-sex/{v.name}/0", found_latents=10_000 * (i + 1))
        for i, v in enumerate(load("step").variants)
    }
    svg = figure(load("step"), Results("step", "small", steps))
    assert {"the paper", "ours", "ours, CTGAN"} <= set(words(svg))
    picture = {"x": [0.0, 1.0, 2.0], "real": [0.1, 0.5, 0.1], "findings": [0.2, 0.3, 0.2]}
    drawn = {
        f"census-sex/{name}/0": outcome(f"census-sex/{name}/0", overlap=0.8, picture=picture)
        for name in ("limi", "expga")
    }
    svg = figure(load("densities"), Results("densities", "small", drawn))
    assert {"the table", "limi"} <= set(words(svg))


def test_a_trade_names_the_dots_that_a_generator_lacks():
    cells = [
        outcome(f"census-sex/{name}/0", per_row=0.2, likeness=0.9)
        for name in ("natural", "plane", "natural.ctgan")
    ]
    svg = figure(load("boundary"), Results("boundary", "small", {o.cell: o for o in cells}))
    (title,) = [one for one in words(svg) if one.startswith("census-sex")]
    assert "CTGAN: without p, h" in title
    assert "trees: without h" in title


def test_curves_may_be_of_some_variants_and_leave_out_their_begin():
    rows, found = [100, 1000, 20_000], [10, 100, 2000]
    kept = {"rows": rows, "queries": [3 * n for n in rows], "findings": found}
    names = ("step-0", "step-0.1", "step-0.ctgan", "step-0.1.ctgan")
    cells = [outcome(f"census-sex/{name}/0", curve=kept) for name in names]
    known = Results("step", "small", {o.cell: o for o in cells})
    of = {"variants": ["step-0.ctgan", "step-0.1.ctgan"], "from": 1000, "says": "with CTGAN"}
    study = dataclasses.replace(load("step"), figure={"curves": of})
    shown = words(curves(study, known))
    # All of them have it, so that the title alone says so.
    assert {"\u03bb = 0", "\u03bb = 0.1"} <= set(shown)
    assert not any("0, CTGAN" in one for one in shown)
    assert any("with CTGAN" in one and "from 1,000 rows on" in one for one in shown)


def test_nothing_to_draw_has_no_figure():
    nothing = Results("dnn", "small", {})
    assert (figure(load("dnn"), nothing), curves(load("dnn"), nothing)) == ("", "")
    assert _titles(load("dnn"), nothing) == {}


def test_every_figure_of_the_pages_lies_in_the_documentation():
    docs = ROOT / "docs"
    pages = [*(docs / "reproduction").glob("*.md"), docs / "bench-results.md"]
    named = {
        name for page in pages for name in re.findall(r"figures/([\w.+-]+\.svg)", page.read_text())
    }
    assert named == {path.name for path in (docs / "figures").glob("*.svg")}

"""Dots of what variants gain and pay: letters that can be read, and none left out unsaid."""

import xml.etree.ElementTree as ElementTree

from lab import api as studies
from lab.files import load
from lab.results import Results
from lab.trade_figure import _place_letters
from tests.lab.small import ROOT, outcome

SVG = "{http://www.w3.org/2000/svg}"


def read_texts(svg):
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def results_of(measured):
    """Cells of the study of planes: benchmark and variant to rows that flip and likeness."""
    cells = {
        f"{benchmark}/{variant}/0": outcome(
            f"{benchmark}/{variant}/0", per_row=across, likeness=upward
        )
        for (benchmark, variant), (across, upward) in measured.items()
    }
    return Results("boundary", "small", cells)


def test_a_panel_of_means_comes_first_and_says_what_some_benchmark_lacks():
    study = load("boundary")
    both = {
        ("census-sex", "natural"): (0.1, 0.95),
        ("bank-age", "natural"): (0.3, 0.91),
        ("census-sex", "plane"): (0.2, 0.9),
    }
    svg = studies.figure(study, results_of(both))
    titles = [text for text in read_texts(svg) if "without" in text]
    assert [title.partition(" (")[0] for title in titles] == [
        "mean of 2 benchmarks",
        "census-sex",
        "bank-age",
    ]
    assert "without p," in titles[0]  # bank-age has no paper's plane
    assert "without h," in titles[1]
    circles = list(ElementTree.fromstring(svg).iter(f"{SVG}circle"))
    assert len(circles) == 1 + 2 + 1


def test_a_generator_that_a_benchmark_lacks_is_named_in_every_panel():
    for first, second in (("census-sex", "bank-age"), ("bank-age", "census-sex")):
        known = results_of(
            {
                (first, "natural"): (0.1, 0.95),
                (second, "natural"): (0.2, 0.95),
                (second, "natural.ctgan"): (0.3, 0.91),
            }
        )
        svg = studies.figure(load("boundary"), known)
        titles = [text for text in read_texts(svg) if "without" in text]
        assert ["CTGAN: none" in title for title in titles] == [True, True, False]
        assert "CTGAN: without p," in titles[2]
        assert read_texts(svg).count("CTGAN") == 3


def test_a_generator_that_was_not_run_is_not_named():
    svg = studies.figure(load("boundary"), results_of({("census-sex", "natural"): (0.1, 0.95)}))
    assert "CTGAN" not in " ".join(read_texts(svg)).partition("census-sex")[2]


def test_dots_at_the_top_of_the_axis_are_drawn():
    svg = studies.figure(load("boundary"), results_of({("census-sex", "natural"): (0.1, 1.0)}))
    assert len(list(ElementTree.fromstring(svg).iter(f"{SVG}circle"))) == 1
    assert {"0.9", "1.0"} <= set(read_texts(svg))


def test_one_benchmark_has_no_panel_of_means():
    svg = studies.figure(load("boundary"), results_of({("census-sex", "natural"): (0.1, 0.95)}))
    assert not any("mean of" in text for text in read_texts(svg))


def test_the_key_and_all_titles_end_within_the_sheet():
    svg = (ROOT / "docs" / "figures" / "boundary-small.svg").read_text("utf-8")
    root = ElementTree.fromstring(svg)
    widest = float(root.get("width"))
    # Seven pixels per letter are more than the font takes.
    assert max(len(text) for text in read_texts(svg)) * 7 < widest
    named = " ".join(read_texts(svg))
    study = load("boundary")
    for name, mark in study.figure["marks"].items():
        assert f"{mark} {study.variant(name).label}" in named


def test_letters_stand_clear_of_dots_and_of_each_other():
    crowd = {("trees", str(n)): (200.0 + 5 * n, 150.0 - 4 * n) for n in range(8)}
    letters = _place_letters(crowd)
    assert letters.keys() == crowd.keys()
    for key, (x, y) in letters.items():
        for one, (dx, dy) in crowd.items():
            assert one == key or abs(x - dx) >= 7 or abs(y - dy) >= 8
        for one, (lx, ly) in letters.items():
            assert one == key or abs(x - lx) >= 10 or abs(y - ly) >= 12


def test_the_last_digits_of_a_mean_move_no_letter():
    crowd = {("trees", str(n)): (200.0 + 5 * n, 150.0 - 4 * n) for n in range(8)}
    nudged = {key: (x + 1e-12, y - 1e-12) for key, (x, y) in crowd.items()}
    assert _place_letters(crowd) == _place_letters(nudged)

"""Methods side by side."""

import pytest

from limi.audits.compare import ComparedRun
from limi.report import comparison


def line(method, *ends, problem=""):
    curves = tuple(((100, end // 2), (200, end)) for end in ends)
    found = ends[0] if ends else 0
    return ComparedRun(
        method, found, 9, 200, 1.0, 1.0, 1.0, None, None, None, None, 3, "queries", problem, curves
    )


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([line("a", 0), line("b", 0)], "No method found a flip"),
        ([line("a", 40)], "a finds most: 40 in 200 queries."),
        ([line("a", 10), line("b", 40)], "b finds most: 40 in 200 queries, 4.0 times as many as a"),
        ([line("a", 40), line("b", 39)], "a and b find about the same: 40 and 39."),
        ([line("a", 40), line("b", 0)], "and b finds none"),
        ([line("a", 40, 50, 60), line("b", 9, 8, 7)], "whichever of the 3 seeds."),
        ([line("a", 5, 50, 60), line("b", 9, 8, 7)], "so that may be chance."),
        ([line("a", 40), line("b", problem="no generator")], "a finds most: 40 in 200 queries."),
    ],
)
def test_the_verdict_is_one_sentence_that_no_seed_contradicts(lines, told):
    assert told in comparison.verdict(lines)


def test_curves_have_bands_where_there_are_seeds_and_the_page_holds_them():
    lines = [line("a", 40, 50, 60), line("b<script>", 8), line("c", problem="it needs gradients")]
    drawn, across, up = comparison.curves(lines)
    assert [curve.method for curve in drawn] == ["a", "b<script>"]
    assert drawn[0].area
    assert not drawn[1].area
    assert drawn[0].label == "a 50"
    assert (across[-1][1], up[-1][1]) == ("200", "60")
    page = comparison.render("them", lines, "limi compare x")
    assert "it needs gradients" in page
    assert page.count("<script") == 1
    assert comparison.curves([line("a", 0)])[0] == []


def test_two_seeds_are_told_by_the_number_between_them():
    told = comparison.verdict([line("limi", 130, 154), line("natural", 60, 80)])
    assert told.startswith("limi finds most: 142 in")
    assert "2.0 times as many as natural (70)" in told

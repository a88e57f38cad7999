"""Marks on charts: inside the frame, where the numbers say, and none where there are none."""

import math

import pytest

from limi.report import charts
from limi.report.charts import Dot
from tests.report.fixtures import PICTURED

DENSITIES = PICTURED.pictures["densities"]


def drawn(path):
    """The places of a path, from the lower left."""
    assert path[0] == "M"
    places = [tuple(map(float, place.split())) for place in path[1:].split("L")]
    return [(x / 100, 1 - y / 100) for x, y in places]


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (0.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (29.6, [0, 10, 20, 30]),
        (12.6, [0, 5, 10, 15]),
        (70.1, [0, 20, 40, 60, 80]),
        (100.0, [0, 20, 40, 60, 80, 100]),
        (4.2, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_axis_is_round_and_long_enough(highest, ticks):
    assert charts.ticks(highest) == ticks


@pytest.mark.parametrize(
    ("highest", "ticks"), [(1, [0, 1]), (2, [0, 1, 2]), (7, [0, 2, 4, 6, 8]), (9, [0, 5, 10])]
)
def test_an_axis_of_counts_has_whole_numbers(highest, ticks):
    assert charts.ticks(highest, 4, whole=True) == ticks


def test_densities_share_one_scale_and_fill_the_frame():
    picture = charts.densities(DENSITIES)
    assert [line.name for line in picture.lines] == ["real", "findings", "representative"]
    highest = {name: max(line) for name, line in DENSITIES["lines"].items()}
    for line in picture.lines:
        places = drawn(line.path)
        assert [places[0][0], places[-1][0]] == [0.0, 1.0]
        assert all(0 <= y <= 1 for _, y in places)
        top = max(y for _, y in places)
        assert top == pytest.approx(highest[line.name] / max(highest.values()), abs=1e-3)
        assert min(math.dist((line.at.x, line.at.y), place) for place in places) < 1e-3
    assert picture.share == 0.1734


def test_the_area_in_common_with_the_table():
    lines = {"real": [0.0, 1.0, 1.0, 0.0], "findings": [0.0, 0.0, 1.0, 1.0]}
    picture = charts.densities({"x": [0.0, 1.0, 2.0, 3.0], "share": 0.5, "lines": lines})
    assert [line.common for line in picture.lines] == [1.0, 0.5]


def hill(middle):
    return [math.exp(-(((x - middle) / 8) ** 2)) for x in range(81)]


@pytest.mark.parametrize("middles", [(10, 40, 70), (39, 40, 41), (40, 40, 40), (20, 22, 70)])
def test_labels_of_lines_never_overlap(middles):
    names = ("real", "findings", "representative")
    lines = {name: hill(middle) for name, middle in zip(names, middles, strict=True)}
    picture = charts.densities({"x": list(range(81)), "lines": lines})
    taken = []
    for line in picture.lines:
        assert line.label_row < picture.label_rows <= 3
        low = line.at.x if line.rightward else line.at.x - charts._LABEL
        assert 0 <= low <= 1 - charts._LABEL
        taken.append((line.label_row, low))
    for i, (row, low) in enumerate(taken):
        for other_row, other_low in taken[:i]:
            assert row != other_row or abs(low - other_low) >= charts._LABEL


def test_labels_far_apart_stand_in_one_row():
    picture = charts.densities(
        {"x": list(range(81)), "lines": {"real": hill(10), "findings": hill(70)}}
    )
    assert picture.label_rows == 1


@pytest.mark.parametrize(
    "picture",
    [
        None,
        {},
        {"x": [], "lines": {}},
        {"x": DENSITIES["x"], "lines": {"real": DENSITIES["lines"]["real"]}},
        {"x": DENSITIES["x"], "lines": {"findings": DENSITIES["lines"]["real"]}},
        {"x": [0.0] * 3, "lines": {"real": [1.0] * 3, "findings": [1.0] * 3}},
        {"x": [0.0, 1.0, 2.0], "lines": {"real": [1.0] * 3, "findings": [0.0] * 3}},
        {"x": [0.0, 1.0, 2.0], "lines": {"real": [1.0] * 3, "findings": [1.0, None, 1.0]}},
        {"x": [0.0, 1.0, 2.0], "lines": {"real": [1.0] * 3, "findings": [1.0, math.nan, 1.0]}},
        {"x": [0.0, 1.0, 2.0], "lines": {"real": [1.0] * 3, "findings": [1.0] * 2}},
    ],
)
def test_densities_that_cannot_be_compared_are_not_drawn(picture):
    assert charts.densities(picture) is None


def test_dots_leave_out_what_is_no_number():
    assert charts.dots([[0.2, 0.7], [None, 0.7], [0.2, math.nan]]) == [Dot(0.2, 0.7)]
    assert charts.dots(None) == []


def test_a_curve_starts_at_nothing_and_ends_at_the_last_query():
    curve = charts.curve([[100, 10], [200, 40], [200, 40], [400, 50]])
    places = drawn(curve.path)
    assert [x for x, _ in places] == [0.0, 0.25, 0.5, 1.0]
    heights = [y / places[-1][1] for _, y in places]
    assert heights == pytest.approx([0.0, 0.2, 0.8, 1.0], abs=1e-3)
    assert (curve.queries, curve.findings) == (400, 50)
    assert len(curve.dots) == 2
    assert [label for _, label in curve.across] == ["0", "100", "200", "300", "400"]
    assert all(0 <= place <= 1 for place, _ in curve.across + curve.up)


def test_a_long_curve_shows_its_end_alone():
    assert charts.curve(PICTURED.pictures["curve"]).dots == ()


@pytest.mark.parametrize("points", [None, [], [[0, 0]], [[100, 0]], [[50, None]]])
def test_a_search_without_findings_has_no_curve(points):
    assert charts.curve(points) is None

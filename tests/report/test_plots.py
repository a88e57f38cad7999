"""Pictures of a result: escaped SVG that loads nothing, and the same numbers by matplotlib."""

import dataclasses
from xml.etree import ElementTree

import pytest

from limi.errors import InvalidInput
from limi.metrics.individual import rate_of
from limi.report.notebook import NotebookBar, notebook_bar, render
from limi.report.plots import Interval, Intervals, Plots
from limi.system.watch import Progress
from tests.report.fixtures import HOSTILE, NOTHING, PICTURED, SEX, UNMEASURED

PICTURES = {
    "rates": Plots(PICTURED).rates(),
    "where": Plots(PICTURED).where(),
    "pairs": Plots(PICTURED).pairs(),
}


def words(picture):
    return " ".join("".join(ElementTree.fromstring(picture.svg).itertext()).split())


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_well_formed_small_and_brings_no_text_colour(name):
    picture = PICTURES[name]
    root = ElementTree.fromstring(picture.svg)
    assert root.tag.endswith("svg")
    assert len(picture.svg) < 60_000
    assert "http" not in picture.svg.replace("http://www.w3.org/2000/svg", "")
    texts = [one for one in root.iter() if one.tag.endswith("text")]
    assert texts
    assert {one.get("fill") for one in texts} == {"currentColor"}
    assert picture._repr_html_() == picture.svg


def test_rates_stand_with_their_intervals_and_rows():
    told = words(Plots(SEX).rates())
    assert "real rows" in told
    assert "12.3 %" in told
    assert "10,000 rows" in told


def test_a_higher_rate_lies_further_to_the_right():
    low, high = Interval("a", 0.1, 0.08, 0.12, 900), Interval("b", 0.5, 0.45, 0.55, 900)
    root = ElementTree.fromstring(Intervals("", (low, high)).svg)
    places = [float(one.get("cx")) for one in root.iter() if one.tag.endswith("circle")]
    assert places[0] < places[1]


def test_regions_stand_beside_the_average():
    picture = PICTURES["where"]
    assert picture.average == PICTURED.where.base.estimate
    assert "hours_per_week at least 45" in words(picture)


def test_words_from_the_data_are_escaped():
    for hostile in HOSTILE:
        picture = Intervals(hostile, (Interval(hostile, 0.1, 0.05, 0.2, 100),))
        root = ElementTree.fromstring(picture.svg)
        assert {one.tag.rpartition("}")[2] for one in root.iter()} <= {
            *("svg", "title", "text", "line", "circle", "rect", "g"),
        }


def test_a_rate_of_few_rows_makes_no_mark():
    summary = dataclasses.replace(SEX, rates={"real": rate_of(1, 4)})
    svg = Plots(summary).rates().svg
    assert "too few to say" in svg
    assert "<circle" not in svg


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: Plots(UNMEASURED).rates(), "no rate was measured"),
        (lambda: Plots(NOTHING).where(), "no region stands out"),
        (lambda: Plots(dataclasses.replace(SEX, pictures={})).pairs(), "no findings to plot"),
        (lambda: Plots(dataclasses.replace(PICTURED, kind="class")).pairs(), "is a class"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(ask, said):
    with pytest.raises(InvalidInput, match=said):
        ask()


def test_a_saved_picture_is_dark_on_white(tmp_path):
    place = PICTURES["rates"].save(tmp_path / "rates.svg")
    root = ElementTree.parse(place).getroot()
    assert root.get("color") == "#1f2328"
    assert root[0].get("fill") == "#ffffff"


def test_matplotlib_draws_the_same_numbers():
    ax = PICTURES["rates"].draw()
    drawn = [round(x, 6) for x in ax.lines[0].get_xdata()]
    assert drawn == [round(100 * rate.estimate, 6) for rate in PICTURED.rates.values()]
    same = PICTURES["pairs"].draw(ax.figure.add_subplot())
    assert len(same.collections[0].get_offsets()) == len(PICTURES["pairs"].dots)
    assert PICTURES["where"].draw(ax.figure.add_subplot()).get_ylim()[0] > 0


@pytest.mark.parametrize("name", PICTURES)
def test_no_word_of_a_drawing_is_cut(name):
    import matplotlib.pyplot as plt

    long = "hours_per_week at least 45 and education is Bachelors, Masters or Doctorate " * 2
    picture = dataclasses.replace(PICTURES[name], title=long)
    if name != "pairs":
        picture = dataclasses.replace(
            picture, lines=tuple(dataclasses.replace(one, label=long) for one in picture.lines)
        )
    ax = picture.draw()  # with pyplot loaded, on its figure
    figure = ax.figure
    figure.canvas.draw()
    bounds = figure.bbox
    for words in (*ax.get_yticklabels(), ax._left_title, ax.xaxis.label):
        box = words.get_window_extent()
        assert bounds.x0 <= box.x0 + 1, words
        assert box.x1 <= bounds.x1 + 1, words
        assert box.y1 <= bounds.y1 + 1, words
    plt.close(figure)


# --- the bar of a notebook -----------------------------------------------------------------------


def progress(seconds, done=0.5):
    return Progress("search", done, seconds, left=3.0, queries=1_000, rows=500, findings=7)


def test_the_bar_waits_two_seconds_and_is_cleared_at_the_end():
    shown, now = [], [0.0]

    def show(html):
        shown.append(html)
        return shown.append

    bar = NotebookBar(show, lambda: now[0])
    bar(progress(1.9))
    assert shown == []
    bar(progress(2.0))
    bar(progress(2.1))  # too soon after the last
    assert len(shown) == 1
    assert "7 findings" in shown[0]
    assert "500 queries per second" in shown[0]
    now[0] = 1.0
    bar(progress(3.0))
    assert len(shown) == 2
    bar.close()
    bar.close()
    assert shown[2:] == [""]


def test_the_bar_never_exceeds_its_end():
    assert 'value="1.000"' in render(progress(3.0, done=1.7))


def test_there_is_no_bar_outside_a_notebook():
    assert notebook_bar() is None

"""Numbers in words: digits that the interval supports, directions that face each other."""

import dataclasses
import doctest
import math

import pytest

from limi.metrics.individual import Rate, rate_of
from limi.report import wording
from limi.report.summary import Direction
from limi.report.wording import Opposed, Percent
from tests.report.fixtures import SEX


def test_the_examples_in_docstrings_hold():
    result = doctest.testmod(wording)
    assert result.attempted >= 5
    assert result.failed == 0


@pytest.mark.parametrize(
    ("rate", "shown"),
    [
        (Rate(0.1234, 0.1204, 0.1265, 10_000), Percent("12.3", "12.0", "12.7")),
        (Rate(0.1234, 0.12276, 0.12405, 1_000_000), Percent("12.34", "12.28", "12.40")),
        (Rate(0.5, 0.0126, 0.9874, 2), Percent("50.0", "1.3", "98.7")),
        (Rate(0.0, 0.0, 0.000369, 10_000), Percent("0", "0", "0.04")),
        (Rate(1.0, 0.69, 1.0, 10), Percent("100", "69.0", "100")),
        (Rate(0.00002, 0.0000024, 0.0000722, 100_000), Percent("0.002", "0.000", "0.007")),
        (Rate(0.25, 0.25, 0.25, 4), Percent("25.0", "25.0", "25.0")),
        (Rate(math.nan, 0.0, 1.0, 0), Percent("not measured", "", "")),
    ],
)
def test_percent_has_the_digits_that_its_interval_supports(rate, shown):
    assert wording.percent(rate) == shown


def test_the_answer_prefers_real_rows_to_natural_to_uniform_ones():
    rates = {name: rate_of(1, 10) for name in ("elsewhere", "uniform", "natural", "real")}
    summary = dataclasses.replace(SEX, rates=rates)
    order = [name for name, _ in wording.listed_rates(summary)]
    assert order == ["real", "natural", "uniform", "elsewhere"]
    for name in order:
        assert wording.population(name) in wording.answer(summary).statement
        summary = dataclasses.replace(
            summary, rates={k: v for k, v in summary.rates.items() if k != name}
        )


def test_one_finding_is_one_row():
    answer = wording.answer(dataclasses.replace(SEX, rates={}, findings=1))
    assert str(answer).startswith("1 row was found that would be")


def test_opposed_puts_a_direction_and_its_reverse_side_by_side():
    directions = (Direction("a", "b", 7), Direction("c", "d", 5), Direction("b", "a", 3))
    assert wording.opposed(directions, 15) == [
        Opposed("a", "b", 7, 3, True),
        Opposed("c", "d", 5, 0, True),
    ]


def test_opposed_bounds_what_a_cut_list_may_hide():
    directions = (Direction("a", "b", 7), Direction("c", "d", 5))
    assert wording.opposed(directions, 14) == [
        Opposed("a", "b", 7, 2, False),
        Opposed("c", "d", 5, 2, False),
    ]
    assert wording.opposed(directions, 100)[0] == Opposed("a", "b", 7, 5, False)
    assert wording.unlisted(dataclasses.replace(SEX, directions=directions, findings=14)) == 2


def test_a_score_of_one_half_is_unfavorable():
    assert wording.decision(SEX, 0.5) == "<=50K"
    assert wording.decision(SEX, 0.500001) == ">50K"


def test_every_stop_of_the_engine_has_words():
    from limi.budget import Stop

    for stop in Stop:
        assert " was" in wording.stopped(dataclasses.replace(SEX, stop=stop)) or stop == "exhausted"
    assert wording.stopped(dataclasses.replace(SEX, stop="some other end")) == "some other end"


@pytest.mark.parametrize("text", ["Straße", "東京", "naïve <b>", "👩\u200d🔬", "שלום"])
def test_clean_keeps_writing(text):
    assert wording.clean(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc\x00", r"a\nb\tc\x00"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202eabc", r"\u202eabc"),
        ("a\u2028b", r"a\u2028b"),
        ("\ud800", r"\ud800"),
    ],
)
def test_clean_spells_what_would_steer(text, shown):
    assert wording.clean(text) == shown

"""Numbers in words: digits that the interval supports, and what has to change."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limi.audits.summary import Example, Field
from limi.audits.what_if import Versus
from limi.metrics.individual import Rate, rate_of
from limi.metrics.naturalness import Likeness
from limi.metrics.what_if import paired_interval
from limi.report import wording
from limi.report.wording import Percent
from tests.report.fixtures import PICTURED, SEX, SUMMARIES, example


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
    rates = {name: rate_of(10, 100) for name in ("elsewhere", "uniform", "natural", "real")}
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


def test_a_score_of_one_half_is_unfavorable():
    for score in (0.5, 0.5 + 1e-12):
        assert wording.decision(SEX, score) == "<=50K"
    assert wording.decision(SEX, 0.500002) == ">50K"


def test_every_stop_of_the_engine_has_words():
    from limi.search.budget import Stop

    for stop in Stop:
        assert wording.stopped(dataclasses.replace(SEX, stop=stop)) != stop
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


def told(*fields, **changes):
    shown = Example((*fields, Field("sex", "Female", "Male", True)), 0.2, 0.7, "real")
    return wording.sentence(shown, dataclasses.replace(SEX, examples=(shown,), **changes))


def same(name, value):
    return Field(name, value, value, False)


def test_a_finding_in_one_sentence():
    assert wording.sentence(PICTURED.examples[0], PICTURED) == (
        "A 38-year-old (marital_status Divorced, occupation Sales, relationship Not-in-family, "
        "race White) is decided <=50K as sex Female but >50K as sex Male."
    )
    assert wording.sentence(PICTURED.examples[1], PICTURED).endswith(
        " is decided >50K as sex Male and race White but <=50K as sex Female and race Black."
    )


@pytest.mark.parametrize(
    ("age", "begin"),
    [
        ("38", "A 38-year-old is decided"),
        ("18", "An 18-year-old is decided"),
        ("80", "An 80-year-old is decided"),
        ("118", "A 118-year-old is decided"),
        ("3", "A row with age 3 is decided"),  # more likely the code of a group
        ("0.25", "A row with age 0.25 is decided"),
        ("-1", "A row with age -1 is decided"),
        ("25-60", "A row with age 25-60 is decided"),
        ("missing", "A row with age missing is decided"),
        ("\u0663\u0668", "A row with age \u0663\u0668 is decided"),
    ],
)
def test_an_age_in_years_is_told_as_one(age, begin):
    assert told(same("age", age)).startswith(begin)


def test_an_age_that_changes_is_no_one_s_age():
    shown = wording.sentence(SUMMARIES["many"].examples[0], SUMMARIES["many"])
    assert "year-old" not in shown
    assert "as sex Male, race White and age 58 but" in shown


def test_a_row_of_one_column_has_nothing_else_to_tell():
    assert told() == "A row is decided <=50K as sex Female but >50K as sex Male."


def test_words_tell_more_than_numbers_and_numbers_more_than_zeros():
    fields = [
        same("weight", "81"),
        same("loss", "0"),
        same("town", "missing"),
        same("job", "Sales"),
        same("AGE", "41"),
        same("gain", "0.0"),
        same("hours", "40"),
        same("home", "own"),
    ]
    assert told(*fields).startswith("A 41-year-old (weight 81, job Sales, hours 40, home own) is")
    assert told(*fields[:3]).startswith("A row with weight 81, loss 0 and town missing is")


def test_columns_in_which_the_examples_differ_tell_more():
    pairs = [example({"sex": "Female"}, 0.7, 0.3, native_country=c) for c in ("Cuba", "Peru")]
    summary = dataclasses.replace(SEX, examples=tuple(pairs))
    assert "native_country Peru" in wording.sentence(pairs[1], summary)
    alone = dataclasses.replace(SEX, examples=(pairs[1],))
    assert "native_country" not in wording.sentence(pairs[1], alone)


def test_long_values_are_cut_in_a_sentence():
    assert told(same("note", "x" * 300)) == (
        f"A row with note {'x' * 37}... is decided <=50K as sex Female but >50K as sex Male."
    )


@pytest.mark.parametrize(
    ("causes", "words"),
    [
        ("", ""),
        ("sex", "sex alone"),
        ("sex, race", "sex or race alone"),
        ("sex+race", "sex and race together"),
        ("sex, race+age", "sex alone, or race and age together"),
        ("sex+race, race+age", "sex and race together, or race and age together"),
        ("sex+race+age", "sex, race and age together"),
        ("colour, or hue", "colour, or hue"),
    ],
)
def test_what_flips_a_finding_in_words(causes, words):
    summary = dataclasses.replace(SEX, protected={"sex": [], "race": [], "age": []})
    shown = dataclasses.replace(SEX.examples[0], flipped_by=causes)
    assert wording.flipped_by(shown, summary) == words


def test_naturalness_in_its_order_and_only_what_is_a_number():
    given = {
        "mine": Likeness(0.5),
        "ceiling": Likeness(0.9, 0.0123, 1234, 10),
        "findings": Likeness(math.nan),
    }
    shown = wording.natural(dataclasses.replace(SEX, naturalness=given))
    assert [(n.name, n.shown, n.aid) for n in shown] == [
        (
            "real rows that flip",
            "0.900",
            "the table's own, for comparison (10 draws of 1,234 rows, spread 0.012)",
        ),
        ("mine", "0.500", ""),
    ]


def test_a_generator_and_its_time():
    assert wording.generator(SEX) == "none"
    named = dataclasses.replace(SEX, generator="trees")
    assert wording.generator(named) == "trees"
    timed = dataclasses.replace(named, preparation_seconds=61.0)
    assert wording.generator(timed) == "trees, ready after 1 min 1 s"


@given(
    n=st.integers(30, 5_000), cells=st.tuples(*[st.integers(0, 300)] * 2), same=st.integers(0, 900)
)
def test_figures_on_one_line_agree(n, cells, same):
    """The shares of two values and their difference, as a reader would subtract them."""
    only_first, only_second = max(cells), min(cells)
    n += sum(cells) + same
    low, high = (float(end) for end in paired_interval(only_first, only_second, n))
    difference = (only_first - only_second) / n
    pair = Versus("a", "b", only_first, only_second, difference, low, high, 0.01, 0.03, True)
    rates = [rate_of(same + hits, n) for hits in (only_first, only_second)]
    one, other, points = wording.rates_and_gap(*rates, pair)
    assert math.isclose(float(one) - float(other), float(points.split()[0]), abs_tol=1e-9)

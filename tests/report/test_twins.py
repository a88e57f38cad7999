"""The twin question in words: what is said, and what never is."""

import dataclasses

import pytest

from limi.report import html, text, twins, wording
from tests.report.fixtures import BLIND, SEX, TWINS, UNASKED


def said(summary):
    return " ".join(text.render(summary).split())


def test_a_run_that_asked_no_twins_says_nothing_of_them():
    assert twins.tell(SEX) is None
    assert "twin" not in text.render(SEX).lower()
    assert 'id="twins"' not in html.render(SEX)


def test_the_answer_of_a_model_that_takes_no_protected_column_is_that_of_its_twins():
    answer = wording.answer(BLIND)
    assert answer.figure == "17.2 %"
    assert answer.statement == (
        "of people with sex Female are decided unfavorably, and their twins with sex Male favorably"
    )
    assert "if only sex changed: 0 %" in answer.evidence


def test_rates_stand_beside_placebo_coverage_and_orders():
    shown = said(BLIND)
    assert "If sex alone changed: 0 % (the model does not take it)." in shown
    assert "17.2 % (16.2 to 18.3) of people with sex Female would be decided favorably" in shown
    assert "Shuffled sex: 0.1 % flip; these twins account for 91 % of the gap" in shown
    assert "15.2 to 20.1 % over two other orders of the columns" in shown
    assert "marital_status and relationship 60 % (+/- 2)" in shown
    assert "if education and hours_per_week" in shown
    assert "another draw would change the verdict for 13 % of people" in shown


def pair_of(*numbers):
    """The run with some of its directions alone."""
    ways = tuple(BLIND.twins.directions[number] for number in numbers)
    return dataclasses.replace(BLIND, twins=dataclasses.replace(BLIND.twins, directions=ways))


def test_what_is_not_measured_well_is_called_so():
    shown = said(pair_of(1, 2))
    assert "favorably. This is not measured well." in shown
    assert "account for 31 % of the gap between the groups" in shown
    assert "decided favorably about as often, so there is no gap to explain" in shown
    assert "12 people have no twin that keeps the constraints" in shown


def test_more_than_one_pair_of_groups_is_a_table():
    shown = said(BLIND)
    assert shown.count("If everything that goes along with sex") == 1
    assert "of the gap sex Female sex Male 17.2 (16.2-18.3)" in shown
    assert "31, not well" in shown.partition("of the gap sex Female")[2].partition("Gain, lose")[0]
    assert "no gap Gain, lose: the percentage of these people" in shown
    assert "Without a twin that keeps the constraints: 12 with" in shown
    assert "All groups" in html.render(BLIND)
    few = pair_of(0, 1)
    assert said(few).count("If everything that goes along with sex") == 2
    assert "Gain, lose" not in said(few)
    assert "All groups" not in html.render(few)


def test_small_errors_and_steps_are_not_zeros_with_a_sign():
    way = BLIND.twins.directions[0]
    tiny = dataclasses.replace(way.carriers[-1], share=-1e-6, error=1e-4)
    lone = dataclasses.replace(way.carriers[0], error=1e-4)
    told = dataclasses.replace(
        BLIND.twins, directions=(dataclasses.replace(way, carriers=(lone, tiny)),)
    )
    summary = dataclasses.replace(BLIND, twins=told)
    assert "60 % (+/- under 1)" in said(summary)
    assert [step.label for step in twins.tell(summary).ways[0].steps][2] == "0.0"


def test_where_there_is_no_answer_the_reason_is_told():
    shown = said(UNASKED)
    assert "The twin question has no answer: no questions were left." in shown
    assert shown.startswith("0 % would be decided differently if only sex changed")


def test_a_model_that_takes_the_column_keeps_its_own_answer():
    assert wording.answer(TWINS) == wording.answer(SEX)
    assert "Who is favored" in said(TWINS)
    assert "Who is favored" not in said(BLIND)


@pytest.mark.parametrize("summary", [BLIND, TWINS, UNASKED], ids=["blind", "twins", "unasked"])
@pytest.mark.parametrize("draw", [text.render, html.render, html.snippet])
def test_nothing_is_said_of_causes(summary, draw):
    words = " ".join(draw(summary).split()).lower()
    assert "counterfactual" not in words
    assert "because of" not in words


def test_the_waterfall_ends_at_what_the_twins_are_decided():
    way = twins.tell(BLIND).ways[0]
    first, *middle, last = way.steps
    assert (first.kind, last.kind) == ("total", "total")
    at = first.end
    for step in middle:
        assert step.start == pytest.approx(at)
        assert (step.kind == "for") == (step.end >= step.start)
        at = step.end
    assert last.end == pytest.approx(at)
    moves = sum(float(step.label) for step in middle)
    assert moves == pytest.approx(100 * (0.172 - 0.014), abs=0.3)


def test_the_bars_of_what_remains_follow_the_more_frequent_change():
    there, back, even = twins.tell(BLIND).ways
    assert [bar.label for bar in there.kept_bars] == ["17.2 %", "13.6 %", "0.0 %"]
    assert back.kept_bars[0].label == "17.2 %"
    assert there.kept_title.endswith("favorably")
    assert back.kept_title.endswith("unfavorably")
    assert not even.kept_bars
    assert not even.steps


def test_a_carrier_without_an_error_has_none():
    lone = dataclasses.replace(
        BLIND.twins.directions[0],
        carriers=(dataclasses.replace(BLIND.twins.directions[0].carriers[0], error=None),),
    )
    told = dataclasses.replace(BLIND, twins=dataclasses.replace(BLIND.twins, directions=(lone,)))
    assert "carried by marital_status and relationship 60 %." in said(told)

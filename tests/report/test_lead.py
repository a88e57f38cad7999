"""The first screen: who loses, or who gets more."""

import dataclasses

from limi.metrics._quantiles import Quantile
from limi.metrics.outcomes import Moves, Outcomes, Shift
from limi.report import brief, html, lead
from tests.report.fixtures import SEX, people

RACES = {"White": 3_300, "Asian": 3_298, "Black": 2_940, "Roma": 2_942}


def first_screen(summary):
    return dict(lead.tell(summary).lines)


def of_races(hits):
    table = people(("race",), hits, 4_000, 30)
    return dataclasses.replace(SEX, protected={"race": list(hits)}, what_if=(table,))


def test_who_loses_names_all_that_cannot_be_told_apart():
    """Two people of 4,000 make nobody the one who loses."""
    told = first_screen(of_races(RACES))["Who loses"]
    assert told.startswith("race Black and race Roma, which cannot be told apart: ")
    assert "against 82.5 % as race White" in told
    verdict = " ".join(brief.render_brief(of_races(RACES)).split())
    assert "race Roma cannot be told apart from race Black." in verdict
    assert "race Asian cannot be told apart from race White." in verdict
    alone = first_screen(of_races(RACES | {"Roma": 3_100}))["Who loses"]
    assert alone.startswith("race Black: the same 4,000 people")
    assert "Roma" not in alone


def priced(higher, lower, mean):
    known = Quantile(0.5, 0.0, 0.0, 0.0)
    shift = Shift("M", "F", 240, known, (known,), 40.0, mean, higher, lower)
    outcome = Outcomes("real", "sex", shifts=(shift,))
    numbers = {"kind": "number", "decision": "difference > 25", "target": "price"}
    return dataclasses.replace(SEX, outcomes=(outcome,), what_if=(), **numbers)


def test_the_first_screen_of_prices_says_who_pays_more():
    told = first_screen(priced(60, 0, 10.0))["Who gets more"]
    assert told == (
        "sex M: of the same 240 rows of the table, 25 % get a higher price as sex M than as sex F, "
        "and 0 % a lower one, 10 more on average (corrected p under 0.001)."
    )
    assert told in " ".join(brief.render_brief(priced(60, 0, 10.0)).split())
    assert told in html.render(priced(60, 0, 10.0))
    assert first_screen(priced(0, 60, -10.0))["Who gets more"].startswith("sex F: ")
    assert "No value" in first_screen(priced(12, 10, 0.1))["Who gets more"]


def test_the_first_screen_of_classes_in_order_says_who_gets_better_ones():
    moves = Moves("F", "M", 100, ((30, 2, 0), (20, 20, 0), (8, 0, 20)))
    outcome = Outcomes("real", "sex", moves=(moves,))
    graded = dataclasses.replace(
        SEX, kind="class", classes=("low", "mid", "top"), outcomes=(outcome,), what_if=()
    )
    told = first_screen(dataclasses.replace(graded, ordered=True))["Who gets more"]
    assert told.startswith("sex F: of the same 100 rows of the table, 28 % get a better income")
    assert "Who gets more" not in first_screen(graded)

"""Repairs in words, as a card and as a page; and where the marks of their chart lie."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limi.report import _fronts
from limi.report import repairs as page


def figure(value, low=None, high=None, **more):
    return {"value": value, "low": low, "high": high, **more}


def tree(**changes):
    """Several repairs of a model, whose dots lie close together."""
    names = ("accuracy", "favorable", "natural", "real")

    def side(*values):
        return {
            name: figure(v, max(0, v - 0.01), v + 0.01, seeds=[v, v + 0.004, max(0, v - 0.003)])
            for name, v in zip(names, values, strict=True)
        } | {"twins": figure(None, reason="too few"), "twins_kept": figure(None)}

    def way(how, *values):
        return {
            "how": how,
            "words": f"the model by {how}",
            "verdict": "removed: none of 5,000 fresh people flips",
            "why": "as good as average, but takes longer",
            "figures": side(*values),
            "accuracy_loss": {"value": 0.001, "low": -0.002, "high": 0.004},
            "checks": [
                {"words": "fresh people", "rows": 9, "rows_after": 9, "before": 5, "after": 0}
            ],
            "moved": [
                {"group": "sex F", "people": 4000, "gained": 36, "lost": 110},
                {"group": "sex M & others", "people": 9000, "gained": 130, "lost": 20},
            ],
            "share": {"p_value": 0.4, "was_moved": False, "threshold_to_keep_it": None},
            "questions_per_answer": 2,
            "seconds": 0.4,
            "notes": [],
        }

    tried = [
        way("average", 0.871, 0.2, 0.0, 0.0),
        way("drop", 0.8715, 0.2, 0.0, 0.0),
        way("copies", 0.872, 0.2, 0.0002, 0.0),
        way("findings", 0.869, 0.2, 0.0001, 0.0),
    ]
    run = {
        "table": "people.csv",
        "model": "skops:m.skops",
        "target": "ok",
        "favorable": "yes",
        "favorable_name": "yes",
        "protected": {"sex": ["F", "M"]},
        "method": "limi",
        "generator": "trees",
        "seed": 0,
        "findings": 500,
        "data_sha256": "abc",
        "kind": "favorable",
        "ordered": False,
        "decision": "favorable",
    }
    return {
        "recommended": "average",
        "close": [],
        "before": side(0.873, 0.21, 0.06, 0.05),
        "tried": tried,
        "skipped": {"pairs": "it needs a network"},
        "fresh": {"method": "guided", "generator": "transport"},
        "groups": {"privileged": "sex=M", "why": "as stated"},
        "settings": {
            "seeds": 3,
            "held_out": 0.2,
            "measured_on": "",
            "trained_again": True,
            "trained_by": "a clone",
            "max_accuracy_loss": 0.01,
            "loss_scale": 1.0,
            "rows": 30_000,
            "kept": "",
            "recipe": "both+table",
            "preset": "best",
            "label": "vote",
            "fraction": 0.05,
        },
        "run": run,
        "model_files": ["model.skops", "score.py"],
        "model_notes": [],
        "added_file": None,
        "versions": {"limi": "1"},
        "date": "2026-01-31",
        "command": "limi repair run --out repaired",
        **changes,
    }


def test_a_figure_has_the_digits_of_its_interval():
    given = tree()
    few = figure(0.00002, 0.0, 0.00022, seeds=[0, 0, 0])
    given["tried"][0]["figures"]["natural"] = few
    (cells,) = [line.cells for line in page.lines(given) if line.name == "flips, natural people"]
    assert (cells[1].value, cells[1].interval) == ("0.002 %", "0 to 0.022")
    assert "0.002 % after" in page.basis(given)


def test_a_loss_of_accuracy_has_its_interval():
    assert "accuracy changes by -0.10 points (-0.40 to +0.20)" in page.basis(tree())


def test_the_card_says_what_was_done_and_where_it_ends():
    card = page.card(tree())
    for words in (
        "**Take average: the model by average.**",
        "| figure | as it is | average | drop | copies | findings |",
        "pairs was not tried: it needs a network.",
        "recipe both+table (preset best), labelled by vote, 5% of the rows",
        "a different method (guided)",
        "python:repaired/score.py:score",
        "not a certificate of fairness",
    ):
        assert words in card


def test_rows_that_were_added_are_the_way_without_a_file():
    alone = tree(recommended="findings", model_files=[], added_file="added.parquet")
    assert "on the table and added.parquet together" in page.next_step(alone).words
    assert "added.parquet" in page.files(alone)


def test_where_it_was_measured_is_said():
    def measured(**more):
        return page.remarks(tree(settings={**tree()["settings"], **more}))[0]

    assert "each holds out 20% of the rows" in measured()
    assert "measured on new.csv" in measured(held_out=None, measured_on="new.csv")
    assert "unchanged, on new.csv" in measured(trained_again=False, measured_on="new.csv")
    assert "may have been trained on" in measured(trained_again=False)
    assert "trained on all rows" in measured(held_out=0)


def test_the_page_says_who_gains_and_who_loses_before_all_else():
    shown = " ".join(page.render(tree()).split())
    assert shown == " ".join(page.render(tree()).split())
    first = shown[: shown.index("<main>")]
    assert "sex F: of 4,000 decisions, 36 become yes and 110 no longer are yes." in first
    assert first.index("Who gains") < first.index("Who loses") < first.index("sex F")
    assert "limi test people.csv --model python:repaired/score.py:score --target ok" in first
    assert shown.count('class="seed') == 5 * 3


costs = st.integers(0, 1000).map(lambda tenths: tenths / 10)
shares = st.integers(0, 1000).map(lambda parts: parts / 1000)
points = st.lists(
    st.builds(
        _fronts.Point,
        st.sampled_from(["before", "average", "without marital_status", "copies"]),
        costs,
        shares,
        st.lists(st.tuples(costs, shares), max_size=2).map(tuple),
    ),
    min_size=2,
    max_size=6,
)


@given(points)
def test_marks_lie_in_the_frame_and_labels_apart(given):
    front = _fronts.front(given)
    assert front is not None
    for mark in front.marks:
        for at in (mark.at, *mark.seeds):
            assert -1e-6 <= at.x <= 1 + 1e-6
            assert -1e-6 <= at.y <= 1 + 1e-6
    boxes = [
        _fronts._box(mark.at, _fronts._LETTER * len(mark.name), 17, mark.anchor, mark.above)
        for mark in front.marks
    ]
    for one, two in itertools.combinations(boxes, 2):
        assert not _fronts._overlap(one, two)


def test_a_front_needs_two_points_that_are_numbers():
    before = _fronts.Point("before", 90.0, 0.1)
    assert _fronts.front([before]) is None
    assert _fronts.front([before, _fronts.Point("after", float("nan"), 0.1)]) is None
    front = _fronts.front([before, _fronts.Point("after", 88.0, 0.0)], limit=89.0)
    assert front is not None
    assert [mark.at.y for mark in front.marks] == [pytest.approx(1.0), 0.0]
    assert front.limit == pytest.approx(0.5)
    assert _fronts.front([before, _fronts.Point("after", 88.0, 0.0)], limit=9.0).limit is None


NASTY = "</td><script>alert(1)</script>|`x`[l](http://e)\n# H\x1b[31m"


def test_card_and_page_take_names_for_text():
    plain = page.card(tree())
    named = dict.fromkeys(("model", "table", "target", "favorable", "generator"), NASTY)
    hostile = tree(
        run={**tree()["run"], **named, "protected": {NASTY: [NASTY, "M"]}},
        groups={"privileged": NASTY, "why": NASTY},
        command=f"limi repair {NASTY}",
    )
    card = page.card(hostile)
    assert len(card.splitlines()) == len(plain.splitlines())
    assert "\x1b" not in card
    spoken = [line for line in card.splitlines() if not line.startswith(("Made by", "``"))]
    assert "<script" not in "\n".join(spoken)
    assert "](" not in "\n".join(spoken).replace("\\[l](", "")
    made = next(line for line in card.splitlines() if line.startswith("Made by"))
    assert made.count("``") == 2  # a fence that the name does not close
    shown = page.render(hostile)
    assert shown.count("<script") == 1  # that of the page itself
    assert "<script>alert" not in shown

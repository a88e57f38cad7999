"""A repair in words, as a card and as a page; and where the marks of its chart lie."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limi.report import _fronts
from limi.report import repair as page


def figure(value, low=None, high=None, **more):
    return {"value": value, "low": low, "high": high, **more}


def tree(**changes):
    side = {
        "accuracy": figure(0.87, 0.86, 0.88),
        "training_accuracy": figure(0.9),
        "real": figure(0.03, 0.02, 0.04),
        "uniform": figure(0.0),
        "natural": figure(0.04),
        "spd": figure(0.2, 0.15, 0.25),
        "aod": figure(None, reason="the group of all others has no row whose true label is yes"),
    }
    after = {**side, "accuracy": figure(0.865), "real": figure(0.0), "natural": figure(0.01)}
    check = {"words": "findings by guided", "rows": 5000, "rows_after": 5000}
    check |= {"before": 1404, "after": 3}
    return {
        "verdict": "reduced by 75 %: fresh people",
        "before": side,
        "after": after,
        "without_protected": {**side, "accuracy": figure(0.861), "natural": figure(0.0)},
        "checks": [check],
        "own_findings": {"rows": 200, "after": 1, "before": 200},
        "fresh": {"method": "guided", "generator": "transport", "other_generator": True},
        "groups": {"privileged": "sex=M", "why": "as stated"},
        "settings": {
            "preset": "best",
            "recipe": "pairs",
            "label": "vote",
            "fraction": 0.3,
            "findings_used": 300,
            "findings_drawn_twice": True,
            "seeds": 3,
            "held_out": 0.2,
        },
        "run": {
            "table": "people.csv",
            "model": "skops:m.skops",
            "target": "ok",
            "favorable": "yes",
            "protected": {"sex": ["F", "M"]},
            "method": "limi",
            "generator": "trees",
            "seed": 0,
            "findings": 500,
            "data_sha256": "abc",
        },
        "how": "a clone",
        "rows": {"table": 1000, "added": 600},
        "front": [],
        "moved": [
            {"group": "sex F", "people": 400, "gained": 30, "lost": 4},
            {"group": "sex M", "people": 600, "gained": 2, "lost": 21},
        ],
        "date": "2026-01-31",
        "model_file": "model.skops",
        "versions": {"limi": "1"},
        "command": "limi repair run",
        **changes,
    }


def test_lines_say_value_interval_and_change():
    lines = {line.name: line for line in page.lines(tree())}
    assert lines["held-out accuracy"].before == "87.00 % (86.0 to 88.0)"
    assert lines["held-out accuracy"].change == "-0.50 points"
    assert lines["flips, real"].change == "-100 %"
    assert lines["flips, uniform"].change == "0 before"
    assert lines["SPD"].before == "0.200 (0.150 to 0.250)"
    assert (lines["AOD"].before, lines["AOD"].change) == ("-", "-")


def test_a_table_with_rules_has_lines_of_both_questions():
    assert not any("protected only" in line.name for line in page.lines(tree()))
    given = tree()
    for side, share in (("before", 0.05), ("after", 0.02), ("without_protected", 0.0)):
        given[side] = {**given[side], "real_only_protected": figure(share)}
    lines = {line.name: line for line in page.lines(given)}
    both = lines["flips, real, protected only"]
    assert (both.before, both.after, both.change) == ("5.00 %", "2.00 %", "-60 %")
    assert "flips, real, protected only" in page.card(given)
    assert "flips, real, protected only" in page.render(given)


def test_zero_flips_show_how_many_there_may_be():
    given = tree()
    none = figure(0.0, 0.0, 0.000184, seeds=[0.0, 0.0, 0.0], interval="rows")
    given["after"] = {**given["after"], "real": none}
    lines = {line.name: line for line in page.lines(given)}
    assert lines["flips, real"].after == "0.00 % (0 to 0.018)*"
    assert "marked *" in page.card(given)
    given["after"]["real"] = figure(0.00001)
    assert {line.name: line.change for line in page.lines(given)}["flips, real"] == "-99.9 %"


def test_words_follow_what_was_done():
    alone = {"method": "guided", "generator": "trees", "other_generator": False}
    told = page.card(tree(fresh=alone))
    assert "another generator" not in told
    assert "the generator trees, fitted again" in told
    settings = {**tree()["settings"], "recipe": "copies", "findings_used": 0}
    assert "Recipe copies (preset best): no findings." in page.card(tree(settings=settings))
    settings = {**tree()["settings"], "held_out": None, "measured_on": "a test table"}
    assert "are measured on a test table" in page.card(tree(settings=settings))
    shorter = {**tree()["checks"][0], "rows_after": 700}
    assert "of 5,000 rows before, 3 of 700 after" in page.card(tree(checks=[shorter]))


def test_what_has_no_number_has_a_reason():
    assert any("no row whose true label is yes" in words for words in page.remarks(tree()))


def test_the_verdict_has_the_digits_of_the_table():
    given = tree()
    few = {"value": 0.00002, "low": 0.0, "high": 0.00022, "interval": "rows", "seeds": [0, 0, 0]}
    given["after"] = {**given["after"], "natural": few}
    shown = next(line.after for line in page.lines(given) if line.name == "flips, natural")
    assert shown.startswith("0.002 % (")
    assert "with them 0.002 %" in page.basis(given)


def test_without_held_out_rows_the_line_is_left_out():
    nothing = figure(None, reason="no rows were held out")
    given = tree()
    for side in ("before", "after"):
        given[side] = {**given[side], "accuracy": nothing}
    assert "held-out accuracy" not in {line.name for line in page.lines(given)}
    assert "on training rows" in page.basis(given)


def test_the_card_says_what_was_done_and_where_it_ends():
    card = page.card(tree())
    for words in (
        "**Verdict: Reduced by 75 %: fresh people.** Trained again without findings",
        "the model flips 4.00 % of natural people, with them 1.00 % (means over 3 seeds)",
        "| figure | before | after | change | without sex |",
        "300 findings, some of them more than once, drawn for 30% of the table",
        "labelled by vote",
        "with another generator (transport)",
        "1,404 flips of 5,000 rows before, 3 after",
        "Of the run's own findings 0.5% still flip",
        "skops:model.skops",
        "not a certificate of fairness",
    ):
        assert words in card
    assert "was not written" in page.card(tree(model_file=None))


def test_pages_are_the_same_bytes_and_escape_what_they_show():
    shown = page.render(tree(verdict="unchanged: <b>accuracy</b>"))
    assert shown == page.render(tree(verdict="unchanged: <b>accuracy</b>"))
    assert "<b>accuracy" not in shown
    assert shown.count('class="tip') == 3  # before, after, without the column
    swept = [
        {"fraction": f, **{n: figure(v) for n, v in zip(("accuracy", "natural"), p, strict=True)}}
        for f, p in ((0.0, (0.9, 0.05)), (0.3, (0.89, 0.01)))
    ]
    shown = page.render(tree(front=swept))
    assert shown.count('class="tip') == 2
    assert "30%</text>" in shown


def test_the_page_says_who_gains_and_who_loses_before_all_else():
    shown = " ".join(page.render(tree()).split())
    first = shown[: shown.index("<main>")]
    assert "sex F: of 400 decisions, 30 become yes and 4 no longer are yes." in first
    assert "sex M: of 600 decisions, 2 become yes and 21 no longer are yes." in first
    assert first.index("Who gains") < first.index("sex F") < first.index("Who loses")
    assert "limi test people.csv --model skops:model.skops --target ok" in first
    elsewhere = page.render(tree(command="limi repair run --out there/ --sweep"))
    assert "skops:there/model.skops" in elsewhere


def test_seeds_are_dots_of_their_own():
    given = tree()
    for side in ("before", "after"):
        for name in ("accuracy", "natural"):
            known = given[side][name]
            given[side] = {**given[side], name: {**known, "seeds": [known["value"]] * 3}}
    assert page.render(given).count('class="seed') == 6


costs = st.integers(0, 1000).map(lambda tenths: tenths / 10)
shares = st.integers(0, 1000).map(lambda parts: parts / 1000)
points = st.lists(
    st.builds(
        _fronts.Point,
        st.sampled_from(["before", "average", "without marital_status", "5%"]),
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

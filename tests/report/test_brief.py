"""The short report of the terminal, and what to do next."""

import dataclasses

import pytest

from limi.report import brief
from limi.report.next_steps import ask_again, next_step
from limi.report.terms import TERMS, explain
from tests.report.fixtures import MANY, NOTHING, SEX, SUMMARIES


@pytest.mark.parametrize("name", SUMMARIES)
@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_short_report_has_at_most_forty_lines_at_every_width(name, width):
    lines = brief.render_brief(SUMMARIES[name], width).splitlines()
    assert len(lines) <= brief.MOST_LINES
    wide = [line for line in lines if len(line) > width and "limi " not in line]
    assert wide == []


def test_the_first_lines_answer_the_question():
    first = " ".join(brief.render_brief(SEX).splitlines()[:3])
    assert "would be decided differently if only sex changed" in first


def test_long_notes_are_cut_and_counted():
    told = brief.render_brief(dataclasses.replace(SEX, notes=("a note " * 60,) * 9), 60)
    assert "Notes (4 of 9)" in told
    assert len(told.splitlines()) <= brief.MOST_LINES


def test_colors_are_asked_of_the_console_alone():
    assert "\x1b" not in brief.render_brief(MANY)


def test_a_run_without_findings_says_what_the_next_try_costs():
    summary = dataclasses.replace(
        NOTHING,
        command="limi test a.csv --model m:x --max-rows 500 --out run",
        rows_checked=500,
        queries=1_000,
        seconds=2.0,
        stop="rows",
    )
    step = next_step(summary)
    assert "500 rows were checked with 1,000 queries in 2.0 s, and none flips." in step.words
    assert "about 10,000 queries and 20.0 s" in step.words
    assert step.command == "limi test a.csv --model m:x --out run --max-rows 5000 --force"


@pytest.mark.parametrize(
    ("stop", "command", "told"),
    [
        ("queries", "limi test a --max-queries=100", "limi test a --max-queries 10000"),
        ("interrupted", "limi test a --out 'my run'", "limi test a --out 'my run' --resume"),
        ("interrupted", "limi test a", "limi test a"),
        ("exhausted", "limi test a --method real", "limi test a --method guided"),
    ],
)
def test_the_command_is_that_of_the_run_with_more_of_what_it_lacked(stop, command, told):
    summary = dataclasses.replace(NOTHING, command=command, stop=stop, queries=1_000)
    assert next_step(summary).command == told


def test_findings_are_kept_then_repaired():
    bare = dataclasses.replace(SEX, command="limi test a --model m:x")
    assert next_step(bare).command == "limi test a --model m:x --out run"
    kept = dataclasses.replace(SEX, command="limi test a --model m:x --out r")
    assert next_step(kept).command == "limi repair r --out r-repaired"
    example = dataclasses.replace(SEX.examples[0], row=7)
    assert ask_again(kept, example) == "limi replay r --model m:x --row 7"
    assert ask_again(bare, example) == ""
    trusting = "limi test a --model m:x --out r --trust a.B --trust=c.D --trust-pickle"
    trusting = dataclasses.replace(SEX, command=f"{trusting} --header 'A: $B'")
    opening = "--trust-pickle --trust a.B --trust=c.D --header 'A: $B'"
    assert next_step(trusting).command == f"limi repair r --out r-repaired {opening}"
    assert ask_again(trusting, example) == f"limi replay r --model m:x --row 7 {opening}"


def test_without_a_target_the_next_step_is_to_name_it():
    bare = dataclasses.replace(SEX, target=None, command="limi test a --model m:x --out r")
    told = next_step(bare).command
    assert told == "limi test a --model m:x --out r --target COLUMN --force"


def test_where_flips_are_known_to_exist_another_method_is_tried_before_more_of_the_same():
    empty = dataclasses.replace(NOTHING, command="limi test a --method themis", method="themis")
    starved = next_step(dataclasses.replace(empty, stop="rules"))
    assert "Hardly any row that themis proposes keeps the rules" in starved.words
    assert starved.command == "limi test a --method guided"
    known = next_step(dataclasses.replace(empty, stop="rows", rates=SEX.rates))
    assert "of real rows 12.3 % flip" in known.words.lower()
    assert known.command == "limi test a --method guided"


def test_terms_are_found_however_they_are_typed():
    assert explain("Impact_Ratio")[0] == "impact ratio"
    assert explain("findings")[1] == TERMS["finding"]
    with pytest.raises(ValueError, match="did you mean 'flip'"):
        explain("flipp")

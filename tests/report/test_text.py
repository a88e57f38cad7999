"""The terminal report: its words, its width, and that no value can steer the terminal."""

import dataclasses
import io
import math

import pytest
from rich.console import Console

from limi.metrics.individual import rate_of
from limi.report import lead, text, wording
from limi.report.next_steps import next_step
from tests.report.fixtures import (
    ATTACKED,
    FEW,
    HOSTILE,
    MANY,
    NOT_A_NUMBER,
    NOTHING,
    PICTURED,
    SEX,
    SUMMARIES,
    UNMEASURED,
    UNMEASURED_NOTHING,
)


def flat(shown: str) -> str:
    return " ".join(shown.split())


def test_the_first_words_are_the_answer():
    assert flat(text.render(SEX)).startswith(
        "12.3 % of real rows would be decided differently if only sex changed "
        "(95 % interval 11.7 to 13.0, n = 10,000)"
    )


def test_the_answer_fits_one_line_of_a_wide_terminal():
    assert text.render(SEX, width=160).splitlines()[0].endswith("n = 10,000)")


def test_several_protected_columns_are_named():
    assert "if one or more of sex, race and age changed" in flat(text.render(MANY))


def test_the_sections_of_a_small_run():
    shown = text.render(SEX)
    assert (
        "  real     12.3 %  11.7 to 13.0  n = 10,000  the rows of your table\n"
        "  uniform  28.7 %  27.8 to 29.6  n = 10,000  all combinations of values the\n"
    ) in shown
    assert (
        "What the search found\n"
        "  findings                       3,911\n"
        "  rows checked                   32,561\n"
        "  queries                        65,074\n"
        "  findings per thousand queries  60.1\n"
        "  time                           1.8 s\n"
        "  stopped because                the method had nothing left to check\n"
    ) in shown
    assert (
        "Who is favored\n"
        "  The same 10,000 people of the table: 22.9 % are decided >50K as sex Female,\n"
        "  24.1 % as sex Male; difference 1.2 points, 0.5 to 1.9.\n"
        "  sex Male is favored over sex Female (corrected p = 0.004).\n"
    ) in shown
    assert (
        "  Of the 3,911 findings, decided >50K: 807 as sex Female and 3,104 as sex Male.\n"
        "  The search went looking for these rows, so the counts do not say whom the\n"
        "  model favors.\n"
    ) in shown
    assert (
        "  1. A 37-year-old (workclass Private, education Bachelors, occupation\n"
        "     Exec-managerial, relationship Husband) is decided >50K as sex Male but\n"
        "     <=50K as sex Female.\n"
        "     scores 0.713 and 0.292, gap 0.421\n"
        "     also the same for both: fnlwgt 189778, education_num 13, marital_status\n"
    ) in shown
    assert "decision income: >50K (favorable) or <=50K" in flat(shown)
    assert "not a certificate of fairness" in flat(shown)
    assert f"How to repeat\n  {SEX.command}\n" in shown


def test_the_whole_report_has_what_the_short_one_and_the_page_have():
    told = flat(text.render(dataclasses.replace(MANY, volume=50_000, real_people=3)))
    for _, words in lead.tell(dataclasses.replace(MANY, volume=50_000, real_people=3)).lines:
        assert flat(wording.clean(words)) in told
    step = next_step(MANY)
    assert step.words in told
    assert wording.clean(step.command) in told


def test_three_findings_are_shown():
    shown = text.render(MANY)
    assert "  3. A row with" in shown
    assert "  4. " not in shown


@pytest.mark.parametrize("name", sorted(set(SUMMARIES) - {"attacked"}))
def test_findings_are_told_in_the_words_of_the_sentence(name):
    summary = SUMMARIES[name]
    shown = flat(text.render(summary))
    for example in summary.examples[:3]:
        assert wording.sentence(example, summary) in shown


def test_every_column_of_a_finding_is_named_once():
    found = dataclasses.replace(PICTURED.examples[0], flipped_by="")
    shown = flat(text.render(dataclasses.replace(PICTURED, examples=(found,))))
    shown = shown[shown.index("Severe and") : shown.index("How natural")]
    for field in found.fields:
        named = shown.count(f" {field.name} ") + shown.count(f"({field.name} ")
        assert named == 0 if field.name == "age" else named == 1 + field.changed, field.name


def test_what_flips_a_finding_is_said_where_it_is_known():
    shown = text.render(PICTURED)
    assert "     flipped by sex alone\n" in shown
    assert "     flipped by sex or race alone\n" in shown
    assert "     flipped by sex and race together\n" in shown
    assert "flipped by" not in text.render(SEX)


def test_naturalness_side_by_side():
    shown = text.render(PICTURED)
    told = flat(shown)
    for words in (
        "How natural the findings are findings 0.742 all findings, as the search left them (10 "
        "draws of 412 rows, spread 0.004) representative 0.889 a draw",
        "real rows that flip 0.931 the table's own, for comparison (412 rows)",
    ):
        assert words in told
    assert "from 0 to 1, and higher is more alike" in flat(shown)
    assert "too few" not in shown
    few = text.render(FEW)
    assert "representative" not in few
    assert "The findings were too few to be judged as a set." in few
    assert "How natural" not in text.render(SEX)


def test_the_generator_and_the_method_s_own_numbers():
    shown = flat(text.render(PICTURED))
    tested = shown[shown.index("What was tested") :]
    assert "generator trees, ready after 37.4 s" in tested
    assert "boundary AUC train 0.9812" in tested
    assert "generator none" in flat(text.render(SEX))


def test_settings_notes_and_scores_are_shown():
    shown = flat(text.render(MANY))
    assert "themis (confidence 0.99, margin none, min_samples 10, bound exact)" in shown
    assert all(note in shown.replace(" - ", " ") for note in MANY.notes)
    assert "causal discrimination 0.6783" in shown
    assert "only age 14.5 % 13.0 to 16.1 n = 2,000 if age alone changed" in shown
    assert "17, 18, 19, 20, 21, 22, 23, 24 and 66 more" in shown


def test_a_side_names_only_what_changed():
    unmoved = dataclasses.replace(MANY.examples[0].fields[8], partner="White")
    fields = tuple(unmoved if f.name == "race" else f for f in MANY.examples[0].fields)
    example = dataclasses.replace(MANY.examples[0], fields=fields)
    shown = flat(text.render(dataclasses.replace(MANY, examples=(example,))))
    assert "as sex Male and age 58 but" in shown
    assert "as sex Female and age 22." in shown
    finding = shown[shown.index("Severe and natural findings") : shown.index("What was tested")]
    assert finding.count("race White") == 1


@pytest.mark.parametrize("name", SUMMARIES)
@pytest.mark.parametrize("width", [80, 100])
def test_no_line_is_wider_than_the_terminal_but_the_command(name, width):
    summary = SUMMARIES[name]
    commands = {f"  {summary.command}", f"  {next_step(summary).command}"}
    lines = text.render(summary, width).splitlines()
    assert max(len(line) for line in lines if line not in commands) <= width


@pytest.mark.parametrize("name", sorted(set(SUMMARIES) - {"attacked"}))
def test_plain_text_is_ascii_where_the_values_are(name):
    assert text.render(SUMMARIES[name]).isascii()


def test_no_finding():
    shown = flat(text.render(NOTHING))
    assert shown.startswith(
        "0 % of real rows would be decided differently if only sex changed "
        "(95 % interval 0 to 0.04, n = 10,000)"
    )
    assert "Finding nothing is not a certificate of fairness" in shown
    assert "Nobody is decided differently under the two, so nobody is called favored." in shown
    assert "Severe and natural findings" not in shown


def test_a_rate_of_zero_does_not_hide_findings():
    summary = dataclasses.replace(SEX, rates={"real": rate_of(0, 100)})
    assert "the search still found 3,911 that flip" in flat(text.render(summary))


def test_no_rate():
    assert flat(text.render(UNMEASURED)).startswith(
        "3,911 rows were found that would be decided differently if only sex changed "
        "(32,561 rows checked, no rate measured)"
    )
    assert "No rate was measured." in text.render(UNMEASURED)
    assert flat(text.render(UNMEASURED_NOTHING)).startswith("0 rows were found that")


def test_a_rate_that_is_no_number_is_not_the_answer():
    shown = flat(text.render(NOT_A_NUMBER))
    assert shown.startswith("28.7 % of uniform rows")
    assert "not measured n = 0 the rows of your table" in shown
    assert "nan" not in shown.lower()


def test_values_are_shown_as_they_are_and_never_steer_the_terminal():
    shown = text.render(ATTACKED, width=200)
    assert all(value in shown for value in HOSTILE)
    assert "[red]x[/red]" in shown
    assert r"b\x1b[31mreak\u202e" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_colour_marks_what_changed_and_the_words_stay_the_same():
    def printed(**options):
        out = io.StringIO()
        text.print_summary(SEX, Console(file=out, width=80, **options))
        return out.getvalue()

    coloured = printed(force_terminal=True, color_system="truecolor", legacy_windows=False)
    assert "\x1b[1;30;43msex Female" in coloured
    plain = printed(color_system=None)
    assert "\x1b" not in plain
    assert [line.rstrip() for line in plain.splitlines()] == text.render(SEX).splitlines()


def test_a_console_that_knows_ascii_only_gets_no_other_sign():
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    text.print_summary(SEX, Console(file=out, width=80))
    assert b"sex Male is favored over sex Female" in raw.getvalue()


def test_unknown_time_is_said_to_be_unknown():
    assert "unknown" in text.render(dataclasses.replace(SEX, seconds=math.nan))

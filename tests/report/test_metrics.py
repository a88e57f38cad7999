"""Metrics in words: every line with its figures, its direction and how to read it."""

import dataclasses
import io

from rich.console import Console

from limi.report import _pages, html, metrics, text
from tests.report.fixtures import HOSTILE, MANY, SEX
from tests.report.measured import tree


def lines(**given):
    return {line.name: line for s in metrics.sections(tree(**given)) for line in s.lines}


def test_every_line_has_a_value_and_an_aid():
    for line in lines().values():
        assert line.value
        assert line.aid
        assert line.reads


def test_figures_and_abbreviations_of_the_paper():
    shown = lines()
    by_short = {line.short: line for line in shown.values() if line.short}
    assert {"IF_o", "IF_r", "SPD", "AOD", "ATN", "EGS"} <= set(by_short)
    assert by_short["SPD"].figures == ("0.178", "0.164 to 0.192")
    assert by_short["IF_o"].figures == ("2.7 %", "2.4 to 3.0 %")
    assert shown["generalized entropy error"].value == "0.0002"
    assert shown["people affected, by real rows"].figures == ("2,710", "2,401 to 3,047")


def test_whoever_is_favored_has_a_line_for_each_table():
    tables = [dataclasses.asdict(table) for table in (*SEX.what_if, *MANY.what_if)]
    (section,) = metrics.sections({"what_if": tables})
    sex, _, race, age, together = section.lines
    assert sex.name == "favored by sex, real rows"
    assert sex.figures == (
        "sex Male over sex Female: 1.2 points, 0.5 to 1.9",
        "corrected p = 0.004",
    )
    assert "24.1 % as sex Male, 22.9 % as sex Female; 1 of 1 pairs" in sex.aid
    assert race.figures == ("nobody", "no difference is larger than chance explains")
    assert age.value.startswith("age 90 over age 17: 32.9 points")
    assert "41.9 % as age 90, 9.0 % as age 17" in age.aid
    assert together.name == "favored by sex, race and age together, real rows"


def test_what_is_undefined_gives_its_reason_and_no_number():
    shown = lines()
    assert shown["average odds gap"].figures == (
        "none",
        "sex Female has no row whose true label is favorable",
    )
    assert shown["flip rate of natural rows"].figures == ("none", "no row was checked")


def test_real_rows_come_first_and_the_privileged_group_is_named():
    sections = metrics.sections(tree())
    assert sections[0].lines[0].short == "IF_o"
    groups = [s for s in sections if s.title.startswith("Groups")]
    assert [s.title for s in groups] == ["Groups by sex"]  # one value alone compares with nothing
    assert groups[0].aid.startswith(
        "Privileged: sex Male, because it has the highest selection rate; "
    )
    assert "10,000 rows" in groups[0].aid


def test_no_metrics_no_section():
    assert metrics.sections({}) == []
    assert 'id="metrics"' not in html.render(SEX)
    assert "More metrics" not in text.render(SEX)


def test_both_reports_show_them():
    measured = dataclasses.replace(SEX, metrics=tree())
    page, plain = html.render(measured), " ".join(text.render(measured).split())
    for line in lines().values():
        assert _pages.environment().from_string("{{ x }}").render(x=line.aid) in page
        if line.main:
            assert line.name in plain
    assert "Privileged: sex Male" in page
    assert "Privileged: sex Male" in plain
    assert all(len(line) <= 80 for line in text.render(measured).splitlines() if "limi" not in line)


def test_the_command_prints_all_lines():
    out = io.StringIO()
    text.print_metrics(tree(), Console(file=out, width=80, color_system=None))
    shown = " ".join(out.getvalue().split())
    assert all(line.name in shown for line in lines().values())


def test_values_that_mean_harm_stay_text():
    for value in HOSTILE:
        measured = dataclasses.replace(SEX, metrics=tree(value, value, f"\x1b[31m{value}"))
        page = html.render(measured)
        if "<" in value:
            assert value not in page.partition("</style>")[2]
        assert "\x1b" not in page
        assert "\x1b" not in text.render(measured)

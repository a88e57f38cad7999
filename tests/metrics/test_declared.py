"""A metric is one function that names itself; all else follows from that."""

import json
from dataclasses import replace

import numpy as np
import pytest

from limi import metrics
from limi.errors import InvalidInput
from limi.metrics import Figure, Rate, rate_of
from limi.metrics._base import SEVERITY, Evidence, entry_of, metric
from limi.report import metrics as shown
from tests.packages import Package
from tools import metric_tables

OWN = metrics.declared()


def declare(measure, **more):
    given = {"formula": "a / b", "range": "0 to 1", "better": "lower"}
    return metric(SEVERITY, **(given | more))(measure)


def firm(evidence):
    """Share of pairs whose decisions are firm."""
    return 0.25


# -- what limi itself declares ----------------------------------------------------------------


def test_every_metric_says_what_it_is_and_how_it_reads():
    for one in OWN:
        assert 15 < len(one.line) < 200, one.name
        assert one.line.endswith("."), one.name
        assert one.formula
        assert one.name.replace("_", "").isalnum()
        assert one.better in ("lower", "higher", "zero", "neither")
        assert one.name not in ("labels", "population", "privileged", "chosen", "counts")


def test_the_list_has_every_metric_by_its_family():
    listed = metrics.names()
    assert list(listed) == [f"{one.family.name}.{one.name}" for one in OWN]
    assert listed["group.parity_gap"].startswith("By how much the two groups' shares")
    assert list(dict.fromkeys(name.partition(".")[0] for name in listed)) == [
        *("individual", "group", "naturalness", "severity", "effectiveness")
    ]


def test_the_tables_of_the_page_are_what_the_metrics_declare():
    text = metric_tables.PAGE.read_text(encoding="utf-8")
    assert metric_tables.current(text) == text
    for one in OWN:
        assert f"| `{one.name}` |" in text


# -- what a function may give -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("measured", "entry"),
    [
        (0.1234567, {"value": 0.123457}),
        (3, {"value": 3}),
        (np.float64(0.5), {"value": 0.5}),
        (np.int64(7), {"value": 7}),
        (float("nan"), {"value": None, "reason": "it is nan"}),
        (Figure(0.5, 0.25, 0.75, n=9), {"value": 0.5, "low": 0.25, "high": 0.75, "n": 9}),
        (Figure(None, reason="nobody knows"), {"value": None, "reason": "nobody knows"}),
        (Figure(1.0, beside={"largest": 2.0}), {"value": 1.0, "largest": 2.0}),
        (Rate(float("nan"), 0.0, 1.0, 0), {"value": None, "n": 0, "reason": "no row was checked"}),
        ({"F": 0.5, "M": Figure(1.0, n=2)}, {"F": 0.5, "M": {"value": 1.0, "n": 2}}),
    ],
)
def test_a_measurement_becomes_plain_data(measured, entry):
    assert entry_of(measured) == entry
    assert json.loads(json.dumps(entry_of(measured))) == entry


@pytest.mark.parametrize("measured", [[1.0], np.ones(3), "many", object(), {"F": [1]}])
def test_what_is_not_a_number_is_refused(measured):
    with pytest.raises(InvalidInput, match=r"not a number|return a number"):
        entry_of(measured)


def test_a_rate_keeps_its_interval():
    rate = rate_of(5, 10)
    entry = entry_of(rate)
    assert (entry["value"], entry["n"]) == (0.5, 10)
    assert entry["low"] == pytest.approx(rate.low, rel=1e-5)


# -- what a declaration must say --------------------------------------------------------------


def test_a_function_names_itself():
    one = declare(firm)
    assert (one.name, one.title) == ("firm", "firm")
    assert one.words == "share of pairs whose decisions are firm"
    assert one.reads == "0 to 1, lower is better"
    assert one(None) == 0.25
    assert declare(firm, better="zero").reads == "0 to 1, 0 is best"
    assert declare(firm, better="neither").reads == "0 to 1"


@pytest.mark.parametrize(
    ("measure", "more", "says"),
    [
        (lambda evidence: 1.0, {}, "has no docstring"),
        (firm, {"better": "bigger"}, "better is 'bigger'; did you mean 'higher'"),
        (firm, {"unit": "percents"}, "unit is 'percents'; did you mean 'percent'"),
    ],
)
def test_a_declaration_that_lacks_something_is_refused_at_once(measure, more, says):
    with pytest.raises(InvalidInput) as caught:
        declare(measure, **more)
    assert says in str(caught.value)


# -- streams ----------------------------------------------------------------------------------


def evidence():
    return Evidence(*[None] * 10, seed=3)


def test_each_metric_has_a_stream_of_its_own_and_keeps_it():
    one, other = evidence(), evidence()
    drawn = one.rng("mine").random(4)
    other.rng("yours").random(9)
    assert np.array_equal(other.rng("mine").random(4), drawn)
    assert not np.array_equal(one.rng("mine").random(4), drawn)
    assert not np.array_equal(replace(one, seed=4, _streams={}).rng("mine").random(4), drawn)


# -- lines ------------------------------------------------------------------------------------


def lines(one, entry, monkeypatch):
    monkeypatch.setattr(shown, "declared", lambda: (one,))
    (section,) = shown.sections({"severity": {one.name: entry}})
    return [(line.name, line.aid, line.figures, line.main) for line in section.lines]


@pytest.mark.parametrize(
    ("entry", "unit", "figures"),
    [
        ({"value": 0.1234}, "number", ("0.123", "")),
        ({"value": 0.0001}, "number", ("0.0001", "")),
        ({"value": 0.5, "low": 0.25, "high": 0.75}, "number", ("0.500", "0.250 to 0.750")),
        ({"value": 0.5, "n": 4}, "percent", ("50.0 %", "")),
        ({"value": 0.5, "low": 0.4, "high": 0.6, "n": 90}, "percent", ("50.0 %", "40.0 to 60.0 %")),
        ({"value": 0.5, "low": 0.4, "high": 0.6}, "percent", ("50.0 %", "40.0 to 60.0 %")),
        ({"value": 12345}, "count", ("12,345", "")),
        ({"value": 1234.56}, "rate", ("1,234.6", "")),
        ({"value": None, "reason": "nobody knows"}, "percent", ("none", "nobody knows")),
    ],
)
def test_a_number_is_written_in_its_unit(entry, unit, figures, monkeypatch):
    ((_, _, written, main),) = lines(declare(firm, unit=unit), entry, monkeypatch)
    assert written == figures
    assert main


def test_words_may_name_what_stands_in_the_entry(monkeypatch):
    def named(evidence):
        """Mean over {n} pairs."""

    one = declare(named, beside="largest {largest}")
    entry = {"value": 0.5, "n": 12345, "largest": 0.75}
    ((_, aid, figures, _),) = lines(one, entry, monkeypatch)
    assert aid == "mean over 12,345 pairs"
    assert figures == ("0.500", "largest 0.750")
    ((_, _, figures, _),) = lines(one, {"value": 0.5, "n": 1}, monkeypatch)
    assert figures == ("0.500", "")


def test_the_list_leaves_out_the_clause_that_needs_a_run():
    def sure(evidence):
        """How sure the gap is, protected columns left aside; by {draws} draws."""

    def counted(evidence):
        """Mean over {n} pairs."""

    assert declare(sure).line == "How sure the gap is, protected columns left aside."
    assert declare(counted).line == "Mean over n pairs."
    assert not any("{" in line for line in metrics.names().values())


def test_several_figures_have_a_line_each(monkeypatch):
    found = lines(declare(firm), {"F": {"value": 0.5}, "M": 0.25}, monkeypatch)
    assert [(name, figures[0]) for name, _, figures, _ in found] == [
        ("firm, F", "0.500"),
        ("firm, M", "0.250"),
    ]


# -- a file of one's own ------------------------------------------------------------------------

OWN_FILE = """
    \"\"\"Metrics in a file that somebody adds.\"\"\"
    from limi.metrics import GROUP, SEVERITY, metric, rate_of
    from limi.metrics.severity import margin


    @metric(
        SEVERITY,
        formula="pairs with a margin of 0.1 or more / findings",
        range="0 to 100 %",
        better="lower",
        unit="percent",
    )
    def firm_flips(evidence):
        \"\"\"Share of findings in which both decisions are [bold]firm[/bold].\"\"\"
        found = evidence.found
        if not len(found):
            return None
        return rate_of(int((margin(found.score, found.partner_score) >= 0.1).sum()), len(found))


    @metric(
        GROUP,
        formula="P(favorable given others) / P(favorable given privileged)",
        range="from 0",
        better="neither",
    )
    def disparate_impact(groups):
        \"\"\"The others' share of favorable decisions beside the privileged group's.\"\"\"
        mine, others = groups.privileged, groups.others
        if not mine.favorable or not others.rows:
            return None
        return (others.favorable / others.rows) / (mine.favorable / mine.rows)
"""
TABLE = "age,sex,ok\n" + "".join(
    f"{20 + i % 50},{'FM'[i % 2]},{'yes' if (i * 7) % 10 > 4 else 'no'}\n" for i in range(120)
)
MODEL = """
def approve(frame):
    return 0.2 + 0.6 * ((frame["age"] + 12 * (frame["sex"] == "M")) > 50)
"""


IN_THE_FOLDER = """
import io, json, sys
import pandas as pd
from rich.console import Console

import limi
import limi.metrics
limi.metrics.__path__.append(sys.argv[1])  # a folder that is a part of limi's own

from limi.metrics import names
from limi.report import html, text
from model import approve

result = limi.audit(
    approve, pd.read_csv("people.csv"), target="ok", favorable="yes", protected="sex",
    max_rows=300, rate_rows=200,
)
shown = io.StringIO()
text.print_summary(result.summary, Console(file=shown, width=100))
print(json.dumps({
    "listed": "severity.firm_flips" in names(),
    "measured": result.metrics()["severity"]["firm_flips"]["value"],
    "text": "firm flips" in shown.getvalue(),
    "page": "firm flips" in html.render(result.summary),
}))
"""


def test_a_file_in_the_folder_is_enough(tmp_path):
    (tmp_path / "people.csv").write_text(TABLE)
    (tmp_path / "model.py").write_text(MODEL)
    Package(tmp_path / "folder", {"own": OWN_FILE}, {})
    package = Package(tmp_path / "site", {}, {})
    done = package.run("-c", IN_THE_FOLDER, str(tmp_path / "folder"), cwd=tmp_path)
    told = json.loads(done.stdout or "{}")
    assert told.pop("measured", None) is not None, done.stderr
    assert told == {"listed": True, "text": True, "page": True}

"""Audits of a table with rules: both rates, findings with all that changed, and folders."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import limi
from limi.audits.problem import prepare
from limi.audits.summary import LeftOut, Summary
from limi.errors import BadTable, InvalidInput
from limi.report import html, text, wording
from limi.table.rows import uniform
from limi.table.schema_files import dump, parse
from limi.table.sheets import plain_frame
from tests.search.test_rules import ruled
from tests.table.ruled import COLUMNS

SCHEMA = ruled(["sex=Female,Male"])
NAMES = [column.name for column in COLUMNS]


def frame_of(n=400, seed=0):
    rows = SCHEMA.enforcer.complete(uniform(SCHEMA, 12 * n, np.random.default_rng(seed)))
    rows = rows[~SCHEMA.enforcer.breaks(rows)][:n]
    return plain_frame(SCHEMA, rows)


def decide(frame):
    """Husbands fare worse than wives, and men a little better than women."""
    margin = frame["age"] / 20.0 - 2.0
    margin += 1.5 * (frame["tie"] == "Wife") - 1.3 * (frame["tie"] == "Husband")
    margin += 0.27 * (frame["sex"] == "Male") + 0.11
    return 1 / (1 + np.exp(-margin.to_numpy(dtype=float)))


def audited(**more):
    settings = {"protected": ["sex=Female,Male"], "schema": SCHEMA, "max_rows": 400, **more}
    settings.setdefault("generator", None)
    return limi.audit(decide, frame_of(), **settings, favorable=1, output="score", seed=1)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    out = tmp_path_factory.mktemp("ruled") / "run"
    return audited(method="real", out=out, rate_rows=300), out


def test_both_rates_stand_side_by_side_and_may_point_in_two_ways(real):
    result, _ = real
    along, alone = result.what_if(), result.what_if(only_protected=True)
    assert along.favored[0].favored == "Female"
    assert alone.favored[0].favored == "Male"
    assert result.rates["real"].estimate != result.rates_only_protected["real"].estimate
    assert result.summary.rules.along == ["tie", "title"]


def test_findings_carry_every_column_that_changed(real):
    found = real[0].findings
    swapped = {"Wife": "Husband", "Husband": "Wife"}
    for _, row in found.iterrows():
        assert row["sex"] != row["sex__partner"]
        tie = row["tie"]
        if not pd.isna(tie):
            assert row["tie__partner"] == swapped.get(tie, tie)
    assert "title__partner" in found
    assert "age__partner" not in found
    assert (found["tie"] != found["tie__partner"]).any()


def test_reports_tell_both_rates_and_why_they_differ(real):
    summary = real[0].summary
    shown = text.render(summary)
    page = html.render(summary)
    for words in (
        "nothing else",
        "If nothing else changed with it",
        "changed with what goes along",
    ):
        assert words in shown.replace("\n  ", " ").replace("\n", " ")
    assert "nothing else" in page
    # The example is the role of most people: of a hundred husbands and ten wives it is a husband.
    counts = pd.concat([frame_of()["tie"], frame_of()["title"]]).value_counts()
    first, becomes = list(summary.rules.roles[0].levels.values())
    assert counts[first] == max(counts[["Wife", "Husband", "Ms", "Mr"]]) >= counts[becomes]
    assert f" {first} as sex " in wording.tell_rules(summary)[0]
    assert f"{becomes} as sex " in wording.tell_rules(summary)[0]
    assert "what the rules change along" in wording.limits(summary)[-1]
    assert dict(wording.rule_facts(summary))["rules"] == "5 constraints, 2 derived columns, 2 roles"
    example = summary.examples[0]
    assert "tie" in {field.name for field in example.fields if field.changed}


def test_where_nothing_goes_along_the_two_questions_have_words_of_their_own(real):
    summary = real[0].summary
    left_out = {"real": LeftOut(90, "the rules of the table allow them no partner")}
    rules = replace(summary.rules, along=[], roles=())
    fewer = replace(summary, rules=rules, left_out=left_out)
    told = wording.answer(fewer)
    assert told.statement.endswith("if only sex changed to what the rules allow")
    assert "% if only sex changed, whatever the rules say" in told.evidence
    shown = text.render(fewer)
    assert "rules aside" in shown
    assert "nothing else changed" not in shown
    assert "Many people have no partner." in shown
    assert "Rules aside" in html.render(fewer)
    harmless = replace(fewer, rules=replace(rules, only_protected={}), left_out={})
    assert wording.answer(harmless).statement.endswith("if only sex changed")
    assert "whatever the rules" not in wording.answer(harmless).evidence


def test_a_summary_with_rules_is_read_back(real):
    summary = real[0].summary
    again = Summary.from_dict(json.loads(json.dumps(summary.as_dict())))
    assert again.rules == summary.rules
    assert text.render(again) == text.render(summary)


def test_a_folder_is_opened_again_with_its_rules(real):
    result, out = real
    again = limi.reopen(out, table=frame_of(), model=decide)
    np.testing.assert_array_equal(again.found.partner, result.found.partner)
    np.testing.assert_array_equal(again.found.rows, result.found.rows)
    assert again.problem.schema.rules == SCHEMA.rules
    assert (out / "schema.toml").read_text() == dump(again.problem.schema)


@pytest.mark.parametrize("method", ["limi", "natural", "themis", "expga", "aequitas", "sg", "vbtx"])
def test_no_method_finds_a_row_or_a_partner_that_breaks_a_rule(method):
    result = audited(
        method=method,
        generator="trees" if method in ("limi", "natural") else None,
        rate_rows=0,
        max_rows=120,
        settings=["n_latents=500", "n_labelled=200"] if method == "limi" else (),
    )
    enforcer = SCHEMA.enforcer
    for rows in (result.found.rows, result.found.partner):
        assert not enforcer.breaks(rows).any()
        assert not enforcer.disagrees(rows).any()
    assert len(result.found)


def test_a_budget_of_queries_keeps_the_rules():
    result = limi.audit(
        decide,
        frame_of(),
        protected=["sex"],
        schema=ruled(["sex"]),
        favorable=1,
        output="score",
        max_queries=600,
        max_rows=None,
    )
    assert result.summary.queries <= 600
    for rows in (result.found.rows, result.found.partner):
        assert not SCHEMA.enforcer.breaks(rows).any()
    assert result.summary.rules.only_protected


def test_a_few_rows_that_do_not_follow_a_derived_column_are_left_out():
    frame = frame_of()
    frame.loc[3, "grade"] = 14
    frame["label"] = (frame["age"] > 40).astype(int)
    result = limi.audit(
        decide,
        frame,
        protected=["sex=Female,Male"],
        target="label",
        favorable=1,
        output="score",
        schema=SCHEMA,
        generator=None,
        method="real",
        max_rows=50,
        rate_rows=50,
    )
    assert result.summary.n_rows == 399
    assert len(result.problem.labels) == 399
    assert any("1 of 400 rows was left out" in note for note in result.summary.notes)
    odd = frame_of(100, seed=9)
    odd.loc[:20, "grade"] = 14
    with pytest.raises(BadTable, match=r"held-out rows do not hold what the rules derive"):
        audited(held_out=odd, method="real", max_rows=10, rate_rows=10)


def decide_blindly(frame):
    """A model that takes no sex, and reads it from the tie."""
    margin = frame["age"] / 20.0 - 1.89
    margin += 1.5 * (frame["tie"] == "Wife") - 1.3 * (frame["tie"] == "Husband")
    return 1 / (1 + np.exp(-margin.to_numpy(dtype=float)))


class Blind(ClassifierMixin, BaseEstimator):
    """The same as an estimator that names its columns."""

    feature_names_in_ = np.array([name for name in NAMES if name != "sex"])
    classes_ = np.array([0, 1])

    def predict_proba(self, frame):
        score = decide_blindly(frame)
        return np.stack([1 - score, score], axis=1)

    def predict(self, frame):
        return (decide_blindly(frame) > 0.5).astype(int)


def test_a_model_that_takes_only_what_goes_along_flips_with_it_and_not_alone():
    problem = prepare(Blind(), frame_of(), protected=["sex=Female,Male"], schema=SCHEMA)
    assert problem.unseen == ("sex",)
    assert not problem.blind
    result = limi.audit(
        Blind(),
        frame_of(),
        protected=["sex=Female,Male"],
        schema=SCHEMA,
        generator=None,
        method="real",
        max_rows=100,
        rate_rows=100,
    )
    assert result.rates["real"].estimate > 0
    assert result.rates_only_protected["real"].estimate == 0
    assert not result.summary.blind


def test_a_role_between_numbers_is_told_as_the_table_writes_them():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"code": rng.choice([1, 2], 300), "fee": rng.choice([20, 30, 40], 300)})
    told = "format = 2\n" + "".join(
        f'[columns.{name}]\nkind = "numerical"\nlow = {low}\nhigh = {high}\nstep = {step}\n'
        for name, low, high, step in (("code", 1, 2, 1), ("fee", 20, 40, 10))
    )
    schema = parse(f"{told}[roles.code]\nfee = [{{1 = 20.0, 2 = 30}}]\n")
    assert 'fee = [{ "1" = 20, "2" = 30 }]' in dump(schema)
    assert parse(dump(schema)).rules == schema.rules
    with pytest.raises(InvalidInput, match="a level twice: 20 under 1"):
        parse(f"{told}[roles.code]\nfee = [{{1 = 20, 2 = 30}}, {{1 = 20.0, 2 = 40}}]\n")
    result = limi.audit(
        lambda asked: (asked["fee"] < 25).to_numpy(dtype=float),
        frame,
        protected=["code=1,2"],
        schema=schema,
        favorable=1,
        output="score",
        method="real",
        generator=None,
        rate_rows=100,
    )
    assert result.summary.rules.roles[0].levels == {"1": "20", "2": "30"}
    words = wording.tell_rules(result.summary)[0]
    assert "(fee 20 as code 1 is 30 as code 2)" in words


@pytest.mark.parametrize(("rate_rows", "asked"), [(300, 300), (0, 400)])
def test_a_rate_names_the_people_whom_the_rules_leave_without_a_partner(rate_rows, asked):
    """Where nothing goes along with sex, a husband or a wife has no partner that could exist."""
    schema = ruled(["sex=Female,Male"], roles=())
    result = audited(schema=schema, method="real", rate_rows=rate_rows, volume=1000)
    rate, left = result.rates["real"], result.summary.left_out["real"]
    assert 0 < left.rows < asked
    assert rate.n + left.rows == asked
    size = f"n = {rate.n} of {asked}"
    told = wording.answer(result.summary)
    assert "with a partner" in told.statement
    assert f"n = {rate.n}; {left.rows} more are left out, because {left.reason}" in told.evidence
    for shown in (repr(result), text.render(result.summary, 200), html.render(result.summary)):
        assert size in shown
    tree = json.loads(json.dumps(result.summary.as_dict()))
    assert tree["left_out"]["real"] == {"rows": left.rows, "reason": left.reason}
    assert Summary.from_dict(tree) == Summary.from_dict(result.summary.as_dict())
    figure = result.metrics(volume=1000)
    assert figure["individual"]["flip_rates"]["real"]["left_out"] == left.rows
    flips = round(rate.estimate * rate.n)
    assert abs(figure["severity"]["affected"]["real"]["value"] - 1000 * flips / asked) <= 1
    assert f"about {round(1000 * flips / asked)} (" in wording.volume(result.summary)


def test_each_of_several_protected_columns_has_both_rates_too():
    schema = ruled(["sex=Female,Male", "age=20,60"])
    result = limi.audit(
        decide,
        frame_of(200),
        protected=["sex=Female,Male", "age=20,60"],
        schema=schema,
        favorable=1,
        output="score",
        method="real",
        generator=None,
        rate_rows=150,
    )
    along, alone = result.rates_by_column, result.rates_by_column_only_protected
    assert along.keys() == alone.keys() == {"sex", "age"}
    assert along["sex"]["real"].estimate > alone["sex"]["real"].estimate
    plain = limi.audit(
        decide,
        frame_of(200),
        protected=["sex=Female,Male", "age=20,60"],
        schema=schema.unruled,
        favorable=1,
        output="score",
        method="real",
        generator=None,
        rate_rows=150,
    )
    assert alone["sex"]["real"] == plain.rates_by_column["sex"]["real"]
    assert plain.rates_by_column_only_protected == plain.rates_by_column
    shown = " ".join(text.render(result.summary).split())
    assert "if sex changed with what goes along with it, and no other" in shown
    assert "if sex alone changed, nothing else" in shown
    assert "if age alone changed, nothing else" in html.render(result.summary)
    again = Summary.from_dict(json.loads(json.dumps(result.summary.as_dict())))
    assert again.rules == result.summary.rules

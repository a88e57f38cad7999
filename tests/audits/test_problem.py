"""What was asked for, and what is said of it: the table, its labels and the protected values."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

import limi
from limi.audits.problem import prepare
from limi.errors import InvalidInput
from limi.metrics.individual import Rate
from limi.report import html, text, wording
from limi.table.files import infer
from limi.table.rule_checks import add_constraints


def people(n=200):
    ages = np.array([20, 25, 30, 40, 50])
    return pd.DataFrame(
        {
            "age": ages[np.arange(n) % 5],
            "sex": np.where(np.arange(n) % 2, "Male", "Female"),
            "debt": (np.arange(n) % 7) / 7.3,
            "ok": np.arange(n) % 2,
        }
    )


def score(frame):
    return frame["age"] / 100


def prepared(frame=None, model=score, **given):
    frame = people() if frame is None else frame
    return prepare(model, frame, **{"protected": ["sex"], "target": "ok", "favorable": 1} | given)


def test_a_value_in_other_capitals_is_the_one_suggested():
    with pytest.raises(InvalidInput, match="did you mean 'Male'"):
        prepared(protected=["sex=male,female"])


@pytest.mark.parametrize("protected", ["race", "race=White,Black", "sx"])
def test_a_protected_column_that_the_table_lacks_may_be_in_another_file(protected):
    with pytest.raises(
        InvalidInput, match="if another file has it, give that file with --protected-"
    ):
        prepared(protected=[protected])


def test_values_that_nobody_has_are_noted():
    (note,) = prepared(protected=["age=20-50:5"]).notes
    assert note.startswith(
        "nobody in the table has 2 of the 7 values of 'age' that were tried (35, 45); "
    )
    assert prepared(protected=["age=20,25,50"]).notes == ()
    assert prepared(protected=["sex"]).notes == ()


def couples():
    return people(600).assign(
        tie=lambda frame: np.where(
            frame["debt"] > 0.5, np.where(frame["sex"] == "Male", "Husband", "Wife"), "Child"
        )
    )


def test_partners_that_hold_what_nobody_does_are_noted_where_no_rule_speaks_of_them():
    (note,) = prepared(couples()).notes
    assert note.startswith("43 % of partners have a combination that the table never or hardly")
    assert "`limi schema TABLE --mine --protected sex --target ok` suggests a rule" in note
    (note,) = prepared(couples(), table_name="couples.csv").notes
    assert "`limi schema couples.csv --mine " in note
    rule = 'tie == "Husband" implies sex == "Male"'
    ruled = prepared(couples(), constraints=[rule])
    assert ruled.notes == ()
    assert ruled.schema.rules.constraints == ((rule, rule),)


def test_rules_about_the_target_are_told():
    frame = people(600).assign(paid=lambda frame: (frame["debt"] < 0.5).astype(int))
    schema = add_constraints(infer(frame), {"debts": "paid == 1 implies debt < 0.5"})
    problem = prepared(frame, schema=schema, target="paid", favorable=1)
    assert "paid" not in problem.schema.names
    note = problem.notes[0]
    assert note.startswith("constraint 'debts' has no effect, because it mentions")
    with pytest.raises(
        InvalidInput, match="mentions 'paid', the target column, which the model deci"
    ):
        prepared(frame, target="paid", favorable=1, constraints=["paid == 1 implies debt < 0.5"])
    with pytest.raises(InvalidInput, match="constraint 'paid =': "):
        prepared(frame, target="paid", favorable=1, constraints=["paid ="])
    with pytest.raises(InvalidInput, match="'paid' is the target column"):
        prepared(frame, schema=schema.protect(["paid"]), protected=[], target="paid", favorable=1)


def test_a_rule_about_columns_that_the_model_does_not_take_is_told():
    frame = people(600)
    model = LogisticRegression().fit(frame[["age", "debt"]], frame["ok"])
    rules = {"small": "debt < 9", "sexes": 'sex in ["Female", "Male"]'}
    problem = prepared(frame, model, protected=["age=20,50"], constraints=rules)
    assert problem.notes == (
        "constraint 'sexes' has no effect, because it mentions columns that the model does not "
        "take (sex)",
    )


def test_a_rule_that_the_table_does_not_keep_is_refused():
    with pytest.raises(InvalidInput, match="did you mean the reverse"):
        prepared(couples(), constraints={"men": 'sex == "Male" implies tie == "Husband"'})


def test_of_real_numbers_it_counts_whether_somebody_comes_near():
    # The column runs from 0 to 0.82 in steps of 0.137, so that nobody has 0.4 itself.
    assert prepared(protected=["debt=0-0.8:0.2"]).notes == ()
    gap = people().assign(debt=lambda frame: frame["debt"].where(frame["debt"] < 0.3, 0.82))
    (note,) = prepared(gap, protected=["debt=0-0.8:0.2"]).notes
    assert "nobody in the table comes near 2 of the 5 values of 'debt' that were tried" in note
    assert "(0.4, 0.6)" in note
    unsorted = prepared(gap, protected=["debt=0.8,0.4,0,0.2,0.6"]).notes
    assert "(0.4, 0.6)" in unsorted[0]


# -- what the answers are ----------------------------------------------------------------


def harsh(frame):
    """1 stands for a refusal, and the young man is refused."""
    return ((frame["sex"] == "Male") & (frame["age"] < 35)).astype(float)


def audit(model, **given):
    given = {"protected": ["sex"], "target": "ok", "method": "real", "generator": None} | given
    return limi.audit(model, people(), **given)


def test_float_labels_are_not_silently_taken_for_scores():
    with pytest.raises(InvalidInput, match="they may be labels or scores") as caught:
        audit(harsh, favorable=0)
    assert "output='label'" in str(caught.value)
    said = audit(harsh, favorable=0, output="label")
    (pair,) = said.what_if().favored
    assert (pair.favored, pair.disfavored) == ("Female", "Male")
    (other,) = audit(harsh, favorable=0, output="score").what_if().favored
    assert (other.favored, other.disfavored) == ("Male", "Female")
    assert audit(lambda frame: harsh(frame).astype(int), favorable=0).what_if().favored == (pair,)


def test_floats_need_no_word_where_it_comes_to_the_same():
    asked = []

    def model(frame):
        asked.append(len(frame))
        return harsh(frame)

    prepared(model=model, favorable=1)
    assert asked == []  # nothing to settle, so nothing was asked
    assert audit(harsh, favorable=1).what_if().favored[0].favored == "Male"


@pytest.mark.parametrize("convert", [lambda f: f, pl.from_pandas, pa.Table.from_pandas])
def test_answers_of_their_own_are_noted(convert):
    spelled = people().assign(ok=lambda frame: np.where(frame["ok"], "yes", "no"))
    asked = []

    def model(frame):
        asked.append(len(frame))
        return np.asarray(frame["age"]) > 30

    coded = prepared(convert(spelled), model, favorable="no")
    assert any("True was read as 'no'" in note for note in coded.target.notes)
    assert asked == [64]  # a look is enough


def test_scores_where_nought_is_favorable_are_noted():
    scores = prepared(people(), score, favorable=0)
    assert any("read as scores of 0" in note for note in scores.target.notes)


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (harsh, {"output": "labels"}, "output is 'labels'; .* label or score"),
        (
            LogisticRegression().fit(people()[["age", "debt"]], people()["ok"]),
            {"output": "label", "protected": ["age"]},
            "this model is a SklearnModel, whose answers are known",
        ),
    ],
)
def test_output_that_says_nothing_is_refused(model, given, words):
    with pytest.raises(InvalidInput, match=words):
        prepared(model=model, **given)


def test_a_default_favorable_label_is_named_with_how_to_change_it():
    result = audit(harsh)
    words = "no favorable label was named, so 1 of 'ok' was taken as the one people want"
    assert result.summary.notes[0].startswith(words)
    assert "--favorable LABEL" in result.summary.notes[0]
    assert words in " ".join(text.render(result.summary).split())
    assert words.replace("'", "&#39;") in html.render(result.summary)
    assert not any("no favorable" in note for note in audit(harsh, favorable=1).summary.notes)
    nameless = audit(harsh, target=None).summary.notes[0]
    assert nameless.startswith("no favorable label was named, so 1 was taken")


# -- rates that are not there ------------------------------------------------------------


def test_a_population_that_was_not_measured_says_why():
    result = audit(harsh, rate_rows=0, method="themis", max_rows=100, favorable=1)
    assert set(result.rates) == {"uniform"}
    real = result.rates["real"]
    assert np.isnan(real.estimate)
    assert (real.low, real.high, real.n) == (0, 1, 0)
    assert real.reason == "no rows were asked for (rate-rows is 0)"
    assert result.rates["natural"].reason == "no generator was given"
    with pytest.raises(InvalidInput, match="no population 'rael'; did you mean 'real'"):
        result.rates["rael"]
    assert result.summary.unmeasured == {
        "real": "no rows were asked for (rate-rows is 0)",
        "natural": "no generator was given",
    }
    shown = " ".join(text.render(result.summary).split())
    words = "Not measured: natural rows, because no generator was given."
    assert words in shown
    assert words in html.render(result.summary)


def test_a_budget_that_is_too_small_for_rates_is_the_reason():
    given = {"protected": ["debt=0-0.8:0.2"], "noisy": True}
    result = audit(harsh, favorable=1, method="themis", max_queries=40, **given)
    assert result.rates["real"].reason == (
        "the budget of queries or seconds was too small for a rate"
    )


def test_a_few_rows_make_no_headline():
    two = people()[4:8:3]
    given = {"protected": ["sex=Female,Male"], "target": None, "favorable": 1}
    few = limi.audit(harsh, two, **given, method="real", generator=None, schema=infer_all())
    assert few.rates["real"].n == 2
    answer = wording.answer(few.summary)
    assert "real" not in answer.statement
    assert answer.figure.endswith("%")  # of the uniform rows, which were measured on many
    assert "real 1 of 2 rows" in repr(few)
    only = replace(few.summary, rates={"real": few.rates["real"]})
    told = wording.answer(only)
    assert (told.figure, told.evidence) == ("1", "2 rows checked, no rate of 30 rows or more")
    enough = replace(only, rates={"real": Rate(0.5, 0.3, 0.7, 30)})
    assert wording.answer(enough).figure == "50.0 %"


def infer_all():
    return infer(people(), exclude=("ok",))


def test_labels_that_became_floats_can_be_named_as_written():
    table = people().assign(ok=lambda frame: frame["ok"] + 1.0)
    table.loc[0, "ok"] = np.nan
    assert str(prepared(table, favorable="2").favorable) == "2.0"


def test_a_boolean_of_one_value_cannot_be_protected():
    with pytest.raises(InvalidInput, match="only one value"):
        prepared(people().assign(vip=True), protected=["vip"])


def test_a_label_of_numpy_is_a_label():
    frame = pd.DataFrame({"sex": ["f", "m"] * 20, "x": range(40), "y": [0, 1] * 20})
    given = {"protected": "sex", "target": "y"}

    def score(asked):
        return asked["x"].to_numpy() / 40

    plain = prepare(score, frame, favorable=1, **given)
    for label in (np.int64(1), [np.int64(1)], np.array([1]), np.float64(1.0)):
        made = prepare(score, frame, favorable=label, **given)
        assert (made.favorable, made.wanted) == (plain.favorable, plain.wanted)
    with pytest.raises(InvalidInput, match="give a label of the target column"):
        prepare(score, frame, favorable=object(), **given)

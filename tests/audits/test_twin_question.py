"""Models that never see the protected column: what `audit` asks, refuses and writes."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import limi
from lab.mechanism import draw_known
from limi.audits import twin_question
from limi.audits.compare import compare
from limi.audits.reopen import reopen
from limi.audits.run_folder import read_summary
from limi.errors import BadModel, BadTable, InvalidInput
from limi.report import html, text
from limi.table.files import infer
from limi.twins import Effort

SMALL = Effort(people=300, again=0, kept=150, carried=30, drawn=20)


@pytest.fixture(autouse=True, scope="module")
def quick():
    """Fewer people: what is asked of how many is tested elsewhere."""
    usual = Effort.within
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Effort, "within", lambda self, n, directions: usual(SMALL, n, directions))
        yield


@pytest.fixture(scope="module")
def frame():
    known = draw_known(1200, np.random.default_rng(0))
    names = known.schema.names
    table = pd.DataFrame(known.rows, columns=names)
    for column in known.schema.columns:
        if column.levels:
            table[column.name] = np.array(column.levels)[table[column.name].astype(int)]
    whole = ["age", "schooling", "hours"]
    table = table.astype(dict.fromkeys(whole, int))
    table["loan"] = np.where(known.score(known.rows) > 0.5, "yes", "no")
    table["id"] = [f"p{number}" for number in range(len(table))]
    return table


class Lender:
    """Takes what it names, and never sex."""

    classes_ = np.array(["no", "yes"])
    feature_names_in_ = np.array(["age", "schooling", "household", "hours", "savings"])

    def predict_proba(self, asked):
        assert list(asked.columns) == list(self.feature_names_in_)
        rows = np.zeros((len(asked), 7))
        for place, name in ((1, "age"), (2, "schooling"), (4, "hours"), (5, "savings")):
            rows[:, place] = asked[name]
        rows[:, 3] = 2 * (asked["household"] == "family")
        from lab.mechanism import Known

        score = Known.score(rows)
        return np.stack([1 - score, score], axis=1)

    def predict(self, asked):
        return self.classes_[(self.predict_proba(asked)[:, 1] > 0.5).astype(int)]


GIVEN = {"protected": ["sex"], "target": "loan", "favorable": "yes", "rate_rows": 300}


@pytest.fixture(scope="module")
def result(frame):
    return limi.audit(Lender(), frame.drop(columns="id"), keep="hours", **GIVEN)


def test_a_model_that_does_not_take_sex_is_asked_about_twins_unbidden(result):
    assert result.rates["real"].estimate == 0
    assert "does not take sex" in result.rates["uniform"].reason
    assert not len(result.findings)
    there = result.twins.directions[0]
    assert (there.group, there.goal) == ("sex Female", "sex Male")
    assert there.gains.estimate > 0.05
    assert result.twins.unseen == ("sex",)
    assert [kept.columns for kept in there.kept if kept.why == "asked"] == [("hours",)]
    (note,) = [note for note in result.summary.notes if "does not take sex" in note]
    assert note.endswith(
        "; twins show what it does with everything that goes along with sex in the table"
    )


def test_a_column_among_others_that_is_not_taken_is_told_with_the_way_to_ask(frame):
    table = frame.drop(columns="id")
    given = GIVEN | {"protected": ["sex", "household"], "method": "real", "generator": None}
    notes = limi.audit(Lender(), table, **given).summary.notes
    assert any("; --twin shows what it does with everything that goes along" in n for n in notes)
    notes = limi.audit(Lender(), table, twin=True, **given).summary.notes
    assert any("; twins show what it does with everything" in note for note in notes)
    assert not any("--twin" in note for note in notes)


def test_metrics_of_groups_are_there_all_the_same(result):
    shown = text.render(result.summary)
    assert "statistical parity gap" in shown


@pytest.mark.parametrize("draw", [text.render, html.render, html.snippet])
def test_the_report_says_goes_with_and_never_what_it_must_not(result, draw):
    shown = draw(result.summary)
    words = " ".join(shown.split()).lower()
    for never in ("counterfactual", "because of"):
        assert never not in words
    if draw is not html.snippet:
        for said in (
            "goes along with sex",
            "carried by",
            "statistical counterparts",
            "shuffled sex",
        ):
            assert said in words
        assert "as their twins with sex male" in words


def test_a_run_with_twins_is_the_same_when_it_is_read_again(frame, tmp_path):
    out = tmp_path / "run"
    table = frame.drop(columns="id")
    first = limi.audit(Lender(), table, keep=["hours"], out=out, **GIVEN)
    assert read_summary(out).twins == first.twins
    again = reopen(out, table=table, model=Lender())
    assert again.twins == first.twins
    assert html.render(again.summary) == (out / "report.html").read_text(encoding="utf-8")
    tree = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert tree["twins"]["directions"][0]["gains"]["n"] > 0


def test_a_model_that_sees_sex_is_searched_and_asked_about_twins(frame):
    def lender(asked):
        return Lender().predict_proba(asked[list(Lender.feature_names_in_)])[:, 1] * np.where(
            asked["sex"] == "Male", 1.0, 0.9
        )

    table = frame.drop(columns="id")
    result = limi.audit(lender, table, twin=True, generator=None, method="real", **GIVEN)
    assert result.rates["real"].estimate > 0
    assert result.twins.unseen == ()
    there = result.twins.directions[0]
    assert any(carrier.columns == ("sex",) for carrier in there.carriers)
    shown = text.render(result.summary)
    assert "If sex alone changed" in shown
    assert "Who is favored" in shown


def test_batches_and_budgets(frame):
    table = frame.drop(columns="id")
    usual = limi.audit(Lender(), table, **GIVEN).twins
    assert limi.audit(Lender(), table, max_batch=53, **GIVEN).twins == usual
    few = limi.audit(Lender(), table, max_queries=2000, **GIVEN)
    assert few.summary.queries <= 2000
    assert few.twins.directions[0].n < usual.directions[0].n


def test_a_budget_that_is_too_small_is_told_with_one_that_would_do(frame):
    table = frame.drop(columns="id")
    told = limi.audit(Lender(), table, max_queries=500, **GIVEN).twins
    assert not told.directions
    assert "they take at least 600, for which --max-queries 1,200 is enough" in told.reason
    assert not limi.audit(Lender(), table, max_queries=1200, **GIVEN).twins.reason
    told = limi.audit(Lender(), table, max_queries=2000, **GIVEN).twins
    assert "up to 104,400; --max-queries 150,000 is enough" in told.notes[-1]
    told = limi.audit(Lender(), table, max_queries=150_000, **GIVEN).twins
    assert not any("--max-queries" in note for note in told.notes)


@pytest.mark.parametrize("kind", [lambda t: t, pa.Table.from_pandas])
def test_protected_columns_may_come_from_another_table(frame, kind, tmp_path):
    apart = kind(frame[["id", "sex"]].sample(frac=1, random_state=0))
    table = frame.drop(columns="sex")
    joined = limi.audit(Lender(), table, protected_from=apart, key="id", **GIVEN)
    whole = limi.audit(Lender(), frame.drop(columns="id"), **GIVEN)
    assert joined.twins.directions == whole.twins.directions

    def plain(asked):
        assert "sex" not in asked.columns
        assert "id" not in asked.columns
        return Lender().predict_proba(asked[list(Lender.feature_names_in_)])[:, 1]

    by_function = limi.audit(plain, table, protected_from=apart, key="id", **GIVEN)
    assert by_function.twins.unseen == ("sex",)


def test_a_run_whose_protected_columns_came_from_a_file_is_opened_again(
    frame, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    frame[["id", "sex"]].to_csv("people.csv", index=False)
    table = frame.drop(columns="sex")
    table.to_csv("table.csv", index=False)
    first = limi.audit(
        Lender(),
        table,
        protected_from=pd.read_csv("people.csv"),
        protected_from_name="people.csv",
        key="id",
        table_name="table.csv",
        out="run",
        **GIVEN,
    )
    assert reopen("run", model=Lender()).twins == first.twins
    (tmp_path / "people.csv").unlink()
    with pytest.raises(InvalidInput, match=r"people\.csv.*is not there"):
        reopen("run", model=Lender())
    assert reopen("run", model=Lender(), protected_from=frame[["id", "sex"]]).twins == first.twins


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"keep": ["sex"]}, InvalidInput, "'sex' is protected and cannot be kept"),
        ({"keep": ["hour"]}, InvalidInput, "'hours'"),
        ({"twin_generator": "ctgan"}, InvalidInput, "'ctgan' cannot make twins"),
        ({"twin_generator": "tree"}, InvalidInput, "'trees'"),
        ({"key": "id"}, InvalidInput, "go together"),
        ({"protected": ["district=north,south", "sex"]}, None, ""),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(frame, change, error, words):
    given = GIVEN | change
    if error is None:
        told = limi.audit(Lender(), frame.drop(columns="id"), **given).twins
        assert len(told.groups) == 4
        return
    with pytest.raises(error) as caught:
        limi.audit(Lender(), frame.drop(columns="id"), **given)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_columns_are_kept_for_twins_alone(frame):
    with pytest.raises(InvalidInput, match="add twin"):
        limi.audit(lambda asked: np.full(len(asked), 0.2), frame, keep=["hours"], **GIVEN)


def test_groups_under_forty_people_are_refused(frame):
    few = pd.concat([frame[frame.sex == "Male"], frame[frame.sex == "Female"][:20]])
    with pytest.raises(InvalidInput, match="at least 40 people"):
        limi.audit(Lender(), few.drop(columns="id"), **GIVEN)


@pytest.mark.parametrize(
    ("apart", "error", "words"),
    [
        (lambda f: f[["sex"]], InvalidInput, "has no key column 'id'"),
        (lambda f: f[["id", "age"]], InvalidInput, "has a column 'sex'"),
        (
            lambda f: f[["id", "sex"]][:-5],
            BadTable,
            "5 of 1,200 people in the table are missing from",
        ),
        (lambda f: pd.concat([f[["id", "sex"]]] * 2), BadTable, "several rows with the same 'id'"),
    ],
)
def test_a_table_of_protected_columns_that_does_not_fit(frame, apart, error, words):
    with pytest.raises(error) as caught:
        limi.audit(
            Lender(), frame.drop(columns="sex"), protected_from=apart(frame), key="id", **GIVEN
        )
    assert words in str(caught.value)


def test_a_column_may_have_a_comma_in_its_name():
    schema = infer(pd.DataFrame({"a,b": [1, 2], "c": [1, 2]}))
    assert twin_question.take_keep("a,b", schema) == ("a,b",)
    assert twin_question.take_keep(["c,d"], schema) == ("c", "d")


def test_no_methods_are_compared_on_a_model_that_cannot_flip(frame):
    given = {name: GIVEN[name] for name in ("protected", "target", "favorable")}
    with pytest.raises(BadModel, match="does not take sex, so no method can find a flip"):
        compare(Lender(), frame.drop(columns="id"), ["themis", "real"], **given)


def test_a_plan_counts_the_questions_of_twins(frame):
    plans = []
    limi.audit(Lender(), frame.drop(columns="id"), on_plan=plans.append, **GIVEN)
    assert plans[0].questions["twins"] > 1000
    assert "search" not in plans[0].questions

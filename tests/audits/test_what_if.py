"""Who is favored: the same people under every value, and nobody accused whom chance explains."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import limi
from limi.audits.summary import Summary
from limi.errors import InvalidInput
from limi.report import favored, html, text
from tests.naive import what_if as naive
from tests.report.fixtures import MANY, SEX, people

N = 6_000


def hashed(frame, values):
    """A coin for each person and value, 10 % favorable: no value is better than another."""
    mixed = np.zeros(len(frame), dtype=np.uint64)
    for column in ("a", "b", "c"):
        mixed = (mixed + frame[column].to_numpy().astype(np.uint64)) * np.uint64(1_000_003)
    place = np.array([values.index(value) for value in frame["group"]], dtype=np.uint64)
    mixed = (mixed + place + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return np.where(mixed % np.uint64(1000) < 100, 0.9, 0.1)


def coin(frame):
    return hashed(frame, list("ABCDE"))


def crowd(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "group": rng.choice(list("ABCDE"), n, p=[0.04, 0.04, 0.04, 0.03, 0.85]),
            "a": rng.integers(0, 1000, n),
            "b": rng.integers(0, 1000, n),
            "c": rng.integers(0, 50, n),
        }
    )


def everything(result):
    """All that a run says, as one text."""
    page = html.render(result.summary) + html.snippet(result.summary)
    return " ".join((text.render(result.summary) + page).split())


@pytest.mark.parametrize("method", ["real", "natural", "limi"])
def test_a_model_that_treats_values_alike_accuses_nobody(method):
    """Five values with a coin each; most people hold one of them."""
    result = limi.audit(coin, crowd(), protected=["group"], method=method, max_rows=3_000, seed=1)
    assert result.summary.findings > 500
    tree = result.summary.as_dict()
    for table in tree["what_if"]:
        assert table["n_supported"] == 0
        assert not any(pair["supported"] for pair in table["pairs"])
        assert min(pair["corrected"] for pair in table["pairs"]) > 0.05
    said = everything(result)
    assert "is favored over" not in said
    assert "; favors " not in said
    assert "None of the 10 pairs of values differ by more than chance explains" in said
    assert not any(key in tree for key in ("directions", "losers"))
    assert "losers" not in tree["metrics"]["severity"]
    # Of the findings there are counts, and a word on what they are not.
    assert set(tree["favorable_findings"]) == set("ABCDE")
    assert "the counts do not say whom the model favors" in said


def lender(frame):
    """Men get more; the old get more; and women from abroad are refused."""
    score = 0.1 * frame["income"] + 0.9 * (frame["sex"] == "M") + 0.03 * frame["age"] - 3.0137
    score = score - 5.0 * ((frame["sex"] == "F") & (frame["origin"] == "abroad"))
    return 1 / (1 + np.exp(-score.to_numpy()))


def applicants(n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], n, p=[0.3, 0.7]),
            "origin": rng.choice(["here", "abroad"], n, p=[0.9, 0.1]),
            "age": rng.integers(18, 80, n),
            "income": rng.integers(0, 40, n),
        }
    )


COLUMNS = ["sex", "origin", "age=20-70:10"]


@pytest.fixture(scope="module")
def biased():
    return limi.audit(lender, applicants(), protected=COLUMNS, max_rows=1_500, seed=0)


def decisions(frame, **changed):
    return lender(frame.assign(**changed)) > 0.5


def test_the_direction_is_right_for_each_column(biased):
    assert [pair.favored for pair in biased.what_if("sex").favored] == ["M"]
    assert [pair.favored for pair in biased.what_if("origin").favored] == ["here"]
    ages = biased.what_if("age")
    assert ages.curve
    assert (ages.favored[0].favored, ages.favored[0].disfavored) == ("70", "20")
    assert all(float(pair.favored) > float(pair.disfavored) for pair in ages.favored)
    together = biased.what_if()
    assert together.columns == ("sex", "origin", "age")
    assert together.favored[0].disfavored == "sex F, origin abroad, age 20"
    said = everything(biased)
    for words in (
        "sex M is favored over sex F (corrected p under 0.001).",
        "origin here is favored over origin abroad (corrected p under 0.001).",
        "age 70 is favored over age 20: ",
        "sex, origin and age together",
    ):
        assert words in said


def test_rates_of_a_column_are_those_of_that_column_alone(biased):
    """Person by person on the table: all other columns keep the person's own values."""
    frame = applicants()
    own = lender(frame) > 0.5
    values = {"sex": ["F", "M"], "origin": ["here", "abroad"], "age": list(range(20, 71, 10))}
    assert list(biased.rates_by_column) == list(values)
    for column, tried in values.items():
        decided = np.stack([decisions(frame, **{column: value}) for value in tried], axis=1)
        flips = (decided != own[:, None]).any(axis=1)
        rate = biased.rates_by_column[column]["real"]
        assert (rate.n, round(rate.estimate * rate.n)) == (len(frame), flips.sum())
        table = biased.what_if(column, "real")
        told = {v.value: round(v.rate.estimate * table.n) for v in table.values}
        assert told == {str(v): int(hits) for v, hits in zip(tried, decided.sum(0), strict=True)}
        for pair in table.pairs:
            first, second = (
                list(map(str, tried)).index(v) for v in (pair.favored, pair.disfavored)
            )
            counts = naive.discordant(decided.tolist(), first, second)
            assert (pair.only_favored, pair.only_disfavored) == counts
    tree = biased.metrics()["individual"]["flip_rates_by_column"]
    assert set(tree) == set(values)
    assert set(tree["sex"]) == {"real", "natural", "uniform"}


def test_people_who_flip_only_if_both_change_are_in_no_single_rate():
    """Only women from abroad are approved: a man from here must change both."""

    def model(frame):
        return ((frame["sex"] == "F") & (frame["origin"] == "abroad")).astype(float)

    frame = applicants()
    result = limi.audit(
        model, frame, protected=["sex", "origin"], method="real", generator=None, output="score"
    )
    assert result.rates["real"].estimate == 1.0
    alone = {column: rates["real"].estimate for column, rates in result.rates_by_column.items()}
    assert alone["sex"] == pytest.approx((frame["origin"] == "abroad").mean())
    assert alone["origin"] == pytest.approx((frame["sex"] == "F").mean())
    said = everything(result)
    assert "100 % of real rows would be decided differently if sex, origin or both changed" in said
    assert "if only sex or origin changed" not in said
    assert f"only sex {100 * alone['sex']:.1f} %" in said


def test_with_two_values_it_is_the_sign_test_on_the_rows_of_the_rate_that_flip():
    frame = applicants()
    result = limi.audit(lender, frame, protected=["sex"], method="themis", max_rows=200)
    (pair,) = result.what_if().pairs
    real = result.rates["real"]
    assert pair.only_favored + pair.only_disfavored == round(real.estimate * real.n)
    as_man, as_woman = decisions(frame, sex="M"), decisions(frame, sex="F")
    up, down = int((as_man & ~as_woman).sum()), int((as_woman & ~as_man).sum())
    assert (pair.only_favored, pair.only_disfavored) == (up, down)
    assert pair.p_value == pytest.approx(float(naive.mcnemar(up, down)))


def test_findings_name_the_columns_that_flip_people_between_the_ages_tried(biased):
    found = biased.findings
    own = lender(found) > 0.5
    values = {"sex": ["F", "M"], "origin": ["here", "abroad"], "age": list(range(20, 71, 10))}
    assert (~found["age"].isin(values["age"])).mean() > 0.7
    for column, tried in values.items():
        flips = np.any([decisions(found, **{column: v}) != own for v in tried], axis=0)
        named = found["flipped_by"].str.split(", ").map(lambda sets, c=column: c in sets)
        np.testing.assert_array_equal(named, flips)
    both = np.any(
        [decisions(found, sex=s, origin=o) != own for s in ("F", "M") for o in ("here", "abroad")],
        axis=0,
    )
    told = found["flipped_by"].str.split(r", |\+")
    singles = told.map(lambda names: "sex" in names or "origin" in names)
    assert (singles[both]).all()


def test_a_summary_comes_back_from_json_with_its_tables(biased):
    tree = json.loads(json.dumps(biased.summary.as_dict()))
    again = Summary.from_dict(tree)
    assert again.what_if == biased.summary.what_if
    assert again.rates_by_column == biased.summary.rates_by_column
    assert again.where == biased.summary.where
    assert html.render(again) == html.render(biased.summary)


def test_what_was_not_measured_says_why():
    frame = applicants()
    none = limi.audit(lender, frame, protected=["sex"], max_rows=200, rate_rows=0)
    with pytest.raises(InvalidInput, match="no rate of real or natural rows") as caught:
        none.what_if()
    assert "\n" not in str(caught.value)
    given = {"method": "real", "generator": None, "rate_rows": 0}
    searched = limi.audit(lender, frame, protected=["sex"], **given)
    assert "real" in searched.rates
    with pytest.raises(InvalidInput, match="the search itself has measured the rate"):
        searched.what_if()
    some = limi.audit(lender, frame, protected=["sex"], max_rows=200, generator=None, method="real")
    with pytest.raises(InvalidInput, match="the natural people were not compared"):
        some.what_if(population="natural")
    with pytest.raises(
        InvalidInput, match="'sax' is not a protected column of the run; did you mean"
    ):
        some.what_if("sax")


def test_a_model_that_ranks_within_a_batch_is_not_compared_under_values():
    def ranks(frame):
        score = frame["income"] + 8 * (frame["sex"] == "M")
        return (score.rank(pct=True) > 0.5).astype(float).to_numpy() * 0.8 + 0.1

    result = limi.audit(
        ranks, applicants(), protected=["sex"], max_rows=300, generator=None, method="real"
    )
    assert result.summary.what_if == ()
    assert "depend on the other rows in a batch" in favored.lacking(result.summary)


def test_few_queries_leave_the_other_values_of_findings_unasked():
    result = limi.audit(coin, crowd(2_000), protected=["group"], max_queries=4_000, seed=0)
    assert result.summary.findings
    assert result.summary.favorable_findings == {}
    assert "the counts do not say" not in everything(result)
    assert any("was not asked" in note for note in result.summary.notes)


@pytest.mark.parametrize("method", ["real", "natural"])
def test_people_are_compared_on_rows_that_no_search_has_chosen(method):
    """Also where the search itself goes through them, and keeps of them only what flips."""
    frame = applicants()
    for budget in ({"max_rows": 100}, {"max_rows": 30_000}, {"max_queries": 9_000}):
        result = limi.audit(
            lender, frame, protected=["age=20-70:10"], method=method, seed=0, **budget
        )
        table = result.what_if(population=method)
        assert table.favored[0].favored == "70"
        assert 50 < table.n <= 10_000
        assert result.metrics()["group"]["age"]["counts"]
        if "max_queries" in budget:
            assert result.summary.queries <= 9_000
        else:
            assert table.n == (len(frame) if method == "real" else 10_000)


def test_too_few_people_make_no_sentence():
    few = people(("sex",), {"F": 2, "M": 25}, 29)
    table = favored.tell(few, SEX)
    assert table.sentence.endswith("too few to tell who is favored.")
    assert table.verdicts == ()


def test_a_long_curve_is_thinned_to_a_dozen_lines_with_both_ends():
    values = MANY.what_if[2].values
    shown = favored.space_out(values)
    assert len(shown) == 12
    assert (shown[0], shown[-1]) == (values[0], values[-1])
    assert favored.space_out(values[:5]) == list(values[:5])


def test_counts_of_findings_are_in_the_singular_too():
    one = dataclasses.replace(SEX, findings=1, favorable_findings={"Female": 0, "Male": 1})
    assert favored.among_findings(one).startswith("Of the 1 finding, decided >50K: 0 as sex Female")

"""The metrics of whole runs: what they are taken from, and what can be asked of them later."""

import json

import numpy as np
import pandas as pd
import pytest

import limi
from limi.audits.problem import prepare
from limi.errors import InvalidInput
from limi.metrics import collect, group


def people(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "sex": rng.choice(["F", "M", "X"], n, p=[0.45, 0.54, 0.01]),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.normal(3, 1, n).round(1)),
        }
    )
    merit = frame.age / 40 + (frame.sex == "M") * 0.7 + frame.income.fillna(3) / 3
    frame["ok"] = np.where(merit + rng.normal(0, 0.5, n) > 2.6, "yes", "no")
    return frame


FRAME = people()


def approve(frame):
    merit = frame["age"] / 40 + (frame["sex"] == "M") * 0.7 + frame["income"].fillna(3) / 3
    return (1 / (1 + np.exp(2.6 - merit))).to_numpy()


def audit(**more):
    given = {"protected": ["sex"], "target": "ok", "favorable": "yes", "max_rows": 4_000}
    return limi.audit(approve, more.pop("frame", FRAME), **(given | more))


@pytest.fixture(scope="module")
def result():
    return audit()


def test_the_tree_is_plain_and_complete(result):
    tree = result.metrics()
    assert json.loads(json.dumps(tree, allow_nan=False)) == tree
    families = ["individual", "group", "naturalness", "severity", "effectiveness", "what_if"]
    assert list(tree) == families
    for name, rate in result.rates.items():
        told = tree["individual"]["flip_rates"][name]
        assert told["value"] == pytest.approx(rate.estimate, rel=1e-5)
        assert told["anytime"]["low"] <= told["low"] <= told["high"] <= told["anytime"]["high"]
    assert set(tree["individual"]) == {
        *("flip_rates", "causal_discrimination", "group_discrimination"),
        *("consistency", "generalized_entropy_error"),
    }
    assert set(tree["naturalness"]) == {
        *("average_tabular_naturalness", "p_values"),
        *("detection", "likeness_to_people_who_flip", "nearest_neighbour_distance"),
    }
    assert tree["naturalness"]["p_values"]["by"] == "neighbour distance"
    sizes = {e["n"] for e in tree["naturalness"]["average_tabular_naturalness"].values()}
    assert len(sizes) == 1  # ATN falls with the number of rows, so all sets have the same
    assert tree["effectiveness"]["findings"]["value"] == result.summary.findings


def test_groups_are_those_of_the_decided_rows_and_say_who_is_privileged(result):
    told = result.metrics()["group"]["sex"]
    assert told["privileged"] == "M"
    assert "at least 30 rows" in told["chosen"]
    decisions, labels = approve(FRAME) > 0.5, (FRAME.ok == "yes").to_numpy().astype(np.int8)
    men = (FRAME.sex == "M").to_numpy()
    for name in ("parity_gap", "statistical_parity_difference"):
        assert told[name]["value"] == pytest.approx(getattr(group, name)(decisions, men), rel=1e-5)
    for name in ("average_odds_error", "equal_opportunity_difference", "average_odds_difference"):
        expected = getattr(group, name)(decisions, labels, men)
        assert told[name]["value"] == pytest.approx(expected, rel=1e-5)
        assert told[name]["low"] < told[name]["value"] < told[name]["high"]


def test_another_privileged_group_needs_no_model(result):
    told = result.metrics(privileged="sex=F")["group"]["sex"]
    assert (told["privileged"], told["chosen"]) == ("F", "it was stated")
    decisions = approve(FRAME) > 0.5
    expected = group.statistical_parity_difference(decisions, (FRAME.sex == "F").to_numpy())
    assert told["statistical_parity_difference"]["value"] == pytest.approx(expected, rel=1e-5)
    for same in ({"sex": ["F"]}, {"sex": np.str_("F")}, ["sex= F "]):
        assert result.metrics(privileged=same)["group"]["sex"] == told
    both = result.metrics(privileged=["sex=F,X"])["group"]["sex"]
    assert both["privileged"] == "F, X"
    lowest = result.metrics(privileged="lowest")["group"]["sex"]
    assert lowest["privileged"] == "F"
    assert "lowest code" in lowest["chosen"]
    assert result.metrics()["group"]["sex"]["privileged"] == "M"  # the run's own is untouched


def test_a_number_is_cut_at_its_median_and_can_be_given_as_a_range():
    result = audit(protected=["age=20-70:10"], method="real", generator=None)
    told = result.metrics()["group"]["age"]
    middle = int(FRAME.age.median())
    assert told["privileged"] == f"{middle} or more"
    assert "half of the table" in told["chosen"]
    rates = told["selection_rate"]
    assert rates["privileged"]["n"] == (FRAME.age >= middle).sum()
    assert rates["others"]["n"] == (FRAME.age < middle).sum()
    old = result.metrics(privileged="age=60-79")["group"]["age"]
    assert old["privileged"] == "60 to 79"
    assert old["selection_rate"]["privileged"]["n"] == (FRAME.age >= 60).sum()


def test_a_group_without_a_class_gets_a_reason_and_no_number():
    frame = FRAME.assign(ok=np.where(FRAME.sex == "F", "no", FRAME.ok))
    told = audit(frame=frame, method="real", generator=None).metrics()["group"]["sex"]
    assert told["parity_gap"]["value"] > 0
    swapped = audit(frame=frame[frame.sex != "X"], method="real", generator=None).metrics()
    gap = swapped["group"]["sex"]["average_odds_error"]
    assert gap["value"] is None
    assert gap["reason"] == "sex other than M has no row whose true label is favorable"


def test_without_labels_selection_is_all_there_is():
    told = audit(frame=FRAME.drop(columns="ok"), target=None, favorable=None).metrics()
    assert told["group"]["sex"]["parity_gap"]["value"] > 0
    assert told["group"]["sex"]["average_odds_error"] == {
        "value": None,
        "reason": "the table has no labels",
    }
    assert "generalized_entropy_error" not in told["individual"]


def test_missing_labels_are_no_class():
    frame = FRAME.assign(ok=FRAME.ok.where(FRAME.index % 3 > 0))
    problem = prepare(approve, frame, protected=["sex"], target="ok", favorable="yes")
    assert (problem.labels == np.where(frame.ok.isna(), -1, frame.ok == "yes")).all()
    told = audit(frame=frame, method="real", generator=None).metrics()
    counts = told["group"]["sex"]["counts"]
    assert sum(c["rows"] for c in counts) == len(frame)
    assert sum(c["positives"] + c["negatives"] for c in counts) == frame.ok.notna().sum()


def test_a_volume_becomes_people(result):
    affected = result.metrics(volume=10_000)["severity"]["affected"]
    real = result.rates["real"]
    assert affected["volume"] == 10_000
    assert affected["real"]["value"] == round(10_000 * real.estimate)
    assert affected["real"]["low"] < 10_000 * real.low
    assert affected["real"]["high"] > 10_000 * real.high
    assert set(affected) == {"volume", "real", "natural"}  # uniform rows are not people
    assert "affected" not in result.metrics()["severity"]


def test_whoever_is_favored_is_named_among_the_metrics(result):
    tables = result.metrics()["what_if"]
    assert [table["population"] for table in tables] == ["real", "natural"]
    for table in tables:
        assert {pair["favored"] for pair in table["pairs"] if pair["supported"]} == {"M"}
    assert set(result.metrics()["severity"]) == {"score_gap", "margin"}


def test_findings_carry_severity_and_naturalness_and_can_be_ranked(result):
    found = result.findings
    np.testing.assert_allclose(found["severity"], (found.score - found.partner_score).abs())
    for name in ("naturalness", "partner_naturalness"):
        assert found[name].between(0, 1).all()
    ranked = result.ranked()
    weight = ranked.severity * np.minimum(ranked.naturalness, ranked.partner_naturalness)
    assert (np.diff(weight) <= 1e-12).all()
    pd.testing.assert_frame_equal(result.ranked(5), ranked[:5])
    assert len(result.representative(7)["naturalness"]) == 7


def test_rows_like_the_table_are_natural_and_impossible_ones_are_not():
    natural = audit(method="natural").findings.naturalness
    uniform = audit(method="themis").findings.naturalness
    assert natural.median() > uniform.median()


def test_a_tiny_table_leaves_naturalness_unknown():
    result = audit(frame=FRAME[:30], generator=None, method="themis", max_rows=500)
    assert result.summary.findings
    assert result.findings.naturalness.isna().all()
    assert len(result.ranked(3)) == min(3, result.summary.findings)
    assert "p_values" not in result.metrics()["naturalness"]


def test_no_findings_have_metrics_all_the_same():
    flat = limi.audit(
        lambda frame: (frame["age"] > 40).to_numpy(),
        FRAME,
        protected=["sex"],
        target="ok",
        favorable="yes",
        max_rows=500,
    )
    tree = flat.metrics(volume=100)
    affected = tree["severity"]["affected"]
    assert set(tree["severity"]) == {"affected"}
    assert [table["n_supported"] for table in tree["what_if"]] == [0, 0]
    assert [(affected[name]["value"], affected[name]["low"]) for name in ("real", "natural")] == [
        (0, 0),
        (0, 0),
    ]
    assert tree["effectiveness"]["findings_per_second"]["value"] == 0
    assert tree["group"]["sex"]["parity_gap"]["value"] is not None
    assert len(flat.ranked()) == 0
    assert list(flat.findings)[-3:] == ["severity", "naturalness", "partner_naturalness"]


def test_a_search_of_the_table_is_no_sample_for_groups():
    """They are compared on the rows of the rate, which is measured apart from any search."""
    free = audit(method="real", generator=None)
    assert free.metrics()["group"]["sex"]["selection_rate"]["others"]["n"] > 0
    tight = audit(method="real", generator=None, max_queries=3_000, max_rows=None)
    assert tight.summary.queries <= 3_000
    none = audit(method="real", generator=None, rate_rows=0)
    assert none.metrics()["group"] == {}
    with pytest.raises(InvalidInput, match="no group metrics"):
        none.metrics(privileged="sex=M")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"privileged": "sax=M"}, "did you mean 'sex'"),
        ({"privileged": "sex"}, "write COLUMN=VALUE"),
        ({"privileged": "sex=Z"}, "is not a value of column 'sex'"),
        ({"privileged": {"age": 30}}, "not a protected column"),
        ({"privileged": "sex="}, "no value"),
        ({"volume": 0}, "volume is 0"),
    ],
)
def test_what_cannot_be_asked(result, asked, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        result.metrics(**asked)
    assert "\n" not in str(caught.value)


def test_a_volume_needs_a_rate():
    tree = {"individual": {"flip_rates": {}}, "severity": {}}
    schema = limi.Schema((limi.Column(name="x", kind="boolean", levels=(False, True)),))
    with pytest.raises(InvalidInput, match="no rate of real or natural rows"):
        collect.answer_request(tree, schema, volume=5)

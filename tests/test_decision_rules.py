"""Rules that say what a decision is: as the model decides, or by a threshold of its score."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limi
from limi.audits.compare import compare
from limi.audits.problem import prepare
from limi.decisions import AS_DECIDED, EDGE, Favorable, differ, favors, move_threshold, parse_rule
from limi.errors import BadModel, InvalidInput
from limi.models import gradients
from limi.report import wording
from tests.naive import decisions as naive


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sex": rng.integers(0, 2, n),
            "income": rng.integers(0, 40, n),
            "debt": rng.integers(0, 40, n),
        }
    )
    pull = frame.income - frame.debt + 6 * frame.sex + rng.normal(0, 6, n)
    return frame.assign(loan=(pull > 12).astype(int))


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def fitted(table):
    return LogisticRegression().fit(table[["sex", "income", "debt"]], table.loan)


def find(model, table, **given):
    given = {"method": "real", "generator": None, "rate_rows": 0, **given}
    return limi.audit(model, table, protected="sex", target="loan", **given)


# -- the rule itself --------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [1e-5, 0.01, 0.3, 0.5, 0.87, 0.99, 1 - 1e-5])
def test_moved_scores_flip_where_the_scores_lie_on_both_sides_of_the_threshold(threshold):
    rng = np.random.default_rng(1)
    near = threshold + np.array([0, 0.9, -0.9, 1.1, -1.1, 3, -3]) * EDGE
    scores = np.concatenate([rng.random(60), near, [0, 1]])
    moved = move_threshold(scores, threshold)
    told = differ(moved[:, None], moved[None])
    wanted = [[naive.flips_at_threshold(a, b, threshold) for b in scores] for a in scores]
    assert told.tolist() == wanted
    assert ((moved >= 0) & (moved <= 1)).all()
    order = np.argsort(scores)
    assert (np.diff(moved[order]) >= 0).all()
    on_tensors = move_threshold(torch.from_numpy(scores), threshold)
    assert np.array_equal(on_tensors.numpy(), moved)


def test_a_threshold_of_one_half_changes_no_bit():
    scores = np.random.default_rng(2).random(50)
    assert move_threshold(scores, 0.5) is scores
    assert AS_DECIDED.move(scores) is scores


def test_a_score_that_is_not_a_number_stays_one():
    assert np.isnan(move_threshold(np.array([np.nan]), 0.3)).all()


def test_noise_of_half_the_tolerance_makes_no_flip():
    rng = np.random.default_rng(3)
    scores = np.concatenate([rng.random(200), np.full(200, 0.3)])
    noisy = scores + rng.uniform(-0.5, 0.5, len(scores)) * EDGE
    moved, again = (move_threshold(s, 0.3) for s in (scores, noisy))
    assert not differ(moved, again).any()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (None, Favorable()),
        ("favorable", Favorable()),
        ("score > 0.3", Favorable(0.3)),
        (" score>.3 ", Favorable(0.3)),
    ],
)
def test_a_rule_is_read_as_it_is_written(text, rule):
    assert parse_rule(text) == rule
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("score > 1.5", "the threshold is 1.5; scores lie between 0 and 1"),
        ("score > 0", "the threshold is 0; scores lie between 0 and 1"),
        ("score > nan", "the threshold is nan"),
        ("score > much", "'much' is not a number"),
        ("score < 0.3", "it can be 'favorable' (as the model decides), a threshold"),
        ("", "decision is ''"),
    ],
)
def test_a_rule_that_says_nothing_is_refused_with_what_would_do(text, words):
    with pytest.raises(InvalidInput) as caught:
        parse_rule(text)
    assert words in str(caught.value)


# -- a whole run ------------------------------------------------------------------------


def test_findings_at_a_threshold_are_those_of_a_loop_over_people(table, fitted):
    result = find(fitted, table, decision="score > 0.3")
    names = ["sex", "income", "debt"]
    own = fitted.predict_proba(table[names])[:, 1]
    swapped = table[names].assign(sex=1 - table.sex)
    other = fitted.predict_proba(swapped)[:, 1]
    flips = [naive.flips_at_threshold(a, b, 0.3) for a, b in zip(own, other, strict=True)]
    wanted = {tuple(row) for row in table.loc[flips, ["income", "debt"]].to_numpy()}
    found = {tuple(row) for row in result.found.rows[:, 1:]}
    assert found == wanted
    assert len(found) > 3
    assert result.summary.decision == "score > 0.3"
    assert "a score above 0.3 is favorable" in " ".join(result.summary.notes)


def test_the_same_findings_whatever_the_batch_and_at_one_half_those_without_a_rule(table, fitted):
    usual = find(fitted, table).found
    half = find(fitted, table, decision="score > 0.5", max_batch=7).found
    assert np.array_equal(usual.rows, half.rows)
    assert np.array_equal(usual.score, half.score)


def test_a_finished_run_is_opened_again_with_its_rule(table, fitted, tmp_path):
    result = find(fitted, table, decision="score > 0.3", out=tmp_path / "run")
    again = limi.reopen(tmp_path / "run", table=table, model=fitted)
    assert again.problem.target.rule == Favorable(0.3)
    assert np.array_equal(again.found.rows, result.found.rows)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "(favorable: score &gt; 0.3)" in page


def test_a_threshold_that_parts_no_one_is_pointed_out(table):
    notes = find(lambda frame: 0.01 * frame.income, table, decision="score > 0.9").summary.notes
    assert any("have scores at or below 0.9" in note for note in notes)


def test_labels_know_no_threshold(table):
    notes = find(
        lambda frame: (frame.income > 20).astype(int), table, decision="score > 0.3"
    ).summary.notes
    assert any("scores are all 0 or 1" in note for note in notes)


def test_a_model_without_probabilities_cannot_be_held_to_a_threshold(table):
    model = Perceptron().fit(table[["sex", "income", "debt"]], table.loan)
    with pytest.raises(BadModel, match="no score to compare with a threshold"):
        find(model, table, decision="score > 0.3")


def test_gradients_know_where_a_threshold_lies(table):
    module = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Sigmoid())
    problems = [
        prepare(module, table, protected="sex", target="loan", decision=decision)
        for decision in (None, "score > 0.3")
    ]
    (plain, slope), (moved, same) = (
        gradients.of(problem.target).margins(problem.rows) for problem in problems
    )
    assert np.array_equal(slope, same)
    assert np.allclose(plain - moved, np.log(0.3 / 0.7))
    assert np.array_equal(favors(problems[1].target.score(problems[1].rows)), moved > 0)


def test_methods_are_compared_under_the_rule(table, fitted):
    given = {"protected": "sex", "target": "loan", "generator": None, "max_queries": 2000}
    (line,) = compare(fitted, table, ["real"], decision="score > 0.3", **given)
    assert line.findings == len(find(fitted, table, decision="score > 0.3").found)
    assert line.findings != len(find(fitted, table).found)


# -- thresholds of scikit-learn ---------------------------------------------------------


BASE = LogisticRegression()
MARGIN = {"response_method": "decision_function"}
THRESHOLDS = [
    FixedThresholdClassifier(BASE, threshold=0.3, pos_label="yes"),
    FixedThresholdClassifier(BASE, threshold=0.8, pos_label="no"),
    FixedThresholdClassifier(BASE, threshold=0.7, **MARGIN),
    FixedThresholdClassifier(BASE, threshold=-0.7, pos_label="no", **MARGIN),
    FixedThresholdClassifier(Perceptron(), threshold=2.0),
    FixedThresholdClassifier(BASE),
    FixedThresholdClassifier(BASE, threshold=0.0),
    FixedThresholdClassifier(RandomForestClassifier(10, random_state=0), threshold=0.3),
    make_pipeline(StandardScaler(), FixedThresholdClassifier(BASE, threshold=0.3)),
    TunedThresholdClassifierCV(BASE, cv=3),
    TunedThresholdClassifierCV(BASE, cv=3, **MARGIN),
]


@pytest.mark.parametrize("place", range(len(THRESHOLDS)))
def test_the_threshold_of_a_threshold_classifier_is_read_and_not_asked_for(table, place):
    columns, labels = table[["sex", "income", "debt"]], table.loan.map({0: "no", 1: "yes"})
    model = clone(THRESHOLDS[place]).fit(columns, labels)
    for favorable in ("yes", "no"):
        given = {"protected": "sex", "target": "loan", "favorable": favorable}
        problem = prepare(model, columns.assign(loan=labels), **given)
        assert problem.target.model.reads != "label"
        scores = problem.target.score(problem.rows)
        decided = model.predict(columns) == favorable
        clear = np.abs(scores - 0.5) > EDGE
        assert np.array_equal(favors(scores)[clear], decided[clear])
        assert clear.mean() > 0.8  # a forest of ten trees has shares of exactly 0.3


@pytest.mark.parametrize("favorable", ["yes", "no"])
@pytest.mark.parametrize("place", [0, 1, 9, 10])
def test_findings_have_the_models_own_numbers_beside_the_moved_ones(table, place, favorable):
    columns, labels = table[["sex", "income", "debt"]], table.loan.map({0: "no", 1: "yes"})
    model = clone(THRESHOLDS[place]).fit(columns, labels)
    given = {"protected": ["sex"], "target": "loan", "favorable": favorable, "generator": None}
    frame = columns.assign(loan=labels)
    result = limi.audit(model, frame, method="themis", max_rows=2_000, rate_rows=0, **given)
    own = model.best_threshold_ if hasattr(model, "best_threshold_") else model.threshold
    (note,) = (n for n in result.summary.notes if "its own threshold" in n)
    assert f"{own:.6g}" in note
    found = result.findings
    assert len(found)
    if place == 10:  # a margin is on no scale of its own that is shown
        assert "model_score" not in found
        return
    real = model.predict_proba(found[list(columns)])[:, list(model.classes_).index(favorable)]
    np.testing.assert_allclose(found["model_score"], real, atol=1e-6)
    assert (np.abs(found["score"] - real) > 1e-3).any()
    gaps = np.abs(found["model_score"] - found["partner_model_score"])
    metrics = result.metrics()["severity"]
    assert metrics["score_gap"]["value"] == pytest.approx(gaps.mean(), abs=1e-6)
    assert metrics["score_gap"]["largest"] == pytest.approx(gaps.max(), abs=1e-6)
    threshold = result.summary.threshold
    near = np.abs(found[["model_score", "partner_model_score"]] - threshold).min(axis=1)
    assert metrics["margin"]["value"] == pytest.approx(near.mean(), abs=1e-6)
    texts = [wording.apart(result.summary, example)[1] for example in result.summary.examples]
    shown = {f"{value:.3f}" for value in found["model_score"]}
    assert texts
    assert all(words.partition(" and ")[0] in shown for words in texts)
    by_rule = find(model, table.assign(loan=labels), decision="score > 0.3", favorable="yes")
    assert "model_score" in by_rule.findings


def test_a_threshold_of_the_user_takes_the_place_of_the_models_own(table, fitted):
    strict = FixedThresholdClassifier(LogisticRegression(), threshold=0.9)
    strict.fit(table[["sex", "income", "debt"]], table.loan)
    mine = find(strict, table, decision="score > 0.3").found
    plain = find(fitted, table, decision="score > 0.3").found
    assert np.array_equal(mine.rows, plain.rows)

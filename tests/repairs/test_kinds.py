"""Repairs of models whose answers are classes or numbers."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeRegressor

import limi
from limi.decisions import Bands, Classes, Difference
from limi.errors import InvalidInput
from limi.repairs import _compare, _verify, load_averaged
from limi.repairs._labels import settle
from limi.repairs._terms import Terms
from limi.report import repairs as page

COLUMNS = ["sex", "age", "km"]
GRADES = ["low", "medium", "high"]


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sex": rng.integers(0, 2, n),
            "age": rng.integers(18, 60, n),
            "km": rng.integers(0, 30, n),
        }
    )
    price = 200.0 + 5 * frame.km + 40 * ((frame.sex == 1) & (frame.age < 30)) + frame.age
    price += rng.normal(0, 4, n)
    return frame.assign(
        price=price.round(1), grade=np.array(GRADES)[np.digitize(price, [290, 340])]
    )


@pytest.fixture(scope="module", autouse=True)
def small():
    """Fewer rows, and a quick search."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compare, "_RATE_ROWS", 300)
        patch.setattr(_compare, "_SEARCH_ROWS", 200)
        patch.setattr(_verify, "quick_generators", lambda: ["trees"])
        patch.setattr(_verify, "_METHODS", ("natural",))
        yield


@pytest.fixture(scope="module")
def table():
    return people()


def audited(model, table, target, **given):
    return limi.audit(
        model,
        table[[*COLUMNS, target]],
        protected="sex",
        target=target,
        method="real",
        generator=None,
        rate_rows=100,
        **given,
    )


@pytest.fixture(scope="module")
def numbers(table):
    model = DecisionTreeRegressor(min_samples_leaf=4, random_state=0)
    model.fit(table[COLUMNS], table.price)
    return audited(model, table, "price", decision="difference > 20")


@pytest.fixture(scope="module")
def repaired_numbers(numbers):
    return limi.repair(numbers, seeds=2, max_accuracy_loss=0.1)


@pytest.fixture(scope="module")
def classes(table):
    model = LogisticRegression(max_iter=2000)
    model.fit(table[COLUMNS], table.grade)
    return audited(model, table, "grade", order=GRADES)


@pytest.fixture(scope="module")
def repaired_classes(classes):
    return limi.repair(classes, seeds=1, max_accuracy_loss=0.1)


# -- the terms --------------------------------------------------------------------------


def test_what_an_answer_earns_is_told_one_by_one():
    truth, answers = np.array([0.0, 2.0, 1.0]), np.array([0.3, 1.2, 1.4])
    ordered = Terms(Classes(tuple("abc"), ordered=True))
    assert ordered.credit(answers, truth).tolist() == [1, 0, 1]
    number = Terms(Difference(1.0), scale=4.0)
    wanted = [1 - abs(a - t) / 4 for a, t in zip(answers, truth, strict=True)]
    assert number.credit(answers, truth) == pytest.approx(wanted)
    gained, lost = ordered.compare(np.array([0.3, 1.2, 1.4]), np.array([1.3, 0.2, 1.1]))
    assert (gained.tolist(), lost.tolist()) == ([True, False, False], [False, True, False])
    changed, nobody = Terms(Classes(tuple("abc"))).compare(np.array([0.3, 1.2]), np.array([1.3, 1]))
    assert (changed.tolist(), nobody.tolist()) == ([True, False], [False, False])


def test_findings_get_the_mean_number_or_the_class_of_most_values():
    schema = limi.Schema(
        (
            limi.Column(name="g", kind="numerical", high=2, step=1),
            limi.Column(name="x", kind="numerical", high=9, step=1),
        )
    ).protect({"g": [0, 1, 2]})
    rows = np.array([[0.0, 3.0], [1.0, 4.0]])
    mean = settle(lambda asked: asked[:, 0] * asked[:, 1], schema, rows, Difference(1.0))
    assert mean.tolist() == [3.0, 4.0]
    votes = Classes(tuple("abc"))
    most = settle(lambda asked: np.where(asked[:, 0] < 2, 2.1, 0.4), schema, rows, votes)
    assert most.tolist() == [2.0, 2.0]
    even = settle(lambda asked: asked[:, 0] + 0.1 + 0.1 * (asked[:, 0] == 1), schema, rows, votes)
    assert even.tolist() == [1.0, 1.0]  # all differ, and the second is furthest ahead


# -- numbers ----------------------------------------------------------------------------


def test_a_regressor_is_repaired_in_every_way_that_trains_it(numbers, repaired_numbers):
    told = repaired_numbers
    assert [one.how for one in told.tried] == ["average", "drop", "copies", "findings"]
    assert "needs a fit function" in told.skipped["pairs"]
    before = told.before
    assert before["natural"].value > 0.1
    for how in ("average", "drop"):
        assert told[how].figures["natural"].value == 0
        assert told[how].people.after == 0
    assert told["copies"].figures["natural"].value < before["natural"].value / 4
    assert told.recommended is not None
    assert 3 < before["mean_absolute_error"].value < 10
    assert before["mean_absolute_error"].low < before["mean_absolute_error"].value


def test_the_averaged_regressor_says_the_mean_of_both_values(numbers, table, repaired_numbers):
    averaged = repaired_numbers["average"].made
    estimator = numbers.problem.target.model.estimator
    share = table.sex.mean()
    asked = table[COLUMNS]
    wanted = (1 - share) * estimator.predict(asked.assign(sex=0)) + share * estimator.predict(
        asked.assign(sex=1)
    )
    assert averaged.native(asked) == pytest.approx(wanted)


def test_errors_and_gaps_are_those_of_a_loop(numbers):
    told = limi.repair(numbers, how="average", seeds=1, held_out=0)
    figures = told["average"].figures
    problem = numbers.problem
    made = told["average"].made.target
    rows, truth = problem.rows, problem.truth
    # With all rows trained on, the trial's model differs; so the figures of the kept one are taken.
    errors = np.abs(made.score(rows) - truth)
    terms = Terms.of(problem)
    again = terms.figures(problem.schema, rows, made.score(rows), truth)
    assert again["mean_absolute_error"].value == pytest.approx(errors.mean())
    sex = rows[:, problem.schema.position("sex")]
    gap = abs(errors[sex == 0].mean() - errors[sex == 1].mean())
    assert again["mean_absolute_error_difference"].value == pytest.approx(gap)
    assert terms.scale == pytest.approx(np.abs(truth - np.median(truth)).mean())
    assert set(again) <= set(figures)


def test_the_page_speaks_of_errors_in_the_target_s_unit(repaired_numbers, tmp_path):
    folder = repaired_numbers.save(tmp_path / "out")
    tree = json.loads((folder / "repair.json").read_text())
    assert (tree["run"]["kind"], tree["run"]["decision"]) == ("number", "difference > 20")
    names = [line.name for line in page.lines(tree)]
    assert "mean absolute error" in names
    assert "mean prediction difference" in names
    assert not {"AUC", "favorable decisions", "accuracy", "SPD"} & set(names)
    card, shown = ((folder / name).read_text() for name in ("card.md", "report.html"))
    for text in (card, shown):
        assert "the mean absolute error goes from" in text
        assert "Who gets another price: more and less" in text
        assert "of always predicting the median" in text
        assert "favorable decision" not in text
    assert "decision difference" in card


def test_a_costly_repair_of_numbers_says_so_in_their_unit(table):
    frame = table.assign(price=100.0 * table.sex + table.km + 0.5)  # the price is the sex
    model = LinearRegression().fit(frame[COLUMNS], frame.price)
    told = limi.repair(audited(model, frame, "price", decision="difference > 5"), seeds=1)
    assert told.recommended is None
    assert told["average"].verdict.word == "too costly"
    assert "the mean error on held-out rows rises by" in told["average"].verdict.reason
    assert "is allowed" in told["average"].why


def test_bands_are_repaired_too(numbers, table):
    model = numbers.problem.target.model.estimator
    result = audited(model, table, "price", decision="bands = 250.05, 300.05")
    told = limi.repair(result, how="copies", seeds=1)
    assert isinstance(told.problem.target.rule, Bands)
    assert told["copies"].figures["natural"].value < told.before["natural"].value


def test_an_averaged_regressor_is_shipped_and_tested_again(table, tmp_path):
    skops = pytest.importorskip("skops.io", reason="needs limi[skops]")
    place = tmp_path / "model.skops"
    skops.dump(LinearRegression().fit(table[COLUMNS], table.price), place)
    result = audited(f"skops:{place}", table, "price", decision="difference > 3")
    folder = limi.repair(result, how="average", seeds=1).save(tmp_path / "out")
    averaged = load_averaged(folder / "averaging.json")
    asked = table[COLUMNS]
    assert averaged(asked.assign(sex=0)) == pytest.approx(averaged(asked.assign(sex=1)))
    again = audited(
        f"python:{folder / 'score.py'}:score", table, "price", decision="difference > 3"
    )
    assert not len(again.findings)
    dropped = limi.repair(result, how="drop", seeds=1).save(tmp_path / "drop")
    assert {"model.skops", "score.py"} <= {path.name for path in dropped.iterdir()}


# -- classes ----------------------------------------------------------------------------


def test_a_model_of_several_classes_is_repaired(repaired_classes, table):
    told = repaired_classes
    assert [one.how for one in told.tried] == ["average", "drop", "copies", "findings"]
    assert told["average"].figures["natural"].value == 0
    assert told["copies"].figures["natural"].value < told.before["natural"].value
    assert 0.6 < told.before["accuracy"].value < 1
    averaged = told["average"].made.native
    estimator, share = averaged.model, table.sex.mean()
    asked = table[COLUMNS]
    shares = (1 - share) * estimator.predict_proba(asked.assign(sex=0)) + share * (
        estimator.predict_proba(asked.assign(sex=1))
    )
    assert averaged.predict_proba(asked) == pytest.approx(shares)
    assert set(told["copies"].made.native.classes_) == set(GRADES)


def test_the_page_speaks_of_classes(repaired_classes, tmp_path):
    folder = repaired_classes.save(tmp_path / "out")
    shown = (folder / "report.html").read_text()
    assert "Who gets a better class, and who a worse one" in shown
    assert "demographic parity difference" in shown
    assert "favorable decision" not in shown
    assert (folder / "model.skops").exists()


def test_functions_of_classes_are_averaged_by_vote(table):
    def grade(frame):
        young = (frame.sex == 1) & (frame.age < 30)
        return np.array(GRADES)[np.digitize(200 + 5 * frame.km + 40 * young, [290, 340])]

    result = audited(grade, table, "grade", decision="class")
    told = limi.repair(result, how="all")
    assert [one.how for one in told.tried] == ["average"]
    averaged = told["average"].made
    asked = table[COLUMNS]
    more = "01"[int(table.sex.mean() > 0.5)]
    wanted = grade(asked.assign(sex=int(more)))  # who is more common outvotes the other
    assert np.array(sorted(GRADES))[averaged.native(asked).argmax(axis=1)].tolist() == list(wanted)
    assert told["average"].people.after == 0

    def fit(frame, labels):
        assert set(labels) <= set(GRADES)
        return LogisticRegression(max_iter=50).fit(frame.drop(columns="sex"), labels)

    with pytest.raises(InvalidInput, match="label them by vote"):
        limi.repair(result, how="findings", preset="paper", fit=fit)


def test_what_only_two_labels_have_is_refused_in_one_sentence(numbers, classes, table):
    with pytest.raises(InvalidInput, match="label them by vote or privileged"):
        limi.repair(classes, preset="paper")
    several = audited(classes.problem.target.model.estimator, table, "grade", favorable="high")
    with pytest.raises(InvalidInput, match=r"decision.*class"):
        limi.repair(several)
    two = table.assign(ok=table.km % 2)
    model = LogisticRegression().fit(two[COLUMNS], two.ok)
    scores = audited(model, two, "ok", favorable=1, decision="difference > 0.01")
    with pytest.raises(InvalidInput, match="compared scores of a classifier"):
        limi.repair(scores)

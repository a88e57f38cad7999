"""Models of more than two classes: some labels are favorable, and a flip leads to the others."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import limi
from limi.audits.problem import prepare
from limi.decisions import favors, sides
from limi.errors import BadModel, BadTable, InvalidInput
from limi.gpu import place
from limi.models import gradients
from limi.models._scores import Outputs
from tests.naive import decisions as naive

GRADES = ["A", "B", "C", "D", "E"]
COLUMNS = ["sex", "income", "debt"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "sex": rng.integers(0, 2, n),
            "income": rng.integers(0, 40, n),
            "debt": rng.integers(0, 40, n),
        }
    )
    pull = frame.income - frame.debt + 8 * frame.sex + rng.normal(0, 4, n)
    place = np.digitize(-pull, [-20, -8, 4, 16])
    return frame.assign(grade=np.array(GRADES)[place])


@pytest.fixture(scope="module")
def fitted(table):
    return LogisticRegression(C=1e4, max_iter=3000).fit(table[COLUMNS] / 10, table.grade)


def scaled(fitted):
    """The fitted model as functions of the table as it is."""
    return (
        lambda frame: fitted.predict_proba(frame / 10),
        lambda frame: fitted.predict(frame / 10),
    )


def made(model, table, **given):
    given = {"protected": "sex", "target": "grade", "favorable": ["A", "B"], **given}
    return prepare(model, table, **given)


# -- what scores are --------------------------------------------------------------------


def test_scores_take_the_side_of_the_most_probable_class_for_arrays_and_tensors():
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.ones(5), 200)
    shares[:3, :2] = shares[:3, 2:].max(axis=1)[:, None]  # even
    wanted = [naive.side_of_classes(row, {0, 1}) for row in shares.tolist()]
    assert wanted[:3] == [0, 0, 0]
    for kind in ("probability", None):
        outputs = Outputs((0, 1), kind, 5)
        scores = outputs.read(shares, len(shares))
        assert sides(scores).tolist() == wanted
        tensors = outputs.scores(torch.from_numpy(shares))
        assert np.array_equal(tensors.numpy(), scores)
    logits = Outputs((0, 1), "logits", 5)
    assert np.allclose(logits.read(np.log(shares), len(shares)), scores, rtol=0, atol=1e-12)
    margins = logits.margins(torch.from_numpy(np.log(shares)))
    assert np.array_equal((margins > 1e-5).numpy(), favors(scores))


def test_even_votes_are_decided_as_the_forest_decides_them(table):
    forest = RandomForestClassifier(4, max_depth=3, random_state=0)
    forest.fit(table[COLUMNS], table.grade)
    problem = made(forest, table)
    scores = problem.target.score(problem.rows)
    decided = np.isin(forest.predict(table[COLUMNS]), ["A", "B"])
    assert problem.target.model.reads == "probability"
    assert np.array_equal(favors(scores), decided)


# -- kinds of models --------------------------------------------------------------------


def numbered(table):
    return table[COLUMNS].to_numpy(dtype=float), table.grade.map(GRADES.index).to_numpy()


def ridge(table, fitted):
    model = RidgeClassifier().fit(table[COLUMNS], table.grade)
    return model, model.predict(table[COLUMNS])


def probabilities(table, fitted):
    return scaled(fitted)[0], fitted.predict(table[COLUMNS] / 10)


def labels(table, fitted):
    return scaled(fitted)[1], fitted.predict(table[COLUMNS] / 10)


def numbers_for_labels(table, fitted):
    decided = scaled(fitted)[1]
    return (
        lambda frame: pd.Series(decided(frame)).map(GRADES.index).to_numpy(),
        fitted.predict(table[COLUMNS] / 10),
    )


def network(table, fitted):
    module = torch.nn.Sequential(torch.nn.Linear(3, 5))
    with torch.no_grad():
        module[0].weight[:] = torch.from_numpy(fitted.coef_ / 10)
        module[0].bias[:] = torch.from_numpy(fitted.intercept_)
    return module, fitted.predict(table[COLUMNS] / 10)


def xgboost_booster(table, fitted):
    xgboost = pytest.importorskip("xgboost", reason="needs limi[boosters]")
    data, grade = numbered(table)
    settings = {"objective": "multi:softprob", "num_class": 5, "nthread": 1, "max_depth": 3}
    booster = xgboost.train(settings, xgboost.DMatrix(data, grade), 5)
    return booster, np.array(GRADES)[booster.inplace_predict(data).argmax(axis=1)]


def lightgbm_booster(table, fitted):
    lightgbm = pytest.importorskip("lightgbm", reason="needs limi[boosters]")
    data, grade = numbered(table)
    settings = {"objective": "multiclass", "num_class": 5, "num_threads": 1, "verbose": -1}
    booster = lightgbm.train(settings, lightgbm.Dataset(data, grade), 5)
    return booster, np.array(GRADES)[booster.predict(data).argmax(axis=1)]


KINDS = [
    ridge,
    probabilities,
    labels,
    numbers_for_labels,
    network,
    xgboost_booster,
    lightgbm_booster,
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_decides_by_its_most_probable_class(table, fitted, kind):
    model, decided = kind(table, fitted)
    problem = made(model, table)
    scores = problem.target.score(problem.rows)
    clear = sides(scores) != 0
    assert clear.mean() > 0.95
    assert np.array_equal(favors(scores)[clear], np.isin(decided, ["A", "B"])[clear])
    assert 0.1 < favors(scores).mean() < 0.9


def test_classes_that_are_numbers_are_taken_in_the_order_of_the_labels_and_noted(table, fitted):
    module, _ = network(table, fitted)
    note = " ".join(made(module, table).target.notes)
    assert "0 is 'A', 1 is 'B', 2 is 'C', 3 is 'D', 4 is 'E'" in note


def test_a_network_of_many_classes_has_slopes_and_a_device_path(table, fitted):
    module, _ = network(table, fitted)
    problem = made(module, table)
    margins, slope = gradients.of(problem.target).margins(problem.rows)
    scores = problem.target.score(problem.rows)
    assert np.array_equal(margins > 1e-5, favors(scores))
    assert slope.shape == problem.rows.shape
    raw = module(torch.from_numpy(problem.rows).float())
    assert np.allclose(place._read(raw, problem.target.model.outputs).detach().numpy(), scores)


# -- a whole run ------------------------------------------------------------------------


def find(model, table, **given):
    given = {"method": "real", "generator": None, "rate_rows": 0, "favorable": "A,B", **given}
    return limi.audit(model, table, protected="sex", target="grade", **given)


def test_findings_are_those_of_a_loop_over_people(table, fitted):
    model = scaled(fitted)[0]
    shares = model(table[COLUMNS])
    swapped = model(table[COLUMNS].assign(sex=1 - table.sex))
    flips = [
        naive.side_of_classes(a, {0, 1}) * naive.side_of_classes(b, {0, 1}) < 0
        for a, b in zip(shares.tolist(), swapped.tolist(), strict=True)
    ]
    wanted = {tuple(row) for row in table.loc[flips, ["income", "debt"]].to_numpy()}
    result = find(model, table)
    assert {tuple(row) for row in result.found.rows[:, 1:]} == wanted
    assert len(wanted) > 10
    assert (result.summary.favorable, result.summary.unfavorable) == ("A or B", "C, D or E")


@pytest.mark.parametrize("method", ["limi", "guided", "themis"])
def test_methods_search_among_many_labels_as_among_two(table, fitted, method):
    result = find(scaled(fitted)[0], table, method=method, generator="trees", max_rows=400, seed=1)
    assert len(result.found)


def test_a_run_is_opened_again_with_its_labels(table, fitted, tmp_path):
    model = scaled(fitted)[0]
    result = find(model, table, out=tmp_path / "run")
    again = limi.reopen(tmp_path / "run", table=table, model=model)
    assert again.problem.wanted == ("A", "B")
    assert np.array_equal(again.found.rows, result.found.rows)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "A or B" in page
    with pytest.raises(
        InvalidInput, match="limi trains models with two labels, or with all classes"
    ):
        limi.repair(again)


# -- what does not fit ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("favorable", "words"),
    [
        (None, "say which ones people want, one or several, for example favorable='D,E'"),
        ("A,F", "favorable label 'F' is not in the target column"),
        (GRADES, "all labels of the target column 'grade'"),
    ],
)
def test_labels_that_say_nothing_are_refused(table, fitted, favorable, words):
    with pytest.raises(InvalidInput) as caught:
        find(scaled(fitted)[0], table, favorable=favorable)
    assert words in str(caught.value)


def test_a_label_with_a_comma_is_one_label(table, fitted):
    spelled = table.assign(grade=table.grade.replace({"A": "A, best"}))
    names = dict(zip(GRADES, ["A, best", *GRADES[1:]], strict=True))
    decided = scaled(fitted)[1]
    problem = made(
        lambda frame: pd.Series(decided(frame)).map(names).to_numpy(), spelled, favorable="A, best"
    )
    assert problem.wanted == ("A, best",)


def test_a_class_that_the_table_never_has_is_noted_and_not_favorable(table, fitted):
    fewer = table[table.grade != "E"]
    model = RidgeClassifier().fit(table[COLUMNS], table.grade)
    problem = made(model, fewer)
    assert any("'E', which the target column never holds" in note for note in problem.target.notes)


def test_too_few_outputs_are_refused(table):
    with pytest.raises(BadModel, match="5 labels, so one output for each of them is needed"):
        made(torch.nn.Linear(3, 2), table)
    with pytest.raises(BadModel, match="5, one for each label, probabilities"):
        made(lambda frame: np.full((len(frame), 3), 1 / 3), table)


def test_a_target_of_numbers_is_no_decision_between_labels(table):
    numbers = table.assign(grade=np.arange(len(table)))
    with pytest.raises(BadTable, match="2 to 100 labels"):
        made(lambda frame: frame.income, numbers)


def test_labels_that_are_numbers_are_told_from_scores(table, fitted):
    spelled = table.assign(grade=table.grade.map(GRADES.index).astype(float) + 1)
    decided = scaled(fitted)[1]
    model = lambda frame: pd.Series(decided(frame)).map(GRADES.index).to_numpy() + 1.0  # noqa: E731
    problem = made(model, spelled, favorable=[1, 2])
    expected = np.isin(decided(table[COLUMNS]), ["A", "B"])
    assert np.array_equal(favors(problem.target.score(problem.rows)), expected)

"""Repairs from end to end: figures, verdicts, folders, and what is refused."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import limi
from limi.errors import BadModel, InvalidInput, MissingDependency
from limi.repairs import _compare, _saving, _verify

with_findings = partial(limi.repair, how="findings")


def people(n=600, seed=0, sway=1.0):
    """Labels that follow income, and sex by `sway`."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.integers(0, 20, n),
            "debt": rng.integers(0, 10, n),
            "sex": rng.choice(["F", "M"], n),
        }
    )
    merit = frame["income"] / 2 - frame["debt"] / 2 + sway * (frame["sex"] == "M") - 2.5
    frame["ok"] = np.where(merit + rng.normal(0, 0.7, n) > 0, "yes", "no")
    return frame


def pipeline():
    columns = make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")
    return make_pipeline(columns, LogisticRegression())


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Fewer rows, and no torch."""
    monkeypatch.setattr(_compare, "_RATE_ROWS", 300)
    monkeypatch.setattr(_compare, "_SEARCH_ROWS", 200)
    monkeypatch.setattr(_verify, "quick_generators", lambda: ["trees"])


def audited(model, frame, **more):
    small = {"method": "natural", "max_rows": 800, "rate_rows": 0}
    return limi.audit(
        model, frame, protected=["sex"], **{"target": "ok", "favorable": "yes", **small, **more}
    )


def added_by(made):
    """Rows that were added to the table to train on, and their labels."""
    return made["findings"].made.mix.added


@pytest.fixture(scope="module")
def result():
    frame = people()
    return audited(pipeline().fit(frame.drop(columns="ok"), frame["ok"]), frame, method="limi")


@pytest.fixture(scope="module")
def repaired(result):
    patched = pytest.MonkeyPatch()
    patched.setattr(_compare, "_RATE_ROWS", 300)
    patched.setattr(_compare, "_SEARCH_ROWS", 200)
    patched.setattr(_verify, "quick_generators", lambda: ["trees"])
    made = with_findings(result, max_accuracy_loss=0.2, command="limi repair run")
    patched.undo()
    return made


def test_a_pipeline_is_repaired_where_accuracy_may_pay_for_it(repaired):
    one = repaired["findings"]
    assert one.verdict.word in ("removed", "reduced")
    assert repaired.recommended == "findings"
    for name in ("real", "natural"):
        assert one.figures[name].value < repaired.before[name].value / 2
        assert len(repaired.before[name].seeds) == 3
    assert repr(repaired) == f"<limi.Repairs: findings recommended; findings: {one.verdict.word}>"


def test_the_search_that_judges_is_another_one(repaired):
    words = repaired["findings"].checks[0].words
    assert "guided" in words
    assert str(repaired.run["seed"]) not in words.split()
    assert repaired.run["method"] == "limi"


def test_the_original_stays_as_it_was(result, repaired):
    again = result.problem.target.score(result.found.rows)
    assert np.array_equal(again, result.found.score)
    assert repaired.model is not result.problem.target.model.estimator


def test_accuracy_beyond_the_limit_is_not_repaired():
    # Where sex says much of the label, forgetting it costs accuracy.
    frame = people(sway=6.0)
    biased = audited(pipeline().fit(frame.drop(columns="ok"), frame["ok"]), frame)
    made = with_findings(biased, seeds=2, max_accuracy_loss=0.005)
    assert made.recommended is None
    assert made["findings"].verdict.word == "too costly"
    assert "accuracy on held-out rows falls by" in str(made["findings"].verdict)


def test_the_same_seed_gives_the_same_repair(result):
    one, two = (with_findings(result, seeds=1, recipe="both", seed=4) for _ in range(2))
    for mine, other in zip(added_by(one), added_by(two), strict=True):
        assert np.array_equal(mine, other)
    trees = [made.as_dict() for made in (one, two)]
    for tree in trees:
        tree["tried"][0].pop("seconds")
    assert trees[0] == trees[1]


def test_a_model_that_does_not_learn_is_not_repaired(result):
    stubborn = result.problem.target.model.estimator
    made = with_findings(result, fit=lambda frame, labels: stubborn, seeds=1)
    assert made["findings"].verdict.word == "unchanged"
    assert "flips are not rarer" in str(made["findings"].verdict)


def test_learning_the_findings_by_heart_does_not_generalise():
    frame = people()
    rng = np.random.default_rng(3)
    frame["income"] += rng.integers(0, 1000, len(frame)) / 1000  # so that few people are alike
    frame["debt"] += rng.integers(0, 1000, len(frame)) / 1000
    original = pipeline().fit(frame.drop(columns="ok"), frame["ok"])
    found = audited(original, frame)

    class Parrot:
        """Decides the findings that it was given by heart, and all others as before."""

        def __init__(self, frame, labels):
            self.known = dict(list(zip(self.keys(frame), labels, strict=True))[-60:])

        @staticmethod
        def keys(frame):
            return zip(frame["income"], frame["debt"], strict=True)

        def __call__(self, frame):
            scores = original.predict_proba(frame)[:, 1]
            heard = [self.known.get(key) for key in self.keys(frame)]
            pairs = zip(scores, heard, strict=True)
            return np.array([s if k is None else float(k == "yes") for s, k in pairs])

    made = with_findings(found, fit=Parrot, preset="paper", label="vote", fraction=0.1, seeds=1)
    learned = made.model(found.problem.target.present(added_by(made)[0][-60:]))
    assert set(learned) == {0.0, 1.0}
    assert made["findings"].verdict.word == "unchanged"


def test_fit_receives_the_table_s_frame_and_labels(result):
    seen = []

    def fit(frame, labels):
        seen.append((frame, labels))
        return pipeline().fit(frame, labels)

    with_findings(result, fit=fit, seeds=1, preset="paper", label="vote", fraction=0.1)
    frame, labels = seen[0]
    assert list(frame.columns) == ["income", "debt", "sex"]
    assert frame["income"].dtype == np.int64
    assert set(labels) == {"yes", "no"}
    assert [len(f) for f, _ in seen] == [480, 528, 660]
    # ^ without findings, with findings, and on all rows


def test_labels_by_the_privileged_value_and_by_vote(result):
    for label in ("privileged", "vote"):
        made = with_findings(
            result, label=label, recipe="both", privileged="sex=M", seeds=1, fraction=0.2
        )
        assert made.groups.reason == "as stated"
        assert len(added_by(made)[0]) == 2 * 120
        assert made.settings["label"] == label


def test_a_test_frame_is_what_accuracy_is_measured_on(result):
    fresh = people(200, seed=9)
    made = with_findings(result, test=fresh, seeds=1)
    decided = result.problem.target.model.estimator.predict(fresh.drop(columns="ok"))
    # Trained on the same rows by the same settings, "before" is the original.
    assert made.before["accuracy"].value == (decided == fresh["ok"]).mean()
    assert made.settings["held_out"] is None


def test_seeds_that_agree_still_have_an_interval(result):
    # Without held-out rows a clone is the same for every seed.
    made = with_findings(result, held_out=0, seeds=2, recipe="both", fraction=0.2)
    assert len(set(made.before["real"].seeds)) == 1
    assert made.before["real"].low < made.before["real"].value < made.before["real"].high
    assert made.before["real"].interval == "rows"
    assert made["findings"].loss.on == "training"


def test_rows_with_unknown_labels_are_left_out():
    frame = people(400)
    model = pipeline().fit(frame.drop(columns="ok"), frame["ok"])
    frame.loc[:49, "ok"] = None
    made = with_findings(audited(model, frame), recipe="alone", seeds=1, fraction=0.1, held_out=0)
    assert len(added_by(made)[0]) == 35


# -- the folder ---------------------------------------------------------------------------


def test_the_folder_holds_model_card_figures_and_page(repaired, tmp_path):
    repaired.save(tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [
        *("MLmodel", "added.parquet", "card.md", "model.skops", "repair.json", "report.html")
    ]
    tree = json.loads((tmp_path / "out" / "repair.json").read_text())
    (one,) = tree["tried"]
    assert tree["verdict"] == one["verdict"]
    assert set(tree["before"]) == set(one["figures"])
    assert {"value", "low", "high", "seeds"} <= set(tree["before"]["real"])
    added = pd.read_parquet(tmp_path / "out" / "added.parquet")
    assert list(added.columns) == ["income", "debt", "sex", "ok"]
    assert set(added["ok"]) == {"yes", "no"}
    assert len(added) == one["added"] > 600
    card = (tmp_path / "out" / "card.md").read_text()
    for words in ("## Why", "limits", "findings were drawn", "sha256", "not a certificate"):
        assert words in card
    page = (tmp_path / "out" / "report.html").read_text()
    assert "default-src &#39;none&#39;" in page
    assert page.count("<script") == 1  # that of the page itself, allowed by its hash
    assert "<svg" in page
    assert {moved["group"] for moved in one["moved"]} == {"sex F", "sex M"}


def test_the_saved_model_is_the_repaired_one(repaired, result, tmp_path):
    repaired.save(tmp_path / "out")
    frame = people()
    again = audited(f"skops:{tmp_path / 'out' / 'model.skops'}", frame)
    rows = result.problem.rows
    made = repaired["findings"].made.target
    assert np.array_equal(again.problem.target.score(rows), made.score(rows))


def test_an_existing_folder_is_replaced_only_if_forced(repaired, tmp_path):
    repaired.save(tmp_path / "out")
    with pytest.raises(InvalidInput, match="exists already"):
        repaired.save(tmp_path / "out")
    repaired.save(tmp_path / "out", force=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("x")
    with pytest.raises(InvalidInput, match="holds files that are not part of"):
        repaired.save(tmp_path / "other", force=True)


def test_cells_of_the_page_are_escaped(repaired):
    from limi.report import repairs as page

    tree = repaired.as_dict()
    tree["run"] = {**tree["run"], "model": "<script>alert(1)</script>"}
    assert "<script>alert" not in page.render(tree)


def test_without_skops_it_says_so_before_the_work(result, repaired, monkeypatch, tmp_path):
    monkeypatch.setattr(_saving, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match="skops"):
        _saving.require_saving(result.problem)
    with pytest.raises(MissingDependency, match="no-model"):
        repaired.save(tmp_path / "out")
    repaired.save(tmp_path / "out", model=False)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"added.parquet", "card.md", "repair.json", "report.html"}


# -- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"fraction": 0}, "fraction is 0; it is a share of the training rows, above 0"),
        ({"fraction": 1.5}, "fraction is 1.5"),
        ({"fraction": float("nan")}, "fraction is nan"),
        ({"seeds": 0}, "seeds is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"held_out": 0.9}, "held-out is 0.9"),
        ({"max_accuracy_loss": -1}, "max-accuracy-loss is -1"),
        ({"preset": "bset"}, "did you mean 'best'"),
        ({"recipe": "boht"}, "did you mean 'both'"),
        ({"label": "votes"}, "label is 'votes'"),
        ({"label": "privileged"}, "label 'privileged' needs"),
        ({"fit": 3}, "fit is 3"),
        ({"privileged": "sex=X"}, "not a value of column 'sex'"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(result, given, told):
    with pytest.raises(InvalidInput, match=told.replace("?", "[?]")):
        with_findings(result, **given)


def test_nothing_found_is_nothing_to_repair_with():
    frame = people()
    fair = LogisticRegression().fit(frame[["income", "debt"]], frame["ok"])

    def model(frame):
        return fair.predict_proba(frame[["income", "debt"]])[:, 1]

    with pytest.raises(InvalidInput, match="no findings to train with"):
        with_findings(audited(model, frame), fit=lambda frame, labels: model)


def test_a_run_without_labels_cannot_be_repaired():
    frame = people()
    model = pipeline().fit(frame.drop(columns="ok"), frame["ok"])
    bare = audited(model, frame.drop(columns="ok"), target=None)
    with pytest.raises(InvalidInput, match="no target column"):
        with_findings(bare)


class Stubborn(ClassifierMixin, BaseEstimator):
    """Its constructor changes what it is given, so it cannot be cloned."""

    def __init__(self, names=()):
        self.names = list(names)
        self.classes_ = np.array(["no", "yes"])

    def fit(self, frame, labels):
        return self

    def predict(self, frame):
        merit = frame["income"] + 4 * (frame["sex"] == "M")
        return np.where(merit > 10, "yes", "no")


def test_an_estimator_that_cannot_be_cloned_is_refused_at_once():
    result = audited(Stubborn(("a",)), people())
    with pytest.raises(InvalidInput, match=r"Stubborn cannot be cloned .*fit.*FILE.py:NAME"):
        with_findings(result)


def test_a_function_needs_to_be_told_how_it_is_trained():
    frame = people()
    inner = pipeline().fit(frame.drop(columns="ok"), frame["ok"])

    def model(frame):
        return inner.predict_proba(frame)[:, 1]

    with pytest.raises(InvalidInput, match="cannot retrain model by itself"):
        with_findings(audited(model, frame))


def test_a_fit_that_fails_half_way_changes_nothing(result, tmp_path):
    calls = []

    def fit(frame, labels):
        calls.append(len(frame))
        if len(calls) == 2:
            raise RuntimeError("out of luck")
        return pipeline().fit(frame, labels)

    with pytest.raises(BadModel, match=r"RuntimeError: out of luck.*nothing was written"):
        with_findings(result, fit=fit)
    with pytest.raises(BadModel, match="returned nothing"):
        with_findings(result, fit=lambda frame, labels: None)


def test_progress_reaches_the_end(result):
    steps = []
    with_findings(result, seeds=1, on_step=lambda done, words: steps.append((done, words)))
    done = [share for share, _ in steps]
    assert done == sorted(done)
    assert done[0] == 0
    assert 0.6 <= done[-1] < 1
    assert all(words for _, words in steps)

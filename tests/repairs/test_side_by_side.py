"""Repairs side by side: every way is measured alike, one is recommended by the rule."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import skops.io as sio
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import limi
from lab import models as benchmark
from limi.audits.drafts import Draft
from limi.errors import BadModel, InvalidInput
from limi.repairs import _compare, _verify, _ways, load_averaged, require_onnx
from limi.repairs._choice import recommend
from limi.repairs._compare import count_steps
from limi.repairs._compared import expected_calibration_error, rank_auc
from limi.repairs._recipes import Training
from limi.repairs._result import Tried
from limi.repairs._ways import copy_under_all
from limi.report import repairs as page
from limi.search.check import check_rows
from limi.table.schema import Column, Schema
from tests.repairs.test_repair import Stubborn, audited, people, pipeline


@pytest.fixture(autouse=True, scope="module")
def small():
    """Fewer rows, and no torch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compare, "_RATE_ROWS", 300)
        patch.setattr(_compare, "_SEARCH_ROWS", 200)
        patch.setattr(_verify, "quick_generators", lambda: ["trees"])
        yield


@pytest.fixture(scope="module")
def result():
    frame = people()
    return audited(pipeline().fit(frame.drop(columns="ok"), frame["ok"]), frame)


@pytest.fixture(scope="module")
def repairs(result):
    return limi.repair(result, seeds=2, max_accuracy_loss=0.2)


def test_every_way_that_the_model_allows_is_tried(repairs):
    assert [one.how for one in repairs.tried] == ["average", "drop", "copies", "findings"]
    assert "fit function" in repairs.skipped["pairs"]
    with pytest.raises(InvalidInput, match="fit function"):
        repairs["pairs"]


@pytest.mark.parametrize("how", ["average", "drop"])
def test_what_cannot_depend_on_the_column_has_no_flips(repairs, how):
    one = repairs[how]
    assert one.figures["real"].value == one.figures["natural"].value == 0
    assert one.people.before > 0 == one.people.after
    assert str(one.verdict).startswith("removed: by construction no decision depends on sex")


@pytest.mark.parametrize("how", ["drop", "findings"])
def test_a_repair_is_measured_on_the_held_out_rows_of_the_run(how, tmp_path):
    frame, new = people(), people(150, seed=1)
    paths = [tmp_path / name for name in ("table.csv", "new.csv", "model.skops")]
    frame.to_csv(paths[0], index=False)
    new.to_csv(paths[1], index=False)
    model = pipeline().fit(frame.drop(columns="ok"), frame["ok"])
    sio.dump(model, paths[2])
    run = tmp_path / "run"
    audited(
        f"skops:{paths[2]}",
        pd.read_csv(paths[0]),
        held_out=pd.read_csv(paths[1]),
        held_out_name=str(paths[1]),
        table_name=str(paths[0]),
        out=run,
    )
    opened = limi.reopen(run)
    made = limi.repair(opened, how=how, seeds=1, max_accuracy_loss=0.5).as_dict()
    assert made["settings"]["measured_on"].endswith("new.csv)")
    assert sum(one["people"] for one in _moved(made)) == 150
    table = limi.repair(opened, how=how, seeds=1, max_accuracy_loss=0.5, held_out=0.3).as_dict()
    assert table["settings"]["measured_on"] == ""
    assert sum(one["people"] for one in _moved(table)) == 180
    new.iloc[:-1].to_csv(paths[1], index=False)
    with pytest.raises(InvalidInput, match="have changed since"):
        limi.repair(limi.reopen(run), how=how)


def _moved(tree):
    return tree["tried"][0]["moved"]


def test_averaging_keeps_the_model_and_asks_it_twice(result, repairs):
    assert repairs["average"].asked == 2
    assert repairs["average"].made.native.estimator is result.problem.target.model.estimator
    assert repairs["drop"].asked == repairs["copies"].asked == 1


def test_gains_and_losses_are_those_of_the_held_out_people(repairs):
    moved = repairs["average"].moved
    assert [one.group for one in moved] == ["sex F", "sex M"]
    assert sum(one.people for one in moved) == 2 * 120  # a fifth of 600, for two seeds
    women, men = moved
    assert women.gained > women.lost == 0
    assert men.lost > men.gained == 0


def test_nothing_went_along_so_there_is_one_question(repairs):
    assert repairs.before["real_alone"].value is None


def test_a_model_that_cannot_be_trained_again_is_averaged(tmp_path):
    result = audited(Stubborn(("a",)), people())
    made = limi.repair(result)
    assert [one.how for one in made.tried] == ["average"]
    assert "cannot be cloned" in made.skipped["drop"]
    assert made["average"].loss.on == "training"
    assert made["average"].people.after == 0
    with pytest.raises(InvalidInput, match="cannot be cloned"):
        limi.repair(result, how="drop")


def test_a_function_is_averaged_and_shipped_as_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rule.py").write_text(
        "def score(frame):\n"
        "    return (frame['income'] + 4.0 * (frame['sex'] == 'M')).to_numpy() / 30\n",
        encoding="utf-8",
    )
    frame = people()
    result = audited("python:rule.py:score", frame)
    made = limi.repair(result, how="average", max_accuracy_loss=0.5)
    assert made.recommended == "average"
    made.save("fixed")
    score = load_averaged(tmp_path / "fixed" / "averaging.json")
    assert np.allclose(score(frame), made.model(frame))
    again = audited("python:fixed/score.py:score", frame, rate_rows=200)
    assert again.summary.findings == 0


def test_the_folder_is_a_model_of_mlflow(result, tmp_path):
    pyfunc = pytest.importorskip(
        "mlflow.pyfunc",
        reason="only the whole of mlflow serves models; the client of limi[mlflow] does not",
    )
    made = limi.repair(result, how="average", max_accuracy_loss=0.5)
    made.save(tmp_path / "fixed")
    frame = people().drop(columns="ok")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own
        opened = pyfunc.load_model(str(tmp_path / "fixed"))
    assert np.array_equal(opened.predict(frame), made.model.predict(frame))
    assert np.array_equal(opened.predict(frame.assign(sex="F")), opened.predict(frame))


def test_mlflow_asks_an_averaged_function_for_its_scores(tmp_path, monkeypatch):
    from limi.repairs.mlflow import _load_pyfunc

    monkeypatch.chdir(tmp_path)
    (tmp_path / "rule.py").write_text(
        "def score(frame):\n"
        "    return (frame['income'] + 4.0 * (frame['sex'] == 'M')).to_numpy() / 30\n",
        encoding="utf-8",
    )
    frame = people()
    made = limi.repair(audited("python:rule.py:score", frame), how="average")
    made.save("fixed")
    named = json.loads((tmp_path / "fixed" / "MLmodel").read_text(encoding="utf-8"))
    assert named["flavors"]["python_function"]["data"] == "averaging.json"
    opened = _load_pyfunc(str(tmp_path / "fixed" / "averaging.json"))
    assert np.allclose(opened.predict(frame), made.model(frame))


def test_an_onnx_file_is_written_where_it_is_asked_for(result, tmp_path):
    made = limi.repair(result, how="average", max_accuracy_loss=0.5)
    made.save(tmp_path / "plain")
    made.save(tmp_path / "both", onnx=True)
    assert not (tmp_path / "plain" / "model.onnx").exists()
    assert (tmp_path / "both" / "model.onnx").exists()
    with pytest.raises(InvalidInput, match="averaged and dropped"):
        require_onnx("copies")


def test_an_onnx_file_that_cannot_be_written_is_refused_or_told(result, repairs, tmp_path):
    function = audited(lambda frame: frame["income"].to_numpy() / 30, people(), output="score")
    with pytest.raises(InvalidInput, match="leave --onnx out"):
        require_onnx("average", function.problem)
    copies = replace(repairs, tried=(repairs["copies"],), recommended="copies")
    with pytest.raises(InvalidInput, match="no ONNX file was written"):
        copies.save(tmp_path / "refused", onnx=True)
    assert not (tmp_path / "refused").exists()
    with Draft.at(tmp_path / "told", force=False) as draft:
        tree = copies.write(draft, onnx=True)
    (note,) = tree["model_notes"]
    assert "no ONNX file was written" in note
    assert json.loads((tmp_path / "told" / "repair.json").read_text())["model_notes"] == [note]


def test_a_repair_takes_a_result_or_the_folder_of_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = people()
    sio.dump(pipeline().fit(frame.drop(columns="ok"), frame["ok"]), tmp_path / "model.skops")
    frame.to_csv(tmp_path / "table.csv", index=False)
    audited(
        "skops:model.skops",
        pd.read_csv(tmp_path / "table.csv"),
        table_name="table.csv",
        out=tmp_path / "run",
    )
    made = limi.repair(str(tmp_path / "run"), how="average")
    assert made["average"].people.after == 0
    with pytest.raises(InvalidInput, match="must be a Result"):
        limi.repair(frame, how="average")


def test_the_bar_reaches_its_end_and_never_goes_back(result):
    told = []
    limi.repair(result, seeds=1, on_step=lambda done, words: told.append(done))
    assert told == sorted(told)
    assert told[0] == 0
    assert told[-1] < 1
    assert count_steps(["average"], 1) < count_steps(["average", "copies"], 1)


def test_averaging_alone_takes_one_seed_and_no_other_generator(result):
    made = limi.repair(result, how="average", max_accuracy_loss=0.5)
    assert made.as_dict()["settings"]["seeds"] == 1
    assert made.fresh.generator == "trees"


def test_a_network_is_dropped_and_paired(monkeypatch):
    pytest.importorskip("torch", reason="needs limi[torch]")
    monkeypatch.setattr(benchmark, "_SMALL", (40, 32))
    monkeypatch.setattr(_ways, "STRENGTHS", (5.0,))
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.integers(2, size=300), "income": rng.integers(9, size=300)})
    frame["ok"] = (frame["income"] + 3 * frame["sex"] > 5).astype(int)
    rows = frame[["sex", "income"]].to_numpy(dtype=float)
    truth = frame["ok"].to_numpy(dtype=np.int8)
    model = benchmark.fit("dnn", rows, truth, columns=("sex", "income"))
    result = audited(model, frame, favorable=1)
    made = limi.repair(result, how="drop", seeds=1, max_accuracy_loss=0.9)
    assert not np.allclose(made.model(rows), model.score(rows))
    other = np.column_stack([1 - rows[:, 0], rows[:, 1]])
    paired = limi.repair(result, how="pairs", seeds=1, max_accuracy_loss=0.9)["pairs"]
    assert paired.made.notes == ("strength of the penalty: 5",)
    gaps = [np.abs(m.score(rows) - m.score(other)).mean() for m in (model, paired.made.native)]
    assert gaps[1] < gaps[0] / 2


def test_the_share_of_favorable_decisions_is_kept_where_that_is_wanted(result):
    told = {"how": "average", "seeds": 2, "max_accuracy_loss": 0.5, "weights": {"sex": {"M": 1.0}}}
    plain, kept = (limi.repair(result, **told, same_share=same) for same in (False, True))
    assert plain["average"].made.native.threshold is None
    (share,) = (one["share"] for one in plain.as_dict()["tried"])
    assert share["gained"] > 15 > share["lost"]
    words = "\n".join(page.remarks(plain.as_dict()))
    assert "beyond chance" in words
    assert f"A threshold of {share['threshold_to_keep_it']:.3g} keeps it (--same-share)" in words
    at = kept["average"].made.native.threshold
    assert at == pytest.approx(share["threshold_to_keep_it"])
    assert f"average decides above {at:.3g}" in "\n".join(page.remarks(kept.as_dict()))
    before = kept.before["favorable"].value
    assert abs(kept["average"].figures["favorable"].value - before) < 0.03
    assert plain["average"].figures["favorable"].value - before > 0.05


def test_a_threshold_of_the_run_is_named_and_not_moved():
    frame = people()
    model = pipeline().fit(frame.drop(columns="ok"), frame["ok"])
    result = audited(model, frame, decision="score > 0.3")
    with pytest.raises(InvalidInput, match=r"score > 0\.3"):
        limi.repair(result, how="average", same_share=True)
    told = {"weights": {"sex": {"M": 1.0}}, "max_accuracy_loss": 0.5}
    tree = limi.repair(result, how="average", seeds=1, **told).as_dict()
    assert tree["tried"][0]["share"]["threshold_to_keep_it"] > 0.35  # of the model's own scores
    tree["model_files"] = ["model.skops"]
    (line,) = page.use(tree)
    assert line.endswith("--favorable yes --protected sex --decision 'score > 0.3'")


def test_nothing_is_removed_where_nobody_flipped():
    result = audited(lambda frame: frame["income"].to_numpy() / 30, people(), output="score")
    made = limi.repair(result, how="average")
    assert made.recommended is None
    assert str(made["average"].verdict).startswith("unchanged: none of")
    assert made["average"].why == "not recommended: nobody flipped before"


def test_a_way_that_breaks_is_skipped_and_alone_it_is_told():
    frame = people()
    fit = pipeline().fit
    calls = []

    def train(table, labels):
        calls.append(len(table))
        if table["sex"].nunique() == 1:
            raise ValueError("only one sex")
        return fit(table, labels)

    result = audited(fit(frame.drop(columns="ok"), frame["ok"]), frame)
    made = limi.repair(result, fit=train, seeds=1, max_accuracy_loss=0.5)
    assert [one.how for one in made.tried] == ["average", "copies", "findings"]
    assert "only one sex" in made.skipped["drop"]
    assert made.as_dict()["settings"]["how"] == ["average", "copies", "findings"]
    with pytest.raises(BadModel, match="only one sex"):
        limi.repair(result, fit=train, seeds=1, how="drop")


def test_a_blind_model_is_refused_with_the_way_to_go():
    frame = people()
    blind = LogisticRegression().fit(frame[["income", "debt"]], frame["ok"])
    result = audited(blind, frame)
    with pytest.raises(InvalidInput, match="twin"):
        limi.repair(result, how="average")


def test_the_same_seed_gives_the_same_repairs(result):
    one, two = (limi.repair(result, how="copies", seeds=1, seed=3).as_dict() for _ in range(2))
    for tree in (one, two):
        tree["tried"][0].pop("seconds")
    assert one == two


# -- the rule ---------------------------------------------------------------------------


def tried(how, word, after, lost, asked=1, seconds=1.0, wide=0.001, flips=""):
    loss = _verify.Loss(lost, lost - wide, lost + wide, "held-out")
    people = _verify.Check("people", "fresh people", 1000, 100, after, gone=100 - after)
    verdict = _verify.Verdict(word, "because", flips=flips)
    return Tried(how, {}, loss, (people,), verdict, (), asked, seconds)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ([("average", "removed", 0, 0.0, 6), ("drop", "removed", 0, 0.002)], "average"),
        ([("average", "removed", 0, 0.0, 6), ("drop", "removed", 0, 0.0005)], "drop"),
        ([("copies", "reduced", 10, 0.0), ("findings", "reduced", 30, -0.01)], "copies"),
        ([("copies", "reduced", 10, -0.01), ("average", "removed", 0, 0.009, 2)], "average"),
        ([("average", "too costly", 0, 0.05, 2), ("findings", "reduced", 30, 0.0)], "findings"),
        ([("copies", "unchanged", 90, 0.0), ("findings", "worse", 120, 0.0)], None),
    ],
)
def test_the_rule_takes_fewest_flips_then_accuracy_then_cost(given, taken):
    explained, recommended, close = recommend([tried(*told) for told in given], 0.01)
    assert recommended == taken
    assert not close
    for one in explained:
        assert one.why.startswith("recommended") == (one.how == taken)
        assert one.why


def test_reasons_say_what_the_others_lack():
    explained, _, _ = recommend(
        [
            tried("average", "removed", 0, 0.0, 6),
            tried("drop", "removed", 0, 0.004),
            tried("copies", "reduced", 20, 0.0),
            tried("findings", "too costly", 0, 0.03),
        ],
        0.01,
    )
    why = {one.how: one.why for one in explained}
    assert why["drop"] == "loses 0.40 points more accuracy than average"
    assert why["copies"] == "2 % of fresh people still flip; with average, none"
    assert why["findings"] == "loses 3.00 points of accuracy, more than the 1.00 allowed"


def test_a_choice_within_chance_is_not_called_a_recommendation():
    explained, first, close = recommend(
        [
            tried("average", "inconclusive", 0, 0.011, 2, wide=0.012, flips="removed"),
            tried("drop", "too costly", 0, 0.05, wide=0.012, flips="removed"),
            tried("findings", "removed", 0, 0.0083, wide=0.012),
        ],
        0.01,
    )
    assert (first, close) == ("findings", ("average",))
    why = {one.how: one.why for one in explained}
    assert why["findings"].startswith("first by the rule, but average may be as good")
    assert "no other does at a cost that is allowed" in why["findings"]
    assert "may lose up to 2.03 points" in why["findings"]
    assert why["average"].endswith("which may be chance")
    assert "chance" not in why["drop"]
    both = [tried("average", "removed", 0, 0.0, 2, wide=0.012), tried("drop", "removed", 0, 0.004)]
    explained, first, close = recommend(both, 0.01)
    assert (first, close) == ("average", ())
    assert "chance" not in explained[1].why
    both[1] = tried("drop", "removed", 0, 0.004, wide=0.012)
    assert recommend(both, 0.01)[0][1].why.endswith("accuracy than average, which may be chance")


def test_only_what_no_other_does_is_said_of_the_first():
    each = [
        tried("drop", "too costly", 0, 0.05, flips="removed"),
        tried("copies", "removed", 0, 0.0),
        tried("findings", "reduced", 10, 0.0),
    ]
    explained, *_ = recommend(each, 0.01)
    assert explained[1].why.endswith("and no other does at a cost that is allowed")
    explained, *_ = recommend(each[1:], 0.01)
    assert explained[0].why.endswith("and no other does")


def test_what_cannot_be_told_apart_is_said_first(repairs):
    tree = replace(repairs, recommended="drop", close=("average",)).as_dict()
    assert tree["close"] == ["average"]
    assert page.sentence(tree).startswith("drop and average cannot be told apart on these rows")


# -- parts ------------------------------------------------------------------------------


def test_copies_stand_under_every_value_and_count_one_together():
    schema = Schema(
        (
            Column(name="race", kind="categorical", levels=tuple("abcdef")),
            Column(name="income", kind="numerical", low=0, high=9, step=1),
        )
    ).protect(["race"])
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(6, size=50), rng.integers(10, size=50)], axis=1).astype(float)
    labels = rng.integers(2, size=50).astype(np.int8)
    copies, truth, weights = copy_under_all(Training(schema, rows, labels), rng)
    assert len(copies) == 6 * 50
    assert weights.sum() == pytest.approx(50)
    assert set(weights) == {1 / 6}
    found = {tuple(row) for row in copies}
    assert found == {(race, income) for race in range(6) for income in set(rows[:, 1])}
    assert np.array_equal(truth[:50], labels)


def test_a_tree_with_weighted_copies_learns_no_protected_value():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.integers(2, size=400), "income": rng.integers(9, size=400)})
    frame["ok"] = np.where(frame["income"] + 3 * frame["sex"] > 5, "yes", "no")
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    model = tree.fit(frame[["sex", "income"]], frame["ok"])
    result = audited(model, frame)
    made = limi.repair(result, how="copies", seeds=1, max_accuracy_loss=0.5)
    target = made["copies"].made.target
    rows = result.problem.rows
    assert check_rows(result.problem.target.score, result.problem.schema, rows).flips.mean() > 0.3
    assert not check_rows(target.score, result.problem.schema, rows).flips.any()


def test_auc_and_calibration_are_those_of_their_definitions():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    scores = rng.random(300).round(2)
    truth = (rng.random(300) < scores).astype(np.int8)
    area = rank_auc(scores, truth)
    assert area.value == pytest.approx(roc_auc_score(truth, scores))
    assert area.low < area.value < area.high
    assert expected_calibration_error(np.full(10, 0.9), np.ones(10)) == pytest.approx(0.1)


def test_the_column_that_explains_most_is_kept_and_told():
    frame = people()
    frame["job"] = np.where(frame["sex"] == "M", frame["income"] % 7 + 3, frame["income"] % 7)
    frame["ok"] = np.where(frame["job"] > 5, "yes", "no")
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(
        frame[["income", "job"]].assign(male=frame["sex"] == "M"), frame["ok"]
    )

    def decide(table):
        given = table[["income", "job"]].assign(male=table["sex"] == "M")
        return (model.predict(given) == "yes").astype(float)

    made = limi.repair(audited(decide, frame, output="score"), how="average")
    tree = made.as_dict()
    assert tree["settings"]["kept"] == "job"
    assert made.before["twins_kept"].value < made.before["twins"].value / 2
    assert "limi test --twin --keep job" in " ".join(page.remarks(tree))


def test_reasons_that_several_ways_share_are_told_once(repairs):
    tree = replace(repairs, skipped={"drop": "why", "copies": "why", "pairs": "other"}).as_dict()
    words = page.remarks(tree)
    assert "drop and copies were not tried: why." in words
    assert "pairs was not tried: other." in words


def test_the_page_says_how_the_model_is_tested_and_how_others_are_had(repairs):
    tree = {**repairs.as_dict(), "model_files": ["model.skops"], "model_notes": []}
    told = page.use(tree)
    assert told[0].endswith("--model skops:model.skops --target ok --favorable yes --protected sex")
    assert told[1].startswith("To get another of these models instead: --how ")


def test_a_page_without_a_recommendation_says_why(repairs):
    none = replace(repairs, recommended=None).as_dict()
    assert page.sentence(none) == "None of these repairs is recommended."
    assert 'class="taken"' not in page.render(none)
    assert 'class="taken"' in page.render(repairs.as_dict())
    assert page.card(repairs.as_dict()).startswith("# ")

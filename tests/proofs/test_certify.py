"""Proofs: every answer is that of asking the model about every row of the neighbourhood."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import limi
from limi.audits.problem import prepare
from limi.errors import CorruptStore, InvalidInput, MissingDependency
from limi.proofs import Answer, Stage
from limi.proofs.near import parse_near
from limi.proofs.solver import Solve
from limi.proofs.splitting import Splitting
from limi.report import proof as page
from limi.search.check import check_rows
from limi.table.files import infer
from limi.table.rules import Derived, Role, Rules
from limi.trees.lattice import build_lattice
from limi.trees.reading import read_trees
from tests.proofs.brute import flips_near
from tests.trees.cases import CASES, coded, draw_table, split, with_gaps

pytestmark = pytest.mark.usefixtures("untried")


def agree(proof, near):
    """Hold every answer of a proof to all rows of the neighbourhood; are all of them decided?"""
    for row, answer in zip(proof.rows, proof.answer, strict=True):
        truth = flips_near(proof.problem, near, row)
        assert truth == (answer == Answer.FLIPS) or answer == Answer.UNDECIDED
    return bool((proof.answer != Answer.UNDECIDED).all())


def near_of(schema, rng):
    near = {"age": 1, "level": "any" if rng.random() < 0.3 else 1}
    if schema["pay"].step:
        near["pay"] = float(schema["pay"].step) * 2
    near["job"] = 1 if schema["job"].kind == "numerical" else "any"
    return near


# Of each library and of each kind of question; `benchmarks/certify.py` asks all of them, at length.
TRIED = (
    *("forest", "boosting", "histograms of categories", "xgboost", "xgboost of categories"),
    *("xgboost dart", "lightgbm", "lightgbm of categories", "lightgbm zero is missing"),
    *("catboost", "onnx forest", "onnx boosting"),
)


@pytest.mark.parametrize("name", TRIED)
def test_every_answer_is_that_of_all_rows(name):
    rng = np.random.default_rng(sum(name.encode()))
    frame = draw_table(rng, 120)
    frame = frame if "onnx" in name else with_gaps(frame, rng)
    model, frame = CASES[name](frame, 1)
    told = {"protected": "sex", "target": "good", "favorable": int(rng.integers(2))}
    near = near_of(prepare(model, frame, **told).schema, rng)
    by_cuts = limi.certify(model, frame, near=near, rows=4, solver=False, **told)
    assert agree(by_cuts, near)
    by_solver = limi.certify(model, frame, near=near, rows=4, max_boxes=1, workers=1, **told)
    assert by_cuts.answer.tolist() == by_solver.answer.tolist()


def ruled_table(rng, n_rules):
    """People with a role, a derived band and constraints that bind partners."""
    frame = draw_table(rng, 220).drop(columns="pay")
    n = len(frame)
    married = np.where(frame.sex == "M", "husband", "wife")
    frame["role"] = np.where(rng.random(n) < 0.4, married, "single")
    frame["band"] = pd.cut(frame.age, [0, 24, 31, 99], labels=["young", "middle", "old"])
    frame["band"] = frame.band.astype(str)
    pull = frame.good + 1.2 * (frame.role == "husband") + 0.5 * (frame.band == "old")
    frame["good"] = (pull + rng.normal(0, 0.4, n) > 1).astype(int)
    constraints = {
        "level <= 4 or age >= 24": (frame.level > 4) & (frame.age < 24),
        'sex == "F" implies level <= 4': (frame.level > 4) & (frame.sex == "F"),
        "age + 2 * level <= 48": frame.age + 2 * frame.level > 48,
    }
    kept = dict(list(constraints.items())[:n_rules])
    for broken in kept.values():
        frame = frame[~broken.reindex(frame.index)]
    frame = frame.reset_index(drop=True)
    bands = ("young", "middle", "old")
    rules = Rules(
        tuple((text, text) for text in kept),
        (Derived(column="band", sources=("age",), steps=(25, 32), values=bands),),
        (Role(protected="sex", column="role", things=((("F", "wife"), ("M", "husband")),)),),
    )
    return frame, replace(infer(frame.drop(columns="good")), rules=rules)


NEARS = ({"age": 2, "level": 1}, {"age": 1, "role": "any", "job": "any"}, {"level": "any"}, {})


@pytest.mark.parametrize("seed", range(6))
def test_rules_bind_neighbours_and_partners(seed):
    rng = np.random.default_rng([seed, 9])
    frame, schema = ruled_table(rng, seed % 4)
    encoder = OrdinalEncoder() if seed % 2 else OneHotEncoder()
    steps = make_column_transformer(
        (encoder, ["sex", "job", "role", "band"]), remainder="passthrough"
    )
    trees = (
        RandomForestClassifier(6, max_depth=4, random_state=seed)
        if seed % 3
        else GradientBoostingClassifier(n_estimators=6, random_state=seed)
    )
    model = make_pipeline(steps, trees).fit(*split(frame))
    near = NEARS[(seed + seed // 4) % 4]
    told = {"protected": "sex", "target": "good", "favorable": 1, "schema": schema}
    by_cuts = limi.certify(model, frame, near=near, rows=4, solver=False, **told)
    assert agree(by_cuts, near)
    by_solver = limi.certify(model, frame, near=near, rows=4, max_boxes=1, workers=1, **told)
    assert by_cuts.answer.tolist() == by_solver.answer.tolist()


@pytest.mark.parametrize("left_out", [[], ["sex"]])
def test_trees_that_never_ask_for_the_column_flip_nobody(left_out):
    """Because the model does not take it, or because no tree cared."""
    frame = coded(draw_table(np.random.default_rng(4), 150))
    taken, labels = split(frame.assign(sex=0))
    model = RandomForestClassifier(5, max_depth=4, random_state=0)
    model.fit(taken.drop(columns=left_out), labels)
    for how in ({"solver": False}, {"max_boxes": 1, "solver": True, "workers": 1, "domain": True}):
        proof = limi.certify(
            model, frame, protected="sex", target="good", favorable=1, near="age=3", rows=40, **how
        )
        assert (proof.answer == Answer.PROVEN).all()
        assert proof.gap.max() == 0
        assert proof.domain is None or proof.domain.reached == 0
        tree = proof.as_dict()
        assert tree["blind"] == bool(left_out)
        assert page.sentence(tree).startswith("The model does not take sex") == bool(left_out)
        assert ("does not take sex" in repr(proof)) == bool(left_out)


def test_several_protected_columns_and_values_that_are_not_tried():
    frame = coded(draw_table(np.random.default_rng(2), 200))
    model = RandomForestClassifier(6, max_depth=4, random_state=0).fit(*split(frame))
    near = {"age": 1, "job": "any"}
    proof = limi.certify(
        model, frame, protected=["sex", "level=0,3"], target="good", favorable=1, near=near, rows=8
    )
    assert agree(proof, near)
    strays = ~np.isin(proof.rows[:, proof.problem.schema.position("level")], (0, 3))
    assert strays.any()


@pytest.fixture(scope="module")
def boosted():
    """An XGBoost model on 400 people, as numbers."""
    import xgboost

    frame = coded(draw_table(np.random.default_rng(5), 400))
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=4, n_jobs=1, random_state=0)
    return model.fit(*split(frame)), frame


TOLD = {"protected": "sex", "target": "good", "favorable": 1, "near": "age=2,pay=0.1"}


def test_what_is_reported_adds_up(boosted):
    proof = limi.certify(*boosted, rows=120, domain=True, domain_seconds=20, **TOLD)
    tree = proof.as_dict()
    assert sum(tree["answers"].values()) == tree["people"] == 120
    assert sum(sum(tree["picture"][word]) for word in tree["answers"]) == 120
    assert tree["flip_share_at_least"] == tree["answers"]["flips"] / 120
    low, high = tree["population_interval"]
    assert low <= tree["flip_share_at_least"] <= tree["flip_share_at_most"] <= high
    assert tree["largest_gap_of_a_person"] <= tree["largest_gap_near_a_person_at_most"]
    domain = tree["domain"]
    assert domain["optimal"]
    assert 0 <= domain["gap_at_most"] - domain["gap_found"] < 1e-3
    assert domain["score_gap_at_most"] >= tree["largest_gap_of_a_person"]
    flips = np.flatnonzero(proof.answer == Answer.FLIPS)
    score = proof.problem.target.score
    assert np.array_equal(score(proof.witness[flips]), proof.witness_scores[flips, 0])
    assert (np.diff(proof.witness_scores[flips] > 0.5, axis=1) != 0).all()
    for region in tree["regions"]:
        assert region["proven"] <= region["people"]


def test_a_domain_without_time_has_a_bound_all_the_same(boosted):
    full = limi.certify(*boosted, rows=1, domain=True, domain_seconds=20, **TOLD).domain
    late = limi.certify(*boosted, rows=1, domain=True, domain_seconds=1e-6, **TOLD).domain
    assert not late.optimal
    assert 0 < late.reached <= full.reached <= full.bound <= late.bound < np.inf
    proof = limi.certify(*boosted, rows=None, solver=False, **TOLD)
    assert proof.own_gap.max() <= full.score_bound


def test_gaps_near_a_person_are_never_exceeded(boosted):
    proof = limi.certify(*boosted, rows=30, **TOLD)
    from tests.proofs.brute import rows_near

    score = proof.problem.target.score
    sex = proof.problem.schema.position("sex")
    for row, gap in zip(proof.rows, proof.gap, strict=True):
        rows = rows_near(proof.problem.schema, {"age": 2, "pay": 0.1}, row)
        others = rows.copy()
        others[:, sex] = 1 - others[:, sex]
        assert np.abs(score(rows) - score(others)).max() <= gap + 1e-6


def test_without_effort_people_stay_undecided(boosted):
    proof = limi.certify(*boosted, rows=120, max_boxes=1, solver=False, **TOLD)
    assert (proof.answer == Answer.UNDECIDED).any()
    assert set(proof.stage[proof.answer == Answer.PROVEN]) == {Stage.BOUNDS}
    low, high = proof.flip_share
    assert low < high
    full = limi.certify(*boosted, rows=120, **TOLD)
    assert low <= full.flip_share[0] == full.flip_share[1] <= high
    decided = proof.answer != Answer.UNDECIDED
    assert (proof.answer[decided] == full.answer[decided]).all()


def test_a_killed_run_goes_on_where_it_stopped(boosted, tmp_path, monkeypatch):
    from limi.proofs import _run

    monkeypatch.setattr(_run, "_BLOCK", 40)
    whole = limi.certify(*boosted, rows=120, out=tmp_path / "whole", **TOLD)
    told = []

    def stop_late(progress):
        told.append(progress)
        if progress.proven + progress.flips > 90:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        limi.certify(*boosted, rows=120, out=tmp_path / "part", on_progress=stop_late, **TOLD)
    ends = [progress.ends for progress in told]
    assert [low for low, _ in ends] == sorted(low for low, _ in ends)
    assert [high for _, high in ends] == sorted((high for _, high in ends), reverse=True)
    stored = tmp_path / "part.partial" / "progress.jsonl"
    lines = stored.read_text().splitlines()
    assert [json.loads(line)["block"]["number"] for line in lines] == [0, 1]
    with stored.open("a") as file:
        file.write('{"block": {"num')  # as a kill in the middle of a write leaves it
    decided = []
    real = Splitting.begin
    monkeypatch.setattr(Splitting, "begin", lambda self: decided.append(1) or real(self))
    again = limi.certify(*boosted, rows=120, out=tmp_path / "part", resume=True, **TOLD)
    assert len(decided) == 1
    assert again.answer.tolist() == whole.answer.tolist()
    assert np.array_equal(again.witness, whole.witness, equal_nan=True)
    trees = [json.loads((tmp_path / n / "proof.json").read_text()) for n in ("whole", "part")]
    for tree in trees:
        for moved in ("seconds", "notes"):
            tree.pop(moved)
    assert trees[0] == trees[1]
    names = {path.name for path in (tmp_path / "part").iterdir()}
    assert names == {"manifest.json", "people.parquet", "proof.json", "report.html", "schema.toml"}


def test_what_was_stored_is_not_taken_on_trust(boosted, tmp_path, monkeypatch):
    from limi.proofs import _run

    monkeypatch.setattr(_run, "_BLOCK", 30)

    def stop(progress):
        if progress.proven + progress.flips > 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        limi.certify(*boosted, rows=60, out=tmp_path / "run", on_progress=stop, **TOLD)
    stored = tmp_path / "run.partial" / "progress.jsonl"
    tree = json.loads(stored.read_text().splitlines()[0])
    tree["block"]["answer"] = [1] * 30
    stored.write_text(json.dumps(tree) + "\n")
    with pytest.raises(CorruptStore, match="changed after limi wrote it"):
        limi.certify(*boosted, rows=60, out=tmp_path / "run", resume=True, **TOLD)


def test_the_same_seed_gives_the_same_answers_in_any_blocks(boosted, monkeypatch):
    from limi.proofs import _run

    first = limi.certify(*boosted, rows=90, **TOLD)
    monkeypatch.setattr(_run, "_BLOCK", 17)
    second = limi.certify(*boosted, rows=90, **TOLD)
    assert first.answer.tolist() == second.answer.tolist()
    assert first.chosen.tolist() == second.chosen.tolist()


def test_a_proof_has_a_page_of_plain_text(boosted):
    frame = boosted[1].rename(columns={"pay": "<b>pay</b>"})
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(*split(frame))
    proof = limi.certify(
        model, frame, protected="sex", target="good", favorable=1, near="<b>pay</b>=0.2", rows=60
    )
    drawn = page.render(proof.as_dict())
    assert "<b>pay</b>" not in drawn
    assert "&lt;b&gt;pay&lt;/b&gt;" in drawn
    assert page.sentence(proof.as_dict()).replace("'", "&#39;") in drawn


@pytest.mark.parametrize(
    ("near", "words"),
    [
        ("sex=any", "protected"),
        ("age=500", "wider than the whole range"),
        ("age=-1", "0 or more"),
        ("age=nan", "0 or more"),
        ("age=0.4", "less than a step of the column.*1 or more"),
        ("age", "COLUMN=NUMBER"),
        ("ag=1", "there is no column 'ag'"),
        ("age=1,age=2", "twice"),
        ("age=0,age=2", "twice"),
        ({"age": True}, "0 or more"),
    ],
)
def test_neighbourhoods_that_cannot_be_are_told(boosted, near, words):
    with pytest.raises(InvalidInput, match=words):
        limi.certify(*boosted, rows=5, **(TOLD | {"near": near}))


def test_more_bad_input_is_told(boosted):
    for told, words in (
        ({"rows": 0}, "at least 1"),
        ({"max_boxes": 0}, "at least 1"),
        ({"seconds_each": 0.0}, "above 0"),
        ({"workers": -1}, "at least 1"),
        ({"workers": 0}, "solver=False"),
        ({"workers": "two"}, "must be a number"),
    ):
        with pytest.raises(InvalidInput, match=words):
            limi.certify(*boosted, **(TOLD | told))
    text = draw_table(np.random.default_rng(0), 100)
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["sex", "job"]), remainder="passthrough"),
        RandomForestClassifier(3, random_state=0),
    ).fit(*split(text))
    with pytest.raises(InvalidInput, match="have no order"):
        limi.certify(model, text, protected="sex", target="good", favorable=1, near="job=1", rows=5)


def test_a_derived_column_cannot_be_let_move():
    _, schema = ruled_table(np.random.default_rng(1), 0)
    rows = np.zeros((3, len(schema)))
    with pytest.raises(InvalidInput, match="derive"):
        parse_near(schema.protect(["sex"]), rows, "band=any")


def test_the_default_neighbourhood_moves_numbers_a_little(boosted):
    proof = limi.certify(*boosted, protected="sex", target="good", favorable=1, rows=5)
    parts = dict(part.split("=") for part in proof.near.split(","))
    assert parts["age"] == "1"
    assert 0.2 < float(parts["pay"]) < 0.4
    assert set(parts) == {"age", "pay", "job", "level"}


def test_a_missing_solver_is_told_with_its_extra(boosted, monkeypatch):
    import builtins

    from limi.proofs import _run

    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("ortools"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(_run, "find_spec", lambda name: None)
    for told in ({"solver": True}, {"domain": True}):
        with pytest.raises(MissingDependency, match=r"limi\[certify\]"):
            limi.certify(*boosted, rows=5, **told, **TOLD)
    proof = limi.certify(*boosted, rows=120, max_boxes=1, **TOLD)
    assert any("limi[certify]" in note for note in proof.notes)


def test_people_without_a_partner_are_not_proven():
    frame = draw_table(np.random.default_rng(3), 200)
    frame["pregnant"] = np.where((frame.sex == "F") & (frame.level > 3), "yes", "no")
    steps = make_column_transformer(
        (OrdinalEncoder(), ["sex", "job", "pregnant"]), remainder="passthrough"
    )
    model = make_pipeline(steps, RandomForestClassifier(4, max_depth=3, random_state=0))
    proof = limi.certify(
        model.fit(*split(frame)),
        frame,
        protected="sex",
        target="good",
        favorable=1,
        near="age=1",
        rows=None,
        constraints=['pregnant == "yes" implies sex == "F"'],
    )
    alone = frame.pregnant == "yes"
    assert ((proof.answer == Answer.ALONE) == alone).all()
    assert proof.asked == (~alone).sum()


def test_people_nobody_near_whom_has_a_partner_are_alone_and_not_proven():
    """A rule that binds partners names a column that moves, so that a neighbour may have one."""
    frame = draw_table(np.random.default_rng(8), 220)
    frame = frame[~((frame.level > 2) & (frame.sex == "F"))].reset_index(drop=True)
    steps = make_column_transformer((OrdinalEncoder(), ["sex", "job"]), remainder="passthrough")
    model = make_pipeline(steps, RandomForestClassifier(4, max_depth=3, random_state=0))
    model.fit(*split(frame))
    told = {"protected": "sex", "target": "good", "favorable": 1, "near": {"level": 1}}
    rules = ['sex == "F" implies level <= 2']
    for how in ({"solver": False}, {"workers": 1, "max_boxes": 1}):
        proof = limi.certify(model, frame, rows=60, constraints=rules, **how, **told)
        level = frame.level.to_numpy()[proof.chosen]
        men = frame.sex.to_numpy()[proof.chosen] == "M"
        assert ((proof.answer == Answer.ALONE) == (men & (level > 3))).all()
        assert (men & (level == 3)).any()  # who have no partner, and a neighbour who has


@pytest.mark.parametrize("threshold", [0.1, 0.85])
def test_gaps_hold_for_scores_that_a_threshold_moves(threshold):
    frame = coded(draw_table(np.random.default_rng(5), 300))
    model = RandomForestClassifier(6, max_depth=5, random_state=0).fit(*split(frame))
    told = {"protected": "sex", "target": "good", "favorable": 1, "near": {"age": 1}}
    proof = limi.certify(
        model, frame, decision=f"score > {threshold}", rows=100, domain=True, workers=1, **told
    )
    assert proof.own_gap.max() > 0.5
    assert (proof.own_gap <= proof.gap).all()
    assert proof.own_gap.max() <= proof.domain.score_bound


@pytest.mark.parametrize("protected", [["age=20-35:5"], ["age=20-35:5", "level=0,4"]])
def test_the_domain_holds_rows_whose_own_value_is_not_tried(protected):
    frame = coded(draw_table(np.random.default_rng(5), 300))
    frame["good"] = ((frame.age % 7 == 3) ^ (frame.sex == 1) ^ (frame.level == 1)).astype(int)
    model = RandomForestClassifier(4, max_depth=8, random_state=0).fit(*split(frame))
    proof = limi.certify(
        model, frame, protected=protected, target="good", favorable=1, near={"pay": 0.1},
        rows=None, solver=False, domain=True, domain_seconds=20,
    )  # fmt: skip
    assert proof.domain.optimal
    assert proof.own_gap.max() <= proof.domain.score_bound
    # Forty people, as they would be at any age.
    problem = proof.problem
    some = np.repeat(problem.rows[:40], 20, axis=0)
    some[:, problem.schema.position("age")] = np.tile(np.arange(20, 40), 40)
    checked = check_rows(problem.target.score, problem.schema, some, keep_scores=True)
    gap = np.abs(checked.scores - checked.score[:, None]).max()
    assert 0.5 < gap <= proof.domain.score_bound


def test_leaves_that_are_tiny_beside_the_base_fit_the_solver():
    frame = coded(draw_table(np.random.default_rng(5), 200))
    model = GradientBoostingClassifier(
        n_estimators=3, max_depth=2, learning_rate=1e-13, random_state=0
    ).fit(*split(frame.assign(good=frame.sex & (frame.age < 22))))
    problem = prepare(model, frame, protected="sex", target="good", favorable=1)
    schema = problem.schema
    lattice = build_lattice(
        read_trees(problem.target), problem.rows[:1], np.zeros(len(schema), dtype=bool)
    )
    low, high = np.zeros(len(schema), dtype=np.int64), lattice.sizes - 1
    partner, sex = low.copy(), schema.protected_index
    high[sex], partner[sex] = 0, 1
    theirs = high.copy()
    theirs[sex] = 1
    solve = Solve(lattice, low, high, partner, theirs, sex)
    assert solve.find_flip(falls=True, seconds=5).status == "nothing"
    gap = solve.find_gap(seconds=5, workers=1)
    assert gap.status == "candidate"
    assert gap.value <= gap.bound < 1e-9


def test_cells_of_witnesses_name_their_columns_for_narrow_screens(boosted):
    """There the head of the table is not shown, and each row is a list."""
    drawn = page.render(limi.certify(*boosted, rows=120, **TOLD).as_dict())
    _, _, table = drawn.partition('<table class="plain stacked">')
    table, _, _ = table.partition("</table>")
    heads = re.findall(r'<th scope="col">(.*?)</th>', table)
    cells = re.findall(r'data-name="(.*?)"', table)
    assert len(heads) == 5
    assert cells == heads * (len(cells) // 5)

"""Targets as their definitions have them: tables, rates, repairs, files."""

import numpy as np
import pytest

from lab.targets import _wide, nearly_fair
from lab.targets.definitions import read, read_target
from lab.targets.making import Making, draw_people, make_problem, natural_people, read_table
from lab.targets.nearly_fair import Blend
from lab.targets.reference import Reference
from limi.errors import InvalidInput
from limi.search.check import check_rows
from limi.table.partners import complete
from limi.table.rows import uniform
from tests.table.ruled import RULED


def target(tmp_path, **given):
    spec = read_target({"name": "it", "table": "credit", "protected": ["sex"], **given})
    return spec, make_problem(spec, tmp_path)


def flips(problem, spec, n=20_000):
    """The share of people who flip, among others than those that the target was made with."""
    table = read_table(spec)
    people = Making(spec, table, None).people()
    rows = draw_people(people, n, 9)
    return check_rows(problem.target.score, problem.schema, rows).flips.mean()


@pytest.fixture
def few_people(monkeypatch):
    """Enough to tell one flip in a hundred from one in fifty."""
    monkeypatch.setattr(nearly_fair, "_MOST_PEOPLE", 20_000)


def test_the_wide_table_is_what_its_page_says():
    frame = _wide.draw_people()
    assert frame.equals(_wide.draw_people())
    assert frame.shape == (6000, 129)
    missing = frame.isna().mean()
    assert (missing > 0).sum() == 62
    assert missing.max() < 0.26
    assert frame[["sex", "region", "language"]].drop_duplicates().shape[0] == 24
    assert abs((frame["granted"] == "yes").mean() - 0.5) < 0.01


def test_a_blend_flips_as_rarely_as_stated(tmp_path, few_people):
    settings = {"kind": "logistic", "rate": 0.01}
    spec, problem = target(tmp_path, recipe="nearly_fair", settings=settings)
    assert flips(problem, spec) == pytest.approx(0.01, abs=0.004)
    kept = list(tmp_path.glob("it-*.json"))
    assert len(kept) == 1
    # A second making takes what was found before, and is the same model.
    again = make_problem(spec, tmp_path)
    rows = problem.rows[:200]
    assert np.array_equal(again.target.score(rows), problem.target.score(rows))


def test_a_blend_without_effect_never_flips(tmp_path):
    spec = read_target(
        {
            "name": "it",
            "table": "credit",
            "protected": ["sex"],
            "recipe": "estimator",
            "settings": {"kind": "logistic"},
        }
    )
    making = Making(spec, read_table(spec), tmp_path)
    from lab.targets import estimator

    blend = Blend.of(estimator.make(making), making)
    whole = making.problem(blend)
    bare = making.problem(Blend(blend.plain, blend.averaged, blend.columns, left=0.0))
    rows = whole.rows
    assert check_rows(whole.target.score, whole.schema, rows).flips.any()
    assert not check_rows(bare.target.score, bare.schema, rows).flips.any()


def test_a_rate_that_is_higher_than_the_models_is_refused(tmp_path, few_people):
    with pytest.raises(InvalidInput, match="ask for a lower rate"):
        target(tmp_path, recipe="nearly_fair", settings={"kind": "logistic", "rate": 0.9})
    assert not list(tmp_path.iterdir())


def test_a_model_trained_without_the_column_flips_where_others_go_along(tmp_path):
    settings = {"kind": "logistic", "without": ["sex"]}
    plain = {"table": "adult", "recipe": "estimator", "settings": settings}
    _, blind = target(tmp_path, **plain)
    assert blind.blind
    _, ruled = target(tmp_path, **plain, rules=True)
    assert not ruled.blind
    checked = check_rows(ruled.target.score, ruled.schema, ruled.rows[:4000])
    assert checked.flips.any()


def test_copies_make_flips_rarer(tmp_path):
    _, before = target(tmp_path, recipe="estimator", settings={"kind": "logistic"})
    settings = {"kind": "logistic", "how": "copies"}
    _, after = target(tmp_path, recipe="repaired", settings=settings)
    rates = [check_rows(p.target.score, p.schema, p.rows).flips.mean() for p in (before, after)]
    assert rates[1] < rates[0]


def test_a_file_of_ones_own_is_a_target(tmp_path):
    from limi import data

    known = data.load("credit")
    known.frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "rule.py").write_text(
        "def predict(frame):\n    return (frame['sex'] + frame['amount'] > 2) * 1.0\n"
    )
    path = tmp_path / "mine.toml"
    path.write_text(
        f"""
[[targets]]
name = "ours"
recipe = "file"
table = "people.csv"
protected = ["sex"]
settings = {{model = "python:rule.py:predict", target = "{known.target}", favorable = 1}}
"""
    )
    spec = read(path).targets[0]
    problem = make_problem(spec, tmp_path)
    assert problem.table_name == "people"
    assert len(problem.rows) == len(known.frame)


def test_a_table_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InvalidInput, match="neither a file with the recipe 'file' nor known"):
        target(tmp_path, recipe="estimator", table="nowhere.csv")


def test_findings_are_held_to_where_people_flip(tmp_path):
    _, problem = target(tmp_path, recipe="estimator", settings={"kind": "logistic"})
    reference = Reference.measure(problem)
    reference.keep(tmp_path / "kept.npz")
    again = Reference.read(tmp_path / "kept.npz")
    assert again.facts == reference.facts
    assert 0 < again.facts["rate_low"] < again.facts["rate"] < again.facts["rate_high"] < 1
    whole = np.full((len(again.people), len(problem.schema)), np.nan)
    whole[:, again.free] = again.people
    held = again.hold(whole[again.flips])
    assert held["coverage"] == held["agreement"] == 1
    one = again.hold(whole[again.flips][:1])
    assert one["leaves"] == 1
    assert 0 < one["agreement"] <= one["coverage"] < 1
    assert again.hold(whole[:0]) == {"leaves": 0, "coverage": 0.0, "agreement": None}


def test_natural_people_keep_derived_columns():
    rows = complete(RULED, uniform(RULED, 300, np.random.default_rng(0)))
    people = draw_people(natural_people(rows, RULED), 200, 0)
    np.testing.assert_array_equal(people, complete(RULED, people))

"""Cells of the benchmark: counting queries, and standings of what was measured."""

import dataclasses

import numpy as np

from lab.cells import expand
from lab.extend import load_bench
from lab.figures import draw_ranks
from lab.kinds.bench import _Noting
from lab.results import Outcome, Results
from lab.standings import Standings
from lab.targets import RECIPES
from limi.methods.natural import Natural
from limi.methods.themis import Themis
from limi.search.budget import Budget
from limi.search.engine import run
from limi.table.rows import uniform
from tests.toy import Linear, schema_of, task

WIDE = schema_of((0, 90), (-30, 60), (0, 40), (0, 1), protected=["x3"])
WIDE_MODEL = Linear((0.05, -0.06, 0.03, 0.8), -1.155)


def test_queries_are_counted_to_the_first_and_the_tenth_finding():
    given = task(WIDE, WIDE_MODEL, uniform(WIDE, 60, np.random.default_rng(4)))
    noting = _Noting(Themis())
    ran = run(noting, given, Budget(max_rows=400), 5)
    plain = run(Themis(), given, Budget(max_rows=400), 5)
    assert np.array_equal(ran.findings.all().rows, plain.findings.all().rows)
    per_row = len(WIDE.combinations)
    assert set(noting.reached) == {1, 10}
    for mark, fewest in noting.reached.items():
        # Every row is asked under all values here, so that no smaller budget reaches the mark.
        rows = run(Themis(), given, Budget(max_rows=fewest // per_row), 5)
        assert len(rows.findings) >= mark
        if fewest > per_row:
            fewer = run(Themis(), given, Budget(max_rows=fewest // per_row - 1), 5)
            assert len(fewer.findings) < mark


def test_what_is_not_reached_is_not_counted():
    noting = _Noting(Themis())
    run(noting, task(), Budget(max_queries=4), 5)
    assert 10 not in noting.reached
    assert Natural().needs == _Noting(Natural()).needs


def standings(found, statuses=None):
    study = load_bench()
    targets = [name for name in study.targets if name.startswith("credit-")][: len(found)]
    outcomes = []
    for target, line in zip(targets, found, strict=True):
        for method, value in line.items():
            if value is None:
                outcomes.append(
                    Outcome(cell=f"{target}/{method}/0", digest="d", status="unable", why="no")
                )
                continue
            measures = {"found_1000": value, "to_1_1000": None if not value else 10}
            outcomes.append(
                Outcome(cell=f"{target}/{method}/0", digest="d", status="done", measures=measures)
            )
    return Standings(study, Results("bench", "small", {o.cell: o for o in outcomes}, {}))


def test_ranks_are_of_methods_that_can_do_every_target():
    of = standings(
        [
            {"guided": 10, "natural": 5, "adf": None},
            {"guided": 3, "natural": 7, "adf": None},
            {"guided": 8, "natural": 2, "adf": 9},
            {"guided": 8, "natural": 2, "adf": 1},
        ]
    )
    ranks = of.rank(of.targets, "findings", 1000)
    assert dict(zip(ranks.methods, ranks.means, strict=True)) == {"guided": 1.25, "natural": 1.75}
    assert len(of.networks()) == 2
    inside = of.rank(of.networks(), "findings", 1000)
    assert dict(zip(inside.methods, inside.means, strict=True)) == {
        "guided": 1.5,
        "adf": 2.0,
        "natural": 2.5,
    }
    assert [one[1] for one in of.not_first("guided", "findings", 1000)] == ["natural", "adf"]


def test_a_target_without_all_results_is_not_ranked_on():
    of = standings([{"guided": 10, "natural": 5}, {"guided": 3, "natural": 7}, {"guided": 1}])
    assert of.rank(of.targets, "findings", 1000).n_targets == 2


def test_a_search_that_does_not_get_there_counts_as_ten_budgets():
    of = standings([{"guided": 1, "natural": 0}, {"guided": 1, "natural": 0}])
    assert of.value(of.targets[0], "natural", "first", 1000) == 10_000
    assert of.value(of.targets[0], "guided", "first", 1000) == 10
    assert "> 1,000" in of.table("first", 1000).rows[0]


def test_a_diagram_names_every_method_and_the_difference():
    of = standings([{"guided": 10, "natural": 5, "limi": 6}] * 5)
    drawn = draw_ranks(of.rank(of.targets, "findings", 1000), "Ranks <of> all")
    for word in ("guided", "natural", "limi", "critical difference", "Ranks &lt;of&gt; all"):
        assert word in drawn


def test_cells_carry_their_definition(monkeypatch):
    study = load_bench()
    cells = expand(study, "small")
    assert {c.benchmark for c in cells} == set(study.targets)
    one = next(c for c in cells if c.benchmark == "adult-sex.boosted")
    assert one.table == "adult"
    assert redefine(one, rules=True).digest() != one.digest()
    assert redefine(one, stamp="x").digest() != one.digest()
    # How a target is spoken of changes nothing.
    assert redefine(one, words="x", family="y", base="z").digest() == one.digest()
    # A recipe that makes another model by design does.
    before = one.digest()
    monkeypatch.setattr(RECIPES.get("estimator"), "REVISION", 2, raising=False)
    assert one.digest() != before


def redefine(cell, **changes):
    return dataclasses.replace(
        cell, extra={**cell.extra, "definition": {**cell.extra["definition"], **changes}}
    )


def test_a_cell_names_its_own_budgets_and_hangs_on_no_pattern():
    study = load_bench()
    sizes = {
        **study._scales["small"],
        "extra": {"budgets": [100], "deep": [900], "deep_seeds": 1, "deep_targets": ["credit-*"]},
    }
    cells = expand(dataclasses.replace(study, _scales={"small": sizes}), "small", 2)
    told = {(c.benchmark, c.seed): c.extra["budgets"] for c in cells if c.variant == "natural"}
    assert told["credit-sex.dnn", 0] == [100, 900]
    assert told["credit-sex.dnn", 1] == told["census-sex.dnn", 0] == [100]
    assert all(set(c.extra) == {"budgets", "definition"} for c in cells)
    # So that more of them for other targets leaves this one's results as they are.
    sizes["extra"] |= {"deep_targets": ["credit-*", "bank-*"]}
    more = expand(dataclasses.replace(study, _scales={"small": sizes}), "small", 2)
    changed = {a.benchmark for a, b in zip(cells, more, strict=True) if a.digest() != b.digest()}
    assert changed == {name for name in study.targets if name.startswith("bank-")}


def test_another_file_is_another_target(tmp_path):
    (tmp_path / "people.csv").write_text("a,b\n1,2\n")
    (tmp_path / "model.skops").write_bytes(b"one")
    (tmp_path / "mine.toml").write_text(
        """
[[targets]]
name = "ours"
recipe = "file"
table = "people.csv"
protected = ["a"]
settings = {model = "skops:model.skops", target = "b"}
"""
    )

    def digest():
        study = load_bench([tmp_path / "mine.toml"])
        return next(c for c in expand(study, "smoke") if c.benchmark == "ours").digest()

    seen = [digest()]
    (tmp_path / "model.skops").write_bytes(b"two")
    seen.append(digest())
    (tmp_path / "people.csv").write_text("a,b\n1,3\n")
    seen.append(digest())
    assert len({*seen}) == 3
    assert digest() == seen[-1]

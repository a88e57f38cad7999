"""Every study from its cells to its tables and figure, at the smallest scale."""

import os

import pytest

from lab import files as _files
from lab import page as _page
from lab import results as _results
from lab import run as _run
from lab.figures import figure
from lab.results import DONE
from lab.tables import tables


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    place = tmp_path_factory.mktemp("studies")
    before = os.environ.get("LIMI_CACHE")
    os.environ["LIMI_CACHE"] = str(place / "cache")
    try:
        wanted = [_files.load(name) for name in _files.names()]
        result = _run.run(wanted, scale="smoke", out=place, workers=2, kept=place / "kept")
    finally:
        if before is None:
            del os.environ["LIMI_CACHE"]
        else:
            os.environ["LIMI_CACHE"] = before
    return result, place


def test_every_cell_of_every_study_runs(ran):
    result, _ = ran
    assert result.problems == ()
    assert result.counts == {DONE: result.cells}


@pytest.mark.parametrize("name", _files.names())
def test_every_study_is_shown(ran, name):
    _, place = ran
    study = _files.load(name)
    results = _results.read(study, "smoke", place / "kept")
    for table in tables(study, results):
        assert all(len(row) == len(table.headings) for row in table.rows)
        assert not any("not run" in row for row in table.rows)
    assert "<svg" in figure(study, results)


def test_what_a_search_measures_agrees_with_itself(ran):
    _, place = ran
    for outcome in _results.read(_files.load("dnn"), "smoke", place).outcomes.values():
        measures = outcome.measures
        assert measures["unconfirmed"] == 0
        assert 0 < measures["findings"] <= measures["rows"] <= 1_500
        assert measures["rows"] <= measures["queries"]
        share = 1000 * measures["findings"] / measures["queries"]
        assert measures["per_thousand_queries"] == pytest.approx(share, abs=1e-3)
        assert measures["accuracy"] > 0.95
        natural = [v for k, v in measures.items() if "atn" in k and v is not None]
        assert all(0 < value <= 1 for value in natural)
        if measures.get("detection_boosted") is not None:
            assert 0.3 < measures["detection_boosted"] <= 1
            assert measures["distance"] > 0


def test_the_page_shows_every_study(ran):
    _, place = ran
    told = _page.pages(place / "kept")
    assert "Not run yet" not in "".join(told.values())
    # The paper's generator is not trained at this scale, so its column says that it was not run.
    listed = told["reproduction/conditions.md"]
    assert all(f"]({name}.md)" in listed for name in _files.names())
    assert {f"reproduction/{name}.md" for name in _files.names()} < set(told)


def test_a_variant_of_a_repair_has_its_own_recipe_and_share(ran):
    _, place = ran
    outcomes = _results.read(_files.load("repair-dnn"), "smoke", place).outcomes
    paper, best, pairs = (
        outcomes[f"credit-sex/{name}/0"].measures for name in ("limi", "limi-best", "limi-pairs")
    )
    assert paper["before"] == best["before"] == pairs["before"]
    assert paper["findings"] == best["findings"] == pairs["findings"]
    assert len({paper["added"], best["added"], pairs["added"]}) == 3
    # Pairs: a fifth of the table's 600 rows as findings, each with its partner, and nothing else.
    assert 0 < pairs["added"] <= 2 * 120


def test_a_control_is_another_training_than_the_target_s(ran):
    _, place = ran
    outcomes = _results.read(_files.load("repair-dnn"), "smoke", place).outcomes
    control = outcomes["credit-sex/control/0"].measures
    assert control["added"] == control["findings"] == 0
    after = {name: control[name] for name in control["before"]}
    assert after != control["before"]  # its seed is not the target's own


def test_repairs_side_by_side_start_from_one_model(ran):
    _, place = ran
    outcomes = _results.read(_files.load("repairs-rf"), "smoke", place).outcomes
    average, findings = (
        outcomes[f"credit-sex/{name}/0"].measures for name in ("average", "findings")
    )
    assert average["before"] == findings["before"]
    assert average["before"]["if_n"] > 0
    # No decision of an averaged model depends on the column; a trained one's may.
    assert average["if_n"] == average["if_o"] == 0
    assert average["findings"] == 0 < findings["findings"]

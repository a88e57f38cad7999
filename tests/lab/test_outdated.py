"""Kept cells that today's program would run again, and why."""

import dataclasses

import pytest

from lab import files as _files
from lab.cells import expand
from lab.files import Older, load
from lab.outdated import describe_outdated, find_older, find_outdated, take_marks
from lab.results import Results
from tests.lab.small import outcome

MEASURED = {
    "findings": 5_000,
    "rows": 200_000,
    "accuracy": 0.88,
    "seconds_before": 0.1,
    "per_row": 0.1,
    "curve": {},
    "one_apart": 0.5,
    "atn_07": 0.8,
    "atn_032": 0.8,
    "representative_atn": 0.8,
    "likeness": 0.8,
    "detection_logistic": 0.8,
    "detection_boosted": 0.8,
    "detection_svc": 0.8,
    "distance": 1.0,
}


def cell_of(variant):
    cells = expand(load("dnn"), "small")
    return next(c for c in cells if c.variant == variant and c.table == "census" and not c.seed)


def kept(cell, measures=MEASURED, **changes):
    """A result of the cell as an earlier program would have written it."""
    given = {"target": cell.target, **cell.budget}
    if cell.settings:
        given["settings"] = dict(cell.settings)
    if cell.generator:
        given["generator"] = cell.generator
    made = outcome(cell.name, **measures)
    made = dataclasses.replace(made, **{"given": given, "revision": cell.revision, **changes})
    return Results("dnn", "small", {cell.name: made})


def reason(cell, results, marks=None):
    (why,) = find_outdated(results, [cell], marks).values()
    return why


def test_a_cell_of_today_is_not_outdated():
    cell = cell_of("limi")
    assert find_outdated(kept(cell, digest=cell.digest()), [cell]) == {}


def test_measures_that_were_added_since_are_named():
    cell = cell_of("limi")
    fewer = {k: v for k, v in MEASURED.items() if k not in ("one_apart", "detection_svc")}
    assert reason(cell, kept(cell, fewer)) == (
        "settings as today's, but without measures that were added since (one_apart, detection_svc)"
    )
    # Few findings are not judged, so nothing of them is missing.
    few = {k: fewer[k] for k in ("seconds_before", "per_row", "curve")} | {"findings": 3}
    assert reason(cell, kept(cell, few)).endswith("(one_apart)")
    assert reason(cell, kept(cell)).startswith("settings as today's, and no measure is missing")


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"settings": {"n_latents": 7}}, "n_latents"),
        ({"max_rows": 7}, "max_rows"),
        ({"generator": "transport"}, "generator"),
        ({"settings": {"n_latents": 200_000, "step": 0.1}}, "step"),
    ],
)
def test_other_settings_are_named(changes, names):
    cell = cell_of("limi")
    (made,) = kept(cell).outcomes.values()
    given = {**made.given, **changes}
    assert reason(cell, kept(cell, given=given)) == f"other settings ({names})"


def test_measures_of_other_kinds_are_not_said_to_be_there():
    cell = next(c for c in expand(load("twins"), "small"))
    known = kept(cell, {"gains": 0.1})
    assert reason(cell, known) == "settings as today's; cells do not say what else was changed"


def test_where_a_cell_ran_is_no_setting():
    cell = cell_of("limi")
    (made,) = kept(cell).outcomes.values()
    given = {**made.given, "device": "cpu", "machine": "here"}
    assert reason(cell, kept(cell, given=given)).startswith("settings as today's")


def test_another_target_is_told_by_its_accuracy():
    cell = cell_of("limi")
    assert reason(cell, kept(cell), {("census", "dnn"): 0.88004}).startswith(
        "settings and target as today's"
    )
    assert reason(cell, kept(cell), {("census", "dnn"): 0.9}) == (
        "another target (accuracy 0.8800, and now 0.9000)"
    )


def test_today_s_targets_are_those_of_cells_that_are_up_to_date():
    cell = cell_of("limi")
    assert take_marks([(kept(cell), [cell])]) == {}
    assert take_marks([(kept(cell, digest=cell.digest()), [cell])]) == {("census", "dnn"): 0.88}


def test_a_revision_that_changes_small_budgets_alone_says_so():
    cell = cell_of("sg")
    told = "revision 1 of the method, which is now at 2"
    assert reason(cell, kept(cell, revision=1)) == (
        f"{told} and finds the same in budgets of 2,048 rows or more"
    )
    small = kept(cell, {"findings": 5, "rows": 400}, revision=1, given={"max_rows": 500})
    assert reason(cell, small) == told


def test_cells_are_counted_by_reason_and_variant():
    cell = cell_of("sg")
    results = kept(cell, revision=1)
    assert describe_outdated(results, {}) == ""
    assert describe_outdated(results, find_outdated(results, [cell])).startswith(
        "1 of the cells shown would be run again today: `sg` (1): revision 1"
    )


def test_cells_that_are_known_to_be_older_are_told_until_they_are_run_again():
    study = load("repair-dnn")
    old, new = outcome("census-sex/limi/0", if_o=0.1), outcome("census-sex/limi/1", if_m=0.1)
    other = outcome("census-sex/limi.ctgan/0", if_o=0.1)

    def found(*cells):
        return find_older(study, Results("repair-dnn", "small", {c.cell: c for c in cells}))

    assert list(found(old, new, other).values()) == [["limi"]]
    assert found(new, other) == {}


def test_what_is_known_of_cells_is_known_of_a_study_that_shows_them(monkeypatch):
    mark = Older(says="in these searches", variants=("limi",), lacks="curve")
    marked = dataclasses.replace(load("dnn"), older=(mark,))
    monkeypatch.setattr(_files, "load", lambda name: marked)
    old = outcome("census-sex/limi/0", atn_07=0.8)
    results = Results("dnn", "small", {old.cell: old})
    assert load("naturalness").uses == "dnn"
    assert find_older(load("naturalness"), results) == {"in these searches": ["limi"]}
    both = dataclasses.replace(load("naturalness"), older=(mark,))
    assert find_older(both, results) == {"in these searches": ["limi"]}
    assert find_older(load("rf"), results) == {}

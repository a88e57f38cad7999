"""Results of studies on disk: read whole, or refused in one sentence."""

import dataclasses

from lab import results as _results
from lab.cells import expand
from lab.files import load
from lab.results import DONE, Outcome, collect, join_makers, keep, read, write_cell
from tests.lab.small import ROOT, outcome


def test_kept_results_can_be_read_and_hold_no_findings():
    for path in (ROOT / "lab" / "studies" / "results").glob("*/*.json"):
        results = read(load(path.stem), path.parent.name, ROOT / "lab" / "studies" / "results")
        assert results.outcomes
        assert max(map(len, path.read_text(encoding="utf-8").splitlines())) < 3_000  # a cell each


def test_an_earlier_machine_is_named_while_one_of_its_cells_may_be_shown(tmp_path, monkeypatch):
    study, cells = load("dnn"), expand(load("dnn"), "smoke")[:2]

    def run_on(machine, some, says=True):
        monkeypatch.setattr(_results, "machine", lambda: {"processor": machine, "cores": 2})
        for cell in some:
            given = {"target": "dnn"} | ({"machine": machine} if says else {})
            done = Outcome(cell=cell.name, digest="d", status=DONE, given=given, measures={})
            write_cell(tmp_path, cell, done)
        keep(collect(study, "smoke", cells, tmp_path, tmp_path / "kept"), tmp_path / "kept")
        made = read(study, "smoke", tmp_path / "kept").made
        return [made["processor"], *(one["processor"] for one in made.get("earlier", ()))]

    assert run_on("old", cells, says=False) == ["old"]
    assert run_on("new", cells[:1]) == ["new", "old"]
    assert run_on("new", cells[:1]) == ["new", "old"]
    assert run_on("other", cells[1:]) == ["other", "new"]
    assert run_on("new", cells[1:]) == ["new"]


def of_machines(*names):
    return [
        dataclasses.replace(outcome(f"a/b/{n}"), given={"machine": m}) for n, m in enumerate(names)
    ]


def test_makers_are_named_once_and_for_as_long_as_they_have_cells():
    first, second, third = ({"processor": name, "cores": 2} for name in ("a", "b", "c"))
    fresh = first | {"earlier": [second]}
    kept = second | {"earlier": [first, third]}
    joined = first | {"earlier": [second, third]}
    assert join_makers(fresh, kept, of=of_machines("a", "b", "c")) == joined
    assert join_makers(joined, joined, of=of_machines("a", "b", "c")) == joined
    assert join_makers(fresh, kept, of=of_machines("a", "c")) == first | {"earlier": [third]}
    assert join_makers(fresh, kept, of=of_machines("a")) == first
    assert join_makers(fresh, kept, of=of_machines("a", None)) == joined  # it may be any of them
    assert join_makers(fresh, {}, of=of_machines("a", "b")) == fresh
    lost = [dataclasses.replace(one, status="failed") for one in of_machines("b", "c")]
    assert join_makers(fresh, kept, of=[*of_machines("a"), *lost]) == first  # they made no cell
    assert join_makers({}, of=[]) == {}


def test_makers_of_kept_results_are_named_once():
    for path in (ROOT / "lab" / "studies" / "results").glob("*/*.json"):
        results = read(load(path.stem), path.parent.name, ROOT / "lab" / "studies" / "results")
        assert results.made == join_makers(results.made, of=results.outcomes.values()), path

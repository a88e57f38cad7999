"""Results of studies on disk: read whole, or refused in one sentence."""

from limi.studies import _results
from limi.studies._cells import expand
from limi.studies._files import load
from limi.studies._results import DONE, Outcome, collect, keep, read, write_cell
from tests.studies.small import ROOT


def test_kept_results_can_be_read_and_hold_no_findings():
    for path in (ROOT / "studies" / "results").glob("*/*.json"):
        results = read(load(path.stem), path.parent.name, ROOT / "studies" / "results")
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

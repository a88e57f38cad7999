"""How fast row-by-row versions of methods are."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from lab import cells as _cells
from lab import files as _files
from lab.cells import Cell
from lab.files import paper_numbers
from lab.kinds import plain as _plain
from lab.workshop import Workshop
from limi.errors import InvalidInput, MissingCapability


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("made"))


def _cell(variant: str) -> Cell:
    cells = _cells.expand(_files.load("plain"), "smoke")
    return next(cell for cell in cells if cell.variant == variant)


@pytest.mark.parametrize("variant", ["adf", "limi"])
def test_rows_are_counted_as_they_are_checked(shop: Workshop, variant: str):
    cell = _cell(variant)
    told = _plain.measure(cell, shop)
    n = cell.extra["rows"]
    # A walk is not broken off, and three candidates of a latent are checked at most.
    assert n <= told["rows"] <= 3 * n
    assert told["loop_speed"] > 0
    assert told["loop_before"] == 0


def test_explanations_do_not_count_among_the_checks_of_expga(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
):
    """By a clock that ticks with each question: a check of two values asks three."""
    program, n_asked = _plain._program("expga"), 0

    def findings(method: Any, score: Any, *given: Any) -> Any:
        def ask(rows: Any) -> Any:
            nonlocal n_asked
            answers = score(rows)
            n_asked += 1
            return answers

        return program.findings(method, ask, *given)

    monkeypatch.setattr(_plain, "_program", lambda name: SimpleNamespace(findings=findings))
    monkeypatch.setattr(_plain.time, "process_time", lambda: float(n_asked))
    cell = _cell("expga")
    told = _plain.measure(cell, shop)
    assert told["rows"] == cell.extra["rows"]
    assert told["loop_speed"] == pytest.approx(1 / 3, abs=0.01)
    n_samples, n_explained = cell.settings["n_samples"], cell.settings["n_rows"]
    assert told["loop_before"] == n_samples - 1 + n_explained


def test_every_program_of_the_paper_s_tables_is_timed():
    for study in map(_files.load, ("dnn", "rf")):
        timed = {
            v.method for v in _files.load("plain").variants if (v.target or "dnn") == study.target
        }
        published = {
            name for line in paper_numbers(study.name)["findings"].values() for name in line
        }
        assert published == timed


def test_a_method_without_a_program_is_named(shop: Workshop):
    cell = dataclasses.replace(_cell("adf"), method="natural")
    with pytest.raises(InvalidInput, match="natural has no row-by-row version"):
        _plain.measure(cell, shop)


def test_without_the_tests_of_limi_it_says_where_to_run(monkeypatch: pytest.MonkeyPatch):
    def fail(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(_plain.importlib, "import_module", fail)
    with pytest.raises(MissingCapability, match="in the root of a checkout"):
        _plain._program("adf")

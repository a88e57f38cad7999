"""Studies expanded into cells, and the digest that tells whether a result still holds."""

import dataclasses
import re

import pytest

from lab import cells as _cells
from lab import files as _files
from lab.cells import Cell, expand
from lab.files import load
from lab.kinds.twins import DRAWN
from limi import data, generators, methods
from tests.lab.small import ALL, small_cell

FACES = re.compile("(faces|strokes)-(balanced|photographed)-[0-4]")


@pytest.mark.parametrize("name", ALL)
def test_every_study_expands_at_every_scale(name):
    study = load(name)
    known = {variant.name for variant in study.variants}
    for scale in _files.SCALES:
        cells = expand(study, scale)
        assert cells
        assert len({cell.name for cell in cells}) == len(cells)
        for cell in cells:
            assert cell.variant in known
            if study.kind == "images":
                assert FACES.fullmatch(cell.benchmark)
            else:
                assert set(cell.protected) <= {"age", "race", "sex"}
                assert cell.table in (*data.encodings(), *(DRAWN if study.kind == "twins" else ()))
            assert not set(cell.name) & set(" \\")
            assert len(cell.digest()) == 64  # settings and method fit each other


def test_a_study_that_shows_another_s_cells_has_none_of_its_own():
    mine, other = expand(load("naturalness"), "small"), expand(load("dnn"), "small")
    assert mine == other


def test_settings_of_a_pair_are_its_parts_own():
    cells = {cell.variant: cell for cell in expand(load("combination"), "smoke")}
    settings = cells["limi+adf"].settings
    assert settings["limi.n_latents"] == cells["limi+adf"].settings["limi.n_latents"] == 3_000
    assert settings["adf.exploit_steps"] == 20
    assert settings["n_seeds"] == 30
    # A budget of 0 is none, and only methods that need a generator have one.
    assert "max_rows" not in expand(load("queries"), "small")[0].budget
    assert cells["adf"].generator is None
    assert cells["limi+adf"].generator == "trees"


def test_a_cell_s_digest_changes_with_all_that_its_result_depends_on(monkeypatch):
    plain = small_cell().digest()
    assert plain == small_cell().digest()
    changed = [
        small_cell(seed=1),
        small_cell(benchmark="credit-age"),
        small_cell(target="rf"),
        small_cell(target_seed=1),
        small_cell(settings={"n_latents": 10}),
        small_cell(budget={"max_rows": 9}),
        small_cell(generator="transport"),
        small_cell(generator_settings={"max_bins": 8}),
        small_cell(generator_seed=4),
        small_cell(extras=()),
        small_cell(extra={"findings": 3}),
        small_cell(kind="densities"),
    ]
    assert len({plain, *(c.digest() for c in changed)}) == len(changed) + 1
    assert small_cell(study="other", scale="paper", variant="x").digest() == plain
    monkeypatch.setattr(_cells, "tools", lambda: {"numpy": "9.9"})
    assert small_cell().digest() == plain  # a result is one whatever it was computed with
    monkeypatch.setattr(_cells, "FORMAT", 99)
    assert small_cell().digest() != plain


def test_a_raised_revision_makes_cells_stale(monkeypatch):
    plain = small_cell()
    before = plain.digest()
    assert plain.revision == 1
    with monkeypatch.context() as change:
        change.setattr(methods.get("limi"), "revision", 2, raising=False)
        assert plain.revision == 2
        assert plain.digest() != before
    with monkeypatch.context() as change:
        offers = dataclasses.replace(generators.offers("trees"), revision=2)
        change.setattr(generators.get("trees"), "OFFERS", offers)
        assert plain.digest() != before
    assert plain.digest() == before
    # A pair's revision rises with either of its parts'.
    pair = next(c for c in expand(load("combination"), "smoke") if c.variant == "limi+adf")
    for part in ("limi", "adf"):
        with monkeypatch.context() as change:
            change.setattr(methods.get(part), "revision", 3, raising=False)
            assert pair.revision == 3
    assert pair.revision == 1


def test_a_scale_may_measure_more_than_the_others():
    small, paper = (expand(load("dnn"), scale, 1)[0] for scale in ("small", "paper"))
    assert "plausible" not in small.extras
    assert paper.extras == (*small.extras, "plausible")


def test_cells_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        small_cell().seed = 3
    assert Cell.__dataclass_params__.frozen

"""What several cells share is made once."""

import dataclasses
from types import SimpleNamespace

import numpy as np

from lab.workshop import Workshop
from limi.table.partners import complete
from limi.table.rows import uniform
from tests.lab.small import small_cell
from tests.table.ruled import RULED


def test_what_cells_share_is_made_once(tmp_path, monkeypatch):
    monkeypatch.setenv("LIMI_CACHE", str(tmp_path))
    from lab.workshop import needs_of

    cells = [
        small_cell(seed=s, benchmark=b, target="rf")
        for b in ("credit-sex", "credit-age")
        for s in (0, 1)
    ]
    cells = [dataclasses.replace(c, generator_seed=c.seed) for c in cells]
    first, second = needs_of(cells)
    assert [need.what for need in first] == ["model", "generator", "generator"]
    assert [need.cell.benchmark for need in second] == ["credit-sex", "credit-age"]
    shop = Workshop(tmp_path / "made")
    for need in (*first, *second):
        assert not shop.has(need)
        shop.make(need)
        assert shop.has(need)
    made = {p: p.stat().st_mtime_ns for p in (tmp_path / "made").rglob("*") if p.is_file()}
    assert len(made) == 6  # two generators with their facts, two facts of targets
    for need in (*first, *second):
        shop.make(need)
    assert made == {p: p.stat().st_mtime_ns for p in made}
    facts = shop.facts(cells[0])
    assert facts["accuracy"] > 0.95
    assert facts["real_rate_rows"] == 600


def test_derived_columns_are_computed_by_the_generator_that_cells_share(tmp_path, monkeypatch):
    rows = complete(RULED, uniform(RULED, 300, np.random.default_rng(0)))
    ruled = SimpleNamespace(schema=RULED, rows=rows)
    monkeypatch.setattr(Workshop, "problem", lambda shop, cell: ruled)
    cell = small_cell(kind="bench", extra={"definition": {"recipe": "file"}})
    for _ in ("fitted", "read again"):
        made = Workshop(tmp_path / "made").generator(cell)
        drawn = made.decode(made.sample_latents(200, np.random.default_rng(1)))
        np.testing.assert_array_equal(drawn, complete(RULED, drawn))
        assert len(np.unique(drawn, axis=0)) > 50

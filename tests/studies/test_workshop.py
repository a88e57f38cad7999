"""What several cells share is made once."""

import dataclasses

from limi.studies._workshop import Workshop
from tests.studies.small import small_cell


def test_what_cells_share_is_made_once(tmp_path, monkeypatch):
    monkeypatch.setenv("LIMI_CACHE", str(tmp_path))
    from limi.studies._workshop import needs_of

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

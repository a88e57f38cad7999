"""Rows from where decisions change."""

from __future__ import annotations

import numpy as np
import pytest

from limi import studies
from limi.decisions import favors
from limi.errors import InvalidInput
from limi.studies import _places
from limi.studies._cells import Cell
from limi.studies._workshop import Workshop

rng = np.random.default_rng


def test_ends_of_the_edge_lie_on_either_side_of_a_known_plane():
    normal = np.array([0.6, 0.8, 0.0])
    drawn = rng(0).normal(size=(4_000, 3))
    favored = drawn @ normal + 0.3 > 0
    up, down = drawn[favored][:500], drawn[~favored][:500]
    high, low = _places.bisect(up, down, lambda some: some @ normal + 0.3 > 0, 12)
    above, below = high @ normal + 0.3, low @ normal + 0.3
    assert (above > 0).all()
    assert (below <= 0).all()
    # Twelve steps leave a four-thousandth of a quarter turn, and no way is faster than its ends.
    reach = np.maximum(np.linalg.norm(up, axis=1), np.linalg.norm(down, axis=1))
    assert (above - below <= 2 * reach * (np.pi / 2) / 2**12).all()


def test_points_of_the_way_are_as_normal_as_its_ends():
    up, down = rng(1).normal(size=(2, 20_000, 4))
    high, _ = _places.bisect(up, down, lambda some: rng(2).random(len(some)) < 0.5, 12)
    assert np.abs(high.mean(axis=0)).max() < 0.05
    assert np.abs(high.std(axis=0) - 1).max() < 0.05


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("made"))


def _cell(variant: str) -> Cell:
    cells = studies.expand(studies.load("boundary"), "smoke")
    return next(cell for cell in cells if cell.variant == variant)


def test_rows_of_the_two_ends_are_decided_as_their_end_is(shop: Workshop):
    shares = {}
    for variant in ("edge-up", "edge-down"):
        cell = _cell(variant)
        placed = _places.place_rows(cell, shop)
        score = shop.problem(cell).target.score
        shares[variant] = favors(score(placed.rows)).mean()
        assert len(placed.findings) <= len(placed.rows) <= cell.budget["max_rows"]
    assert shares == {"edge-up": 1.0, "edge-down": 0.0}


def test_a_plane_at_its_best_offset_flips_as_often_as_where_it_was(shop: Workshop):
    cell = _cell("offset")
    placed = _places.place_rows(cell, shop)
    moved = len(placed.findings) / len(placed.rows)
    generator, plane = shop.generator(cell), _places._plane(cell, shop)
    assert generator is not None
    assert plane is not None
    rows = generator.decode(plane.project(generator.sample_latents(1_500, rng(3))))
    assert moved >= _places._flips(shop.problem(cell), rows).mean() - 0.05
    assert abs(placed.facts["offset"]) <= 3


def test_an_unknown_place_is_named(shop: Workshop):
    import dataclasses

    cell = dataclasses.replace(_cell("offset"), extra={"place": "nowhere"})
    with pytest.raises(InvalidInput, match="rows at 'nowhere'"):
        _places.place_rows(cell, shop)

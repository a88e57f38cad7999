"""Rows from where decisions change."""

from __future__ import annotations

import dataclasses
import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lab import cells as _cells
from lab import files as _files
from lab.cells import Cell
from lab.kinds import _places
from lab.workshop import Workshop
from limi.decisions import favors
from limi.errors import InvalidInput

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
    cells = _cells.expand(_files.load("boundary"), "smoke")
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
    cell = dataclasses.replace(_cell("offset"), extra={"place": "nowhere"})
    with pytest.raises(InvalidInput, match="rows at 'nowhere'"):
        _places.place_rows(cell, shop)


def test_picked_rows_are_natural_latents_as_they_were_drawn(shop: Workshop):
    cell = _cell("picked")
    generator, plane = shop.generator(cell), _places.fit_plane(cell, shop)
    assert generator is not None
    n = int(cell.budget["max_rows"])
    latents, asked, _ = _places._near_plane(cell, shop)
    drawn = generator.sample_latents(10 * n, np.random.default_rng([cell.seed, 17]))
    assert {row.tobytes() for row in latents} <= {row.tobytes() for row in drawn}
    assert len(latents) == n
    assert asked == cell.settings["n_latents"]
    # No other latent that was drawn lies nearer.
    distances = np.sort(np.abs(plane.distance(drawn)))
    np.testing.assert_array_equal(np.sort(np.abs(plane.distance(latents))), distances[:n])


def test_rows_where_a_network_is_unsure_flip_more_often_than_natural_ones(shop: Workshop):
    cell = _cell("network")
    generator = shop.generator(cell)
    assert generator is not None
    placed = _places.place_rows(cell, shop)
    natural = generator.decode(generator.sample_latents(1_500, rng(3)))
    flips = _places._flips(shop.problem(cell), natural).mean()
    assert len(placed.findings) / len(placed.rows) > flips - 0.03


def test_the_two_sides_lie_a_step_from_the_plane(shop: Workshop):
    for variant, sign in (("up", 1), ("down", -1)):
        cell = _cell(variant)
        plane = _places.fit_plane(cell, shop)
        latents, _, facts = _places._beside_plane(cell, shop)
        np.testing.assert_allclose(plane.distance(latents), sign * 0.3, atol=1e-4)
        assert facts == {"offset": sign * 0.3}


class _Stern:
    """The shop with a target that decides for three in ten natural rows, and is seldom sure."""

    def __init__(self, shop: Workshop) -> None:
        generator, self._problem = shop.generator(_cell("plane")), shop.problem(_cell("plane"))
        assert generator is not None
        self._generator = generator
        natural = generator.decode(generator.sample_latents(20_000, rng(5)))
        self._zero = np.quantile(self._logits(natural), 0.7)

    def _logits(self, rows):
        score = np.clip(self._problem.target.score(rows), 1e-12, 1 - 1e-12)
        return np.log(score / (1 - score))

    def score(self, rows):
        return 1 / (1 + np.exp((self._zero - self._logits(rows)) / 5))

    def generator(self, cell: Cell):
        return self._generator

    def problem(self, cell: Cell):
        target = SimpleNamespace(score=self.score, rule=self._problem.target.rule)
        return SimpleNamespace(schema=self._problem.schema, target=target, rows=self._problem.rows)


@pytest.fixture(scope="module")
def stern(shop: Workshop) -> Any:
    return _Stern(shop)


def _labelled(variant: str, **extra: Any) -> Cell:
    cell = _cell(variant)
    settings = {**cell.settings, "n_latents": 20_000, "per_class": 3_000}
    return dataclasses.replace(cell, settings=settings, extra={**cell.extra, **extra})


_PARTS = [*itertools.product(("sure", "all"), (True, False), ("hinge", "logistic"))]


@pytest.mark.parametrize(("latents", "balanced", "loss"), _PARTS)
def test_a_refitted_plane_is_fitted_to_the_latents_and_by_the_loss_that_are_named(
    latents, balanced, loss, stern: Any, monkeypatch: pytest.MonkeyPatch
):
    given = {}

    def fit(drawn, favored, *, C):
        given["hinge"] = drawn, favored

    def calibrate(batches, *, C):
        [given["logistic"]] = batches()

    monkeypatch.setattr(_places, "fit", fit)
    monkeypatch.setattr(_places, "calibrate", calibrate)
    _places.refit_plane(
        _labelled("unbalanced", latents=latents, balanced=balanced, loss=loss), stern
    )
    [(used, (drawn, favored))] = given.items()
    assert used == loss
    score = stern.score(stern.generator(None).decode(drawn))
    assert (favors(score) == favored).all()
    is_sure = np.maximum(score, 1 - score) > 0.7
    assert is_sure.all() == (latents == "sure")
    if balanced:
        assert len(drawn) == 2 * favored.sum() == 6_000
    else:
        assert favored.mean() < 0.4
        assert (len(drawn) == 20_000) == (latents == "all")


@pytest.mark.parametrize(("latents", "balanced", "loss"), _PARTS)
def test_it_is_balancing_that_moves_the_plane_of_a_target_that_favors_few(
    latents, balanced, loss, stern: Any
):
    paper, calibrated = (_places.fit_plane(_labelled(of), stern) for of in ("plane", "calibrated"))
    assert calibrated.offset < paper.offset - 0.3
    made = _places.refit_plane(
        _labelled("unbalanced", latents=latents, balanced=balanced, loss=loss), stern
    )
    assert made.normal @ paper.normal > 0.97  # fitted to other latents, so not the same
    near, far = (paper, calibrated) if balanced else (calibrated, paper)
    assert abs(made.offset - near.offset) < abs(made.offset - far.offset) / 2


def test_rows_of_a_refitted_plane_lie_on_it(shop: Workshop):
    cell = _cell("unbalanced")
    latents, asked, _ = _places._on_refitted_plane(cell, shop)
    assert np.abs(_places.refit_plane(cell, shop).distance(latents)).max() < 1e-4
    assert asked == cell.settings["n_latents"]
    assert len(latents) == cell.budget["max_rows"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"latents": "Sure"}, "latents is 'Sure'; it must be sure or all"),
        ({"loss": "logit"}, "loss is 'logit'; it must be hinge or logistic"),
    ],
)
def test_a_misspelled_part_of_a_fit_is_refused(given, words, shop: Workshop):
    with pytest.raises(InvalidInput, match=words):
        _places.refit_plane(_labelled("unbalanced", **given), shop)

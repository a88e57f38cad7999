"""Planes in latent space: mirrors, directions that hold something, and what is refused."""

import numpy as np
import pytest

from limi.errors import InvalidInput
from limi.images.planes import condition, fit_plane, mirror
from limi.search.boundary import Boundary


@pytest.fixture
def latents():
    return np.random.default_rng(0).standard_normal((50, 6))


def plane(rng, dim=6):
    normal = rng.standard_normal(dim)
    return Boundary(normal / np.linalg.norm(normal), 0.7)


def test_a_mirror_turns_the_distance_around_and_twice_is_nothing(latents):
    protected = plane(np.random.default_rng(1))
    there = mirror(protected, latents)
    assert np.allclose(protected.distance(there), -protected.distance(latents))
    assert np.allclose(mirror(protected, there), latents)
    beside = latents - np.outer(latents @ protected.normal, protected.normal)
    beside_there = there - np.outer(there @ protected.normal, protected.normal)
    assert np.allclose(beside, beside_there)


def test_a_mirror_changes_the_targets_distance_by_the_planes_angle(latents):
    rng = np.random.default_rng(2)
    protected, target = plane(rng), plane(rng)
    moved = target.distance(mirror(protected, latents)) - target.distance(latents)
    cosine = protected.normal @ target.normal
    assert np.allclose(moved, -2 * protected.distance(latents) * cosine)
    free = condition(target.normal, [protected.normal])
    upright = Boundary(free, 0.1)
    assert np.allclose(upright.distance(mirror(protected, latents)), upright.distance(latents))


def test_a_conditioned_mirror_crosses_as_far_and_keeps_what_is_held(latents):
    rng = np.random.default_rng(3)
    protected, truth = plane(rng), plane(rng)
    along = condition(protected.normal, [truth.normal])
    there = mirror(protected, latents, along)
    assert np.allclose(protected.distance(there), -protected.distance(latents))
    assert np.allclose(truth.distance(there), truth.distance(latents))


def test_the_same_plane_cannot_be_held_and_crossed():
    normal = plane(np.random.default_rng(4)).normal
    with pytest.raises(InvalidInput, match="hold something else"):
        condition(normal, [normal])


def test_a_plane_finds_the_direction_and_the_slope_of_a_linear_scorer():
    rng = np.random.default_rng(5)
    latents = rng.standard_normal((3000, 6))
    slope = np.array([2.0, 0, -1, 0, 0, 0.5])
    scores = 1 / (1 + np.exp(-(latents @ slope + 0.3)))
    found = fit_plane("target", latents, scores)
    assert found.boundary.normal @ slope / np.linalg.norm(slope) > 0.999
    assert np.allclose(found.slope, slope, atol=0.05)
    assert found.auc > 0.999


def test_a_scorer_that_always_says_the_same_has_no_plane(latents):
    with pytest.raises(InvalidInput, match="says yes to all 50 images"):
        fit_plane("target", latents, np.full(50, 0.9))

"""Planes in latent space, and the ways across the protected one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.decisions import favors
from limi.errors import InvalidInput
from limi.images._base import logits
from limi.search import boundary
from limi.search.boundary import Boundary
from limi.types import Latents, Scores

__all__ = ["Plane", "Vector", "condition", "fit_plane", "mirror", "slope_along"]

Vector = NDArray[np.float64]

_SURE = 0.7  # a score beyond it, or below 1 less it, is a clear answer
_FEWEST = 20  # clear answers of each kind that a plane is fitted on
_STEEPEST = 8.0  # logits beyond it are saturated and say nothing about the slope


@dataclass(frozen=True)
class Plane:
    """Where a scorer is undecided, as a plane; and how well the plane says what the scorer does."""

    name: str
    boundary: Boundary
    slope: Vector  # of the scorer's logit, by least squares
    auc: float  # of the distance from the plane against the scorer's answer


def fit_plane(name: str, latents: Latents, scores: Scores) -> Plane:
    """The plane of a scorer's answers, fitted on the clear ones as the paper does it.

    Both answers weigh the same: of the rarer one latents are repeated in turn. InvalidInput where
    only one answer occurs.
    """
    yes = favors(scores)
    if yes.all() or not yes.any():
        word = "yes" if yes.all() else "no"
        raise InvalidInput(
            f"the {name} says {word} to all {len(yes):,} images of the generator, so no plane in "
            f"its latent space separates the two answers; check the {name}, or use a generator "
            "that varies more"
        )
    up, down = np.flatnonzero(scores > _SURE), np.flatnonzero(scores < 1 - _SURE)
    if min(len(up), len(down)) < _FEWEST:
        up, down = np.flatnonzero(yes), np.flatnonzero(~yes)
    most = max(len(up), len(down))
    chosen = np.concatenate([np.resize(up, most), np.resize(down, most)])
    points = np.asarray(latents, dtype=np.float64)
    plane = boundary.fit(points[chosen], yes[chosen])
    steep = np.clip(logits(scores), -_STEEPEST, _STEEPEST)
    inputs = np.column_stack([points, np.ones(len(points))])
    slope = np.asarray(np.linalg.lstsq(inputs, steep, rcond=None)[0][:-1], dtype=np.float64)
    return Plane(name, plane, slope, boundary.auc(plane.distance(points), yes))


def condition(normal: Vector, held: Sequence[Vector]) -> Vector:
    """The unit direction nearest to a normal along which what is held does not change.

    Never hold the decision's own normal: what the decision depends on would be taken out of the
    question.
    """
    direction = np.asarray(normal, dtype=np.float64)
    if held:
        basis, _ = np.linalg.qr(np.stack(held, axis=1))
        direction = direction - basis @ (basis.T @ direction)
    length = float(np.linalg.norm(direction))
    if length < 1e-6:
        raise InvalidInput(
            "the protected attribute cannot be separated from what is held: their planes in "
            "latent space coincide; hold something else"
        )
    return direction / length


def mirror(plane: Boundary, latents: Latents, direction: Vector | None = None) -> Latents:
    """Latents at the same distance on the other side, along the plane's normal or a direction."""
    way = plane.normal if direction is None else direction
    steps = -2 * plane.distance(latents) / float(way @ plane.normal)
    moved: Latents = latents + steps[:, None] * way
    return moved


def slope_along(plane: Plane, direction: Vector) -> float:
    """Logits of a scorer per step along a direction; InvalidInput where there is no slope."""
    slope = float(plane.slope @ direction)
    if not slope > 1e-9:
        raise InvalidInput(
            f"the {plane.name} does not increase along its own direction once the rest is held; "
            "hold less, or check its labels"
        )
    return slope

"""How natural a generator's images are, and whether it copies the photographs it learned from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.images._base import ImageArray, ImageGenerator, as_array, check_decoded
from limi.images.attributes import edges
from limi.types import Mask

__all__ = ["Quality", "frechet", "judge_generator", "thumbnails"]

_DRAWN = 1000
_FEATURES = 32
_THUMBNAIL = 16  # pixels of a side
_NEAR = 0.05  # share of held-out images that lie nearer to a training image than the bar
_FEWEST = 20


@dataclass(frozen=True)
class Quality:
    """Distances between generated, held-out and training images."""

    distance: float  # of generated from held-out images
    floor: float  # of training images from held-out ones
    copies: float  # share nearer to a training image than 5 % of held-out ones are
    n_held_out: int


def judge_generator(
    generator: ImageGenerator, images: ImageArray, held_out: Mask, rng: np.random.Generator
) -> Quality | None:
    """Held against images that it has not seen; None where there are too few of them."""
    seen, unseen = images[~held_out], images[held_out]
    if min(len(seen), len(unseen)) < _FEWEST:
        return None
    latents = generator.sample_latents(_DRAWN, rng)
    drawn = as_array(check_decoded(generator.decode(latents), _DRAWN, "the generator"))
    if drawn.shape[1:] != images.shape[1:]:
        return None
    features = edges(images).astype(np.float64)
    centre = features[~held_out].mean(axis=0)
    _, _, ways = np.linalg.svd(features[~held_out] - centre, full_matrices=False)
    ways = ways[: min(_FEATURES, len(unseen) // 2)].T

    def coordinates(some: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((some - centre) @ ways)

    there = coordinates(features[held_out])
    made = coordinates(edges(drawn).astype(np.float64))
    thumbs = [thumbnails(some) for some in (seen, unseen, drawn)]
    bar = float(np.quantile(_nearest(thumbs[1], thumbs[0]), _NEAR))
    return Quality(
        frechet(made, there),
        frechet(coordinates(features[~held_out]), there),
        float((_nearest(thumbs[2], thumbs[0]) < bar).mean()),
        len(unseen),
    )


def frechet(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Frechet's distance of the normal distributions of two samples: 0 where they are the same."""
    means = one.mean(axis=0) - other.mean(axis=0)
    first, second = (np.cov(some, rowvar=False) for some in (one, other))
    values, vectors = np.linalg.eigh(np.atleast_2d(first))
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    both = np.linalg.eigvalsh(root @ np.atleast_2d(second) @ root)
    spread = np.trace(np.atleast_2d(first)) + np.trace(np.atleast_2d(second))
    return max(0.0, float(means @ means + spread - 2 * np.sqrt(np.maximum(both, 0)).sum()))


def thumbnails(images: ImageArray) -> NDArray[np.float64]:
    """(n, cells): small grey copies."""
    n, height, width = images.shape[:3]
    rows, columns = min(_THUMBNAIL, height), min(_THUMBNAIL, width)
    grey = images.mean(axis=3)[:, : rows * (height // rows), : columns * (width // columns)]
    box = (n, rows, height // rows, columns, width // columns)
    return np.asarray(grey.reshape(box).mean(axis=(2, 4)).reshape(n, -1))


def _nearest(some: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared distance of each from the nearest of the others."""
    squares = (some**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * some @ others.T
    return np.asarray(squares.min(axis=1))

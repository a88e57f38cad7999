"""Eigenfaces: images as a mean and the directions in which they vary most; numpy alone.

A latent is a point on those directions, each in units of its own spread, so that latents are
standard normal numbers. Decoding is one matrix product: a hundred and fifty directions make several
thousand images per second on one core.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, InvalidInput
from limi.generators._checks import check_latents
from limi.generators._state import Arrays, facts_of, require
from limi.images._base import ImageArray, parts
from limi.types import Latents

__all__ = ["Eigenfaces", "Settings", "fit", "from_state"]

_LARGEST = 1024  # pixels of a side
_FLAT = 1e-4  # of full light: a direction in which images vary less is rounding


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a user may set."""

    components: int = 150  # directions at most

    def __post_init__(self) -> None:
        if not 1 <= self.components <= 10_000:
            raise InvalidInput(f"components is {self.components}; it must lie between 1 and 10,000")


@dataclass(frozen=True)
class Eigenfaces:
    """mean + (latent * spread) @ directions."""

    mean: NDArray[np.float32]  # (pixels,) in [0, 1]
    directions: NDArray[np.float32]  # (components, pixels), unit and orthogonal
    spread: NDArray[np.float32]  # (components,), falling
    shape: tuple[int, int]
    settings: Settings = Settings()
    kind: ClassVar[str] = "eigenfaces"

    @property
    def latent_dim(self) -> int:
        """One number per direction."""
        return len(self.spread)

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        """Standard normal numbers."""
        return rng.standard_normal((n, self.latent_dim))

    def decode(self, latents: Latents) -> ImageArray:
        """One image for each latent."""
        points = check_latents(latents, self.latent_dim).astype(np.float32) * self.spread
        images = np.empty((len(points), *self.shape, 3), dtype=np.uint8)
        for part in parts(len(points)):
            light = points[part] @ self.directions
            light += self.mean
            np.clip(light, 0.0, 1.0, out=light)
            light *= 255
            light += 0.5
            images[part] = light.astype(np.uint8).reshape(-1, *self.shape, 3)
        return images

    def encode(self, images: ImageArray) -> Latents:
        """The latents whose images are nearest."""
        latents = np.empty((len(images), self.latent_dim), dtype=np.float32)
        for part in parts(len(images)):
            light = images[part].reshape(len(images[part]), -1).astype(np.float32) / 255
            latents[part] = (light - self.mean) @ self.directions.T / self.spread
        return latents

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a file keeps: arrays, and facts that JSON can hold."""
        arrays = {
            "mean": self.mean.reshape(*self.shape, 3),
            "directions": self.directions,
            "spread": self.spread,
        }
        return arrays, {"settings": asdict(self.settings), "notes": []}


def fit(
    images: ImageArray, rng: np.random.Generator, *, settings: Settings | None = None
) -> Eigenfaces:
    """The eigenfaces of images and of their mirror images.

    `rng` draws nothing: the directions are exact. It stands here because other generators need it.
    """
    settings = settings or Settings()
    height, width = images.shape[1:3]
    if max(height, width) > _LARGEST:
        raise BadTable(
            f"the images are {width} x {height}; eigenfaces take up to {_LARGEST} pixels per side, "
            "so make them smaller with --size"
        )
    light = images.reshape(len(images), -1).astype(np.float32) / 255
    # A face and its mirror image are both natural, and the mean of both is symmetric. The even and
    # the odd half of each image are solved apart, as two small problems instead of a large one.
    turned = light.reshape(-1, height, width, 3)[:, :, ::-1].reshape(light.shape)
    even, odd = (light + turned) / 2, (light - turned) / 2
    mean = even.mean(axis=0)
    found = [_principal(even - mean), _principal(odd)]
    spread = np.concatenate([one[0] for one in found])
    directions = np.concatenate([one[1] for one in found])
    order = np.argsort(-spread, kind="stable")[: settings.components]
    order = order[spread[order] > _FLAT]
    if not len(order):
        raise BadTable("all images are the same, so there is nothing to learn from them")
    return Eigenfaces(mean, directions[order], spread[order], (height, width), settings)


def _principal(centred: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Spreads and unit directions, from the products of images with each other."""
    n = len(centred)
    values, vectors = np.linalg.eigh((centred @ centred.T).astype(np.float64))
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > max(float(values[0]) * 1e-9, n * _FLAT**2)
    lengths = np.sqrt(values[kept])
    directions = (vectors[:, kept] / lengths).T.astype(np.float32) @ centred
    # Which of two opposite directions is found is the solver's whim; the largest cell decides.
    top = np.abs(directions).argmax(axis=1) if len(directions) else np.empty(0, dtype=int)
    signs = np.sign(directions[np.arange(len(directions)), top])
    return (lengths / np.sqrt(n)).astype(np.float32), directions * signs[:, None]


def from_state(arrays: dict[str, Any], facts: Any, *, device: str = "cpu") -> Eigenfaces:
    """The eigenfaces of a file."""
    settings, _ = facts_of(facts, Settings)
    held = Arrays(arrays)
    spread = held.floats("spread", None, dtype=np.float32)
    mean = held.floats("mean", None, None, 3, dtype=np.float32)
    directions = held.floats("directions", len(spread), mean.size, dtype=np.float32)
    held.end()
    require(len(spread) > 0 and mean.size > 0, "it has no directions")
    require(max(mean.shape) <= _LARGEST, "its images are too large")
    require(bool((spread > 0).all()), "a spread is not above 0")
    require(bool((np.abs(directions) <= 1.0001).all()), "a direction is longer than 1")
    shape = (mean.shape[0], mean.shape[1])
    return Eigenfaces(mean.reshape(-1), directions, spread, shape, settings)

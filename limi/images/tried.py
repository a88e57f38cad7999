"""Files of scorers and generators of images, tried in a process of their own before they enter.

Networks and graphs are read by native code that does not look twice; see `limi.models.trial`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limi.models import trial

__all__ = ["try_generator", "try_scorer"]

_IMAGES = 8  # that a scorer is asked about
_LIBRARIES = {"onnx": "onnxruntime", "torch": "torch"}


@dataclass(frozen=True)
class _Scorer:
    """A scorer's file, and the size of images that it is asked about."""

    uri: str
    name: str
    shape: tuple[int, ...]
    trust_pickle: bool

    @property
    def asked(self) -> str:
        return f"{_IMAGES} images"

    def run(self) -> None:
        from limi.images._base import ask
        from limi.images.targets import open_scorer

        scorer = open_scorer(self.uri, self.name, trust_pickle=self.trust_pickle)
        rng = np.random.default_rng(0)
        ask(scorer, rng.integers(0, 256, (_IMAGES, *self.shape), dtype=np.uint8), self.name)


@dataclass(frozen=True)
class _Gan:
    """A checkpoint of a progressive GAN."""

    uri: str

    @property
    def asked(self) -> str:
        return "one latent"

    def run(self) -> None:
        from limi.images import pggan

        made = pggan.load(self.uri.partition(":")[2])
        made.decode(np.ones((1, made.latent_dim), dtype=np.float32))


def try_scorer(uri: str, name: str, shape: tuple[int, ...], *, trust_pickle: bool) -> None:
    """Try the scorer at `KIND:PLACE`; BadModel where its file crashes what reads it.

    Functions are the user's own, and scorers that limi wrote are arrays: they pass untried.
    """
    library = _LIBRARIES.get(uri.partition(":")[0])
    if library is not None:
        trial.attempt(_Scorer(uri, name, shape, trust_pickle), library)


def try_generator(uri: str) -> None:
    """Try the progressive GAN at `pggan:FILE`."""
    trial.attempt(_Gan(uri), "torch")

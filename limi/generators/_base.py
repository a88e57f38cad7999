"""What every generator offers, and how it is kept in a file.

A generator maps latent vectors to rows of a schema. Decoding is a function, never a draw: the
same latent gives the same row in any batch, on every call, and after save and load.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from limi.generators._state import FORMAT
from limi.system.writing import Content
from limi.table.schema import Schema
from limi.types import Latents, Rows, Scores

__all__ = [
    "Encoder",
    "Generator",
    "GeneratorOffers",
    "OnStep",
    "WithDensity",
    "WithTensors",
    "packed",
]

OnStep: TypeAlias = Callable[[float, str], None]
"""Called with the fraction of the work done, and a few words."""


@dataclass(frozen=True, kw_only=True)
class GeneratorOffers:
    """What a generator can do, known before one is fitted: `OFFERS` in its module.

    What is not declared is not assumed.
    """

    library: str | None = None
    """The package that fitting and reading it need beside limi's own."""

    quick: bool = False
    """It is fitted in seconds, so that a repair may fit another one to draw fresh people from."""

    has_encoder: bool = False
    """What it makes is an `Encoder`."""

    in_order: bool = False
    """Its `Settings` take an `order` of columns, and a cell depends on latents and cells before it
    alone: with an encoder it makes twins (`limi.twins`)."""

    on_device: bool = False
    """What it makes is a `WithTensors`, and can stand on a GPU."""

    revision: int = 1
    """Raised with every change by design that makes the same table, settings and seed a generator
    of other rows; results of studies that used an earlier one are then run again."""


@runtime_checkable
class Generator(Protocol):
    """A map from a latent space to rows."""

    kind: ClassVar[str]

    @property
    def schema(self) -> Schema:
        """What its rows hold."""
        ...

    @property
    def latent_dim(self) -> int:
        """Dimensions of the latent space."""
        ...

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        """(n, latent_dim): latents whose rows follow the table; n may be split without effect."""
        ...

    def decode(self, latents: Latents) -> Rows:
        """One row per latent."""
        ...

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON-ready facts from which the module's `from_state` makes it again."""
        ...


@runtime_checkable
class Encoder(Protocol):
    """A generator that finds latents of given rows."""

    def encode(self, rows: Rows, rng: np.random.Generator) -> Latents:
        """Latents that decode to these rows."""
        ...


@runtime_checkable
class WithDensity(Protocol):
    """A generator that knows how likely a row is."""

    def log_prob(self, rows: Rows) -> Scores:
        """Natural logarithm of each row's probability."""
        ...


@runtime_checkable
class WithTensors(Protocol):
    """A generator that also works in torch tensors, on the device where it lives."""

    @property
    def latent_dim(self) -> int:
        """Dimensions of the latent space."""
        ...

    @property
    def device(self) -> Any:
        """That device."""
        ...

    def latents_at(self, seed: int, numbers: Any) -> Any:
        """The latents of these numbers in the stream of a seed; the same on every device."""
        ...

    def decode_tensor(self, latents: Any) -> Any:
        """(n, columns) float64 codes, one row per latent."""
        ...


def packed(arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Content:
    """A generator's file: plain arrays and a JSON head; equal generators give equal bytes."""
    head = {"format": FORMAT, **facts}

    def pack(place: BinaryIO) -> None:
        with zipfile.ZipFile(place, "w", zipfile.ZIP_STORED) as file:
            file.writestr(_member("generator.json"), json.dumps(head))
            for name, array in arrays.items():
                buffer = io.BytesIO()
                np.save(buffer, array, allow_pickle=False)
                file.writestr(_member(f"{name}.npy"), buffer.getvalue())

    return pack


def _member(name: str) -> zipfile.ZipInfo:
    """Without the time of day, which is not part of a generator."""
    member = zipfile.ZipInfo(name)
    member.external_attr = 0o644 << 16
    return member

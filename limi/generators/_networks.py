"""What every generator of torch networks does alike, whatever its networks are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from limi.generators._counter_rng import normals
from limi.generators._training import Tensor, decode_array, decode_rows
from limi.table.schema import Schema
from limi.types import Latents, Rows

__all__ = ["NetworkOnDevice", "NormalLatents"]


class NetworkOnDevice(ABC):
    """Decodes in chunks on its device."""

    schema: Schema
    device: Any

    @property
    @abstractmethod
    def latent_dim(self) -> int:
        """Dimensions of the latent space."""

    @abstractmethod
    def _decode_chunk(self, latents: Tensor) -> Tensor:
        """(n, columns) float64 codes of latents on the device."""

    def decode(self, latents: Latents) -> Rows:
        """One row per latent, in chunks of one size; what stands beside a latent plays no part."""
        return decode_array(
            latents, self.latent_dim, len(self.schema), self.device, self._decode_chunk
        )

    def decode_tensor(self, latents: Tensor) -> Tensor:
        """(n, columns) float64 codes on the device, of latents on it."""
        return decode_rows(latents, len(self.schema), self._decode_chunk)


class NormalLatents(NetworkOnDevice):
    """Has latents of standard normal numbers and nothing else."""

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        """(n, latent_dim) float32: standard normal numbers."""
        return rng.standard_normal((n, self.latent_dim), dtype=np.float32)

    def sample_latents_tensor(self, n: int, generator: Any) -> Tensor:
        """The same on the generator's device, from a torch stream of that device."""
        import torch

        return torch.randn(n, self.latent_dim, generator=generator, device=self.device)

    def latents_at(self, seed: int, numbers: Tensor) -> Tensor:
        """The latents of these numbers in the stream of a seed; the same on every device."""
        import torch

        latents = torch.empty(len(numbers), self.latent_dim, device=numbers.device)
        return normals(seed, numbers, latents)

"""What every generator of torch networks does alike, whatever its networks are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from limi.generators._training import Tensor, decode_array, decode_rows
from limi.table.schema import Schema
from limi.types import Latents, Rows

__all__ = ["NetworkOnDevice"]


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

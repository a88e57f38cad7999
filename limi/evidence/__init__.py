"""Evidence packs: a run in one file, with what it says and does not, and how to repeat it."""

from __future__ import annotations

from limi.evidence._pack import SUMS, Packed, pack

__all__ = ["SUMS", "Packed", "pack"]

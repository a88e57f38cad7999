"""A share with its interval."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Rate"]


@dataclass(frozen=True)
class Rate:
    """A share with its interval."""

    estimate: float
    low: float
    high: float
    n: int

"""What a reader gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from limi.trees.ensemble import Ensemble

__all__ = ["Read"]


@dataclass(frozen=True, eq=False)
class Read:
    """Trees, and a function from what they are given to the numbers that they compare."""

    ensemble: Ensemble
    numbers: Callable[[Any], NDArray[Any]]
    jumps: tuple[int, ...] | None = ()
    # ^ columns whose numbers may rise and fall again with them; None for any of them

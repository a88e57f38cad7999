"""Arrays of one length that are cut and joined together."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arrays"]

Part = TypeVar("Part", bound="Arrays")


class Arrays:
    """A dataclass whose fields are arrays, with one line in each for each of several things."""

    def __getitem__(self: Part, which: Any) -> Part:
        return type(self)(**{name: array[which] for name, array in self._named().items()})

    def joined(self: Part, other: Part) -> Part:
        """These, and then the others."""
        both = {name: [array, getattr(other, name)] for name, array in self._named().items()}
        return type(self)(**{name: np.concatenate(parts) for name, parts in both.items()})

    def _named(self) -> dict[str, NDArray[Any]]:
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]

"""What numpy and torch call by different names, for arithmetic that serves arrays and tensors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

__all__ = ["is_tensor", "put", "where"]


def is_tensor(array: Any) -> bool:
    """Is it a tensor of torch? Whoever has one has imported torch already."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def where(condition: Any, one: Any, other: Any) -> Any:
    """One where the condition holds, the other elsewhere; of the condition's library."""
    return (sys.modules["torch"] if is_tensor(condition) else np).where(condition, one, other)


def put(array: Any, places: Any, value: float) -> None:
    """Set one cell of each line of (n, m) in place: that of its place."""
    if is_tensor(array):
        array.scatter_(1, places[:, None], value)
    else:
        np.put_along_axis(array, places[:, None], value, axis=1)

"""What numpy and torch call by different names, for arithmetic that serves arrays and tensors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

__all__ = [
    "find_first",
    "find_highest",
    "find_sorted",
    "floor",
    "is_tensor",
    "look_up",
    "put",
    "take",
    "where",
]


def is_tensor(array: Any) -> bool:
    """Is it a tensor of torch? Whoever has one has imported torch already."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def where(condition: Any, one: Any, other: Any) -> Any:
    """One where the condition holds, the other elsewhere; of the condition's library."""
    return (sys.modules["torch"] if is_tensor(condition) else np).where(condition, one, other)


def take(array: Any, places: Any) -> Any:
    """One cell of each line of (n, m): that of its place."""
    if is_tensor(array):
        return array.gather(1, places[:, None])[:, 0]
    return np.take_along_axis(array, places[:, None], axis=1)[:, 0]


def find_first(mask: Any) -> Any:
    """Where the first True of each line stands; 0 where there is none."""
    return (mask.byte() if is_tensor(mask) else mask).argmax(1)


def find_highest(array: Any) -> Any:
    """The highest cell of each line of (n, m)."""
    return array.amax(1) if is_tensor(array) else array.max(axis=1)


def floor(array: Any) -> Any:
    """Each number's whole part."""
    return array.floor() if is_tensor(array) else np.floor(array)


def put(array: Any, places: Any, value: float) -> None:
    """Set one cell of each line of (n, m) in place: that of its place."""
    if is_tensor(array):
        array.scatter_(1, places[:, None], value)
    else:
        np.put_along_axis(array, places[:, None], value, axis=1)


def look_up(table: Any, places: Any) -> Any:
    """The entries of a numpy table at these whole places; of the places' library."""
    if is_tensor(places):
        torch = sys.modules["torch"]
        entries = torch.as_tensor(table, dtype=places.dtype, device=places.device)
        return entries[places.long()]
    return table[places.astype(np.intp)]


def find_sorted(ascending: Any, cells: Any) -> Any:
    """Where each cell stands in an ascending numpy array; its length for a cell that does not."""
    n = len(ascending)
    if is_tensor(cells):
        torch = sys.modules["torch"]
        ascending = torch.as_tensor(ascending, dtype=cells.dtype, device=cells.device)
        places = torch.searchsorted(ascending, cells.contiguous()).clamp(max=n - 1)
        return torch.where(ascending[places] == cells, places, n).to(cells.dtype)
    places = np.minimum(np.searchsorted(ascending, cells), n - 1)
    return np.where(ascending[places] == cells, places, n).astype(cells.dtype)

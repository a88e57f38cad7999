"""Rows as they travel: JSON cells by column, and a key of the exact bytes of each row.

A key is 128 bits of the cells' own types and values, with the columns' names and places. Rows with
equal keys are the same question; it is the key that a cache keeps, and never the row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.generators._counter_rng import mix

__all__ = ["Cells", "Keys", "names", "read", "turned"]

Keys = NDArray[np.int64]
"""(n, 2): two halves of each key."""


@dataclass(frozen=True)
class Cells:
    """Rows by column, each cell what JSON can hold; None where it is missing."""

    names: list[str]
    columns: list[list[Any]]
    turns: list[int] = field(default_factory=list)  # how often each row was asked before

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, part: slice) -> Cells:
        return Cells(self.names, [column[part] for column in self.columns], self.turns[part])

    def take(self, places: Sequence[int]) -> Cells:
        """Some rows."""
        if len(places) == len(self):
            return self
        chosen = [list(map(c.__getitem__, places)) for c in self.columns]
        turns = list(map(self.turns.__getitem__, places)) if self.turns else []
        return Cells(self.names, chosen, turns)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Row by row."""
        return list(zip(*self.columns, strict=True))

    @property
    def records(self) -> list[dict[str, Any]]:
        """Row by row, by name."""
        return [dict(zip(self.names, row, strict=True)) for row in self.rows]


def read(frame: Any) -> tuple[Cells, Keys]:
    """The cells of a frame of any library, and the keys of its rows.

    A key is the sum of a number for each cell, which type, value and column give together, mixed
    once more at the end.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        import narwhals as nw

        frame = nw.from_native(frame, eager_only=True).to_pandas()
    keys = np.zeros((2, len(frame)), dtype=np.int64)
    columns, known = [], [str(name) for name in frame.columns]
    for place, (name, (_, series)) in enumerate(zip(known, frame.items(), strict=True)):
        columns.append(_read_column(series, f"{place}:{name}", keys))
    return Cells(known, columns), np.stack([mix(half) for half in keys], axis=1)


def names(keys: Keys) -> list[bytes]:
    """Each key as 16 bytes."""
    named: list[bytes] = np.ascontiguousarray(keys).view("V16").ravel().tolist()
    return named


def turned(keys: Keys, turns: NDArray[np.int64]) -> Keys:
    """Keys of the same rows asked for the n-th time; the first time they are as they are."""
    moved = keys.copy()
    later = turns > 0
    moved[later] ^= mix(turns[later].astype(np.int64))[:, None]
    return moved


def _read_column(series: Any, column: str, keys: Keys) -> list[Any]:
    """A column's cells for JSON; their numbers are added to the halves of the keys."""
    kind = getattr(series.dtype, "kind", "O")
    if not isinstance(series.dtype, np.dtype) or kind not in "iubf":
        return _read_others(series, column, keys)
    values = series.to_numpy()
    cells: Any = values
    if kind == "f":
        values = values.astype(np.float64)
        gaps = np.isnan(values)
        if gaps.any():
            cells = values.astype(object)
            cells[gaps] = None
            values[gaps] = np.nan  # all kinds of NaN are one missing cell
        bits = values.view(np.int64)
    else:
        bits = values.astype(np.int64)
    for half, salt in zip(keys, _digest(f"{kind}:{column}"), strict=True):
        half += mix(bits ^ salt)
    told: list[Any] = cells.tolist()
    return told


def _read_others(series: Any, column: str, keys: Keys) -> list[Any]:
    """Text, categories and whatever else: each distinct cell is spelled as JSON once."""
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, distinct = series.cat.codes.to_numpy(), series.cat.categories.to_numpy()
    elif isinstance(series.dtype, pd.StringDtype):
        codes, found = pd.factorize(series)
        distinct = found.to_numpy(dtype=object)
    else:
        values = series.astype(object)
        if pd.api.types.infer_dtype(values, skipna=True) in ("string", "empty"):
            codes, distinct = pd.factorize(values)
        else:
            # 1, 1.0 and True are equal to Python and three different cells.
            codes, known = pd.factorize(values.map(_spell, na_action="ignore"))
            distinct = np.array([*map(json.loads, known), None], dtype=object)[:-1]
    # Text stands for itself; whatever else is what it is as JSON. Code -1: missing, the last.
    cells = [one if type(one) is str else json.loads(_spell(one)) for one in distinct.tolist()]
    texts = [f"s:{one}" if type(one) is str else f"j:{json.dumps(one)}" for one in (*cells, None)]
    numbers = np.array([_digest(f"{column}:{text}") for text in texts], dtype=np.int64)
    keys += numbers.T[:, codes]
    told: list[Any] = np.array([*cells, None], dtype=object)[codes].tolist()
    return told


def _spell(cell: Any) -> str:
    return json.dumps(cell.item() if isinstance(cell, np.generic) else cell, default=str)


@lru_cache(maxsize=1 << 14)
def _digest(text: str) -> tuple[int, int]:
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    first, second = np.frombuffer(digest, dtype="<i8").tolist()
    return first, second

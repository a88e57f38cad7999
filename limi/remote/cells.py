"""Rows as they travel: JSON cells by column, and a key of the exact bytes of each row.

A key is 128 bits of the cells' own types and values, with the columns' names and places. Rows with
equal keys are the same question; it is the key that a cache keeps, and never the row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
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

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, part: slice) -> Cells:
        return Cells(self.names, [column[part] for column in self.columns])

    def take(self, places: Sequence[int]) -> Cells:
        """Some rows."""
        if len(places) == len(self):
            return self
        return Cells(self.names, [list(map(c.__getitem__, places)) for c in self.columns])

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Row by row."""
        return list(zip(*self.columns, strict=True))

    @property
    def records(self) -> list[dict[str, Any]]:
        """Row by row, by name."""
        return [dict(zip(self.names, row, strict=True)) for row in self.rows]


def read(frame: Any) -> tuple[Cells, Keys]:
    """The cells of a frame of any library, and the keys of its rows."""
    import narwhals as nw

    given = nw.from_native(frame, eager_only=True)
    keys = np.zeros((len(given), 2), dtype=np.int64)
    columns = []
    for place, name in enumerate(given.columns):
        cells, halves = _read_column(given[name].to_pandas())
        columns.append(cells)
        _stir(keys, halves, f"{place}:{name}")
    return Cells(list(given.columns), columns), keys


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


def _stir(keys: Keys, halves: Keys, column: str) -> None:
    salt = _digest(column)
    for half in range(2):
        keys[:, half] = mix(keys[:, half] ^ mix(halves[:, half] ^ salt[half]))


def _read_column(series: Any) -> tuple[list[Any], Keys]:
    """A column's cells for JSON, and two numbers for each that stand for type and value."""
    kind = getattr(series.dtype, "kind", "O")
    if isinstance(series.dtype, np.dtype) and kind in "iub":
        values = series.to_numpy()
        return values.tolist(), _halves(values.astype(np.int64), kind)
    if isinstance(series.dtype, np.dtype) and kind == "f":
        values = series.to_numpy().astype(np.float64)
        gaps = np.isnan(values)
        cells: NDArray[Any] = values
        if gaps.any():
            cells = values.astype(object)
            cells[gaps] = None
        # All kinds of NaN are one missing cell.
        return cells.tolist(), _halves(np.where(gaps, np.nan, values).view(np.int64), kind)
    return _read_others(series)


def _halves(values: NDArray[np.int64], kind: str) -> Keys:
    return np.stack([values, mix(values ^ _digest(kind)[0])], axis=1)


def _read_others(series: Any) -> tuple[list[Any], Keys]:
    """Text, categories and whatever else: each distinct cell is spelled as JSON once."""
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, distinct = series.cat.codes.to_numpy(), series.cat.categories
    else:
        values = series.astype(object)
        if pd.api.types.infer_dtype(values, skipna=True) not in ("string", "empty"):
            # 1, 1.0 and True are equal to Python and three different cells.
            texts = values.map(_spell, na_action="ignore")
            codes, known = pd.factorize(texts)
            distinct = list(map(json.loads, known))
        else:
            codes, distinct = pd.factorize(values)
    plain = [json.loads(_spell(cell)) for cell in distinct] + [None]  # code -1: missing, the last
    digests = np.array([_digest(json.dumps(cell)) for cell in plain], dtype=np.int64)
    return np.array(plain, dtype=object)[codes].tolist(), digests[codes]


def _spell(cell: Any) -> str:
    return json.dumps(cell.item() if isinstance(cell, np.generic) else cell, default=str)


def _digest(text: str) -> tuple[int, int]:
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    first, second = np.frombuffer(digest, dtype="<i8").tolist()
    return first, second

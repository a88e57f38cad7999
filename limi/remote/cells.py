"""Rows as they travel: cells by column, and a key of the exact bytes of each row.

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

from limi.errors import BadTable
from limi.generators._counter_rng import mix
from limi.types import Index

__all__ = ["Cells", "Keys", "names", "read", "turned"]

Keys = NDArray[np.int64]
"""(n, 2): two halves of each key."""

_NUMBERS = "iubf"
_TEXT = "s"
_OTHER = "o"


@dataclass(frozen=True)
class Cells:
    """Rows by column, each cell what JSON can hold; None where it is missing.

    A kind is `i`, `u`, `b` or `f` for numbers, as numpy has it, `s` for text, `o` for others.
    """

    names: list[str]
    arrays: list[NDArray[Any]]
    kinds: list[str]
    turns: list[int] = field(default_factory=list)  # how often each row was asked before

    def __len__(self) -> int:
        return len(self.arrays[0]) if self.arrays else 0

    def __getitem__(self, part: slice) -> Cells:
        return Cells(self.names, [a[part] for a in self.arrays], self.kinds, self.turns[part])

    def take(self, places: Index) -> Cells:
        """Some rows."""
        if len(places) == len(self):
            return self
        turns = list(map(self.turns.__getitem__, places.tolist())) if self.turns else []
        return Cells(self.names, [array[places] for array in self.arrays], self.kinds, turns)

    @property
    def columns(self) -> list[list[Any]]:
        """Column by column."""
        return [array.tolist() for array in self.arrays]

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
    known = [str(name) for name in frame.columns]
    columns = [series for _, series in frame.items()]
    kinds = [_kind(series) for series in columns]
    bits = np.empty((2, len(columns), len(frame)), dtype=np.int64)
    arrays: list[Any] = [None] * len(columns)
    plain = [
        isinstance(series.dtype, np.dtype) and kind in _NUMBERS
        for series, kind in zip(columns, kinds, strict=True)
    ]
    text = [at for at, series in enumerate(columns) if isinstance(series.dtype, pd.StringDtype)]
    if text:
        codes, distinct = _factorize([columns[at] for at in text])
        bits[:, text] = _digests(distinct)[:, codes]
        for at, cells in zip(text, _objects(distinct)[codes], strict=True):
            arrays[at] = cells
    for at, (name, series) in enumerate(zip(known, columns, strict=True)):
        if plain[at]:
            arrays[at], bits[:, at] = _read_numbers(name, series.to_numpy())
        elif arrays[at] is None:
            codes, distinct = _factorize_others(series)
            arrays[at], bits[:, at] = _objects(distinct)[codes], _digests(distinct)[:, codes]
    # Text is text, whichever type a library keeps it in.
    salted = [kind if number else "t" for kind, number in zip(kinds, plain, strict=True)]
    bits ^= _salts(tuple(zip(salted, known, strict=True)))[:, :, None]
    return Cells(known, arrays, kinds), mix(mix(bits).sum(axis=1)).T


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


def _kind(series: Any) -> str:
    """What a column holds by its type, which is the same in every batch of rows."""
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.StringDtype):
        return _TEXT
    if isinstance(dtype, pd.CategoricalDtype):
        return _kind(dtype.categories)
    kind = getattr(dtype, "kind", "O")
    return kind if kind in _NUMBERS else _OTHER


def _read_numbers(name: str, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """A column of numbers: its cells, and their bits."""
    if values.dtype.kind != "f":
        return values, values.astype(np.int64)
    values = values.astype(np.float64)
    if np.isfinite(values).all():
        return values, values.view(np.int64)
    gaps = np.isnan(values)
    if np.isinf(values).any():
        raise BadTable(
            f"column {name!r} holds infinite values, which JSON cannot represent; replace them by "
            "missing or by a finite number"
        )
    cells = values.astype(object)
    cells[gaps] = None
    values[gaps] = np.nan  # all kinds of NaN are one missing cell
    return cells, values.view(np.int64)


def _factorize(columns: Sequence[Any]) -> tuple[Index, list[str]]:
    """Text columns together: (columns, n) places among distinct texts, the last for missing ones.

    All of them at once, because a dictionary for each column would cost more than its rows.
    """
    import pyarrow as pa

    chunks: list[Any] = []
    for column in columns:
        told = pa.array(column.array, type=pa.large_string(), from_pandas=True)
        chunks.extend(told.chunks if isinstance(told, pa.ChunkedArray) else [told])
    coded = pa.concat_arrays(chunks).dictionary_encode()
    distinct: list[str] = coded.dictionary.to_pylist()
    codes = coded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return codes.reshape(len(columns), -1), distinct


def _factorize_others(series: Any) -> tuple[Index, list[Any]]:
    """Categories and whatever else: each distinct cell is spelled as JSON once."""
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, distinct = series.array.codes, series.cat.categories.to_numpy()
    else:
        values = series.astype(object)
        if pd.api.types.infer_dtype(values, skipna=True) in ("string", "empty"):
            codes, distinct = pd.factorize(values)
        else:
            # 1, 1.0 and True are equal to Python and three different cells.
            codes, known = pd.factorize(values.map(_spell, na_action="ignore"))
            distinct = np.array([*map(json.loads, known), None], dtype=object)[:-1]
    # Text stands for itself; whatever else is what it is as JSON. Code -1: missing, the last.
    return codes, [one if type(one) is str else json.loads(_spell(one)) for one in distinct]


def _objects(distinct: Sequence[Any]) -> NDArray[Any]:
    """Distinct cells, and behind them None."""
    cells = np.empty(len(distinct) + 1, dtype=object)
    cells[:-1] = distinct
    return cells


def _digests(distinct: Sequence[Any]) -> NDArray[np.int64]:
    """(2, distinct + 1): the numbers of distinct cells, and behind them that of a missing one."""
    told = [f"s:{one}" if type(one) is str else f"j:{json.dumps(one)}" for one in (*distinct, None)]
    return np.array([_digest(text) for text in told], dtype=np.int64).T


@lru_cache(maxsize=64)
def _salts(columns: tuple[tuple[str, str], ...]) -> NDArray[np.int64]:
    """(2, columns): what tells the same cell in two columns apart."""
    told = [_digest(f"{kind}:{at}:{name}") for at, (kind, name) in enumerate(columns)]
    return np.array(told, dtype=np.int64).reshape(-1, 2).T


def _spell(cell: Any) -> str:
    return json.dumps(cell.item() if isinstance(cell, np.generic) else cell, default=str)


@lru_cache(maxsize=1 << 14)
def _digest(text: str) -> tuple[int, int]:
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    first, second = np.frombuffer(digest, dtype="<i8").tolist()
    return first, second

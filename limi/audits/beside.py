"""Protected columns from another table: what a model never sees is often kept elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limi.errors import BadTable, InvalidInput, nearest, spell
from limi.table.files import infer
from limi.table.frames import Frame
from limi.table.schema import Schema

__all__ = ["Beside", "Joined", "join", "read_beside"]

_SHOWN_KEYS = 3


@dataclass(frozen=True)
class Beside:
    """A table of the same people that holds their protected values, and the column to tell them."""

    frame: Frame
    key: str
    name: str = "protected table"


@dataclass(frozen=True)
class Joined:
    """The people with the protected values that their table lacks."""

    frame: Frame
    added: tuple[str, ...]
    key: str
    name: str

    @property
    def aside(self) -> tuple[str, ...]:
        """Columns that are not the model's unless it names them."""
        return (*self.added, self.key)

    def extend(self, schema: Schema) -> Schema:
        """A schema of the table with the columns that were added."""
        lacking = [name for name in self.added if name not in schema.names]
        if not lacking:
            return schema
        import narwhals as nw

        given = nw.from_native(self.frame, eager_only=True).select(lacking)
        return replace(schema, columns=(*schema.columns, *infer(given.to_native()).columns))


def read_beside(frame: Frame | None, key: str | None, name: str) -> Beside | None:
    """The table that was given with its key; InvalidInput where one of the two is missing."""
    if (frame is None) != (key is None):
        raise InvalidInput(
            "--protected-from and --key go together: the file that holds the protected columns, "
            "and the column that identifies its people"
        )
    return None if frame is None or key is None else Beside(frame, key, name)


def join(frame: Frame, beside: Beside, wanted: Sequence[str]) -> Joined:
    """The table with these protected columns of the other one; BadTable where they do not fit."""
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    other = nw.from_native(beside.frame, eager_only=True)
    if other.implementation != table.implementation:
        other = nw.from_arrow(other.to_arrow(), backend=table.implementation)
    for names, words in ((table.columns, "the table"), (other.columns, beside.name)):
        if beside.key not in names:
            raise InvalidInput(
                f"{words} has no key column {beside.key!r}; {nearest(beside.key, names)}"
            )
    added = [name for name in dict.fromkeys(wanted) if name not in table.columns]
    if not added:
        raise InvalidInput(
            f"the table already has {spell(wanted)}, so nothing is taken from {beside.name}; leave "
            "--protected-from out"
        )
    absent = [name for name in added if name not in other.columns]
    if absent:
        raise InvalidInput(
            f"neither the table nor {beside.name} has a column {absent[0]!r}; "
            f"{nearest(absent[0], other.columns)}"
        )
    places = _places(table[beside.key], other[beside.key], beside)
    taken = other.select(added)[places.tolist()]
    filled = table.with_columns(*(taken[name] for name in added))
    return Joined(filled.to_native(), tuple(added), beside.key, beside.name)


def _places(keys: Any, known: Any, beside: Beside) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Where each person stands in the other table."""
    import pandas as pd

    index = pd.Index(known.to_pandas())
    if not index.is_unique:
        twice = index[index.duplicated()][:_SHOWN_KEYS]
        raise BadTable(
            f"{beside.name} has several rows with the same {beside.key!r} ({spell(twice)}); each "
            "person may appear only once"
        )
    places = index.get_indexer(pd.Index(keys.to_pandas()))
    absent = np.flatnonzero(places < 0)
    if len(absent):
        shown = spell([keys[int(place)] for place in absent[:_SHOWN_KEYS]])
        raise BadTable(
            f"{len(absent):,} of {len(places):,} people in the table are missing from "
            f"{beside.name} by their {beside.key!r} ({shown}); give a table that has all of them, "
            "with keys of the same type"
        )
    return np.asarray(places, dtype=np.intp)

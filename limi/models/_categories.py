"""Categories as the boosting libraries keep them: by name, whatever the frame stores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel, spell

__all__ = ["Coded", "pandas_of", "refuse_text", "with_categories"]


def pandas_of(frame: Any) -> Any:
    """The frame as pandas has it, for libraries that know no other."""
    return frame if type(frame).__module__.startswith("pandas") else frame.to_pandas()


def with_categories(frame: Any, categories: Mapping[int, Sequence[Any]]) -> Any:
    """A pandas frame whose columns at these positions are categories, in this order.

    A cell that is none of them becomes missing.
    """
    import pandas as pd

    frame = frame.copy(deep=False)
    for position, values in categories.items():
        name = frame.columns[position]
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(column.cat.categories.dtype)
        known = pd.Index(list(values))
        codes = known.get_indexer(pd.Index(column))
        frame[name] = pd.Categorical.from_codes(codes, categories=known)
    return frame


def refuse_text(frame: Any, allowed: Collection[int] = ()) -> None:
    """BadModel where a column of a pandas frame holds text and the model wants numbers there."""
    import pandas as pd

    text = [
        str(name)
        for position, (name, dtype) in enumerate(frame.dtypes.items())
        if position not in allowed
        and not pd.api.types.is_numeric_dtype(dtype)
        and pd.api.types.infer_dtype(getattr(dtype, "categories", frame[name])) == "string"
    ]
    if text:
        raise BadModel(
            f"the model was trained on numbers in {spell(text)}, but the table holds text there; "
            "give the table that the model was trained on, or wrap both in a Python function"
        )


class Coded:
    """Turns a frame into the numbers that XGBoost's trees compare: categories become codes.

    The library's own way back from names to codes is not taken: up to version 3.2 it cuts names
    with letters beyond ASCII at the wrong places, and then takes one category for another.
    """

    def __init__(self, booster: Any) -> None:
        kinds = booster.feature_types or []
        self.stored: dict[int, list[bytes] | None] = {
            position: None for position, kind in enumerate(kinds) if kind == "c"
        }
        # Before version 3.1 models knew codes only.
        if self.stored and hasattr(booster, "get_categories"):
            known = booster.get_categories(export_to_arrow=True).to_arrow()
            for position, (_, values) in enumerate(known):
                if values is not None:
                    self.stored[position] = [_bytes(value) for value in values]

    def __call__(self, frame: Any) -> NDArray[np.float32]:
        frame = pandas_of(frame)
        known = [p for p, values in self.stored.items() if values or _is_category(frame, p)]
        refuse_text(frame, allowed=known)
        matrix = np.empty(frame.shape, dtype=np.float32)
        for position, name in enumerate(frame.columns):
            column = frame[name]
            if position in known:
                matrix[:, position] = _codes(column, self.stored[position])
            else:
                matrix[:, position] = column.to_numpy(dtype=np.float32, na_value=np.nan)
        return matrix


def _is_category(frame: Any, position: int) -> bool:
    return hasattr(frame.dtypes.iloc[position], "categories")


def _codes(column: Any, stored: list[bytes] | None) -> NDArray[np.float32]:
    """The training code of each cell, NaN where it is missing."""
    import pandas as pd

    if stored is None:
        places, own = np.arange(len(column.cat.categories)), column.cat.codes.to_numpy()
    else:
        own, values = pd.factorize(column, use_na_sentinel=True)
        places = _places([_name(value) for value in values], stored)
        if (places < 0).any():
            shown = spell(repr(name.decode(errors="replace")) for name in stored)
            raise BadModel(
                f"column {column.name!r} holds {values[int(np.argmin(places))]!r}, which the model "
                f"has never seen; it was trained on {shown}"
            )
    codes: NDArray[np.float32] = np.append(places, np.nan).astype(np.float32)[own]
    return codes


def _places(names: list[str], stored: list[bytes]) -> NDArray[np.intp]:
    """Where each name stands among the stored ones, -1 where nowhere."""
    if all(name.encode() in stored for name in names):
        return np.array([stored.index(name.encode()) for name in names], dtype=np.intp)
    # Each name was cut to as many bytes as it has letters; so letters are missing at the very end.
    text = b"".join(stored).decode(errors="ignore")
    ends = np.cumsum([len(name) for name in stored])
    whole = [
        (len(name), text[end - len(name) : end]) for name, end in zip(stored, ends, strict=True)
    ]
    hits = [
        [i for i, (length, part) in enumerate(whole) if len(n) == length and n.startswith(part)]
        for n in names
    ]
    return np.array([hit[0] if len(hit) == 1 else -1 for hit in hits], dtype=np.intp)


def _bytes(value: Any) -> bytes:
    """A stored category as bytes: its text may be cut within a letter."""
    import pyarrow as pa

    if pa.types.is_string(value.type) or pa.types.is_large_string(value.type):
        return bytes(value.as_buffer())
    return _name(value.as_py()).encode()


def _name(value: Any) -> str:
    """A category as text; whole numbers read alike whether a gap made them decimals or not."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

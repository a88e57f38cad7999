"""Missing text as an estimator was trained on it: NaN where pandas had it, None where polars had.

scikit-learn's encoders and imputers tell the two apart. An encoder that never saw the other kind
takes it for an unknown category, so the same people get other scores from another frame library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from limi.errors import spell
from limi.table.frames import Codec

__all__ = ["AsTrained", "Gap", "find_gap", "note_on_gaps"]

Gap = Literal["NaN", "None", "unknown"]

_DEEPEST = 30  # lists, pairs and estimators in one another


@dataclass(frozen=True)
class AsTrained:
    """Gives an estimator its frames with the missing text that it knows."""

    gap: Gap

    def __call__(self, inputs: Any) -> Any:
        """scikit-learn reads pandas and polars frames and arrays, but no Arrow tables."""
        if isinstance(inputs, np.ndarray):
            return self._fill(inputs) if _holds_objects(inputs.dtype) else inputs
        library = type(inputs).__module__.partition(".")[0]
        if library == "pyarrow" or (library == "polars" and self.gap == "NaN"):
            inputs, library = inputs.to_pandas(), "pandas"
        fits = library != "pandas" or self.gap == "unknown"
        return inputs if fits else self._fill_columns(inputs)

    def _fill(self, cells: NDArray[Any]) -> NDArray[Any]:
        import pandas as pd

        if self.gap == "unknown":
            return cells
        cells = cells.copy()
        cells[pd.isna(cells)] = np.nan if self.gap == "NaN" else None
        return cells

    def _fill_columns(self, frame: Any) -> Any:
        """A pandas frame whose columns of text miss cells in one way."""
        import pandas as pd

        text = [
            name
            for name, dtype in frame.dtypes.items()
            if _holds_objects(dtype) or (self.gap == "None" and pd.api.types.is_string_dtype(dtype))
        ]
        lacking = [name for name in text if frame[name].hasnans]
        filled = {name: self._fill(frame[name].to_numpy(dtype=object)) for name in lacking}
        return frame.assign(
            **{
                name: pd.Series(cells, index=frame.index, dtype=object)
                for name, cells in filled.items()
            }
        )


def note_on_gaps(model: object, codec: Codec) -> tuple[str, ...]:
    """A note where polars marks missing text in a way that the model may not know."""
    prepare = getattr(model, "prepare", None)
    if not codec.is_polars or not isinstance(prepare, AsTrained) or prepare.gap != "unknown":
        return ()
    names = [
        repr(column.name)
        for column in codec.schema.columns
        if column.missing and column.kind != "numerical" and column.level_numbers is None
    ]
    if not names:
        return ()
    return (
        f"the model does not say how missing text looked in training; in {spell(names)} it is "
        "given None, where pandas would have NaN: if it was trained on pandas, give the table as "
        "a pandas frame (frame.to_pandas())",
    )


def find_gap(estimator: Any) -> Gap:
    """How cells of text were missing when an estimator was fitted, by what its parts learned."""
    parts = list(_walk(estimator, _DEEPEST, set()))
    kinds = {kind for part in parts for kind in _in_categories(part)}
    if not kinds:
        kinds = {kind for part in parts for kind in _in_imputer(part)}
    if len(kinds) != 1:
        return "unknown"
    gap: Gap = kinds.pop()
    return gap


def _in_categories(part: Any) -> Iterator[Gap]:
    """The gaps among the categories that an encoder learned."""
    for categories in _list(vars(part).get("categories_")):
        if _holds_objects(getattr(categories, "dtype", None)):
            for value in categories[-2:]:  # sorted with None and NaN last
                if value is None or value != value:
                    yield "None" if value is None else "NaN"


def _in_imputer(part: Any) -> Iterator[Gap]:
    """What an imputer of text takes for missing."""
    learned, missing = vars(part).get("statistics_"), vars(part).get("missing_values", 0)
    if _holds_objects(getattr(learned, "dtype", None)):
        if missing is None:
            yield "None"
        elif isinstance(missing, float) and missing != missing:
            yield "NaN"


def _walk(part: Any, depth: int, seen: set[int]) -> Iterator[Any]:
    """An estimator and the fitted estimators that it holds."""
    if id(part) in seen or not depth:
        return
    seen.add(id(part))
    if hasattr(part, "get_params") and hasattr(part, "__dict__") and not isinstance(part, type):
        yield part
        part = {
            name: value
            for name, value in vars(part).items()
            if name.endswith("_") or name in ("steps", "transformer_list", "estimator")
        }
    for held in part.values() if isinstance(part, Mapping) else _list(part):
        yield from _walk(held, depth - 1, seen)


def _holds_objects(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def _list(held: Any) -> list[Any]:
    return list(held) if isinstance(held, (list, tuple)) else []

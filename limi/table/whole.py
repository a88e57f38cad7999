"""What is known of a whole table, where a frame holds a sample of its rows only.

`limi.table.files.read` notes it on the frame of a table that does not fit into memory. Whoever
asks what a column may hold asks the whole; whoever wants people takes the frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Whole", "count_rows", "note_whole", "shown_by", "whole_of"]

_WHOLE = "limi.whole"


@dataclass(frozen=True, eq=False)
class Whole:
    """A table that was read once."""

    n_rows: int
    witness: Any  # a frame: not people, but cells that show all levels, ends, steps and gaps
    quantiles: Mapping[str, NDArray[np.float64]]  # numbers of a column with the quantiles of all
    sha256: str  # of its files

    def __deepcopy__(self, memo: object) -> Whole:
        # pandas copies what is noted on a frame with every step that makes another.
        return self


def note_whole(frame: Any, whole: Whole) -> None:
    """Note on a frame what table it is a sample of."""
    frame.attrs[_WHOLE] = whole


def whole_of(frame: Any) -> Whole | None:
    """The table that a frame is a sample of; None where it is all there is."""
    whole: Whole | None = getattr(frame, "attrs", {}).get(_WHOLE)
    return whole


def count_rows(frame: Any) -> int:
    """Rows of the table that a frame is, or is a sample of."""
    whole = whole_of(frame)
    return len(frame) if whole is None else whole.n_rows


def shown_by(frame: Any) -> Any:
    """The frame whose cells show what columns may hold."""
    whole = whole_of(frame)
    return frame if whole is None else whole.witness

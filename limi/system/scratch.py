"""Arrays that do not fit into memory, in files without a name.

Such a file goes with the program that made it, however that ends. It lies where the system keeps
temporary files; `TMPDIR` names another place.
"""

from __future__ import annotations

import mmap
import tempfile
import weakref
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from limi.errors import FailedWrite
from limi.system import writing

__all__ = ["Scratch"]

_Item = TypeVar("_Item", bound=np.generic)


class Scratch(Generic[_Item]):
    """An array that grows on disk, and is looked at where it lies."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._dtype: np.dtype[_Item] = np.dtype(dtype)
        self._shape = () if width is None else (width,)
        self._n = 0
        self._map: mmap.mmap | None = None
        try:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the array)
        except OSError as error:
            raise _refusal(error) from None
        weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return self._n

    def append(self, rows: NDArray[_Item]) -> None:
        """Write rows behind the others."""
        if not rows.size:
            return
        self.forget()
        try:
            cells = np.ascontiguousarray(rows, self._dtype)
            writing.append(self._file.fileno(), cells.data.cast("B"))
        except OSError as error:
            raise _refusal(error) from None
        self._n += len(rows)

    def look(self) -> NDArray[_Item]:
        """The array, of which only those pages are in memory that are looked at."""
        if not self._n:
            return np.empty((0, *self._shape), self._dtype)
        if self._map is None:
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        cells: NDArray[_Item] = np.frombuffer(self._map, self._dtype)
        return cells.reshape(self._n, *self._shape)

    def forget(self) -> None:
        """Let go of the pages that were looked at."""
        if self._map is None:
            return
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
        self._map = None  # unmapped with the last array that looks at it


def _refusal(error: OSError) -> FailedWrite:
    why = error.strerror or str(error)
    return FailedWrite(
        f"limi cannot write what does not fit into memory to {tempfile.gettempdir()!r}: {why}; "
        "make room there, or set TMPDIR to another folder"
    )

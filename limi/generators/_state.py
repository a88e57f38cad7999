"""A generator's file, held to what it must be before anything computes with it.

Somebody may have sent it, or a disk may have bitten it. Arrays are taken by name with the type and
the shape they must have; what is missing, left over, not finite or out of its place is a
ValueError, which `load` tells as damage.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from limi.errors import CorruptStore
from limi.system.reading import regular
from limi.system.validate import require_fields

__all__ = ["FORMAT", "MOST_ROWS", "Arrays", "facts_of", "pack", "read", "require"]

FORMAT = 1
MOST_ROWS = 10**8
"""Rows that a generator may have been fitted on; tables for decoding are as long."""

_HEAD = "generator.json"
_T = TypeVar("_T")


def require(holds: bool, words: str) -> None:
    """ValueError with these words where something does not hold."""
    if not holds:
        raise ValueError(words)


# -- the file -----------------------------------------------------------------------------


def read(path: str | Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and head of a file; CorruptStore where it is none, or is newer."""
    path = regular(path, "a generator file of `limi fit`")
    try:
        arrays, head = _unpack(path)
        version = head.get("format")
        require(isinstance(version, int) and version >= 1, "its head has no format")
    except MemoryError:
        raise
    except Exception as error:  # zip, JSON and arrays have an exception for each kind of damage
        said = " ".join(str(error).split())[:160] or type(error).__name__
        raise CorruptStore(
            f"{str(path)!r} is not a generator file, or is damaged: {said}; fit it again"
        ) from None
    if head["format"] > FORMAT:
        raise CorruptStore(
            f"{str(path)!r} was written by a newer limi (format {str(head['format'])[:20]}, this "
            f"one reads up to {FORMAT}); upgrade limi"
        )
    return arrays, head


def _unpack(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    arrays = {}
    with zipfile.ZipFile(path) as file:
        members = file.infolist()
        names = [member.filename for member in members]
        require(len(set(names)) == len(names), "a part of it occurs twice")
        require(_HEAD in names, f"it has no {_HEAD}")
        for member in members:
            # As limi writes them; a packed part could be many times as large as the file.
            require(member.compress_type == zipfile.ZIP_STORED, "its parts are compressed")
            require(member.file_size <= path.stat().st_size, "a part of it is larger than all")
            name, dot, ending = member.filename.rpartition(".")
            if member.filename != _HEAD:
                require(bool(dot) and ending == "npy" and name.isidentifier(), "it has odd parts")
                arrays[name] = _array(file.read(member))
        head = json.loads(file.read(_HEAD))
    require(isinstance(head, dict), "its head is not an object")
    return arrays, head


def _array(content: bytes) -> NDArray[Any]:
    """An array of plain numbers, whose header must agree with its length."""
    file = io.BytesIO(content)
    require(np.lib.format.read_magic(file) == (1, 0), "an array is of an unknown format")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers that numpy reads as Python 2 wrote them
        shape, in_columns, dtype = np.lib.format.read_array_header_1_0(file)
    require(dtype.kind in "if" and dtype.isnative, f"an array is of the type {dtype}")
    require(
        math.prod(shape) * dtype.itemsize == len(content) - file.tell(),
        "an array is not as long as it says",
    )
    flat = np.frombuffer(content, dtype=dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if in_columns else "C").copy()


# -- what it holds ------------------------------------------------------------------------


class Arrays:
    """The arrays of a state, each to be taken once."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._left = dict(arrays)

    def floats(self, name: str, *shape: int | None, dtype: Any = np.float64) -> NDArray[Any]:
        """Finite numbers of this shape; None stands for any length."""
        with np.errstate(over="ignore"):
            array = self._take(name, "f", shape).astype(dtype)
        require(
            bool(np.isfinite(array).all()), f"{name} holds something that is not a finite number"
        )
        return array

    def wholes(self, name: str, *shape: int | None, dtype: Any = np.int64) -> NDArray[Any]:
        """Whole numbers of this shape, none below -1; a type has room for them."""
        array = self._take(name, "i", shape)
        if array.size:
            inside = array.min() >= -1 and array.max() <= np.iinfo(dtype).max
            require(bool(inside), f"{name} holds {array.min()} to {array.max()}")
        return array.astype(dtype)

    def float_pieces(self, name: str, n: int) -> list[NDArray[Any]]:
        """n arrays of finite numbers that stand one after the other."""
        return self._split(name, self.floats(name, None), n)

    def whole_pieces(self, name: str, n: int, dtype: Any = np.int64) -> list[NDArray[Any]]:
        """n arrays of whole numbers that stand one after the other."""
        return self._split(name, self.wholes(name, None, dtype=dtype), n)

    def end(self) -> None:
        """Nothing may be left."""
        left = ", ".join(sorted(self._left))[:80]
        require(not self._left, f"it has arrays that mean nothing: {left}")

    def _split(self, name: str, array: NDArray[Any], n: int) -> list[NDArray[Any]]:
        sizes = self.wholes(f"{name}_sizes", n)
        fits = bool((sizes >= 0).all() and (sizes <= len(array)).all())
        require(fits and int(sizes.sum()) == len(array), f"{name} and its sizes differ")
        return np.split(array, np.cumsum(sizes)[:-1])

    def _take(self, name: str, kind: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        require(name in self._left, f"it lacks the array {name}")
        array = self._left.pop(name)
        require(array.dtype.kind == kind, f"{name} is of the type {array.dtype}")
        fits = array.ndim == len(shape) and all(
            wanted is None or wanted == found
            for wanted, found in zip(shape, array.shape, strict=True)
        )
        wanted = " x ".join("any" if length is None else str(length) for length in shape)
        require(fits, f"{name} has the shape {array.shape} instead of {wanted[:80]}")
        return array


def pack(name: str, pieces: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Arrays of different lengths as one, with their sizes; `Arrays` has them again as pieces."""
    return {name: np.concatenate(pieces), f"{name}_sizes": np.array([len(p) for p in pieces])}


def facts_of(facts: Any, settings: type[_T]) -> tuple[_T, tuple[str, ...]]:
    """The settings and the notes among the facts of a state."""
    require(isinstance(facts, dict) and facts.keys() == {"settings", "notes"}, "its facts are odd")
    notes, given = facts["notes"], facts["settings"]
    require(isinstance(notes, list), "its notes are not a list")
    require(all(isinstance(note, str) for note in notes), "a note is not text")
    known = {field.name for field in dataclasses.fields(settings)}  # type: ignore[arg-type]
    require(isinstance(given, dict) and given.keys() <= known, "it has settings that are unknown")
    # JSON has lists where settings have tuples.
    plain = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
    for name, value in plain.items():
        parts = value if isinstance(value, tuple) else (value,)
        finite = all(math.isfinite(one) for one in parts if isinstance(one, float))
        require(finite, f"its setting {name} is not a finite number")
    try:
        made = _unchecked(settings, plain)
        require_fields(made)
        return settings(**plain), tuple(notes)
    except (ValueError, TypeError) as error:
        raise ValueError(f"its settings cannot be used: {error}") from None


def _unchecked(settings: type[_T], given: dict[str, Any]) -> _T:
    """Settings whose own check has not run: it compares values that may be of any type."""
    made = object.__new__(settings)
    for field in dataclasses.fields(settings):  # type: ignore[arg-type]
        default = None if field.default is dataclasses.MISSING else field.default
        object.__setattr__(made, field.name, given.get(field.name, default))
    return made

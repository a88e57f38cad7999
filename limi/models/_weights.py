"""Which files beside an ONNX graph hold its weights, read from the graph's own bytes.

Large graphs keep tensors in files of their own and name them. What a model is depends on those
files too; and a name may lead out of the graph's folder, to any file of the machine. The format is
protocol buffers, of which the few messages that can hold a tensor are followed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from limi.errors import BadModel, LimiError
from limi.models._files import content_of, unreadable
from limi.system.reading import is_file

__all__ = ["beside"]

# By message, the fields that lead on to another one.
_FOLLOWED: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor",
        6: "graph",
        10: "tensor",
        11: "graph",
        22: "sparse",
        23: "sparse",
    },
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
    "entry": {},
}
_KEY, _VALUE = 1, 2  # of an entry
_MOST_FIELDS = 5_000_000  # a network that keeps its weights elsewhere has fewer


def beside(path: Path) -> list[Path]:
    """The files that a graph reads its weights from, each once; BadModel where it must not."""
    try:
        content = content_of(path)
        # A forest's nodes are millions of fields, and hardly any graph has weights elsewhere.
        names = sorted(set(_locations(memoryview(content)))) if b"location" in content else []
        files = [_inside(path, name.decode()) for name in names]
    except LimiError:
        raise
    except (ValueError, IndexError) as error:
        raise unreadable(str(path), "an ONNX model", error) from None
    absent = [file.name for file in files if not is_file(file)]
    if absent:
        raise BadModel(
            f"{str(path)!r} keeps weights in {absent[0]!r}, which is not in the same folder; copy "
            "that file there"
        )
    return files


def _inside(path: Path, name: str) -> Path:
    place = Path(name)
    if place.is_absolute() or ".." in place.parts or "\0" in name or not place.name:
        raise BadModel(
            f"{str(path)!r} was not opened: it reads weights from {name!r}, outside its folder; "
            "save the model again with its weights beside it, or inside"
        )
    return path.parent / place


def _locations(content: memoryview) -> Iterator[bytes]:
    """The names of files that tensors say they are kept in."""
    waiting, left = [("model", content)], _MOST_FIELDS
    while waiting:
        message, part = waiting.pop()
        followed, entry = _FOLLOWED[message], {}
        for number, value in _fields(part):
            left -= 1
            if left < 0:
                raise ValueError("it has too many parts")
            if value is None:
                continue
            if number in followed:
                waiting.append((followed[number], value))
            elif message == "entry":
                entry[number] = bytes(value)
        if entry.get(_KEY) == b"location":
            yield entry.get(_VALUE, b"")


def _fields(part: memoryview) -> Iterator[tuple[int, memoryview | None]]:
    """Number and bytes of each field; None for one that holds a number itself."""
    at = 0
    while at < len(part):
        tag, at = _varint(part, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            _, at = _varint(part, at)
            yield number, None
        elif kind == 2:
            size, at = _varint(part, at)
            if at + size > len(part):
                raise ValueError("it is cut off")
            yield number, part[at : at + size]
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
            yield number, None
        else:
            raise ValueError("it is damaged or has a different format")


def _varint(part: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = part[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("it is damaged or has a different format")

"""What programs stumble over: values, names and bytes, and edits of bytes, JSON and archives.

Every list begins with the tamest entry, so that shrinking leads there. No text here names a place
outside the scratch folder.
"""

from __future__ import annotations

import copy
import io
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.hostile.draw import Draw

TEXTS = (
    *("x", "", " ", "0", "-1", "-", "--", "nan", "None", "true", "1e999", "0x10", "1_000", "+"),
    *("é", "ß" * 40, "A" * 300, "A" * 5000, "1" * 400, "\u0663", "\U0001d7d9", "\ufeff", "\u200b"),
    *("a\nb", "a\rb", "a\tb", "\x1b[31mred", "\x1b]0;title\x07", "\x9b31m", "\x85", "\x7f", "\x08"),
    *("\u202eevil", "\u2066x\u2069", "\u200fx", "\u061c", "\u2028", "e\u0301\u0301\u0301"),
    *("=cmd|' C calc'!A0", "+1+1", "@SUM(1)", "<script>alert(1)<script>", "{{7*7}}", "${x}"),
    *("[bold]x", "%s%n%d", "';--", '"', "'", "`x`", "$(x)", "a|b", "#x", "\\", "\\x1b", "*", "?"),
    *(
        "__class__",
        "sex__partner",
        "score",
        "origin",
        "target",
        "columns",
        "\udcff\udcfe",
        "\ud800",
    ),
)
"""Texts for cells, names and fields; the last two are no UTF-8."""

WORDS = tuple(text for text in TEXTS if "\ud800" not in text)
"""Texts that an operating system can hand to a program."""

INTEGERS = (
    *("1", "0", "-1", "2", "7", "100", "-100", "2147483648", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775809", "1" + "0" * 20, "1" + "0" * 400, "1.0", "1e3"),
    *("1_0", " 1", "0x1", "\u0663", "nan", "inf", "", "x", "-", "1,000", "\udcff"),
)
FLOATS = (
    *("0.5", "0", "1", "-1", "0.1", "-0.0", "1e-320", "1e308", "1e309", "-1e308", "nan", "NaN"),
    *(
        "inf",
        "-inf",
        "Infinity",
        "0,5",
        "1_0.5",
        "0x1p3",
        "",
        "x",
        "50%",
        "1" + "0" * 400,
        "\udcff",
    ),
)
VALUES: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 1000, 2**31, 2**31 - 1, -(2**31), 2**53 + 1, 2**63, -(2**63) - 1, 10**20),
    *(10**400, 0.5, -0.5, 1e308, 1e-320, float("nan"), float("inf"), -float("inf")),
    *(True, False, None, [], {}, [[]], [None], {"x": 1}, {"": {}}, "", "x", "0", "1e999", "nan"),
    *("\x1b[31m", "\u202e", "A" * 3000, [0] * 300, "\x00", "a\nb", "<script>", "\ud800"),
)
"""Values for JSON and TOML."""

NUMBERS = (0.0, 1.0, -1.0, 0.5, 2.0, 1e6, -1e6, 1e300, -1e300, 2.0**31, 2.0**63, np.nan, np.inf)

TOKENS = (
    *(b"0", b"\x00", b"\xff", b"\n", b"\r", b'"', b"'", b",", b";", b"\t", b"|", b" ", b"-", b"="),
    *(b"nan", b"inf", b"1e999", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\xaf"),
    *(b"\x1b[31m", b"\xc2\x9b", b"\xe2\x80\xae", b"9" * 400, b"A" * 2000, b"\x00" * 64),
    *(b"[" * 3000, b"{" * 3000, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\xff" * 8),
    *(b"\x00\x00\x00\x80", b"18446744073709551615", b"-9223372036854775809"),
)
"""Bytes to write into files."""


# -- bytes ---------------------------------------------------------------------------------


def damaged(draw: Draw, data: bytes, most: int = 4) -> bytes:
    """The bytes after a few edits: cut, flipped, overwritten, put in, taken out, doubled."""
    for _ in range(1 + draw.below(most)):
        data = draw.pick(_EDITS)(draw, data)
    return data


def _place(draw: Draw, data: bytes) -> int:
    # Heads and tails of files say most of how the rest is read.
    if not data:
        return 0
    span = min(len(data), draw.pick((len(data), 64, 512)))
    place = draw.below(span)
    return len(data) - 1 - place if draw.chance(30) else place


def _cut(draw: Draw, data: bytes) -> bytes:
    return data[: _place(draw, data)]


def _flip(draw: Draw, data: bytes) -> bytes:
    place = _place(draw, data)
    if not data:
        return data
    return data[:place] + bytes([data[place] ^ 1 << draw.below(8)]) + data[place + 1 :]


def _overwrite(draw: Draw, data: bytes) -> bytes:
    place, token = _place(draw, data), draw.pick(TOKENS)
    return data[:place] + token + data[place + len(token) :]


def _put_in(draw: Draw, data: bytes) -> bytes:
    place = _place(draw, data)
    return data[:place] + draw.pick(TOKENS) + data[place:]


def _take_out(draw: Draw, data: bytes) -> bytes:
    place = _place(draw, data)
    return data[:place] + data[place + 1 + draw.below(64) :]


def _double(draw: Draw, data: bytes) -> bytes:
    place = _place(draw, data)
    return data[: place + 1 + draw.below(256)] + data[place:]


def _noise(draw: Draw, data: bytes) -> bytes:
    place = _place(draw, data)
    noise = draw.bytes(1 + draw.below(16))
    return data[:place] + noise + data[place + len(noise) :]


def _empty(draw: Draw, data: bytes) -> bytes:
    return draw.pick((b"", b"\x00", b"\n", b"x", b"\xef\xbb\xbf", b"PK\x03\x04", b"{}", b"[]"))


_EDITS: Sequence[Callable[[Draw, bytes], bytes]] = (
    *(_flip, _cut, _overwrite, _put_in, _take_out, _double, _noise, _empty),
)


# -- texts of lines, words and numbers -----------------------------------------------------


def respelled(draw: Draw, text: str, values: Sequence[str] = (), most: int = 3) -> str:
    """A text in which a few words or numbers are others."""
    for _ in range(1 + draw.below(most)):
        words = list(re.finditer(r"[\w.+-]+", text))
        if not words:
            return text
        word = words[draw.below(len(words))]
        new = draw.pick(values or INTEGERS + FLOATS + WORDS)
        text = text[: word.start()] + new + text[word.end() :]
    return text


# -- JSON ----------------------------------------------------------------------------------


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a tree of lists and dicts, the root apart."""
    inner = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    return [place for key, value in inner for place in [(*path, key), *places(value, (*path, key))]]


def put(tree: Any, path: Sequence[Any], value: Any) -> Any:
    """A copy of a tree with another value at a place."""
    tree = copy.deepcopy(tree)
    part = tree
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return tree


def without(tree: Any, path: Sequence[Any]) -> Any:
    """A copy of a tree without a place."""
    tree = copy.deepcopy(tree)
    part = tree
    for key in path[:-1]:
        part = part[key]
    del part[path[-1]]
    return tree


def at(tree: Any, path: Sequence[Any]) -> Any:
    """The value at a place."""
    for key in path:
        tree = tree[key]
    return tree


def edited(draw: Draw, tree: Any, values: Sequence[Any] = VALUES, most: int = 3) -> Any:
    """A tree after a few edits: other values, lost ones, swapped ones, other shapes."""
    for _ in range(1 + draw.below(most)):
        there = places(tree)
        if not there:
            return draw.pick(values)
        path = draw.pick(there)
        how = draw.below(10)
        if how < 6:
            tree = put(tree, path, draw.pick(values))
        elif how == 6:
            tree = without(tree, path)
        elif how == 7:
            tree = put(tree, path, copy.deepcopy(at(tree, draw.pick(there))))
        elif how == 8:
            tree = put(tree, path, [at(tree, path)])
        else:
            tree = put(tree, path, {draw.pick(TEXTS): at(tree, path)})
    return tree


def as_json(tree: Any) -> bytes:
    """JSON as a careless program writes it: with NaN, and lone surrogates escaped."""
    return json.dumps(tree).encode()


def nested(depth: int, how: str = "[") -> bytes:
    """JSON or TOML that is deep."""
    return (how * depth + {"[": "]", '{"a":': "}"}[how] * depth).encode()


# -- arrays and archives -------------------------------------------------------------------


def to_npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=array.dtype == object)
    return buffer.getvalue()


def from_npy(data: bytes) -> np.ndarray:
    return np.load(io.BytesIO(data), allow_pickle=False)


def warped(draw: Draw, array: np.ndarray) -> np.ndarray:
    """An array with other cells, another shape or another type."""
    how = draw.below(8)
    array = array.copy()
    if how <= 2 and array.size and array.dtype.kind in "fiu":
        flat = array.reshape(-1)
        with np.errstate(all="ignore"):
            for _ in range(1 + draw.below(3)):
                value = np.float64(draw.pick(NUMBERS))
                whole = array.dtype.kind in "iu" and not np.isfinite(value)
                flat[draw.below(flat.size)] = (np.int64(-9) if whole else value).astype(array.dtype)
        return array
    if how == 3 and array.dtype.names:
        name = draw.pick(array.dtype.names)
        if array.size and array[name].dtype.kind in "fiu":
            with np.errstate(all="ignore"):
                value = np.float64(draw.pick(NUMBERS[:-2]))
                array.reshape(-1)[name][draw.below(array.size)] = value.astype(array[name].dtype)
        return array
    if how == 4:
        return array[: len(array) // 2] if array.ndim else array
    if how == 5:
        return array.reshape(draw.pick(((-1,), (1, -1), (-1, 1), (1, 1, -1))))
    if how == 6 and array.dtype.names is None:
        kind = draw.pick(("f4", "i8", "u1", "c16", "U8", "M8[s]", "?", "f2"))
        try:
            with np.errstate(all="ignore"):
                return array.astype(kind)
        except (TypeError, ValueError):
            return array.astype("U8")
    if how == 7:
        return draw.pick((np.zeros(0), np.zeros((0, 3)), np.array(1.0), np.full(5, np.nan)))
    return np.concatenate([array, array]) if array.ndim else array[None]


def unzipped(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def zipped(records: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in records.items():
            # A fixed date: the same input is the same bytes.
            file.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, method)
    return buffer.getvalue()


def rezipped(draw: Draw, data: bytes) -> bytes:
    """An archive with a record that was edited, lost, renamed, doubled or damaged."""
    records = unzipped(data)
    for _ in range(1 + draw.below(2)):
        name = draw.pick(sorted(records))
        how = draw.below(8)
        if how <= 4:
            records[name] = reshaped(draw, name, records[name])
        elif how == 5:
            del records[name]
        elif how == 6:
            records[draw.pick(("x", "../x", name + ".npy", "a/" * 50 + "x"))] = records.pop(name)
        else:
            records["extra.npy"] = records[name]
        if not records:
            break
    return zipped(records, draw.pick((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def reshaped(draw: Draw, name: str, data: bytes) -> bytes:
    """A record edited as what it is: JSON, an array, or bytes."""
    if draw.chance(25):
        return damaged(draw, data)
    if name.endswith(".json") or name == "schema":
        return as_json(edited(draw, json.loads(data)))
    try:
        array = from_npy(data) if name.endswith(".npy") else None
    except ValueError:  # damaged already
        array = None
    return damaged(draw, data) if array is None else to_npy(warped(draw, array))

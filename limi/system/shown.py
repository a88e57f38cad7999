"""Text and JSON that are safe to show, whatever data they are about.

Names of files and columns, cells, and what a library says may hold characters that steer a
terminal (ESC and its 8-bit kin), start a line, turn the writing around, or cannot be encoded at
all. Whatever limi prints or writes as text goes through one of these functions.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from types import NoneType
from typing import Any

__all__ = ["clean", "clean_lines", "one_line", "spell_json", "to_json", "to_toml"]

# Controls of both kinds, line and paragraph separators, marks of direction, and halves of a
# character, which file names that are not UTF-8 turn into.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_LONGEST = 1000  # characters of a sentence: enough for any of ours, and a screen at most


def clean(text: str) -> str:
    """Text with unsafe characters spelled, on one line.

    >>> clean("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return _UNSAFE.sub(_spell, text)


def clean_lines(text: str) -> str:
    """Text of several lines with every other unsafe character spelled."""
    return "\n".join(map(clean, text.split("\n")))


def one_line(text: str) -> str:
    """What a person or a library said as one clean line, without its middle where it is endless."""
    line = clean(" ".join(text.split("\n")).strip())
    if len(line) <= _LONGEST:
        return line
    # The beginning says what was given, the end what to try.
    return f"{line[: _LONGEST * 2 // 3]} ... {line[-_LONGEST // 3 :]}"


def to_json(tree: Any, *, ascii_only: bool = False) -> str:
    """One JSON value as any parser reads it: what is not a finite number is null."""
    text = json.dumps(_plain(tree), indent=2, ensure_ascii=ascii_only, allow_nan=False, default=str)
    return spell_json(text)


def spell_json(text: str) -> str:
    """JSON, or strings of TOML, with unsafe characters spelled so that they read back the same.

    >>> spell_json('"a\\x9bb"')
    '"a\\\\u009bb"'
    """
    # What is unsafe stands inside strings only; line ends of the layout stay as they are.
    return "\n".join(
        _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in text.split("\n")
    )


def to_toml(value: Any) -> str:
    """A value of TOML on one line; the standard library reads TOML but does not write it.

    >>> to_toml({"a": [True, 1.5]})
    '{ "a" = [true, 1.5] }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return spell_json(json.dumps(value, ensure_ascii=False))
    if isinstance(value, list):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{to_toml(k)} = {to_toml(v)}" for k, v in value.items()) + " }"
    return repr(value)


def _spell(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()  # numpy's scalars and arrays
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, (str, int, NoneType)) else str(key): _plain(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value

"""Files that a user names to be read: regular ones, which end and can be read twice."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from limi.errors import InvalidInput

__all__ = ["is_file", "read_text", "regular"]

_LONGEST = 160  # characters of a path that are quoted


def is_file(path: str | Path) -> bool:
    """Is there such a file? No name is too long or too odd to be asked for."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def regular(path: str | Path, what: str = "a file") -> Path:
    """The path of a regular file; InvalidInput for anything else, which is not opened.

    A named pipe is waited for until somebody writes, and a device may never end.
    """
    path = Path(path)
    shown = repr(str(path) if len(str(path)) <= _LONGEST else f"{str(path)[:_LONGEST]} ...")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {shown}; give {what}") from None
    except (OSError, ValueError) as error:  # a name that is too long, or that no file can have
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"the file {shown} cannot be read: {why}; give {what}") from None
    if stat.S_ISDIR(mode):
        raise InvalidInput(f"{shown} is a folder; give {what}")
    if not stat.S_ISREG(mode):
        raise InvalidInput(f"{shown} is a pipe or a device, not a file; give {what}")
    return path


def read_text(path: str | Path, what: str = "a text file") -> str:
    """The text of a regular file; InvalidInput if it cannot be read."""
    path = regular(path, what)
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{str(path)!r} is not UTF-8 text; give {what}") from None
    except OSError as error:
        why = error.strerror or error
        raise InvalidInput(f"the file {str(path)!r} cannot be read: {why}") from None

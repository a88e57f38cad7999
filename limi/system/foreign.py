"""Foreign code at work: what it prints goes to standard error, what it raises becomes a sentence.

A model, its library and a user's function run in this process. Standard output belongs to limi's
result, so nothing of theirs may mix with it, whether they print from Python or from C; and an exit
that they call is an error of theirs, not the end of the run.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TextIO, cast

from limi.errors import LimiError
from limi.system.watch import OutOfTime

__all__ = ["at_work", "reason", "to_stderr"]

_LONGEST = 200


@contextmanager
def at_work(told: Callable[[BaseException], LimiError]) -> Iterator[None]:
    """While foreign code works: its prints go to standard error, its errors become `told(error)`.

    Our own errors pass, and so do a lack of memory, the end of a budget and the user's interrupt.
    """
    with to_stderr():
        try:
            yield
        except (LimiError, MemoryError, OutOfTime, KeyboardInterrupt):
            raise
        # Exits too: a model that ends the program would end it without a result.
        except BaseException as error:
            raise told(error) from error


def reason(error: BaseException) -> str:
    """The first line of what foreign code said, cut to a readable length."""
    lines = [line.strip() for line in _text(error).splitlines() if line.strip()]
    said = f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]} ..."


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an error of foreign code is foreign code itself
        return ""


@dataclass(frozen=True)
class _Kept:
    """Where standard output went before, and the stream of standard error."""

    stream: TextIO | None
    errors: TextIO | None
    descriptor: int | None  # None where no file stands behind number 1


class _Lent:
    """A stream as foreign code gets it: whoever closes it takes nothing from us."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def close(self) -> None:
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_lock = threading.Lock()
_inside = 0  # how many are inside at once, in all threads; the first redirects, the last restores
_kept: _Kept | None = None


@contextmanager
def to_stderr() -> Iterator[None]:
    """Send standard output to standard error meanwhile, of Python and of the whole process."""
    global _inside, _kept
    with _lock:
        if not _inside:
            _kept = _redirect()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _kept is not None:
                _restore(_kept)
                _kept = None


def _redirect() -> _Kept:
    stream, errors = sys.stdout, sys.stderr
    _flush(stream)
    try:
        descriptor = os.dup(1)
    except OSError:  # standard output is closed
        descriptor = None
    else:
        _point_to_stderr()
    if errors is not None:
        sys.stdout = cast("TextIO", _Lent(errors))
    return _Kept(stream, errors, descriptor)


def _point_to_stderr() -> None:
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


def _restore(kept: _Kept) -> None:
    # What foreign code wrote to the stream that it found here, or to C's, is still underway.
    _flush(kept.stream)
    if kept.descriptor is not None:
        os.dup2(kept.descriptor, 1)
        os.close(kept.descriptor)
    sys.stdout = _open(kept.stream, 1)
    sys.stderr = _open(kept.errors, 2)


def _open(stream: TextIO | None, number: int) -> TextIO | None:
    """A standard stream, again where foreign code has closed it; its file is still open."""
    if not getattr(stream, "closed", False):
        return stream
    with suppress(OSError):
        return open(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    return stream


def _flush(stream: TextIO | None) -> None:
    try:
        if stream is not None:
            stream.flush()
    except (AttributeError, OSError, ValueError):  # broken, or closed
        pass
    _c_output()()


@cache
def _c_output() -> Callable[[], Any]:
    """What empties the C library's own buffer, which holds back prints to pipes and files."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):  # no such thing on Windows
        return lambda: None
    for name in ("stdout", "__stdoutp"):  # Linux, macOS
        with suppress(ValueError):
            return partial(library.fflush, ctypes.c_void_p.in_dll(library, name))
    return lambda: None

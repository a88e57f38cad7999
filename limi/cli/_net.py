"""The outermost net: whatever a command raises becomes one sentence and an exit code.

Sentences of our own keep their exit code. Anything else is a fault, of limi, of a library or of
the machine: exit code 4, with the traceback behind LIMI_DEBUG=1. Nothing heavy is imported here,
for memory may be what has run out.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from limi.errors import InvalidInput, LimiError
from limi.system.shown import clean_lines, one_line
from limi.system.spelling import at_command_line

__all__ = ["DEBUG", "exit_code_of", "require_memory"]

DEBUG = "LIMI_DEBUG"

_FAULT = 4
_LIGHT = ("schema", "datasets", "doctor")  # commands that load pandas at most
_LEAST, _LEAST_TO_COMPUTE, _PLENTY = 192 << 20, 1 << 30, 4 << 30  # bytes
_INTERRUPTED = 130
_READER_GONE = 141  # as a shell calls what SIGPIPE has ended
_NO_MEMORY = (
    "memory ran out; try a smaller table, fewer rows, a smaller --max-batch, or a machine with "
    "more memory"
)
# What native code says of memory in exceptions of other types.
_MEMORY_WORDS = ("allocate memory", "bad_alloc", "failed to map segment", "start new thread")


def exit_code_of(run: Callable[[], None]) -> int:
    """The exit code of what was run, after one sentence on standard error where it failed."""
    with _hooks(), at_command_line():
        try:
            _ready_streams()
            _spare_memory()
            run()
            sys.stdout.flush()
        except BaseException as error:
            return _tell(error)
    return 0


def _ready_streams() -> None:
    """Have all three streams, able to take any text, before a file gets the number of one."""
    shut = []
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            shut.append(name)
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if "stdout" in shut:
        raise InvalidInput(
            "standard output is closed, so the result has nowhere to go; send it to a file, or to "
            "/dev/null if you do not need it"
        )


def _spare_memory() -> None:
    """Under a tight limit on memory, have one thread: each takes its own, and where there is none
    for it, the library of linear algebra does not raise but ends the program."""
    allowed = _allowed_memory()
    if allowed is not None and allowed < _PLENTY:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("OMP_NUM_THREADS", "1")


def require_memory(command: str | None) -> None:
    """InvalidInput under a limit with which a command cannot even load what it computes with.

    Python says that it lacks memory; numerical libraries, while they are loaded, end the program
    or try for ever.
    """
    _require(f"limi {command}", _LEAST if command in _LIGHT else _LEAST_TO_COMPUTE)


def _require(what: str, needed: int) -> None:
    allowed = _allowed_memory()
    if allowed is not None and allowed < needed:
        raise InvalidInput(
            f"this process may use {allowed >> 20:,} MB of memory (ulimit -v), but {what} needs at "
            f"least {needed >> 20:,} MB; raise the limit"
        )


def _allowed_memory() -> int | None:
    """Bytes that this process may have (`ulimit -v`); None where there is no limit."""
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _tell(error: BaseException) -> int:
    if _debugging():
        _write(clean_lines("".join(traceback.format_exception(error))))
    code, words = _judge(error)
    if words:
        _write(f"limi: {one_line(words)}\n")
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _abandon(sys.stdout)
    return code


def _debugging() -> bool:
    return os.environ.get(DEBUG, "0") not in ("", "0")


def _judge(error: BaseException) -> tuple[int, str]:
    """The exit code of an exception, and a sentence; none where there is nothing to say."""
    if isinstance(error, LimiError):
        return error.exit_code, str(error)
    if _lacks_memory(error) or _is_from_loading(error):
        try:
            _require("limi", _LEAST)  # too little to read the command, let alone to run it
        except InvalidInput as limit:
            return limit.exit_code, str(limit)
        return _FAULT, _NO_MEMORY
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED, "interrupted"
    if hasattr(error, "exit_code"):  # typer's own: an exit, or a usage error
        return int(error.exit_code), _usage(error)
    if _is_gone_reader(error):
        _abandon(sys.stdout, sys.stderr)
        return _READER_GONE, ""
    if isinstance(error, OSError):
        return _FAULT, _refusal(error)
    if isinstance(error, SystemExit):
        return _FAULT, f"a library ended the program (exit code {error.code}), without a result"
    if isinstance(error, RecursionError):
        return _FAULT, "the input is nested too deeply to be read"
    return _FAULT, (
        f"unexpected error: {type(error).__name__}: {error}; {DEBUG}=1 shows where it happened; "
        "please report it"
    )


def _usage(error: Any) -> str:
    if not hasattr(error, "format_message"):
        return ""
    said = error.format_message().strip()
    context = getattr(error, "ctx", None)
    if not said or context is None:  # without arguments the help itself has been shown
        return str(said)
    return f"{said if said[-1] in '.?!' else f'{said}.'} Try: {context.command_path} --help"


def _lacks_memory(error: BaseException) -> bool:
    said = str(error) if isinstance(error, (RuntimeError, OSError, ImportError)) else ""
    return isinstance(error, MemoryError) or any(words in said for words in _MEMORY_WORDS)


def _is_from_loading(error: BaseException) -> bool:
    """Did a library that found no memory for its threads interrupt us, as OpenBLAS does?"""
    if not isinstance(error, KeyboardInterrupt) or _allowed_memory() is None:
        return False
    innermost = [frame.filename for frame in traceback.extract_tb(error.__traceback__)[-1:]]
    return any("importlib" in name for name in innermost)


def _is_gone_reader(error: BaseException) -> bool:
    """Has the reader of our output gone, as `head` does? That is not an error of ours."""
    if isinstance(error, SystemExit):  # how rich takes it, which shows the help
        return isinstance(error.__context__, BrokenPipeError)
    if not isinstance(error, BrokenPipeError):
        return False
    watch = select.poll()
    for number in (1, 2):
        watch.register(number, 0)  # a pipe without a reader is an error, which is always told
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))


def _refusal(error: OSError) -> str:
    if isinstance(error, FileNotFoundError) and _is_nowhere():
        return "the folder you are in no longer exists; change to another one"
    why = error.strerror or str(error) or type(error).__name__
    named = isinstance(error.filename, (str, bytes))
    place = f" ({os.fsdecode(error.filename)!r})" if named else ""
    return f"the operating system refused: {why}{place}"


def _is_nowhere() -> bool:
    """Was the working folder removed? Libraries look for it when they are imported."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _abandon(*streams: Any) -> None:
    """Drop what a stream still holds; Python would try once more to write it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        with suppress(OSError, ValueError, AttributeError):  # no file behind it
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        # A model may have closed the stream; where the file behind it is gone as well, the exit
        # code says all that can be said.
        with suppress(OSError):
            os.write(2, text.encode("utf-8", "backslashreplace"))


@contextmanager
def _hooks() -> Iterator[None]:
    """Errors that no caller can catch, in threads and destructors, without their tracebacks."""
    before = sys.unraisablehook, threading.excepthook
    if not _debugging():
        sys.unraisablehook = lambda unraisable: None
        threading.excepthook = lambda given: None
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = before

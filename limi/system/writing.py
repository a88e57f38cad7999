"""The one way in which limi writes a file: beside its place, then renamed.

A reader finds the old file or the new one, each whole. A draft has a name that nobody can foresee,
is always created again, and is locked while it is written: the one that a killed program left is
told by its free lock, and removed by the next program that writes into the folder.
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias

from limi.errors import FailedWrite, InvalidInput, LimiError

__all__ = [
    "Content",
    "Held",
    "absolute",
    "append",
    "is_draft",
    "lock",
    "make_folder",
    "place",
    "refusal",
    "require_apart",
    "sweep",
    "write",
    "write_all",
]

Content: TypeAlias = bytes | str | Callable[[BinaryIO], object]
"""What a file gets: bytes, text as UTF-8, or a function that writes into the open file."""

_DRAFT = re.compile(r"\.limi-[0-9a-f]{16}\.partial")
# Links are never followed, and a named pipe is not waited for; Windows knows neither.
_SAFELY = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
# Told by a path that cannot be used; all else is the system's trouble.
_OF_THE_PATH = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EEXIST, errno.EINVAL, errno.ENOTEMPTY, errno.ENXIO),
}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Held(Exception):
    """Another program has locked the file."""


def absolute(path: str | Path) -> Path:
    """The path from the root on, so that it means the same wherever the program goes later."""
    try:
        return Path(path).absolute()
    except FileNotFoundError:
        raise InvalidInput(
            f"{_show(path)} cannot be found, because the folder you are in no longer exists; "
            "change to another one"
        ) from None


def place(path: str | Path, *, replace: bool = True) -> Path:
    """The absolute path of a file to write; InvalidInput where it could not be. Creates nothing.

    Asked for before the work, it tells a bad path before an hour is spent, and means the same
    place afterwards even if a model has gone to another folder.
    """
    path = absolute(path)
    with _said(path):
        try:
            _check_kind(path)
        except ValueError as error:
            if isinstance(error, LimiError):
                raise
            # A zero in the name, or letters that the system cannot spell.
            raise InvalidInput(
                f"{_show(path)} cannot be written: {error}; name another place"
            ) from None
        if not path.parent.is_dir():
            raise InvalidInput(
                f"there is no folder {_show(path.parent)} to write {_show(path.name)} into"
            )
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise InvalidInput(
                f"the folder {_show(path.parent)} is not writable; name another place"
            )
        if not replace and path.exists():
            raise InvalidInput(f"{_show(path)} exists already; replace it with --force")
    return path


def require_apart(
    outputs: Iterable[tuple[str, str | Path]], inputs: Iterable[tuple[str, str | Path]]
) -> None:
    """InvalidInput where a place to write is one that is read, lies in a folder that is read, holds
    a file that is read, or is the place of two outputs.

    Outputs come with the option that names each, inputs with what they are. What cannot be found is
    left to whoever opens it.
    """
    known = [
        (what, real)
        for what, path in inputs
        if (real := _real(path)) and os.path.exists(real)  # False too where nobody may look
    ]
    for option, path in outputs:
        here = _real(path)
        if here is None:
            continue
        for what, there in known:
            how = _touches(here, there)
            if how:
                raise InvalidInput(
                    f"{option} names {_show(path)}, which {how} {what} of this command; name "
                    "another place"
                )
        known.append((f"the {option}", here))


def _real(path: str | Path) -> Path | None:
    """Where a path leads; None where it cannot be one."""
    try:
        return Path(os.path.realpath(absolute(path)))
    except (OSError, ValueError):
        return None


def _touches(here: Path, there: Path) -> str:
    """What writing here does to what is there, in words; empty where nothing."""
    if here == there:
        return "is"
    if there in here.parents:
        return "lies in"
    return "holds" if here in there.parents else ""


def write(path: str | Path, content: Content) -> None:
    """Write a file, new or instead of the one that is there."""
    write_all({Path(path): content})


def write_all(contents: Mapping[Path, Content]) -> None:
    """Write files: all are on the disk before the first takes its place.

    InvalidInput where a path cannot be written, FailedWrite where the system fails; what was
    there before is then still there, and nothing else is.
    """
    places = [place(path) for path in contents]
    for folder in dict.fromkeys(path.parent for path in places):
        sweep(folder)
    with ExitStack() as stack:
        drafts = []
        for path, content in zip(places, contents.values(), strict=True):
            with _said(path):
                draft = stack.enter_context(_draft(path.parent))
                draft.fill(content)
                drafts.append(draft)
        for path, draft in zip(places, drafts, strict=True):
            with _said(path):
                draft.settle(path)


def append(fd: int, data: bytes | memoryview) -> None:
    """Write all of the data at the end of an open file, or leave the file as it was."""
    end = os.lseek(fd, 0, os.SEEK_END)
    try:
        _write(fd, data)
    except BaseException:
        # A full disk may have taken a part; room for less there always is.
        os.ftruncate(fd, end)
        raise


def make_folder(path: Path, *, option: str = "") -> None:
    """Make a folder with those above it, unless it is there, and see that it can be written into.

    `option` names the option that names the folder, for the sentence where it cannot.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        what = f"{option} names {_show(path)}, which" if option else path
        raise refusal(what, error, "name another folder") from None


def lock(path: Path) -> io.FileIO:
    """The file, open for reading and writing and locked until it is closed, new where there is
    none; Held where another program has it, InvalidInput where it is not a file.

    The lock is the system's, so that it goes with the program however that ends. Where a file
    system has no locks, everybody gets it.
    """
    while True:
        file = _open(path)
        try:
            if _try_lock(file.fileno()) is False:
                raise Held(str(path))
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(file.fileno())):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()  # Its last owner has just removed it.


def is_draft(name: str) -> bool:
    """Is this the name of a file that is being written, or was when its program was killed?"""
    return _DRAFT.fullmatch(name) is not None


def sweep(folder: Path) -> None:
    """Remove the drafts that killed programs of this user have left in a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_draft(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_abandoned(Path(entry.path))


def refusal(what: str | Path, error: OSError, advice: str = "name another place") -> LimiError:
    """The error for a path or words that cannot be written: the user's to fix, or the system's."""
    words = _show(what) if isinstance(what, Path) else what
    why = error.strerror or str(error)
    if error.errno in _OF_THE_PATH:
        return InvalidInput(f"{words} cannot be written: {why}; {advice}")
    first = "make room" if error.errno in _FULL else "try again"
    return FailedWrite(f"{words} cannot be written: {why}; {first}, or {advice}")


class _Draft:
    """A file that has not yet taken its place."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f".limi-{secrets.token_hex(8)}.partial"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY
        self._fd = os.open(self.path, flags, 0o666)
        self._open = True

    def is_mine(self) -> bool:
        """Is it locked, and still there? Before it was locked, a sweep may have taken it away."""
        return _try_lock(self._fd) is not False and os.fstat(self._fd).st_nlink > 0

    def fill(self, content: Content) -> None:
        """Write all of it, down to the disk."""
        if isinstance(content, str):
            content = content.encode("utf-8", "backslashreplace")
        if isinstance(content, bytes):
            _write(self._fd, content)
        else:
            with os.fdopen(self._fd, "wb", closefd=False) as file:
                content(file)
        os.fsync(self._fd)

    def settle(self, path: Path) -> None:
        """Take the place of what is there, with its permissions: what was private stays so."""
        _check_kind(path)
        with suppress(FileNotFoundError):
            mine = self._fd if os.chmod in os.supports_fd else self.path
            os.chmod(mine, stat.S_IMODE(os.lstat(path).st_mode) & 0o777)
        if sys.platform == "win32":
            self.close()  # an open file cannot be renamed there
        os.replace(self.path, path)

    def close(self) -> None:
        """Let go of the file."""
        if self._open:
            self._open = False
            os.close(self._fd)

    def discard(self) -> None:
        """Leave nothing behind, unless it has taken its place."""
        if sys.platform == "win32":
            self.close()  # nor removed
        try:
            with suppress(OSError):
                os.unlink(self.path)
        finally:
            self.close()


@contextmanager
def _draft(folder: Path) -> Iterator[_Draft]:
    draft = _Draft(folder)
    while not draft.is_mine():
        draft.close()
        draft = _Draft(folder)
    try:
        yield draft
    finally:
        draft.discard()


@contextmanager
def _said(path: Path) -> Iterator[None]:
    """One sentence where the system refuses a path."""
    try:
        yield
    except OSError as error:
        raise refusal(path, error) from None


def _check_kind(path: Path) -> None:
    """InvalidInput where something stands at the path that is not a regular file."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        # Who planted it, and what it leads to when it is used, nobody knows.
        raise InvalidInput(
            f"{_show(path)} is a link to {_show(os.readlink(path))}; name that file directly"
        )
    if not stat.S_ISREG(mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "something else")
        raise InvalidInput(f"{_show(path)} is {kind}; name a file to write")


def _open(path: Path) -> io.FileIO:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | _SAFELY, 0o666)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise InvalidInput(f"{_show(path)} is not a file; name another place")
    return io.FileIO(fd, "r+b")


def _write(fd: int, data: bytes | memoryview) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _remove_abandoned(path: Path) -> None:
    fd = os.open(path, os.O_RDWR | _SAFELY)
    try:
        mine = not hasattr(os, "geteuid") or os.fstat(fd).st_uid == os.geteuid()
        if mine and _try_lock(fd):
            os.unlink(path)
    finally:
        os.close(fd)


def _try_lock(fd: int) -> bool | None:
    """Is the lock ours now? None where the file system has no locks."""
    try:
        if sys.platform == "win32":
            import msvcrt

            # Locks there shut out readers as well, so a byte is taken that no file has.
            os.lseek(fd, 1 << 60, os.SEEK_SET)
            try:
                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(fd, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK) else None
    return True


def _show(path: str | Path, most: int = 160) -> str:
    """A path in quotes, cut to a readable length."""
    text = str(path)
    return repr(text if len(text) <= most else f"{text[:most]} ...")

"""Workers on this machine: processes of one thread each.

A process is forked where the system and the work allow it: it then has the work, with the model and
whatever else is in memory, at once and without copying. Otherwise a Python of its own is started,
and the work travels as a pickle that this process has just written, or as the name of the model's
file.

The standard pools neither end their workers at once when the user interrupts, nor outlive a worker
that the system kills, and run the user's script again; a run of hours needs better.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from limi.workers._base import Killed, Work, arrive, attempt, forks, pack, settle, unpack

__all__ = ["Local", "Start"]

Start = Literal["fork", "anew"]

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from limi.workers.local import main; main()"
)


@dataclass(frozen=True)
class Local:
    """So many processes on this machine."""

    workers: int
    start: Start | None = None  # by default forked, where the system can

    def hire(self, work: Work) -> _Process:
        """A process that does this work."""
        able = "fork" in multiprocessing.get_all_start_methods()
        start = self.start or ("fork" if able and forks(work) else "anew")
        if start == "fork":
            return _Pooled(work, "fork")
        return _Started(work) if able else _Pooled(work, "spawn")

    def wait(self, hands: Sequence[_Process], seconds: float | None = None) -> list[_Process]:
        """Those that have answered, or ended."""
        ready = wait([hand.pipe for hand in hands], seconds)
        return [hand for hand in hands if hand.pipe in ready]

    def close(self) -> None:
        """Processes end with their crew."""


class _Process:
    """A process that takes one job at a time."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe

    def begin(self, job: Any) -> None:
        """Send it a job; a process that has ended meanwhile is seen by its result."""
        with suppress(OSError):
            self.pipe.send(job)

    def result(self) -> Any:
        """What it answers; Killed where it has ended."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            raise Killed(
                f"a worker was killed (exit code {self._ended()}) every time it was given the same "
                "job; did memory run out? Use fewer --workers, or a smaller --max-batch"
            ) from None

    @property
    def pid(self) -> int:
        """Of the process."""
        raise NotImplementedError

    def end(self) -> None:
        """End the process, at work or not."""
        raise NotImplementedError

    def _ended(self) -> int | None:
        """The exit code of a process that has ended."""
        raise NotImplementedError


class _Pooled(_Process):
    """A copy of this process; on systems that cannot fork, what multiprocessing has instead."""

    def __init__(self, work: Work, method: Literal["fork", "spawn"]) -> None:
        context: Any = multiprocessing.get_context(method)
        mine, theirs = context.Pipe()
        super().__init__(mine)
        given = work if method == "fork" else pack(work, partial(pickle.dumps, protocol=5))
        self._process = context.Process(target=_serve_pooled, args=(theirs, given), daemon=True)
        with warnings.catch_warnings():
            # Python warns of forking while threads run. The child uses none of them, and what does
            # not outlive a fork is opened again there, or is not forked.
            warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
            self._process.start()
        theirs.close()  # else its end would never be seen

    @property
    def pid(self) -> int:
        """Of the process."""
        return int(self._process.pid or 0)

    def end(self) -> None:
        """End the process, at work or not."""
        self.pipe.close()
        self._process.kill()
        self._process.join(10)
        self._process.close()

    def _ended(self) -> int | None:
        self._process.join(5)
        code: int | None = self._process.exitcode
        return code


class _Started(_Process):
    """A Python of its own, which imports what it needs and runs no script of the user's."""

    def __init__(self, work: Work) -> None:
        message = pack(work, partial(pickle.dumps, protocol=5))
        mine, theirs = socket.socketpair()
        super().__init__(Connection(mine.detach()))
        # Not from the folder one is in, which may hold files named like Python's own.
        command = [sys.executable, "-P", "-c", _START, json.dumps(sys.path), str(theirs.fileno())]
        with theirs:
            # Its standard input is never written to: it ends with this process.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=2,
                pass_fds=[theirs.fileno()],
            )
        with suppress(OSError):
            self.pipe.send_bytes(message)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def end(self) -> None:
        """End the process, at work or not."""
        self.pipe.close()
        self._process.kill()
        self._process.communicate()

    def _ended(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        return self._process.returncode


# -- in the worker --------------------------------------------------------------------------


def _serve_pooled(pipe: Connection, work: Work | bytes) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    _end_with(parent.join)
    with settle():
        _serve(pipe, unpack(work) if isinstance(work, bytes) else arrive(work))


def main() -> None:
    """The life of a worker that is a Python of its own."""
    _end_with(sys.stdin.buffer.read)
    pipe = Connection(int(sys.argv[2]))
    with settle():
        _serve(pipe, unpack(pipe.recv_bytes()))


def _serve(pipe: Connection, work: Work) -> None:
    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(attempt(work, job))


def _end_with(wait: Callable[[], Any]) -> None:
    """End with the parent, for which somebody waits: one that was killed cannot end its workers."""

    def end() -> None:
        wait()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()

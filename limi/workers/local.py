"""Workers on this machine: processes of one thread each.

A process is forked where the system and the work allow it: it then has the work, with the model and
whatever else is in memory, at once and without copying. Otherwise a Python of its own is started,
and the work travels as a pickle that this process has just written, or as the name of the model's
file.

The standard pools neither end their workers at once when the user interrupts, nor outlive a worker
that the system kills, and run the user's script again; a run of hours needs better.
"""

from __future__ import annotations

import contextvars
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from limi.workers._base import (
    Killed,
    Stuck,
    Work,
    arrive,
    attempt,
    forks,
    pack,
    settle,
    unpack,
)
from limi.workers._thread_settings import ThreadSettings

__all__ = ["Local", "Start"]

Start = Literal["fork", "anew"]

_CAN_FORK = "fork" in multiprocessing.get_all_start_methods()
_UNFORKABLE = ("jax", "tensorflow")  # whose threads a fork lacks, whatever is done about it
_FORKED_SECONDS, _STARTED_SECONDS = 15.0, 120.0  # after which a process that is not there is late

_SENT_AT_ONCE = 1 << 15  # bytes that a pipe takes before anybody reads

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
        if self._forks(work):
            return _Pooled(work, "fork")
        return _Started(work) if _CAN_FORK else _Pooled(work, "spawn")

    def patience(self, work: Work) -> float:
        """Seconds until a process is there: a fork at once, another has much to import."""
        return _FORKED_SECONDS if self._forks(work) else _STARTED_SECONDS

    def otherwise(self, work: Work, why: str) -> Local:
        """Processes that are started, where forked ones do not answer."""
        if not self._forks(work):
            raise Stuck(why)
        return Local(self.workers, "anew")

    def wait(self, hands: Sequence[_Process], seconds: float | None = None) -> list[_Process]:
        """Those that have answered, or ended."""
        ready = wait([hand.pipe for hand in hands], seconds)
        return [hand for hand in hands if hand.pipe in ready]

    def close(self) -> None:
        """Processes end with their crew."""

    def _forks(self, work: Work) -> bool:
        if self.start is not None:
            return self.start == "fork"
        return _CAN_FORK and forks(work) and not any(name in sys.modules for name in _UNFORKABLE)


def _dumps(thing: Any) -> bytes:
    """Pickled, functions of a notebook or a script among it, which plain pickle would only name."""
    try:
        import cloudpickle
    except ImportError:  # an older joblib brings it inside
        from joblib.externals import cloudpickle
    message: bytes = cloudpickle.dumps(thing, protocol=5)
    return message


class _Process:
    """A process that takes one job at a time."""

    is_expected = False  # nothing comes from it unless it was asked

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
        given = work if method == "fork" else pack(work, _dumps)
        self._process = context.Process(target=_serve_pooled, args=(theirs, given), daemon=True)
        _do_in_another_thread(self._start)
        theirs.close()  # else its end would never be seen

    def _start(self) -> None:
        with warnings.catch_warnings():
            # Python warns of forking while threads run. The child uses none of them, and what does
            # not outlive a fork is opened again there, or is not forked.
            warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
            self._process.start()

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


def _do_in_another_thread(do: Callable[[], None]) -> None:
    """Do something in a thread that has done nothing before, with the settings of this one.

    GNU's OpenMP (LightGBM, torch, scikit-learn) keeps a team of threads for each thread that has
    used it. A fork has the thread that forks and none of its team, for which it would wait for
    ever; whoever forks without a team lets the child make its own.
    """
    settings, context = ThreadSettings.of_this_thread(), contextvars.copy_context()
    raised: list[BaseException] = []

    def run() -> None:
        try:
            settings.take_over()
            context.run(do)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


class _Started(_Process):
    """A Python of its own, which imports what it needs and runs no script of the user's."""

    def __init__(self, work: Work) -> None:
        self._message: bytes | None = pack(work, _dumps)
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
        if len(self._message) <= _SENT_AT_ONCE:
            self._send()

    def begin(self, job: Any) -> None:
        """Send it a job."""
        self._send()
        super().begin(job)

    def _send(self) -> None:
        """Send it the work, once. A large message is waited for until somebody reads it, so all
        processes are started before."""
        message, self._message = self._message, None
        if message is not None:
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

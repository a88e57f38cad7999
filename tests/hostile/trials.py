"""Trials of model files without starting Python: a fork of the process that would start it.

Starting Python and loading a library takes longer than all else that an input does. So the other
process is a fork here, with the same words, pipes, limits and main function.
"""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, NoReturn

from limi.models import trial


class _Forked(subprocess.Popen):
    """A process like any other, whose program is `limi.models.trial.main`."""

    def _execute_child(self, *given: Any) -> None:
        words, pipes = given[0], given[10:16]
        into, from_out, from_err = pipes[0], pipes[3], pipes[5]
        self.pid = os.fork()
        if self.pid == 0:
            _main(words, into, from_out, from_err)
        self._child_created = True
        self._close_pipe_fds(*pipes)


def _main(words: list[str], into: int, from_out: int, from_err: int) -> NoReturn:
    try:
        for number, place in enumerate((into, from_out, from_err)):
            if place != -1:
                os.dup2(place, number)
        os.closerange(3, 256)
        sys.stdin = os.fdopen(0, encoding="utf-8")
        sys.argv = ["-c", *words[words.index("-c") + 2 :]]
        trial.main()
    finally:
        os._exit(70)


def fork() -> None:
    """Let trials of this process and its children fork."""
    trial.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": _Forked})


def start() -> None:
    """Let them start a Python again, as limi does."""
    trial.subprocess = subprocess

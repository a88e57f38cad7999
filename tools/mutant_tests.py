"""Run the tests of one module against one mutant after another; started by `mutants.py`.

    python tools/mutant_tests.py tests/search/test_check.py

Importing and collecting takes longer than most tests, so it is done once, and each mutant runs in
a fork of that. A line of JSON comes in for each mutant (its name, the order of the tests, seconds),
and a line goes out. Without a name the tests run as they are, and the answer says how long each
took and which functions it called.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
from typing import Any, TextIO

import pytest
from mutmut.mutation import trampoline

_MOST_MEMORY = 16 << 30  # a change may ask for any amount


class _Server:
    """Takes the place of pytest's loop over its tests."""

    def __init__(self, inward: TextIO, outward: TextIO) -> None:
        self._in, self._out = inward, outward

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings  # not before pytest has seen its plugin

        # The same examples each time, and a failure is enough: it need not be made small.
        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", derandomize=True, database=None, phases=phases)
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed or not session.items:
            return True  # whoever asks sees that nobody answers, and what pytest says
        for line in self._in:
            told = json.loads(line)
            answer = _plain(session) if not told["mutant"] else _mutated(session, told)
            print(json.dumps(answer), file=self._out, flush=True)
        return True


def _plain(session: pytest.Session) -> dict[str, Any]:
    """Seconds and functions of each test, or the test that fails; what they import stays."""
    read, write = os.pipe()
    before = set(sys.modules)
    child = os.fork()
    if not child:
        seconds, called = [], []
        os.environ["MUTANT_UNDER_TEST"] = "stats"
        for item in session.items:
            names: set[str] = set()
            trampoline.record_trampoline_hit = lambda name, caller, names=names: names.add(name)
            start = time.perf_counter()
            _run(session, [item])
            seconds.append(time.perf_counter() - start)
            called.append(sorted(names))
            if session.testsfailed:
                break
        failed = session.items[len(seconds) - 1].nodeid if session.testsfailed else ""
        imported = [name for name in sys.modules if name not in before]
        told = {"failed": failed, "seconds": seconds, "called": called, "imported": imported}
        with os.fdopen(write, "w") as pipe:
            json.dump(told, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    told = json.loads(answer) if answer else {"failed": "the tests end the process, which"}
    for name in told.pop("imported", ()):
        with contextlib.suppress(Exception):  # some are made up, or stand for others
            importlib.import_module(name)
    return told


def _mutated(session: pytest.Session, told: dict[str, Any]) -> dict[str, Any]:
    """Did a test fail, or all of them together take too long?"""
    end = time.monotonic() + told["seconds"]
    child = os.fork()
    if not child:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
        trampoline.set_mutant_under_test(told["mutant"])
        _run(session, [session.items[place] for place in told["order"]])
        os._exit(1 if session.testsfailed else 0)
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return {"noticed": status != 0}
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return {"noticed": True}


def _run(session: pytest.Session, items: list[pytest.Item]) -> None:
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return


def main() -> int:
    """Serve on standard input and output; what pytest prints goes to standard error."""
    outward = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    inward = os.fdopen(os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    given = ["-x", "-q", "-p", "no:cacheprovider", *sys.argv[1:]]
    return int(pytest.main(given, plugins=[_Server(inward, outward)]))


if __name__ == "__main__":
    sys.exit(main())

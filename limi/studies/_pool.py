"""Jobs in worker processes of one thread each.

The standard pools neither end their workers at once when the user interrupts, nor outlive a worker
that the system kills; a study of hours needs both.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar, cast

from limi.errors import LimiError

__all__ = ["Failure", "Pool"]

Job = TypeVar("Job")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


@dataclass(frozen=True)
class Failure:
    """Why a job has no result."""

    why: str
    kind: str  # name of the exception


class Pool(Generic[Job]):
    """Workers that outlive a list of jobs, for starting one takes seconds.

    One worker works in this process. More are processes started anew, so `work` and the jobs must
    be picklable. They end with the block, whatever ends it.
    """

    def __init__(self, work: Callable[[Job], Any], workers: int) -> None:
        self._work, self._workers = work, workers
        self._crew: list[_Worker] = []

    def __enter__(self) -> Pool[Job]:
        return self

    def __exit__(self, *raised: object) -> None:
        for worker in self._crew:
            worker.end()
        self._crew = []

    def each(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Any]]:
        """Every job with its result, or a Failure, as they finish."""
        if self._workers <= 1:
            for job in jobs:
                yield job, _attempt(self._work, job)
            return
        waiting = deque(jobs)
        for place in range(min(self._workers, len(jobs))):
            if place == len(self._crew):
                self._crew.append(_Worker(self._work))
            self._crew[place].begin(waiting)
        while busy := {worker.pipe: worker for worker in self._crew if worker.job is not None}:
            for pipe in wait(list(busy)):
                worker = busy[cast("Connection", pipe)]
                job, result = worker.job, worker.result()
                if isinstance(result, Failure) and result.kind == "Killed":
                    place = self._crew.index(worker)
                    ended, worker = worker, _Worker(self._work)
                    self._crew[place] = worker
                    ended.end()
                worker.begin(waiting)
                yield job, result


class _Worker:
    """A process that takes one job at a time."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.job: Any = None
        self._process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        self._process.start()
        theirs.close()  # else its end would never be seen

    def begin(self, waiting: deque[Any]) -> None:
        """Take the next job, if there is one."""
        self.job = waiting.popleft() if waiting else None
        if self.job is not None:
            # A process that has ended meanwhile is seen by its result, which never comes.
            with suppress(OSError):
                self.pipe.send(self.job)

    def result(self) -> Any:
        """What came of the job."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self._process.join(5)
            code = self._process.exitcode
            return Failure(
                f"its process was ended from outside (exit code {code}); was the memory full?",
                "Killed",
            )

    def end(self) -> None:
        """End the process, at work or not."""
        self.pipe.close()
        self._process.terminate()
        self._process.join(10)
        self._process.close()


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    # An interrupt is the parent's to act on: it ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A parent that was killed cannot: without it there is nobody to work for.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for name in _THREADS:
        os.environ[name] = "1"
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        while True:
            try:
                job = pipe.recv()
            except EOFError:
                return
            pipe.send(_attempt(work, job))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _attempt(work: Callable[[Job], Any], job: Job) -> Any:
    try:
        return work(job)
    except LimiError as error:
        return Failure(str(error), type(error).__name__)
    except Exception as error:  # a cell that fails must not take the others with it
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(place.filename)}:{place.lineno}"
        return Failure(f"{type(error).__name__} at {where}: {error}", type(error).__name__)

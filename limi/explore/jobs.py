"""Work that may take long: begun by one request, watched by others, and cancelled at any time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from limi.errors import InvalidInput, LimiError
from limi.system import cores
from limi.system.foreign import reason

__all__ = ["Cancelled", "Job", "Jobs", "State", "share_openmp"]

State = Literal["running", "done", "failed", "cancelled"]

_MOST_KEPT = 200  # jobs whose answers can still be asked for
_MOST_AT_ONCE = 8
_MOST_RUNNING = 24  # more are refused: somebody, or something, asks without reading


def share_openmp() -> None:
    """Let the libraries that this thread calls use the cores that are free now.

    OpenMP counts its threads for each thread that calls it, and a team on a busy machine waits for
    its slowest.
    """
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=cores.n_free(), user_api="openmp")


class Cancelled(LimiError):
    """Nobody is waiting for the answer now."""


class Job:
    """One piece of work, with what it has told so far."""

    def __init__(self, number: int, title: str, clock: Callable[[], float]) -> None:
        self.number, self.title = number, title
        self.partial: Any = None  # what is known by now
        self.result: Any = None
        self.error = ""
        self.asked = 0  # questions of the model, by this job alone
        self.waiting_since: float | None = None  # when the model was asked what it has not answered
        self._clock, self.begun = clock, clock()
        self.ended: float | None = None
        self._stop, self._done = threading.Event(), threading.Event()

    @property
    def state(self) -> State:
        """How it stands."""
        if self.error:
            return "failed"
        if self._done.is_set():
            return "done" if not self._stop.is_set() or self.result is not None else "cancelled"
        return "cancelled" if self._stop.is_set() else "running"

    @property
    def seconds(self) -> float:
        """How long it has taken."""
        return (self._clock() if self.ended is None else self.ended) - self.begun

    def tell(self, partial: Any) -> None:
        """Say what is known by now."""
        self.partial = partial

    def look(self) -> None:
        """Cancelled where nobody waits any more."""
        if self._stop.is_set():
            raise Cancelled("it was cancelled")

    @property
    def is_stopped(self) -> bool:
        """Has somebody cancelled it?"""
        return self._stop.is_set()

    def cancel(self) -> None:
        """End it as soon as the model answers; neither its page nor, where the model is a server,
        the next question waits so long."""
        self._stop.set()

    def fail(self, sentence: str) -> None:
        """End it with a sentence."""
        self.error = self.error or sentence
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """Wait for the end; was it reached?"""
        return self._done.wait(seconds)

    def run(self, work: Callable[[Job], Any]) -> None:
        """Do the work, whatever becomes of it."""
        try:
            self.look()
            self.result = work(self)
        except Cancelled:
            pass
        except LimiError as error:
            self.fail(str(error))
        except Exception as error:  # a page must not end because of what a library says
            self.fail(f"this could not be computed: {reason(error)}")
        finally:
            self.ended = self._clock()
            self._done.set()


class Jobs:
    """All jobs of one exploration, and the threads that make its pages."""

    def __init__(
        self, *, patience: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.patience = patience  # seconds that a model may take for one answer
        self._clock = clock
        self._pool = ThreadPoolExecutor(
            _MOST_AT_ONCE, thread_name_prefix="limi-explore", initializer=share_openmp
        )
        # A page of a million findings takes tens of megabytes while it is made, and all cores
        # anyway; more of them at once would only take more memory.
        self.pages = ThreadPoolExecutor(cores.n_cores(), thread_name_prefix="limi-explore-page")
        self._jobs: OrderedDict[int, Job] = OrderedDict()
        self._lock, self._next = threading.Lock(), 1

    def start(self, title: str, work: Callable[[Job], Any]) -> Job:
        """Begin a piece of work."""
        with self._lock:
            for known in self._jobs.values():  # also those whose page nobody has open any more
                self._give_up(known)
            running = sum(job.state == "running" for job in self._jobs.values())
            if running >= _MOST_RUNNING:
                raise InvalidInput(
                    f"{running} questions are still waiting for the model; wait for their answers, "
                    "or cancel some"
                )
            job = Job(self._next, title, self._clock)
            self._next += 1
            self._jobs[job.number] = job
            while len(self._jobs) > _MOST_KEPT:
                self._jobs.popitem(last=False)
        self._pool.submit(job.run, work)
        return job

    def get(self, number: int) -> Job:
        """The job of a number; InvalidInput if it is no longer known."""
        job = self._jobs.get(number)
        if job is None:
            raise InvalidInput(f"question {number} is no longer known; ask it again")
        self._give_up(job)
        return job

    def _give_up(self, job: Job) -> None:
        """Fail a job that the model keeps waiting for too long."""
        since = job.waiting_since
        if since is not None and self._clock() - since > self.patience:
            job.fail(
                f"the model has not answered for {self.patience:g} seconds, so this question was "
                "given up; ask it again, or start limi explore with a longer --timeout"
            )

    def close(self) -> None:
        """Cancel everything, and wait for nothing."""
        for job in list(self._jobs.values()):
            job.cancel()
        for pool in (self._pool, self.pages):
            pool.shutdown(wait=False, cancel_futures=True)

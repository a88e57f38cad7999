"""What an executor offers, and what becomes of a job in a worker.

An executor hires workers, one process each. That is all that `local` and `ray` differ in: who gets
which job, in which order results are taken, and what happens when a worker is killed stands once,
in `_crew`.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from limi.errors import InvalidInput, LimiError
from limi.system import cores
from limi.workers._thread_settings import ThreadSettings

__all__ = [
    "Executor",
    "Failed",
    "Hand",
    "Killed",
    "Stuck",
    "Travels",
    "Trial",
    "Work",
    "arrive",
    "attempt",
    "cannot_travel",
    "forks",
    "pack",
    "settle",
    "unpack",
]

Work = Callable[[Any], Any]
"""What a worker does with a job. The same job has the same result wherever it is done, so that one
whose worker was killed can be done again."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


class Killed(LimiError):
    """A worker was killed every time that it was given a job."""

    exit_code = 4


class Stuck(LimiError):
    """Workers do not answer what this process answers by itself."""

    exit_code = 4


@dataclass(frozen=True)
class Trial:
    """A job that this process has done already, and that workers do before any other: whoever does
    not answer it would not answer the others either."""

    job: Any
    seconds: float  # that this process took


@dataclass(frozen=True)
class Failed:
    """Why a job has no result."""

    error: BaseException
    where: str = ""  # file and line, of an error that nobody expected

    def explain(self, doing: str, advice: str) -> BaseException:
        """The error; where the job was too much for every worker that tried, what to do."""
        if not isinstance(self.error, (MemoryError, Killed)):
            return self.error
        what = "ran out of memory" if isinstance(self.error, MemoryError) else "was killed"
        return Killed(
            f"a worker {what} while it {doing}, whoever was given the job; use fewer --workers, "
            f"or {advice}"
        )


class Hand(Protocol):
    """One worker, with one job at a time."""

    @property
    def is_expected(self) -> bool:
        """Is its first result to come by itself? It then says that the worker is there."""
        ...

    def begin(self, job: Any) -> None:
        """Give it a job."""
        ...

    def result(self) -> Any:
        """What came of the job, once it is done; Killed where the worker is gone."""
        ...

    def end(self) -> None:
        """End it, at work or not."""
        ...


class Executor(Protocol):
    """Where work is done beside this process."""

    @property
    def workers(self) -> int:
        """How many work at the same time."""
        ...

    def hire(self, work: Work) -> Any:
        """A worker (a `Hand`) that does this work; InvalidInput where the work cannot travel."""
        ...

    def patience(self, work: Work) -> float:
        """Seconds that a worker may take to be there, beside those of its trial."""
        ...

    def otherwise(self, work: Work, why: str) -> Executor:
        """Another way to the same workers, after none of them came; Stuck where there is none."""
        ...

    def wait(self, hands: Sequence[Any], seconds: float | None = None) -> Sequence[Any]:
        """Those of these workers that are done, at least one; none where it takes longer."""
        ...

    def close(self) -> None:
        """Let go of what the executor itself has started."""
        ...


@runtime_checkable
class Travels(Protocol):
    """Work that knows how it gets into another process."""

    @property
    def forks(self) -> bool:
        """Does all that it uses outlive a fork?"""
        ...

    @property
    def luggage(self) -> Any:
        """What is sent in its place to a process that is not forked; often itself."""
        ...

    def arrive(self) -> Work:
        """The work as this process does it; of luggage as well."""
        ...


def forks(work: Any) -> bool:
    """Does all that work uses outlive a fork? So it does unless it says otherwise."""
    return work.forks if isinstance(work, Travels) else True


def arrive(work: Any) -> Work:
    """The work as this process does it."""
    found: Work = work.arrive() if hasattr(work, "arrive") else work
    return found


def pack(work: Work, dumps: Callable[[Any], bytes]) -> bytes:
    """The work as a message; InvalidInput where it does not fit into one."""
    try:
        return dumps((ThreadSettings.of_this_thread(), getattr(work, "luggage", work)))
    except Exception as error:  # whatever an object's own code raises
        raise cannot_travel(error) from None


def cannot_travel(error: BaseException) -> InvalidInput:
    """The sentence on work that does not fit into a message, or not out of it."""
    said = str(error).splitlines()[0] if str(error) else "no reason was given"
    return InvalidInput(
        f"the model cannot be sent to another process ({type(error).__name__}: {said[:200]}); save "
        "it to a file and name that as KIND:PLACE, or use --workers 1"
    )


def unpack(message: bytes) -> Work:
    """The work that another process has packed; work that fails if it cannot be opened here."""
    try:
        settings, work = pickle.loads(message)  # noqa: S301 (the process that hires us wrote it)
        settings.take_over()
        return arrive(work)
    except LimiError as error:
        told: Exception = error
    except Exception as error:
        told = cannot_travel(error)

    def fail(job: Any) -> Any:
        raise told

    return fail


def settle(*, handles_signals: bool = True) -> ExitStack:
    """Make this process a worker: one thread, and interrupts are for its parent to act on.

    What comes back keeps the libraries to one thread as long as it is held.
    """
    if handles_signals:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for name in _THREADS:
        os.environ[name] = "1"
    cores.use_one()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    import joblib  # it comes with scikit-learn
    from threadpoolctl import threadpool_limits

    # A forest that was told to use two cores uses one as well, and does not warn that it cannot.
    kept = ExitStack()
    kept.enter_context(joblib.parallel_config("sequential"))
    kept.enter_context(threadpool_limits(limits=1))
    return kept


def attempt(work: Work, job: Any) -> Any:
    """The result of a job, or a Failed that can be sent to another process."""
    try:
        return work(job)
    except MemoryError:
        return Failed(MemoryError())  # what it says may hold the rows that were too many
    except LimiError as error:
        return Failed(_sendable(error))
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = ""
        if trace is not None:
            file = os.path.basename(trace.tb_frame.f_code.co_filename)
            where = f"{file}:{trace.tb_lineno}"
        return Failed(_sendable(error), where)


def _sendable(error: Exception) -> Exception:
    """The error; one of the same words where it cannot be taken apart and put together."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 (written in the same line)
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error

"""Jobs of a study in workers, of which each may fail alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from limi.errors import LimiError
from limi.workers import Crew, Executor, Failed, Local, open_executor
from limi.workers._base import attempt

__all__ = ["Failure", "Pool"]

Job = TypeVar("Job")


@dataclass(frozen=True)
class Failure:
    """Why a job has no result."""

    why: str
    kind: str  # name of the exception

    @staticmethod
    def of(failed: Failed) -> Failure:
        """The sentence on a job that failed; where, if nobody expected it."""
        error = failed.error
        kind = type(error).__name__
        if isinstance(error, LimiError):
            return Failure(str(error), kind)
        return Failure(f"{kind} at {failed.where}: {error}", kind)


class Pool(Generic[Job]):
    """Workers that outlive a list of jobs, because starting one takes seconds.

    One worker works in this process. More are processes started again, or those of a cluster, so
    `work` and the jobs must be picklable. They end with the block, whatever ends it.
    """

    def __init__(
        self, work: Callable[[Job], Any], workers: int, cluster: str | None = None
    ) -> None:
        self._work = work
        self._executor: Executor | None = None
        if cluster is not None:
            self._executor = open_executor(workers, cluster)
        elif workers > 1:
            self._executor = Local(workers, "anew")
        self._crew = None if self._executor is None else Crew(self._executor, work)

    def __enter__(self) -> Pool[Job]:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._crew is not None:
            self._crew.dismiss()
        if self._executor is not None:
            self._executor.close()

    def each(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Any]]:
        """Every job with its result, or a Failure, as they finish."""
        if self._crew is None:
            done: Any = ((number, attempt(self._work, job)) for number, job in enumerate(jobs))
        else:
            done = self._crew.each(jobs)
        for number, result in done:
            yield jobs[number], Failure.of(result) if isinstance(result, Failed) else result

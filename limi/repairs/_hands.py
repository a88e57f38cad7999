"""Repairs shared out among workers: each seed is a job.

A worker trains and measures, and figures travel back. The models that are kept are trained by the
process that was started.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from limi.audits.hiring import share_out, want_workers
from limi.audits.problem import Problem
from limi.models.target import Target
from limi.search.budget import Budget
from limi.workers import Failed

__all__ = ["Hands", "hire", "want_hands"]

_TOO_MUCH = ("trained the model again", "a machine with more memory")  # what it did, and advice


@dataclass(frozen=True)
class Hands:
    """How many workers are wanted, and where."""

    workers: int | str | None
    cluster: str | None


def want_hands(problem: Problem, workers: int | str | None, cluster: str | None) -> Hands | None:
    """Workers, where any are wanted; InvalidInput where they cannot be."""
    wanted = want_workers(problem.model_name, workers, cluster, "cpu", Budget())
    return Hands(workers, cluster) if wanted else None


@dataclass(frozen=True, eq=False)
class _Doing:
    """The work: a function of a room, which is kept from job to job, and of a job."""

    do: Callable[[Any, Any], Any]
    room: Any
    target: Target

    @property
    def forks(self) -> bool:
        """All but what makes frames does."""
        return self.target.codec.forks

    @property
    def luggage(self) -> _Doing:
        """Itself."""
        return self

    def arrive(self) -> _Doing:
        """Itself."""
        return self

    def __call__(self, job: Any) -> Any:
        if isinstance(job, np.ndarray):  # rows, for a trial
            return self.target.score(job)
        # Estimators without a seed draw from numpy's global state, of which forks have one copy
        # each: without this all seeds would be trained with the same numbers.
        state = np.random.RandomState(zlib.crc32(repr(job).encode()))
        before = np.random.get_state()  # noqa: NPY002
        np.random.set_state(state.get_state())  # noqa: NPY002
        try:
            return self.do(self.room, job)
        finally:
            np.random.set_state(before)  # noqa: NPY002


@contextmanager
def hire(
    hands: Hands, problem: Problem, do: Callable[[Any, Any], Any], room: Any
) -> Iterator[Callable[..., Iterator[tuple[Any, Any]]]]:
    """Workers that do jobs in a room; gives a function of jobs to what came of each, or an error,
    as they finish. They end with the block."""
    doing = _Doing(do, room, problem.target)
    with share_out(
        doing, problem.target, problem.rows, hands.workers, hands.cluster
    ) as each_in_place:

        def each(jobs: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
            for place, result in each_in_place(jobs):
                if isinstance(result, Failed):
                    result = result.explain(*_TOO_MUCH)
                yield jobs[place], result

        yield each

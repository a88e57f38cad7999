"""Workers for a run: whether any are wanted and can be, and their hiring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from limi import models
from limi.errors import InvalidInput
from limi.models.target import Target
from limi.search.budget import Budget
from limi.search.spread import Opened, Spread, try_rows
from limi.types import Rows
from limi.workers import (
    AUTO,
    Crew,
    Stuck,
    Trial,
    Work,
    check_cluster,
    count_workers,
    open_executor,
    reach_cluster,
)
from limi.workers._base import attempt

__all__ = ["MOVING", "Each", "hire", "share_out", "want_workers"]

Each = Callable[[Sequence[Any]], Iterator[tuple[int, Any]]]
"""The place of each job with its result, or a Failed, as they finish."""

MOVING = "its answers vary, so the model was asked in one process, without workers"
"""The note on a model that workers cannot ask."""


def want_workers(
    model: Any, workers: int | str | None, cluster: str | None, device: str, budget: Budget
) -> bool:
    """Are there workers? InvalidInput where model, numbers, cluster or device make no sense."""
    number = count_workers(workers)
    check_cluster(cluster)
    if number == 1 and cluster is None:
        return False
    kind = model.partition(":")[0] if isinstance(model, str) else ""
    if kind in models.names() and models.offers(kind).by_address:
        raise InvalidInput(
            "workers are for a model on this machine, but this one is behind an address; to send "
            "more requests at once, use --concurrency"
        )
    if device not in ("auto", "cpu"):
        raise InvalidInput(
            f"workers are processes that use the CPU, but the device is {device!r}; use one or the "
            "other"
        )
    for most, what, option in (
        (budget.max_rows, "rows to check", "--max-rows"),
        (budget.max_queries, "questions to ask", "--max-queries"),
    ):
        if most is not None and most < number and workers != AUTO:
            raise InvalidInput(
                f"there are {number} workers and at most {most} {what}; use no more workers than "
                f"that, or a higher {option}"
            )
    reach_cluster(cluster)
    return True


@contextmanager
def hire(
    asked: Target, workers: int | str | None, cluster: str | None, opened: Opened | None
) -> Iterator[Spread]:
    """Workers that wait to be told to begin, and end with the block."""
    executor = open_executor(workers, cluster)
    assert executor is not None  # because workers are wanted
    try:
        with Spread(asked, executor, opened) as spread:
            yield spread
    finally:
        executor.close()


@contextmanager
def share_out(
    work: Work, target: Target, rows: Rows, workers: int | str | None, cluster: str | None
) -> Iterator[Each]:
    """Workers that do jobs, and end with the block.

    `work` must answer bare rows as well, with which workers are tried: those of the target that it
    asks. Jobs for which no worker answers are done in this process.
    """
    executor = open_executor(workers, cluster)
    assert executor is not None  # because workers are wanted
    try:
        with Crew(executor, work) as crew:
            crew.try_out(Trial(*try_rows(target.score, rows)))

            def each(jobs: Sequence[Any]) -> Iterator[tuple[int, Any]]:
                left = dict(enumerate(jobs))
                with suppress(Stuck):
                    for place, result in crew.each(jobs):
                        del left[place]
                        yield place, result
                for place, job in left.items():
                    yield place, attempt(work, job)

            yield each
    finally:
        executor.close()

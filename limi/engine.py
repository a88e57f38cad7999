"""The only search loop: it pours checked rows into a ledger until the budget is spent."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from limi.budget import Budget, Stop
from limi.errors import InvalidInput, MissingCapability, listed
from limi.findings import Findings
from limi.methods._base import Method
from limi.task import OutOfTime, Task

__all__ = ["Progress", "Run", "run"]


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    rows: int
    queries: int
    findings: int
    seconds: float


@dataclass(frozen=True)
class Run:
    """What a search found, and why it ended."""

    findings: Findings
    stop: Stop
    queries: int
    seconds: float
    curve: tuple[tuple[int, int], ...] = ()  # (queries, findings) after each batch


def run(
    method: Method,
    task: Task,
    budget: Budget,
    seed: int,
    *,
    shard: int = 0,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Run:
    """Search until the budget is spent, the method has nothing left, or the user interrupts.

    The engine owns the randomness: one stream a shard, which depends on the seed and the shard's
    number alone. What was found before an interrupt is returned, never lost.
    """
    _check(method, task, budget)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(shard,)))
    findings = Findings(task.schema)
    start = clock()
    task.rows_left = np.inf if budget.max_rows is None else budget.max_rows
    task.queries_left = np.inf if budget.max_queries is None else budget.max_queries
    task.thrifty = (
        budget.max_queries is not None
        and len(task.schema.combinations) > 2
        and not getattr(method, "exhaustive", False)
    )
    task.out_of_time = lambda: (
        budget.max_seconds is not None and clock() - start >= budget.max_seconds
    )
    asked = 0

    def show(n: int) -> None:
        nonlocal asked
        asked += n
        on_progress(Progress(findings.rows_checked, asked, len(findings), clock() - start))

    task.on_asked = show
    stop = Stop.EXHAUSTED
    curve: list[tuple[int, int]] = []
    try:
        for checked in method.search(task, rng):
            room = None if budget.max_findings is None else budget.max_findings - len(findings)
            findings.add(checked, clock() - start, most=room)
            curve.append((asked, len(findings)))
            reached = _reached(budget, task, findings, clock() - start)
            if reached:
                stop = reached
                break
    except OutOfTime:
        stop = Stop.SECONDS
    except KeyboardInterrupt:
        stop = Stop.INTERRUPTED
    finally:
        task.on_asked = lambda n: None
        task.out_of_time = lambda: False
    return Run(findings, stop, asked, clock() - start, tuple(curve))


def _reached(budget: Budget, task: Task, findings: Findings, seconds: float) -> Stop | None:
    if budget.max_findings is not None and len(findings) >= budget.max_findings:
        return Stop.FINDINGS
    if task.rows_left < 1:
        return Stop.ROWS
    if task.queries_left < 1:
        return Stop.QUERIES
    if budget.max_seconds is not None and seconds >= budget.max_seconds:
        return Stop.SECONDS
    return None


def _check(method: Method, task: Task, budget: Budget) -> None:
    lacking = sorted(method.needs - task.capabilities)
    if lacking:
        raise MissingCapability(
            f"the method {type(method).__name__} needs {listed(lacking)}, which this task lacks"
            f"{_hint(lacking)}"
        )
    per_row = len(task.schema.combinations)
    if budget.max_queries is not None and budget.max_queries < per_row:
        raise InvalidInput(
            f"max-queries is {budget.max_queries}, but one row costs {per_row} queries (one for "
            "each protected combination); allow more, or fewer protected values"
        )


def _hint(lacking: list[str]) -> str:
    known = {
        "generator": "a generator of natural rows (generator='trees')",
        "gradient": "a torch module as the target",
        "neurons": "a torch module as the target",
    }
    return "".join(f"; give {known[name]}" for name in lacking[:1] if name in known)

"""The search of a cell."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

from lab.cells import Cell
from lab.workshop import Workshop
from limi import methods
from limi.audits.problem import Problem
from limi.audits.verify import ask_again
from limi.errors import InvalidInput
from limi.models import gradients
from limi.search.budget import Budget, Stop
from limi.search.engine import Run, check, run
from limi.search.findings import Found
from limi.search.method import Method
from limi.search.task import Task
from limi.system.watch import Watch
from limi.types import Rows

__all__ = ["SearchedCell", "search_cell"]


@dataclass(frozen=True)
class SearchedCell:
    """What a search came to."""

    problem: Problem
    run: Run
    found: Found  # findings that flip when the target is asked again

    @property
    def rows(self) -> Rows:
        """The findings' rows."""
        return self.found.rows


def search_cell(
    cell: Cell,
    shop: Workshop,
    clock: Callable[[], float] | None = None,
    around: Callable[[Method], Method] = lambda method: method,
) -> SearchedCell:
    """Search as a cell says, and ask the target for every finding a second time.

    `around` puts something around the method that looks at what it does. A cell has one core and
    shares its machine with others, so its clock counts seconds of the processor: what it would take
    alone. Where a device works while the processor waits, it counts those that pass.
    """
    problem = shop.problem(cell)
    task = Task(
        problem.schema,
        problem.target.score,
        problem.rows,
        generator=shop.generator(cell),
        gradients=gradients.of(problem.target),
        on_device=shop.on_device(cell),
        decision=problem.target.rule,
    )
    if clock is None:
        clock = time.process_time if task.on_device is None else time.perf_counter
    method, budget = methods.parse(cell.method, cell.settings), _budget(cell)
    check(method, task.capabilities, len(problem.schema.combinations), budget)
    ran = run(around(method), task, budget, cell.seed, clock=clock)
    if ran.stop == Stop.INTERRUPTED:
        raise KeyboardInterrupt
    again, flips = ask_again(problem.target, ran.findings.all(), Watch(clock))
    return SearchedCell(problem, ran, again[flips])


def _budget(cell: Cell) -> Budget:
    unknown = set(cell.budget) - {field.name for field in dataclasses.fields(Budget)}
    if unknown:
        raise InvalidInput(f"the study {cell.study} gives a budget of {sorted(unknown)}")
    return Budget(**cell.budget)  # type: ignore[arg-type]

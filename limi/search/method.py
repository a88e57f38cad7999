"""What every method offers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from limi.search.check import Checked
from limi.search.findings import Findings
from limi.search.task import Task

__all__ = ["Method", "Scored"]


class Method(Protocol):
    """A frozen set of parameters, and a stream of checked rows.

    A method yields each batch as soon as it is checked: the engine ends the run between yields.
    """

    @property
    def needs(self) -> frozenset[str]:
        """Capabilities of the task that the method cannot do without; mostly a class variable."""
        ...

    # Where a method knows how many rows it checks at most, it says so by
    # `most_rows(n_table: int) -> int`, for the estimate before a run.

    population: ClassVar[str | None]
    """The population whose rate the method's own rows estimate, if they are a plain sample."""

    def search(self, task: Task, rng: np.random.Generator) -> Iterator[Checked]:
        """Checked rows, until there is nothing left to check."""
        ...


@runtime_checkable
class Scored(Protocol):
    """A method with numbers of its own to report."""

    def scores(self, findings: Findings) -> Mapping[str, float]:
        """Named numbers over everything that was checked."""
        ...

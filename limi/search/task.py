"""A task: what may be asked, of which table and model; it never changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from limi.decisions import AS_DECIDED, Rule
from limi.generators._base import Generator
from limi.gpu.verdicts import OnDevice
from limi.models.gradients import Gradients
from limi.search.ahead import GoesAhead
from limi.search.check import MAX_BATCH
from limi.search.partner import Partner
from limi.table.schema import Schema
from limi.types import Rows, Scores

__all__ = ["Task"]


@dataclass(frozen=True)
class Task:
    """A schema, a target's `score`, a table, and what else a method may use."""

    schema: Schema
    score: Callable[[Rows], Scores]
    rows: Rows
    partner: Partner = "widest"
    max_batch: int = MAX_BATCH
    generator: Generator | None = None
    gradients: Gradients | None = None
    on_device: OnDevice | None = None  # target and generator as tensors, where both can be
    recheck: int = 0  # questions that each finding costs after the search
    ahead: GoesAhead | None = None  # workers that may look before the search does
    decision: Rule = AS_DECIDED  # which answers of `score` are different decisions

    @property
    def capabilities(self) -> frozenset[str]:
        """What a method may rely on beside checks."""
        have = {
            "generator": self.generator is not None,
            "gradient": self.gradients is not None,
            "neurons": self.gradients is not None and bool(self.gradients.layers),
        }
        return frozenset(name for name, there in have.items() if there)

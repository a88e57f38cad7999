"""What a run is made of, as its folder says it: `manifest.json`, read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from limi.models import Meaning
from limi.types import Value

__all__ = ["Manifest"]

Labels = Value | tuple[Value, ...] | None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What opens a run again: `limi.audits.plan.Plan.manifest` writes it, and says more."""

    format: int
    table: str
    model: str
    target: str | None
    favorable: Labels
    data_sha256: str
    model_sha256: str | None
    labels_sha256: str | None = None
    output: Meaning | None = None
    decision: str | None = None
    order: tuple[Value, ...] | None = None  # of classes, the worst first
    classes: tuple[Value, ...] | None = None  # of classes without an order
    held_out: str | None = None
    held_out_sha256: str | None = None
    protected_from: str | None = None
    key: str | None = None
    generator: str | None = None
    generator_sha256: str | None = None
    seed: int = 0
    fit_rows: int | None = None
    hidden: tuple[str, ...] = ()  # columns whose cells are shown nowhere
    dropped: tuple[str, ...] = ()  # columns that the user kept from the model
    origin: str | None = None  # the way from the folder to where relative paths start

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked of the model, as `limi.audits.problem.prepare` takes it."""
        return {
            "target": self.target,
            "favorable": self.favorable,
            "output": self.output,
            "decision": self.decision,
            "order": self.order,
            "table_name": self.table,
        }

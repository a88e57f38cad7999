"""The papers' targets: a network, a forest or a support vector machine on their encodings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from lab import models as benchmark
from lab.targets.making import Making

__all__ = ["Settings", "make"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which of the papers' models."""

    kind: Literal["dnn", "rf", "svm"] = "dnn"
    seed: int = 0


def make(making: Making) -> Any:
    """The model of the table; its own cache keeps it."""
    told: Settings = making.settings
    return benchmark.train(making.table.name, told.kind, seed=told.seed)

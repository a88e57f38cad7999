"""The papers' targets: a network, a forest or a support vector machine on their encodings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from limi.bench.making import Making
from limi.models import benchmark

__all__ = ["Settings", "make"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which of the papers' models."""

    kind: Literal["dnn", "rf", "svm"] = "dnn"
    seed: int = 0


def make(making: Making) -> Any:
    """The model that `benchmark:KIND` stands for; its own cache keeps it."""
    told: Settings = making.settings
    return benchmark.train(making.table.name, told.kind, seed=told.seed)

"""A target of your own: a table and a model in files, as `limi test` takes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limi.bench.making import Making
from limi.errors import InvalidInput

__all__ = ["Settings", "make"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The model, and what it decides; `table` of the definition is the file of the table."""

    model: str = ""  # as `limi test --model`, such as skops:model.skops
    target: str = ""  # the label column
    favorable: Any = None  # its label that people want

    def __post_init__(self) -> None:
        if not self.model or not self.target:
            raise InvalidInput(
                "the recipe 'file' needs settings model (such as 'skops:model.skops') and target "
                "(the label column)"
            )


def make(making: Making) -> Any:
    """The model's address; a file is looked for beside the definitions."""
    told: Settings = making.settings
    kind, _, place = told.model.partition(":")
    # A program's file is followed by a name in it.
    for path, name in ((place, ""), (place.rpartition(":")[0], place.rpartition(":")[2])):
        beside = Path(making.spec.base) / path
        if path and not Path(path).is_absolute() and beside.exists():
            return f"{kind}:{beside}:{name}" if name else f"{kind}:{beside}"
    return told.model

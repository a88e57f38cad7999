"""A target of your own: a table and a model in files, as `limi test` takes them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.targets.definitions import TargetSpec
from lab.targets.making import Making
from limi.errors import InvalidInput

__all__ = ["Settings", "make", "stamp"]


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
    found = _find_model(making.spec)
    if found is None:
        return making.settings.model
    kind, path, name = found
    return f"{kind}:{path}:{name}" if name else f"{kind}:{path}"


def stamp(spec: TargetSpec) -> str:
    """Digits that change with what the table and the model's file hold.

    A model elsewhere has none: whether it is still the same cannot be seen from here.
    """
    found = _find_model(spec)
    seen = hashlib.sha256()
    for place in [Path(spec.base) / spec.table, *([found[1]] if found else [])]:
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file():
                with path.open("rb") as file:
                    seen.update(hashlib.file_digest(file, "sha256").digest())
    return seen.hexdigest()


def _find_model(spec: TargetSpec) -> tuple[str, Path, str] | None:
    """Kind, file and name in it of a model beside the definitions; None where it is elsewhere."""
    kind, _, place = str(spec.settings["model"]).partition(":")
    # A program's file is followed by a name in it.
    for path, name in ((place, ""), (place.rpartition(":")[0], place.rpartition(":")[2])):
        beside = Path(spec.base) / path
        if path and beside.exists():
            return kind, beside, name
    return None

"""The classes of inputs. Each module has `SHARE` (of all inputs), `CORPUS` and `drawn`."""

from __future__ import annotations

from types import ModuleType

from tests.hostile.kinds import (
    folders,
    generators,
    models,
    options,
    programs,
    schemas,
    surroundings,
    tables,
)

KINDS: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (tables, options, schemas, models, generators, folders, programs, surroundings)
}

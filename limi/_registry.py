"""A folder as a registry: a module without a leading underscore is a name."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType

from limi.errors import InvalidInput, nearest

__all__ = ["Registry"]


@dataclass(frozen=True)
class Registry:
    """Names of a package's modules, and those that other packages add as entry points.

    `apart` are modules of the folder that serve the others and are not names.
    """

    package: str
    noun: str
    apart: frozenset[str] = frozenset()

    def names(self) -> list[str]:
        """Every known name."""
        return sorted({*self._own(), *_others(self.package)})

    def get(self, name: str) -> ModuleType:
        """The module of a name; InvalidInput with the nearest one where there is none."""
        if name in self._own():
            return importlib.import_module(f"{self.package}.{name}")
        if name in _others(self.package):
            return importlib.import_module(_others(self.package)[name])
        raise InvalidInput(f"unknown {self.noun} {name!r}; {nearest(name, self.names())}")

    def _own(self) -> set[str]:
        return set(_modules(self.package)) - self.apart


@cache
def _modules(package: str) -> tuple[str, ...]:
    folder = importlib.import_module(package).__path__
    return tuple(m.name for m in pkgutil.iter_modules(folder) if not m.name.startswith("_"))


@cache
def _others(package: str) -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=package)}

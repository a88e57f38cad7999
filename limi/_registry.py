"""A folder as a registry: a module without a leading underscore is a name."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from limi.errors import InvalidInput, nearest
from limi.system.foreign import at_work, reason

__all__ = ["Registry"]


@dataclass(frozen=True)
class Registry:
    """Names of a package's modules, and those that other packages add as entry points.

    The group of the entry points is called like the package. `apart` are modules of the folder
    that serve the others and are not names.
    """

    package: str
    noun: str
    apart: frozenset[str] = frozenset()

    def names(self) -> list[str]:
        """Every known name."""
        return sorted({*self._own(), *_others(self.package)})

    def get(self, name: str) -> Any:
        """What a name stands for: a module, or what an entry point names in one.

        InvalidInput with the nearest name where there is none, and where another package cannot be
        loaded.
        """
        if name in self._own():
            return importlib.import_module(f"{self.package}.{name}")
        if name in _others(self.package):
            point = _others(self.package)[name]
            with at_work(lambda error: InvalidInput(f"{self._whose(point)}: {reason(error)}")):
                return point.load()
        raise InvalidInput(f"unknown {self.noun} {name!r}; {nearest(name, self.names())}")

    def name_of(self, module: str) -> str | None:
        """The name under which a module is known; None where it is not."""
        own = module.removeprefix(f"{self.package}.")
        if own != module:
            return own if own in self._own() else None
        points = _others(self.package).values()
        return next((point.name for point in points if point.module == module), None)

    def _own(self) -> set[str]:
        return set(_modules(self.package)) - self.apart

    def _whose(self, point: EntryPoint) -> str:
        package = "" if point.dist is None else f" of the package {point.dist.name}"
        return (
            f"the {self.noun} {point.name!r}{package} cannot be loaded from {point.value!r}; fix "
            "the package or uninstall it"
        )


@cache
def _modules(package: str) -> tuple[str, ...]:
    folder = importlib.import_module(package).__path__
    return tuple(m.name for m in pkgutil.iter_modules(folder) if not m.name.startswith("_"))


@cache
def _others(package: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in _entry_points().select(group=package)}


@cache
def _entry_points() -> Any:
    """All of them: every package that is installed is looked into, which is done once."""
    return entry_points()

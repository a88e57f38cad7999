"""Importing libraries without what they drag along."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["import_library"]

# Listing scikit-learn's estimators, as skops does when it is imported, imports every array library
# that is installed. Torch alone takes longer than all the rest.
_LISTS_ESTIMATORS = "skops"
_UNNEEDED = "torch"


def import_library(name: str) -> ModuleType:
    """A library by its name; skops without torch, unless that is there already."""
    if name.partition(".")[0] != _LISTS_ESTIMATORS or name in sys.modules:
        return importlib.import_module(name)
    if _UNNEEDED in sys.modules:
        return importlib.import_module(name)
    without = _Without()
    sys.meta_path.insert(0, without)
    try:
        return importlib.import_module(name)
    finally:
        sys.meta_path.remove(without)


class _Without:
    """Says of one library that it is not there, which whoever lists libraries takes for granted."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == _UNNEEDED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

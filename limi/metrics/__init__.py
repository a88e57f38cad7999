"""Pure functions that read findings and rows; one file per family.

A metric is a function under the decorator `metric`, in a module of this folder. It needs no line
anywhere else: every run measures it, `limi list metrics` lists it, and every report shows it.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from limi.metrics._base import (
    EFFECTIVENESS,
    FAMILIES,
    GROUP,
    INDIVIDUAL,
    NATURALNESS,
    SEVERITY,
    Decided,
    Effort,
    Evidence,
    Family,
    Figure,
    Metric,
    Part,
    metric,
)
from limi.metrics._rate import Rate, rate_of

__all__ = [
    "EFFECTIVENESS",
    "FAMILIES",
    "GROUP",
    "INDIVIDUAL",
    "NATURALNESS",
    "SEVERITY",
    "Decided",
    "Effort",
    "Evidence",
    "Family",
    "Figure",
    "Metric",
    "Part",
    "Rate",
    "declared",
    "metric",
    "names",
    "rate_of",
]

_FIRST = ("rates", "individual", "naturalness", "effectiveness")  # before others of their family


def names() -> dict[str, str]:
    """Every metric, as FAMILY.NAME, with a line on it."""
    return {f"{one.family.name}.{one.name}": one.line for one in declared()}


@cache
def declared() -> tuple[Metric, ...]:
    """Every metric there is, family by family, in the order in which they are shown."""
    found = [one for name in sorted(_modules(), key=_place) for one in _metrics(name)]
    return tuple(sorted(found, key=lambda one: FAMILIES.index(one.family)))


def _modules() -> list[str]:
    known = (module.name for module in pkgutil.iter_modules(__path__))
    return [name for name in known if not name.startswith("_") and name != "collect"]


def _place(name: str) -> tuple[int, str]:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST), name


def _metrics(name: str) -> list[Metric]:
    """The metrics that a module declares."""
    module = importlib.import_module(f"{__name__}.{name}")
    found = [one for one in vars(module).values() if isinstance(one, Metric)]
    return [one for one in found if one.measure.__module__ == module.__name__]

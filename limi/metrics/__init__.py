"""Pure functions that read findings and rows; one file per family.

A metric is a function under the decorator `metric`, in a module of this folder or in one that
another package names in the entry-point group `limi.metrics`. It needs no line anywhere else: every
run measures it, `limi list metrics` lists it, and every report shows it.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

from limi._registry import Registry
from limi.errors import InvalidInput, spell
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
    "families",
    "metric",
    "names",
    "rate_of",
]

_REGISTRY = Registry("limi.metrics", "metric", apart=frozenset({"collect"}))
_FIRST = ("rates", "individual", "naturalness", "effectiveness")  # before others of their family


def names() -> dict[str, str]:
    """Every metric, as FAMILY.NAME, with a line on it."""
    return {f"{one.family.name}.{one.name}": one.line for one in declared()}


@cache
def declared() -> tuple[Metric, ...]:
    """Every metric there is, family by family, in the order in which they are shown."""
    found = [one for name in sorted(_REGISTRY.names(), key=_place) for one in _metrics(name)]
    twice = [name for name, n in Counter((m.family.name, m.name) for m in found).items() if n > 1]
    if twice:
        raise InvalidInput(
            f"two metrics are called {spell('.'.join(name) for name in twice)}; give one another "
            "name, or remove its package"
        )
    order = [family.name for family in FAMILIES]
    strange = [one.family.name for one in found if one.family.name not in order]
    order += sorted(set(strange))
    return tuple(sorted(found, key=lambda one: order.index(one.family.name)))


def families() -> tuple[Family, ...]:
    """Every family that has a metric; those of other packages last."""
    return tuple(dict.fromkeys(one.family for one in declared()))


def _place(name: str) -> tuple[bool, int, str]:
    first = _FIRST.index(name) if name in _FIRST else len(_FIRST)
    return not _REGISTRY.is_own(name), first, name


def _metrics(name: str) -> list[Metric]:
    """The metrics that a module declares, or the one that an entry point names."""
    found: Any = _REGISTRY.get(name)
    if isinstance(found, Metric):
        return [found]
    mine = [one for one in vars(found).values() if isinstance(one, Metric)]
    mine = [one for one in mine if one.measure.__module__ == found.__name__]
    if not mine and not _REGISTRY.is_own(name):
        raise InvalidInput(
            f"the entry point {name!r} does not name a metric; declare one with limi.metrics.metric"
        )
    return mine

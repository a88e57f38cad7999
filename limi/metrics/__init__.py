"""Pure functions that read findings and rows; one file a family."""

from __future__ import annotations

import inspect

from limi._registry import Registry

__all__ = ["names"]

_REGISTRY = Registry(
    "limi.metrics", "metric", apart=frozenset({"collect", "privileged", "rates", "regions"})
)


def names() -> dict[str, str]:
    """Every metric, as FAMILY.FUNCTION, with its first line."""
    found = {}
    for family in _REGISTRY.names():
        module = _REGISTRY.get(family)
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                words = inspect.getdoc(getattr(module, name)) or ""
                found[f"{family}.{name}"] = words.partition("\n")[0]
    return found

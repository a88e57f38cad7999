"""For tests: assertions on a model's flips, kept pairs, a plug-in of pytest, and the suites that a
method, model or generator of other packages must pass."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limi.testing.pairs import read_pairs as read_pairs
    from limi.testing.rates import assert_flip_rate as assert_flip_rate

_HOME = {"assert_flip_rate": "limi.testing.rates", "read_pairs": "limi.testing.pairs"}

__all__ = ["assert_flip_rate", "read_pairs"]


def __getattr__(name: str) -> Any:
    # Late, so that the plug-in loads nothing before a test wants it.
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'limi.testing' has no attribute {name!r}")

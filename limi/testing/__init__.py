"""For tests: an assertion on a model's flips, kept pairs, and the suites that a method, model or
generator of other packages must pass."""

from __future__ import annotations

from limi.testing.pairs import read_pairs
from limi.testing.rates import assert_flip_rate

__all__ = ["assert_flip_rate", "read_pairs"]

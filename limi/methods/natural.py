"""Plain samples of the generator, checked as they come: the honest baseline of every comparison.

Faithfulness
- No paper has this method. LIMI's authors compare with a random hyperplane; drawing from the
  generator without any plane is the simpler control, and finds about as many per check.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from limi.search.check import Checked
from limi.search.rounds import check_rounds
from limi.search.session import Session
from limi.types import Latents

__all__ = ["Natural"]

_ROUND = 1 << 14  # latents drawn at once
_PART = 1 << 11  # of them decoded and checked at once, where time is short
_MOST_VAIN = 64  # rounds without a new key, after which the generator counts as exhausted


@dataclass(frozen=True, kw_only=True)
class Natural:
    """Check natural rows, each key once."""

    needs: ClassVar[frozenset[str]] = frozenset({"generator"})
    population: ClassVar[str | None] = None  # keys are not repeated, so its rows are not a sample

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Natural rows in rounds."""
        generator = session.generator
        assert generator is not None
        size = _PART if session.watch.limited else _ROUND
        vain = 0

        def draws() -> Iterator[Latents]:
            while True:
                latents = generator.sample_latents(_ROUND, rng)
                yield from (latents[start : start + size] for start in range(0, _ROUND, size))

        for checked in check_rounds(session, draws(), generator.decode, unseen=True):
            yield checked.named("natural")
            vain = 0 if len(checked) else vain + size
            if vain >= _MOST_VAIN * _ROUND:
                return

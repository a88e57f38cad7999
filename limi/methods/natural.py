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
from limi.search.session import Session

__all__ = ["Natural"]

_ROUND = 1 << 14  # latents drawn at once
_PART = 1 << 11  # of them decoded and checked at once, where time is short
_MOST_VAIN = 64  # rounds without a new key, after which the generator counts as exhausted


@dataclass(frozen=True, kw_only=True)
class Natural:
    """Check natural rows, each key once."""

    needs: ClassVar[frozenset[str]] = frozenset({"generator"})
    population: ClassVar[str | None] = None  # keys are not repeated, so its rows are no sample

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Natural rows in rounds."""
        assert session.generator is not None
        vain = 0
        size = _PART if session.watch.limited else _ROUND
        while vain < _MOST_VAIN:
            latents = session.generator.sample_latents(_ROUND, rng)
            vain += 1
            for start in range(0, _ROUND, size):
                rows = session.generator.decode(latents[start : start + size])
                rows = rows[session.unseen(rows)]
                vain = 0 if len(rows) else vain
                yield session.check_kept(rows).named("natural")

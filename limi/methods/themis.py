"""THEMIS: random testing with causal and group discrimination scores (Galhotra et al., FSE 2017).

Faithfulness
- The paper draws inputs uniformly from the whole domain and counts those whose outcome changes
  with the protected attributes alone (causal score). Here too, in batches.
- The paper's group score is the largest difference between the shares of favorable outcomes of
  two protected groups. Here too, over the same draws for every group.
- The released 2.0 program stops when a one-sided normal error bound falls under the margin, which
  happens at once when no flip has been seen (zero estimated variance). Here the bound is the
  exact two-sided binomial one, looked at every 4,096 rows.
- The released 1.0 program draws at most 50 inputs. Here the run's budget limits them.
- The paper also searches for sets of attributes whose score passes a threshold. Here the
  protected columns are given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from limi.errors import InvalidInput
from limi.metrics.individual import clopper_pearson, group_discrimination
from limi.search.check import Checked
from limi.search.findings import Findings
from limi.search.rounds import check_rounds
from limi.search.session import Session
from limi.table.rows import uniform

__all__ = ["Themis"]

_ROUND = 4096  # rows checked at once; fixed, because the exact bound is checked in between


@dataclass(frozen=True, kw_only=True)
class Themis:
    """Check uniform random rows until the error bound is met or the budget is spent."""

    confidence: float = 0.99  # confidence of the interval that ends the search
    margin: float | None = None  # largest half-width of the causal score's interval; None: no stop
    min_samples: int = 10  # rows before it may end

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = "uniform"
    exhaustive: ClassVar[bool] = True  # the group score needs every value of every row

    @property
    def stops_on_flips(self) -> bool:
        """A margin ends the search when enough flips, or few enough, were seen."""
        return self.margin is not None

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise InvalidInput(f"confidence is {self.confidence}; it must lie between 0 and 1")
        if self.margin is not None and not 0 < self.margin < 1:
            raise InvalidInput(f"margin is {self.margin}; it must lie between 0 and 1")

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Uniform rows, in rounds."""
        n = flips = 0
        draws = (uniform(session.schema, _ROUND, rng) for _ in count())
        for drawn in check_rounds(session, draws):
            checked = drawn.named("themis")
            yield checked
            n += len(checked)
            flips += int(checked.flips.sum())
            if self.margin is None or n <= self.min_samples or not len(checked):
                continue
            if self.error_bound(flips, n) < self.margin:
                return

    def error_bound(self, flips: int, n: int) -> float:
        """Half-width of the causal score's interval after n rows."""
        low, high = clopper_pearson(flips, n, self.confidence)
        return (high - low) / 2

    def scores(self, findings: Findings) -> Mapping[str, float]:
        """THEMIS's two scores, each from 0 (no discrimination seen) to 1; of classes and numbers
        the first alone."""
        n = findings.rows_checked
        group = group_discrimination(findings.favorable, n)
        return {
            "causal_discrimination": findings.flips / n if n else 0.0,
            **({"group_discrimination": group} if findings.sided else {}),
            "error_bound": self.error_bound(findings.flips, n) if n else 1.0,
            "confidence": self.confidence,
        }

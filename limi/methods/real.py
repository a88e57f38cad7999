"""Every row of the table, as it is: the share that flips is IF_o.

Faithfulness
- The papers define IF_o as the share of the original rows that are discriminatory, duplicates
  included. Here too; findings are still distinct by their non-protected columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from limi.search.check import Checked
from limi.search.session import Session

__all__ = ["Real"]

_ROUND = 1 << 16  # rows between two looks at the budget


@dataclass(frozen=True, kw_only=True)
class Real:
    """Check the table's own rows.

    The order is random, so that a budget which ends early has still seen a fair sample.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = "real"

    def most_rows(self, n_table: int) -> int:
        """Rows that a search checks at most: the table's."""
        return n_table

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """The table in rounds."""
        order = rng.permutation(len(session.rows))
        for start in range(0, len(order), _ROUND):
            rows = session.rows[order[start : start + _ROUND]]
            yield session.check(rows, origin="real", are_real=True)

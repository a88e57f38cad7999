"""MAFT: EIDIG with gradients estimated from scores (Wang et al., ICSE 2024).

It needs no more than a model that answers, so it runs on forests and on remote models too.

Faithfulness
- Paper and code: forward differences of the score over `perturbation` (h) in every column,
  d + 1 queries a gradient; everything else as EIDIG-5. Here: without the protected columns, whose
  entries are never used.
- Paper: h studied from 1e-10 to 10 and best at 1; the code's default of 1e-4 is never used by its
  experiments. Here: 1, counted in steps of the column and never less than one step of a grid, since
  a tree is flat between the values that a column can hold, and a category has no half.
- Code: asks for values beyond a column's upper bound. Here: the difference is taken downwards.
- What is said of EIDIG's code on findings, last moves, seeds and counterparts holds here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from limi.errors import InvalidInput
from limi.methods._downhill import Downhill
from limi.methods._gradient import Estimated, Slopes
from limi.search.session import Session

__all__ = ["MAFT"]


@dataclass(frozen=True, kw_only=True)
class MAFT(Downhill):
    """EIDIG for black boxes."""

    perturbation: float = 1.0  # h, in steps of the column

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "strong": {"restart": "stay"},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.perturbation > 0:
            raise InvalidInput(f"perturbation is {self.perturbation}; it must be above 0")

    def _slopes(self, session: Session) -> Slopes:
        return Estimated(session, self.perturbation)

"""EIDIG: gradients of the output, with momentum and reuse (Zhang et al., ISSTA 2021).

As ADF, but along the gradient of the score of the decision taken, with momentum while exploring;
while exploiting, the chances of columns are kept for several steps.

Faithfulness
- Paper and code: the gradient of a sigmoid output, with the sign of the decision. Here: of the
  score of the decision taken, whatever the network ends in.
- Code: ten checks, so the row after the last move is never checked. Here: `explore_steps` moves,
  each of them checked.
- Code: picks a random member of each cluster in turn, with replacement. Here: without.
- Paper and code: after a failure a walk starts again from its seed with the seed's chances
  (`restart=reset_to_seed`); chances are computed again after `update_every` flips in a row (5:
  EIDIG-5, none: EIDIG-INF).
- Code: computes chances with a random flipping counterpart, at first with the widest. Here: the
  one that the check gives, the widest flipping one by default.
- Code: overwrites each global finding by its first perturbation, unchecked, and counts rows that
  differ in protected values only as several. Here: every finding is checked and counts once.
- Paper and code: unit steps of integer codes. Here: one step of the column, and gradients count
  by what one step changes.
- All walks run in lock-step; targets without gradients are given estimates (`gradient`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from limi.methods import _gradient
from limi.methods._downhill import Downhill
from limi.methods._gradient import Slopes
from limi.search.session import Session

__all__ = ["EIDIG"]


@dataclass(frozen=True, kw_only=True)
class EIDIG(Downhill):
    """Walk down the confidence with momentum, then wander with chances that are reused."""

    gradient: _gradient.Kind = "auto"  # gradients of the model itself, or estimated from scores

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "strong": {"restart": "stay"},
        "inf": {"update_every": None},
    }

    def _slopes(self, session: Session) -> Slopes:
        return _gradient.slopes_of(session, self.gradient)

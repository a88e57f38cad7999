"""ADF: adversarial discrimination finder by gradients of the loss (Zhang et al., ICSE 2020).

Rows of the table climb the loss of their own decision until they flip, moving in the columns where
the gradients of the row and of its most different counterpart agree. Around each flipping row one
column at a time is changed, by preference one with a small gradient.

Faithfulness
- Paper and code: unit steps of integer codes. Here: one step of the column (a neighbouring level,
  a hundredth of a real range), and gradients count by what one step changes.
- Code: exploits each seed at once, row by row. Here: all walks in lock-step, exploiting after
  exploring; the same moves drawn in another order, so a seed that another walk has found before is
  not moved on.
- Code: the exploiting walk is a Metropolis chain at temperature 1 (`restart=metropolis`, without
  its d redundant evaluations per step); the paper never turns back (`never`); EIDIG's copy returns
  to the seed after each failure (`reset_to_seed`).
- Paper: no move where the gradients agree nowhere (`fallback=none`). Code: then one random column
  moves; where one gradient vanishes the other one's direction is lost, and rows whose agreement is
  zero against zero stand still. Here: along the gradient that is left, and
  one random column where no sign agrees.
- Code: reads the protected bounds of census for every table. Here: the schema's.
- Code: keeps a seed's first flipping counterpart; the paper chooses among the flipping ones again.
  Here: at every step the one that the check gives, the widest by default.
- Code: a gradient entry of zero makes the chances NaN and stops the program. Here: 1/(g + 1e-6).
- Paper and code need the gradients of a network. Here targets without any are given estimates
  (`gradient=estimated`, or `auto`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from limi.methods import _gradient, _seeds
from limi.methods._gradient import Moves, Restart
from limi.methods._phases import two_phase
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.schema import Schema
from limi.table.steps import movable
from limi.types import Mask, Rows

__all__ = ["ADF"]

Fallback = Literal["corrected", "none"]


@dataclass(frozen=True, kw_only=True)
class ADF:
    """Climb the loss to the decision boundary, then wander along it."""

    n_seeds: int = 1000  # flipping rows to search around, at most
    clusters: int = 4  # clusters of the table from which seeds are drawn in turn (c_num)
    explore_steps: int = 10  # steps of a row towards a flip (max_iter)
    explore_step: int = 1  # steps of a column per move (s_g)
    exploit_steps: int = 1000  # moves around each seed (l_num)
    exploit_step: int = 1  # steps of a column per move there (s_l)
    restart: Restart = "metropolis"  # what a walk does after a move that does not flip
    gradient: _gradient.Kind = "auto"  # gradients of the model itself, or estimated from scores
    fallback: Fallback = "corrected"  # what to do if the two gradients agree nowhere

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "strong": {"restart": "stay"},
        "paper": {"restart": "never", "fallback": "none"},
    }

    def __post_init__(self) -> None:
        _gradient.require_sizes(self)

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Both phases."""
        return two_phase(session, self, self, rng, n_seeds=self.n_seeds)

    def exploit(
        self, session: Session, seeds: Checked, rng: np.random.Generator
    ) -> Iterator[Checked]:
        """Rows around the seeds."""
        slope = _gradient.slopes_of(session, self.gradient).loss_gradient
        how = _gradient.Wandering(
            steps=self.exploit_steps, size=self.exploit_step, restart=self.restart
        )
        return _gradient.wander(session, seeds, rng, _gradient.of_both(slope), how)

    def explore(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Rows of the table on their way to where they flip."""
        slope = _gradient.slopes_of(session, self.gradient).loss_gradient

        def heading(here: Checked, going: Mask) -> Moves:
            own, other = slope(here.rows), slope(here.partner)
            return self.explore_step * agreement(session.schema, own, other, self.fallback, rng)

        rows = _seeds.cluster_rows(session, rng, n=self.n_seeds, clusters=self.clusters)
        return _gradient.climb(session, rows, self.explore_steps, heading)


def agreement(
    schema: Schema, own: Rows, other: Rows, fallback: Fallback, rng: np.random.Generator
) -> Moves:
    """(n, d) of -1, 0 and 1: the signs that a row's gradient and its partner's share."""
    free = movable(schema)
    up, up_other = np.sign(own), np.sign(other)
    same = (up == up_other) & free
    if fallback == "none":
        return np.where(same, up, 0.0)
    line, column = np.arange(len(up)), rng.choice(np.flatnonzero(free), len(up))
    turn = np.where(rng.random(len(up)) < 0.5, -1.0, 1.0)
    flat, other_flat = ~up.any(axis=1), ~up_other.any(axis=1)
    moves = np.where(same, up, 0.0)
    moves[other_flat] = up[other_flat]
    moves[flat] = up_other[flat]
    moves[:, ~free] = 0.0
    lost = ~moves.any(axis=1)
    pick = np.where(up != 0, up, np.where(up_other != 0, up_other, turn[:, None]))
    moves[line[lost], column[lost]] = pick[line[lost], column[lost]]
    return moves

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
  (`restart=reset_to_seed`); chances are computed anew after `update_every` flips in a row (5:
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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from limi.check import Checked
from limi.methods import _gradient, _seeds
from limi.methods._gradient import Restart
from limi.methods._phases import two_phase
from limi.task import Task

__all__ = ["EIDIG"]


@dataclass(frozen=True, kw_only=True)
class EIDIG:
    """Walk down the confidence with momentum, then wander with chances that are reused."""

    n_seeds: int = 1000  # g_num
    clusters: int = 4  # c_num
    explore_steps: int = 10  # max_iter
    explore_step: int = 1  # s_g
    decay: float = 0.5  # eta
    exploit_steps: int = 1000  # l_num
    exploit_step: int = 1  # s_l
    update_every: int | None = 5
    restart: Restart = "reset_to_seed"
    gradient: _gradient.Kind = "auto"

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "strong": {"restart": "stay"},
        "inf": {"update_every": None},
        "released": {"explore_steps": 9},
    }

    def __post_init__(self) -> None:
        _gradient.require(0, explore_steps=self.explore_steps, exploit_steps=self.exploit_steps)
        _gradient.require(
            1,
            n_seeds=self.n_seeds,
            clusters=self.clusters,
            explore_step=self.explore_step,
            exploit_step=self.exploit_step,
            update_every=1 if self.update_every is None else self.update_every,
        )

    def search(self, task: Task, rng: np.random.Generator) -> Iterator[Checked]:
        """Both phases."""
        return two_phase(task, self, self, rng, n_seeds=self.n_seeds)

    def explore(self, task: Task, rng: np.random.Generator) -> Iterator[Checked]:
        """Rows of the table on their way to the boundary."""
        slopes = _gradient.slopes_of(task, self.gradient)
        rows = _seeds.clustered(task, rng, n=self.n_seeds, clusters=self.clusters, shuffled=True)
        heading = _gradient.downhill(task, slopes, self.decay, self.explore_step)
        return _gradient.climb(task, rows, self.explore_steps, heading)

    def exploit(self, task: Task, seeds: Checked, rng: np.random.Generator) -> Iterator[Checked]:
        """Rows around the seeds."""
        slope = _gradient.slopes_of(task, self.gradient).output_gradient
        return _gradient.wander(
            task,
            seeds,
            rng,
            lambda here: (slope(here.rows), slope(here.partner)),
            _gradient.Wandering(
                steps=self.exploit_steps,
                size=self.exploit_step,
                restart=self.restart,
                update_every=self.update_every,
            ),
        )

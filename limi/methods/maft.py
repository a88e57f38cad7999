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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from limi.check import Checked
from limi.errors import InvalidInput
from limi.methods import _gradient, _seeds
from limi.methods._gradient import Restart
from limi.methods._phases import two_phase
from limi.task import Task

__all__ = ["MAFT"]


@dataclass(frozen=True, kw_only=True)
class MAFT:
    """EIDIG for black boxes."""

    n_seeds: int = 1000  # g_num
    clusters: int = 4  # c_num
    explore_steps: int = 10  # max_iter
    explore_step: int = 1  # s_g
    decay: float = 0.5  # eta
    exploit_steps: int = 1000  # l_num
    exploit_step: int = 1  # s_l
    update_every: int | None = 5
    restart: Restart = "reset_to_seed"
    perturbation: float = 1.0  # h, in steps of the column

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "strong": {"restart": "stay"},
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
        if not self.perturbation > 0:
            raise InvalidInput(f"perturbation is {self.perturbation}; it must be above 0")

    def search(self, task: Task, rng: np.random.Generator) -> Iterator[Checked]:
        """Both phases."""
        return two_phase(task, self, self, rng, n_seeds=self.n_seeds)

    def explore(self, task: Task, rng: np.random.Generator) -> Iterator[Checked]:
        """Rows of the table on their way to the boundary."""
        slopes = _gradient.Estimated(task, self.perturbation)
        rows = _seeds.clustered(task, rng, n=self.n_seeds, clusters=self.clusters, shuffled=True)
        heading = _gradient.downhill(task, slopes, self.decay, self.explore_step)
        return _gradient.climb(task, rows, self.explore_steps, heading)

    def exploit(self, task: Task, seeds: Checked, rng: np.random.Generator) -> Iterator[Checked]:
        """Rows around the seeds."""
        slope = _gradient.Estimated(task, self.perturbation).output_gradient
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

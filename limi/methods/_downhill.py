"""What EIDIG and MAFT share: everything but where their gradients come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from limi.methods import _gradient, _seeds
from limi.methods._gradient import Restart, Slopes
from limi.methods._phases import two_phase
from limi.search.check import Checked
from limi.search.session import Session

__all__ = ["Downhill"]


@dataclass(frozen=True, kw_only=True)
class Downhill(ABC):
    """Walk down the confidence with momentum, then wander with chances that are reused."""

    n_seeds: int = 1000  # most flipping rows to search around (g_num)
    clusters: int = 4  # clusters of the table from which seeds are drawn in turn (c_num)
    explore_steps: int = 10  # steps of a row towards a flip (max_iter)
    explore_step: int = 1  # steps of a column per move (s_g)
    decay: float = 0.5  # how much of the earlier gradient a move keeps (eta)
    exploit_steps: int = 1000  # moves around each seed (l_num)
    exploit_step: int = 1  # steps of a column per move around a seed (s_l)
    update_every: int | None = 5  # moves before gradients are computed again; None: never
    restart: Restart = "reset_to_seed"  # what a walk does after a move that does not flip

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        _gradient.require_sizes(self)
        if self.update_every is not None:
            _gradient.require(1, update_every=self.update_every)

    @abstractmethod
    def _slopes(self, session: Session) -> Slopes:
        """Gradients over rows."""

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Both phases."""
        return two_phase(session, self, self, rng, n_seeds=self.n_seeds)

    def explore(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Rows of the table on their way to the boundary."""
        slopes = self._slopes(session)
        rows = _seeds.cluster_rows(
            session, rng, n=self.n_seeds, clusters=self.clusters, shuffled=True
        )
        heading = _gradient.downhill(session, slopes, self.decay, self.explore_step)
        return _gradient.climb(session, rows, self.explore_steps, heading)

    def exploit(
        self, session: Session, seeds: Checked, rng: np.random.Generator
    ) -> Iterator[Checked]:
        """Rows around the seeds."""
        slope = self._slopes(session).output_gradient
        how = _gradient.Wandering(
            steps=self.exploit_steps,
            size=self.exploit_step,
            restart=self.restart,
            update_every=self.update_every,
        )
        return _gradient.wander(session, seeds, rng, _gradient.of_both(slope), how)

"""NeuronFair: gradients through neurons that react to protected values (Zheng et al., ICSE 2022).

The layer and the neurons whose activations differ most between a row and its counterparts are
found first. Rows then climb a loss that grows as these neurons of a row and of its partner part,
and flipping rows wander as in ADF, by the gradients of that loss.

Faithfulness
- Paper: the layer with the largest area under its curve of activation differences, and the neurons
  above the point where that curve meets the diagonal. Code: the third ReLU by hand, and the half of
  its neurons with the largest sum of activations, which are active rather than biased, measured
  between the two ends of the protected range only.
  Here: the paper's choice, over all protected values in turn.
- Paper: momentum over both gradients and their sum's sign as the direction. Code: the sign of the
  row's own gradient, a random direction once the direction of three steps ago comes back, which a
  straight path does too, and the same-sign filter is computed but not used.
  Here: the paper's.
- Paper, by independent re-implementations: some further neurons, drawn at random and now and then
  again. Here: `extra`, drawn for all walks together every five steps. Code: none.
- Code: TensorFlow gives softmax(a) - a' as the gradient of the loss -sum(a' log softmax(a)), whose
  true derivative is sum(a') softmax(a) - a' (`loss=derivative`). Here: TensorFlow's, which brings
  about two to five times as many rows to a flip.
- Paper, by independent re-implementations: exploiting walks go towards the sum of the gradients and
  keep only rows that flip (`exploit_walk=directed, restart=stay`). Code and here: ADF's walk.
- Code: seeds the global random numbers again in the search, and moves column 0 where chances are
  NaN. Here: neither.
- Code: reads the protected bounds of census for every table. Here: the schema's.
- Otherwise as ADF: lock-step, steps of the column, the partner that the check gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.methods import _gradient, _seeds
from limi.methods._gradient import Heading, Moves, Restart, Twofold
from limi.methods._phases import two_phase
from limi.models.gradients import Activations, Gradients
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.partners import change
from limi.table.schema import Schema
from limi.table.steps import movable
from limi.types import Mask, Rows

__all__ = ["NeuronFair"]

_GRID = 0.005  # width of the grid on which activation differences are compared
_MOST_ROWS = 1 << 15  # rows that choose the neurons
_REFRESH = 5  # steps between two draws of further neurons

Loss = Literal["tensorflow", "derivative"]


@dataclass(frozen=True, kw_only=True)
class NeuronFair:
    """Climb the difference of biased neurons, then wander."""

    n_seeds: int = 1000  # flipping rows to search around, at most
    clusters: int = 4  # clusters of the table from which seeds are drawn in turn
    layer: str | None = None  # such as ReLU5; None: the one with the largest area
    share: float | None = None  # alpha, of the layer's neurons; None: by the threshold T_d
    extra: float = 0.05  # share of the layer's neurons that are drawn at random beside
    loss: Loss = "tensorflow"  # whose gradient rows climb
    explore_steps: int = 40  # steps of a row towards a flip (max_iter)
    explore_step: int = 1  # steps of a column per move (s_g)
    decay: float = 0.1  # momentum while exploring
    exploit_steps: int = 1000  # moves around each seed
    exploit_step: int = 1  # steps of a column per move there (s_l)
    exploit_walk: Literal["random", "directed"] = "random"  # moves around a seed
    exploit_decay: float = 0.05  # momentum while exploiting
    restart: Restart = "metropolis"  # what a walk does after a move that does not flip

    needs: ClassVar[frozenset[str]] = frozenset({"neurons"})
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "strong": {"restart": "stay"},
        "paper": {"exploit_walk": "directed", "restart": "stay"},
    }

    def __post_init__(self) -> None:
        _gradient.require_sizes(self)
        if self.share is not None and not 0 < self.share <= 1:
            raise InvalidInput(f"share is {self.share}; it must lie in (0, 1], or be none")
        if not 0 <= self.extra <= 1:
            raise InvalidInput(f"extra is {self.extra}; it must lie in [0, 1]")

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Both phases."""
        return two_phase(session, self, self, rng, n_seeds=self.n_seeds)

    def exploit(
        self, session: Session, seeds: Checked, rng: np.random.Generator
    ) -> Iterator[Checked]:
        """Rows around the seeds."""
        pull = self._neurons(session, rng).gradients
        return _gradient.wander(
            session,
            seeds,
            rng,
            lambda here: pull(here.rows, here.partner),
            _gradient.Wandering(
                steps=self.exploit_steps,
                size=self.exploit_step,
                restart=self.restart,
                decay=self.exploit_decay,
                directed=self.exploit_walk == "directed",
            ),
        )

    def explore(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Rows of the table on their way to where they flip."""
        rows = _seeds.cluster_rows(session, rng, n=self.n_seeds, clusters=self.clusters)
        neurons = self._neurons(session, rng)
        heading = _together(session.schema, neurons, self.decay, self.explore_step, rng)
        return _gradient.climb(session, rows, self.explore_steps, heading)

    def _neurons(self, session: Session, rng: np.random.Generator) -> _Neurons:
        gradients = session.gradients
        assert gradients is not None
        layer, biased = choose(gradients, session.schema, session.rows, self.layer, self.share)
        return _Neurons(gradients, layer, biased, self.extra, self.loss, rng)


class _Neurons:
    """The chosen neurons, and the gradients of a pair through them."""

    def __init__(
        self,
        gradients: Gradients,
        layer: str,
        biased: Mask,
        extra: float,
        loss: Loss,
        rng: np.random.Generator,
    ) -> None:
        self._gradients, self._layer, self._biased = gradients, layer, biased
        self._n_extra = int(np.ceil(extra * len(biased)))
        self._loss, self._rng = loss, rng
        self._chosen, self._asked = biased, 0

    def gradients(self, rows: Rows, partner: Rows) -> Twofold:
        """Gradients of the loss of a row against its partner, and of the partner against it."""
        if self._n_extra and self._asked % _REFRESH == 0:
            more = self._rng.permutation(np.flatnonzero(~self._biased))[: self._n_extra]
            self._chosen = self._biased.copy()
            self._chosen[more] = True
        self._asked += 1
        both = np.concatenate([rows, partner])
        slope = self._gradients.layer_gradient(
            both, self._layer, lambda output: pulled(output, self._chosen, self._loss)
        )
        return slope[: len(rows)], slope[len(rows) :]


def pulled(output: Activations, chosen: Mask, loss: Loss) -> Activations:
    """Derivative by the activations of -sum(a' log softmax(a)), where a' is the partner's.

    Partners stand half a batch apart. Neurons that are not chosen stay in the softmax at 0.
    """
    from scipy.special import softmax

    kept = np.where(chosen, output, 0.0)
    half = len(kept) // 2
    targets = np.concatenate([kept[half:], kept[:half]])
    total = targets.sum(axis=1, keepdims=True) if loss == "derivative" else 1.0
    return np.where(chosen, total * softmax(kept, axis=1) - targets, 0.0)


def choose(
    gradients: Gradients,
    schema: Schema,
    rows: Rows,
    layer: str | None,
    share: float | None,
) -> tuple[str, Mask]:
    """The layer, and which of its neurons react most to protected values."""
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MOST_ROWS)).astype(int))]
    twins = _twins(schema, rows)
    layers = gradients.layers if layer is None else (layer,)
    scores = {name: _reaction(gradients, name, rows, twins) for name in layers}
    # The first of equals, so that a model that ignores the protected columns has a layer too.
    best = max(scores, key=lambda name: _area(scores[name]))
    score = scores[best]
    if share is not None:
        limit = np.sort(score)[::-1][max(int(share * len(score)) - 1, 0)]
        return best, score >= limit
    return best, _above_crossing(score)


def _twins(schema: Schema, rows: Rows) -> Rows:
    """Each row with other protected values: every combination in turn."""
    n = len(schema.combinations)
    shift = 1 + np.arange(len(rows)) % (n - 1)
    return change(schema, rows, schema.combinations[(schema.combination_of(rows) + shift) % n])


def _reaction(gradients: Gradients, layer: str, rows: Rows, twins: Rows) -> NDArray[np.float64]:
    """How much each neuron of a layer counts."""
    here, there = gradients.activations(rows, layer), gradients.activations(twins, layer)
    return np.asarray(np.tanh(np.abs(here - there).mean(axis=0)))


def _curve(score: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Thresholds, and the share of neurons above each."""
    grid = np.arange(0.0, score.max() + _GRID, _GRID)
    return grid, (score[None, :] > grid[:, None]).mean(axis=1)


def _area(score: NDArray[np.float64]) -> float:
    return float(_GRID * _curve(score)[1].sum())


def _above_crossing(score: NDArray[np.float64]) -> Mask:
    """Neurons above the threshold where the curve meets the diagonal; at least one."""
    grid, share = _curve(score)
    chosen: Mask = score > grid[np.abs(share - grid).argmin()]
    return chosen if chosen.any() else np.asarray(score == score.max())


def _together(
    schema: Schema, neurons: _Neurons, decay: float, size: int, rng: np.random.Generator
) -> Heading:
    """Moves along the sum of both momenta; at random where it vanishes."""
    memory: list[Rows] = []

    def heading(here: Checked, going: Mask) -> Moves:
        own, other = neurons.gradients(here.rows, here.partner)
        if memory:
            own, other = own + decay * memory[0][going], other + decay * memory[1][going]
        memory[:] = own, other
        return size * _or_random(schema, np.sign(own + other), rng)

    return heading


def _or_random(schema: Schema, moves: Moves, rng: np.random.Generator) -> Moves:
    """The same moves, and random ones where a row has none."""
    free = movable(schema)
    draws = rng.integers(-1, 2, moves.shape).astype(np.float64)
    lost = ~moves[:, free].any(axis=1, keepdims=True)
    return np.where(free, np.where(lost, draws, moves), 0.0)

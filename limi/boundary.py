"""A hyperplane in latent space: fitted to decisions, then used to move latents onto it.

The plane is the paper's linear SVM (L2 penalty, squared hinge, liblinear's objective with the
intercept regularised like a weight). It is solved by a primal Newton method on the array's own
device: each step is one Gram matrix of the rows inside the margin and one small solve, and four to
nine steps do, where liblinear walks for seconds.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.types import Latents

__all__ = ["Boundary", "auc", "fit", "random"]

_MOST_STEPS = 100
_BLOCK = 4096  # latents at once
_TOLERANCE = 1e-10  # of the gradient, relative to its first length


@dataclass(frozen=True)
class Boundary:
    """normal . z + offset = 0, with a unit normal that points to the favorable side.

    `normal` lives where the latents live: a numpy array, or a torch tensor on their device.
    """

    normal: Any
    offset: float
    steps: int = 0
    notes: tuple[str, ...] = ()

    def distance(self, latents: Latents) -> Any:
        """Signed distance of each latent; above 0 on the favorable side."""
        return latents @ self.normal + self.offset

    def project(self, latents: Latents) -> Any:
        """The nearest latents on the plane."""
        return latents - self.distance(latents)[:, None] * self.normal

    def shift(self, latents: Latents, step: float) -> Any:
        """Latents moved along the normal."""
        return latents + step * self.normal

    def reflect(self, latents: Latents) -> Any:
        """Latents mirrored at the plane."""
        return latents - 2 * self.distance(latents)[:, None] * self.normal


def fit(latents: Latents, favorable: Any, *, C: float = 1.0) -> Boundary:
    """The plane that minimises 0.5 |w, b|^2 + C sum max(0, 1 - t (w . z + b))^2, t = +-1.

    `favorable` is a mask over the latents. One class alone has no boundary: InvalidInput.
    """
    n = len(latents)
    n_favorable = int(favorable.sum())
    if n < 2 or n_favorable in (0, n):
        raise InvalidInput(
            f"a boundary needs latents of both decisions; given were {n_favorable} favorable and "
            f"{n - n_favorable} unfavorable ones"
        )
    weights, steps, inside = _newton(latents, favorable, C)
    length = math.sqrt(float((weights[:-1] ** 2).sum()))
    if not (math.isfinite(length) and length > 0):
        raise InvalidInput("the latents of both decisions coincide, so no plane parts them")
    notes = () if inside else ("the two decisions are separable in latent space with a margin",)
    normal = weights[:-1] / length
    return Boundary(_like(normal, latents), float(weights[-1]) / length, steps, notes)


def random(latents: Latents, rng: np.random.Generator, offset: float = 0.0) -> Boundary:
    """A plane of uniform direction, the paper's control."""
    direction = rng.normal(size=(latents.shape[1],))
    normal = direction / np.linalg.norm(direction)
    return Boundary(_like(normal, latents), offset)


def auc(scores: Any, favorable: Any) -> float:
    """Area under the ROC curve: the share of pairs in the right order, ties counted half."""
    from scipy.stats import rankdata

    scores, favorable = _numpy(scores), _numpy(favorable).astype(bool)
    n_up, n_down = int(favorable.sum()), int((~favorable).sum())
    if not n_up or not n_down:
        return math.nan
    ranks = rankdata(scores)
    return float((ranks[favorable].sum() - n_up * (n_up + 1) / 2) / (n_up * n_down))


def _newton(latents: Any, favorable: Any, C: float) -> tuple[Any, int, bool]:
    """Weights with the intercept last, the number of steps, and whether any row is in the margin.

    The objective is piecewise quadratic and strictly convex: a Newton step is exact on its piece,
    and halving the step where it overshoots makes the method converge from anywhere.
    """
    xp = _library(latents)
    rows = _double(latents)
    n, width = rows.shape
    sign = xp.where(favorable, 1.0, -1.0)
    sign = _double(sign)
    weights = xp.zeros(width + 1, **_place(rows))
    margin = xp.zeros(n, **_place(rows))  # sign * (w . z + b)
    first_length = None
    steps = 0
    while steps < _MOST_STEPS:
        steps += 1
        short = 1.0 - margin
        inside = short > 0
        pull = xp.where(inside, short * sign, xp.zeros_like(short))
        gradient = weights.clone() if xp.__name__ == "torch" else weights.copy()
        gradient[:-1] -= 2 * C * (pull @ rows)
        gradient[-1] -= 2 * C * pull.sum()
        length = math.sqrt(float((gradient**2).sum()))
        first_length = first_length or length
        if length <= _TOLERANCE * first_length:
            break
        hessian = xp.zeros((width + 1, width + 1), **_place(rows))
        hessian[:-1, :-1] = _gram(latents, inside)
        hessian[:-1, -1] = hessian[-1, :-1] = _double(inside) @ rows
        hessian[-1, -1] = float(inside.sum())
        hessian *= 2 * C
        hessian += xp.eye(width + 1, **_place(rows))
        change = xp.linalg.solve(hessian, -gradient)
        change_margin = sign * (rows @ change[:-1] + change[-1])
        weights, margin = _step(xp, weights, margin, change, change_margin, gradient, C)
    return weights, steps, bool(inside.any())


def _gram(latents: Any, inside: Any) -> Any:
    """Z'Z over the latents inside, in their own precision: the Hessian only steers the step.

    On the CPU it is summed over blocks that stay in a core's cache, one plain thread a core:
    BLAS teams that wait for one another are many times slower where a core is busy.
    """
    if not isinstance(latents, np.ndarray):
        active = latents[inside]
        return (active.T @ active).double()
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_limits

    def part(start: int) -> NDArray[np.float64]:
        block = latents[start : start + _BLOCK][inside[start : start + _BLOCK]]
        return np.asarray(block.T @ block, dtype=np.float64)

    with threadpool_limits(limits=1), ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as threads:
        # map keeps the order of the blocks, so the sum does not depend on the threads.
        return sum(threads.map(part, range(0, len(latents), _BLOCK)), start=np.zeros(()))


def _step(
    xp: Any,
    weights: Any,
    margin: Any,
    change: Any,
    change_margin: Any,
    gradient: Any,
    C: float,
) -> tuple[Any, Any]:
    """The step, halved until it lowers the objective as much as its slope promises."""

    def objective(w: Any, m: Any) -> float:
        short = xp.where(m < 1, 1.0 - m, xp.zeros_like(m))
        return 0.5 * float((w**2).sum()) + C * float((short**2).sum())

    here, slope = objective(weights, margin), float((gradient * change).sum())
    size = 1.0
    for _ in range(40):
        there = objective(weights + size * change, margin + size * change_margin)
        if there <= here + 1e-4 * size * slope + 1e-12 * abs(here):
            break
        size /= 2
    return weights + size * change, margin + size * change_margin


def _library(array: Any) -> Any:
    """numpy, or torch where the array is a tensor; torch is then imported already."""
    if isinstance(array, np.ndarray):
        return np
    import torch

    return torch


def _place(array: Any) -> dict[str, Any]:
    if isinstance(array, np.ndarray):
        return {"dtype": np.float64}
    return {"dtype": array.dtype, "device": array.device}


def _double(array: Any) -> Any:
    return array.astype(np.float64) if isinstance(array, np.ndarray) else array.double()


def _like(normal: Any, latents: Any) -> Any:
    """The normal in the latents' own type, so that arithmetic with them does not widen."""
    if isinstance(latents, np.ndarray):
        return np.asarray(normal, dtype=latents.dtype)
    import torch

    return torch.as_tensor(normal, dtype=latents.dtype, device=latents.device)


def _numpy(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()

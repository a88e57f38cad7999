"""A hyperplane in latent space: fitted to decisions, then used to move latents onto it.

The plane is the paper's linear SVM (L2 penalty, squared hinge, liblinear's objective with the
intercept regularised like a weight). It is solved by a primal Newton method on the array's own
device: each step is one small solve with the Gram matrix of the rows inside the margin, which on
the CPU is summed over the rows that crossed the margin since the last step; there a first guess
comes from a tenth of the rows.

Balanced classes move that plane away from where decisions change: most rows on it are decided one
way. `calibrate` fits a logistic regression to all labelled latents, as unequal as they are, whose
plane is where both decisions are equally likely; `between` mixes two planes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.system.cores import n_cores
from limi.types import Latents

__all__ = ["Boundary", "Labelled", "auc", "between", "calibrate", "fit", "random"]

_MOST_STEPS = 100
_BLOCK, _GRAM_BLOCK = 1024, 4096  # latents at once
_THINNED = 10  # one of so many latents makes the first guess
_WORTH_THINNING = 1000  # latents that a first guess needs
_TOLERANCE = 1e-10  # of the gradient, relative to its first length
_CALIBRATED = 1e-8  # the same for the calibrated plane, whose latents are drawn again at every step

Labelled = Callable[[], Iterator[tuple[Any, Any]]]
"""Latents and which of them are decided favorably, chunk by chunk, from the first each time."""


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


def fit(latents: Latents, favorable: Any, *, C: float = 1.0) -> Boundary:
    """The plane that minimises 0.5 |w, b|^2 + C sum max(0, 1 - t (w . z + b))^2, t = +-1.

    `favorable` is a mask over the latents. One class alone has no boundary: InvalidInput.
    """
    n = len(latents)
    n_favorable = int(favorable.sum())
    if n < 2 or n_favorable in (0, n):
        raise InvalidInput(
            f"a boundary needs latents with both decisions; there were {n_favorable} favorable and "
            f"{n - n_favorable} unfavorable ones"
        )
    solve = _newton if isinstance(latents, np.ndarray) else _newton_of_tensors
    weights, steps, inside = solve(latents, favorable, C)
    length = math.sqrt(float((weights[:-1] ** 2).sum()))
    if not (math.isfinite(length) and length > 0):
        raise InvalidInput("the latents of both decisions coincide, so no plane separates them")
    notes = () if inside else ("the two decisions are separable in latent space with a margin",)
    normal = weights[:-1] / length
    return Boundary(_like(normal, latents), float(weights[-1]) / length, steps, notes)


def calibrate(labelled: Labelled, *, C: float = 1.0) -> Boundary:
    """The plane of a logistic regression: 0.5 |w|^2 + C sum log(1 + exp(-t (w . z + b))), t = +-1.

    The latents are read chunk by chunk at each step of Newton's method, so that a million of them
    need no more memory than one chunk; sums are in double precision, on the chunks' own device.
    """
    weights: NDArray[np.float64] | None = None
    change, slope, first_length, held = None, 0.0, 0.0, math.inf
    steps, some = 0, None
    while steps < _MOST_STEPS:
        steps += 1
        objective, gradient, hessian, some = _logistic(labelled, weights, C)
        if weights is None:
            weights, first_length = np.zeros(len(gradient)), _length(gradient)
        if change is not None and objective > held + 1e-4 * slope + 1e-12 * abs(held):
            # Too far: halve the way back, and look again from there.
            change, slope = change / 2, slope / 2
            weights = weights - change
            continue
        if _length(gradient) <= _CALIBRATED * first_length:
            break
        change = np.linalg.solve(hessian, -gradient)
        slope, held = float(gradient @ change), objective
        weights = weights + change
    assert weights is not None
    length = _length(weights[:-1])
    if not (math.isfinite(length) and length > 0):
        raise InvalidInput("the latents of both decisions coincide, so no plane separates them")
    return Boundary(_like(weights[:-1] / length, some), float(weights[-1]) / length, steps)


def between(first: Boundary, second: Boundary, share: float) -> Boundary:
    """A plane between two: the first at a share of 0, the second at 1, half and half at 0.5."""
    if share in (0, 1):
        return second if share else first
    normal = (1 - share) * first.normal + share * second.normal
    length = math.sqrt(float((normal**2).sum()))
    if not length > 0:
        raise InvalidInput("the two planes face each other, so no plane lies between them")
    offset = (1 - share) * first.offset + share * second.offset
    return Boundary(normal / length, offset / length, first.steps, first.notes)


def random(latents: Latents, rng: np.random.Generator, offset: float = 0.0) -> Boundary:
    """A plane of uniform direction, the paper's control."""
    direction = rng.normal(size=(latents.shape[1],))
    normal = direction / np.linalg.norm(direction)
    return Boundary(_like(normal, latents), offset)


def auc(scores: Any, favorable: Any) -> float:
    """Area under the ROC curve: the share of pairs in the right order, ties counted half."""
    if not isinstance(scores, np.ndarray):
        return _auc_of_tensors(scores, favorable)
    from scipy.stats import rankdata

    favorable = favorable.astype(bool)
    n_up, n_down = int(favorable.sum()), int((~favorable).sum())
    if not n_up or not n_down:
        return math.nan
    ranks = rankdata(scores)
    return float((ranks[favorable].sum() - n_up * (n_up + 1) / 2) / (n_up * n_down))


def _auc_of_tensors(scores: Any, favorable: Any) -> float:
    """The same where the tensors are."""
    import torch

    ascending, order = scores.sort()
    up = favorable[order].double()
    first = torch.ones_like(up)
    first[1:] = (ascending[1:] != ascending[:-1]).double()
    tie = first.cumsum(0).long() - 1  # which group of equal scores each is in
    ups, downs = (torch.zeros_like(up).index_add_(0, tie, side) for side in (up, 1 - up))
    pairs = (ups * (downs.cumsum(0) - downs / 2)).sum()
    n_up = up.sum()
    return float(pairs / (n_up * (len(up) - n_up)))  # NaN where one side is empty


def _newton(
    latents: Any, favorable: Any, C: float, products: _Products | None = None
) -> tuple[Any, int, bool]:
    """Weights with the intercept last, the number of steps, and whether any row is in the margin.

    The objective is piecewise quadratic and strictly convex: a Newton step is exact on its piece,
    and halving the step where it overshoots makes the method converge from anywhere.
    """
    if products is None:
        with _products(latents) as products:
            return _newton(latents, favorable, C, products)
    n, width = latents.shape
    sign = np.where(favorable, 1.0, -1.0)
    weights = np.zeros(width + 1)
    margin = np.zeros(n)  # sign * (w . z + b)
    steps = 0
    thin = slice(None, None, _THINNED)
    if n >= _THINNED * _WORTH_THINNING and 0 < favorable[thin].mean() < 1:
        # A tenth of the latents, spread over all of them, brings the plane close for a tenth
        # of the work; the steps that count start from there.
        few = np.ascontiguousarray(latents[thin])
        weights, steps, _ = _newton(few, favorable[thin], C * _THINNED)
        margin = sign * (products.forward(weights[:-1]) + weights[-1])
    # Where the weights are zero every latent is inside the margin, warm start or not, so the
    # gradient there is the measure of how small a gradient is.
    first_length = 2 * C * math.hypot(_length(products.backward(sign[None])), float(sign.sum()))
    held, gram = np.zeros(n, dtype=bool), None
    for _ in range(_MOST_STEPS):  # of its own, however many the first guess took
        steps += 1
        short = 1.0 - margin
        inside = short > 0
        pull = np.where(inside, short * sign, 0.0)
        pulled, border = products.backward(np.stack([pull, inside.astype(np.float64)]))
        gradient = weights + 0.0
        gradient[:-1] -= 2 * C * pulled
        gradient[-1] -= 2 * C * pull.sum()
        if _length(gradient) <= _TOLERANCE * first_length:
            break
        gram = _update(products, gram, held, inside)
        held = inside
        hessian = np.zeros((width + 1, width + 1))
        hessian[:-1, :-1] = gram
        hessian[:-1, -1] = hessian[-1, :-1] = border
        hessian[-1, -1] = float(inside.sum())
        hessian *= 2 * C
        hessian += np.eye(width + 1)
        change = np.linalg.solve(hessian, -gradient)
        change_margin = sign * (products.forward(change[:-1]) + change[-1])
        weights, margin = _step(weights, margin, change, change_margin, gradient, C)
    return weights, steps, bool(inside.any())


def _newton_of_tensors(latents: Any, favorable: Any, C: float) -> tuple[Any, int, bool]:
    """The same on a device, where a step is a few calls and one glance at what came of them."""
    import torch

    inputs = torch.nn.functional.pad(latents, (0, 1), value=1.0)  # the intercept's column
    signed = inputs.double() * torch.where(favorable, 1.0, -1.0).double()[:, None]
    one = torch.eye(inputs.shape[1], dtype=torch.float64, device=inputs.device)
    weights, margin = torch.zeros_like(one[0]), torch.zeros_like(signed[:, 0])

    def objective(w: Any, m: Any) -> Any:
        short = (1.0 - m).clamp_(min=0)
        return 0.5 * w.dot(w) + C * short.dot(short)

    steps, first_length = 0, None
    while steps < _MOST_STEPS:
        steps += 1
        short = (1.0 - margin).clamp_(min=0)
        gradient = weights - 2 * C * (short @ signed)
        active = inputs * (short > 0)[:, None]
        hessian = 2 * C * (active.T @ inputs).double() + one
        factor, failed = torch.linalg.cholesky_ex(hessian)
        change = -torch.cholesky_solve(gradient[:, None], factor)[:, 0]
        moved = signed @ change
        told = [
            gradient.dot(gradient),
            objective(weights, margin),
            gradient.dot(change),
            objective(weights + change, margin + moved),
            failed.double(),
        ]
        squared, here, slope, there, lost = torch.stack(told).tolist()
        first_length = first_length or math.sqrt(squared)
        if math.sqrt(squared) <= _TOLERANCE * first_length:
            break
        if lost:  # rounding of a large Gram matrix has outweighed the identity
            change = torch.linalg.solve(hessian, -gradient)
            moved, slope = signed @ change, float(gradient.dot(change))
            there = float(objective(weights + change, margin + moved))
        size = 1.0
        while there > here + 1e-4 * size * slope + 1e-12 * abs(here) and size > 2.0**-40:
            size /= 2
            there = float(objective(weights + size * change, margin + size * moved))
        weights, margin = weights + size * change, margin + size * moved
    return weights, steps, bool((margin < 1).any())


def _logistic(
    labelled: Labelled, weights: NDArray[np.float64] | None, C: float
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], Any]:
    """Objective, gradient and Hessian of the logistic regression, with the intercept last.

    The intercept carries no penalty: it is what the calibration is about.
    """
    total: Any = None
    some: Any = None
    for latents, favorable in labelled():
        some = latents[:0]
        of = _logistic_part if isinstance(latents, np.ndarray) else _logistic_part_of_tensors
        given = np.zeros(latents.shape[1] + 1) if weights is None else weights
        part = of(latents, favorable, given)
        total = part if total is None else [a + b for a, b in zip(total, part, strict=True)]
    if total is None:
        raise InvalidInput("a boundary needs labelled latents; none were given")
    loss, pull, curvature = total
    given = np.zeros(len(pull)) if weights is None else weights
    penalty = np.append(np.ones(len(pull) - 1), 0.0)
    objective = 0.5 * float((penalty * given**2).sum()) + C * float(loss)
    # A trace on the diagonal keeps the solve sound where every latent is surely decided.
    hessian = C * curvature + np.diag(penalty + 1e-9 * (1 - penalty))
    return objective, penalty * given + C * pull, hessian, some


def _logistic_part(latents: Any, favorable: Any, weights: NDArray[np.float64]) -> list[Any]:
    from scipy.special import expit

    parts = []
    for start in range(0, len(latents), _GRAM_BLOCK):
        block = np.asarray(latents[start : start + _GRAM_BLOCK], dtype=np.float64)
        up = np.asarray(favorable[start : start + _GRAM_BLOCK], dtype=np.float64)
        inputs = np.concatenate([block, np.ones((len(block), 1))], axis=1)
        margin = inputs @ weights
        chance = expit(margin)
        loss = np.logaddexp(0.0, margin).sum() - (up * margin).sum()
        weighted = inputs * (chance * (1 - chance))[:, None]
        parts.append([loss, (chance - up) @ inputs, weighted.T @ inputs])
    return [sum(some[1:], start=some[0]) for some in zip(*parts, strict=True)]


def _logistic_part_of_tensors(
    latents: Any, favorable: Any, weights: NDArray[np.float64]
) -> list[Any]:
    """The same where the tensors are."""
    import torch

    inputs = torch.nn.functional.pad(latents, (0, 1), value=1.0).double()
    up = favorable.double()
    margin = inputs @ torch.as_tensor(weights, device=inputs.device)
    chance = margin.sigmoid()
    loss = torch.nn.functional.softplus(margin).sum() - up.dot(margin)
    curvature = (inputs * (chance * (1 - chance))[:, None]).T @ inputs
    return [float(loss), ((chance - up) @ inputs).cpu().numpy(), curvature.cpu().numpy()]


def _length(vector: Any) -> float:
    return math.sqrt(float((vector**2).sum()))


def _update(products: _Products, gram: Any, held: Any, inside: Any) -> Any:
    """Z'Z over the latents inside, from that over those inside a step ago.

    From step to step fewer and fewer latents cross the margin, and only they are summed.
    """
    entered, left = inside & ~held, held & ~inside
    if gram is None or int(entered.sum()) + int(left.sum()) >= int(inside.sum()):
        return products.gram(inside)
    return gram + products.gram(entered) - products.gram(left)


@contextmanager
def _products(latents: Any) -> Iterator[_Products]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1), ThreadPoolExecutor(min(4, n_cores())) as threads:
        yield _Products(latents, threads)


class _Products:
    """Products with the matrix of latents, in double precision but for the Gram matrix.

    Sums go over blocks that stay in a core's cache, one plain thread per core: BLAS teams that
    wait for one another are many times slower where a core is busy, and a copy of all latents in
    double precision would be read from memory at every step.
    """

    def __init__(self, latents: NDArray[Any], threads: ThreadPoolExecutor) -> None:
        self._latents, self._threads = latents, threads

    def forward(self, vector: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Z v."""
        return np.concatenate(self._map(_BLOCK, lambda part: self._double(part) @ vector))

    def backward(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """u'Z for each line u."""
        parts = self._map(_BLOCK, lambda part: vectors[:, part] @ self._double(part))
        return np.asarray(sum(parts[1:], start=parts[0]))

    def gram(self, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Z'Z over the latents in a mask, in their own precision: it only steers the step."""

        def part_of(part: slice) -> NDArray[np.float64]:
            block = self._latents[part][mask[part]]
            return np.asarray(block.T @ block, dtype=np.float64)

        parts = self._map(_GRAM_BLOCK, part_of)
        return np.asarray(sum(parts[1:], start=parts[0]))

    def _double(self, part: slice) -> NDArray[np.float64]:
        return self._latents[part].astype(np.float64, copy=False)

    def _map(self, size: int, function: Callable[[slice], Any]) -> list[Any]:
        # map keeps the order of the blocks, so that sums do not depend on the threads.
        starts = range(0, len(self._latents), size)
        return list(self._threads.map(function, (slice(start, start + size) for start in starts)))


def _step(
    weights: Any,
    margin: Any,
    change: Any,
    change_margin: Any,
    gradient: Any,
    C: float,
) -> tuple[Any, Any]:
    """The step, halved until it lowers the objective as much as its slope promises."""

    def objective(w: Any, m: Any) -> float:
        short = np.maximum(1.0 - m, 0.0)
        return 0.5 * float((w**2).sum()) + C * float((short**2).sum())

    here, slope = objective(weights, margin), float((gradient * change).sum())
    size = 1.0
    for _ in range(40):
        there = objective(weights + size * change, margin + size * change_margin)
        if there <= here + 1e-4 * size * slope + 1e-12 * abs(here):
            break
        size /= 2
    return weights + size * change, margin + size * change_margin


def _like(normal: Any, latents: Any) -> Any:
    """The normal in the latents' own type, so that arithmetic with them does not widen."""
    if isinstance(latents, np.ndarray):
        return np.asarray(normal, dtype=latents.dtype)
    import torch

    return torch.as_tensor(normal, dtype=latents.dtype, device=latents.device)

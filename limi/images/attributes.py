"""Attribute scorers learned from labels: what a face shows, as two plain architectures see it.

The scorer (`pixels`) is a logistic regression on eigenface coordinates, folded into one weight per
pixel. The judge (`edges`) never sees a pixel's light: it is a logistic regression on how strong
the edges of each orientation are in each part of the image. Both weigh every combination of the
labels alike, so that what occurs together in the photographs is not learned as one thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from limi.decisions import favors
from limi.errors import BadTable
from limi.images._base import ImageArray, Images, Scorer, parts, probability
from limi.images.eigenfaces import Eigenfaces
from limi.system.arrays import is_tensor
from limi.types import Mask, Scores

__all__ = [
    "EdgeScorer",
    "Learned",
    "PixelScorer",
    "balance",
    "best_threshold",
    "fit_edges",
    "fit_logistic",
    "fit_pixels",
    "learn",
    "moved",
]

_PENALTY_PIXELS = 0.01  # C of the regression
_PENALTY_EDGES = 0.001
_ORIENTATIONS = 8
_CELLS = 8  # parts of the image along each side
_EVEN = 0.05  # light of an edge under which a part counts as even
_FEWEST = 10  # labelled images of each answer that a scorer is fitted on


@dataclass(frozen=True, eq=False)
class PixelScorer:
    """The logistic function of a weighted sum of all pixels."""

    weights: NDArray[np.float32]  # (height * width * 3,), of light from 0 to 255
    intercept: float
    takes_tensors: bool = True
    _placed: dict[str, Any] = field(default_factory=dict, repr=False)

    def __call__(self, images: Images) -> Scores:
        """One score for each image."""
        flat = images.reshape(len(images), -1)
        if is_tensor(images):
            where = str(images.device)
            if where not in self._placed:
                import torch

                self._placed[where] = torch.from_numpy(self.weights).to(images.device)
            return probability((flat.float() @ self._placed[where]).cpu().numpy() + self.intercept)
        sums = [flat[part].astype(np.float32) @ self.weights for part in parts(len(flat))]
        return probability(np.concatenate(sums).astype(np.float64) + self.intercept)


@dataclass(frozen=True, eq=False)
class EdgeScorer:
    """The logistic function of a weighted sum of edge strengths."""

    weights: NDArray[np.float32]
    intercept: float

    def __call__(self, images: ImageArray) -> Scores:
        """One score for each image."""
        return probability(edges(images).astype(np.float64) @ self.weights + self.intercept)


class _Fit(Protocol):
    def __call__(self, images: ImageArray, answers: Mask, weights: Any) -> Scorer: ...


@dataclass(frozen=True)
class Learned:
    """A scorer with what it was learned from and how often it is right."""

    name: str
    scorer: Scorer
    architecture: str
    n: int  # images it was fitted on, without their mirror images
    n_held_out: int
    accuracy: float  # held out; each answer weighs the same


def learn(
    name: str,
    fit: _Fit,
    architecture: str,
    images: ImageArray,
    labels: Mapping[str, NDArray[np.int8]],
    held_out: Mask,
    beside: Sequence[str] = (),
) -> Learned:
    """A scorer of one label; `beside` are labels that it must not confuse with it.

    Labels are 0, 1, or -1 where none is known.
    """
    answers = labels[name]
    known = answers >= 0
    chosen = np.flatnonzero(known & ~held_out)
    counts = [int((answers[chosen] == side).sum()) for side in (0, 1)]
    if min(counts) < _FEWEST:
        raise BadTable(
            f"the label {name!r} has {counts[0]} images of one value and {counts[1]} of the other; "
            f"a scorer needs {_FEWEST} of each"
        )
    weights = balance([labels[one][chosen] for one in (name, *beside)])
    with_mirrors = np.concatenate([images[chosen], images[chosen][:, :, ::-1]])
    scorer = fit(with_mirrors, np.tile(answers[chosen] == 1, 2), np.tile(weights, 2))
    judged = np.flatnonzero(known & held_out)
    right = favors(np.asarray(scorer(images[judged]))) == (answers[judged] == 1)
    sides = [right[answers[judged] == side] for side in (0, 1)]
    accuracy = float(np.mean([side.mean() for side in sides if len(side)])) if len(right) else 0.5
    return Learned(name, scorer, architecture, len(chosen), len(judged), accuracy)


def moved(scorer: Scorer, shift: float) -> Scorer:
    """A scorer learned here, with its logits so much lower."""
    if isinstance(scorer, (PixelScorer, EdgeScorer)):
        return replace(scorer, intercept=scorer.intercept - shift)
    last = list(scorer.module.children())[-1]  # type: ignore[attr-defined]
    last.bias.sub_(shift)
    return scorer


def best_threshold(scores: Scores, answers: Mask) -> float:
    """The score above which an answer is yes, by the best F1: in tenths, then in hundredths.

    Of equally good ones the lowest. This is how the paper's authors set their classifiers.
    """

    def best(grid: NDArray[np.float64]) -> float:
        said = scores[:, None] > grid
        hits = (said & answers[:, None]).sum(axis=0)
        f1 = 2 * hits / np.maximum(1, said.sum(axis=0) + answers.sum())
        return float(grid[f1.argmax()])

    about = best(np.arange(1, 10) / 10)
    around = np.arange(round(100 * about) - 10, round(100 * about) + 11) / 100
    return best(around[(around > 0) & (around < 1)])


def balance(labels: Sequence[NDArray[np.int8]]) -> NDArray[np.float64]:
    """Weights under which every combination of labels counts as much as every other."""
    cells = np.zeros(len(labels[0]), dtype=np.int64)
    for one in labels:
        cells = 3 * cells + (one + 1)
    _, place, sizes = np.unique(cells, return_inverse=True, return_counts=True)
    weights: NDArray[np.float64] = len(cells) / (len(sizes) * sizes[place])
    return weights


def fit_pixels(faces: Eigenfaces) -> _Fit:
    """How scorers of pixels are fitted, on the coordinates of these eigenfaces."""

    def fit(images: ImageArray, answers: Mask, weights: Any) -> PixelScorer:
        inputs = np.asarray(faces.encode(images), dtype=np.float64)
        slope, intercept = fit_logistic(inputs, answers, weights, _PENALTY_PIXELS)
        per_light = (slope / faces.spread).astype(np.float32) @ faces.directions
        return PixelScorer(
            (per_light / 255).astype(np.float32), intercept - float(faces.mean @ per_light)
        )

    return fit


def fit_edges(images: ImageArray, answers: Mask, weights: Any) -> EdgeScorer:
    """A scorer of edges."""
    slope, intercept = fit_logistic(
        edges(images).astype(np.float64), answers, weights, _PENALTY_EDGES
    )
    return EdgeScorer(slope.astype(np.float32), intercept)


def edges(images: ImageArray) -> NDArray[np.float32]:
    """(n, features): the strength of edges by part of the image and orientation, in units of all
    edges around."""
    return np.concatenate([_edges(images[part]) for part in parts(len(images), 256)])


def _edges(images: ImageArray) -> NDArray[np.float32]:
    light = images.astype(np.float32)
    grey = (light[..., 0] + light[..., 1] + light[..., 2]) / np.float32(3 * 255)
    across = np.zeros_like(grey)
    down = np.zeros_like(grey)
    across[:, :, 1:-1] = grey[:, :, 2:] - grey[:, :, :-2]
    down[:, 1:-1] = grey[:, 2:] - grey[:, :-2]
    n, height, width = grey.shape
    rows, columns = min(_CELLS, height), min(_CELLS, width)
    by_row, by_column = _averaging(height, rows), _averaging(width, columns)
    strength = np.empty((n, rows, columns, _ORIENTATIONS), dtype=np.float32)
    for number in range(_ORIENTATIONS):
        angle = 2 * np.pi * number / _ORIENTATIONS
        along = across * np.float32(np.cos(angle)) + down * np.float32(np.sin(angle))
        np.maximum(along, 0, out=along)
        strength[..., number] = by_row.T @ (along @ by_column)
    around = np.pad(np.square(strength).sum(axis=3), ((0, 0), (1, 1), (1, 1)), mode="edge")
    energy = sum(
        around[:, i : i + rows, j : j + columns] for i in range(3) for j in range(3)
    ) / np.float32(9)
    scaled = strength / np.sqrt(energy + np.float32(_EVEN**2 / 9))[..., None]
    return np.minimum(scaled, 1.0).reshape(n, -1)


def _averaging(n: int, n_parts: int) -> NDArray[np.float32]:
    """(n, parts): a product with it averages over equal parts, without what is left over."""
    length = n // n_parts
    matrix = np.zeros((n, n_parts), dtype=np.float32)
    for part in range(n_parts):
        matrix[part * length : (part + 1) * length, part] = 1 / length
    return matrix


def fit_logistic(
    inputs: NDArray[np.float64], answers: Mask, weights: Any, penalty: float
) -> tuple[NDArray[np.float64], float]:
    """Slope and intercept of a logistic regression on inputs in units of their spread."""
    from sklearn.linear_model import LogisticRegression

    mean, spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-3
    model = LogisticRegression(C=penalty, solver="newton-cholesky", max_iter=200)
    model.fit((inputs - mean) / spread, answers, sample_weight=weights)
    slope: NDArray[np.float64] = model.coef_[0] / spread
    return slope, float(model.intercept_[0] - mean @ slope)

"""Cells of images: the paper's experiment on faces, beside the floor that it lacks.

The photographs do not come with limi: LIMI_DATA names the folder that holds `faces/faces64.npz` and
`faces/labels.csv`. Faces of a few strokes, drawn here, take their place where only the path from a
cell to a table matters.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.cells import Cell
from lab.workshop import Workshop
from limi.errors import InvalidInput, MissingCapability
from limi.images import ImageResult, Pictures, attributes, audit_images, makers, read_pictures
from limi.images._base import ImageArray, Scorer, parts, probability
from limi.images.quality import thumbnails
from limi.types import Scores

__all__ = ["DRAWN", "draw_faces", "find_faces", "fit_thumbnails", "measure", "require_table"]

DRAWN = ("strokes",)
"""Faces that are drawn here."""

ALONE = True  # it trains models of its own in passing
_N_DRAWN = 600
_SIDE = 16
_SHADES = [(1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2), (2, 2), (3, 0), (0, 3)]
_PENALTY = 0.01  # C of a regression on thumbnails
_EVEN = 0.05 * 255  # spread of grey under which a thumbnail counts as even


def require_table(cell: Cell) -> None:
    """An error where the photographs are not there."""
    if cell.table not in DRAWN:
        find_faces()


def measure(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """Counts without and with the floor, and the signed effect, for a dose of planted bias."""
    kind, _, dose = cell.benchmark.partition("-")[2].rpartition("-")
    test = _prepare(cell.table, bool(cell.extra.get("gpu")))
    result = audit_images(
        test.targets[kind],
        test.generator,
        "gender",
        images=test.people,
        truth="smile",
        hold=[test.held],
        judge=test.judge,
        cases=int(cell.extra["cases"]),
        preset=str(cell.extra["preset"]),
        plant=float(dose),
        pairs=0,
        seed=cell.seed,
        device=test.device,
    )
    return {
        name: None if value is None or not math.isfinite(value) else round(value, 4)
        for name, value in _measures(result).items()
    }


def _measures(result: ImageResult) -> dict[str, float | None]:
    counts, effect, excess = result.searched, result.effect, result.excess
    smallest = result.smallest_dose
    return {
        "cases": counts["cases"],
        "flip_share": counts["flips"] / counts["cases"],
        "valid_share": counts["valid"] / counts["cases"],
        "twin_flips": _share(counts["flips_valid"], counts["valid"]),
        "floor_flips": _share(counts["placebo_flips"], counts["valid"]),
        "findings": result.n_findings,
        "excess": excess.excess,
        "excess_low": excess.low,
        "excess_high": excess.high,
        "effect": effect.effect,
        "effect_low": effect.low,
        "effect_high": effect.high,
        "effect_floor": effect.floor,
        "effect_size": abs(effect.effect),
        "direction": effect.direction,
        "effect_seen": float(effect.seen),
        "excess_seen": float(excess.seen),
        "smallest_dose": None if smallest is None else smallest.dose,
        "seconds": result.seconds,
    }


def _share(some: int, every: int) -> float | None:
    return some / every if every else None


@dataclass(frozen=True)
class _Test:
    """Photographs, a generator, and who looks at what it makes."""

    people: Pictures
    held: str
    generator: Any
    targets: dict[str, Scorer]  # `balanced`, and `photographed`: smiles as they come with gender
    judge: Any
    device: str


@lru_cache(maxsize=2)
def _prepare(table: str, on_gpu: bool) -> _Test:
    people, held = (_strokes(), "ground") if table in DRAWN else (find_faces(), "source")
    beside = {"balanced": ["gender"], "photographed": []}
    if not on_gpu:
        targets: dict[str, Scorer] = {
            name: fit_thumbnails(people, others) for name, others in beside.items()
        }
        return _Test(people, held, "eigenfaces", targets, "edges", "cpu")
    import torch

    from limi.images.networks import fit_scorer

    if not torch.cuda.is_available():
        raise MissingCapability("this scale trains networks on an NVIDIA GPU, and there is none")
    held_out = people.held_out(np.random.default_rng(0))

    def learn(name: str, architecture: str, others: list[str]) -> Scorer:
        fit: Any = fit_scorer(architecture, np.random.default_rng(1), "cuda")
        images, labels = people.images, people.labels
        return attributes.learn(name, fit, architecture, images, labels, held_out, others).scorer

    targets = {name: learn("smile", "resnet18", others) for name, others in beside.items()}
    both = (("gender", "smile"), ("smile", "gender"))
    judge = {name: learn(name, "plain", [other]) for name, other in both}
    rng = np.random.default_rng(0)
    made = makers.fit("vae", people.images[~held_out], rng, device="cuda")
    return _Test(people, held, made, targets, judge, "cuda")


def fit_thumbnails(people: Pictures, beside: list[str]) -> Callable[[ImageArray], Scores]:
    """A smile classifier: a logistic regression on small grey copies.

    Every combination of the smile and of the labels `beside` it weighs the same.
    """
    chosen = np.flatnonzero(~people.held_out(np.random.default_rng(0)))
    images = people.images[chosen]
    labels = [people.labels[name][chosen] for name in ("smile", *beside)]
    inputs = _even(np.concatenate([images, images[:, :, ::-1]]))
    weights = np.tile(attributes.balance(labels), 2)
    answers = np.tile(labels[0] == 1, 2)
    slope, intercept = attributes.fit_logistic(inputs, answers, weights, _PENALTY)

    def score(images: ImageArray) -> Scores:
        sums = [_even(images[part]) @ slope for part in parts(len(images))]
        return probability(np.concatenate(sums) + intercept)

    return score


def _even(images: ImageArray) -> NDArray[np.float64]:
    """Thumbnails in units of their own spread, so that the light of a room does not count."""
    small = thumbnails(images)
    spread = small.std(axis=1, keepdims=True) + _EVEN
    return np.asarray((small - small.mean(axis=1, keepdims=True)) / spread)


def find_faces() -> Pictures:
    """The photographs; InvalidInput where they are not."""
    given = os.environ.get("LIMI_DATA")
    place = Path(given or "", "faces")
    if not given or not (place / "faces64.npz").is_file():
        raise InvalidInput(
            "the photographs of faces do not come with limi; set LIMI_DATA to the folder that "
            "holds faces/faces64.npz (an array `images`) and faces/labels.csv (gender, smile, "
            "source, split)"
        )
    return read_pictures(
        place / "faces64.npz", place / "labels.csv", names=["gender", "smile"], hold=["source"]
    )


def _strokes() -> Pictures:
    images, labels = draw_faces(_N_DRAWN, np.random.default_rng(0))
    coded = {name: values.astype(np.int8) for name, values in labels.items()}
    return Pictures(images, coded, {"gender": ("F", "M")})


def draw_faces(
    n: int, rng: np.random.Generator, side: int = _SIDE
) -> tuple[ImageArray, dict[str, NDArray[np.int64]]]:
    """Faces of a few strokes, whose attributes are known: nobody's.

    The brow shows the gender, the mouth the smile; there is a ground, and shades mean nothing.
    Women smile more often, as in the photographs.
    """
    group = rng.integers(0, 2, n)
    smile = (rng.random(n) < np.where(group == 1, 0.35, 0.65)).astype(np.int64)
    ground = rng.integers(0, 2, n)
    rows, columns = np.mgrid[0:side, 0:side] / side
    brow = np.exp(-(((rows - 0.3) / 0.08) ** 2)) * (np.abs(columns - 0.5) < 0.35)
    mouth = np.exp(-(((rows - 0.75 - (columns - 0.5) ** 2) / 0.07) ** 2))
    mouth = mouth * (np.abs(columns - 0.5) < 0.25)
    around = (np.hypot(rows - 0.5, columns - 0.5) > 0.48).astype(float)
    shades = [np.cos(np.pi * (a * rows + b * columns)) for a, b in _SHADES]
    light = np.full((n, side, side), 0.5)
    light -= (0.05 + 0.12 * (group + 0.35 * rng.standard_normal(n)))[:, None, None] * brow
    light += (0.12 * (smile - 0.5 + 0.3 * rng.standard_normal(n)))[:, None, None] * mouth
    light += (0.1 * (ground - 0.5 + 0.2 * rng.standard_normal(n)))[:, None, None] * around
    light += np.tensordot(0.012 * rng.standard_normal((n, len(shades))), np.array(shades), 1)
    light += 0.01 * rng.standard_normal(light.shape)
    colours = light[..., None] * np.array([1.0, 0.9, 0.8]) * 255
    labels = {"gender": group, "smile": smile, "ground": ground}
    return np.clip(colours, 0, 255).astype(np.uint8), labels

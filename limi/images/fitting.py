"""Fit a generator or a scorer to a folder of images, for files of their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from limi.errors import BadTable, InvalidInput, nearest
from limi.images import attributes, eigenfaces, makers, scorer_files
from limi.images._base import logits
from limi.images.attributes import Learned
from limi.images.quality import judge_generator
from limi.images.sources import Pictures, read_pictures
from limi.streams import Stream
from limi.system import writing
from limi.types import Mask

__all__ = ["fit_attribute", "fit_generator"]

_SPLIT, _FIT, _QUALITY = range(10, 13)  # streams, those of an audit
_SCORERS = ("pixels", "edges", "resnet18", "plain")
_THRESHOLDS = ("half", "f1")


def fit_generator(
    images: str | Path,
    name: str,
    seed: int,
    *,
    size: int | None = None,
    steps: int | None = None,
    device: str = "cpu",
    on_step: Callable[[float, str], None] = lambda done, words: None,
) -> tuple[writing.Content, dict[str, Any]]:
    """The file of a generator, and what there is to say of it."""
    if name not in makers.FITTED:
        raise InvalidInput(f"unknown generator {name!r}; {nearest(name, makers.FITTED)}")
    settings = None
    if steps is not None:
        if name != "vae":
            raise InvalidInput(f"{name} has no training steps; leave them out")
        from limi.images import vae

        settings = vae.Settings(steps=steps)
    pictures = read_pictures(images, size=size)
    held_out = pictures.held_out(Stream.IMAGES.rng(seed, _SPLIT))
    began = time.perf_counter()
    made = makers.fit(
        name,
        pictures.images[~held_out],
        Stream.IMAGES.rng(seed, _FIT),
        settings=settings,
        device=device,
        on_step=on_step,
    )
    took = time.perf_counter() - began
    quality = judge_generator(made, pictures.images, held_out, Stream.IMAGES.rng(seed, _QUALITY))
    told: dict[str, Any] = {
        "generator": name,
        "images": int((~held_out).sum()),
        "latent_dimensions": int(made.latent_dim),
        "seconds": round(took, 2),
    }
    if quality is not None:
        told |= {
            "distance_from_held_out": round(quality.distance, 4),
            "distance_of_training_images": round(quality.floor, 4),
            "copies": round(quality.copies, 4),
        }
    return makers.content(made), told | {"notes": "; ".join(pictures.notes) or "none"}


def fit_attribute(
    images: str | Path,
    labels: str | Path | None,
    name: str,
    beside: tuple[str, ...],
    architecture: str,
    seed: int,
    *,
    size: int | None = None,
    device: str = "cpu",
    threshold: str = "half",
) -> tuple[writing.Content, dict[str, Any]]:
    """The file of a scorer, and how often it is right.

    `threshold="f1"` moves its scores so that 0.5 is where F1 was best on half of what is held out;
    how often it is right is then told of the other half.
    """
    if threshold not in _THRESHOLDS:
        raise InvalidInput(f"unknown threshold {threshold!r}; {nearest(threshold, _THRESHOLDS)}")
    if architecture not in _SCORERS:
        raise InvalidInput(f"unknown scorer {architecture!r}; {nearest(architecture, _SCORERS)}")
    pictures = read_pictures(images, labels, names=(name, *beside), size=size)
    held_out = pictures.held_out(Stream.IMAGES.rng(seed, _SPLIT))
    fit: Any
    if architecture == "edges":
        fit = attributes.fit_edges
    elif architecture == "pixels":
        faces = eigenfaces.fit(pictures.images[~held_out], np.random.default_rng(0))
        fit = attributes.fit_pixels(faces)
    else:
        from limi.images import networks

        fit = networks.fit_scorer(architecture, Stream.IMAGES.rng(seed, _FIT, 1), device)
    began = time.perf_counter()
    learned = attributes.learn(
        name, fit, architecture, pictures.images, pictures.labels, held_out, beside
    )
    if threshold == "f1":
        learned = _at_best_f1(learned, pictures, held_out)
    told = {
        "scorer": architecture,
        "attribute": name,
        "yes_means": pictures.values[name][1],
        "images": learned.n,
        "held_out": learned.n_held_out,
        "held_out_accuracy": round(learned.accuracy, 4),
        "seconds": round(time.perf_counter() - began, 2),
    }
    return scorer_files.content(learned), told


def _at_best_f1(learned: Learned, pictures: Pictures, held_out: Mask) -> Learned:
    answers = pictures.labels[learned.name]
    judged = np.flatnonzero((answers >= 0) & held_out)
    scores = np.asarray(learned.scorer(pictures.images[judged]))
    yes = answers[judged] == 1
    tuned, rest = np.arange(len(judged)) % 2 == 0, np.arange(len(judged)) % 2 == 1
    if not (yes[tuned].any() and yes[rest].any() and (~yes[rest]).any()):
        raise BadTable("too few images are held out to choose a threshold; leave out --threshold")
    edge = attributes.best_threshold(scores[tuned], yes[tuned])
    right = (scores[rest] > edge) == yes[rest]
    accuracy = float(np.mean([right[yes[rest] == side].mean() for side in (False, True)]))
    shift = float(logits(np.array([edge]))[0])
    scorer = attributes.moved(learned.scorer, shift)
    return replace(learned, scorer=scorer, accuracy=accuracy, n_held_out=int(rest.sum()))

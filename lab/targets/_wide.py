"""A wide table, drawn: 128 columns of mixed kinds with missing cells, and three protected ones.

The generator, stated so that it can be judged. Each of 6,000 people has six hidden traits, drawn
from a normal distribution, and a sex (2), a region (4) and a language (3), drawn as often as stated
below; sex and language shift the first two traits by a third of their spread. Of the columns

- 56 are numbers: a mix of two traits and noise, a third of them skewed (their exponential), rounded
  to so many digits that they have some hundred values;
- 24 are counts: Poisson with a rate that a trait moves;
- 30 are categories of 2 to 9 levels: cuts of a trait with noise, their levels in no order;
- 15 are ordered grades of 3 to 6 levels: cuts in order.

Every second column misses cells: 2 to 25 % of them, where a trait decides which (people high in it
leave out more). Whoever is above the median of a sum of the traits, two products of traits, and a
direct effect of sex, region and language of .5, .35 and .25 standard deviations, with noise of .6,
has the favorable label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAVORABLE", "LABEL", "draw_people"]

_PEOPLE, _TRAITS, _SEED = 6_000, 6, 20_26
_NUMBERS, _COUNTS, _CATEGORIES, _GRADES = 56, 24, 30, 15
_SEX, _REGION, _LANGUAGE = (0.52, 0.48), (0.4, 0.3, 0.2, 0.1), (0.6, 0.3, 0.1)
_EFFECTS = (0.5, 0.35, 0.25)
_NOISE = 0.6

Cells = NDArray[Any]


LABEL, FAVORABLE = "granted", "yes"


def draw_people() -> Any:
    """The table as a frame, the same one each time."""
    import pandas as pd

    rng = np.random.default_rng(_SEED)
    groups = [rng.choice(len(p), _PEOPLE, p=p) for p in (_SEX, _REGION, _LANGUAGE)]
    traits = rng.normal(size=(_PEOPLE, _TRAITS))
    traits[:, 0] += groups[0] / 3
    traits[:, 1] += groups[2] / 3
    columns: dict[str, Cells] = {
        "sex": np.array(["female", "male"])[groups[0]],
        "region": np.array(["north", "south", "east", "west"])[groups[1]],
        "language": np.array(["first", "second", "other"])[groups[2]],
    }
    columns |= _draw_numbers(traits, rng) | _draw_counts(traits, rng)
    columns |= _draw_levels("category", _CATEGORIES, (2, 9), traits, rng)
    columns |= _draw_levels("grade", _GRADES, (3, 6), traits, rng)
    frame = pd.DataFrame(columns)
    for number, name in enumerate(list(columns)[3:]):
        if number % 2:
            share = rng.uniform(0.02, 0.25)
            lean = traits[:, number % _TRAITS] + rng.normal(size=_PEOPLE)
            frame.loc[lean > np.quantile(lean, 1 - share), name] = None
    frame[LABEL] = _label(traits, groups, rng)
    return frame


def _draw_numbers(traits: Cells, rng: np.random.Generator) -> dict[str, Cells]:
    drawn = {}
    for number in range(_NUMBERS):
        first, second = rng.choice(_TRAITS, 2, replace=False)
        mixed = traits[:, first] + rng.uniform(-0.8, 0.8) * traits[:, second]
        mixed = mixed + 0.5 * rng.normal(size=_PEOPLE)
        skewed = number % 3 == 0
        drawn[f"number{number:02}"] = np.round(np.exp(mixed) if skewed else 10 * mixed, 1)
    return drawn


def _draw_counts(traits: Cells, rng: np.random.Generator) -> dict[str, Cells]:
    return {
        f"count{number:02}": rng.poisson(
            np.exp(rng.uniform(0, 1.5) + 0.4 * traits[:, rng.integers(_TRAITS)])
        ).astype(np.float64)
        for number in range(_COUNTS)
    }


def _draw_levels(
    what: str, n: int, sizes: tuple[int, int], traits: Cells, rng: np.random.Generator
) -> dict[str, Cells]:
    drawn = {}
    for number in range(n):
        size = int(rng.integers(sizes[0], sizes[1] + 1))
        lean = traits[:, rng.integers(_TRAITS)] + 0.7 * rng.normal(size=_PEOPLE)
        cuts = np.sort(rng.normal(size=size - 1))
        level = np.searchsorted(cuts, lean)
        if what == "grade":
            drawn[f"{what}{number:02}"] = level.astype(np.float64)
        else:
            names = np.array([f"{what[0]}{place}" for place in rng.permutation(size)])
            drawn[f"{what}{number:02}"] = names[level].astype(object)
    return drawn


def _label(traits: Cells, groups: list[NDArray[np.intp]], rng: np.random.Generator) -> Cells:
    merit = traits[:, :4] @ np.array([0.9, 0.7, 0.5, 0.4])
    merit = merit + 0.5 * traits[:, 0] * traits[:, 2] + 0.4 * traits[:, 3] * traits[:, 4]
    for effect, group in zip(_EFFECTS, groups, strict=True):
        merit = merit + effect * group / max(1, group.max())
    merit = merit + _NOISE * rng.normal(size=_PEOPLE)
    return np.where(merit > np.median(merit), FAVORABLE, "no")

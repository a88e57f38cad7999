"""What a model is trained on to be repaired: the table's rows, and what is added to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from limi.errors import InvalidInput, nearest
from limi.search.findings import Found
from limi.table.partners import change_where_possible
from limi.table.schema import Schema
from limi.types import Index, Rows, Truth

__all__ = ["RECIPES", "Chosen", "Training", "choose", "copy_under_others", "get", "mix"]


Rng = np.random.Generator
Extra = tuple[Rows, Truth]

_MOST_COPIES = 3  # other combinations under which a training row is learned


@dataclass(frozen=True)
class Training:
    """Rows of the table that a model is trained on."""

    schema: Schema
    rows: Rows
    labels: Truth


@dataclass(frozen=True)
class Chosen:
    """Findings with the labels they are to be learned with."""

    found: Found
    labels: Truth

    def __len__(self) -> int:
        return len(self.labels)


Recipe = Callable[[Training, Chosen, Rng], list[Extra]]
"""Of training rows, findings and rng: what is added."""


def choose(found: Found, n: int, rng: Rng, *, replace: bool) -> Index:
    """Positions of n findings, each drawn once as long as there are enough of them."""
    again = replace or len(found) < n
    drawn: Index = rng.choice(len(found), n, replace=again)
    return drawn


def mix(recipe: str, training: Training, chosen: Chosen, rng: Rng) -> Extra:
    """The rows to train on by a recipe: all that were there, then what it adds."""
    extra = get(recipe)(training, chosen, rng)
    return (
        np.concatenate([training.rows, *(rows for rows, _ in extra)]),
        np.concatenate([training.labels, *(labels for _, labels in extra)]),
    )


def get(recipe: str) -> Recipe:
    """A recipe by its name."""
    if recipe not in RECIPES:
        raise InvalidInput(f"unknown recipe {recipe!r}; {nearest(recipe, RECIPES)}")
    return RECIPES[recipe]


def _alone(training: Training, chosen: Chosen, rng: Rng) -> list[Extra]:
    """The findings as they were found, without their partners."""
    return [(chosen.found.rows, chosen.labels)]


def _both(training: Training, chosen: Chosen, rng: Rng) -> list[Extra]:
    """Both members of each pair with one label."""
    return [(chosen.found.rows, chosen.labels), (chosen.found.partner, chosen.labels)]


def _both_and_table(training: Training, chosen: Chosen, rng: Rng) -> list[Extra]:
    """Training rows under other protected values, and both members of each pair."""
    return [*copy_under_others(training, rng), *_both(training, chosen, rng)]


def copy_under_others(training: Training, rng: Rng) -> list[Extra]:
    """Training rows under other protected combinations, each of which differs, with their true
    labels."""
    schema, rows, labels = training.schema, training.rows, training.labels
    n_combinations = len(schema.combinations)
    own = schema.combination_of(rows)
    # A row's own combination first; then the others in an order of its own.
    order = rng.random((len(rows), n_combinations))
    inside = own >= 0
    order[np.flatnonzero(inside), own[inside]] = -1.0
    ranked = np.argsort(order, axis=1)
    extra = []
    for place in range(1, min(_MOST_COPIES + 1, n_combinations)):
        moved, there = change_where_possible(schema, rows, schema.combinations[ranked[:, place]])
        extra.append((moved, labels[there]))
    return extra


RECIPES: dict[str, Recipe] = {"alone": _alone, "both": _both, "both+table": _both_and_table}

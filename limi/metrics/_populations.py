"""The populations of rates: what they are called, what they are, and how their rows are drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from limi.decisions import Rule
from limi.generators import Generator, draw
from limi.metrics._rate import Rate, rate_of
from limi.search.check import Checked, check_rows
from limi.streams import Stream
from limi.table.partners import complete
from limi.table.rows import uniform
from limi.table.schema import Schema
from limi.types import Index, Rows, Scores

__all__ = [
    "LEAST_KEPT",
    "POPULATIONS",
    "check_population",
    "choose_places",
    "describe_population",
    "draw_people",
    "name_population",
    "people_rng",
]

_ROUND = 1 << 13  # uniform rows drawn at once, so that they do not depend on how many are wanted
_ENOUGH = 1 << 15  # draws that tell whether uniform rows keep the rules at all
LEAST_KEPT = 0.01

POPULATIONS = {
    "held-out": ("held-out rows", "rows that the model has not seen, as you said"),
    "real": ("real rows", "the rows of your table"),
    "natural": ("natural rows", "people drawn from a generator that imitates the table"),
    "uniform": (
        "uniform rows",
        "all combinations of values the columns allow, equally likely, including unnatural people",
    ),
}
"""By the name of a population: its rows as a noun, and one line on them; in a reader's order."""


def name_population(name: str) -> str:
    """The rows of a population, as a noun."""
    return POPULATIONS[name][0] if name in POPULATIONS else f"{name} rows"


def describe_population(name: str) -> str:
    """One line on how to read a population; empty where there is nothing to say."""
    return POPULATIONS[name][1] if name in POPULATIONS else ""


def people_rng(name: str, seed: int) -> np.random.Generator:
    """The stream of a population: its own, so that adding one changes no other's rows."""
    return Stream.RATES.rng(seed, sum(name.encode()))


def choose_places(size: int, n: int, rng: np.random.Generator) -> Index:
    """Places of n rows of a table of this size, in its order; all where it has no more."""
    return np.arange(size) if n >= size else np.sort(rng.choice(size, n, replace=False))


def draw_people(
    name: str, n: int, rng: np.random.Generator, schema: Schema, generator: Generator | None
) -> tuple[Rows, float]:
    """n rows of a population that is not a table, and the share of draws that keep the rules:
    `uniform`, or `natural` by a generator. Of uniform rows none where hardly any keep them."""
    if name == "uniform":
        return draw_uniform(schema, n, rng)
    assert generator is not None
    return draw(generator, n, rng, schema)


def draw_uniform(schema: Schema, n: int, rng: np.random.Generator) -> tuple[Rows, float]:
    """n uniform rows that keep the rules, and the share of draws that do; none where that is less
    than one in a hundred."""
    enforcer = schema.enforcer
    if not enforcer.constraints:
        return complete(schema, uniform(schema, n, rng)), 1.0
    parts, drawn, kept = [np.empty((0, len(schema)))], 0, 0
    while kept < n or drawn < _ENOUGH:
        rows = enforcer.complete(uniform(schema, _ROUND, rng))
        rows = rows[~enforcer.breaks(rows)]
        parts.append(rows)
        drawn, kept = drawn + _ROUND, kept + len(rows)
        if drawn >= _ENOUGH and kept < LEAST_KEPT * drawn:
            return parts[0], kept / drawn
    return np.concatenate(parts)[:n], kept / drawn


def check_population(
    score: Callable[[Rows], Scores], schema: Schema, rows: Rows, decision: Rule
) -> tuple[Checked, Rate]:
    """Verdicts of rows, and how often decisions on them flip; where no budget has a say."""
    checked = check_rows(score, schema, rows, decision=decision)
    return checked, rate_of(int(checked.flips.sum()), int(checked.is_paired.sum()))

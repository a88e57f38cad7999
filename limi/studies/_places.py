"""Where decisions change among a generator's latents, found with more queries than a search has.

LIMI moves latents onto a plane and asks nothing more. How much that leaves on the table is told by
rows from two better places: the same plane moved along its normal to where most rows flip, and the
decision's own edge, between a latent that is decided favorably and one that is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi import methods
from limi.audits.problem import Problem
from limi.decisions import favors
from limi.errors import InvalidInput
from limi.generators import Generator
from limi.methods.limi import LIMI
from limi.metrics._populations import check_population
from limi.search.boundary import Boundary
from limi.search.session import Session
from limi.search.task import Task
from limi.streams import Stream
from limi.studies._cells import Cell
from limi.studies._workshop import Workshop
from limi.table.rows import keys
from limi.types import Latents, Mask, Rows

__all__ = ["Placed", "favorable_on_plane", "place_rows"]

_ON_PLANE = 5_000  # rows on the plane that are asked for their decision
_OFFSETS = np.linspace(-3, 3, 31)  # places of the plane along its normal
_TRIED = 2_000  # rows that flip or not, at each of them
_STEPS = 12  # of bisection: the two ends are then a four-thousandth of the arc apart


@dataclass(frozen=True)
class Placed:
    """Rows of a place, each once, and those of them that flip."""

    rows: Rows
    findings: Rows
    queries: int  # of the search for the place, and of checking
    facts: dict[str, float]


def place_rows(cell: Cell, shop: Workshop) -> Placed:
    """As many rows of the cell's place as its budget allows, and which of them flip."""
    problem, generator = shop.problem(cell), shop.generator(cell)
    assert generator is not None
    known = {"best offset": _on_best_plane, "favorable": _on_edge, "unfavorable": _on_edge}
    place = cell.extra["place"]
    if place not in known:
        raise InvalidInput(f"the study {cell.study} asks for rows at {place!r}; use {list(known)}")
    latents, asked, facts = known[place](cell, shop)
    rows = generator.decode(latents)
    _, first = np.unique(keys(problem.schema, rows), axis=0, return_index=True)
    rows = rows[np.sort(first)]
    flips = _flips(problem, rows)
    queries = asked + len(rows) * len(problem.schema.combinations)
    facts["plane_favorable"] = round(float(favors(problem.target.score(rows)).mean()), 4)
    return Placed(rows, rows[flips], queries, facts)


def favorable_on_plane(cell: Cell, shop: Workshop) -> float:
    """The share of rows on LIMI's plane that are decided favorably; half of them, on a true one."""
    generator, plane = shop.generator(cell), _plane(cell, shop)
    assert generator is not None
    latents = generator.sample_latents(_ON_PLANE, np.random.default_rng([cell.seed, 9]))
    rows = generator.decode(latents if plane is None else plane.project(latents))
    return float(favors(shop.problem(cell).target.score(rows)).mean())


def _plane(cell: Cell, shop: Workshop) -> Boundary | None:
    problem = shop.problem(cell)
    method = methods.parse(cell.method, cell.settings)
    assert isinstance(method, LIMI)
    task = Task(
        problem.schema,
        problem.target.score,
        problem.rows,
        decision=problem.target.rule,
        generator=shop.generator(cell),
    )
    return method.fit_plane(Session(task), Stream.SEARCH.rng(cell.seed))


def _on_best_plane(cell: Cell, shop: Workshop) -> tuple[Latents, int, dict[str, float]]:
    """Latents on the cell's plane, moved to where most rows flip; that is looked for elsewhere."""
    problem, generator, plane = shop.problem(cell), shop.generator(cell), _plane(cell, shop)
    assert generator is not None
    if plane is None:
        raise InvalidInput(f"{cell.benchmark}: no boundary could be fitted, so none can be moved")
    rng = np.random.default_rng([cell.seed, 11])
    tried = plane.project(generator.sample_latents(_TRIED, rng))
    shares = [
        float(_flips(problem, generator.decode(plane.shift(tried, offset))).mean())
        for offset in _OFFSETS
    ]
    best = float(_OFFSETS[int(np.argmax(shares))])
    latents = generator.sample_latents(_n_rows(cell), rng)
    n_labelled = int(cell.settings["n_latents"])
    asked = n_labelled + len(_OFFSETS) * _TRIED * len(problem.schema.combinations)
    return plane.shift(plane.project(latents), best), asked, {"offset": round(best, 4)}


def _on_edge(cell: Cell, shop: Workshop) -> tuple[Latents, int, dict[str, float]]:
    """Latents at the edge between a favorable and an unfavorable one, on one side of it.

    The way from one to the other is the ellipse a cos t + b sin t, of which every point is as
    normal as its ends; a straight way would lead through latents that no sample has.
    """
    problem, generator = shop.problem(cell), shop.generator(cell)
    assert generator is not None
    n, n_labelled = _n_rows(cell), int(cell.settings["n_latents"])
    rng = np.random.default_rng([cell.seed, 13])
    drawn = generator.sample_latents(n_labelled, rng)
    favored = _favored(problem, generator)(drawn)
    if favored.all() or not favored.any():
        raise InvalidInput(f"{cell.benchmark}: every natural row is decided alike")
    up = drawn[rng.choice(np.flatnonzero(favored), n)]
    down = drawn[rng.choice(np.flatnonzero(~favored), n)]
    ends = bisect(up, down, _favored(problem, generator), _STEPS)
    latents = ends[0] if cell.extra["place"] == "favorable" else ends[1]
    return latents, n_labelled + n * _STEPS, {}


def bisect(
    up: Latents, down: Latents, favored: Callable[[Latents], Mask], steps: int
) -> tuple[Latents, Latents]:
    """The two ends of the edge on each way from a favorable latent to an unfavorable one."""
    low, high = np.zeros(len(up)), np.full(len(up), np.pi / 2)
    for _ in range(steps):
        middle = (low + high) / 2
        still = favored(_on_way(up, down, middle))
        low, high = np.where(still, middle, low), np.where(still, high, middle)
    return _on_way(up, down, low), _on_way(up, down, high)


def _on_way(up: Latents, down: Latents, angle: NDArray[np.float64]) -> Any:
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    return (up * cos + down * sin).astype(up.dtype)


def _favored(problem: Problem, generator: Generator) -> Callable[[Latents], Mask]:
    def favored(latents: Latents) -> Mask:
        mask: Mask = favors(problem.target.score(generator.decode(latents)))
        return mask

    return favored


def _flips(problem: Problem, rows: Rows) -> Mask:
    target = problem.target
    checked, _ = check_population(target.score, problem.schema, rows, target.rule)
    return checked.flips


def _n_rows(cell: Cell) -> int:
    return int(cell.budget["max_rows"])

"""Where decisions change among a generator's latents, found with more queries than a search has.

LIMI moves latents onto a plane and asks nothing more. How much that leaves on the table is told by
rows from other places: the same plane moved along its normal to where most rows flip, either side
of it alone, and the decision's own edge, between a latent that is decided favorably and one that is
not. What moves the plane is told by planes that are fitted in another way. Whether people near a
decision are unlike the others because they were moved is told by natural rows that are not moved,
only picked because they lie near a plane, or near the zero of a small network on the latents.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.cells import Cell
from lab.workshop import Workshop
from limi import methods
from limi.audits.problem import Problem
from limi.decisions import favors, round_scores
from limi.errors import InvalidInput
from limi.generators import Generator
from limi.methods._latent import oversample
from limi.methods.limi import LIMI
from limi.metrics._populations import check_population
from limi.search.boundary import Boundary, calibrate, fit
from limi.search.session import Session
from limi.search.task import Task
from limi.streams import Stream
from limi.table.rows import keys
from limi.types import Latents, Mask, Rows

__all__ = ["Placed", "favorable_on_plane", "fit_plane", "place_rows", "refit_plane"]

_ON_PLANE = 5_000  # rows on the plane that are asked for their decision
_OFFSETS = np.linspace(-3, 3, 31)  # places of the plane along its normal
_TRIED = 2_000  # rows that flip or not, at each of them
_STEPS = 12  # of bisection: the two ends are then a four-thousandth of the arc apart
_ONE_OF = 10  # natural latents, of which the nearest is picked
_NEURONS, _EPOCHS = 64, 30  # of the small network


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
    known = {
        "best offset": _on_best_plane,
        "favorable": _on_edge,
        "unfavorable": _on_edge,
        "up": _beside_plane,
        "down": _beside_plane,
        "refitted": _on_refitted_plane,
        "picked": _near_plane,
        "network": _near_network,
    }
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


def fit_plane(cell: Cell, shop: Workshop) -> Boundary:
    """The plane of the cell's LIMI; InvalidInput where none can be fitted."""
    plane = _plane(cell, shop)
    if plane is None:
        raise InvalidInput(f"{cell.benchmark}: no boundary could be fitted")
    return plane


def _on_best_plane(cell: Cell, shop: Workshop) -> tuple[Latents, int, dict[str, float]]:
    """Latents on the cell's plane, moved to where most rows flip; that is looked for elsewhere."""
    problem, generator, plane = shop.problem(cell), shop.generator(cell), fit_plane(cell, shop)
    assert generator is not None
    rng = np.random.default_rng([cell.seed, 11])
    tried = plane.project(generator.sample_latents(_TRIED, rng))
    shares = [
        float(_flips(problem, generator.decode(plane.shift(tried, offset))).mean())
        for offset in _OFFSETS
    ]
    best = float(_OFFSETS[int(np.argmax(shares))])
    latents = generator.sample_latents(_n_rows(cell), rng)
    asked = _n_labelled(cell) + len(_OFFSETS) * _TRIED * len(problem.schema.combinations)
    return plane.shift(plane.project(latents), best), asked, {"offset": round(best, 4)}


def _beside_plane(cell: Cell, shop: Workshop) -> tuple[Latents, int, dict[str, float]]:
    """Latents one step from the cell's plane, all on one side of it: z+ or z- alone."""
    generator, plane = shop.generator(cell), fit_plane(cell, shop)
    assert generator is not None
    latents = generator.sample_latents(_n_rows(cell), np.random.default_rng([cell.seed, 15]))
    step = float(cell.settings["step"]) * (1 if cell.extra["place"] == "up" else -1)
    return plane.shift(plane.project(latents), step), _n_labelled(cell), {"offset": step}


def _on_refitted_plane(cell: Cell, shop: Workshop) -> tuple[Latents, int, dict[str, float]]:
    """Latents on a plane that is fitted as the cell says, part by part."""
    generator = shop.generator(cell)
    assert generator is not None
    plane = refit_plane(cell, shop)
    latents = generator.sample_latents(_n_rows(cell), np.random.default_rng([cell.seed, 23]))
    return plane.project(latents), _n_labelled(cell), {}


_PARTS = {"latents": ("sure", "all"), "loss": ("hinge", "logistic")}


def refit_plane(cell: Cell, shop: Workshop) -> Boundary:
    """A plane fitted to the latents that the cell names, balanced or not, by the loss it names.

    The paper's plane is fitted to sure latents, as many of either decision, by a squared hinge; the
    calibrated one to all latents, as unequal as they come, by a logistic loss. InvalidInput where
    the latents that are left are all decided alike.
    """
    problem, generator = shop.problem(cell), shop.generator(cell)
    method = methods.parse(cell.method, cell.settings)
    assert isinstance(method, LIMI)
    assert generator is not None
    rng = np.random.default_rng([cell.seed, 21])
    drawn = generator.sample_latents(_n_labelled(cell), rng)
    score = problem.target.score(generator.decode(drawn))
    favored = favors(score)
    for part, known in _PARTS.items():
        if cell.extra[part] not in known:
            raise InvalidInput(
                f"{cell.benchmark}: {part} is {cell.extra[part]!r}; it must be {' or '.join(known)}"
            )
    if cell.extra["latents"] == "sure":
        is_sure = round_scores(np.where(favored, score, 1 - score)) > method.threshold
        drawn, favored = drawn[is_sure], favored[is_sure]
    _require_both(favored, cell)
    if cell.extra["balanced"]:
        sides = [
            oversample(side[: method.per_class], method.per_class, rng)
            for side in (drawn[~favored], drawn[favored])
        ]
        drawn, favored = np.concatenate(sides), np.repeat([False, True], [*map(len, sides)])
    if cell.extra["loss"] == "logistic":
        return calibrate(lambda: iter([(drawn, favored)]), C=method.C)
    return fit(drawn, favored, C=method.C)


def _require_both(favored: Mask, cell: Cell) -> None:
    """Nothing lies between the decisions where all latents, or all sure ones, are decided alike."""
    n_up = int(favored.sum())
    if n_up in (0, len(favored)):
        raise InvalidInput(
            f"{cell.benchmark}: of {len(favored):,} latents {n_up:,} are decided favorably; there "
            "is no boundary without latents of either decision"
        )


def _near_plane(cell: Cell, shop: Workshop) -> tuple[Latents, int, dict[str, float]]:
    """Natural latents as they were drawn, the tenth of them that lies nearest to the plane."""
    return _pick(cell, shop, fit_plane(cell, shop).distance), _n_labelled(cell), {}


def _near_network(cell: Cell, shop: Workshop) -> tuple[Latents, int, dict[str, float]]:
    """Natural latents as they were drawn, the tenth of them where a small network is least sure.

    The network is fitted to the decisions on as many latents as a plane is.
    """
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    problem, generator = shop.problem(cell), shop.generator(cell)
    assert generator is not None
    drawn = generator.sample_latents(_n_labelled(cell), np.random.default_rng([cell.seed, 19]))
    favored = _favored(problem, generator)(drawn)
    _require_both(favored, cell)
    network = MLPClassifier(
        (_NEURONS,),
        batch_size=min(500, len(drawn) // 2),
        max_iter=_EPOCHS,
        early_stopping=True,
        n_iter_no_change=3,
        random_state=cell.seed,
    )
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # thirty epochs are enough, converged or not
        network.fit(drawn, favored)
        latents = _pick(cell, shop, lambda some: network.predict_proba(some)[:, 1] - 0.5)
    return latents, _n_labelled(cell), {}


def _pick(cell: Cell, shop: Workshop, distance: Callable[[Latents], Any]) -> Latents:
    """The natural latents that are nearest to 0 by a distance, one of ten."""
    generator = shop.generator(cell)
    assert generator is not None
    rng, n = np.random.default_rng([cell.seed, 17]), _n_rows(cell)
    drawn = generator.sample_latents(_ONE_OF * n, rng)
    nearest = np.argsort(np.abs(distance(drawn)), kind="stable")[:n]
    picked: Latents = drawn[np.sort(nearest)]
    return picked


def _on_edge(cell: Cell, shop: Workshop) -> tuple[Latents, int, dict[str, float]]:
    """Latents at the edge between a favorable and an unfavorable one, on one side of it.

    The way from one to the other is the ellipse a cos t + b sin t, of which every point is as
    normal as its ends; a straight way would lead through latents that no sample has.
    """
    problem, generator = shop.problem(cell), shop.generator(cell)
    assert generator is not None
    n, n_labelled = _n_rows(cell), _n_labelled(cell)
    rng = np.random.default_rng([cell.seed, 13])
    drawn = generator.sample_latents(n_labelled, rng)
    favored = _favored(problem, generator)(drawn)
    _require_both(favored, cell)
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


def _n_labelled(cell: Cell) -> int:
    """Latents whose decisions are asked before any row is checked: all of those of the search."""
    return int(cell.settings["n_latents"])

"""How fast a program is that asks for one row at a time, as the papers' own programs do.

A method's row-by-row version is the oracle of its fast one, so it lies with the tests of limi: this
study is run in a checkout of its repository. A few hundred rows of each are timed, by the
processor's time and in one thread, and what comes before the first of them: labels, explanations.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from lab.cells import Cell
from lab.kinds._places import fit_plane
from lab.workshop import Workshop
from limi import methods
from limi.audits.problem import Problem
from limi.errors import InvalidInput, MissingCapability
from limi.models import gradients
from limi.types import Rows

__all__ = ["measure"]

_EXPLAINED = 50  # rows, and twice as many: the difference is what explanations cost
_OF_ONE_SEED = 4  # a walk has that part of the rows, so that several seeds are tried


@dataclass(frozen=True)
class _Timed:
    """Rows that a program checked, the seconds they took, and the seconds before the first."""

    rows: int
    seconds: float
    before: float = 0.0


def measure(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """Rows per second of the row-by-row version of the cell's method."""
    known: dict[str, Callable[[Cell, Workshop, Problem, int], _Timed]] = {
        "aequitas": _time_aequitas,
        "sg": _time_sg,
        "expga": _time_expga,
        "adf": _time_walks,
        "eidig": _time_walks,
        "neuronfair": _time_walks,
        "limi": _time_limi,
    }
    if cell.method not in known:
        raise InvalidInput(f"{cell.method} has no row-by-row version; use {list(known)}")
    problem = shop.problem(cell)
    problem.target.score(problem.rows[:1])  # what is loaded once does not count
    timed = known[cell.method](cell, shop, problem, int(cell.extra["rows"]))
    return {
        "rows": timed.rows,
        "loop_speed": round(timed.rows / max(timed.seconds, 1e-9), 2),
        "loop_before": round(timed.before, 2),
    }


def _program(name: str) -> Any:
    """The row-by-row version of a method."""
    try:
        return importlib.import_module(f"tests.naive.{name}")
    except ImportError:
        raise MissingCapability(
            "programs that ask row by row are among the tests of limi; run this study in the root "
            "of a checkout of its repository, with python -m limi"
        ) from None


def _take(work: Callable[[], Any]) -> float:
    """Seconds of the processor."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _rng(cell: Cell) -> np.random.Generator:
    return np.random.default_rng([cell.seed, 23])


# -- programs ---------------------------------------------------------------------------------


def _time_aequitas(cell: Cell, shop: Workshop, problem: Problem, n: int) -> _Timed:
    method: Any = methods.parse(cell.method, cell.settings)
    n_asked = 0

    def score(rows: Rows) -> Any:
        nonlocal n_asked
        n_asked += len(rows)
        return problem.target.score(rows)

    some = replace(method, n_samples=n // 2)  # else no walk would begin within n rows
    seconds = _take(
        lambda: _program("aequitas").findings(some, score, problem.schema, None, _rng(cell), n)
    )
    return _Timed(n_asked // len(problem.schema.combinations), seconds)


def _time_sg(cell: Cell, shop: Workshop, problem: Problem, n: int) -> _Timed:
    method: Any = methods.parse(cell.method, cell.settings)

    def search(most: int) -> Any:
        given = (method, problem.target.score, problem.schema, problem.rows, _rng(cell))
        return _program("sg").findings(*given, most)

    before = _take(lambda: search(0))
    return _Timed(n, _take(lambda: search(n)) - before, before)


def _time_expga(cell: Cell, shop: Workshop, problem: Problem, n: int) -> _Timed:
    """Its checks are timed from the first on: the seconds before them are many times as long, so
    that a difference of two runs would be noise.
    """
    method: Any = methods.parse(cell.method, cell.settings)

    def search(n_explained: int) -> _Timed:
        some = replace(method, n_rows=n_explained)
        # Each sample and each explained row is asked once before the first check.
        calls_before = method.n_samples - 1 + min(n_explained, len(problem.rows))
        n_calls, first_check = 0, time.process_time()

        def score(rows: Rows) -> Any:
            nonlocal n_calls, first_check
            if n_calls == calls_before:
                first_check = time.process_time()
            n_calls += 1
            return problem.target.score(rows)

        start = time.process_time()
        _program("expga").findings(some, score, problem.schema, problem.rows, _rng(cell), n)
        return _Timed(n, time.process_time() - first_check, first_check - start)

    fewer, more = search(_EXPLAINED), search(2 * _EXPLAINED)
    n_explained = min(method.n_rows, len(problem.rows))
    per_row = (more.before - fewer.before) / _EXPLAINED
    return _Timed(n, more.seconds, more.before + per_row * (n_explained - 2 * _EXPLAINED))


_Walks = tuple[Callable[[Any], tuple[list[Any], bool]], Callable[[Any], Iterable[Any]]]
"""The way of a row towards a flip with whether it ends at one, and the rows around a flip."""


def _time_walks(cell: Cell, shop: Workshop, problem: Problem, n: int) -> _Timed:
    """Walks towards a flip, and walks around it, from rows of the table."""
    known = gradients.of(problem.target)
    if known is None:
        raise MissingCapability(f"{cell.method} needs gradients, which {cell.target} does not have")
    known.loss_gradient(problem.rows[:1])
    rng = _rng(cell)
    of = {"adf": _adf, "eidig": _eidig, "neuronfair": _neuronfair}
    explore, exploit = of[cell.method](cell, problem, known, n, rng)
    rows = iter(problem.rows[rng.permutation(len(problem.rows))])
    n_checked = 0

    def walk() -> None:
        nonlocal n_checked
        while n_checked < n:
            path, flips = explore(next(rows))
            n_checked += len(path)
            if flips:
                n_checked += sum(1 for _ in islice(exploit(path[-1]), n // _OF_ONE_SEED))

    seconds = _take(walk)
    return _Timed(n_checked, seconds)


def _adf(
    cell: Cell, problem: Problem, known: gradients.Gradients, n: int, rng: np.random.Generator
) -> _Walks:
    method: Any = methods.parse(cell.method, cell.settings)
    twin, given = _program("adf"), (problem.target.score, known.loss_gradient, problem.schema)
    return (
        lambda row: twin.explore(*given, row, method.explore_steps),
        lambda row: twin.exploit(*given, row, n, method.restart, rng),
    )


def _eidig(
    cell: Cell, problem: Problem, known: gradients.Gradients, n: int, rng: np.random.Generator
) -> _Walks:
    method: Any = methods.parse(cell.method, cell.settings)
    twin, given = _program("eidig"), (problem.target.score, known.output_gradient, problem.schema)
    return (
        lambda row: twin.explore(*given, row, method.explore_steps, method.decay),
        lambda row: twin.exploit(*given, row, n, method.update_every, rng),
    )


def _neuronfair(
    cell: Cell, problem: Problem, known: gradients.Gradients, n: int, rng: np.random.Generator
) -> _Walks:
    """With the neurons that our method chooses; how long that takes does not count."""
    from limi.methods.neuronfair import choose

    method: Any = methods.parse(cell.method, cell.settings)
    twin, around, verdict = _program("neuronfair"), _program("adf"), _program("check").verdict
    score, schema = problem.target.score, problem.schema
    layer, mask = choose(known, schema, problem.rows, method.layer, method.share)

    def slopes(row: Any, partner: Any) -> list[Any]:
        pairs = (row, partner), (partner, row)
        return [twin.gradient(known, layer, mask, method.loss, *pair) for pair in pairs]

    def slope(given: Any) -> Any:
        partner = twin.paired(schema, given[0], verdict(score, schema, given[0], "widest")[2])
        return slopes(given[0], partner)[0][None]

    steps, decay = method.explore_steps, method.decay
    return (
        lambda row: twin.explore(score, slopes, schema, row, steps, decay, rng),
        lambda row: around.exploit(score, slope, schema, row, n, method.restart, rng),
    )


def _time_limi(cell: Cell, shop: Workshop, problem: Problem, n: int) -> _Timed:
    """The paper's loop: all candidates are decoded together, and then checked one by one.

    Its clock starts when labels and plane are ready.
    """
    check, schema, score = _program("check"), problem.schema, problem.target.score
    generator, plane = shop.generator(cell), fit_plane(cell, shop)
    assert generator is not None
    latents = generator.sample_latents(n, _rng(cell))
    method: Any = methods.parse(cell.method, cell.settings)
    seen: set[Any] = set()

    def probe() -> None:
        on_plane = plane.project(latents)
        moved = [plane.shift(on_plane, step) for step in (0.0, method.step, -method.step)]
        for rows in zip(*map(generator.decode, moved), strict=True):
            for row in rows:
                key = check.key(schema, row)
                if key in seen:
                    continue
                seen.add(key)
                if check.verdict(score, schema, row, "first")[0]:
                    break

    seconds = _take(probe)
    return _Timed(len(seen), seconds)

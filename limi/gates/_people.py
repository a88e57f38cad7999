"""Rows of a population in a random order, as many as anybody asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from limi.defaults import MEASURED_ROWS
from limi.generators._base import Generator
from limi.metrics._populations import choose_places, draw_people, people_rng
from limi.table.schema import Schema
from limi.types import Index, Mask, Rows

__all__ = ["People"]

Block = tuple[Rows, Index]

_FRUITLESS = 20  # blocks without a row that is wanted, after which none is expected


class People:
    """A population's rows, the same ones each time, however many are taken at once.

    They are those that a run measures the population's rate on, and others behind them; `places`
    are their numbers in that run, so that verdicts of the same rows find each other.
    """

    def __init__(
        self,
        name: str,
        seed: int,
        schema: Schema,
        *,
        table: Rows | None,
        generator: Generator | None,
        first: int = MEASURED_ROWS,  # rows that a run measured
    ) -> None:
        rng = people_rng(name, seed)
        self._blocks = (
            _drawn(name, rng, schema, generator, first)
            if table is None
            else _shuffled(table, rng, first)
        )
        self._rows, self._places = np.empty((0, len(schema))), np.arange(0)

    def take(self, n: int, wanted: Callable[[Rows, Index], Mask]) -> Block:
        """The next n rows that are wanted, or fewer where there are no more; others are passed."""
        rows, places, lacking, fruitless = [self._rows[:0]], [self._places[:0]], n, 0
        while lacking and fruitless < _FRUITLESS:
            if not len(self._rows):
                self._rows, self._places = next(self._blocks, (self._rows, self._places))
                if not len(self._rows):
                    break
            chosen = np.flatnonzero(wanted(self._rows, self._places))[:lacking]
            fruitless = 0 if len(chosen) else fruitless + 1
            rows.append(self._rows[chosen])
            places.append(self._places[chosen])
            lacking -= len(chosen)
            passed = len(self._rows) if lacking else int(chosen[-1]) + 1
            self._rows, self._places = self._rows[passed:], self._places[passed:]
        return np.concatenate(rows), np.concatenate(places)


def _drawn(
    name: str, rng: np.random.Generator, schema: Schema, generator: Generator | None, first: int
) -> Iterator[Block]:
    start, size = 0, first
    while True:
        rows, _ = draw_people(name, size, rng, schema, generator)
        yield rows, np.arange(start, start + len(rows))
        start, size = start + len(rows), MEASURED_ROWS


def _shuffled(table: Rows, rng: np.random.Generator, first: int) -> Iterator[Block]:
    chosen = choose_places(len(table), first, rng)
    order = rng.permutation(len(chosen))
    yield table[chosen[order]], order
    others = rng.permutation(np.setdiff1d(np.arange(len(table)), chosen))
    if len(others):
        yield table[others], len(chosen) + np.arange(len(others))

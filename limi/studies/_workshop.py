"""What cells share: targets, tables and generators, made once and kept in the study's folder."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from limi import data, generators
from limi.audits.problem import Problem, prepare
from limi.audits.run_folder import digest, read_json
from limi.errors import CorruptStore
from limi.generators import Generator
from limi.metrics._enough import FEWEST_TO_JUDGE
from limi.metrics._populations import check_population, choose_places
from limi.metrics.naturalness import average_tabular_naturalness
from limi.models import benchmark as targets
from limi.streams import Stream
from limi.studies._cells import Cell, tools
from limi.system import writing
from limi.table.frames import Codec
from limi.table.schema import Schema
from limi.types import Rows

__all__ = ["Need", "Workshop", "natural_people", "needs_of", "rows_of"]

_MOST_ROWS = 10_000  # of the table, to measure how often a target's decisions flip
_PEOPLE = 1_000_003  # a seed of its own

Made = Literal["model", "generator", "facts"]


@dataclass(frozen=True)
class Need:
    """A thing that cells share, and one of the cells."""

    what: Made
    cell: Cell

    @property
    def name(self) -> str:
        """In words, for progress."""
        cell = self.cell
        if self.what == "generator":
            return f"generator {cell.generator} on {cell.table}, seed {cell.generator_seed}"
        of = cell.table if self.what == "model" else cell.benchmark
        return f"{'target' if self.what == 'model' else 'facts of'} {cell.target} on {of}"


@dataclass(frozen=True)
class Workshop:
    """A folder of things that cells need; what is there already is not made again."""

    folder: Path

    def make(self, need: Need) -> None:
        """Make a thing, so that the cells that need it find it made."""
        if need.what == "model":
            _target(need.cell.table, need.cell.target, need.cell.target_seed)
        elif need.what == "generator":
            self.generator(need.cell)
        else:
            self.facts(need.cell)

    def has(self, need: Need) -> bool:
        """Was it made before? Models are kept by their own module, which is asked for a file."""
        cell = need.cell
        if need.what == "generator":
            return self._generator_file(cell).exists()
        if need.what == "facts":
            return self._facts_file(cell).exists()
        kept = targets.cache_folder() / f"{cell.table}-{cell.target}-{cell.target_seed}.json"
        return kept.exists()

    def problem(self, cell: Cell) -> Problem:
        """Table, target and protected columns of a cell."""
        return _problem(cell.table, cell.protected, cell.target, cell.target_seed)

    def facts(self, cell: Cell) -> dict[str, Any]:
        """What is true of a cell's target whatever the method: accuracy, flips of real rows."""
        path = self._facts_file(cell)
        if not path.exists():
            writing.make_folder(path.parent)
            writing.write(path, json.dumps(_facts(self.problem(cell))) + "\n")
        return _read(path)

    def generator(self, cell: Cell) -> Generator | None:
        """The generator of a cell, fitted where it was not before."""
        if cell.generator is None:
            return None
        path = self._generator_file(cell)
        if not path.exists():
            self._fit(cell, path)
        return _load(path)

    def generator_facts(self, cell: Cell) -> dict[str, Any]:
        """How long the generator took, and how natural its plain samples are."""
        if cell.generator is None:
            return {}
        path = self._generator_file(cell).with_suffix(".json")
        return _read(path)

    def _facts_file(self, cell: Cell) -> Path:
        key = f"{cell.benchmark}.{cell.target}.{cell.target_seed}"
        return self.folder / "facts" / f"{key}-{_fingerprint({'of': key})}.json"

    def _generator_file(self, cell: Cell) -> Path:
        of = {
            "table": cell.table,
            "generator": cell.generator,
            "settings": dict(cell.generator_settings),
            "seed": cell.generator_seed,
        }
        name = f"{cell.table}.{cell.generator}.{cell.generator_seed}-{_fingerprint(of)}"
        return self.folder / "generators" / f"{name}.limi"

    def _fit(self, cell: Cell, path: Path) -> None:
        schema, rows = rows_of(cell.table)
        module = generators.get(str(cell.generator))
        rng = Stream.GENERATOR.rng(cell.generator_seed)
        settings = module.Settings(**cell.generator_settings)
        start = time.perf_counter()
        made: Generator = module.fit(rows, schema, rng, settings=settings)
        seconds = time.perf_counter() - start
        drawn = made.decode(made.sample_latents(len(rows), np.random.default_rng(0)))
        natural = average_tabular_naturalness(rows, drawn, schema).score
        facts = {"generator_seconds": round(seconds, 2), "generator_atn": round(natural, 4)}
        writing.make_folder(path.parent)
        # The generator comes last: where it lies, its facts do too.
        about = {path.with_suffix(".json"): json.dumps(facts) + "\n"}
        writing.write_all(about | {path: generators.content(made)})


def needs_of(cells: Sequence[Cell]) -> list[list[Need]]:
    """What cells share, in stages: those of one stage can be made side by side."""
    first: dict[Any, Need] = {}
    second: dict[Any, Need] = {}
    for cell in cells:
        if cell.kind in ("twins", "images"):  # they train models of their own in passing
            continue
        target = (cell.target, cell.target_seed)
        first.setdefault(("model", cell.table, target), Need("model", cell))
        second.setdefault((cell.benchmark, target), Need("facts", cell))
        if cell.generator is not None:
            settings = json.dumps(dict(cell.generator_settings), sort_keys=True, default=str)
            key = (cell.table, cell.generator, settings, cell.generator_seed)
            first.setdefault(key, Need("generator", cell))
    return [list(first.values()), list(second.values())]


@lru_cache(maxsize=2)
def _target(table: str, kind: str, seed: int) -> targets.BenchmarkModel:
    return targets.train(table, cast("targets.Kind", kind), seed=seed)


@lru_cache(maxsize=4)
def rows_of(name: str) -> tuple[Schema, Rows]:
    """A table's schema and rows, without any target."""
    known = data.load(name)
    schema = known.schema.unruled  # the papers change protected values alone
    return schema, Codec.learn(known.frame, schema).encode(known.frame)


@lru_cache(maxsize=1)
def natural_people(table: str) -> Generator:
    """A generator that no search of a study uses, to measure rates of natural rows with."""
    schema, rows = rows_of(table)
    rng = Stream.GENERATOR.rng(_PEOPLE)
    made: Generator = generators.get("trees").fit(rows, schema, rng)
    return made


@lru_cache(maxsize=4)
def _problem(table: str, protected: tuple[str, ...], target: str, seed: int) -> Problem:
    known = data.load(table)
    return prepare(
        _target(table, target, seed),
        known.frame,
        protected=protected or known.protected[:1],
        target=known.target,
        favorable=known.favorable,
        schema=known.schema.unruled,
        table_name=table,
    )


@lru_cache(maxsize=2)
def _load(path: Path) -> Generator:
    return generators.load(path)


def _facts(problem: Problem) -> dict[str, Any]:
    info = cast("Any", problem.target.model).info
    rng = np.random.default_rng(0)
    rows = problem.rows[choose_places(len(problem.rows), _MOST_ROWS, rng)]
    target = problem.target
    checked, rate = check_population(target.score, problem.schema, rows, target.rule)
    flipping = checked.rows[checked.flips]
    ceiling = None
    if len(flipping) >= FEWEST_TO_JUDGE:
        score = average_tabular_naturalness(problem.rows, flipping, problem.schema).score
        ceiling = round(score, 4)
    return {
        "accuracy": round(info.accuracy, 4),
        "test_accuracy": None if info.test_accuracy is None else round(info.test_accuracy, 4),
        "real_rate": round(rate.estimate, 4),
        "real_rate_rows": rate.n,
        "real_atn": ceiling,
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except CorruptStore as error:
        raise CorruptStore(
            f"{error}; delete the folder {str(path.parent)!r}, and run again"
        ) from None


def _fingerprint(of: Mapping[str, Any]) -> str:
    """Eight digits that change with what is made and with what makes it."""
    return digest(json.dumps([of, tools()], sort_keys=True, default=str).encode())[:8]

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

from lab import models as targets
from lab.cells import Cell, tools
from lab.kinds import KINDS
from lab.targets import making, revision
from lab.targets.definitions import read_target
from lab.targets.reference import Reference
from limi import data, generators
from limi.audits.problem import Problem, prepare
from limi.audits.run_folder import digest, read_json
from limi.errors import CorruptStore
from limi.generators import Generator
from limi.generators._base import WithTensors
from limi.gpu.place import join_on_device, place_target
from limi.gpu.verdicts import OnDevice
from limi.metrics._enough import FEWEST_TO_JUDGE
from limi.metrics._populations import check_population, choose_places
from limi.metrics.naturalness import average_tabular_naturalness
from limi.streams import Stream
from limi.system import writing
from limi.table.frames import Codec
from limi.table.schema import Schema
from limi.types import Rows

__all__ = ["Need", "Workshop", "natural_people", "needs_of", "rows_of"]

_MOST_ROWS = 10_000  # of the table, to measure how often a target's decisions flip

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
        if cell.kind == "bench":
            return f"{'target' if self.what == 'model' else 'people of'} {cell.benchmark}"
        of = cell.table if self.what == "model" else cell.benchmark
        return f"{'target' if self.what == 'model' else 'facts of'} {cell.target} on {of}"


@dataclass(frozen=True)
class Workshop:
    """A folder of things that cells need; what is there already is not made again.

    `device` is where generators that can are trained, and where LIMI searches with them if the
    target can be there too; what is found is the same but for what rounding changes.
    """

    folder: Path
    device: str = "cpu"

    def make(self, need: Need) -> None:
        """Make a thing, so that the cells that need it find it made."""
        if need.cell.kind == "bench":
            self._make_for_bench(need)
        elif need.what == "model":
            _target(need.cell.table, need.cell.target, need.cell.target_seed)
        elif need.what == "generator":
            self.generator(need.cell)
        else:
            self.facts(need.cell)

    def _make_for_bench(self, need: Need) -> None:
        if need.what == "model":
            self.problem(need.cell)
        elif need.what == "generator":
            self.generator(need.cell)
        else:
            self.reference(need.cell)

    def has(self, need: Need) -> bool:
        """Was it made before? Models are kept by their own module, which is asked for a file."""
        cell = need.cell
        if cell.kind == "bench" and need.what == "model":
            return self._reference_file(cell).exists()  # which was asked of the model
        if cell.kind == "bench" and need.what == "facts":
            return self._reference_file(cell).exists()
        if need.what == "generator":
            return self._generator_file(cell).exists()
        if need.what == "facts":
            return self._facts_file(cell).exists()
        kept = targets.cache_folder() / f"{cell.table}-{cell.target}-{cell.target_seed}.json"
        return kept.exists()

    def problem(self, cell: Cell) -> Problem:
        """Table, target and protected columns of a cell."""
        if cell.kind == "bench":
            return _bench_problem(_spec_text(cell), self.folder / "targets")
        return _problem(cell.table, cell.protected, cell.target, cell.target_seed)

    def facts(self, cell: Cell) -> dict[str, Any]:
        """What is true of a cell's target whatever the method: accuracy, flips of real rows."""
        path = self._facts_file(cell)
        if not path.exists():
            writing.make_folder(path.parent)
            writing.write(path, json.dumps(_facts(self.problem(cell))) + "\n")
        return _read(path)

    def reference(self, cell: Cell) -> Reference:
        """What a benchmark's target is measured by, asked once."""
        path = self._reference_file(cell)
        if not path.exists():
            Reference.measure(self.problem(cell)).keep(path)
        return _reference(path)

    def _reference_file(self, cell: Cell) -> Path:
        spec = read_target(cell.extra["definition"])
        given = _fingerprint({"of": spec.identity(), "revision": revision(spec.recipe)})
        return self.folder / "references" / f"{cell.benchmark}-{given}.npz"

    def flipping(self, cell: Cell) -> Rows:
        """The table's own rows that flip."""
        return _flipping(cell.table, cell.protected, cell.target, cell.target_seed)

    def generator(self, cell: Cell) -> Generator | None:
        """The generator of a cell, fitted where it was not before."""
        if cell.generator is None:
            return None
        path = self._generator_file(cell)
        if not path.exists():
            self._fit(cell, path)
        kind = str(cell.generator)
        return _load(path, self.device if generators.offers(kind).on_device else "cpu")

    def on_device(self, cell: Cell) -> OnDevice | None:
        """Target and generator of a cell as tensors, where both can be on this shop's device."""
        generator: Any = self.generator(cell)
        if self.device == "cpu" or not isinstance(generator, WithTensors):
            return None
        return join_on_device(place_target(self.problem(cell).target, self.device), generator)

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
        table = _table_name(cell)
        of = {
            "table": [table, cell.extra.get("definition", {}).get("stamp", "")],
            "generator": cell.generator,
            "settings": dict(cell.generator_settings),
            "seed": cell.generator_seed,
            "revision": generators.offers(str(cell.generator)).revision,
        }
        name = f"{table}.{cell.generator}.{cell.generator_seed}-{_fingerprint(of)}"
        return self.folder / "generators" / f"{name}.limi"

    def _fit(self, cell: Cell, path: Path) -> None:
        if cell.kind == "bench":
            problem = self.problem(cell)
            schema, rows = problem.schema, problem.rows
        else:
            schema, rows = rows_of(cell.table)
        kind = str(cell.generator)
        rng = Stream.GENERATOR.rng(cell.generator_seed)
        settings = generators.get(kind).Settings(**cell.generator_settings)
        start = time.perf_counter()
        device = self.device if generators.offers(kind).on_device else "cpu"
        made = generators.fit(kind, rows, schema, rng, settings=settings, device=device)
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
    stages: list[dict[Any, Need]] = [{}, {}, {}]
    for cell in cells:
        if vars(KINDS.get(cell.kind)).get("ALONE"):
            continue
        target = (cell.target, cell.target_seed)
        defined = cell.kind == "bench"
        # Models that others are made from come first.
        derived = defined and cell.extra["definition"]["recipe"] != "papers"
        of = cell.table if not defined else cell.benchmark if derived else _model_of(cell)
        stages[int(derived)].setdefault(("model", of, target), Need("model", cell))
        stages[2].setdefault((cell.benchmark, target), Need("facts", cell))
        if cell.generator is not None:
            settings = json.dumps(dict(cell.generator_settings), sort_keys=True, default=str)
            key = (_table_name(cell), cell.generator, settings, cell.generator_seed)
            # The rows of a benchmark's table are those that its model takes.
            stages[2 if defined else 0].setdefault(key, Need("generator", cell))
    return [list(stage.values()) for stage in stages if stage]


def _model_of(cell: Cell) -> str:
    """A paper's model, which is the same whatever column of its table is protected."""
    return f"{cell.table} {json.dumps(dict(cell.extra['definition']['settings']), sort_keys=True)}"


def _table_name(cell: Cell) -> str:
    """Of what a generator is fitted on; a file's rows are its target's own."""
    given = cell.extra.get("definition")
    if given is None:
        return cell.table
    if given["recipe"] == "file":
        return cell.benchmark
    return f"{cell.table}-ruled" if given["rules"] else cell.table


def _spec_text(cell: Cell) -> str:
    return json.dumps(cell.extra["definition"], sort_keys=True, default=str)


@lru_cache(maxsize=3)
def _bench_problem(text: str, folder: Path) -> Problem:
    return making.make_problem(read_target(json.loads(text)), folder)


@lru_cache(maxsize=2)
def _reference(path: Path) -> Reference:
    return Reference.read(path)


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
    return making.natural_people(rows, schema)


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
def _load(path: Path, device: str) -> Generator:
    return generators.load(path, device=device)


@lru_cache(maxsize=4)
def _flipping(table: str, protected: tuple[str, ...], kind: str, seed: int) -> Rows:
    problem = _problem(table, protected, kind, seed)
    target = problem.target
    checked, _ = check_population(target.score, problem.schema, problem.rows, target.rule)
    return checked.rows[checked.flips]


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

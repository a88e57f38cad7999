"""Making a target: its table, its model by the recipe, and both brought together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lab.targets import RECIPES, _wide, revision
from lab.targets.definitions import TargetSpec
from limi import data, generators
from limi.audits.problem import Problem, prepare
from limi.audits.run_folder import digest
from limi.errors import InvalidInput, nearest
from limi.generators import Generator
from limi.streams import Stream
from limi.table import files
from limi.table.frames import Codec
from limi.table.schema import Schema
from limi.types import Rows

__all__ = [
    "Making",
    "Table",
    "draw_people",
    "make_problem",
    "natural_people",
    "read_table",
    "require_table",
]

PEOPLE_SEED = 1_000_003
"""Of the generator that targets are measured by; no search uses it."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table of the benchmark."""

    name: str
    frame: Any
    schema: Schema  # with its rules, none protected
    target: str
    favorable: Any

    @cached_property
    def rows(self) -> Rows:
        """All rows as codes."""
        return Codec.learn(self.frame, self.schema).encode(self.frame)


@dataclass(frozen=True)
class Making:
    """What a recipe makes a model from."""

    spec: TargetSpec
    table: Table
    folder: Path  # where it may keep what takes long to make

    @property
    def settings(self) -> Any:
        """As the recipe's `Settings`."""
        return RECIPES.get(self.spec.recipe).Settings(**self.spec.settings)

    @property
    def schema(self) -> Schema:
        """The columns; the papers change protected values alone, so rules hold where stated."""
        return self.table.schema if self.spec.rules else self.table.schema.unruled

    def problem(self, model: Any) -> Problem:
        """A model brought together with the table."""
        table = self.table
        return prepare(
            model,
            table.frame,
            protected=self.spec.protected,
            target=table.target,
            favorable=table.favorable,
            output=getattr(model, "output", None),
            schema=self.schema,
            table_name=table.name,
        )

    def kept(self, suffix: str) -> Path:
        """A file for what is made, whose name changes with definition and recipe."""
        tree = {**self.spec.identity(), "revision": revision(self.spec.recipe)}
        mark = digest(json.dumps(tree, sort_keys=True, default=str).encode())[:8]
        return self.folder / f"{self.spec.name}-{mark}{suffix}"

    def people(self) -> Generator:
        """Natural people whom no search of the benchmark meets."""
        return natural_people(self.table.rows, self.schema)


def read_table(spec: TargetSpec) -> Table:
    """The table of a target."""
    if spec.table == "wide":
        return _draw_wide()
    if spec.table in data.names():
        known = data.load(spec.table)
        return Table(spec.table, known.frame, known.schema, known.target, known.favorable)
    return _read_file(spec)


def require_table(spec: TargetSpec) -> None:
    """An error where a target's table is not available."""
    if spec.table == "wide":
        return
    if spec.table in data.names():
        data.load(spec.table)
    else:
        _read_file(spec)


@cache
def _draw_wide() -> Table:
    frame = _wide.draw_people()
    schema = files.infer(frame, exclude=[_wide.LABEL])
    return Table("wide", frame, schema, _wide.LABEL, _wide.FAVORABLE)


def _read_file(spec: TargetSpec) -> Table:
    path = Path(spec.base) / spec.table
    settings: Mapping[str, Any] = spec.settings
    if spec.recipe != "file" or not path.exists():
        raise InvalidInput(
            f"the target {spec.name!r} has the table {spec.table!r}, which is neither a file with "
            f"the recipe 'file' nor known; {nearest(spec.table, [*data.names(), 'wide'])}"
        )
    frame = files.read(path)
    target = settings["target"]
    schema = files.infer(frame, exclude=[target])
    return Table(path.stem, frame, schema, target, settings.get("favorable"))


def make_problem(spec: TargetSpec, folder: Path) -> Problem:
    """The target, made by its recipe or taken from what it has kept in the folder."""
    making = Making(spec, read_table(spec), folder)
    return making.problem(RECIPES.get(spec.recipe).make(making))


def natural_people(rows: Rows, schema: Schema) -> Generator:
    """A generator fitted with a seed of its own."""
    rng = Stream.GENERATOR.rng(PEOPLE_SEED)
    return generators.fit("trees", rows, schema, rng)


def draw_people(generator: Generator, n: int, seed: int) -> Rows:
    """So many natural people, the same ones each time."""
    return generator.decode(generator.sample_latents(n, np.random.default_rng([PEOPLE_SEED, seed])))

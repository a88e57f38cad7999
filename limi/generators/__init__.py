"""Generators of natural rows with a public latent space; one file each.

A generator's module has a class with `kind`, a frozen dataclass `Settings`, and two functions:
`fit(rows, schema, rng, *, settings, device, on_step) -> Generator` and
`from_state(arrays, facts, schema, *, device) -> Generator`. What it can do it declares as `OFFERS`;
modules elsewhere ask `offers(name)` and know no generator by name.

Anything else with a latent and a decode function becomes a generator by `adapt`; it has no name and
is not fitted here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from limi._registry import Registry
from limi.errors import (
    BadTable,
    CorruptStore,
    InvalidInput,
    LimiError,
    MissingDependency,
    spell,
)
from limi.generators._adapter import adapt
from limi.generators._base import Encoder, Generator, GeneratorOffers, OnStep, WithDensity, packed
from limi.generators._checks import check_latents, require_rows
from limi.generators._obedient import draw, draws, fit_to, learned_schema, obey
from limi.generators._state import read, require
from limi.system import writing
from limi.system.settings import read_settings
from limi.table.schema import Schema
from limi.table.schema_files import dump, parse
from limi.types import Rows

__all__ = [
    "Encoder",
    "Generator",
    "GeneratorOffers",
    "OnStep",
    "WithDensity",
    "adapt",
    "check_latents",
    "content",
    "draw",
    "draws",
    "fit",
    "get",
    "load",
    "names",
    "obey",
    "offers",
    "read_settings_of",
    "require_rows",
    "save",
    "settings_of",
]

_REGISTRY = Registry("limi.generators", "generator")
_TRIED = 64  # rows


def names() -> list[str]:
    """Every generator."""
    return _REGISTRY.names()


def get(name: str) -> ModuleType:
    """The module of a generator."""
    module: ModuleType = _REGISTRY.get(name)
    return module


def offers(name: str) -> GeneratorOffers:
    """What a generator declares of itself; nothing where its module is silent."""
    declared = vars(get(name)).get("OFFERS")
    return declared if isinstance(declared, GeneratorOffers) else GeneratorOffers()


def read_settings_of(name: str, settings: Sequence[str] | Mapping[str, Any]) -> Any:
    """The settings of a generator, given as a mapping or as NAME=VALUE; None for its defaults."""
    kind = settings_of(name)
    if not settings:
        return None
    if kind is None:
        raise InvalidInput(f"generator {name!r} has no settings")
    return kind(**read_settings(settings, kind, f"generator {name!r}"))


def settings_of(name: str) -> type[Any] | None:
    """The dataclass of a generator's settings; None where it has none."""
    kind = vars(get(name)).get("Settings")
    return kind if isinstance(kind, type) and dataclasses.is_dataclass(kind) else None


def fit(
    name: str,
    rows: Rows,
    schema: Schema,
    rng: np.random.Generator,
    *,
    settings: Any = None,
    device: str = "cpu",
    on_step: OnStep = lambda done, words: None,
) -> Generator:
    """A generator of a name, fitted to a table; derived columns are computed and not learned."""
    return fit_to(get(name), rows, schema, rng, settings=settings, device=device, on_step=on_step)


def save(generator: Generator, path: str | Path) -> None:
    """Keep a generator in a file."""
    writing.write(path, content(generator))


def content(generator: Generator) -> writing.Content:
    """What the file of a generator holds, to be written with others."""
    arrays, facts = generator.state()
    head = {"kind": generator.kind, "schema": dump(generator.schema), "facts": facts}
    return packed(arrays, head)


def load(path: str | Path, *, device: str = "cpu") -> Generator:
    """The generator of a file, on a device; CorruptStore unless the file holds together, and
    MissingDependency where the package that adds its generator is not installed."""
    arrays, head = read(path)
    with _reading(path):
        kind = head.get("kind") or ""
        named = isinstance(kind, str) and kind.isprintable() and kind != ""
        require(named, "it names no generator")
        if kind not in names():
            raise MissingDependency(
                f"{str(path)!r} needs the generator {kind[:40]!r}, which is not installed; install "
                f"the package that adds it, or fit another ({spell(names())})"
            )
        require(isinstance(head.get("schema"), str), "it has no schema")
        schema = _schema(head["schema"])
        learned = learned_schema(schema)
        made: Generator = get(kind).from_state(arrays, head.get("facts"), learned, device=device)
        made = obey(made, schema)
        _try(made)
    return made


def _schema(text: str) -> Schema:
    try:
        return parse(text, name="its schema")
    except InvalidInput as error:
        raise ValueError(str(error)) from None


def _try(made: Generator) -> None:
    """Draw a few rows: weights that are finite each may still be too large together."""
    with np.errstate(all="ignore"):
        rows = made.decode(made.sample_latents(_TRIED, np.random.default_rng(0)))
    try:
        require_rows(rows, made.schema)
    except (BadTable, InvalidInput) as error:
        raise ValueError(f"it makes rows that its schema does not allow: {error}") from None


@contextmanager
def _reading(path: str | Path) -> Iterator[None]:
    try:
        yield
    except (LimiError, MemoryError):  # no torch, no such device or generator
        raise
    except Exception as error:  # whatever numbers can do to arithmetic
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise CorruptStore(f"{str(path)!r} is damaged: {said}; fit it again") from None

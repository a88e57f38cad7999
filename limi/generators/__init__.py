"""Generators of natural rows with a public latent space; one file each.

A generator's module has a class with `kind`, a frozen dataclass `Settings`, and two functions:
`fit(rows, schema, rng, *, settings, device, on_step) -> Generator` and
`from_state(arrays, facts, schema, *, device) -> Generator`. Anything else with a latent and a
decode function becomes a generator by `adapt`, a fitted model of the ctgan package by
`from_ctgan`; these have no name and are not fitted here.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from limi import files
from limi._registry import Registry
from limi.errors import CorruptStore
from limi.generators._adapter import adapt
from limi.generators._base import Encoder, Generator, OnStep, WithDensity, packed, read
from limi.generators._ctgan_package import from_ctgan
from limi.schema_files import dump, parse

__all__ = [
    "Encoder",
    "Generator",
    "OnStep",
    "WithDensity",
    "adapt",
    "content",
    "from_ctgan",
    "get",
    "load",
    "names",
    "save",
]

_REGISTRY = Registry("limi.generators", "generator")


def names() -> list[str]:
    """Every generator."""
    return _REGISTRY.names()


def get(name: str) -> ModuleType:
    """The module of a generator."""
    return _REGISTRY.get(name)


def save(generator: Generator, path: str | Path) -> None:
    """Keep a generator in a file."""
    files.write(path, content(generator))


def content(generator: Generator) -> files.Content:
    """What the file of a generator holds, to be written with others."""
    arrays, facts = generator.state()
    head = {"kind": generator.kind, "schema": dump(generator.schema), "facts": facts}
    return packed(arrays, head)


def load(path: str | Path, *, device: str = "cpu") -> Generator:
    """The generator of a file, on a device."""
    arrays, head = read(path)
    try:
        module, schema, facts = get(head["kind"]), parse(head["schema"]), head["facts"]
        generator: Generator = module.from_state(arrays, facts, schema, device=device)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptStore(f"{str(path)!r} is damaged: {error}") from None
    return generator

"""What a kind of target declares in its own module, so that no other module knows it by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from limi.models._base import Decision, Model

__all__ = ["Loads", "ModelOffers", "Wraps", "offers"]


@dataclass(frozen=True, kw_only=True)
class ModelOffers:
    """What a kind can do and how it is treated, as `OFFERS` in its module.

    What is not declared is not assumed: above all, a kind that does not say `data_only` is never
    opened because a run folder says so.
    """

    data_only: bool = False
    """Opening its files, and naming its models, runs no code that they bring along: a run folder
    that somebody sent may say where the model is, and it is opened."""

    by_name: bool = False
    """It knows models by name, beside those in files."""

    endings: tuple[str, ...] = ()
    """How its files' names end; a forgotten KIND is guessed from that."""

    by_address: bool = False
    """Its models are elsewhere: asking them sends rows to an address, so it is named by the user
    alone, and the loader takes `remote`."""

    library: str | None = None
    """The package that reads its files in native code: such a file is tried in a process of its
    own first."""

    all_files: Callable[[Path], list[Path]] = lambda path: [path]
    """The files that a model is read from, the named one first."""

    on_trial: Callable[[str], str] = lambda place: place
    """The place at which a trial can limit what opening the file takes."""

    last_resort: int = 0
    """Above 0 where it accepts nearly every object: it is asked after those with a lower number."""


@runtime_checkable
class Wraps(Protocol):
    """The module of a kind that takes live objects."""

    def accepts(self, target: object) -> bool:
        """Is the object of this kind? Told without importing anything."""
        ...

    def wrap(self, target: Any, decision: Decision) -> Model:
        """A model of the object."""
        ...


@runtime_checkable
class Loads(Protocol):
    """The module of a kind that opens `KIND:PLACE`.

    A loader that can be told more names the keyword (`trust_pickle`, `trust`, `table`, `remote`),
    and gets it only then.
    """

    def load(self, place: str, decision: Decision) -> Model:
        """The model at a place."""
        ...


def offers(module: ModuleType) -> ModelOffers:
    """What the module of a kind declares; nothing where it is silent."""
    declared = vars(module).get("OFFERS")
    return declared if isinstance(declared, ModelOffers) else ModelOffers()

"""What every method offers, and what it may offer beside that.

`Method` is all that the engine needs. Each further member has a protocol of its own here, which
says what it means, and one function that says what holds where a method does not have it; nobody
else asks a method what it has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from limi.search.check import Checked
from limi.search.findings import Findings
from limi.search.session import Session

__all__ = [
    "CAPABILITIES",
    "MEMBERS",
    "Bounded",
    "Exhaustive",
    "Exploiter",
    "Explorer",
    "Method",
    "Named",
    "Revised",
    "Scored",
    "Stopping",
    "WithPresets",
    "explore",
    "is_exhaustive",
    "most_rows",
    "presets",
    "revision",
    "scores",
    "stops_on_flips",
]

CAPABILITIES = frozenset({"generator", "gradient", "neurons"})
"""What a method may need of a task beside checks."""

MEMBERS = frozenset(
    {
        *("needs", "population", "search", "presets", "explore", "exploit"),
        *("most_rows", "exhaustive", "stops_on_flips", "scores", "name", "revision"),
    }
)
"""Names that mean something to limi: a method has them as told here, or not at all."""


class Method(Protocol):
    """A frozen dataclass of parameters, and a stream of checked rows.

    A method yields each batch as soon as it is checked: the engine ends the run between yields.

    Members that it may have beside these, each with a protocol in this module:

    - `presets`: named sets of settings (`--set preset=NAME`); without it there are none
    - `explore`: a first phase that looks for seeds all over the domain; else `search` is that phase
    - `exploit`: a search around seeds; without it the method cannot be the second part of a pair
    - `most_rows`: how many rows it checks at most, for the estimate before a run; else no limit
    - `exhaustive`: every row must be asked under every protected value; else a row may be cut short
    - `stops_on_flips`: flips that it sees have a say in how many rows it checks; else they do not
    - `scores`: numbers of its own to report; else there are none
    - `name`: what the report calls it; else the name under which it is listed
    - `revision`: how often its findings were changed by design, counted from 1; else it is 1
    """

    @property
    def needs(self) -> frozenset[str]:
        """Those of `CAPABILITIES` that the method cannot do without; mostly a class variable."""
        ...

    population: ClassVar[str | None]
    """The population whose rate the method's own rows estimate, where they are a plain sample of
    it: `"real"` or `"uniform"`; else None."""

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Checked rows, until there is nothing left to check."""
        ...


@runtime_checkable
class WithPresets(Protocol):
    """A method with named sets of settings."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]]
    """Settings by the name of the preset; those that a user gives beside it win."""


@runtime_checkable
class Explorer(Protocol):
    """A method with a phase that looks for seeds all over the domain."""

    @property
    def needs(self) -> frozenset[str]:
        """As those of every method."""
        ...

    def explore(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Checked rows; those that flip become seeds."""
        ...


@runtime_checkable
class Exploiter(Protocol):
    """A method that can search around seeds."""

    @property
    def needs(self) -> frozenset[str]:
        """As those of every method."""
        ...

    def exploit(
        self, session: Session, seeds: Checked, rng: np.random.Generator
    ) -> Iterator[Checked]:
        """Checked rows near flipping ones; the seeds bring their partners along."""
        ...


@runtime_checkable
class Bounded(Protocol):
    """A method that ends by itself after a known number of rows."""

    def most_rows(self, n_table: int) -> int:
        """Rows that a search checks at most, on a table of so many."""
        ...


@runtime_checkable
class Exhaustive(Protocol):
    """A method that wants to know every row under every protected value."""

    exhaustive: ClassVar[bool]
    """Is a row of no use that was asked only until it flips, as a budget of queries would have
    it?"""


@runtime_checkable
class Stopping(Protocol):
    """A method that may stop because of the flips that it has seen."""

    @property
    def stops_on_flips(self) -> bool:
        """Do flips have a say in how many rows are checked? Then only an interval that holds for
        any end is true of its rate."""
        ...


@runtime_checkable
class Scored(Protocol):
    """A method with numbers of its own to report."""

    def scores(self, findings: Findings) -> Mapping[str, float]:
        """Named numbers over everything that was checked."""
        ...


@runtime_checkable
class Named(Protocol):
    """A method that is made of others, and so is listed nowhere."""

    @property
    def name(self) -> str:
        """What the report calls it."""
        ...


@runtime_checkable
class Revised(Protocol):
    """A method whose findings were changed by design."""

    @property
    def revision(self) -> int:
        """Mostly a class variable, which is raised with every change that makes the same settings
        and the same seed find something else; results of studies tell by it what they show."""
        ...


def presets(method: type[Method]) -> Mapping[str, Mapping[str, Any]]:
    """The presets of a class of methods; none where it does not declare any."""
    declared: object = method
    return declared.presets if isinstance(declared, WithPresets) else {}


def explore(
    method: Explorer | Method, session: Session, rng: np.random.Generator
) -> Iterator[Checked]:
    """The rows in which a method looks for seeds; one of a single phase searches."""
    return (method.explore if isinstance(method, Explorer) else method.search)(session, rng)


def most_rows(method: Method, n_table: int) -> float:
    """Rows that a method checks at most; infinite where it does not say."""
    return method.most_rows(n_table) if isinstance(method, Bounded) else math.inf


def is_exhaustive(method: Method) -> bool:
    """Must every row be asked under every protected value? Not unless the method says so."""
    return isinstance(method, Exhaustive) and method.exhaustive


def stops_on_flips(method: Method) -> bool:
    """Do flips have a say in how many rows are checked? Not unless the method says so."""
    return isinstance(method, Stopping) and method.stops_on_flips


def scores(method: Method, findings: Findings) -> Mapping[str, float]:
    """The numbers that a method reports itself; none where it has none."""
    return method.scores(findings) if isinstance(method, Scored) else {}


def revision(method: Explorer | Exploiter | Method) -> int:
    """How often the findings of a method were changed by design; 1 where it does not say."""
    return method.revision if isinstance(method, Revised) else 1

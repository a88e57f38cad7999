"""Generators of tables with rules: derived columns are computed, and rows that break a rule are
drawn again.

A derived column tells a generator nothing that its sources do not, so it is not learned: the
generator is fitted to the other columns, and what it decodes is completed.

A row that breaks a rule is dropped and another drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.generators._base import (
    Encoder,
    Generator,
    OnStep,
    WithDensity,
    WithTensors,
)
from limi.table.partners import complete
from limi.table.schema import Schema
from limi.types import Index, Latents, Rows, Scores

__all__ = ["Drawn", "draw", "draws", "fit_to", "learned_schema", "obey"]

_ROUND = 1 << 13  # latents at a time, so that rows do not depend on how many are wanted
_VAIN = 200_000  # rows after which a generator that makes one in a thousand counts as unable
_LEAST = 0.001


def learned_schema(schema: Schema) -> Schema:
    """The columns that a generator learns: those that are not derived."""
    computed = {derived.column for derived in schema.rules.derived}
    if not computed:
        return schema
    return schema.select([name for name in schema.names if name not in computed])


def fit_to(
    module: ModuleType,
    rows: Rows,
    schema: Schema,
    rng: np.random.Generator,
    *,
    settings: Any = None,
    device: str = "cpu",
    on_step: OnStep = lambda done, words: None,
) -> Generator:
    """A generator of a module, fitted to all columns but derived ones."""
    learned = learned_schema(schema)
    if learned is not schema:
        rows = rows[:, [schema.position(name) for name in learned.names]]
    chosen = {} if settings is None else {"settings": settings}
    made: Generator = module.fit(rows, learned, rng, device=device, on_step=on_step, **chosen)
    return obey(made, schema)


def obey(generator: Generator, schema: Schema) -> Generator:
    """The generator with derived columns computed, where the schema has some.

    It may have learned all columns, or all that are not derived.
    """
    derived = schema.rules.derived
    if not derived or (_completes(generator) and generator.schema.rules.derived == derived):
        return generator
    offered: tuple[tuple[Any, type], ...] = (
        (Encoder, _Encodes),
        (WithDensity, _Weighs),
        (WithTensors, _Tensors),
    )
    bases = [mixin for offers, mixin in offered if isinstance(generator, offers)]
    made: type[_Completing] = type("Completing", (*bases, _Completing), {"kind": generator.kind})
    return made(generator, schema)


def _completes(generator: object) -> bool:
    return isinstance(generator, _Completing)


class _Completing:
    """A generator of the columns that are not derived, and the others computed from them."""

    kind: ClassVar[str] = "completing"

    def __init__(self, inner: Generator, schema: Schema) -> None:
        self.inner, self._schema = inner, schema
        self._places: Index = np.array([schema.position(name) for name in inner.schema.names])

    @property
    def schema(self) -> Schema:
        """What its rows hold, with derived columns."""
        return self._schema

    @property
    def latent_dim(self) -> int:
        """Dimensions of the latent space: those of what was learned."""
        return self.inner.latent_dim

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        """Latents of what was learned."""
        return self.inner.sample_latents(n, rng)

    def decode(self, latents: Latents) -> Rows:
        """One row per latent, with its derived cells."""
        learned = self.inner.decode(latents)
        rows = np.zeros((len(learned), len(self.schema)))
        rows[:, self._places] = learned
        whole: Rows = complete(self.schema, rows)
        return whole

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """That of what was learned; the schema tells the rest."""
        return self.inner.state()


class _Encodes(_Completing):
    def encode(self, rows: Rows, rng: np.random.Generator) -> Latents:
        """Latents that decode to these rows, where their derived cells are what they should be."""
        assert isinstance(self.inner, Encoder)
        return self.inner.encode(rows[:, self._places], rng)


class _Weighs(_Completing):
    def log_prob(self, rows: Rows) -> Scores:
        """ln of each row's probability; none where a derived cell is not what it should be."""
        assert isinstance(self.inner, WithDensity)
        known = self.inner.log_prob(rows[:, self._places])
        return np.where(self.schema.enforcer.disagrees(rows), -np.inf, known)


class _Tensors(_Completing):
    @property
    def device(self) -> Any:
        """Where it lives."""
        return self._there.device

    @property
    def _there(self) -> WithTensors:
        assert isinstance(self.inner, WithTensors)
        return self.inner

    def latents_at(self, seed: int, numbers: Any) -> Any:
        """Latents of what was learned."""
        return self._there.latents_at(seed, numbers)

    def decode_tensor(self, latents: Any) -> Any:
        """(n, columns) codes, with derived cells."""
        learned = self._there.decode_tensor(latents)
        rows = learned.new_zeros((len(learned), len(self.schema)))
        rows[:, self._places] = learned
        return complete(self.schema, rows)


# -- rows that keep the rules -----------------------------------------------------------


def draw(
    generator: Generator, n: int, rng: np.random.Generator, schema: Schema | None = None
) -> tuple[Rows, float]:
    """n rows that keep the rules of a schema, by default the generator's, and the share that does.

    InvalidInput where hardly a row does.
    """
    schema = generator.schema if schema is None else schema
    parts, drawn, kept = [np.empty((0, len(schema)))], 0, 0
    for part in draws(generator, n, rng, schema):
        parts.append(part.rows)
        drawn, kept = drawn + part.tried, kept + len(part.rows)
    return np.concatenate(parts)[:n], kept / drawn if drawn else 1.0


@dataclass(frozen=True)
class Drawn:
    """Some rows that keep the rules."""

    rows: Rows
    tried: int  # latents


def draws(
    generator: Generator, n: int, rng: np.random.Generator, schema: Schema | None = None
) -> Iterator[Drawn]:
    """Rows that keep the rules in parts, until there are n or more.

    Without constraints that is a plain sample. With them latents are drawn in rounds of one size,
    so that the first rows are the same however many are wanted.
    """
    enforcer = (generator.schema if schema is None else schema).enforcer
    if not enforcer.constraints:
        yield Drawn(generator.decode(generator.sample_latents(n, rng)), n)
        return
    drawn = have = 0
    while have < n:
        rows = generator.decode(generator.sample_latents(_ROUND, rng))
        rows = rows[~enforcer.breaks(rows)]
        drawn, have = drawn + _ROUND, have + len(rows)
        yield Drawn(rows, _ROUND)
        if drawn >= _VAIN and have < _LEAST * drawn:
            raise InvalidInput(
                f"of {drawn:,} rows that the generator {generator.kind} made, {have:,} keep the "
                "rules of the table; fit it on rows that keep them, or use another generator"
            )

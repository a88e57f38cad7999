"""Bring your own generator: any object with a latent and a decode function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, InvalidInput, spell
from limi.generators._checks import check_latents
from limi.table.frames import Codec, Frame
from limi.table.rows import snap
from limi.table.schema import Schema
from limi.types import Latents, Rows

__all__ = ["Adapted", "Sample", "adapt"]

_BATCH = 1 << 16

Decode = Callable[[NDArray[np.float64]], Any]
Sample = Callable[[int, np.random.Generator], Latents]


@dataclass(frozen=True, eq=False)
class Adapted:
    """A generator around a decode function; made by `adapt`."""

    schema: Schema
    latent_dim: int
    decode_batch: Decode
    sample: Sample | None
    levels: Codec | None  # of the columns with levels, where decode gives frames
    batch: int
    steady: bool

    kind: ClassVar[str] = "adapted"

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        """(n, latent_dim): what `sample` draws, by default standard normal numbers."""
        if self.sample is None:
            return rng.standard_normal((n, self.latent_dim))
        return check_latents(self.sample(n, rng), self.latent_dim)

    def decode(self, latents: Latents) -> Rows:
        """One row per latent, moved to the nearest point of the domain."""
        points: NDArray[np.float64] = np.asarray(
            check_latents(latents, self.latent_dim), dtype=np.float64
        )
        rows = np.empty((len(points), len(self.schema)))
        for start in range(0, len(points), self.batch):
            part = points[start : start + self.batch]
            n = len(part)
            if self.steady and n < self.batch:
                part = np.concatenate([part, np.zeros((self.batch - n, self.latent_dim))])
            rows[start : start + n] = self._rows(self.decode_batch(part.copy()), len(part))[:n]
        return rows

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Refused: limi cannot write another package's object."""
        raise InvalidInput(
            "an adapted generator cannot be saved by limi; save the object itself, and adapt it "
            "again after loading"
        )

    def _rows(self, decoded: Any, n: int) -> Rows:
        if isinstance(decoded, np.ndarray) or (
            hasattr(decoded, "__array__") and self.levels is None
        ):
            rows = np.asarray(decoded, dtype=np.float64)
        elif self.levels is None:
            raise InvalidInput(
                f"decode returns {type(decoded).__name__}; return an array of rows, or name the "
                "real table (table=frame) so that frames can be read"
            )
        else:
            rows = self._read(decoded)
        if rows.shape != (n, len(self.schema)):
            raise InvalidInput(
                f"decode returns rows of the shape {rows.shape} for {n} latents and a schema of "
                f"{len(self.schema)} columns"
            )
        rows = snap(self.schema, rows)
        gaps = np.isnan(rows).any(axis=0) & ~self.schema.may_miss
        if gaps.any():
            raise BadTable(
                "decode returns missing cells in columns that cannot be missing: "
                f"{spell(np.array(self.schema.names)[gaps])}"
            )
        return rows

    def _read(self, frame: Frame) -> Rows:
        assert self.levels is not None
        table = nw.from_native(frame, eager_only=True)
        absent = [name for name in self.schema.names if name not in table.columns]
        if absent:
            raise InvalidInput(f"decode returns frames without the columns {spell(absent)}")
        rows = np.empty((len(table), len(self.schema)))
        for j, column in enumerate(self.schema.columns):
            if column.is_number:
                rows[:, j] = table[column.name].cast(nw.Float64).to_numpy()
        of_levels = np.flatnonzero(~self.schema.is_numerical)
        if len(of_levels):
            rows[:, of_levels] = self.levels.encode(frame)
        return rows


def adapt(
    target: object,
    schema: Schema,
    *,
    latent_dim: int | None = None,
    sample: Sample | None = None,
    table: Frame | None = None,
    batch: int | None = None,
) -> Adapted:
    """A generator from a decode function, or from an object that has `decode`.

    `decode(latents)` takes (n, latent_dim) float64 and gives n rows of the schema, as an array of
    codes or, with `table` (the real one), as a frame like it. Cells are moved to the nearest point
    of the domain. `latent_dim` and `sample(n, rng)` default to the object's own `latent_dim` and
    `sample_latents`, the latter else to standard normal numbers. With `batch`, decode always gets
    exactly that many latents, the last ones filled up with zeros: networks may round differently
    in batches of other sizes. The same latent must give the same row; that is tried here.
    """
    decode = getattr(target, "decode", target)
    if not callable(decode):
        raise InvalidInput(
            f"{type(target).__name__} cannot be adapted; give a function from latents to rows, or "
            "an object with a method decode(latents)"
        )
    latent_dim = latent_dim or getattr(target, "latent_dim", None)
    if not isinstance(latent_dim, (int, np.integer)) or latent_dim < 1:
        raise InvalidInput(
            f"latent_dim is {latent_dim!r}; it must be a whole number, how many numbers a latent "
            "has"
        )
    levels = None
    if table is not None:
        names = [column.name for column in schema.columns if not column.is_number]
        levels = Codec.learn(table, schema.select(names) if names else schema)
    adapted = Adapted(
        schema=schema,
        latent_dim=int(latent_dim),
        decode_batch=decode,
        sample=sample or getattr(target, "sample_latents", None),
        levels=levels,
        batch=batch or _BATCH,
        steady=batch is not None,
    )
    _try(adapted)
    return adapted


def _try(adapted: Adapted) -> None:
    latents = adapted.sample_latents(16, np.random.default_rng(0))
    together = adapted.decode(latents)
    alone = np.concatenate([adapted.decode(latents[i : i + 1]) for i in range(len(latents))])
    close = np.isclose(alone, together, rtol=1e-5, atol=1e-8, equal_nan=True)
    if not close.all():
        raise InvalidInput(
            "the same latent does not decode to the same row, in "
            f"{spell(np.array(adapted.schema.names)[~close.all(axis=0)])}; decode must depend on "
            "nothing but the latent: put networks into evaluation mode, draw nothing at random "
            "inside, and give batch=1024 if only rounding differs"
        )

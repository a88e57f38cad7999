"""LIMI: natural rows near a surrogate decision boundary (Xiao et al., ISSTA 2023).

Sample latents, decode and score them, fit a linear boundary to the confident ones in latent
space, move every latent onto it, and check it and a step to either side.

Faithfulness
- Paper: a million latents, score threshold 0.7, over-sampling at random to 50,000 latents a class,
  step (lambda) 0.3, order z0, z+, z-, leave a latent at the first hit. `preset=paper`.
- Released code: takes the 50,000 best scored a class and repeats the smaller class in turn to the
  larger one's size. `preset=released`. It also uses step 0.1 for forests and SVMs (set `step`),
  and clips rows only after labelling them; here rows never leave the schema's domain.
- Paper and code label all latents. `preset=best`, the default, labels 100,000: the boundary is the
  same to the third digit and the queries go into the search.
- The paper's generator is a CTGAN; the default here is `trees` (generator="ctgan" for the paper's).
- The loop over latents and candidates is batched; the rows it checks, their order and the keys it
  skips are those of the literal loop.
- Targets that answer labels only have no confidence to filter by; all their latents count.
"""

from __future__ import annotations

from collections.abc import Generator as Coroutine
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from limi import boundary as planes
from limi.boundary import Boundary
from limi.check import Checked
from limi.errors import InvalidInput
from limi.methods._latent import (
    CHUNK,
    Confident,
    LatentStream,
    TensorStream,
    beside,
    joined,
    oversampled,
    probe,
)
from limi.methods._tensors import Probed
from limi.methods._tensors import probe as probe_tensors
from limi.rows import KeySet
from limi.task import Task
from limi.tensors import OnDevice, Seen
from limi.types import Latents

__all__ = ["LIMI"]

_BOUNDARY_SHARE = 10  # a query budget spends at most a tenth on the boundary
_POOR_AUC = 0.75
_MOST_ASKED = 4  # rows asked for a latent: its three candidates, and one of them again


@dataclass(frozen=True, kw_only=True)
class LIMI:
    """Probe natural rows around a boundary fitted in latent space."""

    n_latents: int = 1_000_000
    n_labelled: int | None = 100_000  # latents scored for the boundary; None: all of them
    threshold: float = 0.7  # epsilon
    per_class: int = 50_000
    choice: Literal["random", "best"] = "random"  # which confident latents to fit on
    step: float = 0.3  # lambda
    boundary: Literal["fitted", "random"] = "fitted"
    C: float = 1.0

    needs: ClassVar[frozenset[str]] = frozenset({"generator"})
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "paper": {"n_labelled": None},
        "released": {"n_labelled": None, "choice": "best"},
    }

    def __post_init__(self) -> None:
        if self.n_latents < 1 or self.per_class < 1:
            raise InvalidInput("n_latents and per_class must be at least 1")
        if self.C <= 0 or (self.n_labelled is not None and self.n_labelled < 1):
            raise InvalidInput("C must be above 0, and n_labelled at least 1")
        if not 0.5 <= self.threshold < 1:
            raise InvalidInput(f"threshold is {self.threshold}; it must lie in [0.5, 1)")

    def search(self, task: Task, rng: np.random.Generator) -> Iterator[Checked]:
        """Boundary first, then the probes; as tensors where target and generator share a device.

        A budget of queries is spent in arrays: the thrifty order of asking is not worth a device.
        """
        if task.on_device is None or np.isfinite(task.queries_left):
            yield from self.explore(task, rng)
        else:
            yield from self._on_device(task, task.on_device, rng)

    def explore(self, task: Task, rng: np.random.Generator) -> Iterator[Checked]:
        """The same; LIMI's rows can also seed another method's local phase."""
        assert task.generator is not None
        latents = LatentStream(task.generator, self.n_latents, int(rng.integers(2**62)))
        plane = yield from self._plane(task, latents, rng)
        seen = KeySet()
        for chunk in latents.chunks():
            offsets = (0.0, self.step, -self.step) if self.step and plane else (0.0,)
            on_plane = plane.project(chunk) if plane else chunk
            checked, paid = probe(
                task.schema,
                len(chunk),
                [_decoder(task, plane, on_plane, offset) for offset in offsets],
                seen,
                lambda rows: task.check(rows, origin="limi"),
            )
            yield checked.named("limi")
            if not paid:
                return

    def _on_device(self, task: Task, here: OnDevice, rng: np.random.Generator) -> Iterator[Checked]:
        """The same search, of which only what flips leaves the device."""
        for batch in self.probed(task, here, rng):
            yield batch if isinstance(batch, Checked) else batch.checked(here, "limi")

    def probed(
        self, task: Task, here: OnDevice, rng: np.random.Generator
    ) -> Iterator[Checked | Probed]:
        """What flips, as tensors; before that the empty batches of the boundary."""
        # Where the budget ends within a chunk, its size is part of what a seed means.
        ends = task.rows_left < _MOST_ASKED * self.n_latents
        size = CHUNK if ends else here.chunk
        latents = TensorStream(here.generator, self.n_latents, int(rng.integers(2**62)), size)
        plane = yield from self._plane(task, latents, rng)
        seen = Seen(here.packing)
        offsets = (0.0, self.step, -self.step) if self.step and plane else (0.0,)
        n_left = self.n_latents
        for chunk in latents.chunks():
            n_left -= len(chunk)
            on_plane = plane.project(chunk) if plane else chunk
            probed = probe_tensors(
                len(chunk),
                len(offsets),
                _tensor_decoder(latents, plane, on_plane, offsets),
                task.check_tensors,
                seen,
                eager=not ends,
                remember=n_left > 0,
            )
            yield probed
            if not probed.paid:
                return

    def _plane(
        self, task: Task, latents: LatentStream | TensorStream, rng: np.random.Generator
    ) -> Coroutine[Checked, None, Boundary | None]:
        """The boundary, or None where every natural row is decided alike."""
        if self.boundary == "random":
            return planes.random(next(latents.chunks(1)), rng)
        sides = Confident(self.per_class), Confident(self.per_class)
        scores: list[Any] = []
        distances: list[Any] = []
        n_labelled = self._n_labelled(task)
        for chunk in latents.chunks(n_labelled):
            score = task.ask(latents.decode(chunk))
            rank = latents.ranks(sum(len(s) for s in scores), len(score))
            scores.append(score)
            self._sort(chunk[: len(score)], score, rank, sides)
            yield Checked.nothing(len(task.schema))
            if len(score) < len(chunk):
                break
        down, up = sides
        if not len(down) or not len(up):
            task.notes.append(
                f"no boundary could be fitted: of {sum(map(len, scores)):,} natural rows {len(up)} "
                f"were surely favorable and {len(down)} surely not; plain natural rows were checked"
            )
            return None
        plane, fitness = self._fit(down.latents(), up.latents(), rng)
        for chunk, score in zip(latents.chunks(n_labelled), scores, strict=False):
            distances.append(plane.distance(chunk[: len(score)]))
        entire = planes.auc(joined(distances), joined(scores) > 0.5)
        task.facts.update(boundary_auc_train=fitness, boundary_auc_entire=entire)
        task.notes.extend(plane.notes)
        if entire < _POOR_AUC:
            task.notes.append(
                f"the boundary fits poorly (AUC {entire:.2f} on the labelled latents): findings "
                "per query may be no better than those of plain natural rows"
            )
        return plane

    def _n_labelled(self, task: Task) -> int:
        n = self.n_latents if self.n_labelled is None else min(self.n_labelled, self.n_latents)
        if np.isfinite(task.queries_left):
            n = min(n, max(200, int(task.queries_left) // _BOUNDARY_SHARE))
        return n

    def _sort(
        self, latents: Latents, score: Any, rank: Any, sides: tuple[Confident, Confident]
    ) -> None:
        """Hand confident latents to the side of their decision."""
        labels_only = bool(((score == 0) | (score == 1)).all())
        for side, confidence in zip(sides, (1 - score, score), strict=True):
            mine = confidence > 0.5 if side is sides[1] else confidence >= 0.5
            sure = mine if labels_only else mine & (confidence > self.threshold)
            side.add(latents[sure], -confidence[sure] if self.choice == "best" else rank[sure])

    def _fit(self, down: Latents, up: Latents, rng: np.random.Generator) -> tuple[Boundary, float]:
        """The boundary between the two sides, made equal in number, and its AUC on them."""
        if self.choice == "best":
            n, draw = max(len(down), len(up)), None
        else:
            n, draw = self.per_class, rng
        down, up = oversampled(down, n, draw), oversampled(up, n, draw)
        fitted_on = joined([down, up])
        favorable = beside(np.arange(len(fitted_on)) >= len(down), fitted_on)
        plane = planes.fit(fitted_on, favorable, C=self.C)
        return plane, planes.auc(plane.distance(fitted_on), favorable)


def _decoder(task: Task, plane: Boundary | None, on_plane: Latents, offset: float) -> Any:
    """Decodes one candidate of the latents in a mask."""
    assert task.generator is not None
    decode = task.generator.decode

    def rows(mask: Any) -> Any:
        chosen = on_plane[mask]
        return decode(plane.shift(chosen, offset) if plane and offset else chosen)

    return rows


def _tensor_decoder(
    latents: TensorStream, plane: Boundary | None, on_plane: Any, offsets: Sequence[float]
) -> Any:
    """Decodes candidates of latents at some places, or of all where None is given."""

    def moved(stage: int, places: Any) -> Any:
        chosen, step = on_plane if places is None else on_plane[places], offsets[stage]
        return plane.shift(chosen, step) if plane and step else chosen

    def rows(wanted: Sequence[tuple[int, Any]]) -> Any:
        # All latents of a candidate fill the device; a few of several go together.
        if all(places is None for _, places in wanted):
            return joined([latents.decode(moved(*one)) for one in wanted])
        return latents.decode(joined([moved(*one) for one in wanted]))

    return rows

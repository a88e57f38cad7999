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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from limi import boundary as planes
from limi.boundary import Boundary
from limi.check import Checked
from limi.errors import InvalidInput
from limi.methods._latent import Confident, LatentStream, oversampled, probe
from limi.rows import KeySet
from limi.task import Task
from limi.types import Latents

__all__ = ["LIMI"]

_BOUNDARY_SHARE = 10  # a query budget spends at most a tenth on the boundary
_POOR_AUC = 0.75


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
        """Boundary first, then the probes."""
        yield from self.explore(task, rng)

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
                lambda rows, stage: task.check(rows, origin="limi"),
            )
            yield checked.named("limi")
            if not paid:
                return

    def _plane(
        self, task: Task, latents: LatentStream, rng: np.random.Generator
    ) -> Coroutine[Checked, None, Boundary | None]:
        """The boundary, or None where every natural row is decided alike."""
        if self.boundary == "random":
            return planes.random(next(latents.chunks(1)), rng)
        sides = Confident(self.per_class, self.choice), Confident(self.per_class, self.choice)
        scores, distances = [], []
        n_labelled = self._n_labelled(task)
        for chunk in latents.chunks(n_labelled):
            assert task.generator is not None
            score = task.ask(task.generator.decode(chunk))
            scores.append(score)
            self._sort(chunk[: len(score)], score, sides, rng)
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
            distances.append(np.asarray(plane.distance(chunk[: len(score)]), dtype=np.float32))
        entire = planes.auc(np.concatenate(distances), np.concatenate(scores) > 0.5)
        task.facts.update(boundary_auc_train=fitness, boundary_auc_entire=entire)
        task.notes.extend(plane.notes)
        if entire < _POOR_AUC:
            task.notes.append(
                f"the boundary fits poorly (AUC {entire:.2f} on all latents): findings per query "
                "may be no better than those of plain natural rows"
            )
        return plane

    def _n_labelled(self, task: Task) -> int:
        n = self.n_latents if self.n_labelled is None else min(self.n_labelled, self.n_latents)
        if np.isfinite(task.queries_left):
            n = min(n, max(200, int(task.queries_left) // _BOUNDARY_SHARE))
        return n

    def _sort(
        self,
        latents: Latents,
        score: Any,
        sides: tuple[Confident, Confident],
        rng: np.random.Generator,
    ) -> None:
        """Hand confident latents to the side of their decision."""
        labels_only = bool(np.isin(score, (0.0, 1.0)).all())
        for side, confidence in zip(sides, (1 - score, score), strict=True):
            mine = confidence > 0.5 if side is sides[1] else confidence >= 0.5
            sure = mine if labels_only else mine & (confidence > self.threshold)
            side.add(latents[sure], confidence[sure], rng)

    def _fit(self, down: Latents, up: Latents, rng: np.random.Generator) -> tuple[Boundary, float]:
        """The boundary between the two sides, made equal in number, and its AUC on them."""
        if self.choice == "best":
            n, draw = max(len(down), len(up)), None
        else:
            n, draw = self.per_class, rng
        down, up = oversampled(down, n, draw), oversampled(up, n, draw)
        fitted_on = np.concatenate([down, up])
        favorable = np.arange(len(fitted_on)) >= len(down)
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

"""Cases tried: a start, its twin of the other group, and a placebo as far away, all scored.

Cases come in chunks of a fixed size, each with random numbers of its own, so that what is found
hangs neither on memory nor on when a run was interrupted. Images stay where the generator makes
them; only scores, and the images of pairs worth keeping, leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from limi.decisions import differ, favors
from limi.errors import InvalidInput
from limi.images._base import (
    AT_ONCE,
    ImageArray,
    ImageGenerator,
    Images,
    Scorer,
    as_array,
    ask,
    check_decoded,
    logits,
    probability,
)
from limi.images.planes import Plane, Vector, condition, mirror, slope_along
from limi.system.arrays import is_tensor
from limi.types import Index, Latents, Mask, Scores

__all__ = ["Kept", "Planes", "Prober", "Procedure", "Seen", "Trials", "cases_at_once"]

_MOST_AT_ONCE, _FEWEST_AT_ONCE = 2048, 32  # cases
_BYTES_AT_ONCE = 1 << 25  # of their starts
_CORRECTIONS = 2  # of a twin that the first step leaves short, or carries far beyond
_LONGEST_CORRECTION = 3.0  # times the step before
_LEAST_APART = 0.05  # grey levels: less is rounding
_BEYOND = 0.95  # a twin surer than this went further than it had to


def cases_at_once(shape: tuple[int, ...]) -> int:
    """Cases of a chunk, for images of a shape; part of what a seed means."""
    fitting = _BYTES_AT_ONCE // int(np.prod(shape))
    return int(np.clip(1 << max(0, fitting.bit_length() - 1), _FEWEST_AT_ONCE, _MOST_AT_ONCE))


Step = Literal["least", "mirror"]
Start = Literal["boundary", "random"]


@dataclass(frozen=True, kw_only=True)
class Procedure:
    """How cases start and how their twins are made."""

    step: Step = "least"
    start: Start = "boundary"
    conditioned: bool = True  # are truth and what is held kept?
    stages: tuple[float, ...] = (0.0,)  # steps along the decision's normal from its plane
    sure: float = 0.7  # of the protected scorer, on both sides
    goal: float = 0.8  # score that the least step aims at
    directions: int = 50  # of the placebo


@dataclass(frozen=True)
class Planes:
    """The planes of a run, and the directions of its moves."""

    decision: Plane
    protected: Plane
    held: tuple[Plane, ...]  # truth first, where there is one
    along: Vector  # the way across the protected plane
    placebo: NDArray[np.float64]  # (directions, latent_dim), unit
    samples: NDArray[np.float64]  # latents that the directions set out from

    @staticmethod
    def of(
        decision: Plane,
        protected: Plane,
        held: Sequence[Plane],
        procedure: Procedure,
        ends: tuple[Latents, Latents],
    ) -> Planes:
        """`ends` are samples of the generator; each placebo leads from one to another."""
        normals = [np.asarray(plane.boundary.normal, dtype=np.float64) for plane in held]
        own = np.asarray(protected.boundary.normal, dtype=np.float64)
        along = condition(own, normals if procedure.conditioned else [])
        basis, _ = np.linalg.qr(np.stack([own, *normals], axis=1))
        ways = np.asarray(ends[1] - ends[0], dtype=np.float64)
        ways -= (ways @ basis) @ basis.T
        lengths = np.linalg.norm(ways, axis=1, keepdims=True)
        if not (lengths > 1e-9).all():
            raise InvalidInput(
                f"the generator has {len(own)} latent dimensions, and all of them are held; a "
                "placebo needs a free one, so use more dimensions or hold less"
            )
        starts = np.asarray(ends[0], dtype=np.float64)
        return Planes(decision, protected, tuple(held), along, ways / lengths, starts)


@dataclass(frozen=True)
class Seen:
    """Who looks at the images: one scorer each for the attributes, and the judge's."""

    protected: Scorer
    truth: Scorer | None = None
    judge_protected: Scorer | None = None
    judge_truth: Scorer | None = None

    @property
    def truth_judge(self) -> Scorer | None:
        """Who says whether the truth has changed: the judge, else the scorer itself."""
        return self.judge_truth or self.truth


@dataclass(frozen=True)
class Trials:
    """What was seen of each case; (n,) arrays. Scores are the target's unless said otherwise.

    Where a twin was not valid no placebo was made for it, and its numbers are NaN.
    """

    case: Index  # the latent it came from; several stages share one
    score: Scores
    twin: Scores
    placebo: Scores
    protected: Scores  # of the protected scorer
    protected_twin: Scores
    protected_placebo: Scores
    truth: Scores  # as the judge of the truth sees it; NaN where there is none
    truth_twin: Scores
    truth_placebo: Scores
    judged: Scores  # the protected attribute as the judge sees it; NaN where there is none
    judged_twin: Scores
    distance: Scores  # grey levels, root mean square
    distance_placebo: Scores
    direction: Index  # which placebo direction
    valid: Mask  # do both sides show their group clearly?

    def __len__(self) -> int:
        return len(self.case)

    def __getitem__(self, chosen: Any) -> Trials:
        return Trials(*(getattr(self, one.name)[chosen] for one in fields(self)))

    @staticmethod
    def join(some: Sequence[Trials]) -> Trials:
        """All of them, one after the other."""
        names = [one.name for one in fields(Trials)]
        return Trials(*(np.concatenate([getattr(one, name) for one in some]) for name in names))

    # -- predicates ---------------------------------------------------------------------

    @property
    def flips(self) -> Mask:
        """Does the twin get another decision?"""
        apart: Mask = differ(self.score, self.twin)
        return apart

    @property
    def flips_placebo(self) -> Mask:
        """Does the placebo get another decision?"""
        apart: Mask = differ(self.score, self.placebo)
        return apart

    @property
    def flips_beyond(self) -> Mask:
        """Does the twin's decision differ by more than the judge sees of the truth changing?"""
        apart: Mask = differ(self.score, self._less_truth(self.twin, self.truth_twin))
        return apart

    @property
    def flips_placebo_beyond(self) -> Mask:
        """The same of the placebo."""
        apart: Mask = differ(self.score, self._less_truth(self.placebo, self.truth_placebo))
        return apart

    @property
    def keeps_truth(self) -> Mask:
        """Is the truth the same on both sides, as its judge sees it?"""
        return _agree(self.truth, self.truth_twin)

    @property
    def keeps_truth_placebo(self) -> Mask:
        """The same of the placebo."""
        return _agree(self.truth, self.truth_placebo)

    @property
    def confirmed(self) -> Mask:
        """Valid, and does the judge see both groups as the scorer does?"""
        unknown = np.isnan(self.judged)
        agrees = (favors(self.judged) == favors(self.protected)) & differ(
            self.judged, self.judged_twin
        )
        confirmed: Mask = self.valid & (unknown | agrees)
        return confirmed

    @property
    def strict(self) -> Mask:
        """Confirmed, with the truth kept."""
        return self.confirmed & self.keeps_truth

    @property
    def found(self) -> Mask:
        """Strict twins whose decision flips: the findings."""
        return self.strict & self.flips

    # -- effects ------------------------------------------------------------------------

    @property
    def effect(self) -> Scores:
        """Logits that the first group gets more than the second, less what the judge of the truth
        sees change itself."""
        toward = np.where(favors(self.protected), 1.0, -1.0)  # the start is of the second group
        return toward * (self._moved(self.twin) - self._truth_moved(self.truth_twin))

    @property
    def effect_placebo(self) -> Scores:
        """Logits that the placebo gets more than the start, less what its judge sees."""
        return self._moved(self.placebo) - self._truth_moved(self.truth_placebo)

    def _less_truth(self, scores: Scores, truth: Scores) -> Scores:
        return probability(logits(scores) - self._truth_moved(truth))

    def _moved(self, scores: Scores) -> Scores:
        return logits(scores) - logits(self.score)

    def _truth_moved(self, scores: Scores) -> Scores:
        moved = logits(scores) - logits(self.truth)
        return np.where(np.isnan(self.truth), 0.0, moved)


def _agree(one: Scores, other: Scores) -> Mask:
    """Nothing is known to differ where nobody looks."""
    same: Mask = (favors(one) == favors(other)) | np.isnan(one) & np.isnan(other)
    return same


@dataclass(frozen=True)
class Kept:
    """Images of some trials, in the order of `place`."""

    place: Index  # among all trials
    start: ImageArray
    twin: ImageArray
    placebo: ImageArray

    def take(self, chosen: Any) -> Kept:
        """Some of them."""
        return Kept(self.place[chosen], self.start[chosen], self.twin[chosen], self.placebo[chosen])

    @staticmethod
    def join(one: Kept | None, other: Kept) -> Kept:
        """Both, one after the other."""
        if one is None:
            return other
        return Kept(
            *(
                np.concatenate([getattr(one, name), getattr(other, name)])
                for name in ("place", "start", "twin", "placebo")
            )
        )


class Prober:
    """Makes twins and placebos of latents and asks everybody about them."""

    def __init__(
        self,
        generator: ImageGenerator,
        target: Callable[[Images], Scores],
        seen: Seen,
        planes: Planes,
        procedure: Procedure,
        *,
        placebo: bool = True,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self._shape = shape
        self.generator, self.target, self.seen = generator, target, seen
        self.planes, self.procedure, self.with_placebo = planes, procedure, placebo
        self._gain = self._gains() if placebo else np.empty(0)

    @property
    def questions_per_case(self) -> int:
        """What a case asks the target at most."""
        return (3 if self.with_placebo else 2) * len(self.procedure.stages)

    def starts(self, latents: Latents) -> Iterator[Latents]:
        """Where each stage of these cases starts."""
        points = np.asarray(latents, dtype=np.float64)
        if self.procedure.start == "random":
            yield points
            return
        plane = self.planes.decision.boundary
        for step in self.procedure.stages:
            yield plane.shift(plane.project(points), step)

    def probe(self, latents: Latents, first: int) -> tuple[Trials, Callable[[Any], Kept]]:
        """Try cases; `first` is the number of the first. The function gives images of some."""
        stages = [self._probe(points, first) for points in self.starts(latents)]
        trials = Trials.join([stage[0] for stage in stages])
        offsets = np.cumsum([0, *(len(stage[0]) for stage in stages)])

        def images_of(chosen: Index) -> Kept:
            kept = None
            for number, (_, images) in enumerate(stages):
                mine = chosen[(chosen >= offsets[number]) & (chosen < offsets[number + 1])]
                part = images(mine - offsets[number])
                kept = Kept.join(kept, Kept(mine, part.start, part.twin, part.placebo))
            assert kept is not None
            return kept

        return trials, images_of

    def _probe(self, points: Latents, first: int) -> tuple[Trials, Callable[[Any], Kept]]:
        n = len(points)
        case = np.arange(first, first + n)
        start = self._decode(points)
        protected = ask(self.seen.protected, start, "protected scorer")
        twin, protected_twin = self._twin(points, start, protected)
        low = 1 - self.procedure.sure
        valid = differ(protected, protected_twin) & ~(
            (np.minimum(protected, protected_twin) > low)
            | (np.maximum(protected, protected_twin) < self.procedure.sure)
        )
        distance = _apart(start, twin)
        direction = case % len(self.planes.placebo)
        placebo = start
        distant = np.full(n, np.nan)
        tried = np.flatnonzero(valid) if self.with_placebo else np.empty(0, dtype=np.intp)
        if len(tried):
            some, distant[tried] = self._placebo(
                points[tried], _take(start, tried), distance[tried], direction[tried]
            )
            placebo = _put(start, tried, some)
        made = self._judge(start, twin, placebo, tried)
        trials = Trials(
            case=case,
            protected=protected,
            protected_twin=protected_twin,
            distance=distance,
            distance_placebo=distant,
            direction=direction,
            valid=valid,
            **made,
        )

        def images_of(chosen: Index) -> Kept:
            sets = (as_array(_take(one, chosen)) for one in (start, twin, placebo))
            return Kept(chosen, *sets)

        return trials, images_of

    def _judge(self, start: Images, twin: Images, placebo: Images, tried: Index) -> dict[str, Any]:
        """Scores of the target, of the judge and of the truth."""
        n, some = len(start), _take(placebo, tried)
        nothing = np.full(n, np.nan)

        def both(scorer: Scorer | None, name: str) -> tuple[Scores, Scores]:
            if scorer is None:
                return nothing, nothing
            return ask(scorer, start, name), ask(scorer, twin, name)

        def of_placebo(scorer: Callable[[Images], Scores] | None) -> Scores:
            found = nothing.copy()
            if scorer is not None and len(tried):
                found[tried] = scorer(some)
            return found

        truth = self.seen.truth_judge
        told = both(truth, "judge of the truth")
        judged = both(self.seen.judge_protected, "judge")
        return {
            "score": self.target(start),
            "twin": self.target(twin),
            "placebo": of_placebo(self.target),
            "protected_placebo": of_placebo(
                lambda images: ask(self.seen.protected, images, "protected scorer")
            ),
            "truth": told[0],
            "truth_twin": told[1],
            "truth_placebo": of_placebo(
                None if truth is None else lambda images: ask(truth, images, "judge of the truth")
            ),
            "judged": judged[0],
            "judged_twin": judged[1],
        }

    def _twin(self, points: Latents, start: Images, protected: Scores) -> tuple[Images, Scores]:
        """The image on the other side of the protected plane, and its protected score."""
        planes, along = self.planes, self.planes.along
        if self.procedure.step == "mirror":
            twin = self._decode(mirror(planes.protected.boundary, points, along))
            return twin, ask(self.seen.protected, twin, "protected scorer")
        here = logits(protected)
        goal = np.where(here > 0, -1.0, 1.0) * float(logits(np.array([self.procedure.goal]))[0])
        step = (goal - here) / slope_along(planes.protected, along)
        twin = self._decode(points + step[:, None] * along)
        there = logits(ask(self.seen.protected, twin, "protected scorer"))
        for _ in range(_CORRECTIONS):
            off = np.flatnonzero(self._misses(here, there))
            moved = there[off] - here[off]
            # Where the score went the wrong way there is nothing to learn from.
            off = off[moved * step[off] > 0]
            if not len(off):
                break
            factor = (goal[off] - here[off]) / (there[off] - here[off])
            step[off] *= np.clip(factor, 1 / _LONGEST_CORRECTION, _LONGEST_CORRECTION)
            again = self._decode(points[off] + step[off, None] * along)
            there[off] = logits(ask(self.seen.protected, again, "protected scorer"))
            twin = _put(twin, off, again)
        return twin, 1 / (1 + np.exp(-there))

    def _misses(self, here: Scores, there: Scores) -> Mask:
        """Is a twin not sure enough, or surer than the least step makes it?"""
        reached = np.where(here > 0, -there, there)
        low, high = logits(np.array([self.procedure.sure, _BEYOND]))
        missed: Mask = (reached <= low) | (reached > high)
        return missed

    def _placebo(
        self, points: Latents, start: Images, distance: Scores, direction: Index
    ) -> tuple[Images, Scores]:
        """Images as far from the start as its twin in grey levels, along random directions."""
        ways = self.planes.placebo[direction]
        size = distance / self._gain[direction]
        images = self._decode(points + size[:, None] * ways)
        # Once more, because light that reaches its limits goes no further.
        size *= distance / np.maximum(_apart(start, images), _LEAST_APART)
        images = self._decode(points + size[:, None] * ways)
        return images, _apart(start, images)

    def _gains(self) -> Scores:
        """Grey levels that a unit step along each placebo direction makes, at the planes' ends."""
        ways = self.planes.placebo
        starts = self.planes.samples[: len(ways)]
        gaps = _apart(self._decode(starts), self._decode(starts + ways))
        return np.maximum(gaps, _LEAST_APART)

    def _decode(self, points: Latents) -> Images:
        made = self.generator.decode(np.asarray(points, dtype=np.float32))
        kind = f"the generator {self.generator.kind}"
        return check_decoded(made, len(points), kind, self._shape)


def _take(images: Images, chosen: Index) -> Images:
    if is_tensor(images):
        import torch

        return images[torch.from_numpy(np.asarray(chosen)).to(images.device)]
    return images[chosen]


def _put(images: Images, chosen: Index, some: Images) -> Images:
    """A copy of images with some of them replaced."""
    if is_tensor(images):
        import torch

        return images.index_copy(0, torch.from_numpy(np.asarray(chosen)).to(images.device), some)
    changed = images.copy()
    changed[chosen] = some
    return changed


def _apart(one: Images, other: Images) -> Scores:
    """Grey levels between two images each, root mean square."""
    if is_tensor(one):
        squares = (one.float() - other.float()).square().flatten(1).mean(1)
        found: Scores = squares.sqrt().double().cpu().numpy()
        return found
    sizes = [slice(i, i + AT_ONCE // 4) for i in range(0, len(one), AT_ONCE // 4)]
    gaps = [
        np.square(one[part].astype(np.int16) - other[part], dtype=np.int32).mean(axis=(1, 2, 3))
        for part in sizes
    ]
    distances: Scores = np.sqrt(np.concatenate([np.empty(0), *gaps]))
    return distances

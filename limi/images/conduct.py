"""One audit of images from its parts to a result: planes, random starts, search."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.images._base import (
    Encodes,
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
from limi.images.figures import measure_doses, see_effect, see_excess
from limi.images.planes import Plane, fit_plane
from limi.images.result import Sheet
from limi.images.trials import Kept, Planes, Prober, Procedure, Seen, Trials, cases_at_once
from limi.search.budget import Budget, Stop
from limi.streams import Stream
from limi.system.watch import Watch
from limi.types import Latents, Scores

__all__ = ["Asked", "Attribute", "Plan", "Ran", "conduct", "image_hashes"]

_PLANES, _DIRECTIONS, _MEASURED, _SEARCHED, _SAMPLED = range(5)  # streams
_PLANE_LATENTS = 4000
_MEASURED_CASES = 2000
_PLANE_SHARE = 4  # one part in so many of a budget of questions goes to the planes
_MEASURED_SHARE = 3  # and of what is left then to random starts
_FEWEST_LATENTS = 100
_SAMPLES = 24  # random pairs for the page


@dataclass(frozen=True)
class Attribute:
    """Something seen in images, by the scorer that defines it and the judge."""

    name: str
    scorer: Scorer
    judge: Scorer | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The parts of an audit."""

    generator: ImageGenerator
    protected: Attribute
    truth: Attribute | None
    held: tuple[Attribute, ...]
    procedure: Procedure
    cases: int
    pairs: int  # findings whose images are kept
    placebo: bool
    budget: Budget
    seed: int
    shape: tuple[int, ...]  # of an image
    starts: ImageArray | None = None  # images that cases start from, instead of samples

    @property
    def at_once(self) -> int:
        """Cases of a chunk."""
        return cases_at_once(self.shape)


class Asked:
    """The target, with the number of its questions; `plant` adds a bias of known size."""

    def __init__(self, scorer: Scorer, *, plant: float = 0.0, by: Scorer | None = None) -> None:
        self.queries = 0
        self._scorer, self._plant, self._by = scorer, plant, by
        self.through: Callable[[Images], Scores] = self.answer  # a journal may stand before it

    def __call__(self, images: Images) -> Scores:
        """Scores of images, planted bias and all."""
        self.queries += len(images)
        scores = self.through(images)
        if not self._plant or self._by is None:
            return scores
        tilt = np.tanh(logits(ask(self._by, images, "protected scorer")) / 2)
        return probability(logits(scores) - self._plant * tilt)

    def answer(self, images: Images) -> Scores:
        """What the scorer itself says."""
        return ask(self._scorer, images, "target")


@dataclass
class Ran:
    """What came of it."""

    planes: Planes
    measured: Trials
    searched: Trials
    findings: Sheet
    samples: Sheet
    n_findings: int
    stop: Stop
    notes: list[str] = field(default_factory=list)


def image_hashes(images: Images) -> NDArray[np.int64]:
    """A number for each image: equal images have equal ones, and others almost surely do not."""
    # One by one, because a hash reads an image's thousands of bytes faster than numpy mixes them.
    codes = b"".join(
        hashlib.blake2b(image.tobytes(), digest_size=8).digest() for image in as_array(images)
    )
    return np.frombuffer(codes, dtype="<i8").astype(np.int64)


def conduct(plan: Plan, target: Asked, watch: Watch) -> Ran:
    """Fit planes, measure on random starts, then search where the decision is close."""
    watch.enter("generator")
    planes = _planes(plan, target)
    watch.enter("rates")
    seen = Seen(
        plan.protected.scorer,
        None if plan.truth is None else plan.truth.scorer,
        plan.protected.judge,
        None if plan.truth is None else plan.truth.judge,
    )
    random = replace(plan.procedure, start="random", stages=(0.0,))
    args = (plan.generator, target, seen, planes)
    prober = Prober(*args, random, placebo=plan.placebo, shape=plan.shape)
    wanted = min(_MEASURED_CASES, plan.cases)
    share = _left(plan, target) / _MEASURED_SHARE / prober.questions_per_case
    measured = _run(
        prober, _Source(plan, _MEASURED), int(min(wanted, share)), watch, target, Keeper(0, 0)
    )
    watch.enter("search")
    prober = Prober(*args, plan.procedure, placebo=plan.placebo, shape=plan.shape)
    keeper = Keeper(plan.pairs, plan.seed)
    affordable = _left(plan, target) / prober.questions_per_case
    n = int(min(plan.cases, affordable))
    most = plan.budget.max_findings
    searched = _run(prober, _Source(plan, _SEARCHED), n, watch, target, keeper, most)
    stop = Stop.ROWS if n == plan.cases else Stop.QUERIES
    if most is not None and keeper.n_found >= most:
        stop = Stop.FINDINGS
    elif watch.late:
        stop = Stop.SECONDS
    return Ran(
        planes,
        measured,
        searched,
        keeper.findings(searched),
        keeper.samples(searched),
        keeper.n_found,
        stop,
    )


def _left(plan: Plan, target: Asked) -> float:
    most = plan.budget.max_queries
    return np.inf if most is None else max(0, most - target.queries)


def _planes(plan: Plan, target: Asked) -> Planes:
    """Where everybody is undecided, from samples of the generator."""
    n = _PLANE_LATENTS
    if plan.budget.max_queries is not None:
        n = max(_FEWEST_LATENTS, min(n, plan.budget.max_queries // _PLANE_SHARE))
    latents = plan.generator.sample_latents(n, Stream.IMAGES.rng(plan.seed, _PLANES))
    told: list[list[Scores]] = []
    named: list[tuple[str, Callable[[Images], Scores]]] = [("target", target)]
    looked = (plan.protected, *([plan.truth] if plan.truth else []), *plan.held)
    named += [(f"scorer of {one.name}", _asking(one)) for one in looked]
    for start in range(0, n, plan.at_once):
        some = np.asarray(latents[start : start + plan.at_once], dtype=np.float32)
        kind = f"the generator {plan.generator.kind}"
        images = check_decoded(plan.generator.decode(some), len(some), kind, plan.shape)
        told.append([scorer(images) for _, scorer in named])
    planes: list[Plane] = [
        fit_plane(name, latents, np.concatenate([part[number] for part in told]))
        for number, (name, _) in enumerate(named)
    ]
    rng = Stream.IMAGES.rng(plan.seed, _DIRECTIONS)
    count = int(np.clip(plan.cases // 20, 2, plan.procedure.directions))
    ends = [plan.generator.sample_latents(count, rng) for _ in range(2)]
    return Planes.of(planes[0], planes[1], planes[2:], plan.procedure, (ends[0], ends[1]))


def _asking(one: Attribute) -> Callable[[Images], Scores]:
    return lambda images: ask(one.scorer, images, f"scorer of {one.name}")


class _Source:
    """Latents of cases, chunk by chunk: samples of the generator, or those of given images."""

    def __init__(self, plan: Plan, stream: int) -> None:
        self._plan, self._stream = plan, stream
        self._pool: Latents | None = None
        if plan.starts is not None:
            assert isinstance(plan.generator, Encodes)
            order = Stream.IMAGES.rng(plan.seed, stream).permutation(len(plan.starts))
            self._pool = plan.generator.encode(plan.starts[order])

    @property
    def at_once(self) -> int:
        """Cases of a chunk."""
        return self._plan.at_once

    def take(self, start: int, n: int) -> Latents:
        """n latents from the place of a chunk on."""
        if self._pool is not None:
            return self._pool[start : start + n]
        size = self._plan.at_once
        rng = Stream.IMAGES.rng(self._plan.seed, self._stream, start // size)
        return self._plan.generator.sample_latents(size, rng)[:n]


def _run(
    prober: Prober,
    source: _Source,
    n: int,
    watch: Watch,
    target: Asked,
    keeper: Keeper,
    most_findings: int | None = None,
) -> Trials:
    """Trials of n cases, fewer where time or the number of findings ends them."""
    found: list[Trials] = []
    done = 0
    size = source.at_once
    for start in range(0, n, size):
        if watch.late and found:
            break
        latents = source.take(start, min(size, n - start))
        trials, images_of = prober.probe(latents, start)
        keeper.add(trials, images_of, done)
        done += len(trials)
        found.append(trials)
        watch.findings = keeper.n_found
        watch.count(target.queries - watch.questions)
        watch.step(min(1.0, (start + size) / n))
        if most_findings is not None and keeper.n_found >= most_findings:
            break
    return Trials.join(found) if found else _nothing()


def _nothing() -> Trials:
    whole, number = np.empty(0, dtype=np.intp), np.empty(0)
    values: dict[str, Any] = dict.fromkeys(Trials.__dataclass_fields__, number)
    return Trials(**(values | {"case": whole, "direction": whole, "valid": whole.astype(bool)}))


class Keeper:
    """The ledger: findings that are distinct by their images, with the images of the strongest."""

    def __init__(self, pairs: int, seed: int) -> None:
        self.n_found = 0
        self._pairs = pairs
        self._rng = Stream.IMAGES.rng(seed, _SAMPLED)
        self._known: set[int] = set()
        self._best, self._strength = _Shelf(), np.empty(0)
        self._random, self._rank = _Shelf(), np.empty(0)

    def add(self, trials: Trials, images_of: Callable[[Any], Kept], offset: int) -> None:
        """Look through the trials of a chunk."""
        found = np.flatnonzero(trials.found)
        if len(found):
            kept = images_of(found)
            codes = (image_hashes(kept.start) ^ (image_hashes(kept.twin) >> 1)).tolist()
            new = []
            for place, code in enumerate(codes):
                if code not in self._known:
                    self._known.add(code)
                    new.append(place)
            self.n_found = len(self._known)
            strength = np.abs(trials.effect[kept.place[new]])
            self._best.put(kept.take(new), offset)
            self._strength = self._best.trim(
                np.concatenate([self._strength, -strength]), self._pairs
            )
        rank = self._rng.random(len(trials))
        valid = np.flatnonzero(trials.valid)
        valid = valid[np.argsort(rank[valid])[:_SAMPLES]]
        if len(valid) and self._pairs:
            valid = np.sort(valid)
            kept = images_of(valid)
            self._random.put(kept, offset)
            self._rank = self._random.trim(np.concatenate([self._rank, rank[kept.place]]), _SAMPLES)

    def findings(self, trials: Trials) -> Sheet:
        """The strongest, those first whose scores lie furthest apart."""
        return self._best.sheet(trials, np.argsort(self._strength, kind="stable"))

    def samples(self, trials: Trials) -> Sheet:
        """Valid twins at random."""
        return self._random.sheet(trials, np.argsort(self._rank, kind="stable"))


class _Shelf:
    """Images that are kept for now."""

    def __init__(self) -> None:
        self._kept: Kept | None = None

    def put(self, kept: Kept, offset: int) -> None:
        moved = replace(kept, place=kept.place + offset)
        self._kept = Kept.join(self._kept, moved)

    def trim(self, order: NDArray[np.float64], most: int) -> NDArray[np.float64]:
        """Keep those that come first by an order; gives what is left of it."""
        chosen = np.sort(np.argsort(order, kind="stable")[:most])
        assert self._kept is not None
        self._kept = self._kept.take(chosen)
        return order[chosen]

    def sheet(self, trials: Trials, order: Sequence[int] | NDArray[np.intp]) -> Sheet:
        if self._kept is None:
            empty = np.empty((0, 8, 8, 3), dtype=np.uint8)
            nothing = np.empty(0, dtype=np.intp)
            return Sheet(trials[nothing], Kept(nothing, empty, empty, empty))
        images = self._kept.take(np.asarray(order))
        return Sheet(trials[images.place], images)


def count(trials: Trials) -> dict[str, int]:
    """How many cases there were, and how many of them were what."""
    valid = trials.valid
    return {
        "cases": len(trials),
        "valid": int(valid.sum()),
        "confirmed": int(trials.confirmed.sum()),
        "strict": int(trials.strict.sum()),
        "flips": int(trials.flips.sum()),
        "flips_valid": int((trials.flips & valid).sum()),
        "flips_strict": int(trials.found.sum()),
        "placebo_flips": int((trials.flips_placebo & valid).sum()),
        "placebo_flips_strict": int(
            (trials.flips_placebo & trials.keeps_truth_placebo & trials.confirmed).sum()
        ),
    }


def figures(ran: Ran, *, placebo: bool) -> dict[str, Any]:
    """Effect, excess of both parts, and doses."""
    return {
        "effect": see_effect(ran.measured),
        "excess": see_excess(ran.measured),
        "excess_searched": see_excess(ran.searched),
        "doses": measure_doses(ran.measured) if placebo else (),
        "searched": count(ran.searched),
        "measured": count(ran.measured),
    }

"""`audit_images`: a target, a generator and attributes, as a user gives them, to a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from limi.audits.audit import Out
from limi.errors import InvalidInput, nearest
from limi.generators._training import device_of, torch_for
from limi.images import attributes, eigenfaces, makers
from limi.images._base import Encodes, ImageArray, ImageGenerator, Scorer
from limi.images.attributes import Learned
from limi.images.conduct import Asked, Attribute, Plan, conduct, figures
from limi.images.quality import Quality, judge_generator
from limi.images.result import ImageResult
from limi.images.sources import Pictures, check_enough, read_pictures
from limi.images.targets import as_scorer
from limi.images.trials import Procedure, Start
from limi.search.budget import Budget, check_seed
from limi.streams import Stream
from limi.system.arguments import checked
from limi.system.watch import Progress, Watch

__all__ = ["PRESETS", "Judge", "audit_images"]

PRESETS: Mapping[str, Procedure] = {
    "default": Procedure(),
    # The paper mirrors at the attribute's plane whatever else changes with it, from three starts at
    # and beside the decision's plane.
    "paper": Procedure(step="mirror", conditioned=False, stages=(0.0, 0.3, -0.3)),
}
_CASES = {"cpu": 6_000, "cuda": 50_000}
_SPLIT, _FIT, _QUALITY = range(10, 13)  # streams
_MOST_PAIRS = 5_000
_MOST_CASES = 100_000_000

Judge = Mapping[str, Any] | Literal["edges", "plain", "none"]


@checked
def audit_images(
    target: Any,
    generator: Any = "eigenfaces",
    protected: str | Mapping[str, Any] = "",
    *,
    images: str | Path | ImageArray | Pictures | None = None,
    labels: str | Path | None = None,
    truth: str | Mapping[str, Any] | None = None,
    hold: Sequence[str] | Mapping[str, Any] = (),
    judge: Judge | None = None,
    scorers: Literal["pixels", "resnet18"] = "pixels",
    cases: int | None = None,
    preset: str = "default",
    step: Literal["least", "mirror"] | None = None,
    start: Literal["boundary", "random"] | ImageArray | None = None,
    placebo: bool = True,
    plant: float = 0.0,
    budget: Budget | None = None,
    pairs: int = 200,
    size: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    trust_pickle: bool = False,
    out: str | Path | None = None,
    force: bool = False,
    resume: bool = False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> ImageResult:
    """Does a decision about images change with a protected attribute, more than by chance?

    `target` is a function that takes uint8 images (n, height, width, 3) and returns scores in
    [0, 1], a torch module, or KIND:PLACE. `generator` is a name (`eigenfaces`, `vae`), a file of
    `limi images fit`, `python:FILE.py:NAME`, or an object with `latent_dim`, `sample_latents` and
    `decode`. `protected`, `truth` and `hold` name labels of `images`, or map a name to a scorer:
    `truth` is what the decision should depend on, `hold` what must not change. The `judge` sees
    only the result: it is an architecture (`edges`, `plain`) that learns from the labels, a mapping
    from names to scorers, or `none`.

    `step` is `least` (just across the boundary) or `mirror` (as far beyond it), `start` is
    `boundary`, `random` or images; `preset="paper"` is the paper's procedure. `plant` adds a bias
    of known size to the target, to see whether the audit finds it. `out` is a run folder to write.
    """
    procedure, starts = _procedure(preset, step, start)
    request = _Request(
        target=target,
        generator=generator,
        protected=_names(protected, "protected"),
        truth=_names(truth, "truth"),
        hold=_names(hold, "hold"),
        images=images,
        labels=labels,
        judge=judge,
        scorers=scorers,
        preset=preset,
        procedure=procedure,
        starts=starts,
        cases=cases,
        placebo=placebo,
        plant=plant,
        budget=budget or Budget(),
        pairs=pairs,
        size=size,
        seed=seed,
        device=device,
        trust_pickle=trust_pickle,
    )
    watch = Watch(max_seconds=request.budget.max_seconds, on_progress=on_progress)
    if out is None:
        Out.of(None, force=force, resume=resume)
        return request.run(watch)
    from limi.images import folder

    run = partial(request.run, watch)
    return folder.write_run(run, out, request.settings(), force=force, resume=resume)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _procedure(preset: str, step: Any, start: Any) -> tuple[Procedure, ImageArray | None]:
    if preset not in PRESETS:
        raise InvalidInput(f"unknown preset {preset!r}; {nearest(str(preset), PRESETS)}")
    procedure = PRESETS[preset]
    if step is not None:
        procedure = replace(procedure, step=step)
    if start is None:
        return procedure, None
    if isinstance(start, str):
        return replace(procedure, start=cast(Start, start)), None
    images = np.asarray(start)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[-1] != 3 or not len(images):
        raise InvalidInput(
            f"start has the shape {images.shape} and the type {images.dtype}; give uint8 images "
            "(n, height, width, 3), 'boundary' or 'random'"
        )
    return replace(procedure, start="random"), images


def _names(given: Any, what: str) -> dict[str, Any]:
    """Names with scorers; None stands for one to be learned from labels."""
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        return {given: None}
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
        return dict.fromkeys(given)
    raise InvalidInput(
        f"{what} is {type(given).__name__}; name a label, or give a mapping from a name to a scorer"
    )


@dataclass(frozen=True)
class _Parts:
    """Everything that an audit is made of, ready to work."""

    target: Scorer
    generator: ImageGenerator
    shape: tuple[int, ...]  # of its images
    protected: Attribute
    truth: Attribute | None
    held: tuple[Attribute, ...]
    groups: tuple[str, str]
    learned: tuple[Learned, ...]
    quality: Quality | None
    target_name: str
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What a user asks for; made only if all of it can be done."""

    target: Any
    generator: Any
    protected: Mapping[str, Any]  # scorers by name, None for one to be learned; so for the next two
    truth: Mapping[str, Any]
    hold: Mapping[str, Any]
    images: Any
    labels: Any
    judge: Judge | None
    scorers: str
    preset: str
    procedure: Procedure
    starts: ImageArray | None
    cases: int | None
    placebo: bool
    plant: float
    budget: Budget
    pairs: int
    size: int | None
    seed: int
    device: str
    trust_pickle: bool

    def __post_init__(self) -> None:
        check_seed(self.seed)
        self._check_names()
        self._check_numbers()
        self._check_judge()
        if self.device != "cpu":
            torch_for(f"the device {self.device!r}")
            device_of(self.device)

    def _check_names(self) -> None:
        if len(self.protected) != 1:
            raise InvalidInput("name one protected attribute, such as protected='gender'")
        if len(self.truth) > 1:
            raise InvalidInput("name one attribute as the truth, such as truth='smile'")
        names = [*self.protected, *self.truth, *self.hold]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InvalidInput(
                f"{twice[0]!r} is named twice; protected, truth and hold must be different "
                "attributes"
            )

    def _check_numbers(self) -> None:
        if not _is_whole(self.pairs) or not 0 <= self.pairs <= _MOST_PAIRS:
            raise InvalidInput(
                f"pairs is {self.pairs!r}; it must lie between 0 and {_MOST_PAIRS:,}"
            )
        if not isinstance(self.plant, (int, float, np.number)) or not np.isfinite(self.plant):
            raise InvalidInput(f"plant is {self.plant!r}; give a bias in logits, such as 2")
        cases = self.cases
        if cases is not None and (not _is_whole(cases) or not 1 <= cases <= _MOST_CASES):
            raise InvalidInput(
                f"cases is {cases!r}; it must be a whole number between 1 and {_MOST_CASES:,}"
            )

    def _check_judge(self) -> None:
        """Judges are named after what they judge."""
        for name in self.judge if isinstance(self.judge, Mapping) else ():
            if name not in self.judged:
                raise InvalidInput(
                    f"judge names {name!r}, which is neither protected nor the truth; "
                    f"{nearest(str(name), self.judged)}"
                )

    @property
    def judged(self) -> tuple[str, ...]:
        """The attributes that have judges."""
        return (*self.protected, *self.truth)

    @property
    def labelled(self) -> list[str]:
        """What is to be learned from labels."""
        both = {**self.protected, **self.truth}
        return [name for name, scorer in both.items() if scorer is None]

    def settings(self) -> dict[str, Any]:
        """What tells this audit from another, for a run folder: every field, objects by name and
        what they hold by a sum."""
        from limi.images.folder import input_sums

        held = (
            *("target", "generator", "images", "labels", "starts", "judge"),
            *("protected", "truth", "hold"),
        )
        return {
            **{name: list(getattr(self, name)) for name in ("protected", "truth", "hold")},
            **{
                name: getattr(self, name)
                for name in ("scorers", "cases", "placebo", "plant", "pairs", "size", "seed")
            },
            "device": self.device,
            "target": _name_of(self.target),
            "generator": _name_of(self.generator),
            "judge": self.judge if isinstance(self.judge, str) else _keys(self.judge),
            "procedure": repr(self.procedure),
            "budget": repr(self.budget),
            "inputs": input_sums({name: getattr(self, name) for name in held}),
        }

    def run(
        self, watch: Watch, through: Callable[[Asked], None] = lambda asked: None
    ) -> ImageResult:
        """Open everything, search and measure; `through` is given the target before it is asked."""
        parts = self.open(watch)
        plan = Plan(
            generator=parts.generator,
            protected=parts.protected,
            truth=parts.truth,
            held=parts.held,
            procedure=self.procedure,
            cases=self._count_cases(parts),
            pairs=self.pairs,
            placebo=self.placebo,
            budget=self.budget,
            seed=self.seed,
            shape=parts.shape,
            starts=self.starts,
        )
        asked = Asked(parts.target, plant=self.plant, by=parts.protected.scorer)
        through(asked)
        ran = conduct(plan, asked, watch)
        return self._conclude(parts, plan, ran, asked, watch)

    def _count_cases(self, parts: _Parts) -> int:
        here = "cuda" if str(getattr(parts.generator, "device", "cpu")) != "cpu" else "cpu"
        n = self.cases or _CASES[here]
        starts = self.starts
        if starts is None:
            return n
        if not isinstance(parts.generator, Encodes):
            raise InvalidInput(
                f"start gives images, but the generator {parts.generator.kind} has no encoder "
                "to find their latents; use eigenfaces or vae, or start='random'"
            )
        if starts.shape[1:] != parts.shape:
            raise InvalidInput(
                f"start gives images of {starts.shape[2]} x {starts.shape[1]}, but the "
                f"generator makes {parts.shape[1]} x {parts.shape[0]}; use the same size for "
                "both"
            )
        return min(n, len(starts))

    def _conclude(
        self, parts: _Parts, plan: Plan, ran: Any, asked: Asked, watch: Watch
    ) -> ImageResult:
        planes = (ran.planes.decision, ran.planes.protected, *ran.planes.held)
        return ImageResult(
            **figures(ran, placebo=plan.placebo),
            findings=ran.findings,
            samples=ran.samples,
            n_findings=ran.n_findings,
            groups=parts.groups,
            protected=parts.protected.name,
            truth=None if parts.truth is None else parts.truth.name,
            held=tuple(one.name for one in parts.held),
            planes={plane.name: plane.auc for plane in planes},
            scorers=parts.learned,
            quality=parts.quality,
            procedure=plan.procedure,
            preset=self.preset,
            generator=parts.generator.kind,
            target=parts.target_name,
            placebo=plan.placebo,
            planted=self.plant,
            size=(plan.shape[0], plan.shape[1]),
            seed=plan.seed,
            stop=str(ran.stop),
            queries=asked.queries,
            seconds=watch.seconds,
            notes=(*parts.notes, *ran.notes),
        )

    def open(self, watch: Watch) -> _Parts:
        """Read, fit and load everything."""
        watch.enter("generator")
        pictures = self._pictures()
        held_out = target = None
        if pictures is not None:
            held_out = pictures.held_out(Stream.IMAGES.rng(self.seed, _SPLIT))
            target = self.scorer(self.target, "target", pictures.images.shape[1:])
        generator, shape = makers.open_generator(
            self.generator,
            None if pictures is None or held_out is None else pictures.images[~held_out],
            Stream.IMAGES.rng(self.seed, _FIT),
            device=self.device,
            on_step=lambda done, words: watch.step(done),
        )
        self._check_sizes(pictures, shape)
        if target is None:
            target = self.scorer(self.target, "target", shape)
        school = _School(self, pictures, held_out, generator, shape)
        protected = [school.attribute(name, given) for name, given in self.protected.items()]
        truth = [school.attribute(name, given) for name, given in self.truth.items()]
        held = [school.attribute(*item, judged=False) for item in school.held_names()]
        quality = None
        if pictures is not None and held_out is not None:
            rng = Stream.IMAGES.rng(self.seed, _QUALITY)
            quality = judge_generator(generator, pictures.images, held_out, rng)
        values = {} if pictures is None else pictures.values
        name = protected[0].name
        groups = values.get(name, (f"{name} below 0.5", f"{name} above 0.5"))
        notes = [*(() if pictures is None else pictures.notes), *school.remarks(truth)]
        return _Parts(
            target,
            generator,
            shape,
            protected[0],
            truth[0] if truth else None,
            tuple(held),
            groups,
            tuple(school.learned),
            quality,
            _name_of(self.target),
            tuple(notes),
        )

    def scorer(self, given: Any, name: str, shape: tuple[int, ...]) -> Scorer:
        return as_scorer(given, name, shape, device=self.device, trust_pickle=self.trust_pickle)

    def _check_sizes(self, pictures: Pictures | None, shape: tuple[int, ...]) -> None:
        """What is learned from images must see images of the same size."""
        if pictures is None or pictures.images.shape[1:] == shape:
            return
        height, width = pictures.images.shape[1:3]
        raise InvalidInput(
            f"the generator makes images of {shape[1]} x {shape[0]}, but those to learn from are "
            f"{width} x {height}; use the same size for both"
            + (f", with size={shape[0]} (--size {shape[0]})" if shape[0] == shape[1] else "")
        )

    def _pictures(self) -> Pictures | None:
        if self.images is None:
            if self.labelled:
                raise InvalidInput(
                    f"{self.labelled[0]!r} is only a name, and there are no images to learn "
                    "it from; give images and labels, or your own scorer: "
                    f"{{{self.labelled[0]!r}: function}}"
                )
            return None
        if isinstance(self.images, (Pictures, np.ndarray)):
            pictures = self.images if isinstance(self.images, Pictures) else Pictures(self.images)
            check_enough(len(pictures))
            return pictures
        hold = [name for name, scorer in self.hold.items() if scorer is None]
        return read_pictures(
            self.images, self.labels, names=self.labelled, hold=hold, size=self.size
        )


class _School:
    """Learns the scorers that the user has not given."""

    def __init__(
        self,
        request: _Request,
        pictures: Pictures | None,
        held_out: Any,
        generator: ImageGenerator,
        shape: tuple[int, ...],
    ) -> None:
        self.learned: list[Learned] = []
        self._request, self._pictures, self._held_out = request, pictures, held_out
        self._generator, self._shape = generator, shape
        self._faces: eigenfaces.Eigenfaces | None = None

    def held_names(self) -> list[tuple[str, Any]]:
        """What is held: one for each value where a label has several."""
        named: list[tuple[str, Any]] = []
        known = {} if self._pictures is None else self._pictures.labels
        for name, scorer in self._request.hold.items():
            several = [one for one in known if one.startswith(f"{name}=")]
            if scorer is not None or name in known or not several:
                named.append((name, scorer))
            else:
                named += [(one, None) for one in several]
        return named

    def attribute(self, name: str, given: Any, *, judged: bool = True) -> Attribute:
        """A scorer, the user's or learned, and its judge."""
        if given is None:
            scorer = self._learn(name, self._request.scorers)
        else:
            scorer = self._request.scorer(given, f"scorer of {name}", self._shape)
        return Attribute(name, scorer, self._judge(name) if judged else None)

    def remarks(self, truth: Sequence[Attribute]) -> list[str]:
        """What the report says of judges that are missing or poor."""
        notes = []
        if not truth:
            notes.append(
                "no truth was named, so what the decision should depend on may have changed along "
                "with the protected attribute"
            )
        judge = self._request.judge
        if judge == "none" or (judge is None and self._pictures is None):
            notes.append("nothing but the scorers that made the twins has judged them")
        elif isinstance(judge, Mapping):
            both = (*self._request.protected, *self._request.truth)
            notes += [
                f"nothing but the scorer that made the twins has judged {name}"
                for name in both
                if name not in judge
            ]
        poor = [one for one in self.learned if one.n_held_out and one.accuracy < 0.75]
        notes += [
            f"the {one.architecture} scorer of {one.name} is right on only "
            f"{100 * one.accuracy:.0f} % of held-out images, so its answers mean little"
            for one in poor
        ]
        return notes

    def _judge(self, name: str) -> Scorer | None:
        judge = self._request.judge
        if isinstance(judge, Mapping):
            if name not in judge:
                return None
            return self._request.scorer(judge[name], f"judge of {name}", self._shape)
        if judge == "none":
            return None
        known_labels = {} if self._pictures is None else self._pictures.labels
        return self._learn(name, judge or "edges") if name in known_labels else None

    def _learn(self, name: str, architecture: str) -> Scorer:
        pictures = self._pictures
        if pictures is None or name not in pictures.labels:
            raise InvalidInput(
                f"there are no labels for {name!r}; give a CSV file that has them, or a scorer"
            )
        both = (*self._request.protected, *self._request.truth)
        beside = [one for one in both if one != name and one in pictures.labels]
        fit = self._fit(architecture, pictures.images)
        found = attributes.learn(
            name,
            fit,
            architecture,
            pictures.images,
            pictures.labels,
            self._held_out,
            beside if name in both else (),
        )
        self.learned.append(found)
        return found.scorer

    def _fit(self, architecture: str, images: ImageArray) -> Any:
        if architecture == "edges":
            return attributes.fit_edges
        if architecture == "pixels":
            if self._faces is None:
                own = self._generator
                self._faces = (
                    own
                    if isinstance(own, eigenfaces.Eigenfaces) and own.shape == images.shape[1:3]
                    else eigenfaces.fit(images[~self._held_out], np.random.default_rng(0))
                )
            return attributes.fit_pixels(self._faces)
        from limi.images import networks

        return networks.fit_scorer(
            architecture, Stream.IMAGES.rng(self._request.seed, _FIT, 1), self._request.device
        )


def _name_of(given: Any) -> str:
    if isinstance(given, (str, Path)):
        return str(given)
    kind = getattr(given, "kind", None)
    name = getattr(given, "__name__", type(given).__name__)
    return kind if isinstance(kind, str) else str(name)


def _keys(judge: Any) -> list[str] | None:
    return None if judge is None else sorted(judge)

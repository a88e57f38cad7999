"""Study files: where they lie, and what they may say."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from lab.kinds import KINDS
from limi.errors import CorruptStore, InvalidInput, nearest

__all__ = [
    "SCALES",
    "Claim",
    "Combined",
    "Older",
    "Scale",
    "StandSpec",
    "Study",
    "TableSpec",
    "Variant",
    "folder",
    "load",
    "load_overview",
    "names",
    "paper_accuracy",
    "paper_numbers",
    "shipped_results",
]

SCALES = ("smoke", "small", "paper")
PAPER_GENERATOR = "ctgan"
_NOT_STUDIES = ("scales", "claims")
_WATCH = "watch"  # run by `python -m lab check`, no study of its own
_BENCH = "bench"  # run by `python -m lab bench`
_OTHERS = (_WATCH, _BENCH)
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")
_BUDGET = ("max_rows", "max_queries", "max_findings", "max_seconds")


@dataclass(frozen=True, kw_only=True)
class Variant:
    """What a column of a study's table runs: a method with settings, a target, a generator."""

    name: str
    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    budget: Mapping[str, float] = field(default_factory=dict)
    target: str | None = None  # None: the study's
    generator: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)  # over the scale's
    derived: bool = False  # shown beside the others, and measured by their cells
    of: str = ""  # the variant that this one is, run with the paper's generator


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """One table of a study: measures of its cells, for all variants or some."""

    title: str
    measures: tuple[str, ...]
    variants: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement that the results bear out or not, benchmark by benchmark."""

    says: str
    measure: str
    first: str
    over: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Combined:
    """How many times as much one variant reaches as another, over all benchmarks."""

    says: str
    measure: str
    pairs: tuple[tuple[str, str], ...]
    paper: float | None = None


@dataclass(frozen=True, kw_only=True)
class StandSpec:
    """A table of variants beside others, judged by the rule on each benchmark."""

    title: str
    measure: str
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Older:
    """What is known of cells of an earlier program, which lack a measure of today's."""

    says: str
    variants: tuple[str, ...]
    lacks: str


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large the cells of a study are."""

    name: str
    seeds: int
    benchmarks: tuple[str, ...]
    variants: tuple[str, ...]
    budget: Mapping[str, float]
    budgets: Mapping[str, Mapping[str, float]]  # by method
    settings: Mapping[str, Mapping[str, Any]]  # by method
    generators: Mapping[str, Mapping[str, Any]]  # settings by generator
    generator_seeds: int | None  # generators fitted; None: one per seed
    extra: Mapping[str, Any]  # of the kind, such as rows to measure on
    extras: tuple[str, ...]  # measures beside those of the study
    words: str  # what the scale means for this study


@dataclass(frozen=True, kw_only=True)
class Study:
    """A table or figure to run."""

    name: str
    title: str
    source: str  # the paper's table or figure, or that it is ours
    kind: str
    target: str
    generator: str
    benchmarks: tuple[str, ...]
    variants: tuple[Variant, ...]
    extras: tuple[str, ...]
    tables: tuple[TableSpec, ...]
    claims: tuple[Claim, ...]
    combined: tuple[Combined, ...]
    stands: tuple[StandSpec, ...]
    figure: Mapping[str, Any]
    remarks: str
    supports: tuple[str, ...]  # what the words of the remarks rest on, tried on the cells
    notes: tuple[str, ...]
    older: tuple[Older, ...]
    uses: str | None  # the study whose cells this one shows
    paper_of: str  # the study whose table of the paper its texts name; by default its own
    margins: Mapping[str, float]
    targets: Mapping[str, Mapping[str, Any]]  # definitions by benchmark, where they need any
    _scales: Mapping[str, Mapping[str, Any]] = field(repr=False)

    @property
    def planner(self) -> Study:
        """The study that plans the cells which this one shows: its own, or another's."""
        return load(self.uses) if self.uses else self

    def scale(self, name: str) -> Scale:
        """The study's own sizes over those that all studies share."""
        if name not in SCALES:
            raise InvalidInput(f"unknown scale {name!r}; {nearest(name, SCALES)}")
        given = _merge(_shared_scales().get(name, {}), self._scales.get(name, {}))
        return Scale(
            name=name,
            seeds=int(given.get("seeds", 1)),
            benchmarks=tuple(given.get("benchmarks", self.benchmarks)),
            variants=tuple(given.get("variants", self._shown(given.get("beside", False)))),
            budget=given.get("budget", {}),
            budgets=given.get("budgets", {}),
            extras=tuple(given.get("extras", ())),
            settings=given.get("settings", {}),
            generators=given.get("generators", {}),
            generator_seeds=given.get("generator_seeds"),
            extra=given.get("extra", {}),
            words=given.get("words", ""),
        )

    def _shown(self, beside: bool) -> tuple[str, ...]:
        """The variants of a scale; those with the paper's generator where it is worth training."""
        return tuple(variant.name for variant in self.variants if beside or not variant.of)

    def variant(self, name: str) -> Variant:
        """A variant by its name."""
        return next(variant for variant in self.variants if variant.name == name)

    def is_one_draw(self, name: str) -> bool:
        """Is it the model before all training, one for all seeds? A study of the ways of `limi
        repair` (`how`) trains one for each seed, on the rows that the seed does not hold out."""
        trains_anew = any("how" in variant.extra for variant in self.variants)
        return self.variant(name).derived and not trains_anew

    def beside(self, name: str) -> str:
        """The variant that is this one run with the paper's generator; "" where there is none."""
        return next((v.name for v in self.variants if v.of and v.of == name), "")


def folder() -> Path:
    """Where the study files lie."""
    return Path(__file__).parent / "studies"


def shipped_results() -> Path:
    """The results that are kept with the studies."""
    return folder() / "results"


def names() -> list[str]:
    """Every study, in the order of the paper, ours last."""
    order = tomllib.loads((folder() / "scales.toml").read_text(encoding="utf-8"))["order"]
    found = {path.stem for path in folder().glob("*.toml")} - {*_NOT_STUDIES, *_OTHERS}
    return [*(n for n in order if n in found), *sorted(found - set(order))]


@cache
def load(name: str) -> Study:
    """A study by its name."""
    path = folder() / f"{name}.toml"
    if name not in _OTHERS and name not in names():
        raise InvalidInput(f"there is no study {name!r}; {nearest(name, names())}")
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
        return _study(name, tree)
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise CorruptStore(f"the study file {path.name!r} cannot be read: {error}") from None


@cache
def paper_numbers(name: str) -> dict[str, dict[str, dict[str, float]]]:
    """The paper's numbers of a study: measure, benchmark, variant; empty where it gives none."""
    path = folder() / "paper" / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


@cache
def load_overview() -> dict[str, Any]:
    """The texts of the overview and the pages behind it."""
    tree = tomllib.loads((folder() / "claims.toml").read_text(encoding="utf-8"))
    texts = ("head", "rule_in_short", "conclusions", "rule", "not_reproduced", "conditions")
    return {name: tree[name] for name in texts}


def paper_accuracy() -> dict[str, float]:
    """Accuracy of the paper's networks on the rows they were trained on."""
    found = paper_numbers("repair-dnn")["accuracy"]
    return {name.partition("-")[0]: values["before"] for name, values in found.items()}


@cache
def _shared_scales() -> dict[str, Any]:
    tree = tomllib.loads((folder() / "scales.toml").read_text(encoding="utf-8"))
    return {name: tree[name] for name in SCALES}


def _study(name: str, tree: Mapping[str, Any]) -> Study:
    uses = tree.get("uses")
    base = load(uses) if uses else None
    targets = _read_targets(name, tree["files"]) if tree.get("kind") == "bench" else {}
    variants = tuple(_variant(v) for v in tree.get("variants", ())) or tuple(
        Variant(name=m, label=m, method=m) for m in tree.get("methods", ())
    )
    if base is not None and not variants:
        variants = base.variants
    variants += tuple(_beside(v) for v in variants if v.name in tree.get("beside", ()))
    for variant in variants:
        if not _NAME.fullmatch(variant.name):
            raise KeyError(f"variant {variant.name!r} needs a name of a-z, 0-9, + . -")
        unknown = set(variant.budget) - set(_BUDGET)
        if unknown:
            raise KeyError(f"variant {variant.name!r} has a budget of {sorted(unknown)}")
    figure = tree.get("figure", {})
    unknown = _name_drawn(figure) - {variant.name for variant in variants}
    if unknown:
        raise KeyError(f"its figure names variants that it does not have: {sorted(unknown)}")
    paper_of = tree.get("paper_of", name)
    if paper_of != name and not paper_numbers(paper_of):
        raise KeyError(f"there is no table of the paper for {paper_of!r}")
    kind = tree["kind"] if base is None else base.kind
    if kind not in KINDS.names():
        raise KeyError(f"kind {kind!r} is none of {KINDS.names()}")
    return Study(
        name=name,
        title=tree["title"],
        source=tree["source"],
        kind=kind,
        target=tree.get("target", base.target if base else "dnn"),
        generator=tree.get("generator", "trees"),
        benchmarks=tuple(tree.get("benchmarks", base.benchmarks if base else targets)),
        variants=variants,
        extras=tuple(tree.get("extras", ())),
        tables=tuple(
            TableSpec(
                title=t.get("title", ""),
                measures=tuple(t["measures"]),
                variants=tuple(t.get("variants", ())),
            )
            for t in tree["tables"]
        ),
        claims=tuple(Claim(**{**c, "over": tuple(c["over"])}) for c in tree.get("claims", ())),
        combined=tuple(
            Combined(**{**c, "pairs": tuple((a, b) for a, b in c["pairs"])})
            for c in tree.get("combined", ())
        ),
        stands=tuple(
            StandSpec(
                title=t["title"],
                measure=t["measure"],
                pairs=tuple((a, b) for a, b in t["pairs"]),
            )
            for t in tree.get("stands", ())
        ),
        figure=figure,
        remarks=tree.get("remarks", "").strip(),
        supports=tuple(tree.get("supports", ())),
        notes=tuple(tree.get("notes", ())),
        older=tuple(
            Older(**{**one, "variants": tuple(one["variants"])}) for one in tree.get("older", ())
        ),
        uses=uses,
        paper_of=paper_of,
        margins=tree.get("margins", {}),
        targets=targets,
        _scales=tree.get("scales", {}),
    )


def _name_drawn(figure: Mapping[str, Any]) -> set[str]:
    """The variants that a figure names: those with letters, on its line and of its curves."""
    curves = figure.get("curves")
    of_curves = curves.get("variants", ()) if isinstance(curves, Mapping) else ()
    return {*figure.get("marks", ()), *figure.get("line", ()), *of_curves}


def _read_targets(name: str, files: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The definitions that lie in a folder called like the study, file by file."""
    from lab.targets import definitions  # late, because recipes bring much along

    read = [definitions.read(folder() / name / f"{file}.toml") for file in files]
    return {spec.name: spec.tree() for one in read for spec in one.targets}


def _beside(variant: Variant) -> Variant:
    """The same with the generator of the paper."""
    return replace(
        variant,
        name=f"{variant.name}.{PAPER_GENERATOR}",
        label=f"{variant.label}, CTGAN",
        generator=PAPER_GENERATOR,
        of=variant.name,
    )


def _variant(given: Mapping[str, Any]) -> Variant:
    return Variant(**{"label": given["name"], "method": given["name"], **given})


def _merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Tables joined key by key, down to the leaves; the upper one wins."""
    joined = dict(lower)
    for key, value in upper.items():
        below = joined.get(key)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        joined[key] = _merge(below, value) if both else value  # type: ignore[arg-type]
    return joined


def check_names(given: Sequence[str]) -> list[str]:
    """Names of studies as the command line gives them; `all` is every one."""
    if not given:
        raise InvalidInput(f"name a study, or 'all'; {nearest('', names())}")
    wanted = names() if "all" in given else list(dict.fromkeys(given))
    for name in wanted:
        load(name)
    return wanted

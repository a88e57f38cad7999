"""Cells: what a study runs, one benchmark, variant and seed each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from lab.files import Scale, Study, Variant, load
from lab.targets import revision as revision_of_recipe
from lab.targets.definitions import read_target
from limi import generators, methods
from limi.audits.run_folder import digest, versions
from limi.search.method import revision as revision_of_method

__all__ = ["Cell", "expand", "tools"]

FORMAT = 1  # of what a cell measures; a higher one has all cells run again
_TOOLS = ("limi", "numpy", "scikit-learn", "torch")


@cache
def tools() -> dict[str, str | None]:
    """Versions of what computes cells; they are looked up once, which takes a while."""
    known = versions()
    return {name: known.get(name) for name in _TOOLS}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run of a study; it depends on nothing but its fields."""

    study: str
    scale: str
    kind: str
    benchmark: str  # TABLE, TABLE-COLUMN or TABLE-COLUMN+COLUMN
    variant: str
    seed: int
    target: str
    target_seed: int
    method: str
    settings: Mapping[str, Any]
    budget: Mapping[str, float]
    generator: str | None
    generator_settings: Mapping[str, Any]
    generator_seed: int
    extras: tuple[str, ...]
    extra: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What a results file calls it."""
        return f"{self.benchmark}/{self.variant}/{self.seed}"

    @property
    def file_name(self) -> str:
        """Of its own result; the parts of a name hold no slash and no space."""
        return f"{self.benchmark}.{self.variant}.{self.seed}.json"

    @property
    def table(self) -> str:
        """The table that is tested."""
        given = self.extra.get("definition")
        return str(given["table"]) if given else self.benchmark.partition("-")[0]

    @property
    def protected(self) -> tuple[str, ...]:
        """The columns that are protected; the first usual one where the benchmark names none."""
        given = self.benchmark.partition("-")[2]
        return tuple(given.split("+")) if given else ()

    @property
    def revision(self) -> int:
        """Of its method, as it is now."""
        return revision_of_method(methods.parse(self.method, self.settings))

    @property
    def given(self) -> dict[str, Any]:
        """What a reader needs to know of it beside its name, wherever it is run."""
        tree: dict[str, Any] = {"target": self.target, **self.budget}
        if self.settings:
            tree["settings"] = dict(self.settings)
        if self.generator is not None:
            tree["generator"] = self.generator
            if self.generator_settings:
                tree["generator_settings"] = dict(self.generator_settings)
        return tree

    def digest(self) -> str:
        """sha256 of everything that the result depends on by design, so that a changed cell is run
        again: its fields, the method's own defaults, and the revisions of what takes part.

        Versions of libraries are not among it. What a search finds is meant to be the same with
        each of them, and a cell that was run with another numpy is as good a result; `made` of the
        kept results says with which.
        """
        config = dataclasses.asdict(self)
        for name in ("study", "scale", "variant"):  # names, which change nothing
            del config[name]
        revisions = {"method": self.revision}
        if self.generator is not None:
            revisions["generator"] = generators.offers(self.generator).revision
        if "definition" in self.extra:
            spec = read_target(self.extra["definition"])
            config["extra"] = {**self.extra, "definition": spec.identity()}
            revisions["recipe"] = revision_of_recipe(spec.recipe)
        method = methods.parse(self.method, self.settings)
        config |= {
            "format": FORMAT,
            "resolved": _resolve(method),
            "revisions": revisions,
        }
        return digest(json.dumps(config, sort_keys=True, default=str).encode())


_GONE: Mapping[str, Mapping[str, Any]] = {
    "ADF": {"protected_range": "schema"},
    "Aequitas": {"start": "domain", "objective": "flips", "reward": "flips"}
    | {"move_protected": False},
    "ExpGA": {"pool": "table", "fitness": "scores", "crossover": "exchange", "mutation": "whole"},
    "NeuronFair": {"scoring": "difference", "walk": "momentum", "protected_range": "schema"},
    "SG": {"ranks": "paper", "ties": "age", "solver": "intervals"},
    "Themis": {"bound": "exact"},
    "VBTX": {"thresholds": "floor", "differ": "any", "swapped": "count", "repeats": False},
}
"""Settings that methods had when cells were run, as they were: kept results are known by them."""


def _resolve(method: Any) -> dict[str, Any]:
    """Every setting of a method, and of the parts of a pair."""
    fields = {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}
    return {**_GONE.get(type(method).__name__, {})} | {
        name: _resolve(value) if dataclasses.is_dataclass(value) else value
        for name, value in fields.items()
    }


def expand(study: Study, scale: str, seeds: int | None = None) -> list[Cell]:
    """Every cell of a study at a scale, benchmark by benchmark."""
    if study.uses:
        return expand(load(study.uses), scale, seeds)
    size = study.scale(scale)
    return [
        _cell(study, size, benchmark, study.variant(variant), seed)
        for benchmark in size.benchmarks
        for variant in size.variants
        if not study.variant(variant).derived
        for seed in range(size.seeds if seeds is None else seeds)
    ]


def _cell(study: Study, size: Scale, benchmark: str, variant: Variant, seed: int) -> Cell:
    method = variant.method
    settings = {**_settings(size, method), **variant.settings}
    generator = None
    if "generator" in methods.parse(method, settings).needs:
        generator = variant.generator or study.generator
    budget = {**size.budget, **size.budgets.get(method, {}), **variant.budget}
    fitted = seed if size.generator_seeds is None else seed % size.generator_seeds
    extra = {**size.extra, **variant.extra}
    if study.targets:
        extra = {"budgets": _budgets(extra, benchmark, seed)}
        extra["definition"] = study.targets[benchmark]
    return Cell(
        study=study.name,
        scale=size.name,
        kind=study.kind,
        benchmark=benchmark,
        variant=variant.name,
        seed=seed,
        target=variant.target or study.target,
        target_seed=0,
        method=method,
        settings=settings,
        budget={name: most for name, most in budget.items() if most},
        generator=generator,
        generator_settings=size.generators.get(generator, {}) if generator else {},
        generator_seed=fitted if generator else 0,
        extras=(*study.extras, *size.extras),
        extra=extra,
    )


def _budgets(extra: Mapping[str, Any], benchmark: str, seed: int) -> list[int]:
    """Those of a cell of the benchmark: the largest are for the first seeds of some targets."""
    given = list(extra["budgets"])
    named = any(fnmatchcase(benchmark, pattern) for pattern in extra.get("deep_targets", ["*"]))
    return given + list(extra["deep"]) if named and seed < extra.get("deep_seeds", 0) else given


def _settings(size: Scale, method: str) -> dict[str, Any]:
    """Settings of a method at a scale; those of a pair are its own and its parts'."""
    settings: dict[str, Any] = {}
    if "+" in method:
        for part in method.split("+"):
            settings |= {f"{part}.{k}": v for k, v in size.settings.get(part, {}).items()}
    return settings | dict(size.settings.get(method, {}))

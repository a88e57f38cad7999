"""Cells: what a study runs, one benchmark, variant and seed each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from limi import methods
from limi.audits.run_folder import digest, versions
from limi.studies._files import Scale, Study, Variant, load

__all__ = ["Cell", "expand", "tools"]

FORMAT = 1  # of what a cell measures; a higher one makes older results stale
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

    def digest(self) -> str:
        """sha256 of everything that the result depends on, so that a changed cell is stale."""
        config = dataclasses.asdict(self)
        for name in ("study", "scale", "variant"):  # names, which change nothing
            del config[name]
        # A method's own defaults count as well as the settings that the study gives.
        resolved = dataclasses.asdict(methods.parse(self.method, self.settings))  # type: ignore[call-overload]
        config |= {
            "format": FORMAT,
            "resolved": resolved,
            "versions": tools(),
        }
        return digest(json.dumps(config, sort_keys=True, default=str).encode())


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


def _settings(size: Scale, method: str) -> dict[str, Any]:
    """Settings of a method at a scale; those of a pair are its own and its parts'."""
    settings: dict[str, Any] = {}
    if "+" in method:
        for part in method.split("+"):
            settings |= {f"{part}.{k}": v for k, v in size.settings.get(part, {}).items()}
    return settings | dict(size.settings.get(method, {}))

"""The benchmark with targets and methods of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.files import Study, Variant, load
from lab.targets import definitions
from limi.errors import InvalidInput

__all__ = ["extend", "load_bench"]


def load_bench(added: Sequence[Path] = ()) -> Study:
    """The benchmark as it ships, and what these files of definitions add."""
    study = load("bench")
    for path in added:
        study = extend(study, definitions.read(path))
    return study


def extend(study: Study, added: definitions.Definitions) -> Study:
    """A study with more targets and methods; a name that is taken is an error.

    What is added is run at every scale, beside the scale's own targets and methods.
    """
    targets: dict[str, Mapping[str, Any]] = dict(study.targets)
    for spec in added.targets:
        if spec.name in targets:
            raise InvalidInput(f"there is a target {spec.name!r} already; give yours another name")
        targets[spec.name] = spec.tree()
    known = {variant.name for variant in study.variants}
    for one in added.methods:
        if one.name in known:
            raise InvalidInput(f"there is a method {one.name!r} already; give yours another name")
    variants = tuple(
        Variant(name=one.name, label=one.name, method=one.method, settings=one.settings)
        for one in added.methods
    )
    return replace(
        study,
        targets=targets,
        benchmarks=tuple(targets),
        variants=(*study.variants, *variants),
        _scales={
            name: _add(scale, [spec.name for spec in added.targets], [v.name for v in variants])
            for name, scale in study._scales.items()
        },
    )


def _add(scale: Mapping[str, Any], targets: list[str], methods: list[str]) -> dict[str, Any]:
    """A scale that names its targets or methods, with those that are added."""
    more = {"benchmarks": targets, "variants": methods}
    grown = {key: [*scale[key], *names] for key, names in more.items() if key in scale}
    return {**scale, **grown}

"""The same people under every value, as a report shows it: who is favored, column by column.

Decisions are those of a rate's sample, which no search has chosen: every row under every value of a
column, with all else as it is. For the findings of a search there are counts alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.metrics import what_if as metrics
from limi.metrics.individual import Rate
from limi.search.check import Checked
from limi.search.findings import Found
from limi.table.schema import Schema
from limi.types import Index, Mask

__all__ = ["AsIf", "Versus", "WhatIf", "favorable_findings", "in_regions", "what_ifs"]

POPULATIONS = ("held-out", "real", "natural")  # uniform rows are not people
_FEWEST_FOR_A_CURVE = 3


@dataclass(frozen=True)
class AsIf:
    """How often the same people are decided favorably as if they had a value."""

    value: str  # "Male"; with several columns "sex Male, race White"
    rate: Rate
    at: float | None = None  # the value of a number


@dataclass(frozen=True)
class Versus:
    """Two values, and how the same people are decided under both."""

    favored: str  # the one that more of them are decided favorably under
    disfavored: str
    only_favored: int  # people decided favorably as the favored value and not as the other
    only_disfavored: int
    difference: float
    low: float
    high: float
    p_value: float  # McNemar's, exact
    corrected: float  # for all comparisons of the report
    supported: bool  # beyond what chance explains? Only then may anyone be called favored


@dataclass(frozen=True)
class WhatIf:
    """The same people of a population under every value of a column, or of several together."""

    population: str
    columns: tuple[str, ...]
    n: int
    values: tuple[AsIf, ...]
    pairs: tuple[Versus, ...]  # widest first; of very many the supported ones alone
    n_pairs: int
    n_supported: int
    q: float  # Cochran's
    q_p_value: float
    curve: bool = False  # of a number: intervals of the rates are a band that holds as a whole

    @property
    def favored(self) -> tuple[Versus, ...]:
        """Pairs of which one is favored beyond what chance explains, widest first."""
        return tuple(pair for pair in self.pairs if pair.supported)


def what_ifs(
    schema: Schema, samples: Mapping[str, Checked], *, regions: bool, questions: int = 1
) -> tuple[WhatIf, ...]:
    """For each population of people the columns alone, and with several of them all together.

    A report of `questions` shows so many of these tables.
    """
    known = [name for name in POPULATIONS if name in samples and len(samples[name])]
    n_families = families(schema, samples, regions=regions, questions=questions)
    told = []
    for name in known:
        for place, decided in enumerate(samples[name].as_if):
            labels = _Labels.of(schema, place)
            (compared,) = metrics.compare_values(
                [decided], families=n_families, together=[labels.curve]
            )
            told.append(labels.told(name, compared))
    return tuple(told)


def families(
    schema: Schema, samples: Mapping[str, Checked], *, regions: bool, questions: int = 1
) -> int:
    """How many families of comparisons a report has; all its regions are one."""
    columns = len(schema.protected)
    tables = columns + (columns > 1)
    n_samples = sum(name in samples and len(samples[name]) > 0 for name in POPULATIONS)
    return questions * tables * n_samples + regions


def in_regions(
    schema: Schema,
    population: str,
    sample: Checked,
    masks: Sequence[Mask | Index],
    *,
    n_families: int,
) -> list[WhatIf | None]:
    """For the people of each region the column that tells them apart most, or the only one.

    None where there are several columns and none of them is supported.
    """
    n_columns = len(schema.protected)
    tables = [sample.as_if[place][mask] for mask in masks for place in range(n_columns)]
    labels = [_Labels.of(schema, place) for place in range(n_columns)]
    compared = metrics.compare_values(
        tables, families=n_families, together=[label.curve for label in labels] * len(masks)
    )
    told: list[WhatIf | None] = []
    for number in range(len(masks)):
        mine = compared[number * n_columns : (number + 1) * n_columns]
        here = [label.told(population, one) for label, one in zip(labels, mine, strict=True)]
        widest = max(here, key=lambda one: max([p.difference for p in one.favored], default=0.0))
        told.append(widest if n_columns == 1 or widest.favored else None)
    return told


def favorable_findings(schema: Schema, found: Found) -> dict[str, int]:
    """How many findings are decided favorably under each combination; empty if not all were asked.

    Counts and no more: a search went looking for these rows.
    """
    if not len(found) or len(found.bits) != len(found):
        return {}
    n_combinations = len(schema.combinations)
    counts = np.unpackbits(found.bits, axis=1, count=n_combinations).sum(axis=0, dtype=np.int64)
    labels = _Labels.of(schema, len(schema.protected) if len(schema.protected) > 1 else 0)
    return dict(zip(labels.words, counts.tolist(), strict=True))


@dataclass(frozen=True)
class _Labels:
    """What the columns of a table of decisions are called."""

    columns: tuple[str, ...]
    words: tuple[str, ...]
    numbers: tuple[float, ...] | None  # of a number
    curve: bool

    @staticmethod
    def of(schema: Schema, place: int) -> _Labels:
        """Of the protected column at a place; behind the last, of all together."""
        if place == len(schema.protected):
            words = tuple(_combination(schema, codes) for codes in schema.combinations)
            return _Labels(schema.protected, words, None, False)
        name, codes = schema.protected[place], schema.protected_codes[place]
        number = schema[name].kind == "numerical"
        return _Labels(
            (name,),
            tuple(map(schema[name].show, codes)),
            tuple(codes) if number else None,
            number and len(codes) >= _FEWEST_FOR_A_CURVE,
        )

    def told(self, population: str, compared: metrics.Comparison) -> WhatIf:
        """The comparison in words."""
        numbers = self.numbers or [None] * len(self.words)
        return WhatIf(
            population,
            self.columns,
            compared.n,
            tuple(map(AsIf, self.words, compared.rates, numbers)),
            tuple(
                Versus(
                    self.words[pair.first],
                    self.words[pair.second],
                    pair.only_first,
                    pair.only_second,
                    pair.difference,
                    pair.low,
                    pair.high,
                    pair.p_value,
                    pair.corrected,
                    pair.supported,
                )
                for pair in compared.pairs
            ),
            compared.n_pairs,
            compared.n_supported,
            compared.q,
            compared.q_p_value,
            self.curve,
        )


def _combination(schema: Schema, codes: NDArray[np.float64]) -> str:
    named = zip(schema.protected, codes, strict=True)
    return ", ".join(f"{name} {schema[name].show(float(code))}" for name, code in named)

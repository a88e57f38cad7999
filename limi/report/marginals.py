"""Real and generated rows side by side, column by column, as one small self-contained page."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from limi.report import _pages
from limi.table.schema import Column, Schema
from limi.types import Rows

__all__ = ["render"]

_MOST_BARS = 14


@dataclass(frozen=True)
class Bar:
    """One value, or bin of values, with its share of both tables."""

    words: str
    real: float
    generated: float


def render(
    title: str, schema: Schema, real: Rows, generated: Rows, figures: Mapping[str, Any]
) -> str:
    """The page; every cell is escaped, and nothing is asked for from outside."""
    columns = [
        (column, bars(column, real[:, place], generated[:, place]))
        for place, column in enumerate(schema.columns)
    ]
    return _pages.render(
        "marginals.html",
        ("marginals",),
        title=title,
        columns=columns,
        figures={name.replace("_", " "): value for name, value in figures.items()},
    )


def bars(column: Column, real: Any, generated: Any) -> list[Bar]:
    """Shares of a column's values: its most frequent levels, or bins of a number."""
    if column.kind == "numerical" and not 0 < column.size <= _MOST_BARS:
        known = real[~np.isnan(real)]
        edges = np.histogram_bin_edges(known, bins=_MOST_BARS - 2)
        names = [f"{a:.4g} to {b:.4g}" for a, b in itertools.pairwise(edges)]
        counted = [np.histogram(cells[~np.isnan(cells)], edges)[0] for cells in (real, generated)]
    else:
        codes = np.unique(real[~np.isnan(real)])
        counts = np.array([(real == code).sum() for code in codes])
        codes = codes[np.sort(np.argsort(-counts, kind="stable")[:_MOST_BARS])]
        names = [column.show(float(code)) for code in codes]
        counted = [np.array([(c == code).sum() for code in codes]) for c in (real, generated)]
    shares = [counts / len(cells) for counts, cells in zip(counted, (real, generated), strict=True)]
    found = [Bar(name, float(a), float(b)) for name, a, b in zip(names, *shares, strict=True)]
    if column.missing:
        gaps = [float(np.isnan(cells).mean()) for cells in (real, generated)]
        found.append(Bar("missing", *gaps))
    return found

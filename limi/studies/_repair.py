"""Repair cells: a search, the target trained again with its findings, and figures of both.

The paper's protocol in the pieces of `limi.repairs`: all rows are trained on and measured on, and
the model before is the target itself. `limi repair` holds rows out and checks anew by other means;
a table of many cells that stands beside the paper's does neither.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from limi import data
from limi.errors import InvalidInput
from limi.repairs import (
    PRESETS,
    Ensemble,
    Figures,
    Training,
    Yardstick,
    fit_ensemble,
    groups,
    mix_rows,
    refit_of,
)
from limi.studies._cells import Cell
from limi.studies._search import search_cell
from limi.studies._workshop import Workshop, natural_people, rows_of

__all__ = ["measure_repair"]

_RATE_ROWS = 20_000
# The paper's names of what `limi.repairs` measures.
_NAMES = {
    "accuracy": "training_accuracy",
    "if_r": "uniform",
    "if_o": "real",
    "if_n": "natural",
    "spd": "spd",
    "aod": "aod",
}


def measure_repair(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """The target's figures before and after."""
    found = search_cell(cell, shop)
    problem, findings = found.problem, found.found
    if not len(findings):
        raise InvalidInput(f"{cell.method} found nothing to train {cell.target} again with")
    preset = replace(
        PRESETS[str(cell.extra.get("preset", "paper"))],
        **{name: cell.extra[name] for name in ("recipe", "fraction") if name in cell.extra},
    )
    chosen_groups = groups(problem, "lowest")
    assert problem.labels is not None
    known = np.flatnonzero(problem.labels >= 0)
    training = Training(problem.schema, problem.rows[known], problem.labels[known])
    mix = mix_rows(
        preset,
        training,
        findings,
        problem.target.score,
        ensemble=lambda: _blind_ensemble(cell.table),
        privileged=chosen_groups.codes(problem.schema),
        rng=np.random.default_rng([cell.seed, 13]),
    )
    fitted = refit_of(problem)(mix.rows, mix.labels, cell.seed)
    size = int(cell.extra.get("rate_rows", _RATE_ROWS))
    people = natural_people(cell.table)
    yardstick = Yardstick.make(problem, chosen_groups, people, size, np.random.default_rng(11))
    nothing = np.empty(0, dtype=np.intp)
    before, after = (
        _figures(yardstick.figures(target, known, nothing, None))
        for target in (problem.target, fitted.target)
    )
    return {
        **after,
        "before": before,
        "findings": len(findings),
        "added": len(mix.rows) - len(known),
        "real_rate": before["if_o"],
    }


@lru_cache(maxsize=1)
def _blind_ensemble(table: str) -> Ensemble:
    """Models that see no protected column of a table; the same for all of its benchmarks."""
    known = data.load(table)
    schema, rows = rows_of(table)
    labels = (known.frame[known.target].to_numpy() == known.favorable).astype(np.int8)
    return fit_ensemble(rows, labels, schema, blind_to=known.protected)


def _figures(given: Figures) -> dict[str, float | None]:
    found = {name: given[figure].value for name, figure in _NAMES.items()}
    return {name: None if value is None else round(value, 5) for name, value in found.items()}

"""Repair cells: the target repaired, and figures of both.

Most follow the paper's protocol in the pieces of `limi.repairs`: all rows are trained on and
measured on, and the model before is the target itself. Cells that name a way (`how`) follow that of
`limi repair`: their seed holds out some rows, the model before is trained on the others, and what
is right is counted on those held out. None is checked again by other means, as `limi repair` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

import numpy as np

from lab import models as benchmark
from lab.cells import Cell
from lab.kinds._search import search_cell
from lab.workshop import Workshop, natural_people, rows_of
from lab.yardstick import Yardstick
from limi import data
from limi.audits.problem import Problem
from limi.errors import InvalidInput
from limi.metrics._populations import check_population
from limi.models.target import Target
from limi.repairs import (
    PRESETS,
    Comparison,
    Ensemble,
    Figures,
    MixedTable,
    Settings,
    Steps,
    Training,
    Work,
    choose_preset,
    copy_under_others,
    fit_ensemble,
    groups,
    mix_rows,
    refit_of,
    try_out,
)
from limi.search.findings import Findings, Found
from limi.types import Index, Rows, Truth

__all__ = ["measure"]

CONTROL = "anew"  # the recipe that adds nothing: another plain training (of "none" cells are older)
_PRESET = ("recipe", "label", "fraction")
_RATE_ROWS = 20_000
COPIES = "copies"  # the recipe of training rows under other protected values, without findings
# How cells call the recipes of `limi.repairs`, from which their digests are made.
_RECIPES = {"pairs": "both", "copies+pairs": "both+table"}
# The paper's names of what `limi.repairs` measures.
_SIDE_BY_SIDE = {
    "held_out": "accuracy",
    "auc": "auc",
    "calibration": "calibration",
    "favored": "favorable",
    "if_o": "real",
    "if_n": "natural",
    "twin_rate": "twins",
    "spd": "spd",
    "opportunity": "opportunity",
}
_PEOPLE = 5_000  # asked about by every model
_QUESTIONS = 200_000  # for one rate
_HELD_OUT = 0.3


def measure(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """The target's figures before and after."""
    if "how" in cell.extra:
        return _measure_way(cell, shop)
    if _is_control(cell):
        # The same training without any finding: what another seed alone changes.
        problem = shop.problem(cell)
        findings = Findings(problem.schema).all()
    else:
        found = search_cell(cell, shop)
        problem, findings = found.problem, found.found
        if not len(findings):
            raise InvalidInput(f"{cell.method} found nothing to train {cell.target} again with")
    mix, known = _mix(cell, problem, findings)
    target = _train(cell, problem, mix.rows, mix.labels)
    chosen_groups = groups(problem, "lowest")
    size = int(cell.extra.get("rate_rows", _RATE_ROWS))
    people = natural_people(cell.table)
    yardstick = Yardstick.make(problem, chosen_groups, people, size, np.random.default_rng(11))
    before, after = (
        _round(yardstick.measure(one, known)) | {"if_m": _shuffled_rate(problem, one, size)}
        for one in (problem.target, target)
    )
    return {
        **after,
        "before": before,
        "findings": len(findings),
        "added": len(mix.rows) - len(known),
        "real_rate": before["if_o"],
    }


def _is_control(cell: Cell) -> bool:
    return cell.extra.get("recipe") == CONTROL


def _mix(cell: Cell, problem: Problem, findings: Found) -> tuple[MixedTable, Index]:
    """What to train on, and which rows of the table have a label."""
    assert problem.labels is not None
    known = np.flatnonzero(problem.labels >= 0)
    training = Training(problem.schema, problem.rows[known], problem.labels[known])
    if _is_control(cell):
        return MixedTable(training.rows, training.labels, 0, len(known)), known
    rng = np.random.default_rng([cell.seed, 13])
    given = {name: cell.extra[name] for name in _PRESET if name in cell.extra}
    if given.get("recipe") == COPIES:
        added = copy_under_others(training, rng)
        rows = np.concatenate([training.rows, *(rows for rows, _ in added)])
        labels = np.concatenate([training.labels, *(labels for _, labels in added)])
        return MixedTable(rows, labels, 0, len(known)), known
    if "recipe" in given:
        given["recipe"] = _RECIPES.get(given["recipe"], given["recipe"])
    mixed = mix_rows(
        replace(PRESETS[str(cell.extra.get("preset", "paper"))], **given),
        training,
        findings,
        problem.target.score,
        ensemble=lambda: _blind_ensemble(cell.table),
        privileged=groups(problem, "lowest").codes(problem.schema),
        rng=rng,
    )
    return mixed, known


def _train(cell: Cell, problem: Problem, rows: Rows, labels: Truth) -> Target:
    """The target trained from scratch, by another schedule where the cell says so."""
    # With the target's own seed a control would be the target again.
    seed = cell.seed + (_is_control(cell) and cell.seed >= cell.target_seed)
    if not {"length", "epochs"} & set(cell.extra):
        return refit_of(problem)(rows, labels, seed).target
    model = cast("benchmark.BenchmarkModel", problem.target.model)
    present = problem.target.present
    made = benchmark.fit(
        model.info.kind,
        present(rows),
        (labels if model.favorable_column == 1 else 1 - labels).astype(np.int8),
        columns=model.columns,
        seed=seed,
        grown_from=len(problem.rows),
        schedule=benchmark.Schedule(cell.extra.get("length"), cell.extra.get("epochs")),
    )
    return replace(problem.target, model=replace(made, favorable_column=model.favorable_column))


def _shuffled_rate(problem: Problem, target: Target, n: int) -> float:
    """Flips of rows whose columns are the table's, each shuffled by itself: values that occur, in
    combinations that need not."""
    rng = np.random.default_rng(12)
    places = rng.integers(0, len(problem.rows), (n, problem.rows.shape[1]))
    rows = np.take_along_axis(problem.rows, places, axis=0)
    _, rate = check_population(target.score, problem.schema, rows, target.rule)
    return round(rate.estimate, 5)


def _measure_way(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """Figures before and after one of the ways of `limi repair`, by one of its seeds."""
    how = str(cell.extra["how"])
    problem = shop.problem(cell)
    learns = how == "findings"
    found = search_cell(cell, shop).found if learns else Findings(problem.schema).all()
    preset = str(cell.extra.get("preset", "best"))
    settings = Settings(
        preset,
        choose_preset(preset, recipe=None, label=None, fraction=None),
        seeds=1 + cell.seed,
        seed=0,
        held_out=_HELD_OUT,
        max_accuracy_loss=0.01,
    )
    chosen = groups(problem, "lowest")
    work = Work(
        problem,
        found,
        settings,
        refit_of(problem),
        chosen,
        chosen.codes(problem.schema),
        test=None,
        steps=Steps(1, lambda done, words: None),
    )
    size = int(cell.extra.get("rate_rows", _PEOPLE))
    rng = np.random.default_rng(11)
    people = Comparison.make(problem, chosen, natural_people(cell.table), size, rng)
    before, after = (
        _name(figures, _SIDE_BY_SIDE)
        for figures in try_out(work, how, replace(people, questions=_QUESTIONS), cell.seed)
    )
    return {**after, "before": before, "findings": len(found)}


@lru_cache(maxsize=1)
def _blind_ensemble(table: str) -> Ensemble:
    """Models that see no protected column of a table; the same for all of its benchmarks."""
    known = data.load(table)
    schema, rows = rows_of(table)
    labels = (known.frame[known.target].to_numpy() == known.favorable).astype(np.int8)
    return fit_ensemble(rows, labels, schema, blind_to=known.protected)


def _name(given: Figures, names: Mapping[str, str]) -> dict[str, float | None]:
    """Figures by the names of a study's measures."""
    return _round({name: given[figure].value for name, figure in names.items()})


def _round(found: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 5) for name, value in found.items()}

"""Searches: what is measured of them and of their findings."""

from __future__ import annotations

import math
import statistics
import time
from typing import Any

import numpy as np

from lab.cells import Cell
from lab.kinds._places import favorable_on_plane, place_rows
from lab.kinds._search import search_cell
from lab.workshop import Workshop
from limi.metrics._enough import FEWEST_TO_JUDGE
from limi.metrics._rate import clopper_pearson
from limi.metrics._space import nearest
from limi.metrics.diversity import distinct_cells, pairwise_distance, share_one_apart
from limi.metrics.effectiveness import findings_per_second, findings_per_thousand_queries
from limi.metrics.naturalness import (
    MOST_ALIKE,
    Classifier,
    Definition,
    average_tabular_naturalness,
    most_alike,
    naturalness_at,
    two_sample_auc,
)
from limi.metrics.representative import representative
from limi.metrics.row_naturalness import judge_by_distance
from limi.search.engine import Run
from limi.table.schema import Schema
from limi.types import Rows

__all__ = ["measure"]

_DETECTED = 4_000  # rows of either side that a classifier has to tell apart
_ONE_BY_ONE = 300  # rows of the plain loop that a search's speed is measured by
_JUDGED = 5_000  # findings of which the plausible ones are counted
_DRAWS = 10  # sets of findings whose ATN is averaged, as the paper does
_DISTANCES = 2_000  # findings whose nearest real row is looked for
_DEFINITIONS: dict[str, Definition] = {"": "paper", "_07": "sdmetrics-0.7", "_032": "sdmetrics"}


def measure(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """What a search finds, how fast, and how natural and different its findings are."""
    return _placed(cell, shop) if "place" in cell.extra else _search(cell, shop)


def _search(cell: Cell, shop: Workshop) -> dict[str, Any]:
    search = search_cell(cell, shop)
    problem, ran, rows = search.problem, search.run, search.rows
    schema, real = problem.schema, problem.rows
    rng = np.random.default_rng([cell.seed, 7])
    tree: dict[str, Any] = {
        "findings": len(rows),
        "unconfirmed": len(ran.findings) - len(rows),
        "rows": ran.findings.rows_checked,
        "queries": ran.queries,
        "seconds": round(ran.seconds, 3),
        "seconds_before": _seconds_before(ran),
        "per_second": round(findings_per_second(len(rows), ran.seconds), 2),
        "per_thousand_queries": round(findings_per_thousand_queries(len(rows), ran.queries), 3),
        "per_row": round(len(rows) / max(1, ran.findings.rows_checked), 5),
        "stop": str(ran.stop),
        "curve": _curve(ran),
        **{name: round(float(value), 4) for name, value in ran.session.facts.items()},
    }
    if "speed" in cell.extras:
        tree["speed"] = round(_speed(cell, shop), 3)
    tree |= _diversity(rows, schema, rng)
    definitions = _DEFINITIONS if "definitions" in cell.extras else {"": _DEFINITIONS[""]}
    tree |= _naturalness("atn", real, rows, schema, definitions, rng)
    if "representative" in cell.extras and len(rows) >= 4 * FEWEST_TO_JUDGE:
        n = min(len(real), len(rows) // 4)
        chosen = rows[representative(real, rows, schema, n, rng)]
        tree |= _naturalness("representative_atn", real, chosen, schema, definitions, rng)
    if "likeness" in cell.extras:
        tree |= _likeness(cell, shop, rows, rng)
    if "favorable" in cell.extras and cell.method == "limi":
        tree["plane_favorable"] = round(favorable_on_plane(cell, shop), 4)
    if len(rows) >= FEWEST_TO_JUDGE:
        if "detection" in cell.extras:
            tree |= _detection(real, rows, schema, rng)
        if "distance" in cell.extras:
            tree["distance"] = round(_distance_of_codes(real, rows, rng), 4)
        if "plausible" in cell.extras:
            tree |= _plausible(real, rows, schema, ran.queries, rng)
    return tree | shop.facts(cell) | shop.generator_facts(cell)


def _seconds_before(ran: Run) -> float | None:
    """Seconds of a search until its first row was checked: labels, boundary, explanations."""
    first = ran.session.first_check
    return None if first is None else round(first, 3)


def _placed(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """Rows of a place where decisions change, measured as those of a search are."""
    start = time.perf_counter()
    placed = place_rows(cell, shop)
    seconds = time.perf_counter() - start
    rows, problem, rng = placed.findings, shop.problem(cell), np.random.default_rng([cell.seed, 7])
    tree: dict[str, Any] = {
        "findings": len(rows),
        "rows": len(placed.rows),
        "queries": placed.queries,
        "seconds": round(seconds, 3),
        "per_row": round(len(rows) / max(1, len(placed.rows)), 5),
        **placed.facts,
    }
    definitions = {"": _DEFINITIONS[""]}
    tree |= _naturalness("atn", problem.rows, rows, problem.schema, definitions, rng)
    tree |= _likeness(cell, shop, rows, rng)
    if len(rows) >= FEWEST_TO_JUDGE:
        tree |= _plausible(problem.rows, rows, problem.schema, placed.queries, rng)
    return tree | shop.facts(cell) | shop.generator_facts(cell)


def _diversity(rows: Rows, schema: Schema, rng: np.random.Generator) -> dict[str, Any]:
    distance = pairwise_distance(rows, schema, rng)
    return {
        "diversity": None if math.isnan(distance) else round(distance, 4),
        "cells": distinct_cells(rows, schema) if len(rows) else 0,
        "one_apart": round(share_one_apart(rows, schema), 4) if len(rows) else None,
    }


def _naturalness(
    name: str,
    real: Rows,
    rows: Rows,
    schema: Schema,
    definitions: dict[str, Definition],
    rng: np.random.Generator,
) -> dict[str, Any]:
    """ATN of as many findings as the table has rows, by each definition: the mean of ten draws."""
    if len(rows) < FEWEST_TO_JUDGE:
        return {f"{name}{suffix}": None for suffix in definitions}
    drawn = [rows]
    if len(rows) > len(real):
        drawn = [rows[rng.choice(len(rows), len(real), replace=False)] for _ in range(_DRAWS)]
    return {
        f"{name}{suffix}": round(
            statistics.fmean(
                average_tabular_naturalness(real, some, schema, definition=definition).score
                for some in drawn
            ),
            4,
        )
        for suffix, definition in definitions.items()
    }


def _detection(real: Rows, rows: Rows, schema: Schema, rng: np.random.Generator) -> dict[str, Any]:
    """How well three classifiers tell findings from rows of the table, two of them the paper's."""
    # The last one came later: with randomness of its own it leaves the other measures as they were.
    given: list[tuple[Classifier, np.random.Generator]]
    given = [("boosted", rng), ("logistic", rng), ("svc", np.random.default_rng(17))]
    return {
        f"detection_{name}": round(
            two_sample_auc(real, rows, schema, its, classifier=name, max_rows=_DETECTED), 4
        )
        for name, its in given
    }


def _distance_of_codes(real: Rows, rows: Rows, rng: np.random.Generator) -> float:
    """Mean distance to the nearest real row, in times of what real rows have among themselves.

    Euclidean, over columns scaled to unit variance; missing cells count as the mean. 1 is as near
    as real rows are to one another, more is farther away. Not the geometry of
    `nearest_neighbour_distance`, in which each level has an axis: the published tables are those
    of the benchmarks' codes, and two geometries cannot stand in one table.
    """
    spread = np.nanstd(real, axis=0)
    mean, spread = np.nanmean(real, axis=0), np.where(spread > 0, spread, 1.0)
    scaled = [np.nan_to_num((table - mean) / spread, nan=0.0) for table in (real, rows)]
    held = rng.permutation(len(real))
    n = min(_DISTANCES, len(real) // 2)
    # Distinct rows ask among the others: a row of the table is not a neighbour of its own.
    probe, base = scaled[0][held[:n]], scaled[0][held[n:]]
    chosen = scaled[1][rng.permutation(len(rows))[:_DISTANCES]]
    usual = float(nearest(probe, base, 1)[0].mean())
    return float(nearest(chosen, base, 1)[0].mean()) / (usual or 1.0)


def _plausible(
    real: Rows, rows: Rows, schema: Schema, queries: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Findings that are no odder than 95 % of real rows: their share, with its interval where it
    was judged by a sample, and what it comes to.

    By the distance to real rows, for every method alike: log-probabilities of a generator would
    favor the methods that search among its rows.
    """
    judge = judge_by_distance(real, schema, rng)
    chosen = rows[rng.permutation(len(rows))[:_JUDGED]]
    share = float((judge.p_values(chosen) >= 0.05).mean())
    low, high = share, share
    if len(chosen) < len(rows):
        low, high = clopper_pearson(round(share * len(chosen)), len(chosen))
    return {
        "plausible": round(share * len(rows)),
        "plausible_low": round(low * len(rows)),
        "plausible_high": round(high * len(rows)),
        "plausible_share": round(share, 4),
        "plausible_per_thousand": round(
            findings_per_thousand_queries(share * len(rows), queries), 3
        ),
    }


def _curve(ran: Run) -> dict[str, list[float]]:
    """Rows checked, queries and findings so far, at round numbers of rows and at the end.

    Within a batch findings are taken to be spread evenly; what was asked together is one batch, in
    however many parts it came.
    """
    if not ran.rows or ran.rows[-1] < 1:
        return {}
    checked = np.array([0, *ran.rows], dtype=np.float64)
    queries, found = (
        np.array([0, *line], dtype=np.float64) for line in zip(*ran.curve, strict=True)
    )
    marks = [m * 10.0**p for p in range(2, 8) for m in (1, 2, 5) if m * 10**p < checked[-1]]
    at = np.array([*marks, checked[-1]])
    # Before the first row lie labels and explanations: of equal rows the last counts.
    last = np.append((checked[1:] > checked[:-1]) & (queries[1:] > queries[:-1]), True)
    last[np.flatnonzero(checked == 0)[-1]] = True
    lines = {"rows": at}
    for name, line in (("queries", queries), ("findings", found)):
        lines[name] = np.interp(at, checked[last], line[last])
    return {name: [round(float(x)) for x in line] for name, line in lines.items()}


def _likeness(cell: Cell, shop: Workshop, rows: Rows, rng: np.random.Generator) -> dict[str, Any]:
    """ATN of findings against the table's own people who flip, of equal numbers for all methods.

    `real_likeness` is what as many of those people reach, drawn from them with replacement: the
    most that can be asked of findings.
    """
    flipping, schema = shop.flipping(cell), shop.problem(cell).schema
    n = min(MOST_ALIKE, len(flipping))
    told: dict[str, Any] = {"likeness": None, "real_likeness": None, "likeness_n": n}
    if n >= FEWEST_TO_JUDGE:
        told["real_likeness"] = round(most_alike(n, flipping, schema, rng), 4)
        if len(rows) >= n:
            told["likeness"] = round(naturalness_at(n, flipping, rows, schema, rng).value, 4)
    return told


def _speed(cell: Cell, shop: Workshop) -> float:
    """Rows per second of the search, in times of checking one row and one value at a time.

    Both by the processor's time, in one process and after a first run, so that neither a busy
    machine nor what is loaded once counts.
    """
    again = search_cell(cell, shop, clock=time.process_time)
    schema, score = again.problem.schema, again.problem.target.score
    rows = again.problem.rows[:_ONE_BY_ONE]
    start = time.process_time()
    for row in rows:
        for values in schema.combinations:
            asked = row.copy()
            asked[schema.protected_index] = values
            score(asked[None])
    plain = len(rows) / max(time.process_time() - start, 1e-9)
    return again.run.findings.rows_checked / max(again.run.seconds, 1e-9) / plain

"""What follows from the measures of cells: rates, findings at equal rows, and what the paper's time
would have allowed a program that asks row by row."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lab.conditions import are_comparable
from lab.files import Study, load, paper_numbers, shipped_results
from lab.results import DONE, Outcome, Results, read
from limi.metrics.effectiveness import findings_per_second, findings_per_thousand_queries

__all__ = ["AT_ROWS", "Speeds", "at_rows", "complete", "read_speeds"]

AT_ROWS = {"found_1k": 1_000, "found_10k": 10_000, "found_100k": 100_000}
"""Measures of findings at equal numbers of rows."""

_AN_HOUR = 3600.0  # the most that the paper gives a run
_ROUNDING, _HALF = 0.005, 0.5  # of the paper's findings per second, and of its findings
_PLAIN, _PLAIN_SCALE = "plain", "small"  # the study of row-by-row programs


@dataclass(frozen=True)
class _Program:
    """A row-by-row program: rows per second, and seconds before the first of them."""

    speed: float
    before: float


Speeds = Mapping[tuple[str, str], _Program]
"""By benchmark and variant of the study of row-by-row programs."""


def read_speeds(folder: Path) -> Speeds | None:
    """How fast row-by-row programs were, of the results in a folder: empty where their speeds
    cannot be compared, None where no program was timed."""
    found = read(load(_PLAIN), _PLAIN_SCALE, folder)
    done = [outcome for outcome in found.outcomes.values() if outcome.status == DONE]
    if not done:
        return None
    if not are_comparable(done):
        return {}
    known: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in done:
        known.setdefault((outcome.benchmark, outcome.variant), []).append(outcome)
    return {
        place: _Program(
            statistics.fmean(one.measures["loop_speed"] for one in outcomes),
            # The difference of two noisy times may fall below zero, where it says nothing.
            max(0.0, statistics.fmean(one.measures["loop_before"] for one in outcomes)),
        )
        for place, outcomes in known.items()
    }


def complete(study: Study, results: Results, speeds: Speeds | None = None) -> Results:
    """The results with what follows from them, and with those of derived variants: `before` is what
    repair cells measured first.

    Every method's cell of a seed trains the same model again before it adds findings, so the
    first one's numbers are everyone's. Without `speeds`, those kept with the studies are taken.
    """
    if results.is_complete:
        return results
    derived = [variant.name for variant in study.variants if variant.derived]
    if "per_second" in paper_numbers(study.name) and speeds is None:
        speeds = read_speeds(shipped_results()) or {}
    known = {
        name: _in_the_paper_s_time(study, _count_repeats(study, _derive(outcome)), speeds or {})
        for name, outcome in results.outcomes.items()
    }
    known = _drop_negative_times(known)
    for outcome in results.outcomes.values():
        for name in derived:
            cell = f"{outcome.benchmark}/{name}/{outcome.seed}"
            if outcome.status == DONE and name in outcome.measures and cell not in known:
                known[cell] = replace(outcome, cell=cell, measures=outcome.measures[name])
    return replace(results, outcomes=known, is_complete=True)


def _drop_negative_times(known: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Seconds before the first row are a difference of two: where one of the seeds is negative
    they were not measured, of none of them."""
    broken = {
        (o.benchmark, o.variant)
        for o in known.values()
        if isinstance(before := o.measures.get("loop_before"), (int, float)) and before < 0
    }
    return {
        name: replace(o, measures={**o.measures, "loop_before": None})
        if (o.benchmark, o.variant) in broken
        else o
        for name, o in known.items()
    }


def at_rows(outcome: Outcome, rows: float) -> float | None:
    """Findings when so many rows had been checked; None where no curve was kept."""
    curve = outcome.measures.get("curve")
    if not curve:
        return None
    return float(np.interp(rows, [0, *curve["rows"]], [0, *curve["findings"]]))


def _rows_for(outcome: Outcome, findings: float) -> float | None:
    """Rows that had been checked when so much was found; None where it never was."""
    curve = outcome.measures.get("curve")
    if not curve or findings > curve["findings"][-1]:
        return None
    found, first = np.unique([0, *curve["findings"]], return_index=True)
    return float(np.interp(findings, found, np.array([0, *curve["rows"]])[first]))


def _derive(outcome: Outcome) -> Outcome:
    """The same with rates: per row, per query, and per second of the search alone (without what
    comes before its first check) and of everything (with the fit of its generator)."""
    told = dict(outcome.measures)
    if outcome.status != DONE or told.get("findings") is None:
        return outcome
    found = told["findings"]
    if told.get("rows"):
        told.setdefault("per_row", round(found / told["rows"], 5))
        for name in ("plausible", "plausible_low", "plausible_high"):
            if isinstance(told.get(name), (int, float)):
                told[name.replace("plausible", "plausible_per_row")] = told[name] / told["rows"]
        if told.get("curve"):
            for name, n in AT_ROWS.items():
                told[name] = at_rows(outcome, n) if told["rows"] >= n else None
        told |= _within_latents(outcome)
    if told.get("queries") and "per_thousand_queries" not in told:
        rate = findings_per_thousand_queries(found, told["queries"])
        told["per_thousand_queries"] = round(rate, 3)
    for end in ("low", "high"):
        if told.get("queries") and isinstance(count := told.get(f"plausible_{end}"), (int, float)):
            rate = findings_per_thousand_queries(count, told["queries"])
            told[f"plausible_per_thousand_{end}"] = rate
    return replace(outcome, measures=told | _speeds_of(outcome))


def _within_latents(outcome: Outcome) -> dict[str, float | None]:
    """Findings when as many rows had been checked as LIMI has latents, which is where the paper
    stops; all of them where fewer rows were checked."""
    latents = outcome.given.get("settings", {}).get("n_latents")
    if latents is None:
        return {}
    if outcome.measures["rows"] <= latents:
        return {"found_latents": outcome.measures["findings"]}
    return {"found_latents": at_rows(outcome, latents)}


def _count_repeats(study: Study, outcome: Outcome) -> Outcome:
    """How many rows the paper's recipe added for each of its findings: above 1 they were repeated.

    Other recipes add copies of training rows as well.
    """
    found, added = (outcome.measures.get(name) for name in ("findings", "added"))
    extra = next((v.extra for v in study.variants if v.name == outcome.variant), {})
    is_other = "recipe" in extra or extra.get("preset", "paper") != "paper"
    if outcome.status != DONE or not found or not added or is_other:
        return outcome
    return replace(outcome, measures={**outcome.measures, "repeats": added / found})


def _speeds_of(outcome: Outcome) -> dict[str, float]:
    told, speeds = outcome.measures, {}
    seconds, before = told.get("seconds"), told.get("seconds_before")
    fit = told.get("generator_seconds", None if outcome.given.get("generator") else 0.0)
    if seconds and fit is not None:  # else it was not measured
        speeds["per_second_all"] = round(findings_per_second(told["findings"], seconds, fit), 2)
    if seconds and before is not None and before < seconds:
        rate = findings_per_second(told["findings"], seconds - before)
        speeds["per_second_search"] = round(rate, 2)
    return speeds


def _in_the_paper_s_time(study: Study, outcome: Outcome, speeds: Speeds) -> Outcome:
    """What the paper's time would have allowed: what had been found when as many rows were checked
    as a row-by-row program checks in it, and how many rows the paper's program would have checked
    if it found as often as ours."""
    paper = paper_numbers(study.name)
    name = next((v.of or v.name for v in study.variants if v.name == outcome.variant), "")
    counts, rates = (
        paper.get(m, {}).get(outcome.benchmark, {}) for m in ("findings", "per_second")
    )
    if outcome.status != DONE or not rates.get(name) or name not in counts:
        return outcome
    seconds = min(_AN_HOUR, counts[name] / rates[name])
    longest = (counts[name] + _HALF) / max(rates[name] - _ROUNDING, 1e-9)
    told: dict[str, Any] = {
        "paper_seconds": seconds,
        "paper_end": float(longest >= _AN_HOUR),
        "paper_rows": (rows := _rows_for(outcome, counts[name])),
        "paper_speed": None if rows is None else rows / seconds,
    }
    suffix = "" if study.target == "dnn" else f"-{study.target}"
    first, dot, generator = outcome.variant.partition(".")
    program = speeds.get((outcome.benchmark, f"{first}{suffix}{dot}{generator}"))
    if program is not None:
        in_time = program.speed * max(0.0, seconds - program.before)
        # Where all that was checked fits in that time, no curve is needed.
        whole = in_time >= outcome.measures.get("rows", float("inf"))
        told |= {
            "loop_speed": program.speed,
            "loop_rows": in_time,
            "loop_findings": outcome.measures.get("findings")
            if whole
            else at_rows(outcome, in_time),
        }
        if outcome.measures.get("rows") and "findings" in outcome.measures:
            share = outcome.measures["findings"] / outcome.measures["rows"]
            told["loop_per_second"] = program.speed * share
    return replace(outcome, measures={**outcome.measures, **told})

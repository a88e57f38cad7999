"""Tables of a study: ours, the spread over seeds, the paper's numbers, the ratio, and footnotes."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from limi.studies._files import (
    Claim,
    Combined,
    Study,
    TableSpec,
    load,
    paper_accuracy,
    paper_numbers,
)
from limi.studies._formats import StudyTable
from limi.studies._results import DONE, Outcome, Results

__all__ = [
    "MEASURES",
    "Measure",
    "claims",
    "combine",
    "complete",
    "conditions",
    "describe_machines",
    "matrix",
    "tables",
    "take_cells",
]

NO_RESULT = "not run"
MEAN = "mean"


@dataclass(frozen=True)
class Measure:
    """How a measure is called and shown."""

    label: str
    form: str
    more_is_better: bool | None = True  # None: neither


MEASURES = {
    "findings": Measure("findings", ",.0f"),
    "per_second": Measure("findings/s", ",.1f"),
    "per_thousand_queries": Measure("per 1,000 queries", ",.2f"),
    "rows": Measure("rows checked", ",.0f", None),
    "queries": Measure("queries", ",.0f", None),
    "seconds": Measure("seconds", ",.1f", False),
    "diversity": Measure("diversity", ".3f"),
    "cells": Measure("cells", ",.0f"),
    "atn": Measure("ATN, equation", ".3f"),
    "atn_07": Measure("ATN, SDMetrics 0.7", ".3f"),
    "atn_032": Measure("ATN, SDMetrics 0.32", ".3f"),
    "representative_atn": Measure("representative, equation", ".3f"),
    "representative_atn_07": Measure("representative, 0.7", ".3f"),
    "representative_atn_032": Measure("representative, 0.32", ".3f"),
    "real_atn": Measure("flipping rows of the table", ".3f", None),
    "real_rate": Measure("IF_o", ".4f", None),
    "detection_boosted": Measure("detection, boosted", ".3f", False),
    "detection_logistic": Measure("detection, logistic", ".3f", False),
    "distance": Measure("distance", ".2f", False),
    "plausible": Measure("plausible findings", ",.0f", True),
    "plausible_share": Measure("plausible", ".1%", True),
    "plausible_per_thousand": Measure("plausible per 1,000 queries", ",.2f", True),
    "auc_train": Measure("AUC, train", ".4f"),
    "auc_entire": Measure("AUC, entire", ".4f"),
    "accuracy": Measure("accuracy", ".4f"),
    "if_r": Measure("IF_r", ".4f", False),
    "if_o": Measure("IF_o", ".4f", False),
    "if_n": Measure("natural rate", ".4f", False),
    "held_out": Measure("accuracy, held out", ".4f"),
    "auc": Measure("AUC", ".4f"),
    "calibration": Measure("calibration error", ".3f", False),
    "favored": Measure("favorable decisions", ".1%", None),
    "twin_rate": Measure("changed as a twin", ".1%", False),
    "opportunity": Measure("equal opportunity", ".3f", False),
    "spd": Measure("SPD", ".3f", False),
    "aod": Measure("AOD", ".3f", False),
    "overlap": Measure("overlap", ".3f"),
    "generator_atn": Measure("ATN of samples", ".3f"),
    "generator_seconds": Measure("seconds to fit", ",.1f", False),
    "gains": Measure("gains", ".1%", None),
    "losses": Measure("losses", ".1%", None),
    "gap": Measure("gap", ".3f", None),
    "coverage": Measure("coverage", ".0%", None),
    "kappa": Measure("kappa", ".2f"),
    "placebo": Measure("placebo", ".2%", False),
    "twin_auc": Measure("AUC", ".3f", False),
    "right": Measure("right", ".1%"),
    "speed": Measure("speed ratio", ".2f"),
    "flip_share": Measure("flips", ".1%", None),
    "valid_share": Measure("twins that count", ".1%", None),
    "twin_flips": Measure("twins that flip", ".1%", None),
    "floor_flips": Measure("placebos that flip", ".1%", None),
    "excess": Measure("excess", "+.1%", None),
    "excess_low": Measure("from", "+.1%", None),
    "excess_high": Measure("to", "+.1%", None),
    "excess_seen": Measure("excess seen", ".0%", None),
    "effect": Measure("effect", "+.2f", None),
    "effect_low": Measure("from", "+.2f", None),
    "effect_high": Measure("to", "+.2f", None),
    "effect_floor": Measure("floor", ".2f", None),
    "effect_size": Measure("size of the effect", ".2f", None),
    "direction": Measure("direction", ".0%", None),
    "effect_seen": Measure("effect seen", ".0%", None),
}


def tables(study: Study, results: Results) -> list[StudyTable]:
    """Every table of a study; the last one carries the conditions that differ from the paper's."""
    results = complete(study, results)
    specs = [spec for spec in study.tables if any(take_cells(results, m) for m in spec.measures)]
    drawn = [_table(study, spec, results) for spec in specs or study.tables]
    drawn = [table for table in drawn if table.rows] or drawn[:1]
    last = drawn[-1]
    notes = (*last.notes, *study.notes, *conditions(study, results))
    drawn[-1] = StudyTable(last.title, last.headings, last.rows, notes, last.n_names)
    return drawn


def take_cells(results: Results, measure: str) -> bool:
    """Has any cell this measure? Some are taken at one scale alone."""
    return any(outcome.measures.get(measure) is not None for outcome in results.outcomes.values())


def _table(study: Study, spec: TableSpec, results: Results) -> StudyTable:
    paper = paper_numbers(study.name)
    n_seeds = len({outcome.seed for outcome in results.outcomes.values()})
    columns = [c for name in spec.measures for c in _columns(name, n_seeds, name in paper)]
    notes = _Notes()
    if n_seeds > 1:
        notes.add(f"Means over {n_seeds} seeds; the spread is the smallest and the largest.")
    rows = []
    for benchmark in _benchmarks(study, results, paper):
        for variant in _variants(study, results):
            if spec.variants and variant not in spec.variants:
                continue
            place = _Place(results, benchmark, variant, notes)
            given = {m: paper.get(m, {}).get(benchmark, {}).get(variant) for m in spec.measures}
            cells = [place.cell(kind, m, given[m]) for kind, m in columns]
            rows.append((benchmark, study.variant(variant).label, *cells))
    named = {"spread": "min to max", "paper": "paper", "ratio": "ratio"}
    headings = [named.get(kind, MEASURES[measure].label) for kind, measure in columns]
    first = ("benchmark", "method" if _by_method(study) else "variant")
    return StudyTable(spec.title, (*first, *headings), tuple(rows), tuple(notes.said))


def _columns(measure: str, n_seeds: int, has_paper: bool) -> list[tuple[str, str]]:
    """What is shown of a measure; a spread needs seeds, a ratio the paper's number."""
    kinds = ["ours", *(["spread"] if n_seeds > 1 else []), *(["paper", "ratio"] * has_paper)]
    return [(kind, measure) for kind in kinds]


def matrix(study: Study, measure: str, results: Results) -> StudyTable:
    """One measure with a row a benchmark and a column a variant: ours, and (the paper's)."""
    results = complete(study, results)
    paper = paper_numbers(study.name).get(measure, {})
    published = {variant for values in paper.values() for variant in values}
    variants = [v for v in _variants(study, results) if v in published or _has(results, v, measure)]
    rows = []
    for benchmark in _benchmarks(study, results, {measure: paper}):
        row = [benchmark]
        values = {v: _mean(results, benchmark, v, measure) for v in variants}
        best = _best(values, measure)
        for variant in variants:
            value, given = values[variant], paper.get(benchmark, {}).get(variant)
            shown = (
                _show(value, measure)
                if value is not None
                else _why_not(results, benchmark, variant)
            )
            mark = "*" if variant == best else ""
            beside = f" ({_show(given, measure)})" if given is not None else ""
            row.append(f"{shown}{mark}{beside}")
        rows.append(tuple(row))
    title = f"{MEASURES[measure].label}: ours (the paper's); * is the best of ours"
    labels = [study.variant(v).label for v in variants]
    return StudyTable(title, ("benchmark", *labels), tuple(rows), n_names=1)


def claims(study: Study, results: Results) -> list[tuple[Claim, int, list[str]]]:
    """Each claim with the number of benchmarks it was tried on, and where it does not hold."""
    results = complete(study, results)
    told = []
    for claim in study.claims:
        tried, against = 0, []
        sign = 1 if MEASURES[claim.measure].more_is_better is not False else -1
        for benchmark in _run_benchmarks(study, results):
            mine = _mean(results, benchmark, claim.first, claim.measure)
            if mine is None:
                continue
            others = {name: _rival(results, benchmark, claim, name) for name in claim.over}
            known = {name: value for name, value in others.items() if value is not None}
            if not known:
                continue
            tried += 1
            ahead = [name for name, value in known.items() if sign * value >= sign * mine]
            if ahead:
                worst = max(ahead, key=lambda name: sign * known[name])
                shown = f"{_show(known[worst], claim.measure)} against {_show(mine, claim.measure)}"
                others_too = f" and {len(ahead) - 1} more" if len(ahead) > 1 else ""
                against.append(f"{benchmark}: {worst} {shown}{others_too}")
        told.append((claim, tried, against))
    return told


def combine(study: Study, results: Results) -> list[tuple[Combined, dict[str, float]]]:
    """Each ratio by pair of variants, and over all of them as `mean`."""
    told = []
    for one in study.combined:
        by_pair: dict[str, float] = {}
        every: list[float] = []
        for first, second in one.pairs:
            ratios = []
            for benchmark in _run_benchmarks(study, results):
                mine = _mean(results, benchmark, first, one.measure)
                other = _mean(results, benchmark, second, one.measure)
                if mine is not None and other:
                    ratios.append(mine / other)
            if ratios:
                by_pair[f"{first} to {second}"] = statistics.fmean(ratios)
                every += ratios
        if every:
            by_pair[MEAN] = statistics.fmean(every)
        told.append((one, by_pair))
    return told


def conditions(study: Study, results: Results) -> tuple[str, ...]:
    """What differs from the paper's runs: budget, seeds, machine, targets, key and clock."""
    size = study.scale(results.scale)
    if study.uses:
        size = load(study.uses).scale(results.scale)
    made = describe_machines(results.made)
    n_seeds = len({outcome.seed for outcome in results.outcomes.values()})
    if study.kind in ("twins", "images"):  # what differs from the paper stands in their notes
        seeds = f"{n_seeds} seed{'' if n_seeds == 1 else 's'}"
        return (f"{size.words[:1].upper()}{size.words[1:]}; {seeds}. Machine: {made}.",)
    said = [
        f"Budget: {size.words} (scale `{results.scale}`), {n_seeds} seed"
        f"{'' if n_seeds == 1 else 's'}. Paper: 1,000 seeds with 1,000 local steps or a million "
        "latents, an hour at most, 5 runs. No run here ends by the clock.",
        f"Machine: {made}; one thread a cell. Paper: Xeon Gold 6230R and RTX 2080 Ti, one row a "
        "call.",
        _accuracies(results),
        "Key: findings of every method are distinct by their non-protected columns, and flip when "
        "asked a second time. The paper's programs count by keys of their own.",
        "Clock: the whole search with labelling, boundary, explanations and surrogates, without "
        "fitting the generator. Paper: without sampling and boundary as well.",
    ]
    return tuple(one for one in said if one)


def describe_machines(made: Mapping[str, Any]) -> str:
    """What results were made on and with."""
    return "; some cells ".join(map(_machine, [made, *made.get("earlier", ())]))


def _machine(made: Mapping[str, Any]) -> str:
    found = made.get("versions", {})
    tools = ("limi", "numpy", "scikit-learn", "torch")
    seen = ", ".join(f"{name} {found[name]}" for name in tools if name in found)
    return f"{made.get('processor', 'unknown')}, {made.get('cores', '?')} cores ({seen})"


def _accuracies(results: Results) -> str:
    published = paper_accuracy()
    shown: dict[str, str] = {}
    for outcome in results.outcomes.values():
        table, target = outcome.benchmark.partition("-")[0], outcome.given.get("target", "")
        value = outcome.measures.get("accuracy")
        if outcome.status != DONE or value is None:
            continue
        if "before" in outcome.measures:  # a repaired target is not the one that was tested
            value = outcome.measures["before"].get("accuracy", value)
        beside = (
            f" ({100 * published[table]:.1f})" if target == "dnn" and table in published else ""
        )
        shown.setdefault(f"{table} {target}", f"{100 * value:.1f}{beside}")
    if not shown:
        return ""
    words = ", ".join(f"{name} {value}" for name, value in sorted(shown.items()))
    return (
        "Targets: trained here, of the same shape as the paper's; accuracy on the training rows in "
        f"percent (the paper's): {words}."
    )


def complete(study: Study, results: Results) -> Results:
    """The results with those of derived variants: `before` is what repair cells measured first.

    Every method's cell of a seed trains the same model again before it adds findings, so the
    first one's numbers are everyone's.
    """
    derived = [variant.name for variant in study.variants if variant.derived]
    known = dict(results.outcomes)
    for outcome in results.outcomes.values():
        for name in derived:
            cell = f"{outcome.benchmark}/{name}/{outcome.seed}"
            if outcome.status == DONE and name in outcome.measures and cell not in known:
                known[cell] = replace(outcome, cell=cell, measures=outcome.measures[name])
    return replace(results, outcomes=known)


# -- numbers ------------------------------------------------------------------------------


class _Notes:
    """Footnotes, each said once."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def add(self, text: str) -> None:
        if text not in self.said:
            self.said.append(text)


@dataclass(frozen=True)
class _Place:
    """A row of a table."""

    results: Results
    benchmark: str
    variant: str
    notes: _Notes

    def cell(self, kind: str, measure: str, given: float | None) -> str:
        """One cell of the row."""
        mean = _mean(self.results, self.benchmark, self.variant, measure)
        if kind == "ours" and mean is None:
            return _why_not(self.results, self.benchmark, self.variant, self.notes)
        if kind == "ours" and mean is not None:
            return _show(mean, measure)
        if kind == "spread":
            return _spread(self.results, self.benchmark, self.variant, measure)
        if kind == "paper":
            return "" if given is None else _show(given, measure)
        return _ratio(mean / given if mean is not None and given else None)


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:,.2f}" if ratio < 100 else f"{ratio:,.0f}"


def _mean(results: Results, benchmark: str, variant: str, measure: str) -> float | None:
    """The mean over seeds; of a mean row, over the benchmarks, where none is missing."""
    if benchmark.startswith(MEAN):
        table = benchmark.removeprefix(MEAN).removeprefix(" of ")
        inner = [b for b in _run_of(results) if not table or b.partition("-")[0] == table]
        values = [_mean(results, b, variant, measure) for b in inner]
        known = [value for value in values if value is not None]
        return statistics.fmean(known) if known and len(known) == len(values) else None
    found = results.numbers(benchmark, variant, measure)
    return statistics.fmean(found) if found else None


def _rival(results: Results, benchmark: str, claim: Claim, name: str) -> float | None:
    """What a claim compares with: another variant, or the table's own rows that flip."""
    if name == "real":
        return _mean(results, benchmark, claim.first, "real_atn")
    return _mean(results, benchmark, name, claim.measure)


def _spread(results: Results, benchmark: str, variant: str, measure: str) -> str:
    found = results.numbers(benchmark, variant, measure)
    if len(found) < 2:
        return ""
    low, high = _show(min(found), measure), _show(max(found), measure)
    return low if low == high else f"{low} to {high}"


def _show(value: float, measure: str) -> str:
    return format(value, MEASURES[measure].form)


def _why_not(results: Results, benchmark: str, variant: str, notes: _Notes | None = None) -> str:
    """Why a cell has no number, in a word; the sentence becomes a footnote."""
    if benchmark.startswith(MEAN):
        return "-"
    outcomes = results.of(benchmark, variant)
    if not outcomes:
        return NO_RESULT
    told: Outcome | None = next((o for o in outcomes if o.status != DONE), None)
    if told is None:
        return "-"
    if notes is not None and told.why:
        where = (
            benchmark.partition("-")[0] if told.status == "absent" else f"{benchmark}, {variant}"
        )
        notes.add(f"{told.status}: {where}: {told.why}")
    return told.status


def _best(values: dict[str, float | None], measure: str) -> str | None:
    better = MEASURES[measure].more_is_better
    known = {name: value for name, value in values.items() if value is not None}
    if better is None or len(known) < 2:
        return None
    return max(known, key=lambda name: known[name] if better else -known[name])


def _benchmarks(
    study: Study, results: Results, paper: dict[str, dict[str, dict[str, float]]]
) -> list[str]:
    """The benchmarks to show, and the means that make sense of them."""
    shown = list(_run_benchmarks(study, results))
    # Doses of a bias have no mean worth showing.
    means = [MEAN] if len(shown) > 1 and study.kind != "images" else []
    means += [key for m in paper.values() for key in m if key.startswith(f"{MEAN} of ")]
    return [*shown, *dict.fromkeys(means)]


def _run_benchmarks(study: Study, results: Results) -> Iterable[str]:
    size = study.scale(results.scale) if not study.uses else None
    planned = size.benchmarks if size else ()
    found = _run_of(results)
    return list(dict.fromkeys([*planned, *found])) if planned else found


def _run_of(results: Results) -> list[str]:
    return list(dict.fromkeys(outcome.benchmark for outcome in results.outcomes.values()))


def _variants(study: Study, results: Results) -> list[str]:
    found = {outcome.variant for outcome in results.outcomes.values()}
    planned = study.scale(results.scale).variants if not study.uses else tuple(found)
    return [v.name for v in study.variants if v.name in found or v.name in planned]


def _has(results: Results, variant: str, measure: str) -> bool:
    outcomes = results.outcomes.values()
    return any(
        o.variant == variant and (measure in o.measures or o.status != DONE) for o in outcomes
    )


def _by_method(study: Study) -> bool:
    return all(variant.name == variant.method for variant in study.variants)

"""Tables of a study: ours, the spread over seeds, the paper's numbers, the ratio, and footnotes."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limi.metrics._enough import FEWEST_TO_JUDGE
from limi.metrics.effectiveness import findings_per_second, findings_per_thousand_queries
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
    "Tried",
    "at_rows",
    "briefly",
    "claims",
    "combine",
    "compare",
    "complete",
    "conditions",
    "describe_machines",
    "matrix",
    "show",
    "tables",
    "take_cells",
]

NO_RESULT = "not run"
# Of a target and not of findings, so that few findings are not why one is missing.
_OF_THE_TARGET = {"accuracy", "held_out", "auc", "calibration", "favored", "opportunity"} | {
    "twin_rate",
    "if_r",
    "if_o",
    "if_m",
    "if_n",
    "spd",
    "aod",
}
_AN_HOUR = 3600.0  # the most that the paper gives a run
MEAN = "mean"


@dataclass(frozen=True)
class Measure:
    """How a measure is called and shown."""

    label: str
    form: str
    more_is_better: bool | None = True  # None: neither


MEASURES = {
    "findings": Measure("findings", ",.0f"),
    "per_second": Measure("findings/s", "3"),
    "per_second_all": Measure("findings/s, generator fitted", "3"),
    "per_thousand_queries": Measure("per 1,000 queries", ",.2f"),
    "per_row": Measure("rows that flip", ".2%"),
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
    "plausible": Measure("plausible findings", "2", True),
    "plausible_low": Measure("from", "2", None),
    "plausible_high": Measure("to", "2", None),
    "likeness": Measure("like people who flip", ".3f"),
    "real_likeness": Measure("flipping people of the table", ".3f", None),
    "plane_favorable": Measure("favorable on the plane", ".1%", None),
    "paper_seconds": Measure("the paper's seconds", ",.0f", None),
    "plain_rows": Measure("rows one by one in that time", "2", None),
    "plain_findings": Measure("found by then", ",.0f"),
    "loop_speed": Measure("rows per second, one by one", "2"),
    "loop_before": Measure("seconds before the first row", "2", False),
    "plausible_share": Measure("plausible", ".1%", True),
    "plausible_per_thousand": Measure("plausible per 1,000 queries", "2 rate", True),
    "plausible_per_row": Measure("plausible findings per checked row", ".1%", True),
    "auc_train": Measure("AUC, train", ".4f"),
    "auc_entire": Measure("AUC, entire", ".4f"),
    "accuracy": Measure("accuracy", ".4f"),
    "if_r": Measure("IF_r", ".4f", False),
    "if_o": Measure("IF_o", ".4f", False),
    "if_m": Measure("shuffled rate", ".4f", False),
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


def tables(study: Study, results: Results, *, brief: bool = False) -> list[StudyTable]:
    """Every table of a study; the last one carries the conditions that differ from the paper's.

    Those are left out where a page says them elsewhere (`brief`).
    """
    results = complete(study, results)
    specs = [spec for spec in study.tables if any(take_cells(results, m) for m in spec.measures)]
    drawn = [_table(study, spec, results) for spec in specs or study.tables]
    drawn = [table for table in drawn if table.rows] or drawn[:1]
    last = drawn[-1]
    notes = last.notes if brief else (*last.notes, *study.notes, *conditions(study, results))
    drawn[-1] = StudyTable(last.title, last.headings, last.rows, notes, last.n_names)
    return drawn


def at_rows(outcome: Outcome, rows: float) -> float | None:
    """Findings when so many rows had been checked; None where no curve was kept."""
    curve = outcome.measures.get("curve")
    if not curve:
        return None
    return float(np.interp(rows, [0, *curve["rows"]], [0, *curve["findings"]]))


def take_cells(results: Results, measure: str) -> bool:
    """Has any cell this measure? Some are taken at one scale alone."""
    return any(outcome.measures.get(measure) is not None for outcome in results.outcomes.values())


def _table(study: Study, spec: TableSpec, results: Results) -> StudyTable:
    paper = paper_numbers(study.name)
    n_seeds = len({outcome.seed for outcome in results.outcomes.values()})
    columns = [c for name in spec.measures for c in _columns(name, n_seeds, name in paper)]
    notes = _Notes()
    if n_seeds > 1:
        notes.add(_say_seeds(results, n_seeds))
    rows = []
    for benchmark in _benchmarks(study, results, paper):
        for variant in _variants(study, results):
            if spec.variants and variant not in spec.variants:
                continue
            place = _Place(results, benchmark, variant, notes)
            given = {
                m: _published(study, results, paper.get(m, {}), benchmark, variant)
                for m in spec.measures
            }
            cells = [place.cell(kind, m, given[m]) for kind, m in columns]
            rows.append((benchmark, study.variant(variant).label, *cells))
    named = {"spread": "min to max", "paper": "paper", "ratio": "ratio"}
    headings = [named.get(kind, MEASURES[measure].label) for kind, measure in columns]
    first = ("benchmark", "method" if _by_method(study) else "variant")
    return StudyTable(spec.title, (*first, *headings), tuple(rows), tuple(notes.said))


def _say_seeds(results: Results, n_seeds: int) -> str:
    """How many seeds the means are of; some cells may have fewer than others."""
    done = Counter((o.benchmark, o.variant) for o in results.outcomes.values() if o.status == DONE)
    fewest = min(done.values(), default=n_seeds)
    if fewest == n_seeds:
        return f"Means over {n_seeds} seeds; the spread is the smallest and the largest."
    said = f"Means over {fewest} to {n_seeds} seeds; the spread is the smallest and the largest"
    return said + ("; a cell without a spread has one seed." if fewest == 1 else ".")


def _columns(measure: str, n_seeds: int, has_paper: bool) -> list[tuple[str, str]]:
    """What is shown of a measure; a spread needs seeds, a ratio the paper's number."""
    kinds = ["ours", *(["spread"] if n_seeds > 1 else []), *(["paper", "ratio"] * has_paper)]
    return [(kind, measure) for kind in kinds]


def matrix(study: Study, measure: str, results: Results) -> StudyTable:
    """One measure with a row a benchmark and a column a variant: ours, and (the paper's)."""
    results = complete(study, results)
    paper = paper_numbers(study.name).get(measure, {})
    printed = {variant for values in paper.values() for variant in values}
    published = {v.name for v in study.variants if (v.of or v.name) in printed}
    variants = [v for v in _variants(study, results) if v in published or _has(results, v, measure)]
    rows = []
    for benchmark in _benchmarks(study, results, {measure: paper}):
        row = [benchmark]
        values = {v: _mean(results, benchmark, v, measure) for v in variants}
        best = _best(values, measure)
        for variant in variants:
            value = values[variant]
            given = _published(study, results, paper, benchmark, variant)
            shown = (
                show(value, measure)
                if value is not None
                else _why_not(results, benchmark, variant, measure)
            )
            mark = "*" if variant == best else ""
            beside = f" ({show(given, measure)})" if given is not None else ""
            row.append(f"{shown}{mark}{beside}")
        rows.append(tuple(row))
    beside_ours = " (the paper's)" if paper else ""
    title = f"{MEASURES[measure].label}: ours{beside_ours}"
    if MEASURES[measure].more_is_better is not None:
        title += "; * is the best of ours"
    labels = [study.variant(v).label for v in variants]
    return StudyTable(title, ("benchmark", *labels), tuple(rows), n_names=1)


@dataclass(frozen=True)
class Tried:
    """A claim of a study, and on which benchmarks it holds."""

    claim: Claim
    held: int
    against: tuple[str, ...]  # where it does not, with the numbers
    open: tuple[str, ...]  # where the seeds' ranges meet
    missing: tuple[str, ...]  # rivals without a number, by benchmark
    n_seeds: int = 2  # of the cell with the fewest

    @property
    def n(self) -> int:
        """Benchmarks that decide something."""
        return self.held + len(self.against) + len(self.open)


def claims(study: Study, results: Results) -> list[Tried]:
    """Each claim with the benchmarks where it holds beyond the spread of the seeds, and others."""
    results = complete(study, results)
    told = []
    for claim in study.claims:
        both = [claim, *_with_the_paper_s_generator(study, results, claim)]
        tried = [_try(one, study, results) for one in both]
        # Of a claim that no cell bears on, only the other generator's is told.
        told += [one for one in tried if one.n] or tried[:1]
    return told


def _with_the_paper_s_generator(study: Study, results: Results, claim: Claim) -> list[Claim]:
    """The same claim of the same variants with CTGAN, where they were run with it."""
    if claim.measure in ("per_second", "per_second_all"):
        return []  # those searches may have had a GPU, which no rival has
    beside = {v.of: v.name for v in study.variants if v.of}
    first = beside.get(claim.first)
    if first is None or not any(o.variant == first for o in results.outcomes.values()):
        return []
    over = tuple(beside.get(name, name) for name in claim.over)
    return [replace(claim, says=f"{claim.says} (CTGAN)", first=first, over=over)]


def _try(claim: Claim, study: Study, results: Results) -> Tried:
    held, against, undecided, missing = 0, [], [], []
    seeds = []
    sign = 1 if MEASURES[claim.measure].more_is_better is not False else -1
    for benchmark in _run_benchmarks(study, results):
        mine = results.numbers(benchmark, claim.first, claim.measure)
        others = {name: _rival(results, benchmark, claim, name) for name in claim.over}
        lacking = [name for name, values in others.items() if not values]
        if not mine or lacking:
            missing.append(f"{benchmark}: {', '.join(lacking) or claim.first}")
            continue
        seeds += [len(mine), *map(len, others.values())]
        means = {name: sign * statistics.fmean(values) for name, values in others.items()}
        mean = sign * statistics.fmean(mine)
        stands = {
            name: compare((sign * a, sign * b) for a in mine for b in values)
            for name, values in others.items()
        }
        ahead = [name for name, verdict in stands.items() if verdict == "lost"]
        rival = max(ahead or means, key=lambda name: means[name])
        shown = (
            f"{show(sign * means[rival], claim.measure)} against {show(sign * mean, claim.measure)}"
        )
        more = f" and {len(ahead) - 1} more" if len(ahead) > 1 else ""
        if ahead:
            against.append(f"{benchmark}: {rival} {shown}{more}")
        elif "open" in stands.values():
            undecided.append(f"{benchmark}: {rival} {shown}")
        else:
            held += 1
    n_seeds = min(seeds, default=0)
    return Tried(claim, held, tuple(against), tuple(undecided), tuple(missing), n_seeds)


def compare(pairs: Iterable[tuple[float, float]]) -> str:
    """How one stands to a rival, by every seed of the one beside every seed of the other.

    `held` if it is better in all pairs, `lost` if it is worse in all, else `open`.
    """
    known = list(pairs)
    if all(a > b for a, b in known):
        return "held"
    return "lost" if all(a < b for a, b in known) else "open"


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


def briefly(study: Study, results: Results) -> tuple[str, ...]:
    """The conditions of one study at one scale; what all share stands on the overview."""
    size = (load(study.uses) if study.uses else study).scale(results.scale)
    by_seeds: dict[int, list[str]] = {}
    for variant in size.variants:
        outcomes = [
            o for o in results.outcomes.values() if o.variant == variant and o.status == DONE
        ]
        n = (
            min(
                (sum(o.status == DONE for o in results.of(b, variant)) for b in _run_of(results)),
                default=0,
            )
            if outcomes
            else 0
        )
        if n < size.seeds and not _is_derived(study, variant):
            told = f"{variant} on some benchmarks" if outcomes and not n else variant
            by_seeds.setdefault(n, []).append(told)
    fewer = "; ".join(
        f"{n} seed{'' if n == 1 else 's'}: {', '.join(names)}"
        if n
        else f"not run: {', '.join(names)}"
        for n, names in sorted(by_seeds.items(), reverse=True)
    )
    said = [
        f"{size.words[:1].upper()}{size.words[1:]}. {size.seeds} seeds"
        + (f", but for {fewer}." if fewer else "."),
        _generators(study, results),
        _accuracies(results) if study.kind not in ("twins", "images") else "",
        f"Machine: {describe_machines(results.made)}.",
        *study.notes,
    ]
    return tuple(one for one in said if one)


def _is_derived(study: Study, variant: str) -> bool:
    return any(v.name == variant and v.derived for v in study.variants)


def _generators(study: Study, results: Results) -> str:
    """Which generator each variant draws from, as its cells say."""
    used: dict[str, list[str]] = {}
    for outcome in results.outcomes.values():
        if name := outcome.given.get("generator"):
            short = outcome.given.get("generator_settings")
            told = f"`{name}`" + (
                f" ({', '.join(f'{k} {v}' for k, v in short.items())})" if short else ""
            )
            if outcome.variant not in used.setdefault(told, []):
                used[told].append(outcome.variant)
    return "; ".join(f"Generator {name}: {', '.join(names)}" for name, names in used.items()) + (
        "." if used else ""
    )


def _machine(made: Mapping[str, Any]) -> str:
    found = made.get("versions", {})
    tools = ("limi", "numpy", "scikit-learn", "torch")
    seen = ", ".join(f"{name} {found[name]}" for name in tools if name in found)
    return f"{made.get('processor', 'unknown')}, {made.get('cores', '?')} cores ({seen})"


def _accuracies(results: Results) -> str:
    published = paper_accuracy()
    shown: dict[str, str] = {}
    unseen: dict[str, str] = {}
    for outcome in results.outcomes.values():
        table, target = outcome.benchmark.partition("-")[0], outcome.given.get("target", "")
        value = outcome.measures.get("accuracy")
        if outcome.status != DONE or value is None:
            continue
        if "before" in outcome.measures:  # a repaired target is not the one that was tested
            value = outcome.measures["before"].get("accuracy", value)
        if (of_unseen := outcome.measures.get("test_accuracy")) is not None:
            unseen.setdefault(f"{table} {target}", f"{100 * of_unseen:.1f}")
        beside = (
            f" ({100 * published[table]:.1f})" if target == "dnn" and table in published else ""
        )
        shown.setdefault(f"{table} {target}", f"{100 * value:.1f}{beside}")
    if not shown:
        return ""
    words = ", ".join(f"{name} {value}" for name, value in sorted(shown.items()))
    beside = " (the paper's)" if "(" in words else ""
    return (
        "Targets: trained here, of the same shape as the paper's; accuracy on the training rows in "
        f"percent{beside}: {words}." + _of_test_rows(unseen)
    )


def _of_test_rows(unseen: Mapping[str, str]) -> str:
    words = ", ".join(f"{name} {value}" for name, value in sorted(unseen.items()))
    return f" On test rows, of the tables that have some: {words}." if words else ""


def complete(study: Study, results: Results) -> Results:
    """The results with those of derived variants: `before` is what repair cells measured first.

    Every method's cell of a seed trains the same model again before it adds findings, so the
    first one's numbers are everyone's.
    """
    if results.is_complete:
        return results
    derived = [variant.name for variant in study.variants if variant.derived]
    speeds = _plain_speeds(results)
    known = {
        name: _in_the_paper_s_time(study, _derive(outcome), speeds)
        for name, outcome in results.outcomes.items()
    }
    for outcome in results.outcomes.values():
        for name in derived:
            cell = f"{outcome.benchmark}/{name}/{outcome.seed}"
            if outcome.status == DONE and name in outcome.measures and cell not in known:
                known[cell] = replace(outcome, cell=cell, measures=outcome.measures[name])
    return replace(results, outcomes=known, is_complete=True)


def _derive(outcome: Outcome) -> Outcome:
    """The same with what follows from other measures: findings per query, and per second of
    everything, which is the search and the fit of its generator."""
    told = dict(outcome.measures)
    if outcome.status != DONE or told.get("findings") is None:
        return outcome
    if told.get("rows"):
        told.setdefault("per_row", round(told["findings"] / told["rows"], 5))
        if isinstance(told.get("plausible"), (int, float)):
            told["plausible_per_row"] = round(told["plausible"] / told["rows"], 5)
    if told.get("queries") and "per_thousand_queries" not in told:
        rate = findings_per_thousand_queries(told["findings"], told["queries"])
        told["per_thousand_queries"] = round(rate, 3)
    fit = told.get("generator_seconds", None if outcome.given.get("generator") else 0.0)
    if told.get("seconds") and fit is not None:  # else it was not measured
        rate = findings_per_second(told["findings"], told["seconds"], fit)
        told["per_second_all"] = round(rate, 2)
    return replace(outcome, measures=told)


def _plain_speeds(results: Results) -> dict[str, float]:
    """Rows per second of a loop over the rows of each benchmark, of the cells that measured it."""
    found: dict[str, list[float]] = {}
    for outcome in results.outcomes.values():
        if speed := outcome.measures.get("plain_rows_per_second"):
            found.setdefault(outcome.benchmark, []).append(speed)
    return {benchmark: statistics.median(speeds) for benchmark, speeds in found.items()}


def _in_the_paper_s_time(
    study: Study, outcome: Outcome, plain_speeds: Mapping[str, float]
) -> Outcome:
    """What a search had found when it had checked as many rows as a program that asks for one row
    and one value per call checks in the time that the paper's run took."""
    paper = paper_numbers(study.name)
    name = next((v.of or v.name for v in study.variants if v.name == outcome.variant), "")
    counts, speeds = (
        paper.get(m, {}).get(outcome.benchmark, {}) for m in ("findings", "per_second")
    )
    # Of the target, whatever the method: a cell that did not measure it has another's.
    speed = outcome.measures.get("plain_rows_per_second", plain_speeds.get(outcome.benchmark))
    if outcome.status != DONE or not speed or not speeds.get(name) or name not in counts:
        return outcome
    seconds = min(_AN_HOUR, counts[name] / speeds[name])
    rows = speed * seconds
    checked = outcome.measures.get("rows", 0)
    # Where all that was checked fits in that time, no curve is needed.
    found = outcome.measures.get("findings") if rows >= checked else at_rows(outcome, rows)
    told = {"paper_seconds": seconds, "plain_rows": rows, "plain_findings": found}
    return replace(outcome, measures={**outcome.measures, **told})


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
            return _why_not(self.results, self.benchmark, self.variant, measure, self.notes)
        if kind == "ours" and mean is not None:
            return show(mean, measure)
        if kind == "spread":
            return _spread(self.results, self.benchmark, self.variant, measure)
        if kind == "paper":
            return "" if given is None else show(given, measure)
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


def _rival(results: Results, benchmark: str, claim: Claim, name: str) -> list[float]:
    """What a claim compares with: another variant, or the table's own rows that flip."""
    if name == "real":
        return results.numbers(benchmark, claim.first, "real_atn")
    return results.numbers(benchmark, name, claim.measure)


def _spread(results: Results, benchmark: str, variant: str, measure: str) -> str:
    found = results.numbers(benchmark, variant, measure)
    if len(found) < 2:
        return ""
    low, high = show(min(found), measure), show(max(found), measure)
    return low if low == high else f"{low} to {high}"


def show(value: float, measure: str) -> str:
    """A number as its measure is written."""
    form = MEASURES[measure].form
    if form == "2":  # counts that a sample was extrapolated to: two digits are known
        return f"{float(f'{value:.2g}'):,.0f}"
    if form == "3":  # speeds: further digits are the machine's noise
        places = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
        return f"{float(f'{value:.3g}'):,.{places}f}"
    if form == "2 rate":
        places = 0 if abs(value) >= 10 else 1 if abs(value) >= 1 else 2
        return f"{float(f'{value:.2g}'):,.{places}f}"
    if form == ",.1f" and abs(value) < 10:
        form = ",.2f"
    return format(value, form)


def _published(
    study: Study,
    results: Results,
    numbers: dict[str, dict[str, float]],
    benchmark: str,
    variant: str,
) -> float | None:
    """The paper's number of a cell; of a mean that it does not print, the mean of its column."""
    name = study.variant(variant).of or variant
    if benchmark == MEAN and MEAN not in numbers:
        column = [numbers.get(b, {}).get(name) for b in _run_benchmarks(study, results)]
        known = [value for value in column if value is not None]
        return statistics.fmean(known) if known and len(known) == len(column) else None
    return numbers.get(benchmark, {}).get(name)


def _why_not(
    results: Results, benchmark: str, variant: str, measure: str, notes: _Notes | None = None
) -> str:
    """Why a cell has no number, in a word; the sentence becomes a footnote."""
    if benchmark.startswith(MEAN):
        return "-"
    outcomes = results.of(benchmark, variant)
    if not outcomes:
        return NO_RESULT
    told: Outcome | None = next((o for o in outcomes if o.status != DONE), None)
    if told is None:
        found = [o.measures.get("findings") for o in outcomes]
        few = all(isinstance(n, (int, float)) and n < FEWEST_TO_JUDGE for n in found)
        judged = measure not in _OF_THE_TARGET
        return f"under {FEWEST_TO_JUDGE} found" if few and judged else "-"
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
    beside = {v.of: v.name for v in study.variants if v.of}
    # What was run with one generator alone has no column of "not run" for the other.
    spare = {name for pair in beside.items() for name in pair if set(pair) & found} - found
    shown = (found | set(planned)) - spare
    return [v.name for v in study.variants if v.name in shown]


def _has(results: Results, variant: str, measure: str) -> bool:
    outcomes = results.outcomes.values()
    return any(
        o.variant == variant and (measure in o.measures or o.status != DONE) for o in outcomes
    )


def _by_method(study: Study) -> bool:
    return all(variant.name == variant.method for variant in study.variants)

"""Conditions of a study's results: budget, seeds, generators, targets, machines, and what differs
from the paper's."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from lab.cells import Cell, expand
from lab.files import PAPER_GENERATOR, Scale, Study, paper_accuracy
from lab.outdated import OLDER, describe_outdated, find_older, find_outdated
from lab.results import DONE, Outcome, Results
from limi import methods
from limi.methods.limi import LIMI

if TYPE_CHECKING:
    from limi.search.session import Session

__all__ = ["are_comparable", "briefly", "describe_machines", "is_on_gpu"]

_WITH_GPU = " with an NVIDIA GPU"


def describe_machines(made: Mapping[str, Any], where: Iterable[str] | None = None) -> str:
    """What results were made on and with; where their cells name machines, with those alone."""
    known = [made, *made.get("earlier", ())]
    if where is not None:
        known = [one for one in known if _is_named(one, where)] or known
    return "; ".join(dict.fromkeys(map(_machine, known)))


def briefly(
    study: Study, results: Results, reasons: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """The conditions of one study at one scale; what all share stands on a page of its own.

    `reasons` are those of cells that would be run again, where they are known.
    """
    if reasons is None:
        reasons = find_outdated(results, expand(study, results.scale))
    size = _size(study, results)
    words = f"{size.words[:1].upper()}{size.words[1:]}"
    fewer = _fewer_seeds(study, size, results)
    seeds = f"{size.seeds} seed{'' if size.seeds == 1 else 's'}"
    said = [
        f"{words}. {seeds}{fewer}.",
        _tell_labels(study, results),
        _generators(study, results),
        _accuracies(results) if study.kind not in ("twins", "images", "plain") else "",
        _places(study, results),
        *(
            f"{OLDER.strip()} **Cells of an earlier program** ({', '.join(variants)}): {says}"
            for says, variants in find_older(study, results).items()
        ),
        describe_outdated(results, reasons),
    ]
    return tuple(one for one in said if one)


def _tell_labels(study: Study, results: Results) -> str:
    """How many latents LIMI labels for its boundary, where it does not label all as the paper.

    An earlier program may have labelled others, so of its cells nothing is said but that.
    """
    fewer: dict[tuple[int, int], dict[str, None]] = {}
    unknown: dict[str, None] = {}
    for cell in expand(study, results.scale):
        given = methods.parse(cell.method, cell.settings)
        method = getattr(given, "explorer", given)
        if isinstance(method, LIMI) and cell.name in results.outcomes and _searches(cell):
            most = getattr(given, "explore_rows", None) or math.inf
            rows = min(most, cell.budget.get("max_rows", math.inf))
            n = count_labels(method, rows, cell.budget.get("max_queries", math.inf))
            if n < method.n_latents and method.boundary == "fitted":
                if results.outcomes[cell.name].digest == cell.digest():
                    fewer.setdefault((n, method.n_latents), {})[cell.variant] = None
                else:
                    unknown[cell.variant] = None
    parts = [
        f"{n:,} of {latents:,} latents ({', '.join(names)})"
        for (n, latents), names in sorted(fewer.items())
    ]
    told = ""
    if parts:
        told = (
            f"LIMI labels {'; '.join(parts)} for its boundary (at most a tenth of what it may "
            "check or ask, and 200 at least); the paper labels all."
        )
    if unknown:
        told += f" Earlier cells of {', '.join(unknown)} do not record how many they labelled."
    return told.strip()


def _searches(cell: Cell) -> bool:
    """Does a cell search at all? Most ways of repairing need no findings."""
    return bool(cell.extra.get("how", "findings") == "findings")


def count_labels(method: LIMI, rows: float, queries: float) -> int:
    """Latents that a search within these rows and queries labels."""
    watch = SimpleNamespace(affordable=math.inf)
    session = SimpleNamespace(rows_left=rows, queries_left=queries, watch=watch)
    return method._n_labelled(cast("Session", session))


def is_on_gpu(outcome: Outcome) -> bool | None:
    """Did a cell search on a GPU? None where it does not say, which cells of today do; older ones
    of the paper's generator may have."""
    if "device" in outcome.given:
        return bool(outcome.given["device"] != "cpu")
    return None if outcome.given.get("generator") == PAPER_GENERATOR else False


def are_comparable(outcomes: Iterable[Outcome]) -> bool:
    """May speeds of these cells be compared? Only if all name one machine, and none had a GPU."""
    known = list(outcomes)
    machines = {str(one.given.get("machine", "")) for one in known}
    if len(machines) > 1 or "" in machines:
        return False
    return all(is_on_gpu(one) is False for one in known)


def _size(study: Study, results: Results) -> Scale:
    return study.planner.scale(results.scale)


def _fewer_seeds(study: Study, size: Scale, results: Results) -> str:
    """Which variants have fewer seeds than planned."""
    benchmarks = dict.fromkeys(outcome.benchmark for outcome in results.outcomes.values())
    by_seeds: dict[int, list[str]] = {}
    for variant in size.variants:
        done = [sum(o.status == DONE for o in results.of(b, variant)) for b in benchmarks]
        n = min(done, default=0)
        if n < size.seeds and not _is_derived(study, variant):
            told = f"{variant} on some benchmarks" if not n and any(done) else variant
            by_seeds.setdefault(n, []).append(told)
    not_run = by_seeds.pop(0, [])
    parts = [
        f"{n} seed{'' if n == 1 else 's'}: {', '.join(names)}"
        for n, names in sorted(by_seeds.items(), reverse=True)
    ]
    told = f", but for {'; '.join(parts)}" if parts else ""
    return told + (f"; not run: {', '.join(not_run)}" if not_run else "")


def _places(study: Study, results: Results) -> str:
    """Which variants ran on which machine, and on which of its devices."""
    where: dict[str, Counter[str]] = {}
    for outcome in results.outcomes.values():
        if outcome.status == DONE and not _is_derived(study, outcome.variant):
            machine = str(outcome.given.get("machine", ""))
            if machine and is_on_gpu(outcome):
                machine += _WITH_GPU
            where.setdefault(machine, Counter())[outcome.variant] += 1
    silent = where.pop("", Counter())
    unsaid = [
        variant
        for variant in silent
        if any(o.variant == variant and is_on_gpu(o) is None for o in results.outcomes.values())
    ]
    made = describe_machines(results.made, None if silent else where)
    made = f"Made with {made}; one thread per cell." if where else f"Made with {made}."
    by_cells = sorted(where.items(), key=lambda place: -place[1].total())
    parts = [
        f"{names.total():,} cells of {_join(names, study, results)} on {machine}"
        for machine, names in by_cells
    ]
    told = f" By cell: {'; '.join(parts)}." if len(parts) + bool(silent) > 1 else ""
    if silent and not parts:
        told += " The cells themselves name no machine."
    if silent and parts:
        told += f" Cells that do not say which of these: {_join(silent, study, results)}."
    if unsaid:
        which = _join(unsaid, study, results)
        named = "The cells" if which == "all variants" else f"Cells of {which}"
        told += f" {named} do not say whether they searched on a GPU."
    if silent and any("seconds" in o.measures for o in results.outcomes.values()):
        told += " Speeds of cells that do not name their machine are not compared."
    return made + told


def _is_named(made: Mapping[str, Any], where: Iterable[str]) -> bool:
    """Do some cells name this machine?"""
    return any(place.removesuffix(_WITH_GPU) == made.get("processor") for place in where)


def _join(variants: Iterable[str], study: Study, results: Results) -> str:
    """Names of variants; all of them together are called so."""
    every = {o.variant for o in results.outcomes.values() if o.status == DONE}
    every = {name for name in every if not _is_derived(study, name)}
    names = list(variants)
    return "all variants" if set(names) == every else ", ".join(names)


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
        "Targets: trained here, of the same shape as the paper's; accuracy on the table's rows in "
        f"percent{beside}: {words}." + _of_test_rows(unseen)
    )


def _of_test_rows(unseen: Mapping[str, str]) -> str:
    words = ", ".join(f"{name} {value}" for name, value in sorted(unseen.items()))
    return f" On test rows, of the tables that have some: {words}." if words else ""

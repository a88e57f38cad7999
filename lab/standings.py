"""How methods stand on the targets of the open benchmark: numbers, ranks, and tables of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.files import Study
from lab.formats import StudyTable
from lab.results import DONE, NOT_RUN, UNABLE, Results
from lab.targets.ranks import Ranks, rank
from limi.errors import InvalidInput, nearest

__all__ = ["MEASURES", "BenchMeasure", "Standings", "describe_budget"]

_UNREACHED = 10  # times the budget, that a search counts which did not get there


@dataclass(frozen=True)
class BenchMeasure:
    """What is compared, how it is called and shown."""

    label: str
    form: str
    more_is_better: bool = True
    least: int = 1_000  # budget from which on it is measured


MEASURES = {
    "findings": BenchMeasure("findings per 1,000 queries", ",.1f", least=1),
    "plausible": BenchMeasure(
        "findings of which both rows are plausible per 1,000 queries", ",.1f"
    ),
    "share": BenchMeasure("share of findings of which both rows are plausible", ".0%"),
    "first": BenchMeasure("queries to the first finding", ",.0f", False),
    "tenth": BenchMeasure("queries to the tenth finding", ",.0f", False),
    "leaves": BenchMeasure("leaves of the reference partition with a finding", ",.0f"),
    "coverage": BenchMeasure("share of flipping people in leaves with a finding", ".0%"),
    "agreement": BenchMeasure("agreement of regions", ".2f"),
    "distance": BenchMeasure("mean distance of two findings", ".2f"),
    "seconds": BenchMeasure("seconds", ",.1f", False, least=1),
}
_PER_THOUSAND = 1_000


def describe_budget(budget: int) -> str:
    """For names of columns."""
    return f"{budget:,}"


@dataclass(frozen=True)
class Standings:
    """The results of a run of the benchmark, as numbers by target and method."""

    study: Study
    results: Results

    @cached_property
    def methods(self) -> list[str]:
        """The methods of which anything is known, in the study's order."""
        tried = {outcome.variant for outcome in self.results.outcomes.values()}
        return [variant.name for variant in self.study.variants if variant.name in tried]

    @cached_property
    def targets(self) -> list[str]:
        """The targets on which anything was done, in the order of their definitions."""
        done = {o.benchmark for o in self.results.outcomes.values() if o.status == DONE}
        return [name for name in self.study.targets if name in done]

    @cached_property
    def families(self) -> dict[str, list[str]]:
        """Targets by family."""
        found: dict[str, list[str]] = {}
        for name in self.targets:
            found.setdefault(str(self.study.targets[name]["family"]), []).append(name)
        return found

    @cached_property
    def budgets(self) -> list[int]:
        """The budgets that were tried, smallest first."""
        found = {
            int(name.removeprefix("found_"))
            for outcome in self.results.outcomes.values()
            for name in outcome.measures
            if name.startswith("found_") and name.removeprefix("found_").isdigit()
        }
        return sorted(found)

    @property
    def main_budget(self) -> int:
        """The budget by which methods are first of all compared: 10,000, or the nearest."""
        if not self.budgets:
            raise InvalidInput("there are no results of the benchmark; run: make bench-field")
        return min(self.budgets, key=lambda budget: abs(math.log10(budget) - 4))

    def check_budget(self, budget: int | None) -> int:
        """A budget that was tried; the main one where none is given."""
        if budget is None:
            return self.main_budget
        if budget not in self.budgets:
            known = ", ".join(map(str, self.budgets))
            raise InvalidInput(f"no result has a budget of {budget} queries; there are {known}")
        return budget

    def unable(self, target: str, method: str) -> bool:
        """Is the method known to be of no use on this target?"""
        found = self.results.of(target, method)
        return bool(found) and all(outcome.status == UNABLE for outcome in found)

    def value(self, target: str, method: str, measure: str, budget: int) -> float:
        """The mean over seeds; NaN where nothing was measured, infinite where nothing was
        reached."""
        seen = [
            one
            for outcome in self.results.of(target, method)
            if outcome.status == DONE and f"found_{budget}" in outcome.measures
            for one in [_take(outcome.measures, measure, budget)]
            if one is not None
        ]
        return float(np.mean(seen)) if seen else math.nan

    def fact(self, target: str, name: str) -> float:
        """What is true of a target whatever the method."""
        for outcome in self.results.outcomes.values():
            value = outcome.measures.get(name)
            if outcome.benchmark == target and isinstance(value, (int, float)):
                return float(value)
        return math.nan

    def values(
        self, targets: Sequence[str], methods: Sequence[str], measure: str, budget: int
    ) -> NDArray[np.float64]:
        """(targets, methods)."""
        return np.array([[self.value(t, m, measure, budget) for m in methods] for t in targets])

    def able(self, targets: Sequence[str]) -> list[str]:
        """The methods that can do all of these targets."""
        return [m for m in self.methods if not any(self.unable(t, m) for t in targets)]

    def rank(self, targets: Sequence[str], measure: str, budget: int) -> Ranks:
        """Ranks of the methods that can do all of these targets, on those whose cells are done.

        A method that was tried on less than half as many as others is left out, so that one begun
        lately does not take all targets from the others. InvalidInput where there are too few.
        """
        methods = self._tried(targets, self.able(targets), budget)
        complete = self.complete(targets, methods, budget)
        values = self.values(complete, methods, measure, budget)
        better = MEASURES[measure].more_is_better
        if not len(complete):
            values = np.empty((0, len(methods)))
        return rank(methods, values, more_is_better=better)

    def _tried(self, targets: Sequence[str], methods: Sequence[str], budget: int) -> list[str]:
        counts = {m: len(self.complete(targets, [m], budget)) for m in methods}
        most = max(counts.values(), default=0)
        return [m for m in methods if counts[m] and 2 * counts[m] >= most]

    def complete(self, targets: Sequence[str], methods: Sequence[str], budget: int) -> list[str]:
        """The targets on which all of these methods have a result for this budget."""
        return [
            t
            for t in targets
            if all(not math.isnan(self.value(t, m, "findings", budget)) for m in methods)
        ]

    def networks(self) -> list[str]:
        """The targets that every method can do: those that can be looked into."""
        return [t for t in self.targets if not any(self.unable(t, m) for m in self.methods)]

    # -- tables -----------------------------------------------------------------------------

    def table(self, measure: str, budget: int) -> StudyTable:
        """A measure with a row for each target and a column for each method, best ones marked."""
        if measure not in MEASURES:
            raise InvalidInput(f"there is no measure {measure!r}; {nearest(measure, MEASURES)}")
        told = MEASURES[measure]
        if budget < told.least:
            raise InvalidInput(
                f"{measure!r} is measured with {told.least:,} queries and more, and not with "
                f"{budget:,}"
            )
        rows = [
            (family, target, *self._line(target, measure, budget))
            for family, targets in self.families.items()
            for target in targets
        ]
        title = f"{told.label[:1].upper()}{told.label[1:]}, {budget:,} queries; * is the best"
        notes = (_NOTE_UNREACHED.format(budget),) if not told.more_is_better else ()
        return StudyTable(title, ("family", "target", *self.methods), tuple(rows), notes)

    def _line(self, target: str, measure: str, budget: int) -> list[str]:
        values = [self.value(target, m, measure, budget) for m in self.methods]
        best = find_best(values, MEASURES[measure].more_is_better)
        shown = []
        for place, (method, value) in enumerate(zip(self.methods, values, strict=True)):
            text = self._show(target, method, value, measure, budget)
            shown.append(f"{text}*" if place in best else text)
        return shown

    def _show(self, target: str, method: str, value: float, measure: str, budget: int) -> str:
        if math.isnan(value):
            if self.unable(target, method):
                return "unable"
            found = self.results.of(target, method)
            told = next((o.status for o in found if o.status != DONE), "")
            return told or ("-" if found else NOT_RUN)
        if measure in ("first", "tenth") and value > budget:
            return f"> {budget:,}"
        return format(value, MEASURES[measure].form)

    def rank_table(self, title: str, targets: Sequence[str]) -> StudyTable:
        """Mean ranks by findings with each budget, by plausible ones, and by the first finding."""
        main = self.main_budget
        asked = [("findings", budget) for budget in self.budgets]
        if main >= MEASURES["plausible"].least:
            asked += [("plausible", main), ("first", main), ("tenth", main)]
            asked += [("coverage", main)]
        ranked = {}
        for one in asked:
            try:
                ranked[one] = self.rank(targets, *one)
            except InvalidInput:
                continue
        if not ranked:
            return StudyTable(title, ("method",), (), ("Too few targets are done.",), 1)
        order = ranked.get(("findings", main), next(iter(ranked.values()))).methods
        by = {one: dict(zip(r.methods, r.means, strict=True)) for one, r in ranked.items()}
        names = {
            "findings": "findings",
            "plausible": "plausible",
            "first": "first",
            "tenth": "10th",
        }
        headings = [f"{names.get(m, m)}, {describe_budget(b)}" for m, b in ranked]
        rows = tuple(
            (m, *(f"{by[one][m]:.2f}" if m in by[one] else "-" for one in ranked)) for m in order
        )
        last = ("critical difference", *(f"{r.difference:.2f}" for r in ranked.values()))
        tried = ("targets", *(str(r.n_targets) for r in ranked.values()))
        return StudyTable(title, ("method", *headings), (*rows, last, tried), n_names=1)

    def family_table(self, budget: int) -> StudyTable:
        """Mean ranks by findings within each family."""
        rows = []
        for family, targets in self.families.items():
            done = self.complete(targets, self._tried(targets, self.able(targets), budget), budget)
            values = self.values(done, self.methods, "findings", budget)
            means = _mean_ranks(values) if len(done) else np.full(len(self.methods), np.nan)
            best = find_best(list(means), more_is_better=False)
            cells = [
                "-" if math.isnan(mean) else f"{mean:.2f}{'*' if place in best else ''}"
                for place, mean in enumerate(means)
            ]
            rows.append((f"{family} ({len(done)})", *cells))
        title = f"Mean ranks by findings within a family (targets), {budget:,} queries"
        return StudyTable(title, ("family", *self.methods), tuple(rows), n_names=1)

    def not_first(
        self, method: str, measure: str, budget: int
    ) -> list[tuple[str, str, float, float]]:
        """Targets on which a method is not first, with who is, its number and the method's."""
        told = []
        for target in self.targets:
            values = [self.value(target, m, measure, budget) for m in self.methods]
            best = find_best(values, MEASURES[measure].more_is_better)
            mine = self.methods.index(method)
            if best and mine not in best and not math.isnan(values[mine]):
                told.append((target, self.methods[best[0]], values[best[0]], values[mine]))
        return told


_NOTE_UNREACHED = (
    f"A search that does not get there counts as {_UNREACHED} times its budget of {{:,}} queries."
)


def _take(measures: Any, measure: str, budget: int) -> float | None:
    """A measure of one cell."""

    def get(name: str) -> float | None:
        value = measures.get(f"{name}_{budget}")
        return float(value) if isinstance(value, (int, float)) else None

    if measure == "findings":
        found = get("found")
        return None if found is None else found * _PER_THOUSAND / budget
    if measure == "plausible":
        found, share = get("found"), get("plausible")
        return None if found is None else found * (share or 0.0) * _PER_THOUSAND / budget
    if measure in ("first", "tenth"):
        if f"to_1_{budget}" not in measures:
            return None
        reached = get("to_1" if measure == "first" else "to_10")
        return float(_UNREACHED * budget) if reached is None else reached
    return get({"share": "plausible"}.get(measure, measure))


def find_best(values: Sequence[float], more_is_better: bool) -> list[int]:
    """Places of the best of some numbers; none where all are missing or alike."""
    known = [v for v in values if not math.isnan(v)]
    if len(known) < 2 or min(known) == max(known):
        return []
    best = max(known) if more_is_better else min(known)
    return [place for place, value in enumerate(values) if value == best]


def _mean_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of methods that are missing nowhere; NaN for the others."""
    from scipy import stats

    there = ~np.isnan(values).any(axis=0)
    means = np.full(values.shape[1], np.nan)
    if there.any():
        means[there] = stats.rankdata(-values[:, there], axis=1).mean(axis=0)
    return means

"""A claim before the results of one scale, with one generator: its cells and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from lab.conditions import are_comparable
from lab.derived import at_rows
from lab.files import PAPER_GENERATOR, Study
from lab.measures import MEASURES, found_too_few
from lab.outdated import find_older
from lab.paper_claims import PaperClaim
from lab.results import DONE, Outcome, Results
from lab.side import FOUND_TOO_FEW, NOT_COMPUTABLE, NOTHING, UNMEASURED, Side

__all__ = ["Scene", "explain_gap", "list_planned"]


@dataclass(frozen=True)
class Scene:
    """A claim before the results of one scale, with one generator."""

    claim: PaperClaim
    study: Study
    results: Results
    generator: str
    equal: bool = False

    @property
    def benchmarks(self) -> list[str]:
        found = dict.fromkeys(outcome.benchmark for outcome in self.results.outcomes.values())
        return [benchmark for benchmark in found if self.claim.is_of(benchmark)]

    @property
    def sign(self) -> int:
        return MEASURES[self.claim.measure].sign

    def was_run(self) -> bool:
        """Is there a cell of every variant on every benchmark?"""
        places = [(b, name) for b in self.benchmarks for name in self.claim.named]
        return bool(places) and all(self.outcomes(*place) for place in places)

    def was_measured(self) -> bool:
        """Has every variant the measure somewhere, on every benchmark? At equal rows: a curve."""
        return self._have_all(self._has_number)

    def found_too_few(self) -> bool:
        """Has every variant the measure there, but for those of which a seed found too few?"""
        measure = self.claim.measure
        return self._have_all(
            lambda one: self._has_number(one) or found_too_few(measure, one.measures)
        )

    def _have_all(self, is_wanted: Callable[[Outcome], bool]) -> bool:
        """Has every variant such a cell, on every benchmark?"""
        return all(
            any(map(is_wanted, self.outcomes(benchmark, name).values()))
            for benchmark in self.benchmarks
            for name in self.claim.named
        )

    def _has_number(self, outcome: Outcome) -> bool:
        return self.pair(outcome, outcome)[0] is not None

    def has_older(self) -> bool:
        """Are some of its cells known to be of a program that searched otherwise?"""
        of = {n: o for n, o in self.results.outcomes.items() if self.claim.is_of(o.benchmark)}
        told = find_older(self.study, replace(self.results, outcomes=of))
        older = {name for names in told.values() for name in names}
        named = (*self.claim.named, *filter(None, [self.claim.control]))
        return any(self.of(name) in older for name in named)

    def has_one_machine(self) -> bool:
        return are_comparable(
            outcome
            for benchmark in self.benchmarks
            for name in self.claim.named
            for outcome in self.outcomes(benchmark, name).values()
        )

    def of(self, variant: str) -> str:
        """The variant as it is run with the generator; methods that need none have one name."""
        if self.generator != PAPER_GENERATOR:
            return variant
        return self.study.beside(variant) or variant

    def outcomes(self, benchmark: str, variant: str) -> dict[int, Outcome]:
        """The cells of a variant that are done, by seed."""
        found = self.results.of(benchmark, self.of(variant))
        return {outcome.seed: outcome for outcome in found if outcome.status == DONE}

    def number(self, outcome: Outcome) -> float | None:
        """The claim's measure of a cell; None where one of its seeds found too few for it."""
        if not self.results.numbers(outcome.benchmark, outcome.variant, self.claim.measure):
            return None
        value = outcome.measures.get(self.claim.measure)
        return float(value) if isinstance(value, (int, float)) else None

    def pair(self, first: Outcome, second: Outcome) -> tuple[float | None, float | None]:
        """A measure of two cells; of findings at equal rows where that is asked."""
        if not self.equal:
            return self.number(first), self.number(second)
        rows = [_rows(one) for one in (first, second)]
        return at_rows(first, min(rows)), at_rows(second, min(rows))

    def count_draws(self, variant: str, seeds: Collection[int]) -> int:
        """How many draws the numbers of these seeds are: the model before all training is one, and
        stands beside every seed."""
        return 1 if self.study.is_one_draw(variant) else len(seeds)

    def by_seed(self, names: Sequence[str]) -> dict[int, dict[str, list[float]]]:
        """By seed the numbers of variants on all benchmarks, of seeds that have them all."""
        cells = {(b, v): self.outcomes(b, v) for b in self.benchmarks for v in names}
        if not cells or not all(cells.values()):
            return {}
        found = {}
        for seed in sorted(set.intersection(*map(set, cells.values()))):
            lines = {v: [self.number(cells[(b, v)][seed]) for b in self.benchmarks] for v in names}
            known = {v: [x for x in line if x is not None] for v, line in lines.items()}
            if all(len(line) == len(self.benchmarks) for line in known.values()):
                found[seed] = known
        return found


def explain_gap(scenes: Sequence[Scene]) -> Side:
    """Why there is no number: the cells were not run, lack the measure, found too few for it, or
    bear no such number."""
    run = [scene for scene in scenes if scene.was_run()]
    if not run:
        return NOTHING
    if any(scene.was_measured() for scene in run):
        return NOT_COMPUTABLE
    return FOUND_TOO_FEW if any(scene.found_too_few() for scene in run) else UNMEASURED


def list_planned(scene: Scene) -> list[str]:
    """The benchmarks that the scale has of those that the claim is about."""
    planned = scene.study.planner.scale(scene.results.scale).benchmarks
    return [benchmark for benchmark in planned if scene.claim.is_of(benchmark)]


def _rows(outcome: Outcome) -> float:
    value = outcome.measures.get("rows")
    return float(value) if isinstance(value, (int, float)) else 0.0

"""What a claim comes to on one side, with the paper's generator, with ours, or at equal rows: its
number for each seed, the words for it, and the verdict of the rule."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from limi import methods
from limi.studies._conditions import are_comparable
from limi.studies._derived import at_rows
from limi.studies._files import PAPER_GENERATOR, Study, paper_numbers
from limi.studies._measures import MEASURES, SPEEDS, show
from limi.studies._outdated import OLDER, find_older
from limi.studies._paper_claims import PaperClaim
from limi.studies._results import DONE, Outcome, Results
from limi.studies._rule import compare

__all__ = ["NOTHING", "NOT_COMPARABLE", "Side", "compute", "compute_of_paper", "has_generator"]
__all__ += ["count_in_the_paper", "list_published", "show_size", "take_side", "uses_generator"]

NOT_RUN = "not run"
NOT_COMPARABLE = "not comparable"
_OPPOSITE = "no: the opposite"
_ONE_SEED = "open: one seed"
_ALONE = " (one seed)"
_TIE = "a tie"
_HOLDS = ("yes", "smaller")
_BESIDE_CONTROL = ("yes", "smaller", "open", _OPPOSITE)  # verdicts that a control can take back

Get = Callable[[str, str], float | None]
"""The number of a benchmark and a variant, of one seed or of the paper."""


@dataclass(frozen=True)
class Side:
    """A claim's number for each seed, or its count of benchmarks, and the words for it."""

    shown: str
    verdict: str
    scale: str = ""
    n_seeds: int = 2
    spread: str = ""  # over seeds
    asides: tuple[tuple[str, str], ...] = ()  # what is told in brackets, and the spread of it
    means: str = ""  # what the means over benchmarks give
    marks: str = ""
    values: tuple[float, ...] = ()  # by seed, of a claim of size

    def __str__(self) -> str:
        told = [self.spread, *(words + _in_brackets(spread) for words, spread in self.asides)]
        return self._tell(told, self.means)

    @property
    def brief(self) -> str:
        """Without spreads and other averages."""
        return self._tell([words for words, _ in self.asides], "")

    def add(self, words: str, spread: str = "") -> Side:
        """The side with more in its brackets."""
        return replace(self, asides=(*self.asides, (words, spread)))

    def mark(self, words: str) -> Side:
        """The side with more behind it."""
        return replace(self, marks=self.marks + words)

    def _tell(self, told: Sequence[str], means: str) -> str:
        inside = _in_brackets("; ".join(filter(None, told)))
        return self._at_scale(self.shown + inside + means + self.marks)

    def _at_scale(self, told: str) -> str:
        return f"{told}, `{self.scale}`" if self.scale not in ("", "paper") else told


NOTHING = Side(NOT_RUN, NOT_RUN)
UNMEASURED = Side("not measured", "not measured")
NOT_COMPUTABLE = Side("not computable", "not computable")


def _in_brackets(words: str) -> str:
    return words and f" ({words})"


def take_side(
    claim: PaperClaim, study: Study, known: Sequence[Results], generator: str, equal: bool = False
) -> Side | None:
    """What the largest scale that has the numbers says, of those with several seeds first."""
    fallback = None
    if generator == PAPER_GENERATOR and not has_generator(claim, study):
        return None
    for results in known:
        scene = _Scene(claim, study, results, generator, equal)
        side = scene.judge()
        if side is not None and side.shown == NOT_COMPARABLE:
            fallback = fallback or side
        elif side is not None:
            told = replace(side, scale=results.scale)
            if scene.has_older():
                told = told.mark(OLDER)
            if side.n_seeds > 1:
                return told
            fallback = told if fallback is None or not fallback.scale else fallback
    scenes = [_Scene(claim, study, results, generator, equal) for results in known]
    run = [scene for scene in scenes if scene.was_run()]
    if fallback is None and run:
        return NOT_COMPUTABLE if any(scene.was_measured() for scene in run) else UNMEASURED
    return fallback


def has_generator(claim: PaperClaim, study: Study) -> bool:
    """Is any of its variants run with the paper's generator as well?"""
    if claim.kind == "mean" and claim.measure == "accuracy":
        return False  # of targets, which no generator changes
    if any(study.variant(name).of for name in claim.named):
        return False  # it compares generators itself
    if claim.first and claim.first not in ("before", *claim.over) and not _has(study, claim.first):
        return False  # its rivals alone were run with it
    return any(_has(study, name) for name in claim.named)


def _has(study: Study, name: str) -> bool:
    return any(variant.of == name for variant in study.variants)


def uses_generator(claim: PaperClaim, study: Study) -> bool:
    """Does any of its variants search among rows of a generator? Targets do not."""
    if claim.measure == "accuracy" and claim.kind == "mean":
        return False
    needs = (
        methods.parse(variant.method, variant.settings).needs
        for variant in map(study.variant, claim.named)
        if not variant.derived
    )
    return any("generator" in one for one in needs)


@dataclass(frozen=True)
class _Scene:
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
        return -1 if MEASURES[self.claim.measure].more_is_better is False else 1

    def judge(self) -> Side | None:
        """The side, or None where a number is missing."""
        if self.claim.measure in SPEEDS and not self._has_one_machine():
            return Side(NOT_COMPARABLE, NOT_COMPARABLE)
        kinds: Mapping[str, Callable[[_Scene], Side | None]] = {
            "first": _count,
            "first of means": partial(_first_of_means, fold=statistics.fmean),
            "steadiest": partial(_first_of_means, fold=_spread_of),
            "best": _best,
            "table": _lowest_table,
            "order": _in_order,
        }
        return kinds.get(self.claim.kind, _measure)(self)

    def was_run(self) -> bool:
        """Is there a cell of every variant on every benchmark?"""
        places = [(b, name) for b in self.benchmarks for name in self.claim.named]
        return bool(places) and all(self.outcomes(*place) for place in places)

    def was_measured(self) -> bool:
        """Has every variant the measure somewhere, on every benchmark? At equal rows: a curve."""
        return all(
            any(
                self.pair(one, one)[0] is not None
                for one in self.outcomes(benchmark, name).values()
            )
            for benchmark in self.benchmarks
            for name in self.claim.named
        )

    def has_older(self) -> bool:
        """Are some of its cells known to be of a program that searched otherwise?"""
        of = {n: o for n, o in self.results.outcomes.items() if self.claim.is_of(o.benchmark)}
        told = find_older(self.study, replace(self.results, outcomes=of))
        older = {name for names in told.values() for name in names}
        return any(self.of(name) in older for name in self.claim.named)

    def _has_one_machine(self) -> bool:
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
        return next((v.name for v in self.study.variants if v.of == variant), variant)

    def outcomes(self, benchmark: str, variant: str) -> dict[int, Outcome]:
        """The cells of a variant that are done, by seed."""
        found = self.results.of(benchmark, self.of(variant))
        return {outcome.seed: outcome for outcome in found if outcome.status == DONE}

    def number(self, outcome: Outcome) -> float | None:
        """The claim's measure of a cell."""
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
        return 1 if self.study.variant(variant).derived else len(seeds)

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


def _rows(outcome: Outcome) -> float:
    value = outcome.measures.get("rows")
    return float(value) if isinstance(value, (int, float)) else 0.0


# -- who is first ---------------------------------------------------------------------------


def _count(scene: _Scene) -> Side | None:
    """On how many benchmarks one variant is first of all, beyond the spread of the seeds."""
    told = Counter[str]()
    n_seeds = []
    n_alone = n_short = 0  # benchmarks of one seed: where it would hold, and all
    for benchmark in scene.benchmarks:
        mine = scene.outcomes(benchmark, scene.claim.first)
        verdicts, seeds, draws = [], [], []
        for rival in scene.claim.over:
            theirs = scene.outcomes(benchmark, rival)
            pairs = {(i, j): scene.pair(a, b) for i, a in mine.items() for j, b in theirs.items()}
            known = {
                place: (scene.sign * a, scene.sign * b)
                for place, (a, b) in pairs.items()
                if a is not None and b is not None
            }
            if not known:
                return None  # a rival without a number is not left out: nothing is decided
            for name, of in (
                (scene.claim.first, {place[0] for place in known}),
                (rival, {place[1] for place in known}),
            ):
                seeds.append(len(of))
                draws.append(scene.count_draws(name, of))
            verdicts.append(compare(known.values()))
        if not verdicts:
            return None
        worst = _worst(verdicts)
        told[worst] += 1
        n_alone += worst == "held" and min(draws) < 2
        n_short += min(draws) < 2
        n_seeds.append(min(seeds))
    n = told.total()
    if not n:
        return None
    shown = f"{told['held']} of {n}" + (f", {told['open']} open" if told["open"] else "")
    one = "one seed" if min(n_seeds) < 2 else "one model before"
    if n_short:
        shown += f" ({one})" if n_short == n else f" ({one} on {n_short})"
    held = told["held"] - n_alone
    # No more is asked for than the paper has, where it has anything.
    needed = min(count_in_the_paper(scene.claim)[0] or n, n)
    verdict = "yes" if held >= needed else f"on {held} of {n}"
    if not held:
        can_hold = told["open"] >= needed, told["open"] + n_alone >= needed
        verdict = "open" if can_hold[0] else f"open: {one}" if can_hold[1] else "no"
    return Side(shown, verdict, n_seeds=min(n_seeds))


def list_published(claim: PaperClaim) -> Mapping[str, Mapping[str, float]]:
    """The paper's numbers of a claim's measure, by benchmark and variant.

    It has one count of findings, and some of ours are read off at its limit.
    """
    published = paper_numbers(claim.study)
    return published.get(claim.measure) or published.get(claim.also, {})


def count_in_the_paper(claim: PaperClaim) -> tuple[int, int]:
    """On how many of its benchmarks a method is first in the paper's table, and of how many."""
    numbers = {} if claim.ours else list_published(claim)
    sign = -1 if MEASURES[claim.measure].more_is_better is False else 1
    lines = [numbers[b] for b in numbers if claim.is_of(b) and not b.startswith("mean")]
    whole = [line for line in lines if {claim.first, *claim.over} <= set(line)]
    ahead = sum(
        all(sign * line[claim.first] > sign * line[r] for r in claim.over) for line in whole
    )
    return ahead, len(whole)


def _worst(verdicts: Sequence[str]) -> str:
    return next((word for word in ("lost", "open") if word in verdicts), "held")


def _spread_of(line: Sequence[float]) -> float:
    """The largest of the benchmarks in times of the smallest."""
    return max(line) / min(line) if min(line) > 0 else math.inf


def _first_of_means(scene: _Scene, fold: Callable[[Sequence[float]], float]) -> Side | None:
    """Is the mean over benchmarks, or their spread, the first of all, beyond the seeds?"""
    claim = scene.claim
    sign = -1 if fold is _spread_of else scene.sign
    verdicts, seeds, means = [], [], {}
    for rival in claim.over:
        lines = [_folded_by_seed(scene, fold, rival, n) for n in (0, 1)]
        if not all(lines):
            return None
        mine, theirs = lines
        verdicts.append(compare((sign * a, sign * b) for a in mine for b in theirs))
        seeds.append(min(map(len, lines)))
        means[rival] = (statistics.fmean(mine), statistics.fmean(theirs))
    if not verdicts:
        return None
    best = max(means, key=lambda name: sign * means[name][1])
    ours, rivals = (
        _show_spread(value) if fold is _spread_of else show(value, claim.measure)
        for value in means[best]
    )
    worst = _worst(verdicts)
    verdict = {"held": "yes", "lost": "no", "open": "open"}[worst]
    if min(seeds) < 2 and worst == "held":
        verdict = _ONE_SEED
    alone = _ALONE if min(seeds) < 2 else ""
    return Side(f"{ours}; {best} {rivals}{alone}", verdict, n_seeds=min(seeds))


def _show_spread(value: float) -> str:
    return f"{value:.1f} x" if math.isfinite(value) else "none on some"


def _folded_by_seed(
    scene: _Scene, fold: Callable[[Sequence[float]], float], rival: str, number: int
) -> list[float]:
    """The mean over benchmarks for each seed, of the claim's method (0) or its rival (1).

    At equal rows both are read off at the rows of the shorter run of the same seed.
    """
    found: dict[int, list[float]] = {}
    for benchmark in scene.benchmarks:
        both = [scene.outcomes(benchmark, name) for name in (scene.claim.first, rival)]
        for seed, outcome in both[number].items():
            other = both[1 - number].get(seed)
            value = scene.number(outcome)
            if scene.equal:
                value = scene.pair(outcome, other)[0] if other is not None else None
            if value is not None:
                found.setdefault(seed, []).append(value)
    return [fold(line) for line in found.values() if len(line) == len(scene.benchmarks)]


def _find_first(values: Mapping[str, float]) -> str:
    """Whose value is the largest; nobody's where several are."""
    best = max(values.values())
    first = [name for name, value in values.items() if value == best]
    return first[0] if len(first) == 1 else _TIE


def _winners(names: Sequence[str], labels: Mapping[str, str], claimed: str) -> Side | None:
    """Who won, seed by seed, and whether it is who was said to."""
    if not names:
        return None
    is_so = [name == claimed for name in names]
    verdict = "yes" if all(is_so) else "open" if any(is_so) else "no"
    alone = len(names) == 1
    if alone and verdict == "yes":
        verdict = _ONE_SEED
    shown = " or ".join(labels.get(name, name) for name in dict.fromkeys(names))
    return Side(shown + (_ALONE if alone else ""), verdict, n_seeds=len(names))


def _best(scene: _Scene) -> Side | None:
    """Which variant has the best mean over benchmarks, for every seed."""
    over = scene.claim.over
    won = [
        _find_first({name: scene.sign * sum(lines[name]) for name in over})
        for lines in scene.by_seed(over).values()
    ]
    return _winners(won, {v: scene.study.variant(v).label for v in over}, scene.claim.first)


def _lowest_table(scene: _Scene) -> Side | None:
    """On which table the mean of the variants is the lowest, for every seed."""
    over, tables = scene.claim.over, scene.benchmarks
    won = []
    for lines in scene.by_seed(over).values():
        means = [statistics.fmean(column) for column in zip(*lines.values(), strict=True)]
        won.append(_find_first({table: -x for table, x in zip(tables, means, strict=True)}))
    return _winners(won, {table: f"`{table}`" for table in tables}, scene.claim.table)


def _in_order(scene: _Scene) -> Side | None:
    """Are groups of variants in the order that is claimed: each method ahead of all of the next
    group, or the groups' means alone, for every seed?"""
    claim, sign = scene.claim, scene.sign
    seeds = [
        {name: statistics.fmean(line) for name, line in numbers.items()}
        for numbers in scene.by_seed(claim.named).values()
    ]
    if not seeds:
        return None
    each, means = (
        [_descends(fold, claim.order, {v: sign * x for v, x in one.items()}) for one in seeds]
        for fold in (lambda line: (min(line), max(line)), lambda line: (_mean(line),) * 2)
    )
    verdict = "open" if any(means) else "no"
    if all(means):
        verdict = "yes" if all(each) else "by the means of groups alone"
    if len(seeds) == 1 and all(means):
        verdict = _ONE_SEED
    whole = {name: _mean([one[name] for one in seeds]) for name in claim.named}
    shown = ", ".join(
        show(_mean([whole[name] for name in group]), claim.measure) for group in claim.order
    )
    shown += _ALONE if len(seeds) == 1 else ""
    return Side(shown, verdict, n_seeds=len(seeds), spread=_tell_first_out(claim, whole, sign))


def _descends(
    ends: Callable[[Sequence[float]], tuple[float, float]],
    groups: Sequence[Sequence[str]],
    values: Mapping[str, float],
) -> bool:
    """Is the low end of each group above the high end of the next?"""
    spans = [ends([values[name] for name in group]) for group in groups]
    return all(low > high for (low, _), (_, high) in pairwise(spans))


def _tell_first_out(claim: PaperClaim, means: Mapping[str, float], sign: int) -> str:
    """A method that is ahead of one of the group before its own, if there is any."""
    for group, later in pairwise(claim.order):
        worst = min(group, key=lambda name: sign * means[name])
        best = max(later, key=lambda name: sign * means[name])
        if sign * means[best] > sign * means[worst]:
            told = [f"{name} {show(means[name], claim.measure)}" for name in (best, worst)]
            return f"{told[0]} is ahead of {told[1]}"
    return ""


# -- how much -------------------------------------------------------------------------------


def _measure(scene: _Scene) -> Side | None:
    """A number for each seed, from all benchmarks in the paper's way."""
    claim = scene.claim
    lines = scene.by_seed(claim.named)
    if scene.equal:
        values = _at_equal_rows(scene)
    else:
        found = {seed: _of_seed(claim, scene.benchmarks, line) for seed, line in lines.items()}
        lines = {seed: line for seed, line in lines.items() if found[seed] is not None}
        values = [value for value in found.values() if value is not None]
    if not values:
        return _decide_by_some(scene)
    whole = None
    if claim.kind == "ratio of less":  # a ratio of small changes: one seed would carry their mean
        whole = _of_seed(claim, scene.benchmarks, _average(lines))
    side = _size(claim, values, _limit(claim), whole)
    if scene.equal:
        return side
    if claim.each:
        side = _tell_each(claim, side, lines)
    side = _tell_control(scene, side)
    side = _tell_means(scene, side, lines)
    return _tell_also(scene, side)


def _average(lines: Mapping[int, Mapping[str, Sequence[float]]]) -> dict[str, list[float]]:
    """The means over seeds of every variant, benchmark by benchmark."""
    names = next(iter(lines.values()), {})
    return {
        name: [
            statistics.fmean(cell)
            for cell in zip(*(line[name] for line in lines.values()), strict=True)
        ]
        for name in names
    }


def _of_seed(
    claim: PaperClaim, benchmarks: Sequence[str], lines: Mapping[str, Sequence[float]]
) -> float | None:
    place = {benchmark: number for number, benchmark in enumerate(benchmarks)}
    return compute(claim, benchmarks, lambda b, v: lines[v][place[b]])


def _decide_by_some(scene: _Scene) -> Side | None:
    """A bound that what was run breaks on every seed is broken, whatever the rest would give."""
    claim = scene.claim
    if not claim.bound or claim.kind not in ("low", "high") or scene.equal:
        return None
    run = [name for name in claim.over if scene.by_seed([name])]
    lacking = [name for name in claim.over if name not in run]
    if not run or not lacking:
        return None
    side = _measure(replace(scene, claim=replace(claim, over=tuple(run))))
    if side is None or side.verdict != "no":
        return None
    word = "at most" if claim.kind == "low" else "at least"
    return replace(side, shown=f"{word} {side.shown}").add(f"{', '.join(lacking)} not run")


def _tell_each(
    claim: PaperClaim, side: Side, lines: Mapping[int, Mapping[str, Sequence[float]]]
) -> Side:
    """The number of every variant beside their mean, which alone may keep a bound."""
    means = {
        name: statistics.fmean(x for numbers in lines.values() for x in numbers[name])
        for name in claim.over
    }
    told = ", ".join(f"{name} {show_size(claim, mean)}" for name, mean in means.items())
    limit = _limit(claim)
    alone = limit is not None and min(means.values()) < limit
    verdict = "by the mean alone" if side.verdict == "yes" and alone else side.verdict
    return replace(side, verdict=verdict).add(told)


def _tell_means(
    scene: _Scene, side: Side, lines: Mapping[int, Mapping[str, Sequence[float]]]
) -> Side:
    """What the means over benchmarks give. Where the average that the paper took is not known they
    have a verdict of their own; a change that they do not show holds by the other average alone."""
    claim = scene.claim
    known = _by_means(claim, lines)
    if not known:
        return side
    by_means = _size(claim, known, _limit(claim))
    control = _by_means_of_control(scene)
    beside = [by_means.spread, f"control {show_size(claim, _mean(control))}" if control else ""]
    inside = _in_brackets("; ".join(filter(None, beside)))
    told = replace(side, means=f"; of the means {show_size(claim, _mean(known))}{inside}")
    if claim.kind == "less":
        if side.verdict not in _HOLDS or _holds_by_means(scene, by_means):
            return told
        return replace(told, verdict=f"{side.verdict} by the mean of changes alone")
    if by_means.verdict == side.verdict:
        return told
    both = f"{side.verdict} by the mean of ratios, {by_means.verdict} by the means"
    return replace(told, verdict=both)


def _by_means(claim: PaperClaim, lines: Mapping[int, Mapping[str, Sequence[float]]]) -> list[float]:
    values = [_of_means(claim, line) for line in lines.values()]
    return [value for value in values if value is not None]


def _holds_by_means(scene: _Scene, side: Side) -> bool:
    """Are the changes of the means on the claimed side, and beyond those of the control?"""
    if side.verdict not in _HOLDS or not scene.claim.control:
        return side.verdict in _HOLDS
    control = _by_means_of_control(scene)
    return compare((a, b) for a in side.values for b in control) == "held"


def _by_means_of_control(scene: _Scene) -> list[float]:
    if not scene.claim.control:
        return []
    plain = _of_control(scene.claim)
    return _by_means(plain, scene.by_seed(plain.named))


def _of_control(claim: PaperClaim) -> PaperClaim:
    """The same change, by training without any finding."""
    kind = "less" if claim.kind == "ratio of less" else claim.kind
    plain = replace(claim, kind=kind, first=claim.control, group=(), over=claim.over[:1])
    return replace(plain, control="", also="", bound=False)


def _tell_control(scene: _Scene, side: Side) -> Side:
    """What the same training without findings gives, and whether the claim's number differs from
    it beyond the seeds."""
    claim = scene.claim
    if not claim.control:
        return side
    plain = _of_control(claim)
    control = _measure(replace(scene, claim=plain))
    is_judged = not claim.bound and side.verdict in _BESIDE_CONTROL
    if control is None:
        told = side.add("control not run")
        return replace(told, verdict="open: no control", n_seeds=0) if is_judged else told
    told = side.add(f"control {control.shown}", control.spread)
    if claim.kind == "ratio of less" and (rival := _tell_rival(scene, plain, control)):
        verdict = "open" if side.verdict in _HOLDS else side.verdict
        told = replace(told, verdict=verdict).add(rival)
    if not is_judged:
        return told
    if control.n_seeds < 2:
        return replace(told, verdict="open: one seed of the control", n_seeds=1)
    if claim.kind == "ratio of less":
        return told
    stands = compare((a, b) for a in side.values for b in control.values)
    if side.verdict == _OPPOSITE:
        stands = {"held": "lost", "lost": "held"}.get(stands, stands)
    if stands == "held":
        return told
    why = "not told from the control" if stands == "open" else "the control goes further"
    return replace(told, verdict=f"no ({why})")


def _tell_rival(scene: _Scene, plain: PaperClaim, control: Side) -> str:
    """That a rival changes no more than the control, where that is so: a factor over it may then
    be one over nothing."""
    rival = scene.claim.over[1]
    side = _measure(replace(scene, claim=replace(plain, first=rival)))
    if side is None:
        return ""
    stands = compare((a, b) for a in side.values for b in control.values)
    how = {"open": "not told from it", "lost": "which falls short of it"}
    return f"{rival} {side.shown}, {how[stands]}" if stands in how else ""


def _tell_also(scene: _Scene, side: Side) -> Side:
    """Another measure of the same, which is shown and not judged."""
    claim = scene.claim
    if not claim.also:
        return side
    other = _measure(replace(scene, claim=replace(claim, measure=claim.also, also="")))
    return side if other is None else side.add(f"{claim.also_says} {other.shown}")


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values)


def compute(claim: PaperClaim, benchmarks: Iterable[str], get: Get) -> float | None:
    """The number of a claim, as the paper computes it."""
    benchmarks = list(benchmarks)
    table = {v: [get(b, v) for b in benchmarks] for v in dict.fromkeys(claim.named)}
    if not benchmarks or any(x is None for line in table.values() for x in line):
        return None
    numbers: dict[str, list[float]] = {
        v: [x for x in line if x is not None] for v, line in table.items()
    }
    mean = {v: statistics.fmean(line) for v, line in numbers.items()}
    if claim.kind == "mean":
        return statistics.fmean(mean.values())
    if claim.kind == "range":
        return max(mean.values()) / min(mean.values()) if min(mean.values()) else None
    if claim.kind in ("low", "high"):
        pick = min if claim.kind == "low" else max
        return pick(value for line in numbers.values() for value in line)
    if claim.kind == "pairs":
        lines = [
            (a, b)
            for one, two in claim.pairs
            for a, b in zip(numbers[one], numbers[two], strict=True)
        ]
        return _mean_ratio(lines)
    if claim.kind in ("less", "ratio of less"):
        return _relative(claim, numbers)
    others = statistics.fmean(mean[name] for name in claim.over)
    if claim.kind == "fall":
        return 1 - mean[claim.first] / others if others else None
    if claim.kind in ("points", "difference"):
        return statistics.fmean(mean[name] for name in claim.group or (claim.first,)) - others
    return mean[claim.first] / others if others else None


def _mean_ratio(lines: Sequence[tuple[float, float]]) -> float | None:
    """None where there is nothing to be more than."""
    if not all(second for _, second in lines):
        return None
    return statistics.fmean(first / second for first, second in lines)


def _relative(claim: PaperClaim, numbers: Mapping[str, Sequence[float]]) -> float:
    """The mean relative reduction, or that reduction in times of a rival's."""
    before, mine = numbers[claim.over[0]], numbers[claim.first]
    if claim.kind == "less":
        return _less(before, mine)
    ours, theirs = _less(before, mine), _less(before, numbers[claim.over[1]])
    # Where it rises with LIMI's findings there is nothing to compare; where it falls with them
    # alone, no factor is large enough.
    return ours / theirs if min(ours, theirs) > 0 else math.inf if ours > 0 else -math.inf


def _of_means(claim: PaperClaim, lines: Mapping[str, Sequence[float]]) -> float | None:
    """What a mean of changes or ratios would be if means over benchmarks were taken first."""
    if claim.kind not in ("less", "pairs"):
        return None
    pairs = claim.pairs or [(claim.first, claim.over[0])]
    first, second = (sum(sum(lines[pair[n]]) for pair in pairs) for n in (0, 1))
    if not second:
        return None
    return first / second if claim.kind == "pairs" else 1 - first / second


def _less(before: Sequence[float], after: Sequence[float]) -> float:
    """Mean relative reduction over benchmarks; one that starts from 0 counts as none.

    The paper counts so. Where such a number rises, only the change of the means shows it.
    """
    return statistics.fmean((b - a) / b if b else 0.0 for b, a in zip(before, after, strict=True))


def _at_equal_rows(scene: _Scene) -> list[float]:
    """Times as many findings as the rivals for each seed, each at the rows that both had."""
    claim = scene.claim
    cells = {(b, v): scene.outcomes(b, v) for b in scene.benchmarks for v in claim.named}
    if not cells or not all(cells.values()):
        return []
    common = sorted(set.intersection(*map(set, cells.values())))
    values = [_times_at_equal_rows(scene, cells, seed) for seed in common]
    return [value for value in values if value is not None]


def _times_at_equal_rows(
    scene: _Scene, cells: Mapping[tuple[str, str], Mapping[int, Outcome]], seed: int
) -> float | None:
    claim = scene.claim
    pairs = [(claim.first, rival) for rival in claim.over] or claim.pairs
    mine, theirs = [], []
    for first, rival in pairs:
        for benchmark in scene.benchmarks:
            a, b = scene.pair(cells[(benchmark, first)][seed], cells[(benchmark, rival)][seed])
            if a is None or b is None:
                return None
            mine.append(a)
            theirs.append(b)
    if claim.pairs:
        return _mean_ratio(list(zip(mine, theirs, strict=True)))
    return sum(mine) / sum(theirs) if sum(theirs) else None


def _size(
    claim: PaperClaim, values: Sequence[float], limit: float | None, whole: float | None = None
) -> Side:
    """Words for a number with its spread, and the verdict of the rule.

    `whole` is the number of all seeds together, where that is not their mean.
    """
    low, high, n = min(values), max(values), len(values)
    middle = _mean(values) if whole is None else whole
    if not math.isfinite(middle):
        words = [show_size(claim, low), show_size(claim, high)]
        shown = " to ".join(dict.fromkeys(words)) + (_ALONE if n == 1 else "")
        return Side(shown, _verdict(claim, values, middle), n_seeds=n)
    shown, spread = show_size(claim, middle), ""
    ends = sorted([low, high], reverse=claim.kind in ("less", "fall"))
    if n == 1:
        shown += _ALONE
    elif show_size(claim, low) != show_size(claim, high):
        spread = f"{show_size(claim, ends[0])} to {show_size(claim, ends[1])}"
    side = Side(shown, "", n_seeds=n, spread=spread, values=tuple(values))
    if (claim.bound or claim.kind == "range") and limit is not None:
        is_from_above = claim.kind in ("high", "range", "fall")
        worst, best = (-high, -low) if is_from_above else (low, high)
        limit = -limit if is_from_above else limit
        kept = "yes" if worst >= limit else "no" if best < limit else "open"
        return replace(side, verdict=_ONE_SEED if n == 1 else kept)
    return replace(side, verdict=_verdict(claim, values, middle))


def _verdict(claim: PaperClaim, values: Sequence[float], middle: float) -> str:
    """Of a size: all seeds on the claimed side, and their mean as large as the paper's number."""
    low, high = min(values), max(values)
    if len(values) == 1:
        return _ONE_SEED
    if middle == -math.inf:  # what is to be compared does not fall
        return "no"
    if high < claim.null:  # where both rise there is no factor, so not its opposite either
        return "no" if low == -math.inf else _OPPOSITE
    if low <= claim.null:
        return "open" if claim.stated is None or high >= claim.stated else "no"
    return "yes" if claim.stated is None or middle >= claim.stated else "smaller"


def _limit(claim: PaperClaim) -> float | None:
    """What a bound has to keep: the number that the paper states, or else that of its table."""
    return claim.stated if claim.stated is not None else compute_of_paper(claim)


def compute_of_paper(claim: PaperClaim) -> float | None:
    """The claim's number, computed from the paper's own table."""
    numbers = list_published(claim)
    benchmarks = [b for b in numbers if claim.is_of(b) and not b.startswith("mean")]
    whole = [b for b in numbers if b.startswith("mean")]
    return compute(claim, benchmarks or whole, lambda b, v: numbers.get(b, {}).get(v))


def show_size(claim: PaperClaim, value: float) -> str:
    """The number of a claim, as it is written."""
    if not math.isfinite(value):
        return "falls with LIMI's alone" if value > 0 else "does not fall with LIMI's"
    if claim.kind in ("times", "ratio of less", "pairs", "range"):
        return f"{value:,.2f} x" if abs(value) < 10 else f"{value:,.1f} x"
    if claim.kind in ("less", "fall"):
        return f"{_signed(-100 * value)} %"
    if claim.kind == "points":
        return f"{_signed(100 * value)} points"
    if claim.kind == "difference":
        return ("+" if value > 0 else "") + show(value, claim.measure)
    if claim.measure.startswith("auc"):
        return f"{value:.3f}"
    if claim.measure in ("findings", *SPEEDS):
        return show(value, claim.measure)
    return f"{100 * value:.1f} %"


def _signed(value: float) -> str:
    """With its sign, unless it is none."""
    return f"{value:+.1f}" if round(value, 1) else "0.0"

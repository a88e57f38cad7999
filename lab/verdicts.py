"""What of the claims holds here, decided from the kept cells by a written rule.

Each claim is computed in the paper's way from the paper's numbers, and in the same way from ours:
with the paper's generator, with ours, and at equal numbers of checked rows. Nobody enters a verdict
by hand; `studies/claims.toml` has the rule in words.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from lab.claims import (
    PaperClaim,
    average_ratios,
    compute,
    compute_of_means,
    count_in_the_paper,
    find_limit,
    find_steadiness,
    show_size,
    show_steadiness,
    tell_paper,
)
from lab.conditions import are_comparable
from lab.derived import at_rows, complete
from lab.files import PAPER_GENERATOR, Study, load
from lab.measures import MEASURES, SPEEDS, show
from lab.outdated import OLDER, find_older
from lab.results import DONE, NOT_RUN, Outcome, Results
from lab.rule import compare, find_first, stand_before_all
from limi import methods

__all__ = ["NO_VERDICT", "VERDICTS", "Judged", "classify", "judge", "take_side"]

NOT_COMPARABLE = "not comparable"
_NOT_COMPUTABLE = "not computable"
NOT_JUDGED = (NOT_RUN, NOT_COMPARABLE, _NOT_COMPUTABLE)
OPPOSITE = "no: the opposite"
ONE_SEED = "open: one seed"
ONE_BEFORE = "open: one model before"
ONE_TARGET = "open: one target of each kind"
UPPER_LIMIT = "open: an upper limit"
SMALLER_AT_BEST = "smaller at best"
ALONE = " (one seed)"
# The paper has no number to reach, so this asks less than a plain yes.
SIGN_ALONE = "yes (the sign alone)"
HOLDS = ("yes", SIGN_ALONE, "smaller")


@dataclass(frozen=True)
class Side:
    """A claim's number for each seed, or its count of benchmarks, and the words for it."""

    shown: str
    verdict: str
    scale: str = ""
    n_seeds: int = 2
    spread: str = ""  # over seeds
    asides: tuple[tuple[str, str], ...] = ()  # what is told in brackets, and the spread of it
    rival: tuple[str, str] = ("", "")  # the best of the others, and the spread of that
    means: str = ""  # what the means over benchmarks give
    means_in_brief: str = ""  # the same, where a sign depends on the average
    marks: str = ""
    values: tuple[float, ...] = ()  # by seed, of a claim of size

    def __str__(self) -> str:
        told = [self.spread, *(words + put_in_brackets(spread) for words, spread in self.asides)]
        words, spread = self.rival
        return self._tell(told, words + put_in_brackets(spread), self.means)

    @property
    def brief(self) -> str:
        """Without spreads, and without other averages where no sign depends on them."""
        told = [self.means_in_brief, *(words for words, _ in self.asides)]
        return self._tell(told, self.rival[0], "")

    def add(self, words: str, spread: str = "") -> Side:
        """The side with more in its brackets."""
        return replace(self, asides=(*self.asides, (words, spread)))

    def mark(self, words: str) -> Side:
        """The side with more behind it."""
        return replace(self, marks=self.marks + words)

    def _tell(self, told: Sequence[str], rival: str, means: str) -> str:
        inside = put_in_brackets("; ".join(filter(None, told)))
        beside = rival and f"; {rival}"
        return self._at_scale(self.shown + inside + beside + means + self.marks)

    def _at_scale(self, told: str) -> str:
        return f"{told}, `{self.scale}`" if self.scale not in ("", "paper") else told


NOTHING = Side(NOT_RUN, NOT_RUN)
NOT_COMPUTABLE = Side(_NOT_COMPUTABLE, _NOT_COMPUTABLE)


def put_in_brackets(words: str) -> str:
    """The words in brackets, or nothing for none."""
    return words and f" ({words})"


NO_VERDICT = "not judged"
VERDICTS = (
    "yes",
    "smaller",
    SMALLER_AT_BEST,
    "on some benchmarks",
    "by a mean alone",
    "open",
    "no",
    OPPOSITE,
    NO_VERDICT,
)
"""What the words under *holds?* come to."""

_NO_GENERATOR = ", no generator"
_TREES = " (`trees`)"
_BOTH_AVERAGES = re.compile(r"(.+) by the mean of ratios, (.+) by the means")


@dataclass(frozen=True)
class Judged:
    """A claim, what it comes to on every side, and whether it holds."""

    claim: PaperClaim
    paper: str
    with_paper_generator: str
    with_trees: str
    at_equal_rows: str
    holds: str
    brief: tuple[str, str, str] = ("", "", "")  # the three sides without their spreads


def judge(claim: PaperClaim, known: Sequence[Results]) -> Judged:
    """A claim held against the results of its study, the largest scale first."""
    study = load(claim.study)
    known = [complete(study, results) for results in known]
    ctgan, trees = (take_side(claim, study, known, g) for g in (PAPER_GENERATOR, "trees"))
    equal, has_both = None, has_generator(claim, study)
    if claim.equal_rows:
        sides = [take_side(claim, study, known, g, equal=True) for g in (PAPER_GENERATOR, "trees")]
        with_numbers = (side for side in sides if side is not None and side.scale)
        equal = next(with_numbers, sides[0] or sides[1])
        if has_both and equal is not None and equal is sides[1] and equal.scale:
            equal = equal.mark(_TREES)
    told = [
        (ctgan or NOTHING) if has_both else None,
        _without_generator(claim, study, trees or NOTHING),
        (equal or NOTHING) if claim.equal_rows else None,
    ]
    with_ctgan, with_trees, at_equal_rows = ("" if one is None else str(one) for one in told)
    short, of_trees, of_equal = ("" if one is None else one.brief for one in told)
    return Judged(
        claim,
        tell_paper(claim, study),
        with_ctgan,
        with_trees,
        at_equal_rows,
        _tell_holds(ctgan, trees, has_both),
        (short, of_trees, of_equal),
    )


def classify(holds: str) -> str:
    """Which of the verdicts the words under *holds?* are."""
    told = holds.removesuffix(_TREES)
    both = _BOTH_AVERAGES.fullmatch(told)
    if both:
        kinds = [classify(one) for one in both.groups()]
        if {"yes", "smaller"} & set(kinds):
            return "by a mean alone"
        return "open" if "open" in kinds else "no"
    if "by the mean" in told:
        return "by a mean alone"
    if told.startswith("on "):
        return "on some benchmarks"
    if told in (OPPOSITE, SMALLER_AT_BEST):
        return told
    if told in NOT_JUDGED:
        return NO_VERDICT
    word = re.split(r"[ :]", told)[0]
    if word not in VERDICTS:
        raise ValueError(f"{holds!r} is not one of the verdicts {VERDICTS}")
    return word


def _tell_holds(ctgan: Side | None, trees: Side | None, has_both: bool) -> str:
    """The verdict of the runs with the paper's generator, or else of those with `trees`."""
    for side in (ctgan, trees):
        if side is not None and side.scale:
            return side.verdict + (_TREES if side is trees and has_both else "")
    return (ctgan or trees or NOTHING).verdict


def _without_generator(claim: PaperClaim, study: Study, side: Side) -> Side:
    """What no generator is involved in says so, because its column is that of one."""
    if not side.scale or uses_generator(claim, study):
        return side
    return side.mark(_NO_GENERATOR)


# -- one side of a claim -----------------------------------------------------------------------


def take_side(
    claim: PaperClaim, study: Study, known: Sequence[Results], generator: str, equal: bool = False
) -> Side | None:
    """What the largest scale that has the numbers says, of those that are whole first: several
    seeds, on every benchmark."""
    fallback = None
    if generator == PAPER_GENERATOR and not has_generator(claim, study):
        return None
    scenes = [Scene(claim, study, results, generator, equal) for results in known]
    for scene in scenes:
        side = judge_scene(scene)
        if side is not None and side.shown == NOT_COMPARABLE:
            fallback = fallback or side
        elif side is not None:
            told = _tell_part(replace(side, scale=scene.results.scale), scene)
            if claim.at_most and generator == PAPER_GENERATOR:
                told = _bound_above(told)
            if scene.has_older():
                told = told.mark(OLDER)
            if told.n_seeds > 1:
                return told
            fallback = told if fallback is None or not fallback.scale else fallback
    gap = explain_gap(scenes)
    return fallback or (None if gap is NOTHING else gap)


def _tell_part(side: Side, scene: Scene) -> Side:
    """A part of the benchmarks decides nothing, like a single seed."""
    n, planned = len(scene.benchmarks), len(list_planned(scene))
    if n >= planned:
        return side
    part = f"{n} of {planned} benchmarks"
    return replace(side, verdict=f"open: {part}", n_seeds=1).mark(f", {part}")


def _bound_above(side: Side) -> Side:
    """An upper limit shows what does not hold; that something holds it cannot show."""
    if side.verdict == "no" and not side.values:
        return side  # a count that fails is as good as any
    verdict = side.verdict
    if verdict == "smaller":  # what stays below the paper's number can only be less
        verdict = SMALLER_AT_BEST
    elif verdict.startswith(("yes", "on ")):
        verdict = UPPER_LIMIT
    return replace(side, shown=f"at most {side.shown}", verdict=verdict)


def judge_scene(scene: Scene) -> Side | None:
    """The side, or None where a number is missing."""
    if scene.claim.measure in SPEEDS and not scene.has_one_machine():
        return Side(NOT_COMPARABLE, NOT_COMPARABLE)
    return JUDGES[scene.claim.kind](scene)


def has_generator(claim: PaperClaim, study: Study) -> bool:
    """Is any of its variants run with the paper's generator as well?"""
    if claim.is_of_targets:
        return False
    if any(study.variant(name).of for name in claim.named):
        return False  # it compares generators itself
    is_apart = claim.first not in ("", "before", *claim.over)
    if is_apart and not study.beside(claim.first):
        return False  # its rivals alone were run with it
    return any(map(study.beside, claim.named))


def uses_generator(claim: PaperClaim, study: Study) -> bool:
    """Does any of its variants search among rows of a generator? Targets do not."""
    if claim.is_of_targets:
        return False
    needs = (
        methods.parse(variant.method, variant.settings).needs
        for variant in map(study.variant, claim.named)
        if not variant.derived
    )
    return any("generator" in one for one in needs)


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
    """Why there is no number: the cells were not run, or bear no such number."""
    return NOT_COMPUTABLE if any(scene.was_run() for scene in scenes) else NOTHING


def list_planned(scene: Scene) -> list[str]:
    """The benchmarks that the scale has of those that the claim is about."""
    planned = scene.study.planner.scale(scene.results.scale).benchmarks
    return [benchmark for benchmark in planned if scene.claim.is_of(benchmark)]


def _rows(outcome: Outcome) -> float:
    value = outcome.measures.get("rows")
    return float(value) if isinstance(value, (int, float)) else 0.0


# -- by how much -------------------------------------------------------------------------------

_BESIDE_CONTROL = (*HOLDS, "open", OPPOSITE)  # verdicts that a control can take back


def measure(scene: Scene) -> Side | None:
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
        return None
    whole = None
    if claim.number == "ratio of less":  # a ratio of small changes: one seed would carry their mean
        whole = _of_seed(claim, scene.benchmarks, _average(lines))
    side = _size(claim, values, find_limit(claim), whole)
    if scene.equal:
        return side
    if claim.each:
        side = _tell_each(claim, side, lines)
    side = _tell_control(scene, side)
    side = _tell_means(scene, side, lines)
    if claim.is_of_targets:
        side = replace(side, verdict=ONE_TARGET).add(ONE_TARGET.removeprefix("open: "))
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


def _tell_each(
    claim: PaperClaim, side: Side, lines: Mapping[int, Mapping[str, Sequence[float]]]
) -> Side:
    """The number of every variant beside their mean."""
    means = {
        name: statistics.fmean(x for numbers in lines.values() for x in numbers[name])
        for name in claim.over
    }
    return side.add(", ".join(f"{name} {show_size(claim, mean)}" for name, mean in means.items()))


def _tell_means(
    scene: Scene, side: Side, lines: Mapping[int, Mapping[str, Sequence[float]]]
) -> Side:
    """What the means over benchmarks give. Where the average that the paper took is not known they
    have a verdict of their own; a change that they do not show holds by the other average alone."""
    claim = scene.claim
    known = _by_means(claim, lines)
    if not known:
        return side
    by_means = _size(claim, known, find_limit(claim))
    control = _by_means_of_control(scene)
    beside = [
        by_means.spread,
        f"control {show_size(claim, statistics.fmean(control))}" if control else "",
    ]
    inside = put_in_brackets("; ".join(filter(None, beside)))
    words = f"means {show_size(claim, statistics.fmean(known))}"
    told = replace(side, means=f"; of the {words}{inside}")
    if claim.number == "less":
        told = replace(told, means_in_brief=words)
        if side.verdict not in HOLDS or _holds_by_means(scene, by_means, control):
            return told
        return replace(told, verdict=f"{side.verdict} by the mean of changes alone")
    if by_means.verdict == side.verdict:
        return told
    both = f"{side.verdict} by the mean of ratios, {by_means.verdict} by the means"
    return replace(told, verdict=both)


def _by_means(claim: PaperClaim, lines: Mapping[int, Mapping[str, Sequence[float]]]) -> list[float]:
    values = [compute_of_means(claim, line) for line in lines.values()]
    return [value for value in values if value is not None]


def _holds_by_means(scene: Scene, side: Side, control: Sequence[float]) -> bool:
    """Are the changes of the means on the claimed side, and beyond those of the control?"""
    if side.verdict not in HOLDS or not scene.claim.control or scene.claim.bound:
        return side.verdict in HOLDS
    return compare((a, b) for a in side.values for b in control) == "held"


def _by_means_of_control(scene: Scene) -> list[float]:
    if not scene.claim.control:
        return []
    plain = _of_control(scene.claim)
    return _by_means(plain, scene.by_seed(plain.named))


def _of_control(claim: PaperClaim) -> PaperClaim:
    """The same change, by training without any finding."""
    number = "less" if claim.number == "ratio of less" else claim.number
    plain = replace(claim, number=number, first=claim.control, group=(), over=claim.over[:1])
    return replace(plain, control="", also="", bound=False)


def _tell_control(scene: Scene, side: Side) -> Side:
    """What the same training without findings gives, and whether the claim's number differs from
    it beyond the seeds."""
    claim = scene.claim
    if not claim.control:
        alone = side.verdict in HOLDS and any(map(scene.study.is_one_draw, claim.named))
        return replace(side, verdict=ONE_BEFORE) if alone else side
    plain = _of_control(claim)
    beside = replace(scene, claim=plain)
    control = measure(beside)
    is_judged = not claim.bound and side.verdict in _BESIDE_CONTROL
    if control is None:
        told = side.add(f"control {explain_gap([beside]).shown}")
        return replace(told, verdict="open: no control", n_seeds=0) if is_judged else told
    told = side.add(f"control {control.shown}", control.spread)
    if claim.number == "ratio of less" and (rival := _tell_rival(scene, plain, control)):
        verdict = "open" if side.verdict in HOLDS else side.verdict
        told = replace(told, verdict=verdict).add(rival)
    if not is_judged:
        return told
    if control.n_seeds < 2:
        return replace(told, verdict="open: one seed of the control", n_seeds=1)
    if claim.number == "ratio of less":
        return told
    stands = compare((a, b) for a in side.values for b in control.values)
    if side.verdict == OPPOSITE:
        stands = {"held": "lost", "lost": "held"}.get(stands, stands)
    if stands == "held":
        return told
    why = "cannot be told from the control" if stands == "open" else "the control goes further"
    return replace(told, verdict=f"no ({why})")


def _tell_rival(scene: Scene, plain: PaperClaim, control: Side) -> str:
    """That a rival changes no more than the control, where that is so: a factor over it may then
    be one over nothing."""
    rival = scene.claim.over[1]
    side = measure(replace(scene, claim=replace(plain, first=rival)))
    if side is None:
        return ""
    stands = compare((a, b) for a in side.values for b in control.values)
    how = {"open": "which cannot be told from it", "lost": "which falls short of it"}
    return f"{rival} {side.shown}, {how[stands]}" if stands in how else ""


def _tell_also(scene: Scene, side: Side) -> Side:
    """Another measure of the same, which is shown and not judged."""
    claim = scene.claim
    if not claim.also:
        return side
    other = measure(replace(scene, claim=replace(claim, measure=claim.also, also="")))
    return side if other is None else side.add(f"{claim.also_says} {other.shown}")


def _at_equal_rows(scene: Scene) -> list[float]:
    """Times as many findings as the rivals for each seed, each at the rows that both had."""
    claim = scene.claim
    cells = {(b, v): scene.outcomes(b, v) for b in scene.benchmarks for v in claim.named}
    if not cells or not all(cells.values()):
        return []
    common = sorted(set.intersection(*map(set, cells.values())))
    values = [_times_at_equal_rows(scene, cells, seed) for seed in common]
    return [value for value in values if value is not None]


def _times_at_equal_rows(
    scene: Scene, cells: Mapping[tuple[str, str], Mapping[int, Outcome]], seed: int
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
        return average_ratios(list(zip(mine, theirs, strict=True)))
    return sum(mine) / sum(theirs) if sum(theirs) else None


def _size(
    claim: PaperClaim, values: Sequence[float], limit: float | None, whole: float | None = None
) -> Side:
    """Words for a number with its spread, and the verdict of the rule.

    `whole` is the number of all seeds together, where that is not their mean.
    """
    low, high, n = min(values), max(values), len(values)
    middle = statistics.fmean(values) if whole is None else whole
    if not math.isfinite(middle):
        words = [show_size(claim, low), show_size(claim, high)]
        shown = " to ".join(dict.fromkeys(words)) + (ALONE if n == 1 else "")
        return Side(shown, _verdict(claim, values, middle), n_seeds=n)
    shown, spread = show_size(claim, middle), ""
    ends = sorted([low, high], reverse=claim.number in ("less", "fall"))
    if n == 1:
        shown += ALONE
    elif show_size(claim, low) != show_size(claim, high):
        spread = f"{show_size(claim, ends[0])} to {show_size(claim, ends[1])}"
    side = Side(shown, "", n_seeds=n, spread=spread, values=tuple(values))
    if claim.is_bound and limit is not None:
        is_from_above = claim.number in ("high", "range", "fall")
        worst, best = (-high, -low) if is_from_above else (low, high)
        limit = -limit if is_from_above else limit
        kept = "yes" if worst >= limit else "no" if best < limit else "open"
        return replace(side, verdict=ONE_SEED if n == 1 else kept)
    return replace(side, verdict=_verdict(claim, values, middle))


def _verdict(claim: PaperClaim, values: Sequence[float], middle: float) -> str:
    """Of a size: all seeds on the claimed side, and their mean as large as the paper's number."""
    low, high = min(values), max(values)
    if len(values) == 1:
        return ONE_SEED
    if middle == -math.inf:  # what is to be compared does not fall
        return "no"
    if high < claim.null:  # where both rise there is no factor, so not its opposite either
        return "no" if low == -math.inf else OPPOSITE
    if low <= claim.null:
        return "open" if claim.stated is None or high >= claim.stated else "no"
    if claim.stated is None:
        return "yes" if claim.ours else SIGN_ALONE
    return "yes" if middle >= claim.stated else "smaller"


# -- who is first ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tried:
    """How a method stands on one benchmark, and how many seeds and draws say so."""

    verdict: str
    n_seeds: int
    n_draws: int


def _count(scene: Scene) -> Side | None:
    """On how many benchmarks one variant is first of all, beyond the spread of the seeds."""
    tried = [_try(scene, benchmark) for benchmark in scene.benchmarks]
    known = [one for one in tried if one is not None]
    if not known or len(known) < len(tried):
        return None  # a rival without a number is not left out: nothing is decided
    n, told = len(known), Counter(one.verdict for one in known)
    short = Counter(ONE_SEED if one.n_seeds < 2 else ONE_BEFORE for one in known if one.n_draws < 2)
    shown = f"{told['held']} of {n}" + (f", {told['open']} open" if told["open"] else "")
    marks = [
        words if count == n else f"{words} on {count}"
        for words, count in ((verdict.removeprefix("open: "), short[verdict]) for verdict in short)
    ]
    alone = [one for one in known if one.verdict == "held" and one.n_draws < 2]
    held = told["held"] - len(alone)
    # No more is asked for than the paper has, where it has anything.
    needed = min(count_in_the_paper(scene.claim)[0] or n, n)
    verdict = "yes" if held >= needed else f"on {held} of {n}"
    if not held:
        verdict = "open" if told["open"] >= needed else "no"
        if verdict == "no" and told["open"] + len(alone) >= needed:
            verdict = ONE_SEED if any(one.n_seeds < 2 for one in alone) else ONE_BEFORE
    n_seeds = min(one.n_seeds for one in known)
    return Side(shown + put_in_brackets("; ".join(marks)), verdict, n_seeds=n_seeds)


def _try(scene: Scene, benchmark: str) -> _Tried | None:
    """The method beside each of its rivals; None where one of them has no number."""
    first = scene.claim.first
    mine = scene.outcomes(benchmark, first)
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
            return None
        for number, name in enumerate((first, rival)):
            of = {place[number] for place in known}
            seeds.append(len(of))
            draws.append(scene.count_draws(name, of))
        verdicts.append(compare(known.values()))
    return _Tried(stand_before_all(verdicts), min(seeds), min(draws)) if verdicts else None


def _first_of_means(scene: Scene) -> Side | None:
    """Is the mean over benchmarks, or their spread, the first of all, beyond the seeds?"""
    claim = scene.claim
    is_steady = claim.number == "steadiness"
    fold = find_steadiness if is_steady else statistics.fmean
    sign = -1 if is_steady else scene.sign
    verdicts, seeds, known = [], [], {}
    for rival in claim.over:
        lines = [_folded_by_seed(scene, fold, rival, n) for n in (0, 1)]
        if not all(lines):
            return None
        mine, theirs = lines
        verdicts.append(compare((sign * a, sign * b) for a in mine for b in theirs))
        seeds.append(min(map(len, lines)))
        known[rival] = (mine, theirs)
    if not verdicts:
        return None
    best = max(known, key=lambda name: sign * statistics.fmean(known[name][1]))
    write = show_steadiness if is_steady else partial(show, measure=claim.measure)
    (ours, spread), (others, of_others) = (_show_seeds(line, write) for line in known[best])
    worst = stand_before_all(verdicts)
    verdict = {"held": "yes", "lost": "no", "open": "open"}[worst]
    if min(seeds) < 2 and worst == "held":
        verdict = ONE_SEED
    beside = (f"{best} {others}", of_others)
    return Side(ours, verdict, n_seeds=min(seeds), spread=spread, rival=beside)


def _show_seeds(line: Sequence[float], write: Callable[[float], str]) -> tuple[str, str]:
    """The mean over seeds and their spread, if they have one."""
    if len(line) == 1:
        return write(line[0]) + ALONE, ""
    mean, low, high = statistics.fmean(line), write(min(line)), write(max(line))
    return write(mean), f"{low} to {high}" if low != high and math.isfinite(mean) else ""


def _folded_by_seed(
    scene: Scene, fold: Callable[[Sequence[float]], float], rival: str, number: int
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


def _best(scene: Scene) -> Side | None:
    """Which variant has the best mean over benchmarks, or on which table the mean of all variants
    is the lowest, for every seed."""
    if scene.claim.table:
        return _lowest_table(scene)
    over = scene.claim.over
    won = [
        find_first({name: scene.sign * sum(lines[name]) for name in over})
        for lines in scene.by_seed(over).values()
    ]
    return _winners(won, {v: scene.study.variant(v).label for v in over}, scene.claim.first)


def _lowest_table(scene: Scene) -> Side | None:
    """On which table the mean of the variants is the lowest, for every seed."""
    over, tables = scene.claim.over, scene.benchmarks
    won = []
    for lines in scene.by_seed(over).values():
        means = [statistics.fmean(column) for column in zip(*lines.values(), strict=True)]
        won.append(find_first({table: -x for table, x in zip(tables, means, strict=True)}))
    return _winners(won, {table: f"`{table}`" for table in tables}, scene.claim.table)


def _winners(names: Sequence[str], labels: Mapping[str, str], claimed: str) -> Side | None:
    """Who won, seed by seed, and whether it is who was said to."""
    if not names:
        return None
    is_so = [name == claimed for name in names]
    verdict = "yes" if all(is_so) else "open" if any(is_so) else "no"
    alone = len(names) == 1
    if alone and verdict == "yes":
        verdict = ONE_SEED
    shown = " or ".join(labels.get(name, name) for name in dict.fromkeys(names))
    return Side(shown + (ALONE if alone else ""), verdict, n_seeds=len(names))


def _in_order(scene: Scene) -> Side | None:
    """Are groups of variants in the order that is claimed: each method ahead of all of the next
    group, or the groups' means alone, for every seed?"""
    claim, sign = scene.claim, scene.sign
    lines = [*scene.by_seed(claim.named).values()]
    seeds = [{name: sign * statistics.fmean(x) for name, x in one.items()} for one in lines]
    if not seeds:
        return None
    each = [_descends(_span, claim.order, one) for one in seeds]
    means = [
        _descends(lambda line: (statistics.fmean(line),) * 2, claim.order, one) for one in seeds
    ]
    verdict = "open" if any(means) else "no"
    if all(means):
        verdict = "yes" if all(each) else "by the means of groups alone"
    if len(seeds) == 1 and all(means):
        verdict = ONE_SEED
    whole = {name: sign * statistics.fmean([one[name] for one in seeds]) for name in claim.named}
    shown = ", ".join(
        show(statistics.fmean([whole[name] for name in group]), claim.measure)
        for group in claim.order
    )
    shown += ALONE if len(seeds) == 1 else ""
    told = [_count_in_order(scene, lines), _tell_passed(claim, whole, sign)]
    return Side(shown, verdict, n_seeds=len(seeds), spread="; ".join(filter(None, told)))


def _count_in_order(scene: Scene, lines: Sequence[Mapping[str, Sequence[float]]]) -> str:
    """On how many benchmarks each method is ahead of all of the next group, by its mean over seeds;
    that decides nothing."""
    n = len(scene.benchmarks)
    by_benchmark = [
        {v: scene.sign * statistics.fmean(one[v][at] for one in lines) for v in scene.claim.named}
        for at in range(n)
    ]
    held = sum(_descends(_span, scene.claim.order, means) for means in by_benchmark)
    return f"benchmark by benchmark on {held} of {n}" if min(n, len(lines)) > 1 else ""


def _span(line: Sequence[float]) -> tuple[float, float]:
    return min(line), max(line)


def _descends(
    ends: Callable[[Sequence[float]], tuple[float, float]],
    groups: Sequence[Sequence[str]],
    values: Mapping[str, float],
) -> bool:
    """Is the low end of each group above the high end of the next?"""
    spans = [ends([values[name] for name in group]) for group in groups]
    return all(low > high for (low, _), (_, high) in pairwise(spans))


def _tell_passed(claim: PaperClaim, means: Mapping[str, float], sign: int) -> str:
    """A method that is ahead of some of the group before its own, and all of those, if any is."""
    for group, later in pairwise(claim.order):
        best = max(later, key=lambda name: sign * means[name])
        passed = [name for name in group if sign * means[name] < sign * means[best]]
        if passed:
            names = [best, *sorted(passed, key=lambda name: -sign * means[name])]
            first, *others = [f"{name} {show(means[name], claim.measure)}" for name in names]
            return f"{first} is ahead of {', '.join(others)}"
    return ""


JUDGES: Mapping[str, Callable[[Scene], Side | None]] = {
    "first": _count,
    "first of means": _first_of_means,
    "best": _best,
    "order": _in_order,
    "size": measure,
}
"""What judges each kind of claim."""

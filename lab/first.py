"""Who is first: on how many benchmarks, by the mean over them, or in which order."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from lab.claim_numbers import (
    count_in_the_paper,
    find_steadiness,
    show_steadiness,
)
from lab.measures import show
from lab.paper_claims import PaperClaim
from lab.rule import compare, find_first, stand_before_all
from lab.scene import Scene
from lab.side import ALONE, ONE_BEFORE, ONE_SEED, Side, put_in_brackets

__all__ = ["JUDGES"]


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


def _first_of_means(scene: Scene, fold: Callable[[Sequence[float]], float]) -> Side | None:
    """Is the mean over benchmarks, or their spread, the first of all, beyond the seeds?"""
    claim = scene.claim
    sign = -1 if fold is find_steadiness else scene.sign
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
    write = show_steadiness if fold is find_steadiness else partial(show, measure=claim.measure)
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
    """Which variant has the best mean over benchmarks, for every seed."""
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
    "first of means": partial(_first_of_means, fold=statistics.fmean),
    "steadiest": partial(_first_of_means, fold=find_steadiness),
    "best": _best,
    "table": _lowest_table,
    "order": _in_order,
}
"""What judges each kind of claim that says who is first."""

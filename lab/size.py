"""By how much: a number for each seed, held against the paper's and against a control."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lab.claim_numbers import (
    average_ratios,
    compute,
    compute_of_means,
    find_limit,
    show_size,
)
from lab.paper_claims import PaperClaim
from lab.results import Outcome
from lab.rule import compare
from lab.scene import Scene, explain_gap
from lab.side import (
    ALONE,
    HOLDS,
    ONE_BEFORE,
    ONE_SEED,
    ONE_TARGET,
    OPPOSITE,
    SIGN_ALONE,
    Side,
    put_in_brackets,
)

__all__ = ["measure"]

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
        return _decide_by_some(scene)
    whole = None
    if claim.kind == "ratio of less":  # a ratio of small changes: one seed would carry their mean
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


def _decide_by_some(scene: Scene) -> Side | None:
    """A bound that what was run breaks on every seed is broken, whatever the rest would give."""
    claim = scene.claim
    if not claim.bound or claim.kind not in ("low", "high") or scene.equal:
        return None
    run = [name for name in claim.over if scene.by_seed([name])]
    lacking = [name for name in claim.over if name not in run]
    if not run or not lacking:
        return None
    side = measure(_narrow(scene, tuple(run)))
    if side is None or side.verdict != "no":
        return None
    word = "at most" if claim.kind == "low" else "at least"
    gaps = {name: explain_gap([_narrow(scene, (name,))]).shown for name in lacking}
    told = [
        f"{', '.join(name for name, why in gaps.items() if why == one)} {one}"
        for one in dict.fromkeys(gaps.values())
    ]
    return replace(side, shown=f"{word} {side.shown}").add("; ".join(told))


def _narrow(scene: Scene, over: tuple[str, ...]) -> Scene:
    return replace(scene, claim=replace(scene.claim, over=over))


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
    if claim.kind == "less":
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
    kind = "less" if claim.kind == "ratio of less" else claim.kind
    plain = replace(claim, kind=kind, first=claim.control, group=(), over=claim.over[:1])
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
    if claim.kind == "ratio of less" and (rival := _tell_rival(scene, plain, control)):
        verdict = "open" if side.verdict in HOLDS else side.verdict
        told = replace(told, verdict=verdict).add(rival)
    if not is_judged:
        return told
    if control.n_seeds < 2:
        return replace(told, verdict="open: one seed of the control", n_seeds=1)
    if claim.kind == "ratio of less":
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
    ends = sorted([low, high], reverse=claim.kind in ("less", "fall"))
    if n == 1:
        shown += ALONE
    elif show_size(claim, low) != show_size(claim, high):
        spread = f"{show_size(claim, ends[0])} to {show_size(claim, ends[1])}"
    side = Side(shown, "", n_seeds=n, spread=spread, values=tuple(values))
    if claim.is_bound and limit is not None:
        is_from_above = claim.kind in ("high", "range", "fall")
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

"""What the paper claims and what of it holds here, decided from the kept cells by a written rule.

`studies/claims.toml` lists the claims and the rule. Each is computed in the paper's way from the
paper's numbers, and in the same way from ours: with the paper's generator, with ours, and at equal
numbers of checked rows. Nobody enters a verdict by hand.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.claim_numbers import (
    compute_of_paper,
    count_in_the_paper,
    find_steadiness,
    list_published,
    show_size,
    show_steadiness,
)
from lab.derived import complete
from lab.files import PAPER_GENERATOR, Study, load
from lab.measures import MEASURES, show
from lab.paper_claims import FIRST, PaperClaim, list_claims
from lab.results import Results
from lab.rule import TIE, find_first
from lab.side import NOT_JUDGED, NOTHING, OPPOSITE, SMALLER_AT_BEST, Side
from lab.sides import has_generator, take_side, uses_generator

__all__ = ["NO_VERDICT", "VERDICTS", "Judged", "PaperClaim", "classify", "judge"]
__all__ += ["list_claims"]

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
        _paper(claim, study),
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


# -- the paper's own side ---------------------------------------------------------------------


def _paper(claim: PaperClaim, study: Study) -> str:
    """What the paper says: its printed number, and what its own table gives where that differs."""
    if claim.ours:
        return ""
    if claim.kind in FIRST:
        return claim.says_so or _first_in_the_paper(claim, study)
    stated = None if claim.stated is None else show_size(claim, claim.stated)
    value = compute_of_paper(claim)
    if value is None:
        return claim.says_so or stated or ""
    computed = show_size(claim, value)
    if stated is None or stated == computed or claim.bound:
        return stated or computed
    return f"{stated} (its table: {computed})"


def _first_in_the_paper(claim: PaperClaim, study: Study) -> str:
    """On how many of its benchmarks a method is first in the paper's table, or which one is."""
    numbers = list_published(claim)
    sign = MEASURES[claim.measure].sign
    benchmarks = [b for b in numbers if claim.is_of(b) and not b.startswith("mean")]
    if claim.kind == "first of means":
        line = numbers["mean"]
        rival = max(claim.over, key=lambda name: sign * line[name])
        mine, theirs = (show(line[name], claim.measure) for name in (claim.first, rival))
        return f"{mine}; {rival} {theirs}"
    if claim.kind == "steadiest":
        return _steadiest_in_the_paper(claim, [numbers[b] for b in benchmarks])
    if claim.kind == "table":
        means = {b: statistics.fmean(numbers[b][v] for v in claim.over) for b in benchmarks}
        lowest = find_first({b: -mean for b, mean in means.items()})
        return lowest if lowest == TIE else f"`{lowest}`"
    if claim.kind == "best":
        means = {v: statistics.fmean(numbers[b][v] for b in benchmarks) for v in claim.over}
        best = find_first({v: sign * mean for v, mean in means.items()})
        return best if best == TIE else study.variant(best).label
    ahead, n = count_in_the_paper(claim)
    return f"{ahead} of {n}"


def _steadiest_in_the_paper(claim: PaperClaim, lines: Sequence[Mapping[str, float]]) -> str:
    """The largest over the smallest benchmark, of the method and of the steadiest rival."""
    spread = {name: find_steadiness(line[name] for line in lines) for name in claim.named}
    rival = min(claim.over, key=lambda name: spread[name])
    return f"{show_steadiness(spread[claim.first])}; {rival} {show_steadiness(spread[rival])}"

"""What a claim comes to on one side, with the paper's generator, with ours, or at equal rows: its
number for each seed, the words for it, and the verdict of the rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lab.files import PAPER_GENERATOR, Study
from lab.first import JUDGES
from lab.measures import SPEEDS
from lab.outdated import OLDER
from lab.paper_claims import PaperClaim
from lab.results import Results
from lab.scene import Scene, explain_gap, list_planned
from lab.side import NOT_COMPARABLE, NOTHING, SMALLER_AT_BEST, UPPER_LIMIT, Side
from lab.size import measure
from limi import methods

__all__ = ["has_generator", "take_side", "uses_generator"]


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
    return JUDGES.get(scene.claim.kind, measure)(scene)


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

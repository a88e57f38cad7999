"""The second check: every finding is put to the user's model again, just as it was given."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from limi.audits.conduct import Searched
from limi.audits.early_check import BLOCK, EarlyCheck, ask_block, block_size
from limi.audits.plan import Plan
from limi.decisions import Bands, Rule
from limi.models.target import Target
from limi.search import steadiness
from limi.search.check import check_rows
from limi.search.findings import Found
from limi.search.spread import Spread
from limi.streams import Stream
from limi.system.watch import OutOfTime, Watch
from limi.types import Mask, Rows

__all__ = ["Dropped", "ask_again", "count_bands", "verify"]

_CONFIRMED_AT_ONCE = 256  # where time or queries are short: what is confirmed by then is kept


def verify(plan: Plan, searched: Searched) -> tuple[Found, Dropped]:
    """Findings that flip when the model is asked again; every time, where it is not steady."""
    target, found = plan.problem.target, searched.run.findings.all()
    again, flips = ask_again(target, found, plan.watch, plan.spread, plan.early)
    unasked = len(found) - len(again)
    found = found[: len(again)]
    moved = have_moved(target.rule, found, again, flips)
    steady = searched.steadiness.steady
    if steady and not moved.any():
        return again[flips], Dropped(rounded=int((~flips).sum()), unasked=unasked)
    rng = Stream.CONFIRMATION.rng(plan.seed)
    places = np.flatnonzero(flips)
    company = plan.problem.rows if searched.steadiness.in_company else None
    with target.anew(1):  # the first answer of each is why it is here
        always = _always_flip(plan, again[places], rng, company)
    late = len(places) - len(always)
    rounded = int((~flips & ~moved).sum())
    dropped = len(found) - late - rounded - int(always.sum())
    kept = again[places[: len(always)][always]]
    return kept, Dropped(rounded, dropped, steady, unasked + late)


def have_moved(rule: Rule, found: Found, again: Found, flips: Mask) -> Mask:
    """Which findings flip no more, because an answer is another one and not for rounding."""
    moved: Mask = ~flips & (
        rule.moved(found.score, again.score) | rule.moved(found.partner_score, again.partner_score)
    )
    return moved


def _always_flip(plan: Plan, found: Found, rng: np.random.Generator, company: Rows | None) -> Mask:
    """Which findings flip every time they are asked; of as many as there is time for."""
    watch = plan.watch
    score = watch.counted(watch.timed(plan.problem.target.score))
    short = watch.limited or watch.max_queries is not None
    size = _CONFIRMED_AT_ONCE if short else max(len(found), 1)
    kept = [np.zeros(0, dtype=bool)]
    for start in range(0, len(found), size):
        part = found[start : start + size]
        try:
            always, _ = steadiness.always_flip(
                score,
                part.rows,
                part.partner,
                rng,
                company=company,
                max_batch=watch.at_once(plan.max_batch),
                decision=plan.problem.target.rule,
            )
        except OutOfTime:
            break
        kept.append(always)
    return np.concatenate(kept)


def count_bands(plan: Plan, searched: Searched, found: Found) -> Found:
    """Findings with how many bands all protected variants of each span, where decisions are bands.

    Where queries were few, or time is over, it is told of the pair alone.
    """
    target, watch = plan.problem.target, plan.watch
    rule = target.rule
    if not isinstance(rule, Bands):
        return found
    variants = np.stack([found.score, found.partner_score], axis=1)
    span = np.asarray(rule.span(variants)) if len(found) else np.empty(0)
    score = watch.counted(watch.timed(target.score))
    for start in range(0, 0 if plan.budget.max_queries is not None else len(found), BLOCK):
        part = slice(start, start + BLOCK)
        try:
            told = check_rows(
                score,
                plan.problem.schema,
                found.rows[part],
                max_batch=watch.at_once(plan.max_batch),
                keep_scores=True,
                decision=rule,
            )
        except OutOfTime:
            break
        span[part] = rule.span(np.concatenate([told.scores, variants[part]], axis=1))
    return dataclasses.replace(found, span=span)


@dataclass(frozen=True)
class Dropped:
    """Rows that flipped in the search and not afterwards, and so were left out."""

    rounded: int = 0  # their answers lie within rounding of the edge of the rule
    moved: int = 0  # the model gave another answer
    surprise: bool = False  # that, although it had answered steadily before the run
    unasked: int = 0  # there was no time to ask for them again

    @property
    def notes(self) -> list[str]:
        """What the report should say of them."""
        notes = []
        if self.surprise:
            notes.append(
                "the model gave steady answers before the run but not when findings were asked "
                f"about again, so each was asked about {steadiness.TIMES} times, and rates may "
                "count rows that flip by chance"
            )
        if self.moved:
            notes.append(
                f"{self.moved} rows flipped in the search but not each of {steadiness.TIMES} times "
                "when they were asked about again, so they were left out"
            )
        if self.rounded:
            notes.append(
                f"{self.rounded} rows flipped in the search but not when asked about again, so "
                "they were left out: the model's answer is so close to the edge that rounding "
                "decides"
            )
        return notes


def ask_again(
    target: Target,
    found: Found,
    watch: Watch,
    spread: Spread | None = None,
    early: EarlyCheck | None = None,
    start: int = 0,
) -> tuple[Found, Mask]:
    """Findings with the scores of a second answer, and which of them flip in it; as many of them
    as there is time for.

    Where the model says decisions of its own (`predict`), those must differ as well. What was asked
    `early` is taken from there; the first of the findings is number `start` of all.
    """
    if spread is not None and spread.n_workers > 1 and not watch.limited:
        return _ask_workers(target, found, watch, spread)
    mine, other = [np.empty(0)], [np.empty(0)]
    flips = [np.zeros(0, dtype=bool)]
    done, most = 0, block_size(target)
    while done < len(found):
        # Whole blocks, and at the end what does not fill one.
        size = min(most, max(1, (len(found) - done) // BLOCK) * BLOCK)
        if watch.limited:
            size = min(BLOCK, max(1, watch.at_once(2 * BLOCK) // 2))
        told = None if early is None else early.take(start + done, len(found) - done)
        if told is not None:
            watch.count(2 * len(told.score) + told.n_decisions)
        else:
            block = slice(done, done + size)
            try:
                rows, partner = found.rows[block], found.partner[block]
                told = ask_block(target, rows, partner, lambda ask: watch.counted(watch.timed(ask)))
            except OutOfTime:
                break
        flipped = target.rule.differ(told.score, told.partner_score)
        if told.decided is not None and told.partner_decided is not None:
            flipped &= told.decided != told.partner_decided
        mine.append(told.score)
        other.append(told.partner_score)
        flips.append(flipped)
        done += len(told.score)
    again = dataclasses.replace(
        found[:done], score=np.concatenate(mine), partner_score=np.concatenate(other)
    )
    return again, np.concatenate(flips)


def _ask_workers(target: Target, found: Found, watch: Watch, spread: Spread) -> tuple[Found, Mask]:
    """The same by workers: each asks for whole blocks, so that written scores are the same."""
    both = []
    for rows in (found.rows, found.partner):
        starts = range(0, len(rows), BLOCK)
        both += [rows[start : start + BLOCK] for start in starts]
    if not both:
        return found, np.zeros(0, dtype=bool)
    mine, other = np.split(np.concatenate(spread.score_blocks(both)), 2)
    watch.count(2 * len(found))
    flips = target.rule.differ(mine, other)
    if target.decides:
        decided, decided_other = np.split(np.concatenate(spread.decide_blocks(both)), 2)
        watch.count(2 * len(found))
        flips &= decided != decided_other
    return dataclasses.replace(found, score=mine, partner_score=other), flips
